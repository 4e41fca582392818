"""T10: plant known privacy bugs in a copy of the code, one by one. Each must fail at least one test.

Run by `make mutants`. A mutant that survives means that the tests would not notice that bug.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Mutant:
    """One bug: what it breaks, the text it replaces, and the tests that should notice."""

    bug: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


NOISE = "tests/synth/privacy/test_noise.py"
SENSITIVITY = "tests/synth/privacy/test_sensitivity.py"
TWO_LEVEL = "tests/synth/privacy/test_two_level_sensitivity.py"
MECHANISMS = "tests/synth/test_mechanism_contract.py"
MIXTURE = "tests/synth/privacy/test_mixture.py"
SCHEDULE = "tests/synth/mechanisms/test_schedule.py"
PLAN = "tests/synth/spec/test_plan.py"
GAMES = "tests/synth/mechanisms/test_games.py"
LEDGER = "tests/service/ledger/test_repository.py"
ANALYSTS = "tests/service/api/test_analysts.py"

MUTANTS = (
    Mutant(
        "k is not counted in the division of the budget",
        "synth/spec/mechanism/adaptive.py",
        "// (rounds * per_round)",
        "// rounds",
        (MECHANISMS, PLAN),
    ),
    Mutant(
        "the selector's price forgets k",
        "synth/privacy/noise.py",
        "_ZCDP, k, scale)\n        return Sampler(scale, _units(measurement.map(linf)),",
        "_ZCDP, k, scale)\n        return Sampler(scale, _units(measurement.map(linf) / k),",
        (NOISE,),
    ),
    Mutant(
        "D instead of D squared",
        "synth/privacy/noise.py",
        "math.nextafter(math.sqrt(l2_squared), math.inf)",
        "math.nextafter(l2_squared**0.25, math.inf)",
        (NOISE,),
    ),
    Mutant(
        "sigma divided by the square root of 2",
        "synth/privacy/noise.py",
        "_units(measurement.map(sensitivity)), lambda c: _array(measurement(c))",
        "_units(measurement.map(sensitivity)),\n            lambda c: _array("
        'dp.m.make_gaussian(_VECTOR, dp.l2_distance(T="f64"), sigma / 2**0.5)(c))',
        (NOISE,),
    ),
    Mutant(
        "b divided by 2",
        "synth/privacy/noise.py",
        "return Sampler(scale, _units(measurement.map(linf)), lambda c: _array(measurement(c)))",
        "return Sampler(scale, _units(measurement.map(linf)), lambda c: _array("
        'dp.m.make_noisy_top_k(_VECTOR, dp.linf_distance(T="i64"), _ZCDP, k, scale / 2)(c)))',
        (NOISE,),
    ),
    Mutant(
        "absolute errors priced as if they were monotone",
        "synth/privacy/noise.py",
        'measurement = dp.m.make_noisy_top_k(_VECTOR, dp.linf_distance(T="i64"), _ZCDP, k, scale)',
        "measurement = dp.m.make_noisy_top_k("
        '_VECTOR, dp.linf_distance(T="i64", monotonic=True), _ZCDP, k, scale)',
        (NOISE,),
    ),
    Mutant(
        "stacking ignored: every marginal gets the whole budget",
        "synth/spec/mechanism/base.py",
        "math.floor(weight / whole * units)",
        "math.floor(weight * units)",
        (MECHANISMS, PLAN),
    ),
    Mutant(
        "the number of rows a unit may own is ignored",
        "synth/spec/population.py",
        "return self.max_rows_per_person or self.max_household_size or 1",
        "return 1",
        (SENSITIVITY, "tests/synth/spec"),
    ),
    Mutant(
        "replace-one priced as add/remove",
        "synth/spec/sensitivity.py",
        'moved = 2 if protection.relation == "replace_one" else 1',
        "moved = 1",
        (SENSITIVITY,),
    ),
    Mutant(
        "the number of rows treated as public",
        "synth/spec/population.py",
        'return self.rows - 1 if self.relation == "replace_one" else self.rows',
        "return 0",
        (SENSITIVITY,),
    ),
    Mutant(
        "the number of synthetic rows taken from the data",
        "synth/run.py",
        "rows = model.sample(release.rows, seed)",
        "rows = model.sample(sum(len(next(iter(c.values()))) for c in table.chunks()), seed)",
        (MECHANISMS,),
    ),
    Mutant(
        "dyadic cells closed on both sides",
        "synth/queries/binary_tree.py",
        "        self._finest.add({r.name: r.codes(columns[r.column]) for r in self._plan.readings})\n",
        "        codes = {r.name: r.codes(columns[r.column]) for r in self._plan.readings}\n"
        "        self._finest.add(codes)\n"
        "        for r in self._plan.readings:\n"
        "            on_edge = np.isin(columns[r.column], (r.edges or ())[1:-1])\n"
        "            closed = {**codes, r.name: codes[r.name] - 1}\n"
        "            self._finest.add({name: column[on_edge] for name, column in closed.items()})\n",
        (SENSITIVITY,),
    ),
    Mutant(
        "the levels of a tree are not stacked",
        "synth/spec/workload/binary_tree.py",
        "of_partition(CELLS_OF_A_TABLE, protection).stacked(tables)",
        "of_partition(CELLS_OF_A_TABLE, protection)",
        (SENSITIVITY,),
    ),
    Mutant(
        "predicates are not stacked",
        "synth/spec/sensitivity.py",
        "l2_squared=count * rows**2",
        "l2_squared=rows**2",
        (SENSITIVITY,),
    ),
    Mutant(
        "a total error priced as a largest one",
        "synth/privacy/vault.py",
        "l1 = [moved.l1 for moved in",
        "l1 = [moved.linf for moved in",
        (SENSITIVITY,),
    ),
    Mutant(
        "the weight of a total error is not paid for",
        "synth/privacy/vault.py",
        "max(abs(int(w)) * d for w, d in",
        "max(d for w, d in",
        (SENSITIVITY,),
    ),
    Mutant(
        "annealed rounds forget what the others have spent",
        "synth/mechanisms/schedule.py",
        "return self._end - self._door.used",
        "return self._end",
        (SCHEDULE,),
    ),
    Mutant(
        "(t-1) dropped from the sensitivity of a hedge draw",
        "synth/privacy/vault.py",
        "noise.gumbel_draws(past * linf * FIXED_POINT",
        "noise.gumbel_draws(linf * FIXED_POINT",
        (SENSITIVITY, GAMES),
    ),
    Mutant(
        "(t-1) dropped from the division of a game's budget",
        "synth/spec/mechanism/game.py",
        "units // (per_round * max(1, squares_below(rounds)))",
        "units // (per_round * rounds)",
        (GAMES,),
    ),
    Mutant(
        "the draws of a round are not counted in the division of a game's budget",
        "synth/spec/mechanism/game.py",
        "units // (per_round * max(1, squares_below(rounds)))",
        "units // max(1, squares_below(rounds))",
        (GAMES,),
    ),
    Mutant(
        "the draws of a round are priced as one",
        "synth/privacy/noise.py",
        "price = draws * _units(measurement.map(linf + COPIES if linf else 0))",
        "price = _units(measurement.map(linf + COPIES if linf else 0))",
        (GAMES,),
    ),
    Mutant(
        "the rounding of copied scores is not paid for",
        "synth/privacy/noise.py",
        "COPIES = 2\n",
        "COPIES = 0\n",
        (NOISE,),
    ),
    Mutant(
        "copies weigh more than their candidate",
        "synth/privacy/noise.py",
        "np.repeat(scores - np.array(lower, np.int64)[doublings], 1 << doublings)",
        "np.repeat(scores, 1 << doublings)",
        (NOISE,),
    ),
    Mutant(
        "hedge draws with a larger rate than they are priced for",
        "synth/privacy/noise.py",
        "        return candidates[[measurement(copied) for _ in range(draws)]]\n",
        "        sharper = dp.m.make_noisy_max(_VECTOR, dp.linf_distance(T='i64'), _ZCDP, scale / 2)\n"
        "        return candidates[[sharper(copied) for _ in range(draws)]]\n",
        (NOISE,),
    ),
    Mutant(
        "a generator learns from the truth",
        "synth/mechanisms/query_gan.py",
        "        past_answers += player.learn_from_draws(critics)\n",
        "        true = job.candidates.count(job.door._table)  # type: ignore[attr-defined]\n"
        "        critics = {q: w for q, w in critics.items() if true[q] > 0}\n"
        "        past_answers += player.learn_from_draws(critics)\n",
        (MECHANISMS,),
    ),
    Mutant(
        "certify forgets the factor N",
        "synth/privacy/vault.py",
        "noise.gaussian((released_rows * linf) ** 2",
        "noise.gaussian(linf**2",
        (SENSITIVITY,),
    ),
    Mutant(
        "a certified error is passed on to other rows",
        "synth/privacy/vault.py",
        'asked = f"{queries.size} queries answered as {answers}"',
        'asked = f"{queries.size} queries"',
        (MECHANISMS,),
    ),
    Mutant(
        "approximate best mixture: multiplicative weights, stopped early",
        "synth/privacy/mixture.py",
        "    while search.is_open:\n",
        "    search._steps = 50\n    search.play()\n    while False:\n",
        (MIXTURE,),
    ),
    Mutant(
        "the gap of the best mixture is not paid for",
        "synth/privacy/vault.py",
        "noise.gaussian((linf * FIXED_POINT + GAP) ** 2",
        "noise.gaussian((linf * FIXED_POINT) ** 2",
        (MIXTURE,),
    ),
    Mutant(
        "screening is not set aside from the budget",
        "synth/spec/plan.py",
        "mechanism = units - row_count - screen - certify",
        "mechanism = units - row_count - certify",
        ("tests/synth/test_screen.py",),
    ),
    Mutant(
        "sampling anew on resume",
        "synth/privacy/vault.py",
        "if self._recorded:\n            done = self._recorded.popleft()",
        "if False:\n            done = self._recorded.popleft()",
        (MECHANISMS,),
    ),
    Mutant(
        "an outcome is used although its commit failed",
        "synth/privacy/vault.py",
        "        self._journal.commit(done)\n",
        "        import contextlib\n"
        "        with contextlib.suppress(ConnectionError):\n"
        "            self._journal.commit(done)\n",
        (MECHANISMS,),
    ),
    Mutant(
        "a charged operation is refunded",
        "synth/privacy/accountant.py",
        "if units < 0 or self._spent + units > self._budget:",
        "if self._spent + units > self._budget:",
        ("tests/synth/privacy/test_vault.py",),
    ),
    Mutant(
        "the budget is not enforced",
        "synth/privacy/accountant.py",
        "if units < 0 or self._spent + units > self._budget:",
        "if units < 0:",
        ("tests/synth/privacy/test_vault.py",),
    ),
    Mutant(
        "prices rounded to the nearest unit instead of up",
        "synth/privacy/noise.py",
        "return math.ceil(Fraction(rho) * UNITS_PER_RHO)",
        "return round(Fraction(rho) * UNITS_PER_RHO)",
        (NOISE,),
    ),
    Mutant(
        "a true error decides when to stop",
        "synth/mechanisms/adaptive.py",
        "        learner.update(measurements, newest)\n",
        "        learner.update(measurements, newest)\n"
        "        true = job.candidates.count(job.door._table)  # type: ignore[attr-defined]\n"
        "        if abs(job.rows * learner.answer(job.candidates) - true).max() < 1:\n"
        "            break\n",
        (MECHANISMS,),
    ),
    Mutant(
        "values outside the schema dropped instead of mapped",
        "synth/table/encoding.py",
        "missing = np.isnan(numbers)\n        whole = np.rint(",
        "numbers = numbers[~((numbers < lower) | (numbers > upper))]\n"
        "        missing = np.isnan(numbers)\n        whole = np.rint(",
        ("tests/synth/table",),
    ),
    Mutant(
        "groups: M is ignored where individuals are counted",
        "synth/spec/workload/hierarchical.py",
        "    individuals = schema.max_group_size\n",
        "    individuals = 1\n",
        (TWO_LEVEL,),
    ),
    Mutant(
        "groups: M is ignored where groups are counted",
        "synth/spec/workload/hierarchical.py",
        "moved = min(2 * min(schema.max_group_size, kinds), cells)",
        "moved = min(2, cells)",
        (TWO_LEVEL,),
    ),
    Mutant(
        "groups: whoever joins a full group displaces nobody",
        "synth/spec/workload/hierarchical.py",
        "    if kinds > 1:\n        return _moved_by_each(protection, cells=2)",
        '    if kinds > 1 and protection.relation == "replace_one":\n'
        "        return _moved_by_each(protection, cells=2)",
        (TWO_LEVEL,),
    ),
    Mutant(
        "groups: a group counts once for each of its individuals",
        "synth/queries/hierarchical_counter.py",
        "return order[is_first]",
        "return order",
        (TWO_LEVEL,),
    ),
    Mutant(
        "groups: their number is taken for public",
        "synth/run.py",
        "counted = door.measure(groups, budget=budget)",
        "counted = door.measure(groups, budget=10**18)",
        (MECHANISMS,),
    ),
    Mutant(
        "reopening a reservation passes the cap",
        "migrations/sql/0006_resume/1_ledger.sql",
        "released := OLD.spent_units - OLD.amount_units;",
        "released := 0;",
        (LEDGER,),
    ),
    Mutant(
        "a worker from before the closing can commit after a reopening",
        "migrations/sql/0006_resume/1_ledger.sql",
        "lease_epoch = target.lease_epoch + 1,",
        "lease_epoch = target.lease_epoch,",
        (LEDGER,),
    ),
    Mutant(
        "a certificate promises what was spent, not what was reserved",
        "synth/run.py",
        "reserved=units,",
        "reserved=vault.spent,",
        ("tests/synth/test_run.py",),
    ),
    Mutant(
        "others than curators see the present balance",
        "service/populations/service.py",
        "ledger.account_at(session, row.id, as_of), as_of=as_of",
        "ledger.account(session, row.id), as_of=as_of",
        (ANALYSTS,),
    ),
    Mutant(
        "the balance of a midnight has what was charged since",
        "service/ledger/repository.py",
        "a.spent_units - later.charged AS spent_units",
        "a.spent_units AS spent_units",
        ("tests/service/ledger/test_repository.py",),
    ),
    Mutant(
        "analysts follow every event",
        "service/releases/endpoints.py",
        "if not caller.is_curator:\n        return events.final_event",
        "if caller.scopes == {None}:\n        return events.final_event",
        (ANALYSTS,),
    ),
    Mutant(
        "the only event of an analyst tells how long the job was",
        "service/releases/events.py",
        'content = _written(FINAL_ID, "state",',
        'content = _written(release.progress_done, "state",',
        (ANALYSTS,),
    ),
    Mutant(
        "certificates hold hashes of the ledger, which cover times",
        "worker/certificate.py",
        "payload ->> 'digest' AS digest",
        "encode(hash, 'hex') AS digest",
        ("tests/worker/test_releases.py::test_certificate",),
    ),
    Mutant(
        "the report shows the account when the budget was reserved",
        "worker/report/balance.py",
        "day_of(reserved_at)).spent_units",
        "reserved_at).spent_units",
        ("tests/worker/report/test_artifact.py",),
    ),
    Mutant(
        "the value of a failed screen is seen before it is anchored",
        "worker/releases.py",
        "attempt.context.advance_anchor()\n            ending",
        "ending",
        ("tests/worker/test_public_data.py",),
    ),
    Mutant(
        "every curator sees why a dataset was rejected",
        "service/datasets/service.py",
        "dataset.created_by == caller.key_id",
        "caller.is_curator",
        ("tests/service/api/test_datasets.py",),
    ),
)


def survives(mutant: Mutant) -> bool:
    """Whether all tests pass in spite of the bug."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("client", "migrations", "service", "synth", "tests", "worker"):
            shutil.copytree(ROOT / name, copy / name)
        shutil.copy(ROOT / "pyproject.toml", copy)
        source = copy / mutant.file
        text = source.read_text()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.bug}: the text to replace is not there exactly once")
        source.write_text(text.replace(mutant.old, mutant.new))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            *mutant.tests,
        ]
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(
                f"{mutant.bug}: the tests did not run\n{done.stdout[-2000:]}{done.stderr}"
            )
        if done.returncode == 1:
            failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
            print(f"caught    {mutant.bug}: {failed[0][7:110] if failed else ''}", flush=True)
        return done.returncode == 0


def main() -> None:
    """Try every mutant and report those that no test caught."""
    wanted = sys.argv[1:]
    chosen = [m for m in MUTANTS if not wanted or any(word in m.bug for word in wanted)]
    survivors = [mutant for mutant in chosen if survives(mutant)]
    for mutant in survivors:
        print(f"SURVIVED  {mutant.bug}")
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
