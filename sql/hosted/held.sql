-- The name of a table, which is locked in a mode, as statements write it. It is looked up again once the lock is granted, as the lock may
-- have been waited for: meanwhile, the name could come to stand for another. Only the library can keep the schema from being renamed after
-- that.
CREATE FUNCTION _snowflake.held(tbl regclass, mode text) RETURNS text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    name text;
    known text;
BEGIN
    FOR attempt IN 1..20 LOOP
        SELECT format('%I.%I', n.nspname, c.relname) INTO name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = tbl AND pg_has_role(c.relowner, 'USAGE');
        EXIT WHEN NOT FOUND;
        known := name;
        BEGIN
            EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', name, mode);
            IF to_regclass(name) = tbl THEN
                RETURN name;
            END IF;
        EXCEPTION WHEN undefined_table OR invalid_schema_name OR wrong_object_type OR insufficient_privilege THEN
            -- It had this name.
        END;
    END LOOP;
    RAISE serialization_failure USING MESSAGE = format('table %s was changed by others meanwhile', coalesce(known, tbl::text)),
        DETAIL = 'It was dropped, renamed, or given to another role while this call waited for it.', HINT = 'Call it again.';
END $$;

-- Where a sequence is. It is locked by its OID first, so that nothing is waited for between the look at its name and the query.
CREATE FUNCTION _snowflake.place_of(sequence regclass, OUT last_value bigint, OUT is_called boolean)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    name text;
BEGIN
    PERFORM pg_sequence_last_value(sequence);
    SELECT format('%I.%I', n.nspname, c.relname) INTO name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = sequence;
    IF to_regclass(name) IS DISTINCT FROM sequence THEN
        RAISE serialization_failure USING MESSAGE = format('sequence %s was changed by others meanwhile', coalesce(name, sequence::text)),
            DETAIL = 'It was dropped or renamed while this call waited for it.', HINT = 'Call it again.';
    END IF;
    EXECUTE format('SELECT last_value, is_called FROM %s', name) INTO last_value, is_called;
END $$;
