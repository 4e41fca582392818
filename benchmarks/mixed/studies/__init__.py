"""Studies that are no comparison of errors at several epsilons: one module for each command.

Every study lists its cases, measures one at a time, and shows all that its file has.
"""
