"""`make bench-judge`: whole releases on tables that rules were tuned on, and on tables that only judge.

`sets` says what is released and what is learnt from it, `measures` and `classifier` compare rows with
the truth, `job` runs one release, and `report` shows the lines of one state of the code. `times`
measures a small job alone and beside another.
"""
