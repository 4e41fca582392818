"""Exact graphical models: distributions that are products of small tables.

Paper: McKenna, Sheldon, Miklau (2019), Graphical-model based estimation and inference for
differential privacy.
"""
