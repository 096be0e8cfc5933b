-- pg_snowflake in SQL and PL/pgSQL, for servers where no library can be installed. Made by scripts/hosted; docs/hosted.md says how to
-- install it. It can be run again, and so is also the script of an upgrade.
--
-- It is one statement: all of it is done or nothing, however it is run. What stands here without a schema is looked up in pg_catalog
-- and in _snowflake, where nobody else can create anything. So functions are made and replaced in _snowflake, and at the end moved to
-- the schema where they are called.

@listed@

DO $pg_snowflake$
DECLARE
    -- Types of variables are looked up by the caller's search_path, so their names have a schema.
    path CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    schemas CONSTANT pg_catalog.name[] := pg_catalog.current_schemas(false);
    -- By these, PL/pgSQL would refuse what is meant, or texts would mean something else.
    strings CONSTANT pg_catalog.text := pg_catalog.current_setting('standard_conforming_strings');
    errors CONSTANT pg_catalog.text := pg_catalog.current_setting('plpgsql.extra_errors');
    warnings CONSTANT pg_catalog.text := pg_catalog.current_setting('plpgsql.extra_warnings');
    -- What is made outside of _snowflake, with the comment by which an earlier run is known.
    known CONSTANT pg_catalog.text[] := ARRAY[
@known@
    ];
    in_extension pg_catalog.bool := true;
    me pg_catalog.oid;
    owner pg_catalog.oid;
    target pg_catalog.name;
    found_in pg_catalog.name[];
    findings pg_catalog.text;
    theirs pg_catalog.bool;
    earlier pg_catalog.regprocedure[];
    earlier_types pg_catalog.regtype[];
    made pg_catalog.regprocedure;
    made_type pg_catalog.regtype;
    statement pg_catalog.text;
    privileges pg_catalog.aclitem[];
    carried pg_catalog.text[] := '{}';
    before pg_catalog.text[];
    sequences pg_catalog.oid[];
BEGIN
PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
PERFORM set_config('standard_conforming_strings', 'on', true), set_config('plpgsql.extra_errors', 'none', true),
    set_config('plpgsql.extra_warnings', 'none', true);

-- In a database that has the extension, only the extension's own update may run this.
BEGIN
    PERFORM pg_extension_config_dump('pg_class', '');
EXCEPTION
    WHEN object_not_in_prerequisite_state THEN
        NULL; -- CREATE EXTENSION or ALTER EXTENSION
    WHEN feature_not_supported THEN
        in_extension := false;
        IF EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_snowflake') THEN
            RAISE duplicate_object USING MESSAGE = 'extension pg_snowflake is created in this database already',
                HINT = 'Update it by ALTER EXTENSION pg_snowflake UPDATE.';
        END IF;
END;
SELECT oid INTO me FROM pg_roles WHERE rolname = current_user;
SELECT nspowner INTO owner FROM pg_namespace WHERE nspname = '_snowflake';
-- Of a tool that makes the schemas that a database had, as Rails does: it is made anew, below.
IF owner = me AND NOT EXISTS (
    SELECT FROM pg_namespace AS n
        JOIN pg_depend AS d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
        OR d.classid = 'pg_namespace'::regclass AND d.objid = n.oid
    WHERE n.nspname = '_snowflake'
) THEN
    DROP SCHEMA _snowflake RESTRICT;
    owner := NULL;
END IF;

-- The schema where functions are called: that of the extension, or of the run before, or the first on the search_path. A schema that
-- somebody else could have put there, such as one with the name of this role, is not taken.
SELECT array_agg(nspname) INTO found_in FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
    WHERE proname = 'snowflake_configure' AND proowner = me AND owner = me AND nspname <> '_snowflake'
    AND obj_description(p.oid, 'pg_proc') = (SELECT known[i][2] FROM generate_subscripts(known, 1) AS i
        WHERE known[i][1] LIKE 'snowflake\_configure(%');
IF in_extension OR schemas[1] = ANY (found_in) THEN
    target := schemas[1];
ELSIF cardinality(found_in) = 1 THEN
    target := found_in[1];
ELSIF cardinality(found_in) > 1 THEN
    RAISE ambiguous_function USING MESSAGE = 'the extension in SQL is installed more than once',
        DETAIL = format('It is in the schemas %s.', (SELECT string_agg(quote_ident(s), ', ' ORDER BY s) FROM unnest(found_in) AS s)),
        HINT = 'Say by search_path which one is meant, for example SET search_path = public;';
