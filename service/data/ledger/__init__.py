"""The privacy ledger: typed access to the functions and tables that Postgres enforces."""
