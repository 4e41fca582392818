"""Parameters of each mechanism in the suites; by default the mechanism's own."""

from collections.abc import Mapping
from typing import Any

from scrim.spec.mechanism import MECHANISMS

Settings = dict[str, Any]

SMALL_NETWORK = {"latent": 8, "hidden": [16], "steps": 4, "learning_rate": 0.02}
_CONTRACT: dict[str, dict[str, Any]] = {
    "gaussian": {"name": "gaussian"},
    "gaussian, raw": {"name": "gaussian", "consistent": False},
    "mwem": {"name": "mwem"},
    "mwem, newest only, average": {"name": "mwem", "past_measurements": False, "output": "average"},
    "mwem, queries": {"name": "mwem", "select": "queries", "per_round": 2, "rounds": 3},
    "pep": {"name": "pep"},
    "pep, queries": {"name": "pep", "select": "queries", "per_round": 2, "rounds": 3},
    "pmw_pub": {"name": "pmw_pub"},
    "pmw_pub, newest only, average": {
        "name": "pmw_pub",
        "past_measurements": False,
        "output": "average",
    },
    "pmw_pub, queries": {"name": "pmw_pub", "select": "queries", "per_round": 2, "rounds": 3},
    "pep_pub": {"name": "pep_pub"},
    "relaxed projection": {
        "name": "relaxed_projection",
        "components": 50,
        "members": 2,
        "steps": 4,
    },
    "generative network": {
        "name": "generative_network",
        "components": 50,
        "members": 2,
        **SMALL_NETWORK,
    },
    "generative_network_pub": {
        "name": "generative_network_pub",
        "components": 50,
        "members": 2,
        **SMALL_NETWORK,
    },
    "gem": {"name": "gem", "components": 50, **SMALL_NETWORK},
    "gem, as the paper": {
        "name": "gem",
        "components": 50,
        "select": "queries",
        "per_round": 2,
        "rounds": 3,
        "loss": "absolute",
        "average": True,
        "opening_share": 0.0,
        **SMALL_NETWORK,
    },
    "gem_plus": {"name": "gem_plus", "components": 50, "rounds": 3, **SMALL_NETWORK},
    "mwem, annealed": {"name": "mwem", "schedule": "annealed", "score": "total_error"},
    "pep, annealed, queries": {
        "name": "pep",
        "schedule": "annealed",
        "score": "total_error",
        "select": "queries",
        "per_round": 2,
        "rounds": 4,
    },
    "gem_pub": {"name": "gem_pub", "components": 50, "pretraining_steps": 10, **SMALL_NETWORK},
    "pgm_em": {"name": "pgm_em"},
    "pgm_em, queries": {"name": "pgm_em", "select": "queries", "rounds": 3, "opening_share": 0.0},
    "aim": {"name": "aim"},
    "aim, queries": {"name": "aim", "select": "queries", "rounds": 3, "opening_share": 0.0},
    "rap softmax": {"name": "rap_softmax", "components": 50, "steps": 4},
    "rap": {"name": "rap", "components": 50, "steps": 4},
    "private_gsd": {"name": "private_gsd", "mode": "adaptive", "rows": 100, "generations": 50},
    "private_gsd, one shot": {
        "name": "private_gsd",
        "mode": "one_shot",
        "rows": 100,
        "generations": 50,
    },
    "private_gsd, queries": {
        "name": "private_gsd",
        "mode": "adaptive",
        "select": "queries",
        "per_round": 2,
        "rounds": 3,
        "rows": 100,
        "generations": 50,
    },
    "dual_query": {"name": "dual_query", "rounds": 4, "samples": 3},
    "fem": {"name": "fem", "rounds": 3, "per_round": 2, "samples": 2},
    "query_gan": {"name": "query_gan", "rounds": 4, "per_round": 10, "components": 20, "steps": 2},
    "query_gan, measured": {
        "name": "query_gan",
        "critic": "measured",
        "components": 20,
        "steps": 5,
    },
    "query_gan, measured queries": {
        "name": "query_gan",
        "critic": "measured",
        "select": "queries",
        "per_round": 2,
        "rounds": 3,
        "components": 20,
        "steps": 5,
    },
    "rap++": {"name": "rap_plus_plus", "rows": 50, "steps": 2, "last_temperature": 4.0},
    "h_mwem": {"name": "h_mwem", "rounds": 2, "passes": 5},
    "h_mwem, newest only, average": {
        "name": "h_mwem",
        "past_measurements": False,
        "output": "average",
        "rounds": 2,
        "passes": 5,
    },
    "h_mwem, queries": {
        "name": "h_mwem",
        "select": "queries",
        "per_round": 2,
        "rounds": 2,
        "passes": 5,
    },
    "h_gem": {"name": "h_gem", "components": 50, "rounds": 2, **SMALL_NETWORK},
    "h_gem, as the paper": {
        "name": "h_gem",
        "components": 50,
        "select": "queries",
        "per_round": 2,
        "rounds": 3,
        "loss": "absolute",
        "average": True,
        "opening_share": 0.0,
        **SMALL_NETWORK,
    },
}
"""Small parameters that still run every step; other tests check accuracy."""
_ENOUGH: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "mwem": {"rounds": 40, "passes": 2000},
    "pmw_pub": {"rounds": 40, "passes": 2000},
    "h_mwem": {"rounds": 15, "passes": 40},
    "relaxed_projection": {"steps": 1000},
    "generative_network": {"steps": 1000},
    "generative_network_pub": {"steps": 1000},
    "gem": {"rounds": 40, "steps": 100},
    "gem_pub": {"rounds": 40, "steps": 100, "pretraining_steps": 50},
    "gem_plus": {"rounds": 40, "steps": 40},
    "h_gem": {"rounds": 15, "steps": 100},
    "rap": {"rounds": 40, "steps": 50},
    "rap_softmax": {"rounds": 40, "steps": 50},
    "rap_plus_plus": {"rounds": 5, "steps": 100, "learning_rate": 0.02, "last_temperature": 256.0},
    # The resolution of 100 rows is 0.01.
    "private_gsd": {"rounds": 40, "rows": 1000, "generations": 10_000},
    "dual_query": {"rounds": 120, "samples": 20},
    # Its error falls with the square root of the number of records: 1,010 here, as by default.
    "fem": {"rounds": 100, "per_round": 1, "samples": 10},
    "query_gan": {"rounds": 150, "learning_rate": 5.0},
}
"""Rounds and steps with which a mechanism comes close to the truth."""

