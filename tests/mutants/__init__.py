"""T10: known privacy bugs, planted one by one in a copy of the code. Each must fail a test.

Run by `make mutants`. A mutant that survives means that the tests do not detect that bug. There
is one file of mutants for each area of the code, and one harness.
"""
