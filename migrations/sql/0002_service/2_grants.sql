-- Only what the service and its workers do: most rows are never deleted.
GRANT SELECT, INSERT ON api_key, population, release_event, idempotency TO scrim_app;
GRANT UPDATE (revoked_at) ON api_key TO scrim_app;
GRANT SELECT, INSERT ON dataset TO scrim_app;
GRANT UPDATE (state, reason, content_hash, wrapped_key, lease_epoch, lease_until)
    ON dataset TO scrim_app;
GRANT SELECT, INSERT, DELETE ON upload TO scrim_app;
GRANT SELECT, INSERT ON release TO scrim_app;
GRANT UPDATE (state, published, cancel_requested, error, progress_done, progress_total,
              started_at, finished_at, rang_at)
    ON release TO scrim_app;
GRANT SELECT, INSERT, UPDATE ON artifact TO scrim_app; -- a resumed job writes its files again
-- The service checks whether the database is at the revision that it was written for.
GRANT SELECT ON alembic_version TO scrim_app;
