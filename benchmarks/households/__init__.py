"""`make bench-households`: errors and times of whole releases of households and the people in them.

`data` reads the two tables, `sets` says what is compared, `random_join` is what one would do without
mechanisms for groups of individuals, `job` runs one release, and `report` writes what was found. What
it shares with the other comparisons is in `benchmarks.comparison`.
"""
