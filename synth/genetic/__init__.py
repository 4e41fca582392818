"""Genetic search: rows whose counts come close to measured ones, found by changing cell after cell."""

from synth.genetic.search import GeneticSearch

__all__ = ["GeneticSearch"]
