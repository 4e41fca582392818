"""`make bench-households`: errors and times of whole releases of households and the people in them.

`data` reads the two tables, `sets` defines what is compared, `random_join` is a baseline without
mechanisms for groups of individuals, `job` runs one release, and `report` writes the results. Code that
it shares with other comparisons is in `benchmarks.comparison`.
"""
