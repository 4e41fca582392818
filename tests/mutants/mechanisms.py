"""Bugs of mechanisms, of how they divide a budget, and of the door's order of steps."""

from tests.mutants.harness import Mutant

MECHANISMS = "tests/synth/test_mechanism_contract.py"
VAULT = "tests/synth/privacy/test_vault.py"
REPLAY = "tests/synth/privacy/test_replay.py"
EMPTY = f"{REPLAY}::test_nor_does_it_show_that_a_table_is_empty"
BINNING = "tests/synth/test_binning.py"
PLAN = "tests/synth/planning/test_plan.py"
GAMES = "tests/synth/mechanisms/test_games.py"

MUTANTS = (
    Mutant(
        "k is not counted in the division of the budget",
        "synth/planning/rounds.py",
        "// (pace.rounds * pace.per_round)",
        "// pace.rounds",
        (f"{PLAN}::test_every_operation_of_a_job_fits_into_its_budget",),
    ),
    Mutant(
        "stacking ignored: every marginal gets the whole budget",
        "synth/planning/one_shot.py",
        "part * units // whole for part",
        "part * units for part",
        (
            f"{MECHANISMS}::test_spends_at_most_its_budget_and_nearly_all_of_it[gaussian-row-add_remove]",
        ),
    ),
    Mutant(
        "the number of synthetic rows taken from the data",
        "synth/run.py",
        "drawn = model.sample(release.synthetic_rows, seed)",
        "drawn = model.sample(sum(len(next(iter(c.values()))) for c in table.chunks()), seed)",
        (f"{REPLAY}::test_the_same_draws_give_the_same_release[mwem-row-add_remove]",),
    ),
    Mutant(
        "annealed rounds forget what the others have spent",
        "synth/mechanisms/schedule.py",
        "return self._end - self._door.used",
        "return self._end",
        ("tests/synth/mechanisms/test_schedule.py::test_everything_reserved_is_spent_and_no_more",),
    ),
    Mutant(
        "(t-1) dropped from the division of a game's budget",
        "synth/planning/draws.py",
        "units // (per_round * max(1, squares_below(rounds)))",
        "units // (per_round * rounds)",
        (f"{GAMES}::test_every_draw_costs_what_was_planned_whatever_number_of_rows_was_measured",),
    ),
    Mutant(
        "the draws of a round are not counted in the division of a game's budget",
        "synth/planning/draws.py",
        "units // (per_round * max(1, squares_below(rounds)))",
        "units // max(1, squares_below(rounds))",
        (f"{GAMES}::test_every_draw_costs_what_was_planned_whatever_number_of_rows_was_measured",),
    ),
    Mutant(
        "a generator learns from the truth",
        "synth/mechanisms/query_gan.py",
        "        past_answers += player.learn_from_draws(critics, drawn=job.plan.per_round)\n",
        "        true = job.candidates.count(job.door._table)  # type: ignore[attr-defined]\n"
        "        critics = {q: w for q, w in critics.items() if true[q] > 0}\n"
        "        past_answers += player.learn_from_draws(critics, drawn=job.plan.per_round)\n",
        (f"{MECHANISMS}::test_never_touches_rows_outside_the_door[query_gan]",),
    ),
    Mutant(
        "a certified error is passed on to other rows",
        "synth/privacy/vault.py",
        'asked = f"{certified} of {queries.size} queries answered as {digest}"',
        'asked = f"{certified} of {queries.size} queries"',
        (f"{MECHANISMS}::test_a_certified_error_is_not_passed_on_to_other_rows",),
    ),
    Mutant(
        "screening is not set aside from the budget",
        "synth/planning/plan.py",
        "mechanism = units - row_count - bins - screen - certify",
        "mechanism = units - row_count - bins - certify",
        ("tests/synth/test_screen.py::test_a_share_that_buys_nothing_is_refused",),
    ),
    Mutant(
        "sampling anew on resume",
        "synth/privacy/vault.py",
        "if self._recorded:\n            done = self._recorded.popleft()",
        "if False:\n            done = self._recorded.popleft()",
        (f"{VAULT}::test_replay_returns_the_recorded_outcomes_without_touching_or_charging",),
    ),
    Mutant(
        "an outcome is used although its commit failed",
        "synth/privacy/vault.py",
        "        self._journal.commit(done)\n",
        "        import contextlib\n"
        "        with contextlib.suppress(ConnectionError):\n"
        "            self._journal.commit(done)\n",
        (f"{MECHANISMS}::test_an_uncommitted_outcome_is_never_used[mwem]",),
    ),
    Mutant(
        "a charged operation is refunded",
        "synth/privacy/accountant.py",
        "if units < 0 or self._spent + units > self._budget:",
        "if self._spent + units > self._budget:",
        (f"{VAULT}::test_the_accountant_refuses_refunds_and_overdrafts",),
    ),
    Mutant(
        "the budget is not enforced",
        "synth/privacy/accountant.py",
        "if units < 0 or self._spent + units > self._budget:",
        "if units < 0:",
        (f"{VAULT}::test_the_accountant_refuses_refunds_and_overdrafts",),
    ),
    Mutant(
        "a true error decides when to stop",
        "synth/mechanisms/adaptive.py",
        "        learner.update(measurements, newest)\n",
        "        learner.update(measurements, newest)\n"
        "        true = job.candidates.count(job.door._table)  # type: ignore[attr-defined]\n"
        "        if abs(job.rows * learner.answer(job.candidates) - true).max() < 1:\n"
        "            break\n",
        (f"{MECHANISMS}::test_never_touches_rows_outside_the_door[mwem]",),
    ),
    Mutant(
        "values outside the schema dropped instead of mapped",
        "synth/table/steps.py",
        "kinds = kinds_in(numbers, len(self.column.apart))\n        whole = np.rint(",
        "numbers = numbers[~((numbers < lower) | (numbers > upper))]\n"
        "        kinds = kinds_in(numbers, len(self.column.apart))\n        whole = np.rint(",
        ("tests/synth/table/test_encoding.py",),
    ),
    Mutant(
        "groups: their number is taken for public",
        "synth/fitting.py",
        "counted = door.measure(groups, budget=budget)",
        "counted = door.measure(groups, budget=10**18)",
        (
            f"{MECHANISMS}::test_spends_at_most_its_budget_and_nearly_all_of_it[h_mwem-household-add_remove]",
        ),
    ),
    Mutant(
        "nothing is set aside for the edges of bins",
        "synth/planning/plan.py",
        "units - row_count - bins - screen - certify",
        "units - row_count - screen - certify",
        (f"{BINNING}::test_edges_are_paid_for",),
    ),
    Mutant(
        "edges of bins are placed from counts outside the budget",
        "synth/binning.py",
        "door.measure(grid, budget=planned.binning.each)",
        "door.measure(grid, budget=10**9 * planned.binning.each)",
        (f"{BINNING}::test_edges_are_paid_for",),
    ),
    Mutant(
        "the number of bins follows from the data",
        "synth/binning.py",
        "    while len(starts) < number:\n",
        "    while len(starts) < min(number, int((masses > 0).sum())):\n",
        (f"{BINNING}::test_the_number_of_codes_does_not_depend_on_the_data",),
    ),
    Mutant(
        "a certificate tells how many chunks there are",
        "synth/run.py",
        "    notes: dict[str, float] = {}\n",
        '    notes: dict[str, float] = {"chunks": sum(1 for _ in table.chunks())}\n',
        (f"{EMPTY}[mwem]",),
    ),
    Mutant(
        "progress tells how long the search for a best mixture takes",
        "synth/run.py",
        "budget=fitting.planned.split.screen,\n            check=check,",
        "budget=fitting.planned.split.screen,\n            check=lambda: progress(0, 1),",
        tuple(f"{EMPTY}[{name}_pub, screened]" for name in ("pmw", "pep", "gem")),
    ),
)
