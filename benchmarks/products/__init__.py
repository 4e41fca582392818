"""`make bench-products`: errors and times of whole releases of marginals on public data.

`sets` says what is compared, and `report` writes what `benchmarks.comparison` found.
"""
