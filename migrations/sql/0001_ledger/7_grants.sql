-- By default, Postgres lets every role execute a new function.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ledger FROM PUBLIC;

GRANT USAGE ON SCHEMA ledger TO scrim_app;
-- Reading is needed for balances, for the pages of the audit and for checking its chain.
GRANT SELECT ON ALL TABLES IN SCHEMA ledger TO scrim_app;
GRANT EXECUTE ON FUNCTION
    ledger.open_account, ledger.set_cap, ledger.reserve, ledger.claim, ledger.heartbeat,
    ledger.commit_operation, ledger.journal, ledger.finish, ledger.close_unclaimed
    TO scrim_app;