ELSE
    SELECT nspname INTO target FROM pg_namespace JOIN pg_roles AS r ON r.oid = nspowner
        WHERE nspname = ANY (schemas) AND nspname <> '_snowflake' AND nspname NOT LIKE 'pg\_%'
        AND (nspowner = me OR rolsuper OR rolname = 'pg_database_owner'
            OR nspowner = (SELECT datdba FROM pg_database WHERE datname = current_database())
            OR pg_has_role(nspowner, 'USAGE') AND NOT (SELECT rolsuper FROM pg_roles WHERE oid = me))
        ORDER BY array_position(schemas, nspname) LIMIT 1;
    IF target IS NULL THEN
        RAISE invalid_schema_name USING MESSAGE = 'there is no schema on the search_path for the extension in SQL',
            DETAIL = format('The search_path is "%s". Schemas of other roles do not count.', path),
            HINT = 'For example: CREATE SCHEMA ids; SET search_path = ids;';
    ELSIF target <> schemas[1] THEN
        RAISE NOTICE 'schema % belongs to another role: the functions are in schema %', quote_ident(schemas[1]), quote_ident(target);
    END IF;
END IF;

-- What is there already, and whose it is. Nothing is taken over.
WITH outside AS (
    SELECT comment, CASE WHEN is_function THEN to_regprocedure(place) END AS f, CASE WHEN NOT is_function THEN to_regtype(place) END AS t
    FROM (
        SELECT known[i][2] AS comment, format('%I.%s', target, known[i][1]) AS place, strpos(known[i][1], '(') > 0 AS is_function
        FROM generate_subscripts(known, 1) AS i
    ) AS k
), object AS (
    SELECT 'pg_namespace'::regclass AS class, oid, nspowner AS owner,
        obj_description(oid, 'pg_namespace') = 'pg_snowflake''s internal record of the IDs of this database' AS is_ours
    FROM pg_namespace WHERE nspname = '_snowflake'
    UNION ALL
    -- Owners of all kinds of objects are in pg_shdepend, but for that of the first superuser.
    SELECT d.classid::regclass, d.objid, coalesce((SELECT s.refobjid FROM pg_shdepend AS s JOIN pg_database AS b ON b.oid = s.dbid
            WHERE b.datname = current_database() AND s.classid = d.classid AND s.objid = d.objid AND s.objsubid = 0
            AND s.deptype = 'o'), 10),
        EXISTS (SELECT FROM pg_proc WHERE d.classid = 'pg_proc'::regclass AND oid = d.objid AND prokind IN ('f', 'p'))
            OR EXISTS (SELECT FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid AND relkind = 'S')
    FROM pg_depend AS d JOIN pg_namespace AS n ON n.oid = d.refobjid
    WHERE d.refclassid = 'pg_namespace'::regclass AND n.nspname = '_snowflake' AND d.classid <> 'pg_default_acl'::regclass
    UNION ALL
    SELECT 'pg_proc'::regclass, oid, proowner, prokind IN ('f', 'p') AND obj_description(oid, 'pg_proc') IS NOT DISTINCT FROM comment
    FROM outside JOIN pg_proc ON oid = f
    UNION ALL
    SELECT 'pg_type'::regclass, oid, typowner, typtype IN ('c', 'd') AND obj_description(oid, 'pg_type') IS NOT DISTINCT FROM comment
    FROM outside JOIN pg_type ON oid = t
), examined AS (
    SELECT o.*, p.pronamespace, CASE WHEN o.owner <> me THEN format('Of role %I', pg_get_userbyid(o.owner))
        WHEN is_ours IS NOT TRUE THEN 'Not made by this file' END AS finding
    FROM object AS o LEFT JOIN pg_proc AS p ON class = 'pg_proc'::regclass AND p.oid = o.oid
), summed_up AS (
    SELECT finding, count(*) AS number, array_agg(pg_describe_object(class, oid, 0) ORDER BY class DESC, oid) AS names
    FROM examined WHERE finding IS NOT NULL GROUP BY finding
)
SELECT (SELECT string_agg(format('%s: %s%s.', finding, array_to_string(names[:5], ', '),
            CASE WHEN number > 5 THEN format(' and %s more', number - 5) END), ' ' ORDER BY finding DESC) FROM summed_up),
    bool_or(e.owner <> me),
    coalesce(array_agg(e.oid::regprocedure) FILTER (WHERE pronamespace IS DISTINCT FROM n.oid AND class = 'pg_proc'::regclass), '{}'),
    coalesce(array_agg(e.oid::regtype) FILTER (WHERE class = 'pg_type'::regclass), '{}')
    INTO findings, theirs, earlier, earlier_types
    FROM examined AS e LEFT JOIN pg_namespace AS n ON nspname = '_snowflake';
