-- The application changes the ledger only through these functions. Conditions are written as
-- `(good) IS NOT TRUE`, so that a NULL argument is refused.
--
-- Locks: every writer locks the account first, then the reservation; a transaction writes to one
-- account. FOR NO KEY UPDATE excludes other writers all the same, but not the key-share lock that
-- a foreign key to an account takes: two transactions that first insert such a row and then
-- reserve would otherwise wait for each other.

CREATE FUNCTION ledger.lock_account(p_population_id uuid) RETURNS ledger.account
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locked ledger.account;
BEGIN
    SELECT * INTO locked FROM ledger.account
        WHERE population_id = p_population_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM ledger.refuse('SC006', 'no such account');
    END IF;
    RETURN locked;
END
$$;

CREATE FUNCTION ledger.lock_reservation(p_release_id uuid) RETURNS ledger.reservation
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owning_account uuid;
    locked         ledger.reservation;
BEGIN
    -- Read without a lock: a reservation never changes its account.
    SELECT account INTO owning_account FROM ledger.reservation WHERE release_id = p_release_id;
    IF NOT FOUND THEN
        PERFORM ledger.refuse('SC006', 'no such reservation');
    END IF;
    PERFORM ledger.lock_account(owning_account);
    SELECT * INTO locked FROM ledger.reservation
        WHERE release_id = p_release_id FOR NO KEY UPDATE;
    RETURN locked;
END
$$;

