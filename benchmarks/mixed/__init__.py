"""`make bench-mixed`: errors and times of whole releases of tables with categories and numbers.

`sets` says what is compared, the modules of `studies` measure what is no comparison of errors, and
`report` writes all of it. What they share with the other comparisons is in `benchmarks.comparison`.
"""
