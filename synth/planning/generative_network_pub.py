"""How `generative_network_pub` spends: as `generative_network` does. Public rows cost no budget."""

from synth.planning.relaxed_projection import choose_measured, memory_bytes, plan

__all__ = ["choose_measured", "memory_bytes", "plan"]
