-- A schema _snowflake that is there already. Tools that write down a database schema by schema, as
-- Rails 7.1 to 8.0 do in schema.rb, make it before they create the extension. If nothing is in it
-- and it belongs to the role that creates the extension, it goes, and part database.sql makes it
-- anew: nobody else has owned that one, or can still be creating something in it.

DO $$
DECLARE
    creator CONSTANT pg_catalog.oid := (SELECT e.extowner FROM pg_catalog.pg_extension AS e
        WHERE e.extname OPERATOR(pg_catalog.=) 'pg_snowflake');
    earlier pg_catalog.oid;
    keeper pg_catalog.oid;
    inside pg_catalog.text;
BEGIN
    -- This may run as a superuser. The lock keeps others from renaming it, giving it away, and
    -- dropping it, so that what is dropped below is what was looked at here.
    SELECT n.oid, n.nspowner INTO earlier, keeper FROM pg_catalog.pg_namespace AS n
        WHERE n.nspname OPERATOR(pg_catalog.=) '_snowflake' FOR UPDATE;
    IF earlier IS NULL THEN
        RETURN;
    END IF;
    IF keeper OPERATOR(pg_catalog.<>) creator THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'schema "_snowflake" exists already, and belongs to another role',
            DETAIL = pg_catalog.format('It belongs to role %I. The extension makes a schema of '
                'this name for its record.', pg_catalog.pg_get_userbyid(keeper)),
            HINT = pg_catalog.format('Have role %I drop or rename it: ALTER SCHEMA _snowflake '
                'RENAME TO ...', pg_catalog.pg_get_userbyid(keeper));
    END IF;
    -- All kinds of objects, default privileges, publications; and an extension that it belongs to.
    SELECT pg_catalog.string_agg(found.object, ', ') INTO inside FROM (
        SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) AS object
        FROM pg_catalog.pg_depend AS d
        WHERE d.refclassid OPERATOR(pg_catalog.=)
                'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
            AND d.refobjid OPERATOR(pg_catalog.=) earlier
        UNION ALL
        SELECT pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
        FROM pg_catalog.pg_depend AS d
        WHERE d.classid OPERATOR(pg_catalog.=)
                'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid
            AND d.objid OPERATOR(pg_catalog.=) earlier
        LIMIT 5
    ) AS found;
    IF inside IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_schema',
            MESSAGE = 'schema "_snowflake" exists already, and is not empty',
            DETAIL = pg_catalog.format('Among others, it has: %s. The extension makes a schema of '
                'this name for its record.', inside),
            HINT = 'Drop what is in it, or rename it: ALTER SCHEMA _snowflake RENAME TO ... '
                'For an extension in another schema: CREATE EXTENSION pg_snowflake SCHEMA ...';
    END IF;
    DROP SCHEMA _snowflake RESTRICT;
END $$;
