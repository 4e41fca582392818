"""Benchmarks on public data. They print tables; ratios are measured side by side in one run."""