IF findings IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = CASE WHEN theirs THEN 'insufficient_privilege' ELSE 'duplicate_object' END,
        MESSAGE = 'the extension in SQL would create objects that are there already, and are not its own', DETAIL = findings,
        HINT = CASE WHEN owner <> me THEN format('If role %1$I has installed the extension in SQL here, that role updates it: '
                'SET ROLE %1$I, and run the file again. If not, have these dropped.', pg_get_userbyid(owner))
            ELSE 'Drop or rename them. If this file made them before, and a restore has lost their comments, set the comments '
                'that this file has by COMMENT ON.' END;
ELSIF owner IS NULL AND NOT has_database_privilege(current_database(), 'CREATE') THEN
    RAISE insufficient_privilege USING MESSAGE = format('role %I may not create schemas in this database', current_user),
        DETAIL = 'The extension in SQL has the schema _snowflake.',
        HINT = format('For example: GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user);
ELSIF NOT has_schema_privilege(target, 'CREATE') THEN
    RAISE insufficient_privilege USING MESSAGE = format('role %I may not create functions in schema %I', current_user, target),
        HINT = format('For example: GRANT CREATE ON SCHEMA %I TO %I;', target, current_user);
END IF;

IF owner IS NULL THEN
    CREATE SCHEMA _snowflake;
END IF;
-- ALTER DEFAULT PRIVILEGES may have taken it from its own creator, by now or when it was made.
GRANT ALL ON SCHEMA _snowflake TO CURRENT_USER;
-- Whoever else could create anything in _snowflake could be called from here.
FOR statement IN
    SELECT format('REVOKE ALL ON SCHEMA _snowflake FROM %s CASCADE', CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
    FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
    WHERE nspname = '_snowflake' AND grantee <> me AND (owner IS NULL OR privilege_type = 'CREATE')
LOOP
    EXECUTE statement;
END LOOP;
FOREACH made IN ARRAY earlier LOOP
    EXECUTE format('ALTER ROUTINE %s SET SCHEMA _snowflake', made);
END LOOP;
FOREACH made_type IN ARRAY earlier_types LOOP
    EXECUTE format('ALTER TYPE %s SET SCHEMA _snowflake', made_type);
END LOOP;
-- Functions of an earlier version that now have an argument more. Who could call them may call the new ones.
FOR statement, privileges, made IN
    SELECT o.new, p.proacl, p.oid FROM (VALUES
        ('snowflake_create_partitions', 'regclass, interval, timestamptz, timestamptz', 'text'),
        ('snowflake_maintain_partitions', 'regclass, interval, interval, interval, text, boolean, text', 'text'),
        ('snowflake_partition_default_rows', 'regclass, interval, boolean', 'text'),
        ('_snowflake.check_default', 'regclass, record, name, text[], bigint[], bigint[], bigint[], boolean', NULL),
        ('_snowflake.partition_default_rows', 'regclass, interval, boolean, bigint', NULL),
        ('_snowflake.old_partitions', 'regclass, bigint, bigint, bigint, text, bigint, bigint[], boolean', NULL)
    ) AS v (name, arguments, added), LATERAL (
        SELECT CASE WHEN added IS NULL THEN format('%s(%s)', name, arguments) ELSE format('%I.%s(%s)', target, name, arguments) END AS old,
            CASE WHEN added IS NOT NULL THEN format('%s(%s, %s)', name, arguments, added) END AS new
    ) AS o JOIN pg_proc AS p ON p.oid = to_regprocedure(o.old)
    WHERE p.proowner = me AND (added IS NULL OR EXISTS (SELECT FROM generate_subscripts(known, 1) AS i
        WHERE known[i][1] LIKE replace(name, '_', '\_') || '(%' AND known[i][2] = obj_description(p.oid, 'pg_proc')))
LOOP
    IF privileges IS NOT NULL AND statement IS NOT NULL THEN
        carried := carried || format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', statement)
            || ARRAY(SELECT format('GRANT EXECUTE ON ROUTINE %s TO %s%s', statement,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
                CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) FROM aclexplode(privileges));
    END IF;
    EXECUTE format('DROP ROUTINE %s', made);
END LOOP;
SELECT coalesce(array_agg(concat_ws(' ', oid, ctid)), '{}') INTO before FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace;
SELECT coalesce(array_agg(oid), '{}') INTO sequences FROM pg_class WHERE relnamespace = '_snowflake'::regnamespace AND relkind = 'S';
PERFORM set_config('search_path', '_snowflake, pg_temp', true);
