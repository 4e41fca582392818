"""Mechanisms that compete on whole releases of public data, and how far each is from the truth.

`problem` says what is compared, `job` runs one release, `grid` runs many and keeps what it finds in a
file of JSON lines (`outcomes`), `summary` adds up the runs, and `tables` and `plots` show them.
"""
