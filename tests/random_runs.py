"""Run every test that depends on chance many times, and report how often each one failed.

Run by `make test-random`. Each run is a new process, so that fixtures draw new noise too. Hypothesis
looks for new examples. Further arguments are those of pytest: files, names, another `-m`.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
CHOSEN = "(random or statistical or hypothesis) and not (slow or audit or documents or wheels or browser)"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal")
OPTIONS = ("-p", "no:cacheprovider", "--hypothesis-profile", "searching", "-m", CHOSEN)
NOTHING_FAILED, SOMETHING_FAILED = 0, 1


def run_once(arguments: list[str]) -> Iterator[tuple[str, str, bool]]:
    """Run the tests once: file and function, case, and whether it failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [*PYTEST, *OPTIONS, f"--junit-xml={report}", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode not in (NOTHING_FAILED, SOMETHING_FAILED):
            raise SystemExit(f"the tests did not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        for case in ElementTree.parse(report).iter("testcase"):
            failed = [each for each in case if each.tag in ("failure", "error")]
            name = case.get("name", "")
            for each in failed:
                print(f"FAILED {name}: {(each.get('message') or '').splitlines()[0]}", flush=True)
            function = f"{case.get('classname')}::{name.partition('[')[0]}"
            yield function, name, bool(failed)


def table(runs: Counter[tuple[str, str]], failures: Counter[tuple[str, str]]) -> Iterator[str]:
    """One line for each function, and one for each of its cases that failed."""
    functions = sorted({function for function, _ in runs})
    width = max(map(len, functions), default=0)
    yield f"{'test':{width}} {'cases':>6} {'runs':>7} {'failures':>9}"
    for function in functions:
        cases = [case for case in runs if case[0] == function]
        total, failed = (sum(each[case] for case in cases) for each in (runs, failures))
        yield f"{function:{width}} {len(cases):6} {total:7} {failed:9}"
        for case in cases:
            if failures[case] and len(cases) > 1:
                yield f"{'  ' + case[1]:{width}} {'':6} {runs[case]:7} {failures[case]:9}"


def main() -> None:
    """Repeat the tests and print the table; fail if any test ever failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    options, arguments = parser.parse_known_args()
    runs: Counter[tuple[str, str]] = Counter()
    failures: Counter[tuple[str, str]] = Counter()
    for number in range(1, options.runs + 1):
        for function, name, failed in run_once(arguments):
            runs[function, name] += 1
            failures[function, name] += failed
        print(f"run {number} of {options.runs}: {failures.total()} failures so far", flush=True)
    print("\n".join(table(runs, failures)))
    sys.exit(failures.total() > 0)


if __name__ == "__main__":
    main()
