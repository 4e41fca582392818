"""Rules of a schema, applied to rows, cells and models.

`row_rules` finds rows that break a rule, `valid` is the table of what may occur together, `repair` changes
rows as little as possible, `reading` maps private rows, `drawing` and `groups` draw released ones, and
`cells` finds cells of tables in which no row can be.
"""
