-- The name of a table, which is locked in a mode, as statements write it. It is looked up again once the lock is granted, as the lock may
-- have been waited for: meanwhile, the name could come to stand for another. Only the library can keep the schema from being renamed after
-- that.
CREATE FUNCTION _snowflake.held(tbl regclass, mode text) RETURNS text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    name text;
BEGIN
    FOR attempt IN 1..20 LOOP
        SELECT format('%I.%I', n.nspname, c.relname) INTO name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = tbl AND pg_has_role(c.relowner, 'USAGE');
        EXIT WHEN NOT FOUND;
        BEGIN
            EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', name, mode);
            IF to_regclass(name) = tbl THEN
                RETURN name;
            END IF;
        EXCEPTION WHEN undefined_table OR invalid_schema_name OR wrong_object_type OR insufficient_privilege THEN
            -- It had this name.
        END;
    END LOOP;
    RAISE serialization_failure USING MESSAGE = format('others changed table %s meanwhile', coalesce(name, tbl::text)),
        DETAIL = 'It was dropped, renamed, or given to another role while this call waited for it.', HINT = 'Call it again.';
END $$;
