"""Whether what a release says about its own accuracy is true, measured on public tables."""
