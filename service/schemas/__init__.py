"""Saved schemas: declarations that datasets reuse, under a name and a version."""
