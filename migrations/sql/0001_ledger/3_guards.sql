-- Changes that are refused for every role, including the owner and superusers, unless triggers are disabled.

-- All refusals carry a code of class SC, which service/data/ledger/errors.py turns into exceptions.
--   SC000 forbidden change    SC001 budget exhausted   SC002 stale lease   SC003 conflict
--   SC004 out of order        SC005 closed             SC006 not found     SC007 invalid amount
--   SC008 already committed   SC009 lease held
CREATE FUNCTION ledger.refuse(p_code text, p_message text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = p_code, MESSAGE = p_message;
END
$$;

-- A trigger that raises the given message. The WHEN clauses of the triggers are the rules.
CREATE FUNCTION ledger.forbid() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM ledger.refuse('SC000', TG_ARGV[0]);
    RETURN NULL;
END
$$;

-- Rows are never deleted, and operations and outcomes are never changed. For each statement, so that
-- a statement that matches no row is refused as well.
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON ledger.account
    EXECUTE FUNCTION ledger.forbid('accounts are never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON ledger.reservation
    EXECUTE FUNCTION ledger.forbid('reservations are never deleted');
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.operation
    EXECUTE FUNCTION ledger.forbid('operations are append-only');
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.outcome
    EXECUTE FUNCTION ledger.forbid('outcomes are append-only');
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.audit
    EXECUTE FUNCTION ledger.forbid('the audit is append-only');

-- Accounts.
CREATE TRIGGER starts_empty BEFORE INSERT ON ledger.account FOR EACH ROW
    WHEN (NEW.spent_units <> 0 OR NEW.reserved_units <> 0)
    EXECUTE FUNCTION ledger.forbid('an account starts with nothing spent and nothing reserved');
CREATE TRIGGER keeps_identity BEFORE UPDATE ON ledger.account FOR EACH ROW
    WHEN ((NEW.population_id, NEW.unit, NEW.relation, NEW.rows_per_unit, NEW.delta_units)
          IS DISTINCT FROM
          (OLD.population_id, OLD.unit, OLD.relation, OLD.rows_per_unit, OLD.delta_units))
    EXECUTE FUNCTION ledger.forbid('units and relations never mix in one account');
CREATE TRIGGER keeps_spent BEFORE UPDATE ON ledger.account FOR EACH ROW
    WHEN (NEW.spent_units < OLD.spent_units)
    EXECUTE FUNCTION ledger.forbid('spent budget never comes back');
-- Only the posting triggers (5_postings.sql) change balances. Depth 0 is a statement outside of them.
CREATE TRIGGER follows_reservations BEFORE UPDATE ON ledger.account FOR EACH ROW
    WHEN ((NEW.spent_units, NEW.reserved_units)
          IS DISTINCT FROM (OLD.spent_units, OLD.reserved_units)
          AND pg_trigger_depth() = 0)
    EXECUTE FUNCTION ledger.forbid('the balance of an account follows its reservations');

-- Reservations.
CREATE TRIGGER starts_open BEFORE INSERT ON ledger.reservation FOR EACH ROW
    WHEN (NEW.state <> 'open' OR NEW.spent_units <> 0 OR NEW.lease_epoch <> 0)
    EXECUTE FUNCTION ledger.forbid('a reservation starts open, unspent and unclaimed');
CREATE TRIGGER keeps_identity BEFORE UPDATE ON ledger.reservation FOR EACH ROW
    WHEN ((NEW.release_id, NEW.account, NEW.amount_units, NEW.dataset_hash, NEW.spec_hash)
          IS DISTINCT FROM
          (OLD.release_id, OLD.account, OLD.amount_units, OLD.dataset_hash, OLD.spec_hash))
    EXECUTE FUNCTION ledger.forbid('what a reservation was made for never changes');
CREATE TRIGGER stays_closed BEFORE UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (OLD.state = 'closed')
    EXECUTE FUNCTION ledger.forbid('a closed reservation accepts nothing');
CREATE TRIGGER keeps_spent BEFORE UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (NEW.spent_units < OLD.spent_units)
    EXECUTE FUNCTION ledger.forbid('spent budget never comes back');
CREATE TRIGGER follows_operations BEFORE UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (NEW.spent_units <> OLD.spent_units AND pg_trigger_depth() = 0)
    EXECUTE FUNCTION ledger.forbid('the spending of a reservation follows its operations');
CREATE TRIGGER keeps_epoch BEFORE UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (NEW.lease_epoch < OLD.lease_epoch)
    EXECUTE FUNCTION ledger.forbid('lease epochs never go back');

-- Operations: only in an open reservation, in order, and within its amount.
CREATE FUNCTION ledger.admit_operation() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target        ledger.reservation;
    next_sequence bigint;
BEGIN
    SELECT * INTO target FROM ledger.reservation
        WHERE release_id = NEW.release_id FOR NO KEY UPDATE;
    IF target.state = 'closed' THEN
        PERFORM ledger.refuse('SC005', 'the reservation is closed');
    END IF;
    SELECT coalesce(max(sequence) + 1, 0) INTO next_sequence
        FROM ledger.operation WHERE release_id = NEW.release_id;
    IF NEW.sequence < next_sequence THEN
        PERFORM ledger.refuse('SC008', 'this operation is already committed: read the journal');
    ELSIF NEW.sequence > next_sequence THEN
        PERFORM ledger.refuse('SC004', 'an earlier operation is not committed yet');
    ELSIF NEW.price_units > target.amount_units - target.spent_units THEN
        PERFORM ledger.refuse('SC001', 'the price exceeds what is left of the reservation');
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER admitted BEFORE INSERT ON ledger.operation FOR EACH ROW
    EXECUTE FUNCTION ledger.admit_operation();
