"""Distributions over the domain, each in the form that its mechanisms need."""
