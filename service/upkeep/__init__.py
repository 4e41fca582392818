"""Maintenance by an operator: caps, keys, and recovery after a data loss."""
