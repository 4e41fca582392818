"""Releases: jobs that spend a population's budget, and what they release."""
