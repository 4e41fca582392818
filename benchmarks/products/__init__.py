"""`make bench-products`: errors and times of whole releases of marginals on public data.

`sets` defines what is compared, `report` writes the results of `benchmarks.comparison`, and `overview`
writes one table over all mechanisms.
"""
