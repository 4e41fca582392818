"""How long tests wait for something that must happen."""

PATIENCE = 300.0
"""Seconds after which it is taken to have failed. A test that passes waits for the event, not for the
clock, so that a busy machine fails nothing."""
