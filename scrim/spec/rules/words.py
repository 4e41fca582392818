"""Rules in words, for people who review a schema."""

from collections.abc import Mapping

from scrim.spec.rules.rule import Compare, Condition, GroupRule, Never, Rule, Value

MOST_NAMED = 5
"""Most values of a list that are named."""


def rule_in_words(rule: Rule) -> str:
    """A rule as one sentence."""
    match rule:
        case Compare():
            return f"{' '.join(rule.compare)}."
        case Never():
            return f"Never: {_all(rule.never)}."
        case GroupRule():
            return f"In every group {_number(rule)} with {_all(rule.group.where)}."
    return f"When {_all(rule.when)}, then {_all(rule.then)}."


def _number(rule: GroupRule) -> str:
    asked = rule.group
    if asked.exactly is not None:
        return f"exactly {asked.exactly}"
    bounds = [("at least", asked.at_least), ("at most", asked.at_most)]
    return " and ".join(f"{word} {number}" for word, number in bounds if number is not None)


def _all(conditions: Mapping[str, Condition]) -> str:
    return " and ".join(f"{name} {_one(each)}" for name, each in conditions.items())


def _one(condition: Condition) -> str:
    if isinstance(condition, list):
        return f"is {_listed(condition)}"
    if condition.min is None and condition.max is None:
        return "is missing" if condition.missing else "is known"
    bounds = [("at least", condition.min), ("at most", condition.max)]
    words = " and ".join(f"{word} {number}" for word, number in bounds if number is not None)
    return f"is {words}{' or missing' if condition.missing else ''}"


def _listed(values: list[Value]) -> str:
    named = ["missing" if value is None else str(value) for value in values[:MOST_NAMED]]
    more = len(values) - len(named)
    return " or ".join([*named, *([f"one of {more} others"] if more else [])])
