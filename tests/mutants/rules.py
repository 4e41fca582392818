"""Bugs of rules: private rows that are not mapped, or mapped because of others."""

from tests.mutants.harness import Mutant

MAP = "tests/synth/privacy/test_rule_map.py"

MUTANTS = (
    Mutant(
        "rules: private rows are not mapped before they are counted",
        "synth/run.py",
        "table = following_rules(table).project(funded.plan.schema)",
        "table = table.project(funded.plan.schema)",
        (f"{MAP}::test_a_release_counts_mapped_rows",),
    ),
    Mutant(
        "rules: the map leaves forbidden rows as they are",
        "synth/rules/reading.py",
        "        return self._rows.with_numbers(chunk, rows, numbers)\n",
        "        return self._rows.with_numbers(chunk, rows[:0], {})\n",
        (f"{MAP}::test_no_unit_moves_the_count_of_a_forbidden_cell",),
    ),
    Mutant(
        "rules: a row is mapped only if another one breaks a rule as well",
        "synth/rules/reading.py",
        "        if not len(rows):\n            return chunk\n        numbers",
        "        if len(rows) < 2:\n            return chunk\n        numbers",
        (
            f"{MAP}::test_mapped_rows_move_counts_by_no_more_than_they_are_priced_for"
            "[row-add_remove]",
        ),
    ),
    Mutant(
        "rules: only individuals that break a rule have the columns of their group mapped",
        "synth/rules/reading.py",
        "        chunk = self._rows.rounded(chunk)\n        if self._repair.shared:\n"
        "            # In all rows: whether an individual breaks a rule must not move the columns of its "
        "group.\n"
        "            every = np.arange(len(next(iter(chunk.values()))))",
        "        if self._repair.shared:\n            every = self._rows.broken(chunk).nonzero()[0]",
        (f"{MAP}::test_no_individual_moves_the_columns_of_its_group[own0]",),
    ),
    Mutant(
        "rules: the columns of a group follow its individuals",
        "synth/rules/repair.py",
        "self._change(table.names, table.table, numbers, choice, locked=self.shared)",
        "self._change(table.names, table.table, numbers, choice, locked=())",
        (f"{MAP}::test_all_rows_of_a_group_get_the_same_columns_of_the_group",),
    ),
)
