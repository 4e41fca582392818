"""Datasets: declared tables, encrypted at rest, never downloadable."""
