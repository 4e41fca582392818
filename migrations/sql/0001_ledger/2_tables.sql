-- Everything is a whole number: 1 unit is 1e-12 rho, delta is counted in 1e-18.
-- Limits are written as subtractions of nonnegative numbers, which cannot overflow.

-- The budget of one population. It stays when datasets are deleted.
CREATE TABLE ledger.account (
    population_id  uuid    PRIMARY KEY,
    unit           text    NOT NULL CHECK (unit IN ('row', 'person', 'household')),
    relation       text    NOT NULL CHECK (relation IN ('add_remove', 'replace_one')),
    rows_per_unit  integer NOT NULL CHECK (rows_per_unit >= 1),
    delta_units    bigint  NOT NULL CHECK (delta_units > 0 AND delta_units < 1000000000000000000),
    cap_units      bigint  NOT NULL CHECK (cap_units > 0),
    spent_units    bigint  NOT NULL DEFAULT 0 CHECK (spent_units >= 0),
    reserved_units bigint  NOT NULL DEFAULT 0 CHECK (reserved_units >= 0),
    CONSTRAINT row_is_one_row CHECK (unit <> 'row' OR rows_per_unit = 1),
    CONSTRAINT within_cap CHECK (reserved_units <= cap_units - spent_units)
) WITH (fillfactor = 50); -- updated by every charge: leave room for it on the same page

-- What one release may spend, fixed before the data is read, and which worker has it.
CREATE TABLE ledger.reservation (
    release_id   uuid   PRIMARY KEY,
    account      uuid   NOT NULL REFERENCES ledger.account,
    amount_units bigint NOT NULL CHECK (amount_units > 0),
    spent_units  bigint NOT NULL DEFAULT 0 CHECK (spent_units >= 0),
    state        text   NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
    dataset_hash bytea  NOT NULL CHECK (octet_length(dataset_hash) = 32),
    spec_hash    bytea  NOT NULL CHECK (octet_length(spec_hash) = 32),
    lease_epoch  bigint NOT NULL DEFAULT 0 CHECK (lease_epoch >= 0), -- 0: never claimed
    lease_until  timestamptz,
    lease_holder text   CHECK (length(lease_holder) BETWEEN 1 AND 200),
    CONSTRAINT within_amount CHECK (spent_units <= amount_units),
    CONSTRAINT lease_is_whole CHECK ((lease_until IS NULL) = (lease_holder IS NULL))
) WITH (fillfactor = 50); -- updated by every heartbeat

CREATE INDEX reservation_account ON ledger.reservation (account);
-- Not on lease_until: a heartbeat must not touch an index.
CREATE INDEX reservation_open ON ledger.reservation (release_id) WHERE state = 'open';

-- One access to the data: what was asked (public), at which noise scale, at which price.
-- Only a free operation (a public row count) may be without noise. NaN sorts above infinity.
CREATE TABLE ledger.operation (
    release_id  uuid   NOT NULL REFERENCES ledger.reservation,
    sequence    bigint NOT NULL CHECK (sequence >= 0),
    kind        text   NOT NULL CHECK (kind ~ '^[a-z][a-z_]{0,39}$'),
    asked       jsonb  NOT NULL,
    scale       double precision NOT NULL CHECK (scale >= 0 AND scale < 'Infinity'),
    price_units bigint NOT NULL CHECK (price_units >= 0),
    PRIMARY KEY (release_id, sequence),
    CONSTRAINT charged_is_noisy CHECK (price_units = 0 OR scale > 0)
);

-- Its noisy outcome: little-endian 64-bit integers.
CREATE TABLE ledger.outcome (
    release_id uuid   NOT NULL,
    sequence   bigint NOT NULL,
    "values"   bytea  NOT NULL CHECK (octet_length("values") % 8 = 0),
    PRIMARY KEY (release_id, sequence),
    FOREIGN KEY (release_id, sequence) REFERENCES ledger.operation
);

-- Charge and outcome are committed together: neither may stand alone at the end of a transaction.
ALTER TABLE ledger.operation
    ADD CONSTRAINT has_outcome FOREIGN KEY (release_id, sequence) REFERENCES ledger.outcome
    DEFERRABLE INITIALLY DEFERRED;

-- Every change of a balance, in order; each row hashes its predecessor.
CREATE TABLE ledger.audit (
    account       uuid        NOT NULL REFERENCES ledger.account,
    seq           bigint      NOT NULL CHECK (seq >= 1),
    at            timestamptz NOT NULL,
    kind          text        NOT NULL
                  CHECK (kind IN ('open_account', 'set_cap', 'reserve', 'operation', 'close')),
    release_id    uuid,
    operation     bigint,
    units         bigint      NOT NULL CHECK (units >= 0),
    payload       jsonb       NOT NULL,
    previous_hash bytea       NOT NULL CHECK (octet_length(previous_hash) = 32),
    hash          bytea       NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (account, seq)
);
