"""How `generative_network` spends: as `relaxed_projection` does."""

from synth.planning.relaxed_projection import choose_measured, memory_bytes, plan

__all__ = ["choose_measured", "memory_bytes", "plan"]
