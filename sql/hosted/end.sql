-- A function of an earlier version, or of somebody's, that was not replaced could be called instead of PostgreSQL's.
SELECT string_agg(format('Function %s was not made by this file.', oid::regprocedure), ' ' ORDER BY oid) INTO findings
    FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace AND concat_ws(' ', oid, ctid) = ANY (before);
IF findings IS NOT NULL THEN
    RAISE duplicate_object USING MESSAGE = 'the schema _snowflake has what is not of the extension in SQL', DETAIL = findings,
        HINT = 'Drop it, or move it to another schema by ALTER FUNCTION ... SET SCHEMA.';
END IF;

-- Where IDs are made, the layout is bounded, as snowflake_configure() does it now.
IF coalesce(pg_sequence_last_value('_snowflake.end'), 0) > 0
    AND _snowflake.recorded_layout((_snowflake.record()).form, (_snowflake.record()).epoch) IS NOT NULL THEN
    PERFORM _snowflake.begin_with(_snowflake.layout(), false);
END IF;

-- Privileges, whatever ALTER DEFAULT PRIVILEGES says. Those that were granted since an earlier run stay, but not to set or draw from the
-- record, nor on internal functions.
FOR statement IN
    SELECT s FROM (
        SELECT 1 AS step, format('REVOKE ALL ON %s %s FROM %s CASCADE', kind, name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS s
        FROM (
            SELECT 'ROUTINE' AS kind, oid::regprocedure::text AS name, coalesce(proacl, acldefault('f', proowner)) AS acl
            FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace AND oid <> ALL (earlier)
            UNION ALL
            SELECT 'SEQUENCE', oid::regclass::text, coalesce(relacl, acldefault('s', relowner))
            FROM pg_class WHERE relnamespace = '_snowflake'::regnamespace AND relkind = 'S' AND oid <> ALL (sequences)
            UNION ALL
            SELECT 'TYPE', oid::regtype::text, coalesce(typacl, acldefault('T', typowner))
            FROM pg_type WHERE oid IN ('snowflake_parts'::regtype, 'snowflake_id'::regtype) AND oid <> ALL (earlier_types)
        ) AS made_now, aclexplode(acl) WHERE grantee <> me
        UNION ALL
        SELECT 1, format('REVOKE USAGE, UPDATE ON SEQUENCE %s FROM %s CASCADE', oid::regclass,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
        FROM pg_class, aclexplode(relacl) WHERE oid = ANY (sequences) AND grantee <> me
        UNION ALL
        SELECT 2, format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', oid::regprocedure)
        FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace AND oid <> ALL (earlier)
        UNION ALL
        SELECT 2, format('GRANT USAGE ON TYPE %s TO PUBLIC', oid::regtype) FROM pg_type
        WHERE oid IN ('snowflake_parts'::regtype, 'snowflake_id'::regtype) AND oid <> ALL (earlier_types)
    ) AS statements ORDER BY step
LOOP
    EXECUTE statement;
END LOOP;
GRANT ALL ON SCHEMA _snowflake TO CURRENT_USER;
GRANT ALL ON ALL SEQUENCES IN SCHEMA _snowflake TO CURRENT_USER;
GRANT ALL ON ALL ROUTINES IN SCHEMA _snowflake TO CURRENT_USER;
GRANT ALL ON TYPE snowflake_parts TO CURRENT_USER;
GRANT ALL ON TYPE snowflake_id TO CURRENT_USER;
@privileges@
FOREACH statement IN ARRAY carried LOOP
    EXECUTE statement;
END LOOP;

FOR made IN SELECT oid FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace AND proname LIKE 'snowflake\_%' LOOP
    EXECUTE format('ALTER ROUTINE %s SET SCHEMA %I', made, target);
END LOOP;
EXECUTE format('ALTER TYPE snowflake_parts SET SCHEMA %I', target);
EXECUTE format('ALTER TYPE snowflake_id SET SCHEMA %I', target);
PERFORM set_config('standard_conforming_strings', strings, true), set_config('plpgsql.extra_errors', errors, true),
    set_config('plpgsql.extra_warnings', warnings, true), set_config('search_path', path, true);
END $pg_snowflake$;
