"""Bugs of the noise and of what it costs."""

from tests.mutants.harness import Mutant

NOISE = "tests/synth/privacy/test_noise.py"
GAMES = "tests/synth/mechanisms/test_games.py"

MUTANTS = (
    Mutant(
        "the selector's price forgets k",
        "synth/privacy/noise.py",
        "return Sampler(scale, k * price, release)",
        "return Sampler(scale, price, release)",
        (f"{NOISE}::test_the_price_of_the_selector_is_that_of_scores_that_move_further",),
    ),
    Mutant(
        "D instead of D squared",
        "synth/privacy/noise.py",
        "math.nextafter(math.sqrt(l2_squared), math.inf)",
        "math.nextafter(l2_squared**0.25, math.inf)",
        (f"{NOISE}::test_calibrated_noise_fits_its_budget_tightly",),
    ),
    Mutant(
        "sigma divided by the square root of 2",
        "synth/privacy/noise.py",
        "_units(measurement.map(sensitivity)), lambda c: _array(measurement(c))",
        "_units(measurement.map(sensitivity)),\n            lambda c: _array("
        'make_gaussian(_VECTOR, l2_distance(T="f64"), sigma / 2**0.5)(c))',
        (f"{NOISE}::test_discrete_gaussian_conforms[4.0]",),
    ),
    Mutant(
        "b divided by 2",
        "synth/privacy/noise.py",
        "        draw, price = _exponential(linf, scale)\n\n        def release",
        "        price, draw = _exponential(linf, scale)[1], _exponential(linf, scale / 2)[0]\n\n"
        "        def release",
        (f"{NOISE}::test_selector_conforms[scores1-1]",),
    ),
    Mutant(
        "absolute errors priced as if they were monotone",
        "synth/privacy/noise.py",
        'measurement = make_noisy_max(_VECTOR, linf_distance(T="i64"), _ZCDP, scale)',
        "measurement = make_noisy_max("
        '_VECTOR, linf_distance(T="i64", monotonic=True), _ZCDP, scale)',
        (f"{NOISE}::test_the_price_of_the_selector_is_that_of_scores_that_move_further",),
    ),
    Mutant(
        "the draws of a round are priced as one",
        "synth/privacy/noise.py",
        "return Sampler(scale, draws * price, lambda scores: draw(scores, draws))",
        "return Sampler(scale, price, lambda scores: draw(scores, draws))",
        (f"{GAMES}::test_every_draw_costs_what_was_planned_whatever_number_of_rows_was_measured",),
    ),
    Mutant(
        "the rounding of copied scores is not paid for",
        "synth/privacy/noise.py",
        "COPIES = 2\n",
        "COPIES = 0\n",
        (f"{NOISE}::test_price_of_draws_covers_their_divergence_on_all_neighbours",),
    ),
    Mutant(
        "copies weigh more than their candidate",
        "synth/privacy/noise.py",
        "np.repeat(scores - np.array(lower, np.int64)[doublings], 1 << doublings)",
        "np.repeat(scores, 1 << doublings)",
        (f"{NOISE}::test_copies_stand_for_their_candidates",),
    ),
    Mutant(
        "hedge draws with a larger rate than they are priced for",
        "synth/privacy/noise.py",
        "        return candidates[[measurement(copied) for _ in range(draws)]]\n",
        "        sharper = make_noisy_max(_VECTOR, linf_distance(T='i64'), _ZCDP, scale / 2)\n"
        "        return candidates[[sharper(copied) for _ in range(draws)]]\n",
        (f"{NOISE}::test_independent_draws_conform[4]",),
    ),
    Mutant(
        "prices rounded to the nearest unit instead of up",
        "synth/privacy/noise.py",
        "return math.ceil(Fraction(rho) * UNITS_PER_RHO)",
        "return round(Fraction(rho) * UNITS_PER_RHO)",
        (f"{NOISE}::test_prices_are_rounded_up",),
    ),
)
