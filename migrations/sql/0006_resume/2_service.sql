-- Why earlier attempts at a release ended, as far as that decides what happens next.
ALTER TABLE release
    -- Workers that started and did not come back. A start adds one; a worker that stops in an orderly
    -- way, because of an outage for example, subtracts it again.
    ADD COLUMN lost_attempts   integer NOT NULL DEFAULT 0 CHECK (lost_attempts >= 0),
    ADD COLUMN outages         integer NOT NULL DEFAULT 0 CHECK (outages >= 0),
    ADD COLUMN memory_failures integer NOT NULL DEFAULT 0 CHECK (memory_failures >= 0),
    ADD COLUMN resume_at       timestamptz; -- the reaper does not ring before
GRANT UPDATE (lost_attempts, outages, memory_failures, resume_at) ON release TO scrim_app;
