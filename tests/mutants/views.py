"""Bugs of what leaves: what analysts see, and what certificates and reports say."""

from tests.mutants.harness import Mutant

ANALYSTS = "tests/service/api/test_analysts.py"

MUTANTS = (
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
