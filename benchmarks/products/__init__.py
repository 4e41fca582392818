"""`make bench-products`: errors and times of whole releases of marginals on public data.

`sets` says what is compared, `report` writes what `benchmarks.comparison` found, and `overview` one
table over all mechanisms.
"""
