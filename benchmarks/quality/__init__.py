"""How often the error bars of models cover the truth, on public tables."""
