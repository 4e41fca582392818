-- Triggers write the audit, so every change of a balance has an entry.

-- Python recomputes both digests (service/data/ledger/chain.py): change neither text. Every field but
-- the last is free of line breaks, and JSON escapes them, so no two rows share a text.
CREATE FUNCTION ledger.audit_hash(p_entry ledger.audit) RETURNS bytea
LANGUAGE sql STABLE RETURN sha256(p_entry.previous_hash || convert_to(concat_ws(E'\n',
    'scrim-audit-1',
    p_entry.account,
    p_entry.seq,
    to_char(p_entry.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    p_entry.kind,
    coalesce(p_entry.release_id::text, '-'),
    coalesce(p_entry.operation::text, '-'),
    p_entry.units,
    p_entry.payload::text
), 'UTF8'));

CREATE FUNCTION ledger.operation_digest(p_operation ledger.operation, p_values bytea) RETURNS bytea
LANGUAGE sql STABLE RETURN sha256(convert_to(concat_ws(E'\n',
    'scrim-operation-1',
    p_operation.release_id,
    p_operation.sequence,
    p_operation.kind,
    encode(float8send(p_operation.scale), 'hex'), -- exact, whatever extra_float_digits says
    p_operation.price_units,
    encode(sha256(p_values), 'hex'),
    p_operation.asked::text
), 'UTF8'));

-- Numbers, dates and links a new entry; values that the caller set there are overwritten.
CREATE FUNCTION ledger.chain_entry() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- One writer per chain. The ledger's functions hold this lock already.
    PERFORM FROM ledger.account WHERE population_id = NEW.account FOR NO KEY UPDATE;
    SELECT seq + 1, hash INTO NEW.seq, NEW.previous_hash
        FROM ledger.audit WHERE account = NEW.account ORDER BY seq DESC LIMIT 1;
    NEW.seq := coalesce(NEW.seq, 1);
    NEW.previous_hash := coalesce(NEW.previous_hash, decode(repeat('00', 32), 'hex'));
    NEW.at := clock_timestamp(); -- not now(): the transaction may have waited for the lock
    NEW.hash := ledger.audit_hash(NEW);
    -- An outcome may be used once its commit has returned, so the commit must survive a crash, even if
    -- the server is configured for asynchronous commits.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER chained BEFORE INSERT ON ledger.audit FOR EACH ROW
    EXECUTE FUNCTION ledger.chain_entry();

CREATE FUNCTION ledger.audit_account() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.audit (account, kind, units, payload)
    VALUES (NEW.population_id, 'open_account', NEW.cap_units, jsonb_build_object(
        'unit', NEW.unit,
        'relation', NEW.relation,
        'rows_per_unit', NEW.rows_per_unit,
        'delta_units', NEW.delta_units));
    RETURN NULL;
END
$$;

CREATE TRIGGER audited AFTER INSERT ON ledger.account FOR EACH ROW
    EXECUTE FUNCTION ledger.audit_account();

CREATE FUNCTION ledger.audit_cap() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.audit (account, kind, units, payload)
    VALUES (NEW.population_id, 'set_cap', NEW.cap_units,
            jsonb_build_object('previous_units', OLD.cap_units));
    RETURN NULL;
END
$$;

CREATE TRIGGER cap_audited AFTER UPDATE ON ledger.account FOR EACH ROW
    WHEN (NEW.cap_units <> OLD.cap_units)
    EXECUTE FUNCTION ledger.audit_cap();

CREATE FUNCTION ledger.audit_reservation() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.audit (account, kind, release_id, units, payload)
    VALUES (NEW.account, 'reserve', NEW.release_id, NEW.amount_units, jsonb_build_object(
        'dataset_hash', encode(NEW.dataset_hash, 'hex'),
        'spec_hash', encode(NEW.spec_hash, 'hex')));
    RETURN NULL;
END
$$;

CREATE TRIGGER audited AFTER INSERT ON ledger.reservation FOR EACH ROW
    EXECUTE FUNCTION ledger.audit_reservation();

-- The units of a closing are those that return to the account.
CREATE FUNCTION ledger.audit_closing() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.audit (account, kind, release_id, units, payload)
    VALUES (NEW.account, 'close', NEW.release_id, NEW.amount_units - NEW.spent_units, '{}');
    RETURN NULL;
END
$$;

CREATE TRIGGER closing_audited AFTER UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (NEW.state <> OLD.state)
    EXECUTE FUNCTION ledger.audit_closing();

-- An operation is whole when its outcome arrives; the entry pins both.
CREATE FUNCTION ledger.audit_operation() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    charged ledger.operation;
    digest  bytea;
BEGIN
    SELECT * INTO charged FROM ledger.operation
        WHERE release_id = NEW.release_id AND sequence = NEW.sequence;
    digest := ledger.operation_digest(charged, NEW."values");
    INSERT INTO ledger.audit (account, kind, release_id, operation, units, payload)
    SELECT account, 'operation', NEW.release_id, NEW.sequence, charged.price_units,
           jsonb_build_object('kind', charged.kind, 'digest', encode(digest, 'hex'))
        FROM ledger.reservation WHERE release_id = NEW.release_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER audited AFTER INSERT ON ledger.outcome FOR EACH ROW
    EXECUTE FUNCTION ledger.audit_operation();
