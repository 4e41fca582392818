"""`make bench-mixed`: errors and times of whole releases of tables with categories and numbers.

`sets` defines what is compared, the modules of `studies` measure everything else, and `report` writes
the results. Code that they share with other comparisons is in `benchmarks.comparison`.
"""
