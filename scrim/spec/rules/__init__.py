"""Rules: public knowledge about rows that cannot exist.

`rule` has their shapes, `axes` divides columns into the parts that rules distinguish, `rule_set` holds
the rules in these terms, and `contradiction` finds rules that no row can follow.
"""

from scrim.spec.rules.contradiction import impossible_values, refuse_contradictions
from scrim.spec.rules.rule import (
    MAX_RULES,
    Compare,
    GroupCount,
    GroupRule,
    Never,
    Rule,
    Rules,
    WhenThen,
    kept_rules,
)
from scrim.spec.rules.rule_set import RuleSet
from scrim.spec.rules.words import rule_in_words

__all__ = [
    "MAX_RULES",
    "Compare",
    "GroupCount",
    "GroupRule",
    "Never",
    "Rule",
    "RuleSet",
    "Rules",
    "WhenThen",
    "impossible_values",
    "kept_rules",
    "refuse_contradictions",
    "rule_in_words",
]
