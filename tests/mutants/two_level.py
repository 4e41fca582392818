"""Bugs of groups of individuals."""

from tests.mutants.harness import Mutant

TWO_LEVEL = "tests/synth/privacy/test_two_level_sensitivity.py"
HOUSEHOLD = f"{TWO_LEVEL}::test_a_household_moves_what_it_is_priced_for"
ALONE = f"{TWO_LEVEL}::test_in_one_table_alone_a_household_may_own_no_row"
PERSON = f"{TWO_LEVEL}::test_a_person_moves_what_their_rows_are_priced_for"

MUTANTS = (
    Mutant(
        "groups: M is ignored where individuals are counted",
        "scrim/spec/workload/hierarchical.py",
        "    individuals = schema.max_group_size\n",
        "    individuals = 1\n",
        (f"{HOUSEHOLD}[2-3-add_remove]",),
    ),
    Mutant(
        "groups: M is ignored where groups are counted",
        "scrim/spec/workload/hierarchical.py",
        "moved = min(2 * min(schema.max_group_size, kinds), cells)",
        "moved = min(2, cells)",
        (f"{HOUSEHOLD}[2-3-replace_one]",),
    ),
    Mutant(
        "groups: whoever joins a full group displaces nobody",
        "scrim/spec/workload/hierarchical.py",
        "    if kinds > 1:\n        return _moved_by_each(protection, cells=2)",
        '    if kinds > 1 and protection.relation == "replace_one":\n'
        "        return _moved_by_each(protection, cells=2)",
        (f"{PERSON}[3-2-1-add_remove]",),
    ),
    Mutant(
        "groups: a group counts once for each of its individuals",
        "synth/queries/hierarchical_counter.py",
        "return order[is_first]",
        "return order",
        (f"{HOUSEHOLD}[2-3-add_remove]",),
    ),
    Mutant(
        "individuals of households are priced as one row",
        "scrim/spec/two_level.py",
        'fields["max_household_size"] = 1 if table == "groups" else schema.max_group_size',
        'fields["max_household_size"] = 1',
        (f"{ALONE}[individuals-add_remove]",),
    ),
    Mutant(
        "one table alone: every unit is taken to own a row there",
        "scrim/spec/population.py",
        "        return self.max_rows_per_unit\n\n\nclass Population",
        "        return super().row_count_sensitivity\n\n\nclass Population",
        (f"{ALONE}[groups-replace_one]",),
    ),
    Mutant(
        "groups: the content of a person's rows decides in which groups they stay",
        "synth/table/people.py",
        "ranks = [] if group is None else [_group_rank(chunk[group], key)]",
        "ranks: list[Words] = []",
        (f"{PERSON}[2-3-1-replace_one]",),
    ),
    Mutant(
        "one table alone: groups are released although each person is protected",
        "synth/planning/subject.py",
        'if release.table == "groups" and protection.unit == "person":',
        'if release.table == "groups" and protection.unit == "row":',
        (
            "tests/service/api/test_households.py::TestPreview"
            "::test_the_groups_of_people_are_not_released_alone",
        ),
    ),
)
