"""Benchmarks on public data. They print tables; both sides of a ratio are measured in the same run."""
