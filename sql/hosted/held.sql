-- Ends the call if somebody else can put another table in the place of one, as the owner of its schema can: by a new name for the schema, or
-- by DROP. Only the library can keep a schema from being renamed. Trusted are superusers, the owners of the database and of the extension's
-- functions, and whoever has the caller's rights anyway.
CREATE FUNCTION _snowflake.check_schema(tbl regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
BEGIN
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, n.nspname, pg_get_userbyid(n.nspowner) AS owner INTO c
        FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace JOIN pg_roles AS o ON o.oid = n.nspowner
        WHERE t.oid = tbl AND NOT o.rolsuper AND o.rolname <> 'pg_database_owner' AND NOT pg_has_role(o.oid, quote_ident(current_user)::regrole, 'USAGE')
        AND n.nspowner <> (SELECT datdba FROM pg_database WHERE datname = current_database())
        AND n.nspowner <> (SELECT nspowner FROM pg_namespace WHERE nspname = '_snowflake') AND n.oid <> pg_my_temp_schema();
    IF FOUND THEN
        RAISE insufficient_privilege USING MESSAGE = format('table %s is in a schema of role %I, and the caller is role %I', c.quoted, c.owner,
                current_user),
            DETAIL = 'While this call waits for a lock, the owner of the schema could put another table in the place of this one, and its code '
                'would run as the caller: the extension in SQL cannot exclude that, as the library does.',
            HINT = format('Give the schema another owner, for example ALTER SCHEMA %I OWNER TO %I;', c.nspname, current_user);
    END IF;
END $$;

-- The name of a table of the caller's, which is locked in a mode, as statements write it. It is looked up again once the lock is granted, as
-- the lock may have been waited for: meanwhile, the name could come to stand for another, or the table get another owner.
CREATE FUNCTION _snowflake.held(tbl regclass, mode text) RETURNS text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    name text;
    known text;
BEGIN
    PERFORM _snowflake.check_schema(tbl);
    FOR attempt IN 1..20 LOOP
        SELECT format('%I.%I', n.nspname, c.relname) INTO name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.oid = tbl AND pg_get_userbyid(c.relowner) = current_user;
        EXIT WHEN NOT FOUND;
        known := name;
        BEGIN
            EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', name, mode);
            IF to_regclass(name) = tbl AND EXISTS (SELECT FROM pg_class WHERE oid = tbl AND pg_get_userbyid(relowner) = current_user) THEN
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
    PERFORM _snowflake.check_schema(sequence);
    PERFORM pg_sequence_last_value(sequence);
    SELECT format('%I.%I', n.nspname, c.relname) INTO name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.oid = sequence;
    IF to_regclass(name) IS DISTINCT FROM sequence THEN
        RAISE serialization_failure USING MESSAGE = format('sequence %s was changed by others meanwhile', coalesce(name, sequence::text)),
            DETAIL = 'It was dropped or renamed while this call waited for it.', HINT = 'Call it again.';
    END IF;
    EXECUTE format('SELECT last_value, is_called FROM %s', name) INTO last_value, is_called;
END $$;
