"""How `pep_pub` spends: as `pmw_pub` does."""

from synth.planning.pmw_pub import choose_measured, memory_bytes, plan

__all__ = ["choose_measured", "memory_bytes", "plan"]
