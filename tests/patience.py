"""The timeout of tests that wait for an event."""

PATIENCE = 300.0
"""Timeout in seconds. A test that passes waits for the event and not for the clock, so a busy machine
does not make it fail."""
