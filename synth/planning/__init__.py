"""Everything that is decided about a release before its rows are touched.

The service previews with it and the worker spends by it, so it needs neither torch nor numpy. Each
mechanism has one file with its name, like its parameters (scrim/spec/mechanism) and what it does
(synth/mechanisms). It composes the functions that several of them share.
"""
