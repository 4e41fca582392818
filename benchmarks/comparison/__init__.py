"""Comparison of mechanisms by the errors of whole releases of public data.

`problem` defines what is compared, `job` runs one release, `grid` runs many and keeps the results in a
file of JSON lines (`outcomes`), `summary` aggregates the runs, and `tables` and `plots` show them.
"""
