"""Bugs of the exact curve of Gaussian noise, and of what is budgeted by it."""

from tests.mutants.harness import Mutant

CURVE = "tests/synth/planning/test_curve.py"
ACCOUNTING = "tests/synth/planning/test_accounting.py"
UNPLANNED = (
    f"{ACCOUNTING}::test_an_operation_that_is_not_planned_is_refused_before_the_rows_are_read"
)

MUTANTS = (
    Mutant(
        "exact curve: a lobe is skipped where lobes nearly touch",
        "synth/planning/curve.py",
        "ahead = centre if n * step < centre else centre + spacing",
        "ahead = centre + spacing",
        (f"{CURVE}::test_no_lobe_is_skipped_where_they_nearly_touch",),
    ),
    Mutant(
        "exact curve: replace-one counted as one coordinate",
        "synth/planning/accounting.py",
        "coordinates=sensitivity.l2_squared",
        "coordinates=1",
        (f"{ACCOUNTING}::test_what_the_worst_neighbour_moves",),
    ),
    Mutant(
        "exact curve: people with several rows counted as if each cell moved by one",
        "synth/planning/accounting.py",
        "if sensitivity.linf == 1:",
        "if sensitivity.linf >= 1:",
        (f"{ACCOUNTING}::test_units_with_several_rows_have_a_curve_only_for_single_counts",),
    ),
    Mutant(
        "exact curve: applied to a release with selections",
        "synth/planning/accounting.py",
        "    if not isinstance(planned.spending, OneShot) or planned.split.screen or schema.is_linked:\n"
        "        return None\n",
        "    if not isinstance(planned.spending, OneShot):\n"
        "        return tuple(_around(release, planned, schema, protection))\n",
        (f"{ACCOUNTING}::test_only_releases_without_selections_have_a_curve[mwem]",),
    ),
    Mutant(
        "exact curve: certify is left out of it",
        "synth/planning/accounting.py",
        "    if planned.certification is not None:\n",
        "    if False:\n",
        (f"{ACCOUNTING}::test_what_the_worst_neighbour_moves",),
    ),
    Mutant(
        "exact curve: all columns that are certified are counted as one",
        "synth/planning/accounting.py",
        "Moved(sigma, max(moved), len(moved))",
        "Moved(sigma, max(moved), 1)",
        (f"{ACCOUNTING}::test_what_the_worst_neighbour_moves",),
    ),
    Mutant(
        "exact curve: certified items are left out of it",
        "synth/planning/certification.py",
        "        for item in self.items:\n            yield",
        "        for item in ():\n            yield",
        (f"{ACCOUNTING}::test_what_the_worst_neighbour_moves",),
    ),
    Mutant(
        "certify: each item may spend what all items share",
        "synth/planning/certification.py",
        "(units - largest - for_columns) // len(items)",
        "units - largest - for_columns",
        (
            "tests/synth/planning/test_certification.py"
            "::test_the_operations_never_cost_more_than_the_whole",
        ),
    ),
    Mutant(
        "exact curve: what the sum leaves out is not added",
        "synth/planning/curve.py",
        "return found, rest + error",
        "return found, error",
        (f"{CURVE}::test_what_is_cut_off_is_added[0]",),
    ),
    Mutant(
        "exact curve: rounded down",
        "synth/planning/curve.py",
        "(found + rest) * (1 + 2**-40)",
        "(found - rest) * (1 - 2**-40)",
        (f"{CURVE}::test_never_below_the_definition_and_close_to_it",),
    ),
    Mutant(
        "exact curve: the lattice of the losses is ignored",
        "synth/planning/curve.py",
        "    nearest = -round(z.imag / spacing)\n",
        "    nearest = 0\n    spacing = 1e9\n",
        (f"{CURVE}::test_never_below_the_definition_and_close_to_it",),
    ),
    Mutant(
        "exact curve: its epsilon is not the one for which it was computed",
        "synth/planning/curve.py",
        "        else:\n            low = middle\n    return high\n",
        "        else:\n            low = middle\n    return low\n",
        (f"{CURVE}::test_the_bound_holds_at_the_stated_epsilon",),
    ),
    Mutant(
        "exact curve: a plan is accepted without its own curve",
        "synth/planning/accounting.py",
        "if not self.moves or delta_at(self.moves, epsilon) > delta * (1 - reserve):",
        "if not self.moves:",
        (f"{ACCOUNTING}::test_reserved_amounts_are_checked",),
    ),
    Mutant(
        "exact curve: another scale than the planned one is used",
        "synth/privacy/noise.py",
        "sigma = gaussian_scale(l2_squared, budget)",
        "sigma = gaussian_scale(l2_squared, budget) * (1 + 2**-30)",
        (f"{ACCOUNTING}::test_the_door_uses_the_planned_scale_and_its_price_fits",),
    ),
    Mutant(
        "exact curve: operations that are not in the plan are performed",
        "synth/privacy/accountant.py",
        "if self._planned[kind, scale] < 1:",
        "if False:",
        (UNPLANNED,),
    ),
    Mutant(
        "exact curve: a resumed job may perform its plan again",
        "synth/privacy/vault.py",
        "for operation in self._recorded:",
        "for operation in self._recorded if planned is None else ():",
        (UNPLANNED,),
    ),
    Mutant(
        "exact curve: the grids of adaptive bins are forgotten",
        "synth/planning/accounting.py",
        "measured += [(block, planned.binning.each) for block in planned.binning.blocks]",
        "measured += []",
        ("tests/synth/test_binning.py::test_grids_are_part_of_the_exact_curve",),
    ),
    Mutant(
        "exact curve: a release is not held to its plan",
        "synth/run.py",
        "planned=funded.scales,",
        "planned=None,",
        (f"{ACCOUNTING}::test_a_mechanism_is_held_to_its_plan",),
    ),
)
