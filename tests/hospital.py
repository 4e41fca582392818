"""A hospital table as people have them: 60 columns of every kind, with messy missing values."""

import csv
import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

ICD = [
    f"{letter}{number:02}.{digit}" for letter in "CEIJKM" for number in range(8) for digit in (0, 9)
]
MUNICIPALITIES = [f"{state:02}{district:02}{town:03}" for state in range(1, 9) for district in range(1, 4)
                  for town in (1, 12)]  # fmt: skip
WORDS = [
    "patient",
    "reports",
    "pain",
    "since",
    "monday",
    "no",
    "fever",
    "cough",
    "improved",
    "after",
    "rest",
    "sent",
    "home",
]
FLAGS = {
    "smoker": ("yes", "no"),
    "diabetes": ("Y", "N"),
    "hypertension": ("TRUE", "FALSE"),
    "allergy": ("1", "0"),
    "insured": ("ja", "nein"),
    "readmitted": ("true", "false"),
    "icu": ("y", "n"),
    "ventilated": ("Yes", "No"),
}
CHOICES = {
    "sex": ["F", "M"],
    "ward": ["surgery", "medicine", "children", "cardiology", "none"],
    "insurer": ["public", "private", "self"],
    "admission_type": ["routine", "urgent", "emergency"],
    "discharge_to": ["home", "rehab", "nursing home", "other hospital"],
    "blood_group": ["A+", "A-", "B+", "0+", "0-", "AB+"],
    "language": ["de", "fr", "it", "en"],
    "marital": ["single", "married", "divorced", "widowed"],
    "severity": ["mild", "moderate", "severe"],
    "age_band": ["<18", "18-39", "40-64", "65+"],
    "pain": ["none", "low", "medium", "high"],
    "payment": ["cash", "card", "transfer"],
}
IDENTIFIERS = ["patient_id", "case_id", "insurance_nr"]
DATES = ["birth_date", "admission_date", "discharge_date", "surgery_date", "last_visit"]
CODES = ["icd_main", "icd_secondary", "municipality"]
FREE_TEXT = ["complaint", "discharge_note"]
LABS = [f"lab_{number:02}" for number in range(1, 17)]
MEASURED = [
    *(
        "age",
        "systolic",
        "diastolic",
        "heart_rate",
        "temperature",
        "weight",
        "height",
        "bmi",
        "cost",
    ),
    *("copay", "length_of_stay"),
]
COLUMNS = [*IDENTIFIERS, *DATES, *CODES, *FREE_TEXT, *FLAGS, *CHOICES, *MEASURED, *LABS]
MISSING = {
    "systolic": "99999",
    "diastolic": "N/A",
    "heart_rate": "?",
    "temperature": ".",
    "weight": "999",
    "birth_date": "?",
    "surgery_date": "N/A",
    "cost": "NA",
    "smoker": "N/A",
    "insurer": "?",
    "pain": "-",
}
"""One of the spellings of missing in each of these columns."""


def write_hospital(path: Path, rows: int, *, seed: int) -> Path:
    """Write the table as CSV; the same seed gives the same rows."""
    chance = random.Random(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number in range(rows):
            row = _row(chance, number)
            writer.writerow([_messy(chance, name, row[name]) for name in COLUMNS])
    return path


def _messy(chance: random.Random, name: str, cell: object) -> object:
    if name not in MISSING:
        return cell
    return chance.choices([cell, MISSING[name], ""], [94, 4, 2])[0]


def _row(chance: random.Random, number: int) -> dict[str, object]:
    born = date(1930, 1, 1) + timedelta(days=chance.randrange(85 * 365))
    admitted = date(2023, 1, 1) + timedelta(days=chance.randrange(720))
    stay = min(round(chance.expovariate(0.25)), 60)
    left = admitted + timedelta(days=stay)
    height, weight = chance.gauss(171, 10), chance.gauss(76, 13)
    hour, minute = chance.randrange(24), chance.randrange(60)
    return {
        "patient_id": f"P{chance.randrange(10**7):07}",
        "case_id": number + 1,
        "insurance_nr": f"{chance.randrange(10**9):010}",
        "birth_date": f"{born:%d.%m.%Y}",
        "admission_date": admitted.isoformat(),
        "discharge_date": left.isoformat(),
        "surgery_date": f"{admitted:%m/%d/%Y}",
        "last_visit": f"{admitted.isoformat()}T{hour:02}:{minute:02}",
        "icd_main": chance.choice(ICD),
        "icd_secondary": chance.choice(ICD),
        "municipality": chance.choice(MUNICIPALITIES),
        "complaint": " ".join(chance.choices(WORDS, k=9)),
        "discharge_note": " ".join(chance.choices(WORDS, k=14)),
        **{name: chance.choice(spellings) for name, spellings in FLAGS.items()},
        **{name: chance.choice(values) for name, values in CHOICES.items()},
        "age": 2023 - born.year,
        "systolic": round(chance.gauss(130, 18)),
        "diastolic": round(chance.gauss(80, 11)),
        "heart_rate": round(chance.gauss(74, 11)),
        "temperature": round(chance.gauss(37, 0.6), 1),
        "weight": round(weight, 1),
        "height": round(height),
        "bmi": round(weight / (height / 100) ** 2, 1),
        "cost": round(chance.lognormvariate(8, 1), 2),
        "copay": chance.choice([0, 0, 0, 10, 20]),
        "length_of_stay": stay,
        **{name: round(_lab(place)(chance), 2) for place, name in enumerate(LABS)},
    }


def _lab(place: int) -> Callable[[random.Random], float]:
    """Normal, skewed or even numbers, in turn."""
    kinds: list[Callable[[random.Random], float]] = [
        lambda chance: abs(chance.gauss(5, 1)),
        lambda chance: chance.lognormvariate(1, 0.8),
        lambda chance: chance.uniform(0, 50),
    ]
    return kinds[place % 3]
