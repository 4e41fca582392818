"""Genetic search: find rows whose counts are close to measured ones by changing one cell at a time."""

from synth.genetic.search import GeneticSearch

__all__ = ["GeneticSearch"]