-- Only the worker that claimed last may continue. Epoch 0: not claimed yet.
CREATE FUNCTION ledger.require_epoch(p_reservation ledger.reservation, p_epoch bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (p_epoch > 0 AND p_epoch = p_reservation.lease_epoch) IS NOT TRUE THEN
        PERFORM ledger.refuse('SC002', 'the lease was taken over');
    END IF;
END
$$;

CREATE FUNCTION ledger.is_leased(p_reservation ledger.reservation) RETURNS boolean
LANGUAGE sql VOLATILE RETURN coalesce(p_reservation.lease_until > clock_timestamp(), false);

CREATE FUNCTION ledger.lease_end(p_lease_seconds double precision) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (p_lease_seconds > 0 AND p_lease_seconds <= 86400) IS NOT TRUE THEN
        PERFORM ledger.refuse('SC007', 'a lease lasts more than 0 and at most 86400 seconds');
    END IF;
    RETURN clock_timestamp() + make_interval(secs => p_lease_seconds);
END
$$;

-- Closes an open reservation, and returns the amount that goes back to the account.
CREATE FUNCTION ledger.close_reservation(p_reservation ledger.reservation) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.reservation
        SET state = 'closed', lease_epoch = p_reservation.lease_epoch
        WHERE release_id = p_reservation.release_id;
    RETURN p_reservation.amount_units - p_reservation.spent_units;
END
$$;

-- ---------------------------------------------------------------- accounts

CREATE FUNCTION ledger.open_account(
    p_population_id uuid,
    p_unit text,
    p_relation text,
    p_rows_per_unit integer,
    p_cap_units bigint,
    p_delta_units bigint
) RETURNS ledger.account
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    opened ledger.account;
BEGIN
    IF (p_cap_units > 0 AND p_rows_per_unit > 0
        AND p_delta_units > 0 AND p_delta_units < 1000000000000000000) IS NOT TRUE THEN
        PERFORM ledger.refuse('SC007', 'cap, rows per unit and delta are positive, delta below 1');
    END IF;
    INSERT INTO ledger.account
        (population_id, unit, relation, rows_per_unit, cap_units, delta_units)
    VALUES
        (p_population_id, p_unit, p_relation, p_rows_per_unit, p_cap_units, p_delta_units)
    ON CONFLICT DO NOTHING
    RETURNING * INTO opened;
    IF NOT FOUND THEN
        PERFORM ledger.refuse('SC003', 'the population has an account already');
    END IF;
    RETURN opened;
END
$$;

CREATE FUNCTION ledger.set_cap(p_population_id uuid, p_cap_units bigint) RETURNS ledger.account
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed ledger.account := ledger.lock_account(p_population_id);
BEGIN
    IF (p_cap_units > 0) IS NOT TRUE THEN
        PERFORM ledger.refuse('SC007', 'a cap is positive');
    ELSIF p_cap_units - changed.spent_units < changed.reserved_units THEN
        PERFORM ledger.refuse('SC001', 'the cap would fall below what is spent and reserved');
    END IF;
    UPDATE ledger.account SET cap_units = p_cap_units
        WHERE population_id = p_population_id RETURNING * INTO changed;
    RETURN changed;
END
$$;

-- ---------------------------------------------------------------- reservations

-- The privacy filter: accepted if and only if spent + reserved + amount <= cap. A second call with
-- the same arguments returns the same reservation, in any state.
CREATE FUNCTION ledger.reserve(
    p_population_id uuid,
    p_release_id uuid,
    p_amount_units bigint,
    p_dataset_hash bytea,
    p_spec_hash bytea
) RETURNS ledger.reservation
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    payer ledger.account := ledger.lock_account(p_population_id);
    made  ledger.reservation;
BEGIN
    IF (p_amount_units > 0) IS NOT TRUE THEN
        PERFORM ledger.refuse('SC007', 'a reservation is positive');
    END IF;
    SELECT * INTO made FROM ledger.reservation WHERE release_id = p_release_id;
    IF NOT FOUND THEN
        IF p_amount_units > payer.cap_units - payer.spent_units - payer.reserved_units THEN
            PERFORM ledger.refuse('SC001', 'the population''s budget does not cover this amount');
        END IF;
        INSERT INTO ledger.reservation (release_id, account, amount_units, dataset_hash, spec_hash)
        VALUES (p_release_id, p_population_id, p_amount_units, p_dataset_hash, p_spec_hash)
        ON CONFLICT DO NOTHING
        RETURNING * INTO made;
    END IF;
    -- `made` is empty if the same release reserved from another account at the same moment.
    IF (made.account, made.amount_units, made.dataset_hash, made.spec_hash) IS DISTINCT FROM
       (p_population_id, p_amount_units, p_dataset_hash, p_spec_hash) THEN
        PERFORM ledger.refuse('SC003', 'the release has another reservation already');
    END IF;
    RETURN made;
END
$$;

-- Takes the lease if no worker holds it. The new epoch excludes the previous holder.
CREATE FUNCTION ledger.claim(p_release_id uuid, p_holder text, p_lease_seconds double precision)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target ledger.reservation := ledger.lock_reservation(p_release_id);
BEGIN
    IF target.state = 'closed' THEN
        PERFORM ledger.refuse('SC005', 'the reservation is closed');
    ELSIF ledger.is_leased(target) THEN
        PERFORM ledger.refuse('SC009', 'another worker holds the lease');
    END IF;
    UPDATE ledger.reservation
        SET lease_epoch = lease_epoch + 1,
            lease_until = ledger.lease_end(p_lease_seconds),
            lease_holder = p_holder
        WHERE release_id = p_release_id;
    RETURN target.lease_epoch + 1;
END
$$;

-- True while the caller may continue. An expired lease that was not taken over is renewed.
CREATE FUNCTION ledger.heartbeat(
    p_release_id uuid, p_epoch bigint, p_lease_seconds double precision
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target ledger.reservation := ledger.lock_reservation(p_release_id);
BEGIN
    IF (p_epoch > 0 AND p_epoch = target.lease_epoch AND target.state = 'open') IS NOT TRUE THEN
        RETURN false;
    END IF;
    UPDATE ledger.reservation SET lease_until = ledger.lease_end(p_lease_seconds)
        WHERE release_id = p_release_id;
    RETURN true;
END
$$;

-- Charge and outcome in one step. The triggers of the tables do the rest: order, sums, audit.
CREATE FUNCTION ledger.commit_operation(
    p_release_id uuid,
    p_epoch bigint,
    p_sequence bigint,
    p_kind text,
    p_asked jsonb,
    p_scale double precision,
    p_price_units bigint,
    p_values bytea
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM ledger.require_epoch(ledger.lock_reservation(p_release_id), p_epoch);
    IF (p_price_units >= 0 AND p_scale >= 0 AND p_scale < 'Infinity'
        AND (p_price_units = 0 OR p_scale > 0)) IS NOT TRUE THEN
        PERFORM ledger.refuse('SC007', 'price and scale are finite and positive, or free');
    END IF;
    INSERT INTO ledger.operation (release_id, sequence, kind, asked, scale, price_units)
    VALUES (p_release_id, p_sequence, p_kind, p_asked, p_scale, p_price_units);
    INSERT INTO ledger.outcome (release_id, sequence, "values")
    VALUES (p_release_id, p_sequence, p_values);
END
$$;

-- Everything a resumed job needs, in order.
CREATE FUNCTION ledger.journal(p_release_id uuid)
RETURNS TABLE (
    sequence bigint, kind text, asked jsonb, scale double precision, price_units bigint,
    "values" bytea
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM ledger.reservation AS r WHERE r.release_id = p_release_id) THEN
        PERFORM ledger.refuse('SC006', 'no such reservation');
    END IF;
    RETURN QUERY
        SELECT o.sequence, o.kind, o.asked, o.scale, o.price_units, v."values"
        FROM ledger.operation AS o
        JOIN ledger.outcome AS v USING (release_id, sequence)
        WHERE o.release_id = p_release_id
        ORDER BY o.sequence;
END
$$;

-- Ends a job: the unspent rest is returned once. Later calls return 0.
CREATE FUNCTION ledger.finish(p_release_id uuid, p_epoch bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target ledger.reservation := ledger.lock_reservation(p_release_id);
BEGIN
    PERFORM ledger.require_epoch(target, p_epoch);
    IF target.state = 'closed' THEN
        RETURN 0;
    END IF;
    RETURN ledger.close_reservation(target);
END
$$;

-- Closes a release that no worker holds. The epoch rises, so that a worker whose lease has expired cannot
-- report success.
CREATE FUNCTION ledger.close_unclaimed(p_release_id uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target ledger.reservation := ledger.lock_reservation(p_release_id);
BEGIN
    IF target.state = 'closed' THEN
        RETURN 0;
    ELSIF ledger.is_leased(target) THEN
        PERFORM ledger.refuse('SC009', 'a worker holds the lease');
    END IF;
    target.lease_epoch := target.lease_epoch + 1;
    RETURN ledger.close_reservation(target);
END
$$;
