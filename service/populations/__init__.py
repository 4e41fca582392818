"""Populations: the protected people, each with one budget."""
