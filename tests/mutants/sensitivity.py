"""Bugs in bounds on the influence of one unit: sensitivities, scores, certified errors, mixtures."""

from tests.mutants.harness import Mutant

SENSITIVITY = "tests/synth/privacy/test_sensitivity.py"
MIXTURE = "tests/synth/privacy/test_mixture.py"
OPERATION = f"{SENSITIVITY}::test_no_neighbour_moves_an_operation_by_more_than_its_price_covers"
DECLARED = f"{SENSITIVITY}::test_declared_sensitivities_are_attained"
PART = (
    "tests/synth/privacy/test_part_sensitivity.py"
    "::test_no_neighbour_moves_a_part_by_more_than_its_price_covers"
)
MIXED = f"{MIXTURE}::test_no_neighbour_moves_it_by_more_than_its_price_covers"

GRID = (
    "tests/synth/privacy/test_grid_sensitivity.py"
    "::test_no_neighbour_moves_a_grid_by_more_than_its_price_covers"
)

MUTANTS = (
    Mutant(
        "the levels of a grid are priced as one",
        "scrim/spec/workload/grid.py",
        ".stacked(levels)",
        ".stacked(1)",
        (f"{GRID}[100-row-add_remove]",),
    ),
    Mutant(
        "the number of rows a unit may own is ignored",
        "scrim/spec/population.py",
        "return self.max_rows_per_person or self.max_household_size or 1",
        "return 1",
        (f"{DECLARED}[a-person-add_remove]",),
    ),
    Mutant(
        "replace-one priced as add/remove",
        "scrim/spec/sensitivity.py",
        'moved = 2 if protection.relation == "replace_one" else 1',
        "moved = 1",
        (f"{DECLARED}[a-row-replace_one]",),
    ),
    Mutant(
        "the number of rows treated as public",
        "scrim/spec/population.py",
        'return rows - 1 if self.relation == "replace_one" else rows',
        "return 0",
        (f"{OPERATION}[rows-row-add_remove]",),
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
        (f"{SENSITIVITY}::test_numbers_on_the_edges_of_a_tree_are_in_one_cell_of_each_level",),
    ),
    Mutant(
        "the levels of a tree are not stacked",
        "scrim/spec/workload/binary_tree.py",
        "of_partition(CELLS_OF_A_TABLE, protection).stacked(self.table_count(schema))",
        "of_partition(CELLS_OF_A_TABLE, protection)",
        (f"{OPERATION}[measure a tree-row-add_remove]",),
    ),
    Mutant(
        "a part priced as a whole marginal",
        "synth/queries/marginal_part.py",
        "return of_part(self.sizes, protection)",
        "return Sensitivity(*[protection.max_rows_per_unit ** n for n in (1, 2, 1)])",
        (f"{PART}[part(a,b)-row]",),
    ),
    Mutant(
        "a part priced without the factor size",
        "scrim/spec/sensitivity.py",
        "math.prod(size * (size - 1) for size in sizes)",
        "math.prod(size - 1 for size in sizes)",
        (f"{PART}[part(b)-row]",),
    ),
    Mutant(
        "a part priced for the cell of the row alone",
        "scrim/spec/sensitivity.py",
        "math.prod(size * (size - 1) for size in sizes)",
        "math.prod((size - 1) ** 2 for size in sizes)",
        (f"{PART}[part(a,b)-row]",),
    ),
    Mutant(
        "a part priced for one row of a person",
        "scrim/spec/sensitivity.py",
        "l2_squared=rows**2 * math.prod(size",
        "l2_squared=math.prod(size",
        (f"{PART}[part(a)-person]",),
    ),
    Mutant(
        "parts are measured under replace-one at the price of add/remove",
        "scrim/spec/sensitivity.py",
        'if protection.relation != "add_remove":',
        "if False:",
        (
            "tests/synth/privacy/test_part_sensitivity.py"
            "::test_replace_one_is_refused_before_the_rows_are_read",
        ),
    ),
    Mutant(
        "predicates are not stacked",
        "scrim/spec/sensitivity.py",
        "l2_squared=count * rows**2",
        "l2_squared=rows**2",
        (DECLARED,),
    ),
    Mutant(
        "a total error priced as a largest one",
        "synth/privacy/vault.py",
        "l1 = [moved.l1 for moved in",
        "l1 = [moved.linf for moved in",
        (f"{OPERATION}[select a marginal by total error-row-replace_one]",),
    ),
    Mutant(
        "the weight of a total error is not paid for",
        "synth/privacy/vault.py",
        "max(abs(int(w)) * d for w, d in",
        "max(d for w, d in",
        (f"{OPERATION}[select a marginal by total error-row-add_remove]",),
    ),
    Mutant(
        "(t-1) dropped from the sensitivity of a hedge draw",
        "synth/privacy/vault.py",
        "noise.gumbel_draws(past * linf * FIXED_POINT",
        "noise.gumbel_draws(linf * FIXED_POINT",
        (f"{OPERATION}[hedge-row-add_remove]",),
    ),
    Mutant(
        "certify forgets the factor N",
        "synth/privacy/vault.py",
        "(released_rows * each) ** 2",
        "each**2",
        (f"{OPERATION}[certify-row-add_remove]",),
    ),
    Mutant(
        "approximate best mixture: multiplicative weights, stopped early",
        "synth/privacy/mixture.py",
        "    while search.is_open:\n",
        "    search._steps = 50\n    search.play()\n    while False:\n",
        (f"{MIXTURE}::test_it_lies_within_the_gap_below_the_dense_program",),
    ),
    Mutant(
        "the gap of the best mixture is not paid for",
        "synth/privacy/vault.py",
        "noise.gaussian((linf * FIXED_POINT + GAP) ** 2",
        "noise.gaussian((linf * FIXED_POINT) ** 2",
        (f"{MIXED}[row-replace_one]",),
    ),
    Mutant(
        "certify is priced by its first block",
        "synth/privacy/vault.py",
        "[max(each.linf for each in found)]",
        "[found[0].linf]",
        (f"{OPERATION}[certify unlike blocks-person-replace_one]",),
    ),
    Mutant(
        "certify: a total is priced by one of its blocks",
        "synth/privacy/vault.py",
        "[sum(each.l1 for each in found)]",
        "[max(each.l1 for each in found)]",
        (f"{OPERATION}[certify a total of two marginals-row-add_remove]",),
    ),
    Mutant(
        "certify: a total is priced as if one error of a block could grow",
        "synth/privacy/vault.py",
        "[sum(each.l1 for each in found)]",
        "[sum(each.linf for each in found)]",
        (f"{OPERATION}[certify a total-row-replace_one]",),
    ),
    Mutant(
        "certify: a total is priced for a unit of one row",
        "synth/privacy/vault.py",
        "[sum(each.l1 for each in found)]",
        "[sum(each.l1 // self.protection.max_rows_per_unit for each in found)]",
        (f"{OPERATION}[certify a total-person-add_remove]",),
    ),
    Mutant(
        "certify: the totals of columns are not stacked",
        "synth/privacy/vault.py",
        "noise.gaussian(sum((released_rows * each) ** 2 for each in moved)",
        "noise.gaussian(max((released_rows * each) ** 2 for each in moved)",
        (f"{OPERATION}[certify the totals of columns-row-add_remove]",),
    ),
    Mutant(
        "certify: products of rows overflow",
        "synth/privacy/vault.py",
        "np.minimum(self._true_all(queries), 2**62 // released_rows)",
        "self._true_all(queries)",
        ("tests/synth/privacy/test_vault.py::test_certified_errors_beyond_reason_do_not_overflow",),
    ),
    Mutant(
        "hedge draws are priced by the least sensitive block",
        "synth/privacy/vault.py",
        """        linf = max(block.sensitivity(self.protection).linf for block in queries.blocks)

        def true_scores""",
        """        linf = min(block.sensitivity(self.protection).linf for block in queries.blocks)

        def true_scores""",
        (f"{OPERATION}[hedge over unlike blocks-person-replace_one]",),
    ),
    Mutant(
        "a selection is priced by the least sensitive block",
        "synth/privacy/vault.py",
        "return common, largest",
        "return min(d for d in linf if d), largest",
        (f"{OPERATION}[select among unlike blocks-household-replace_one]",),
    ),
    Mutant(
        "the best mixture is priced by its first block",
        "synth/privacy/vault.py",
        """        linf = max(block.sensitivity(self.protection).linf for block in queries.blocks)

        def true_error() -> Counts:
            true_counts""",
        """        linf = queries.blocks[0].sensitivity(self.protection).linf

        def true_error() -> Counts:
            true_counts""",
        (f"{MIXED}[row-replace_one]",),
    ),
    Mutant(
        "the best mixture stops while its bounds are four gaps apart",
        "synth/privacy/mixture.py",
        "return self.upper - self.lower >= GAP",
        "return self.upper - self.lower >= 4 * GAP",
        (f"{MIXTURE}::test_nothing_ends_the_search_but_the_gap",),
    ),
    Mutant(
        "the weights of a mixture do not sum to the number of rows",
        "synth/privacy/mixture.py",
        "        whole[whole.argmax()] += total - whole.sum()\n",
        "",
        (f"{MIXTURE}::test_weights_sum_to_the_number_of_rows",),
    ),
    Mutant(
        "a score of blocks of unlike sensitivity overflows",
        "synth/privacy/vault.py",
        "np.minimum(true_errors, np.repeat(2**62 // factor, sizes))",
        "true_errors",
        (
            "tests/synth/privacy/test_vault.py::test_the_largest_error_of_unequal_blocks_does_not_overflow",
        ),
    ),
)
