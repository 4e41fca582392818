"""How `rap` spends: as `gem` does."""

from synth.planning.gem import choose_measured, memory_bytes, plan

__all__ = ["choose_measured", "memory_bytes", "plan"]
