-- Two roles. All databases of the server share them, so they may exist already.
--   scrim_ledger  owns the schema and its functions, and cannot log in. It is not a superuser,
--                 so the SECURITY DEFINER functions can do no more than the ledger needs.
--   scrim_app     the service and its workers; a password is given to it outside the migrations.
DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['scrim_ledger', 'scrim_app'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL; -- created before, or by a migration of another database at this very moment
        END;
    END LOOP;
END
$$;

-- A migrating role that is not a superuser must be able to change the owner of the objects.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'scrim_ledger', 'SET') THEN
        GRANT scrim_ledger TO CURRENT_USER;
    END IF;
END
$$;

CREATE SCHEMA ledger AUTHORIZATION scrim_ledger;
