"""Studies other than comparisons of errors at several epsilons: one module per command.

Every study lists its cases, measures one at a time, and shows all results in its file.
"""
