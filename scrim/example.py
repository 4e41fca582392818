"""A public, fictional table of hospital admissions, drawn from a fixed seed."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROWS = 20_000
"""Enough for useful results at epsilon 1, and few enough for a demo of a minute."""
EXAMPLE_SEED = 2026
"""Any fixed number: every call then writes the same table."""

SCHEMA: dict[str, Any] = {
    "columns": [
        {
            "name": "age",
            "type": "integer",
            "lower": 0,
            "upper": 99,
            "bins": {"edges": [0, 18, 45, 65, 99]},
            "nullable": False,
        },
        {
            "name": "sex",
            "type": "categorical",
            "values": ["female", "male"],
            "other": "female",
            "nullable": False,
        },
        {
            "name": "region",
            "type": "categorical",
            "values": ["coast", "city", "hills"],
            "other": "city",
            "nullable": False,
        },
        {
            "name": "insurance",
            "type": "categorical",
            "values": ["public", "private", "none"],
            "other": "none",
            "nullable": False,
        },
        {
            "name": "smoker",
            "type": "categorical",
            "values": ["no", "yes"],
            "other": "no",
            "nullable": False,
        },
        {
            "name": "bmi",
            "type": "real",
            "lower": 14.0,
            "upper": 50.0,
            "decimals": 1,
            "bins": {"edges": [14.0, 25.0, 30.0, 50.0]},
            "nullable": False,
        },
        {
            "name": "admission",
            "type": "categorical",
            "values": ["emergency", "planned"],
            "other": "emergency",
            "nullable": False,
        },
        {
            "name": "diagnosis",
            "type": "categorical",
            "values": ["heart", "lung", "injury", "other"],
            "other": "other",
            "nullable": False,
        },
        {
            "name": "severity",
            "type": "categorical",
            "values": ["mild", "moderate", "severe"],
            "other": "moderate",
            "nullable": False,
        },
        {
            "name": "days_in_hospital",
            "type": "integer",
            "lower": 1,
            "upper": 60,
            "bins": {"edges": [1, 4, 10, 60]},
            "nullable": False,
        },
        {
            "name": "cost",
            "type": "real",
            "lower": 0.0,
            "upper": 80_000.0,
            "decimals": 2,
            "bins": {"edges": [0.0, 2_500.0, 8_000.0, 80_000.0]},
            "nullable": False,
        },
        {
            "name": "intensive_care",
            "type": "categorical",
            "values": ["no", "yes"],
            "other": "no",
            "nullable": False,
        },
        {
            "name": "readmitted",
            "type": "categorical",
            "values": ["no", "yes"],
            "other": "no",
            "nullable": False,
        },
    ]
}
"""Declared without looking at rows: 373,248 combinations of codes in total."""

EXAMPLE_COLUMNS = [column["name"] for column in SCHEMA["columns"]]

QUESTIONS = [
    ["age", "sex", "region"],
    ["age", "region", "insurance"],
    ["age", "sex", "smoker"],
    ["age", "smoker", "bmi"],
    ["admission", "diagnosis", "severity"],
    ["age", "smoker", "diagnosis"],
    ["bmi", "diagnosis"],
    ["sex", "diagnosis", "severity"],
    ["age", "diagnosis", "severity"],
    ["diagnosis", "severity", "days_in_hospital"],
    ["admission", "days_in_hospital", "cost"],
    ["insurance", "cost"],
    ["severity", "cost", "intensive_care"],
    ["severity", "days_in_hospital", "intensive_care"],
    ["age", "severity", "readmitted"],
    ["insurance", "readmitted"],
]
"""The cross tables that the release is asked to keep; together they name every column."""


def write_example(path: Path) -> None:
    """Write the table as CSV; every call writes the same bytes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, EXAMPLE_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(admissions())


def admissions() -> Iterator[dict[str, Any]]:
    """The rows, in no particular order."""
    rng = random.Random(EXAMPLE_SEED)
    for _ in range(ROWS):
        yield _admission(rng)


def _admission(rng: random.Random) -> dict[str, Any]:
    person = _person(rng)
    diagnosis = _diagnosis(rng, person)
    planned = diagnosis != "injury" and _happens(rng, 0.15 + 0.35 * (diagnosis == "other"))
    severity = _severity(rng, person["age"], diagnosis, planned=planned)
    weight = {"mild": 0, "moderate": 1, "severe": 2}[severity]
    intensive_care = _happens(rng, (0.01, 0.06, 0.38)[weight])
    days = 1 + rng.expovariate(1 / (1.2 + 2.6 * weight + 0.04 * person["age"]))
    days += 5 * intensive_care
    cost = rng.lognormvariate(6.6, 0.45) + 420 * days + 2_600 * weight + 9_500 * intensive_care
    cost *= 1.25 if person["insurance"] == "private" else 1.0
    risk = 0.04 + 0.06 * weight + 0.05 * (person["age"] >= 65)
    risk += 0.08 * (person["insurance"] == "none") + 0.03 * (person["smoker"] == "yes")
    return person | {
        "admission": "planned" if planned else "emergency",
        "diagnosis": diagnosis,
        "severity": severity,
        "days_in_hospital": min(60, int(days)),
        "cost": round(min(80_000.0, cost), 2),
        "intensive_care": _yes_or_no(intensive_care),
        "readmitted": _yes_or_no(_happens(rng, risk)),
    }


def _person(rng: random.Random) -> dict[str, Any]:
    """A person who comes to the hospital: more often old than young."""
    age = min(99, int(rng.betavariate(2.2, 1.6) * 100))
    sex = rng.choice(("female", "male"))
    region = rng.choices(("coast", "city", "hills"), (0.3, 0.5, 0.2))[0]
    chances = (0.72, 0.22, 0.06) if age >= 65 or age < 18 else (0.45, 0.37, 0.18)
    if region == "city":
        chances = (chances[0] - 0.1, chances[1] + 0.1, chances[2])
    smokes = age >= 18 and _happens(rng, 0.31 if sex == "male" else 0.21)
    bmi = rng.gauss(21.0 if age < 18 else 25.0 + 0.05 * age - 1.2 * smokes, 4.2)
    return {
        "age": age,
        "sex": sex,
        "region": region,
        "insurance": rng.choices(("public", "private", "none"), chances)[0],
        "smoker": _yes_or_no(smokes),
        "bmi": round(min(50.0, max(14.0, bmi)), 1),
    }


def _diagnosis(rng: random.Random, person: dict[str, Any]) -> str:
    age, smokes, heavy = person["age"], person["smoker"] == "yes", person["bmi"] >= 30
    weights = {
        "heart": 0.02 + 0.005 * age + 0.12 * smokes + 0.14 * heavy,
        "lung": 0.10 + 0.001 * age + 0.26 * smokes,
        "injury": 0.45 if age < 45 else 0.14,
        "other": 0.30,
    }
    return rng.choices(list(weights), list(weights.values()))[0]


def _severity(rng: random.Random, age: int, diagnosis: str, *, planned: bool) -> str:
    burden = 0.006 * age + {"heart": 0.35, "lung": 0.2, "injury": 0.05, "other": 0.0}[diagnosis]
    burden -= 0.25 * planned
    severe = min(0.7, max(0.03, 0.45 * burden))
    moderate = min(0.9 - severe, max(0.1, 0.25 + 0.3 * burden))
    return rng.choices(("severe", "moderate", "mild"), (severe, moderate, 1 - severe - moderate))[0]


def _happens(rng: random.Random, chance: float) -> bool:
    return rng.random() < chance


def _yes_or_no(answer: bool) -> str:
    return "yes" if answer else "no"
