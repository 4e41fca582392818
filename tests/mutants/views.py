"""Bugs in outputs: what analysts see, and what certificates and reports contain."""

from tests.mutants.harness import Mutant

ANALYSTS = "tests/service/api/test_analysts.py"
FINAL_EVENT = (f"{ANALYSTS}::test_analysts_get_the_final_event_alone",)

MUTANTS = (
    Mutant(
        "a certificate promises what was spent, not what was reserved",
        "synth/certificate.py",
        '"rho_reserved": rho_of_units(funded.units),',
        '"rho_reserved": rho_of_units(spent),',
        ("tests/synth/test_run.py::test_the_certificate_says_what_was_done",),
    ),
    Mutant(
        "others than curators see the present balance",
        "service/populations/service.py",
        "account = ledger.account_at(session, population.id, as_of)",
        "account = population.account",
        (f"{ANALYSTS}::test_others_than_curators_see_the_balance_of_the_last_midnight",),
    ),
    Mutant(
        "the balance of a midnight has what was charged since",
        "service/data/ledger/repository.py",
        "a.spent_units - total.charged - under_way.charged AS bigint",
        "a.spent_units - under_way.charged AS bigint",
        ("tests/service/ledger/test_repository.py::test_balance_at_every_moment_of_the_past",),
    ),
    Mutant(
        "analysts follow every event",
        "service/releases/endpoints.py",
        "if not caller.is_curator:\n        return events.final_event",
        "if caller.scopes == {None}:\n        return events.final_event",
        FINAL_EVENT,
    ),
    Mutant(
        "the only event of an analyst tells how long the job was",
        "service/releases/events.py",
        'content = _written(FINAL_ID, "state",',
        'content = _written(release.progress_done, "state",',
        FINAL_EVENT,
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
        ("tests/worker/report/test_artifact.py::test_the_balance_is_that_of_the_midnight_before",),
    ),
    Mutant(
        "the value of a failed screen is seen before it is anchored",
        "worker/releases.py",
        "attempt.context.advance_anchor()\n            ending",
        "ending",
        (
            "tests/worker/test_public_data.py::test_the_value_of_the_screen_is_anchored_before_it_is_seen",
        ),
    ),
    Mutant(
        "every curator sees why a dataset was rejected",
        "service/datasets/service.py",
        "dataset.created_by == caller.key_id",
        "caller.is_curator",
        (
            "tests/service/api/test_datasets.py::test_only_the_declaring_key_sees_why_a_dataset_was_rejected",
        ),
    ),
    Mutant(
        "the balance of a midnight tells what a running job had spent",
        "service/data/ledger/repository.py",
        "a.spent_units - total.charged - under_way.charged AS bigint",
        "a.spent_units - total.charged AS bigint",
        ("tests/service/ledger/test_repository.py::test_balance_at_every_moment_of_the_past",),
    ),
)
