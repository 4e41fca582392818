-- The service's own tables. They refer to the ledger, which decides what may be spent.
-- Writers lock in this order: dataset, then the ledger (account, reservation), then release.

CREATE TABLE api_key (
    id            uuid        PRIMARY KEY,
    name          text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    prefix        text        NOT NULL, -- the first characters of the secret, to find the row by
    secret_sha256 bytea       NOT NULL UNIQUE CHECK (octet_length(secret_sha256) = 32),
    scopes        text[]      NOT NULL
                  CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['admin', 'curator', 'analyst']),
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz,
    revoked_at    timestamptz
);
CREATE INDEX api_key_prefix ON api_key (prefix);
CREATE INDEX api_key_page ON api_key (created_at, id);

-- The account in the ledger holds what the guarantee depends on; this table has the name and the request.
CREATE TABLE population (
    id                  uuid             PRIMARY KEY REFERENCES ledger.account,
    name                text             NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    unit                text             NOT NULL,
    relation            text             NOT NULL,
    max_rows_per_person integer,
    max_household_size  integer,
    cap                 jsonb            NOT NULL, -- as given: rho or epsilon
    delta               double precision NOT NULL,
    created_at          timestamptz      NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX population_page ON population (created_at, id);

CREATE TABLE dataset (
    id                       uuid        PRIMARY KEY,
    name                     text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    population_id            uuid        REFERENCES population,
    visibility               text        NOT NULL CHECK (visibility IN ('private', 'public')),
    provenance               text,
    disjoint_from_population boolean,
    schema                   jsonb       NOT NULL,
    state                    text        NOT NULL DEFAULT 'awaiting_content' CHECK (state IN
                             ('awaiting_content', 'ingesting', 'ready', 'rejected', 'deleted')),
    reason                   text, -- structural: why it was rejected
    content_hash             bytea CHECK (octet_length(content_hash) = 32),
    wrapped_key              bytea, -- gone with the dataset, and the rows with it
    lease_epoch              bigint      NOT NULL DEFAULT 0 CHECK (lease_epoch >= 0),
    lease_until              timestamptz,
    created_at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT belongs_to_its_people CHECK ((visibility = 'private') = (population_id IS NOT NULL)),
    CONSTRAINT public_is_declared CHECK (
        visibility = 'private' OR (provenance IS NOT NULL AND disjoint_from_population)),
    CONSTRAINT key_until_deleted CHECK ((state = 'deleted') = (wrapped_key IS NULL)),
    CONSTRAINT ingested_is_pinned CHECK (
        state IN ('awaiting_content', 'deleted') OR content_hash IS NOT NULL)
);
CREATE INDEX dataset_page ON dataset (created_at, id);
CREATE INDEX dataset_population ON dataset (population_id);
CREATE INDEX dataset_ingesting ON dataset (lease_until) WHERE state = 'ingesting';

-- Size and digest are those of the encrypted object, so they reveal no more about the rows than the object
-- itself.
CREATE TABLE upload (
    dataset_id uuid        NOT NULL REFERENCES dataset,
    table_name text        NOT NULL CHECK (table_name IN ('rows', 'groups', 'individuals')),
    object_key text        NOT NULL UNIQUE,
    media_type text        NOT NULL,
    size       bigint      NOT NULL CHECK (size > 0),
    sha256     bytea       NOT NULL CHECK (octet_length(sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (dataset_id, table_name)
);

CREATE TABLE release (
    id                uuid        PRIMARY KEY,
    dataset_id        uuid        NOT NULL REFERENCES dataset,
    public_dataset_id uuid        REFERENCES dataset,
    population_id     uuid        NOT NULL REFERENCES population,
    spec              jsonb       NOT NULL,
    spec_hash         bytea       NOT NULL CHECK (octet_length(spec_hash) = 32),
    units             bigint      NOT NULL CHECK (units > 0),
    state             text        NOT NULL DEFAULT 'queued'
                      CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    published         boolean     NOT NULL DEFAULT false,
    dry_run           boolean     NOT NULL DEFAULT false,
    cancel_requested  boolean     NOT NULL DEFAULT false,
    error             jsonb,
    progress_done     integer     NOT NULL DEFAULT 0 CHECK (progress_done >= 0),
    progress_total    integer     NOT NULL DEFAULT 0 CHECK (progress_total >= 0),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at        timestamptz,
    finished_at       timestamptz,
    rang_at           timestamptz,
    CONSTRAINT finished_once CHECK (
        (state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
);
CREATE INDEX release_page ON release (created_at, id);
CREATE INDEX release_dataset ON release (dataset_id);
CREATE INDEX release_unfinished ON release (rang_at) WHERE state IN ('queued', 'running');

CREATE TABLE release_event (
    release_id uuid        NOT NULL REFERENCES release,
    seq        bigint      NOT NULL CHECK (seq >= 1),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind       text        NOT NULL CHECK (kind IN ('progress', 'state')),
    payload    jsonb       NOT NULL,
    PRIMARY KEY (release_id, seq)
);

CREATE TABLE artifact (
    release_id uuid   NOT NULL REFERENCES release,
    name       text   NOT NULL CHECK (name ~ '^[a-z0-9_.-]{1,100}$'),
    object_key text   NOT NULL,
    media_type text   NOT NULL,
    size       bigint NOT NULL CHECK (size >= 0),
    sha256     bytea  NOT NULL CHECK (octet_length(sha256) = 32),
    PRIMARY KEY (release_id, name)
);

-- A request that created something, so that a repetition finds it.
CREATE TABLE idempotency (
    key_id      uuid        NOT NULL REFERENCES api_key,
    method_path text        NOT NULL,
    key         text        NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    body_sha256 bytea       NOT NULL CHECK (octet_length(body_sha256) = 32),
    status      integer     NOT NULL,
    resource_id uuid        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (key_id, method_path, key)
);
