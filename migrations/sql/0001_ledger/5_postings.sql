-- Inserting an operation spends; sums change nowhere else. So the spending of a reservation is the sum of
-- its prices, and the balance of an account is the sum of its reservations. The CHECKs of the tables then
-- hold for the sums.

CREATE FUNCTION ledger.post_operation() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.reservation SET spent_units = spent_units + NEW.price_units
        WHERE release_id = NEW.release_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER posted AFTER INSERT ON ledger.operation FOR EACH ROW
    WHEN (NEW.price_units > 0)
    EXECUTE FUNCTION ledger.post_operation();

CREATE FUNCTION ledger.post_reservation() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE ledger.account SET reserved_units = reserved_units + NEW.amount_units
        WHERE population_id = NEW.account;
    RETURN NULL;
END
$$;

CREATE TRIGGER posted AFTER INSERT ON ledger.reservation FOR EACH ROW
    EXECUTE FUNCTION ledger.post_reservation();

-- A charge moves units from reserved to spent; a closing returns the rest of the reserved ones.
CREATE FUNCTION ledger.post_settlement() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    charged  bigint := NEW.spent_units - OLD.spent_units;
    released bigint := 0;
BEGIN
    IF NEW.state = 'closed' THEN
        released := NEW.amount_units - NEW.spent_units;
    END IF;
    UPDATE ledger.account
        SET spent_units = spent_units + charged,
            reserved_units = reserved_units - charged - released
        WHERE population_id = NEW.account;
    RETURN NULL;
END
$$;

CREATE TRIGGER settled AFTER UPDATE ON ledger.reservation FOR EACH ROW
    WHEN (NEW.spent_units <> OLD.spent_units OR NEW.state <> OLD.state)
    EXECUTE FUNCTION ledger.post_settlement();
