"""`make bench-products`: errors and times of whole releases on public data.

`sets` says what is compared, `job` runs one release, `grid` runs many and keeps what it finds in a
file of JSON lines (`outcomes`), and `report` turns that file into tables and plots (`plots`).
"""
