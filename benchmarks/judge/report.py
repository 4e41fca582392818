"""Tables of what was measured with one state of the code, for the terminal and the documentation."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.tables import Figures
from benchmarks.judge.outcomes import Judgements
from benchmarks.judge.sets import JUDGING, TUNED, JudgedSet
from benchmarks.judge.summary import MEASURES, Runs, collect_runs
from benchmarks.judge.targets import against_the_best, check_targets

INTRODUCTION = """# Releases on tables of tuning and on tables that only judge

What `make bench-judge` measured. Rules and defaults of Scrim were made on the tables of the first part.
The tables of the second part were not used for that: they show what to expect of other data.

Four fifths of a table's rows are released: the mechanism's defaults, replace-one neighbours, delta 1/n²,
and n synthetic rows, where n is the number of released rows. Every error is against these rows. The
tables are public ([where to get them](../data.md)). A figure is the mean over some runs, ± one standard
error.

- *rows*, *answers*: errors of the synthetic rows and of the model's answers, over all asked cells, as
  fractions of n.
- *TV*: total variation distance between synthetic and true rows, over the pairs of columns that are asked
  about together (at most 2,000 of them).
- *rare*: median relative error of categories with at least 10 rows and less than 0.5% of them.
- *AUC*: of gradient-boosted trees that learnt from the synthetic rows, divided by the AUC if they learn
  from the true rows. Both are tested on the other fifth of the rows, and see the columns that are asked
  about together with their target.
- *processor s*: of the whole job, summed over its threads. *peak MiB*: of the process, with the table and
  the true answers in it.

```sh
make bench-judge
make bench-judge SETS="adult nltcs" EPSILONS=1 RUNS=1
```

An interrupted measurement can be continued. Only lines of one state of the code are shown.
"""
PARTS = (
    ("Tables that rules were tuned on", TUNED),
    ("Tables that only judge", JUDGING),
)


def write_report(
    judgements: Judgements, folder: Path, *, code: str | None, others: int, times: Figures | None
) -> None:
    """Print all tables, and write judge.md."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = [INTRODUCTION, _state(judgements, code, others)]
    for title, sets in PARTS:
        sections += _part(title, sets, collect_runs(judgements, sets))
    if times is not None:
        times.show("Small jobs")
        sections += ["## Small jobs", times.in_markdown()]
    (folder / "judge.md").write_text(
        "\n\n".join(section.strip("\n") for section in sections) + "\n"
    )


def _state(judgements: Judgements, code: str | None, others: int) -> str:
    """Which code ran, and what is left out."""
    if code is None:
        return "Nothing was measured so far."
    commits = ", ".join(dict.fromkeys(each.commit for each in judgements.values()))
    state = f"Measured at commit {commits} (fingerprint of the code: {code}). Releases: {len(judgements)}."
    left_out = f" {others} lines of other states of the code are left out." if others else ""
    print(f"\n{state}{left_out}")
    return state + left_out


def _part(title: str, sets: Sequence[JudgedSet], all_runs: list[Runs]) -> list[str]:
    """The targets, `auto` beside the best mechanism, and all figures of each table."""
    if not all_runs:
        return [f"## {title}", "Nothing was measured so far."]
    verdicts = [str(verdict) for verdict in check_targets(all_runs)]
    print(f"\n{title}", *verdicts, sep="\n- ")
    parts = [f"## {title}", "\n".join(f"- {verdict}" for verdict in verdicts)]
    best = against_the_best(all_runs)
    if best.rows:
        best.show(title)
        parts.append(best.in_markdown())
    for each in sets:
        found = [runs for runs in all_runs if runs.table == each.name]
        if found:
            table = figures_of(found)
            table.show(f"{each.title} ({each.name})")
            parts += [f"### {each.title}", _size(each, found), table.in_markdown()]
    return parts


def _size(judged: JudgedSet, found: Sequence[Runs]) -> str:
    first = found[0].found[0]
    return (
        f"{first.rows:,} of {first.table_rows:,} rows, {first.queries:,} queries. Target of the classifier: "
        f"`{judged.target.column}`, with an AUC of {first.true_auc:.3f} from true rows. `--set {judged.name}`"
    )


def figures_of(found: Sequence[Runs]) -> Figures:
    """Every measure of every mechanism of one table."""
    return Figures(
        "all measures",
        ["", "epsilon", *MEASURES, "runs"],
        [
            [
                runs.name,
                f"{runs.epsilon:g}",
                *(_cell(runs.estimate(measure)) for measure in MEASURES.values()),
                len(runs.found),
            ]
            for runs in found
        ],
    )


def _cell(estimate: object | None) -> object:
    return "–" if estimate is None else estimate
