"""The results of a study, saved as one line of JSON per case, so that it can be continued."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.comparison.code import fingerprint
from benchmarks.comparison.tables import Figures

Case = Mapping[str, Any]
"""The parameters that identify one measurement of a study."""
Found = Mapping[str, Any]


@dataclass(frozen=True)
class Findings:
    """The lines of one study in a file that several share."""

    path: Path
    study: str

    def read(self) -> list[tuple[Case, Found]]:
        """Read all results so far, in the order of the file; of two lines about a case, the later."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        parsed = [json.loads(line) for line in lines]
        found = {
            _key(p["case"]): (p["case"], p["found"]) for p in parsed if p["study"] == self.study
        }
        return list(found.values())

    def append(self, case: Case, found: Found, *, code: str) -> None:
        """Add one line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"study": self.study, "case": case, "found": found, "code": code}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


@dataclass(frozen=True)
class Study:
    """How the results of a study are shown."""

    name: str
    title: str
    about: str
    tables: Callable[[Findings], list[Figures]]
    plot: Callable[[Findings, Path], None] | None = None


def measure_cases(
    findings: Findings,
    cases: Iterable[Case],
    measure: Callable[[Case], Found],
    *,
    again: bool = False,
) -> None:
    """Measure every case without a line in the file; with `again`, all cases."""
    code = fingerprint()
    done = set() if again else {_key(case) for case, _ in findings.read()}
    left = [case for case in cases if _key(case) not in done]
    for number, case in enumerate(left, start=1):
        found = measure(case)
        findings.append(case, found, code=code)
        print(f"{findings.study} {number}/{len(left)}: {_text(case)}: {_text(found)}", flush=True)


def _key(case: Case) -> str:
    return json.dumps(case, sort_keys=True)


def _text(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in fields.items())


def _short(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_short(each) for each in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)
