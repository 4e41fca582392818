"""Distributions over the domain, each in the form its mechanisms need."""