# Nearly all of the budget in one measurement, which shows a privacy bug most clearly.
ONE_ROUND = {"rounds": 1, "components": 1, "opening_share": 0.0, "selection_share": 0.05}
TINY_NETWORK = {"latent": 1, "hidden": [], "steps": 1}
_AUDITED: dict[str, dict[str, Any]] = {
    "gaussian": {"name": "gaussian"},
    "mwem": {"name": "mwem", "rounds": 1, "passes": 2},
    "pep": {"name": "pep", "rounds": 1, "passes": 2},
    "pmw_pub": {"name": "pmw_pub", "rounds": 1, "passes": 2},
    # With a tolerance it would ignore most measurements.
    "pep_pub": {
        "name": "pep_pub",
        "rounds": 1,
        "passes": 2,
        "tolerance": 0.0,
        "selection_share": 0.05,
    },
    "gem": {"name": "gem", **ONE_ROUND, **TINY_NETWORK},
    "gem_plus": {"name": "gem_plus", **ONE_ROUND, **TINY_NETWORK},
    "rap": {"name": "rap", **ONE_ROUND, "steps": 1},
    "rap_softmax": {"name": "rap_softmax", **ONE_ROUND, "steps": 1},
    "relaxed_projection": {"name": "relaxed_projection", "components": 1, "steps": 1},
    "gem_pub": {
        "name": "gem_pub",
        "pretraining_steps": 1,
        **ONE_ROUND,
        **TINY_NETWORK,
        "learning_rate": 0.1,
    },
    "generative_network": {"name": "generative_network", "components": 1, **TINY_NETWORK},
    "generative_network_pub": {
        "name": "generative_network_pub",
        "components": 1,
        "members": 1,
        **TINY_NETWORK,
    },
    "pgm_em": {"name": "pgm_em", "rounds": 1, "opening_share": 0.0, "selection_share": 0.05},
    "aim": {"name": "aim", "rounds": 1, "opening_share": 0.0, "selection_share": 0.05},
    "private_gsd": {
        "name": "private_gsd",
        "mode": "one_shot",
        "rows": 20,
        "mutations": 10,
        "crossovers": 0,
        "elites": 1,
        "generations": 10,
    },
    "rap_plus_plus": {
        "name": "rap_plus_plus",
        "rounds": 1,
        "per_round": 1,
        "opening_share": 0.0,
        "selection_share": 0.05,
        "rows": 5,
        "steps": 3,
        "learning_rate": 0.5,
        "first_temperature": 2.0,
        "last_temperature": 2.0,
    },
    # The first round's draw is free; all of the budget goes into the one of the second.
    "dual_query": {"name": "dual_query", "rounds": 2, "samples": 1},
    "fem": {"name": "fem", "rounds": 1, "samples": 2, "perturbation": 0.01},
    "query_gan": {
        "name": "query_gan",
        "rounds": 2,
        "per_round": 1,
        "components": 1,
        "steps": 1,
    },
    "h_mwem": {
        "name": "h_mwem",
        "rounds": 1,
        "passes": 2,
        "opening_share": 0.0,
        "selection_share": 0.05,
    },
    "h_gem": {"name": "h_gem", **ONE_ROUND, **TINY_NETWORK},
}


def _with_defaults(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    """Add every mechanism of the catalogue that is not among these."""
    named = {each["name"] for each in settings.values()}
    names = [mechanism.catalogue_name() for mechanism in MECHANISMS]
    return {**settings, **{name: {"name": name} for name in names if name not in named}}


CONTRACT = _with_defaults(_CONTRACT)
"""What the contract suite runs."""
AUDITED = _with_defaults(_AUDITED)
"""What the audit runs."""


def settings_near_the_truth(mechanism: Settings) -> Settings:
    """Settings with which a mechanism comes close to the truth; by default forty rounds."""
    (spec,) = (each for each in MECHANISMS if each.catalogue_name() == mechanism["name"])
    rounds = {"rounds": 40} if "rounds" in spec.model_fields else {}
    return mechanism | _ENOUGH.get(mechanism["name"], rounds)
