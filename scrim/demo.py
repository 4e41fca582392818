"""`scrim demo`: from a fictional hospital table to certified synthetic data, on an embedded stack."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from scrim.client import Client
from scrim.comparison import ComparedShare, read_answers, read_rows, table_with
from scrim.display import output
from scrim.errors import DamagedDownload
from scrim.example import EXAMPLE_COLUMNS, QUESTIONS, ROWS, SCHEMA, write_example
from scrim.records import Answer, Dataset, Release
from scrim.stack import LocalStack
from scrim.verify import Report, verify

DELTA = 1e-9
"""Far below one over the number of rows of the example."""
CAP_EPSILON = 10.0
"""The cap of the population of the demo: several more releases fit."""
EPSILON = 1.0
"""The budget of the one release of the demo."""
FILES = ("synthetic.csv", "answers.csv", "report.html", "certificate.json")

COMPARED_SHARES = (
    ComparedShare("readmitted, of severe cases", {"severity": "severe"}, {"readmitted": "yes"}),
    ComparedShare("readmitted, of mild cases", {"severity": "mild"}, {"readmitted": "yes"}),
    ComparedShare("readmitted, of the uninsured", {"insurance": "none"}, {"readmitted": "yes"}),
    ComparedShare(
        "in intensive care, of severe cases", {"severity": "severe"}, {"intensive_care": "yes"}
    ),
    ComparedShare(
        "with lung disease, of smokers aged 45 to 64",
        {"age": "[45, 65)", "smoker": "yes"},
        {"diagnosis": "lung"},
    ),
)
UNPLANNED = ComparedShare(
    "smokers, of the severe cases (asked afterwards)", {"severity": "severe"}, {"smoker": "yes"}
)
"""A query outside the workload, which the released model can answer."""


def run_demo(
    folder: Path, *, data_dir: Path | None = None, console: Console | None = None
) -> Release:
    """Run the demo, from a table to verified files in `folder`."""
    console = console or output()
    with _kept_or_temporary(data_dir) as home:
        console.print("Starting Postgres, Valkey, workers and the service ...")
        with LocalStack(home) as stack:
            _tick(console, f"The service runs at {stack.url}, without root, Docker or other setup")
            keys = _make_keys(stack)
            with Client(stack.url, keys["curator"]) as curator:
                dataset = _upload(console, curator, keys["population"])
                release = _release(console, curator, dataset)
            with Client(stack.url, keys["analyst"]) as analyst:
                analyst.releases.download(release.id, folder, names=FILES)
                _tick(console, f"As the analyst, downloaded {', '.join(FILES)} to {folder}")
                afterwards = analyst.releases.answers(
                    release.id, [{"type": "marginals", "attributes": [UNPLANNED.columns]}]
                )
            report = _verify(console, folder, stack.public_key())
            _compare(console, folder, afterwards)
            _explain(console, report)
        _tick(console, "The service is stopped")
    _say_what_next(console, folder, data_dir)
    return release


def release_body(dataset_id: str) -> dict[str, Any]:
    """The request of the demo: rows, answers, and a certified bound on their error."""
    return {
        "dataset_id": dataset_id,
        "workload": [{"type": "marginals", "attributes": QUESTIONS}],
        "mechanism": {"name": "pep", "passes": 6},
        "budget": {"epsilon": EPSILON},
        "outputs": {"rows": ROWS, "formats": ["csv"], "answers": True, "certify": {"share": 0.05}},
        "publish": True,
    }


@contextmanager
def _kept_or_temporary(data_dir: Path | None) -> Iterator[Path]:
    if data_dir is not None:
        yield data_dir
        return
    with tempfile.TemporaryDirectory(prefix="scrim-demo-") as folder:
        yield Path(folder) / "data"


def _make_keys(stack: LocalStack) -> dict[str, str]:
    """As the admin, create the population, a curator key and an analyst key."""
    with Client(stack.url, stack.admin_key()) as admin:
        population = admin.populations.create(
            "patients of a fictional hospital", cap={"epsilon": CAP_EPSILON}, delta=DELTA
        )
        keys = {
            scope: admin.keys.create(f"demo {scope}", [scope]) for scope in ("curator", "analyst")
        }
    return {"population": population.id} | {scope: key.key or "" for scope, key in keys.items()}


def _upload(console: Console, curator: Client, population_id: str) -> Dataset:
    with tempfile.TemporaryDirectory(prefix="scrim-demo-") as folder:
        table = Path(folder) / "admissions.csv"
        write_example(table)
        dataset = curator.datasets.upload(
            table, schema=SCHEMA, population=population_id, name="admissions"
        )
    columns = len(EXAMPLE_COLUMNS)
    _tick(console, f"As the curator, uploaded {ROWS:,} fictional rows of {columns} columns")
    return dataset


def _release(console: Console, curator: Client, dataset: Dataset) -> Release:
    body = release_body(dataset.id)
    preview = curator.releases.preview(body)
    _tick(
        console,
        f"The preview says: {preview.queries} queries for epsilon {preview.epsilon:.3g} at delta "
        f"{DELTA:g}, a mean error of about {preview.expected.mean_absolute_rows:.1f} rows",
    )
    release = curator.releases.submit(body).wait()
    _tick(console, f"Released, for {release.rho_spent:.4g} rho")
    return release


def _verify(console: Console, folder: Path, public_key: str) -> Report:
    files = [folder / name for name in FILES]
    report = verify(folder / "certificate.json", files, public_key=public_key)
    if not report.ok:
        faults = "; ".join(f"{c.subject}: {c.finding}" for c in report.checks if not c.ok)
        raise DamagedDownload(f"the downloaded files do not verify: {faults}")
    _tick(console, "The certificate's signature and the files' digests are right")
    return report


def _compare(console: Console, folder: Path, afterwards: Sequence[Answer]) -> None:
    """Show the same shares from answers and from rows. No true value is used."""
    tables, rows = read_answers(folder / "answers.csv"), read_rows(folder / "synthetic.csv")
    shown = [(share, table_with(share.columns, tables)) for share in COMPARED_SHARES]
    table = Table(title="What was released", title_justify="left")
    table.add_column("share of rows")
    table.add_column("noisy answers", justify="right")
    table.add_column("synthetic rows", justify="right")
    for share, answers in [*shown, (UNPLANNED, afterwards)]:
        numbers = (share.of_answers(answers), share.of_rows(rows))
        table.add_row(share.text, *map(_percent, numbers))
    console.print(table)


def _explain(console: Console, report: Report) -> None:
    summary = (report.certificate or {}).get("summary")
    if summary:
        console.print(f"Certified: {escape(summary)}", soft_wrap=True)


def _say_what_next(console: Console, folder: Path, data_dir: Path | None) -> None:
    names = " ".join(str(folder / name) for name in ("certificate.json", *FILES[:3]))
    # A command that the reader can type: the environment's folder may not be on the path.
    scrim = "scrim" if shutil.which("scrim") else str(Path(sys.executable).with_name("scrim"))
    again = f"{scrim} up --data-dir {data_dir}" if data_dir else f"{scrim} up"
    lines = (
        "Next:",
        f"  open {folder / 'report.html'} in a browser, then look at what it cost: "
        f"{folder / 'certificate.json'}",
        f"  change a byte somewhere, and see: {scrim} verify {names}",
        f"  start a service of your own: {again}",
    )
    for line in lines:
        console.print(escape(line), soft_wrap=True)


def _tick(console: Console, text: str) -> None:
    console.print(f"[green]✓[/] {escape(text)}", soft_wrap=True)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
