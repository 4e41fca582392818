"""Plans: everything that is decided about a release before its rows are read.

The service uses it for previews and the worker for spending, so it imports neither torch nor numpy. Each
mechanism has one module named after it, as in scrim/spec/mechanism (its parameters) and synth/mechanisms
(its algorithm). The other modules hold functions that several mechanisms share.
"""
