-- A reservation whose job failed can be opened again. The unspent rest is reserved a second time, under
-- the same filter as a new reservation; what is in the journal stays spent and is never charged again.

ALTER TABLE ledger.audit
    DROP CONSTRAINT audit_kind_check,
    ADD CONSTRAINT audit_kind_check CHECK (kind IN
        ('open_account', 'set_cap', 'reserve', 'operation', 'close', 'reopen'));

-- Reopening changes the state, the epoch and the lease, and nothing else. The epoch rises, so a worker
-- from before the closing stays excluded.
DROP TRIGGER stays_closed ON ledger.reservation;
CREATE TRIGGER stays_closed BEFORE UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (OLD.state = 'closed' AND (NEW.state = 'closed'
          OR NEW.spent_units <> OLD.spent_units
          OR NEW.lease_epoch <= OLD.lease_epoch
          OR NEW.lease_until IS NOT NULL))
    EXECUTE FUNCTION ledger.forbid('a closed reservation accepts nothing but being reopened');

-- The units of a closing return to the account; those of a reopening are reserved again.
CREATE OR REPLACE FUNCTION ledger.audit_closing() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ledger.audit (account, kind, release_id, units, payload)
    VALUES (NEW.account, CASE NEW.state WHEN 'closed' THEN 'close' ELSE 'reopen' END,
            NEW.release_id, NEW.amount_units - NEW.spent_units, '{}');
    RETURN NULL;
END
$$;

-- A charge moves units from reserved to spent; a closing returns the rest of the reserved ones, and
-- a reopening reserves the same rest again.
CREATE OR REPLACE FUNCTION ledger.post_settlement() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    charged  bigint := NEW.spent_units - OLD.spent_units;
    released bigint := 0;
BEGIN
    IF NEW.state = 'closed' THEN
        released := NEW.amount_units - NEW.spent_units;
    ELSIF OLD.state = 'closed' THEN
        released := OLD.spent_units - OLD.amount_units;
    END IF;
    UPDATE ledger.account
        SET spent_units = spent_units + charged,
            reserved_units = reserved_units - charged - released
        WHERE population_id = NEW.account;
    RETURN NULL;
END
$$;

-- A reopened reservation has an epoch that no worker has claimed: it counts for none of them.
CREATE OR REPLACE FUNCTION ledger.require_epoch(p_reservation ledger.reservation, p_epoch bigint)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (p_epoch > 0 AND p_epoch = p_reservation.lease_epoch
        AND (p_reservation.state = 'closed' OR p_reservation.lease_holder IS NOT NULL)) IS NOT TRUE
    THEN
        PERFORM ledger.refuse('SC002', 'the lease was taken over');
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION ledger.heartbeat(
    p_release_id uuid, p_epoch bigint, p_lease_seconds double precision
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target ledger.reservation := ledger.lock_reservation(p_release_id);
BEGIN
    IF (p_epoch > 0 AND p_epoch = target.lease_epoch AND target.state = 'open'
        AND target.lease_holder IS NOT NULL) IS NOT TRUE THEN
        RETURN false;
    END IF;
    UPDATE ledger.reservation SET lease_until = ledger.lease_end(p_lease_seconds)
        WHERE release_id = p_release_id;
    RETURN true;
END
$$;

-- Opens a closed reservation again if the account covers its unspent rest; returns that rest.
CREATE FUNCTION ledger.reopen(p_release_id uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target ledger.reservation := ledger.lock_reservation(p_release_id);
    payer  ledger.account := ledger.lock_account(target.account);
    rest   bigint := target.amount_units - target.spent_units;
BEGIN
    IF target.state = 'open' THEN
        PERFORM ledger.refuse('SC003', 'the reservation is open');
    ELSIF rest > payer.cap_units - payer.spent_units - payer.reserved_units THEN
        PERFORM ledger.refuse('SC001', 'the population''s budget does not cover this amount');
    END IF;
    UPDATE ledger.reservation
        SET state = 'open',
            lease_epoch = target.lease_epoch + 1,
            lease_until = NULL,
            lease_holder = NULL
        WHERE release_id = p_release_id;
    RETURN rest;
END
$$;

REVOKE ALL ON FUNCTION ledger.reopen FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger.reopen TO scrim_app;
