"""Bugs of the ledger: its tables, triggers and functions, and the anchor outside the database."""

from tests.mutants.harness import Mutant

SQL = "migrations/sql/0001_ledger"
RESUME = "migrations/sql/0006_resume/1_ledger.sql"
REPOSITORY = "tests/service/ledger/test_repository.py"
GUARDS = "tests/service/ledger/test_guards.py"
FILTER = (f"{REPOSITORY}::test_filter_accepts_exactly_up_to_the_cap",)
ZOMBIE = (f"{REPOSITORY}::test_zombie_cannot_go_on",)
APPEND_ONLY = (f"{GUARDS}::test_append_only_even_for_owners",)

MUTANTS = (
    Mutant(
        "ledger: one unit more than the cap is accepted",
        f"{SQL}/6_functions.sql",
        "p_amount_units > payer.cap_units - payer.spent_units - payer.reserved_units THEN",
        "p_amount_units > payer.cap_units - payer.spent_units - payer.reserved_units + 1 THEN",
        FILTER,
    ),
    Mutant(
        "ledger: the amount is left out of the filter",
        f"{SQL}/6_functions.sql",
        "p_amount_units > payer.cap_units - payer.spent_units - payer.reserved_units THEN",
        "0 > payer.cap_units - payer.spent_units - payer.reserved_units THEN",
        FILTER,
    ),
    Mutant(
        "ledger: what others reserved is left out of the filter",
        f"{SQL}/6_functions.sql",
        "p_amount_units > payer.cap_units - payer.spent_units - payer.reserved_units THEN",
        "p_amount_units > payer.cap_units - payer.spent_units THEN",
        FILTER,
    ),
    Mutant(
        "ledger: the constraint on an account allows one unit more than the cap",
        f"{SQL}/2_tables.sql",
        "CHECK (reserved_units <= cap_units - spent_units)",
        "CHECK (reserved_units <= cap_units - spent_units + 1)",
        (f"{GUARDS}::test_cap_below_the_promised_is_refused_and_any_change_is_audited",),
    ),
    Mutant(
        "ledger: an operation may cost one unit more than is left of its reservation",
        f"{SQL}/3_guards.sql",
        "NEW.price_units > target.amount_units - target.spent_units THEN",
        "NEW.price_units > target.amount_units - target.spent_units + 1 THEN",
        (f"{GUARDS}::test_owners_charge_is_summed_and_audited_like_any_other",),
    ),
    Mutant(
        "ledger: a charge is committed without its outcome",
        f"{SQL}/2_tables.sql",
        """ALTER TABLE ledger.operation
    ADD CONSTRAINT has_outcome FOREIGN KEY (release_id, sequence) REFERENCES ledger.outcome
    DEFERRABLE INITIALLY DEFERRED;
""",
        "",
        (f"{GUARDS}::test_charge_without_outcome_does_not_commit",),
    ),
    Mutant(
        "ledger: an outcome is committed without its charge",
        f"{SQL}/5_postings.sql",
        "SET spent_units = spent_units + NEW.price_units",
        "SET spent_units = spent_units",
        (f"{REPOSITORY}::test_spent_budget_never_comes_back",),
    ),
    Mutant(
        "ledger: closing gives back what was charged",
        RESUME,
        """        SET spent_units = spent_units + charged,
            reserved_units = reserved_units - charged - released""",
        """        SET spent_units = CASE NEW.state WHEN 'closed' THEN 0 ELSE spent_units + charged END,
            reserved_units = reserved_units - charged - released""",
        (f"{REPOSITORY}::test_spent_budget_never_comes_back",),
    ),
    Mutant(
        "ledger: a trigger may give spent budget back to an account",
        f"{SQL}/3_guards.sql",
        """keeps_spent BEFORE UPDATE ON ledger.account FOR EACH ROW
    WHEN (NEW.spent_units < OLD.spent_units)""",
        """keeps_spent BEFORE UPDATE ON ledger.account FOR EACH ROW
    WHEN (false)""",
        (f"{GUARDS}::test_spent_budget_comes_back_from_no_trigger_either[account]",),
    ),
    Mutant(
        "ledger: the price of an operation may be negative",
        f"{SQL}/6_functions.sql",
        "IF (p_price_units >= 0 AND p_scale >= 0",
        "IF (p_scale >= 0",
        (f"{REPOSITORY}::test_invalid_charge",),
    ),
    Mutant(
        "ledger: the epoch of a lease is not checked at a commit",
        f"{SQL}/6_functions.sql",
        "PERFORM ledger.require_epoch(ledger.lock_reservation(p_release_id), p_epoch);",
        "PERFORM ledger.lock_reservation(p_release_id);",
        ZOMBIE,
    ),
    Mutant(
        "ledger: the epoch of a lease is not checked at the end",
        f"{SQL}/6_functions.sql",
        "    PERFORM ledger.require_epoch(target, p_epoch);\n",
        "",
        ZOMBIE,
    ),
    Mutant(
        "ledger: a lease that another worker holds is taken",
        f"{SQL}/6_functions.sql",
        "PERFORM ledger.refuse('SC009', 'another worker holds the lease');",
        "NULL;",
        ("tests/service/ledger/test_races.py::test_one_worker_gets_the_lease",),
    ),
    Mutant(
        "ledger: operations can be rewritten",
        f"{SQL}/3_guards.sql",
        "append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.operation",
        "append_only BEFORE DELETE OR TRUNCATE ON ledger.operation",
        APPEND_ONLY,
    ),
    Mutant(
        "ledger: outcomes can be deleted",
        f"{SQL}/3_guards.sql",
        "append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.outcome",
        "append_only BEFORE UPDATE OR TRUNCATE ON ledger.outcome",
        APPEND_ONLY,
    ),
    Mutant(
        "ledger: the audit can be emptied",
        f"{SQL}/3_guards.sql",
        "append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.audit",
        "append_only BEFORE UPDATE OR DELETE ON ledger.audit",
        APPEND_ONLY,
    ),
    Mutant(
        "ledger: a closed reservation is changed without being reopened",
        RESUME,
        "WHEN (OLD.state = 'closed' AND (NEW.state = 'closed'",
        "WHEN (false AND (NEW.state = 'closed'",
        (f"{GUARDS}::test_closed_reservation_is_only_ever_reopened_whole",),
    ),
    Mutant(
        "ledger: reopening a reservation passes the cap",
        RESUME,
        "released := OLD.spent_units - OLD.amount_units;",
        "released := 0;",
        (f"{REPOSITORY}::test_reopening_passes_the_same_filter",),
    ),
    Mutant(
        "ledger: a worker from before the closing can commit after a reopening",
        RESUME,
        "lease_epoch = target.lease_epoch + 1,",
        "lease_epoch = target.lease_epoch,",
        (f"{REPOSITORY}::test_reopened_reservation_goes_on_from_its_journal",),
    ),
    Mutant(
        "ledger: the dataset that a reservation was made for can be exchanged",
        f"{SQL}/3_guards.sql",
        """(NEW.release_id, NEW.account, NEW.amount_units, NEW.dataset_hash, NEW.spec_hash)
          IS DISTINCT FROM
          (OLD.release_id, OLD.account, OLD.amount_units, OLD.dataset_hash, OLD.spec_hash)""",
        """(NEW.release_id, NEW.account, NEW.amount_units, NEW.spec_hash)
          IS DISTINCT FROM
          (OLD.release_id, OLD.account, OLD.amount_units, OLD.spec_hash)""",
        (f"{GUARDS}::test_balances_and_identities_even_for_owners",),
    ),
    Mutant(
        "ledger: a release reserves again for other rows",
        f"{SQL}/6_functions.sql",
        """(made.account, made.amount_units, made.dataset_hash, made.spec_hash) IS DISTINCT FROM
       (p_population_id, p_amount_units, p_dataset_hash, p_spec_hash)""",
        """(made.account, made.amount_units) IS DISTINCT FROM
       (p_population_id, p_amount_units)""",
        (f"{REPOSITORY}::test_reserving_again",),
    ),
    Mutant(
        "ledger: the application writes the tables itself",
        f"{SQL}/7_grants.sql",
        "GRANT SELECT ON ALL TABLES",
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES",
        (f"{GUARDS}::test_application_only_reads",),
    ),
    Mutant(
        "ledger: a database that is behind its anchor is used",
        "service/data/ledger/anchor.py",
        "    for head in anchored:\n        if hashes",
        "    for head in anchored[:0]:\n        if hashes",
        ("tests/service/ledger/test_anchor.py::test_old_backup_is_refused",),
    ),
)
