-- pg_snowflake in SQL and PL/pgSQL, for servers where no library can be installed. Made by scripts/hosted; docs/hosted.md says how to
-- install it. It can be run again, and so is also the script of an upgrade.
--
-- It is one statement: all of it is done or nothing, however it is run. What stands here without a schema is looked up in pg_catalog
-- and in _snowflake, where nobody else can create anything. So functions are made and replaced in _snowflake, and at the end moved to
-- the schema where they are called.

-- In dumps: snowflake_database_layout\(\) 
-- In dumps: snowflake_timestamp\(bigint\) 
-- In dumps: snowflake_timestamp\(id bigint\) 
-- In dumps: snowflake_datacenter\(bigint\) 
-- In dumps: snowflake_datacenter\(id bigint\) 
-- In dumps: snowflake_worker\(bigint\) 
-- In dumps: snowflake_worker\(id bigint\) 
-- In dumps: snowflake_sequence\(bigint\) 
-- In dumps: snowflake_sequence\(id bigint\) 
-- In dumps: snowflake_decode\(bigint\) 
-- In dumps: snowflake_decode\(id bigint\) 
-- In dumps: snowflake_encode\(timestamp with time zone, integer, integer, integer\) 
-- In dumps: snowflake_encode\("timestamp" timestamp with time zone, worker_id integer, sequence integer, datacenter_id integer\) 
-- In dumps: snowflake_encode\(timestamp timestamp with time zone, worker_id integer, sequence integer, datacenter_id integer\) 
-- In dumps: snowflake_timestamp\(bigint, text\) 
-- In dumps: snowflake_timestamp\(id bigint, layout text\) 
-- In dumps: snowflake_datacenter\(bigint, text\) 
-- In dumps: snowflake_datacenter\(id bigint, layout text\) 
-- In dumps: snowflake_worker\(bigint, text\) 
-- In dumps: snowflake_worker\(id bigint, layout text\) 
-- In dumps: snowflake_sequence\(bigint, text\) 
-- In dumps: snowflake_sequence\(id bigint, layout text\) 
-- In dumps: snowflake_decode\(bigint, text\) 
-- In dumps: snowflake_decode\(id bigint, layout text\) 
-- In dumps: snowflake_encode\(timestamp with time zone, integer, integer, integer, text\) 
-- In dumps: snowflake_encode\("timestamp" timestamp with time zone, worker_id integer, sequence integer, datacenter_id integer, layout text\) 
-- In dumps: snowflake_encode\(timestamp timestamp with time zone, worker_id integer, sequence integer, datacenter_id integer, layout text\) 
-- In dumps: snowflake_layouts\(\) 
-- In dumps: snowflake_min_id\(timestamp with time zone\) 
-- In dumps: snowflake_min_id\(at timestamp with time zone\) 
-- In dumps: snowflake_max_id\(timestamp with time zone\) 
-- In dumps: snowflake_max_id\(at timestamp with time zone\) 
-- In dumps: snowflake_max_id_before\(timestamp with time zone\) 
-- In dumps: snowflake_max_id_before\(at timestamp with time zone\) 
-- In dumps: snowflake_between\(bigint, timestamp with time zone, timestamp with time zone\) 
-- In dumps: snowflake_between\(id bigint, since timestamp with time zone, until timestamp with time zone\) 
-- In dumps: snowflake_min_id\(timestamp with time zone, text\) 
-- In dumps: snowflake_min_id\(at timestamp with time zone, layout text\) 
-- In dumps: snowflake_max_id\(timestamp with time zone, text\) 
-- In dumps: snowflake_max_id\(at timestamp with time zone, layout text\) 
-- In dumps: snowflake_max_id_before\(timestamp with time zone, text\) 
-- In dumps: snowflake_max_id_before\(at timestamp with time zone, layout text\) 
-- In dumps: snowflake_between\(bigint, timestamp with time zone, timestamp with time zone, text\) 
-- In dumps: snowflake_between\(id bigint, since timestamp with time zone, until timestamp with time zone, layout text\) 
-- In dumps: snowflake_next\(\) 
-- In dumps: snowflake_next\(integer\) 
-- In dumps: snowflake_next\(count integer\) 
-- In dumps: snowflake_to_text\(bigint, text\) 
-- In dumps: snowflake_to_text\(id bigint, form text\) 
-- In dumps: snowflake_from_text\(text, text\) 
-- In dumps: snowflake_from_text\("text" text, form text\) 
-- In dumps: snowflake_from_text\(text text, form text\) 
-- In dumps: snowflake_age\(bigint\) 
-- In dumps: snowflake_age\(id bigint\) 
-- In dumps: snowflake_age\(bigint, text\) 
-- In dumps: snowflake_age\(id bigint, layout text\) 
-- In dumps: snowflake_create_partitions\(regclass, interval, timestamp with time zone, timestamp with time zone\) 
-- In dumps: snowflake_create_partitions\(parent regclass, every interval, since timestamp with time zone, until timestamp with time zone\) 
-- In dumps: snowflake_maintain_partitions\(regclass, interval, interval, interval, text, boolean, text\) 
-- In dumps: snowflake_maintain_partitions\(parent regclass, every interval, ahead interval, retention interval, expired text, dry_run boolean, default_rows text\) 
-- In dumps: snowflake_time_encoder\(timestamp with time zone\) 
-- In dumps: snowflake_time_encoder\(at timestamp with time zone\) 
-- In dumps: snowflake_time_decoder\(text\) 
-- In dumps: snowflake_time_decoder\("text" text\) 
-- In dumps: snowflake_time_decoder\(text text\) 
-- In dumps: snowflake_preflight\(text, timestamp with time zone, integer, integer, boolean, double precision, integer, boolean, timestamp with time zone, regclass\[\], name\) 
-- In dumps: snowflake_preflight\(layout text, epoch timestamp with time zone, servers integer, datacenters integer, leases boolean, ids_per_second double precision, years integer, javascript boolean, oldest_row timestamp with time zone, keys regclass\[\], key_column name\) 
-- In dumps: snowflake_adopt_plan\(regclass, name, text\) 
-- In dumps: snowflake_adopt_plan\(tbl regclass, col name, views text\) 
-- In dumps: snowflake_adopt\(regclass, name, text\) 
-- In dumps: snowflake_adopt\(tbl regclass, col name, views text\) 
-- In dumps: snowflake_release_plan\(regclass, name, bigint, boolean\) 
-- In dumps: snowflake_release_plan\(tbl regclass, col name, start bigint, identity boolean\) 
-- In dumps: snowflake_release\(regclass, name, bigint, boolean\) 
-- In dumps: snowflake_release\(tbl regclass, col name, start bigint, identity boolean\) 
-- In dumps: snowflake_partition_default_rows\(regclass, interval, boolean\) 
-- In dumps: snowflake_partition_default_rows\(IN parent regclass, IN every interval, IN dry_run boolean\) 
-- In dumps: snowflake_configure\(integer, integer, text\) 
-- In dumps: snowflake_configure\(worker_id integer, datacenter_id integer, layout text\) 
-- In dumps: snowflake_status\(\) 
-- In dumps: TYPE (.* )?snowflake_parts 
-- In dumps: _snowflake 
-- In dumps: DOMAIN (.* )?snowflake_id 

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
        ['snowflake_id', 'a bigint, for tables that are declared as with the library; JSON functions write it as a number'],
        ['snowflake_database_layout()', 'layout of the snowflake IDs of this database, in full notation'],
        ['snowflake_parts', 'parts of a snowflake ID; a part that its layout does not have is NULL'],
        ['snowflake_timestamp(bigint)', 'time of a snowflake ID, rounded down to a tick of its layout'],
        ['snowflake_datacenter(bigint)', 'datacenter of a snowflake ID; NULL if the layout has none'],
        ['snowflake_worker(bigint)', 'worker of a snowflake ID; NULL if the layout has none'],
        ['snowflake_sequence(bigint)', 'sequence number of a snowflake ID within its tick'],
        ['snowflake_decode(bigint)', 'parts of a snowflake ID'],
        ['snowflake_encode(timestamptz, integer, integer, integer)', 'composes a snowflake ID from its parts, for tests and for existing rows; does not ensure that it is unique'],
        ['snowflake_timestamp(bigint, text)', 'time of a snowflake ID of the given layout, rounded down to a tick'],
        ['snowflake_datacenter(bigint, text)', 'datacenter of a snowflake ID of the given layout; NULL if the layout has none'],
        ['snowflake_worker(bigint, text)', 'worker of a snowflake ID of the given layout; NULL if the layout has none'],
        ['snowflake_sequence(bigint, text)', 'sequence number of a snowflake ID of the given layout; NULL if the layout has none'],
        ['snowflake_decode(bigint, text)', 'parts of a snowflake ID of the given layout'],
        ['snowflake_encode(timestamptz, integer, integer, integer, text)', 'composes a snowflake ID of the given layout from its parts; does not ensure that it is unique'],
        ['snowflake_layouts()', 'built-in layouts of snowflake IDs; ids_per_second is the highest rate of one worker'],
        ['snowflake_min_id(timestamptz)', 'lowest snowflake ID whose time is at or after the given one'],
        ['snowflake_max_id(timestamptz)', 'highest snowflake ID whose time is at or before the given one'],
        ['snowflake_max_id_before(timestamptz)', 'highest snowflake ID whose time is before the given one'],
        ['snowflake_between(bigint, timestamptz, timestamptz)', 'whether the time of a snowflake ID is at or after since and before until; can use an index on the ID'],
        ['snowflake_min_id(timestamptz, text)', 'lowest snowflake ID of the given layout whose time is at or after the given one'],
        ['snowflake_max_id(timestamptz, text)', 'highest snowflake ID of the given layout whose time is at or before the given one'],
        ['snowflake_max_id_before(timestamptz, text)', 'highest snowflake ID of the given layout whose time is before the given one'],
        ['snowflake_between(bigint, timestamptz, timestamptz, text)', 'whether the time of a snowflake ID of the given layout is at or after since and before until; can use an index on the ID'],
        ['snowflake_next()', 'next snowflake ID of this server'],
        ['snowflake_next(integer)', 'the given number of next snowflake IDs of this server, in ascending order'],
        ['snowflake_to_text(bigint, text)', 'writes a snowflake ID in the given text form'],
        ['snowflake_from_text(text, text)', 'reads a snowflake ID that is written in the given text form'],
        ['snowflake_age(bigint)', 'time from a snowflake ID to the start of the transaction'],
        ['snowflake_age(bigint, text)', 'time from a snowflake ID of the given layout to the start of the transaction'],
        ['snowflake_create_partitions(regclass, interval, timestamptz, timestamptz)', 'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them'],
        ['snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean, text)', 'for a job: creates the missing partitions of the time ahead, and detaches or drops those that are older than the retention'],
        ['snowflake_time_encoder(timestamptz)', 'lowest snowflake ID whose time is at or after the given one, in decimal form; for p_time_encoder of pg_partman'],
        ['snowflake_time_decoder(text)', 'time of a snowflake ID in decimal form; for p_time_decoder of pg_partman'],
        ['snowflake_preflight(text, timestamptz, integer, integer, boolean, double precision, integer, boolean, timestamptz, regclass[], name)', 'checks a layout and the settings of this server before the first snowflake ID is made: until when IDs last, how many servers and IDs a second there is room for, which rows can have IDs, whether existing keys sort below; changes nothing'],
        ['snowflake_adopt_plan(regclass, name, text)', 'what snowflake_adopt() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing'],
        ['snowflake_adopt(regclass, name, text)', 'gives an existing column the default snowflake_next(), and makes it and all columns that refer to it bigint; new IDs are at or above first_id, old numbers below it'],
        ['snowflake_release_plan(regclass, name, bigint, boolean)', 'what snowflake_release() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode; does nothing'],
        ['snowflake_release(regclass, name, bigint, boolean)', 'gives a column whose default is snowflake_next() back what it had before, or else a sequence or an identity; returns the next value, where it is known'],
        ['snowflake_partition_default_rows(regclass, interval, boolean)', 'makes partitions, by ID time, for the rows of a default partition, and moves these there, each partition in a transaction of its own'],
        ['snowflake_configure(integer, integer, text)', 'sets the worker ID of this database, which no other may have that makes snowflake IDs; and, before the first ID, their layout'],
        ['snowflake_status()', 'state of the snowflake IDs of this database; does not make an ID']
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
SELECT coalesce(array_agg(concat_ws(' ', oid, ctid)), '{}') INTO before FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace;
SELECT coalesce(array_agg(oid), '{}') INTO sequences FROM pg_class WHERE relnamespace = '_snowflake'::regnamespace AND relkind = 'S';
PERFORM set_config('search_path', '_snowflake, pg_temp', true);
COMMENT ON SCHEMA _snowflake IS
    'pg_snowflake''s internal record of the IDs of this database';

CREATE SEQUENCE IF NOT EXISTS _snowflake.reservation AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.reservation IS
    'internal: upper bound of the times of the snowflake IDs of this database, in milliseconds since 1970';

IF in_extension THEN
    PERFORM pg_catalog.pg_extension_config_dump('_snowflake.reservation', '');
END IF;

CREATE SEQUENCE IF NOT EXISTS _snowflake.layout AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.layout IS
    'internal: fields and tick of the layout of this database, encoded as a number; see snowflake_database_layout()';

IF in_extension THEN
    PERFORM pg_catalog.pg_extension_config_dump('_snowflake.layout', '');
END IF;

CREATE SEQUENCE IF NOT EXISTS _snowflake.epoch AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.epoch IS
    'internal: epoch of the layout of this database, in microseconds since 1970; see snowflake_database_layout()';

IF in_extension THEN
    PERFORM pg_catalog.pg_extension_config_dump('_snowflake.epoch', '');
END IF;


-- The built-in layouts, in full notation.
CREATE OR REPLACE FUNCTION _snowflake.built_in() RETURNS TABLE (name text, layout text, source text)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 16 SET search_path = pg_catalog, pg_temp
    AS $$
    VALUES
        ('default', 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z', 'pg_snowflake'),
        ('twitter', 'timestamp=41 datacenter=5 worker=5 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z', 'twitter-archive/snowflake, tag snowflake-2010, IdWorker.scala'),
        ('discord', 'timestamp=41 worker=5 datacenter=5 sequence=12 tick=1ms epoch=2015-01-01T00:00:00Z', 'discord/discord-api-docs, Reference: Snowflakes; the process is the datacenter, the increment the sequence'),
        ('instagram', 'timestamp=40 worker=13 sequence=10 tick=1ms epoch=2011-08-24T21:07:01.721Z', 'Instagram Engineering, Sharding & IDs at Instagram, 2012; the shard is the worker'),
        ('mastodon', 'timestamp=47 sequence=16 tick=1ms epoch=1970-01-01T00:00:00Z', 'mastodon/mastodon, lib/mastodon/snowflake.rb; the tail, partly a hash, is the sequence'),
        ('sonyflake', 'timestamp=39 sequence=8 worker=16 tick=10ms epoch=2014-09-01T00:00:00Z', 'sony/sonyflake, v1; the machine is the worker'),
        ('sonyflake2', 'timestamp=39 sequence=8 worker=16 tick=10ms epoch=2025-01-01T00:00:00Z', 'sony/sonyflake, v2; the machine is the worker'),
        ('leaf', 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z', 'Meituan-Dianping/Leaf, SnowflakeIDGenImpl'),
        ('bwmarrin', 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z', 'bwmarrin/snowflake, with its default widths and epoch; the node is the worker, the step the sequence'),
        ('baidu', 'timestamp=28 worker=22 sequence=13 tick=1s epoch=2016-05-19T16:00:00Z', 'baidu/uid-generator, DefaultUidGenerator: 2016-05-20 in UTC+8'),
        ('cosid', 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2019-12-24T16:00:00Z', 'Ahoo-Wang/CosId, MillisecondSnowflakeId; the machine is the worker'),
        ('cosid-js', 'timestamp=41 worker=3 sequence=9 tick=1ms epoch=2019-12-24T16:00:00Z', 'Ahoo-Wang/CosId, SafeJavaScriptSnowflakeId; the machine is the worker'),
        ('yitter', 'timestamp=47 worker=6 sequence=6 tick=1ms epoch=2020-02-19T18:20:02Z', 'yitter/IdGenerator, with its default widths and base time'),
        ('tsid', 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2020-01-01T00:00:00Z', 'f4b6a3/tsid-creator, TSID-1024; the node is the worker, the counter the sequence'),
        ('cockroach', 'timestamp=48 worker=15 tick=10us epoch=2015-01-01T00:00:00Z', 'cockroachdb/cockroach, unique_rowid(); the node is the worker'),
        ('pgedge', 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2023-01-01T00:00:00Z', 'pgEdge/snowflake; the node is the worker, the count the sequence')
$$;

-- Layouts, as arrays of numbers:
--
--   [1] length of a tick in microseconds    [2] epoch in microseconds since 1970
--   [3] lowest bit of the timestamp         [4] last tick             [5] highest ID
--   [6] lowest bit of the datacenter        [7] highest datacenter, 0 where the layout has none
--   [8] lowest bit of the worker            [9] highest worker        [10], [11] the same of the sequence
--   [12] bits of the sequence               [13] whether all times are before 2^32 seconds after 1970
--   [14] the number in _snowflake.layout    [15] bits of the datacenter and the worker together
--   [16] ticks in a second, where seconds and the epoch are whole numbers of ticks and [13] is 1; else 0
--
-- Functions in SQL bodies are inlined, and the layout is a constant of the plan by then. PL/pgSQL sets the search_path, or calls
-- nothing but functions whose schema it names, and has no operators: those would be looked up where the caller's search_path says.

-- A layout of fields from high to low (0 timestamp, 1 datacenter, 2 worker, 3 sequence), or why there is none.
CREATE OR REPLACE FUNCTION _snowflake.make_layout(
    fields integer[], widths bigint[], tick bigint, epoch bigint, OUT layout bigint[], OUT problem text
)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    names CONSTANT text[] := '{timestamp,datacenter,worker,sequence}';
    latest CONSTANT bigint := 253402300799999999;
    shift bigint := 0;
    shifts bigint[] := '{0,0,0,0}';
    bits bigint[] := '{0,0,0,0}';
    form bigint := 0;
    n integer := coalesce(cardinality(fields), 0);
    field integer;
    width bigint;
BEGIN
    FOR i IN REVERSE n..1 LOOP
        field := fields[i] + 1;
        width := widths[i];
        IF bits[field] > 0 THEN
            problem := format('field %s is given twice', names[field]);
        ELSIF width = 0 THEN
            problem := format('field %s must have at least 1 bit', names[field]);
        ELSIF field > 1 AND width > 31 THEN
            problem := format('field %s has %s bits, more than 31', names[field], width);
        ELSIF width > 63 - shift THEN
            problem := format('the fields have %s bits together, more than 63',
                (SELECT sum(w) FROM unnest(widths) AS w));
        END IF;
        IF problem IS NOT NULL THEN
            RETURN;
        END IF;
        bits[field] := width;
        shifts[field] := shift;
        shift := shift + width;
    END LOOP;
    IF bits[1] = 0 THEN
        problem := 'field timestamp is missing';
    ELSIF fields[1] <> 0 THEN
        problem := 'the timestamp must be the first field, so that IDs sort by time';
    ELSIF tick NOT BETWEEN 1 AND 60000000 THEN
        problem := 'a tick must last between 1us and 60s';
    ELSIF epoch NOT BETWEEN 0 AND latest THEN
        problem := 'the epoch must lie between the years 1970 and 9999';
    ELSIF epoch + ((1::numeric * 2) ^ bits[1]) * tick > latest + 1 THEN
        problem := 'the timestamp would run on beyond the year 9999: give it fewer bits';
    END IF;
    IF problem IS NOT NULL THEN
        RETURN;
    END IF;
    FOR i IN 1..n LOOP
        form := form | ((fields[i] * 64 + widths[i]) << (8 * (4 - i)));
    END LOOP;
    layout := ARRAY[
        tick, epoch, shifts[1], (1::bigint << bits[1]::integer) - 1, ((1::numeric * 2) ^ shift - 1)::bigint,
        shifts[2], (1::bigint << bits[2]::integer) - 1, shifts[3], (1::bigint << bits[3]::integer) - 1,
        shifts[4], (1::bigint << bits[4]::integer) - 1, bits[4],
        ((epoch + ((1::numeric * 2) ^ bits[1]) * tick) <= 4294967296000000)::integer, tick << 32 | form, bits[2] + bits[3], 0
    ];
    IF layout[13] = 1 AND 1000000 % tick = 0 AND epoch % tick = 0 THEN
        layout[16] := 1000000 / tick;
    END IF;
END $$;

-- The layout that two numbers of the record stand for; NULL where there is none.
CREATE OR REPLACE FUNCTION _snowflake.recorded_layout(form bigint, epoch bigint) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    fields integer[] := '{}';
    widths bigint[] := '{}';
    part bigint;
    found bigint[];
BEGIN
    FOR place IN REVERSE 3..0 LOOP
        part := form >> (8 * place) & 255;
        IF part > 0 THEN
            fields := fields || (part >> 6)::integer;
            widths := widths || (part & 63);
        END IF;
    END LOOP;
    found := (_snowflake.make_layout(fields, widths, form >> 32, epoch)).layout;
    RETURN CASE WHEN found[14] = form THEN found END;
END $$;

-- The two numbers of the record. A dump that has the sequences themselves sets their values only after the rows of tables, which may have
-- generated columns; so they begin with the same numbers.
CREATE OR REPLACE FUNCTION _snowflake.record(OUT form bigint, OUT epoch bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    form := pg_sequence_last_value('_snowflake.layout');
    epoch := pg_sequence_last_value('_snowflake.epoch');
    IF form IS NULL OR epoch IS NULL THEN
        SELECT seqstart INTO form FROM pg_sequence WHERE seqrelid = '_snowflake.layout'::regclass;
        SELECT seqstart INTO epoch FROM pg_sequence WHERE seqrelid = '_snowflake.epoch'::regclass;
    END IF;
END $$;

-- The layout of this database. It is not really immutable, as a restore sets it. Where the generator finds another one on record than
-- the plans of its session have, it discards those.
CREATE OR REPLACE FUNCTION _snowflake.layout() RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r CONSTANT record := _snowflake.record();
    found CONSTANT bigint[] := _snowflake.recorded_layout(r.form, r.epoch);
BEGIN
    IF found IS NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'the layout of this database is not on record',
            DETAIL = format('The sequences _snowflake.layout and _snowflake.epoch hold %s and %s, which is no layout that this '
                'version knows.', r.form, r.epoch),
            HINT = 'Call snowflake_configure() as the owner of these functions, before rows are restored into this database.';
    END IF;
    RETURN found;
END $$;

-- An instant in microseconds since 1970, and back. Exact: to_timestamp() has 53 bits for seconds and microseconds together.
CREATE OR REPLACE FUNCTION _snowflake.instant(micros bigint, l bigint[]) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 3
    RETURN CASE WHEN l[13] = 1 THEN pg_catalog.to_timestamp(micros / 1000000::double precision)
        ELSE pg_catalog.timezone('0'::interval, timestamp '1970-01-01' + pg_catalog.make_interval(
            hours => (micros / 3600000000)::integer, secs => (micros % 3600000000) / 1000000::double precision)) END;

CREATE OR REPLACE FUNCTION _snowflake.micros(at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN (extract(epoch FROM at - timestamptz '1970-01-01 00:00:00+00') * 1000000)::bigint;

-- The same for an instant of the layout. A double has the microseconds of 2^32 seconds.
CREATE OR REPLACE FUNCTION _snowflake.micros(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN l[13] = 1
        THEN (pg_catalog.date_part('epoch', at - timestamptz '1970-01-01 00:00:00+00') * 1000000)::bigint
        ELSE _snowflake.micros(at) END;

-- As messages write an instant of a layout.
CREATE OR REPLACE FUNCTION _snowflake.written(micros bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    at timestamp := timestamp '1970-01-01' + make_interval(hours => (micros / 3600000000)::integer,
        secs => (micros % 3600000000) / 1000000::double precision);
BEGIN
    IF micros > 253402300799999999 THEN
        RETURN format('%s us after 1970', micros);
    END IF;
    RETURN to_char(at, CASE WHEN micros % 1000000 = 0 THEN 'YYYY-MM-DD"T"HH24:MI:SS"Z"'
        WHEN micros % 1000 = 0 THEN 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"' ELSE 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"' END);
END $$;

-- The instant that an epoch is written as; NULL where it is none. No error is caught: parallel workers cannot begin a subtransaction.
CREATE OR REPLACE FUNCTION _snowflake.read_epoch("text" text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    read bigint;
BEGIN
    IF "text" !~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{3}|[.][0-9]{6})?Z$'
        OR "text" < '1970' COLLATE "C" THEN
        RETURN NULL;
    END IF;
    -- Where the month has no such day, this is one of the next month.
    read := _snowflake.micros(timezone('0'::interval, make_date(left("text", 4)::integer, substr("text", 6, 2)::integer, 1)
        + (substr("text", 9, 2)::integer - 1) + substr(left("text", -1), 12)::time));
    RETURN CASE WHEN _snowflake.written(read) = "text" THEN read END;
END $$;

-- The full notation of a layout.
CREATE OR REPLACE FUNCTION _snowflake.notation(l bigint[]) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    names CONSTANT text[] := '{timestamp,datacenter,worker,sequence}';
    part bigint;
    said text := '';
BEGIN
    FOR place IN REVERSE 3..0 LOOP
        part := l[14] >> (8 * place) & 255;
        IF part > 0 THEN
            said := said || format('%s=%s ', names[(part >> 6) + 1], part & 63);
        END IF;
    END LOOP;
    RETURN said || format('tick=%s epoch=%s', CASE WHEN l[1] % 1000000 = 0 THEN l[1] / 1000000 || 's'
        WHEN l[1] % 1000 = 0 THEN l[1] / 1000 || 'ms' ELSE l[1] || 'us' END, _snowflake.written(l[2]));
END $$;

-- A text in a message: its beginning where it is long.
CREATE OR REPLACE FUNCTION _snowflake.shortened("text" text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    beginning text := left("text", 128);
BEGIN
    WHILE octet_length(beginning) > 128 LOOP
        beginning := left(beginning, -1);
    END LOOP;
    RETURN CASE WHEN beginning = "text" THEN "text" ELSE beginning || '...' END;
END $$;

-- The layout that a text names or writes.
CREATE OR REPLACE FUNCTION _snowflake.layout(layout text) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    built_in CONSTANT text := (SELECT b.layout FROM _snowflake.built_in() AS b WHERE b.name = $1);
    given CONSTANT text := coalesce(built_in, layout);
    names CONSTANT text[] := '{timestamp,datacenter,worker,sequence}';
    fields integer[] := '{}';
    widths bigint[] := '{}';
    tick bigint;
    epoch bigint;
    word text;
    at integer := 1;
    skip integer;
    name text;
    value text;
    field integer;
    micros numeric;
    made record;
    problem text;
BEGIN
    IF octet_length(given) > 256 THEN
        problem := 'A layout has at most 256 bytes';
    ELSIF strpos(given, '=') = 0 THEN
        problem := format('No built-in layout is named "%s", at character 1', _snowflake.shortened(given));
    ELSE
        LOOP
            at := at + length(substring(substr(given, at) FROM E'^[ \t\n\f\r]*'));
            word := substring(substr(given, at) FROM E'^[^ \t\n\f\r]+');
            EXIT WHEN word IS NULL;
            skip := 0;
            IF strpos(word, '=') = 0 THEN
                problem := format('"%s" is not of the form key=value', _snowflake.shortened(word));
            ELSE
                name := left(word, strpos(word, '=') - 1);
                value := substr(word, strpos(word, '=') + 1);
                field := array_position(names, name) - 1;
                IF name = 'tick' THEN
                    IF tick IS NOT NULL THEN
                        problem := 'tick is given twice';
                    ELSIF value ~ '^(0|[1-9][0-9]{0,18})(s|ms|us)$' THEN
                        micros := substring(value FROM '^[0-9]+')::numeric
                            * CASE substring(value FROM '[^0-9]+') WHEN 's' THEN 1000000 WHEN 'ms' THEN 1000 ELSE 1 END;
                        tick := CASE WHEN micros <= 9223372036854775807 THEN micros END;
                    END IF;
                    IF problem IS NULL AND tick IS NULL THEN
                        skip := 5;
                        problem := format('"%s" is not a tick such as 1ms, 10ms or 1s', _snowflake.shortened(value));
                    END IF;
                ELSIF name = 'epoch' THEN
                    IF epoch IS NOT NULL THEN
                        problem := 'epoch is given twice';
                    ELSE
                        epoch := _snowflake.read_epoch(value);
                        skip := 6;
                        IF epoch IS NULL THEN
                            problem := format('"%s" is not an instant such as 2024-01-01T00:00:00Z',
                                _snowflake.shortened(value));
                        END IF;
                    END IF;
                ELSIF field IS NULL THEN
                    problem := format('"%s" is not a field, nor tick or epoch', _snowflake.shortened(name));
                ELSIF tick IS NOT NULL OR epoch IS NOT NULL THEN
                    problem := format('field %s stands after tick or epoch', name);
                ELSIF value !~ '^(0|[1-9][0-9]{0,9})$' OR value::bigint > 4294967295 THEN
                    skip := length(name) + 1;
                    problem := format('"%s" is not a number of bits', _snowflake.shortened(value));
                ELSE
                    fields := fields || field;
                    widths := widths || value::bigint;
                END IF;
            END IF;
            IF problem IS NOT NULL THEN
                problem := format('%s, at character %s', problem, at + skip);
                EXIT;
            END IF;
            at := at + length(word);
        END LOOP;
        IF problem IS NULL THEN
            made := _snowflake.make_layout(fields, widths, coalesce(tick, 1000), coalesce(epoch, 1704067200000000));
            problem := made.problem;
        END IF;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = format('"%s" is not a layout', _snowflake.shortened(given)),
            DETAIL = upper(left(problem, 1)) || substr(problem, 2) || '.',
            HINT = format('Use a built-in layout (%s), or fields from high to low such as "timestamp=41 worker=9 sequence=13".',
                (SELECT string_agg(b.name, ', ') FROM _snowflake.built_in() AS b));
    END IF;
    RETURN made.layout;
END $$;

-- The parts of an ID.

-- Ends the call for a number that is no ID of the layout.
CREATE OR REPLACE FUNCTION _snowflake.not_an_id(id bigint, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1 SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE numeric_value_out_of_range USING MESSAGE = format('%s is not a snowflake ID', id),
        DETAIL = format('IDs of the layout "%s" range from 0 to %s.', _snowflake.notation(l), l[5]),
        HINT = 'Leave such numbers out, for example with WHERE id >= 0.';
END $$;

CREATE OR REPLACE FUNCTION _snowflake.is_id(id bigint, l bigint[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE WHEN l[5] = 9223372036854775807 THEN id >= 0 ELSE id >= 0 AND id <= l[5] END;

CREATE OR REPLACE FUNCTION _snowflake.time_of(id bigint, l bigint[]) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE
        WHEN NOT _snowflake.is_id(id, l) THEN pg_catalog.to_timestamp(_snowflake.not_an_id(id, l))
        WHEN l[16] > 0 THEN pg_catalog.to_timestamp(((id >> l[3]::integer) + l[2] / l[1]) / l[16]::double precision)
        ELSE _snowflake.instant((id >> l[3]::integer) * l[1] + l[2], l) END;

-- The datacenter (field 6), the worker (8), the sequence (10).
CREATE OR REPLACE FUNCTION _snowflake.part_of(id bigint, field integer, l bigint[]) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE
        WHEN NOT _snowflake.is_id(id, l) THEN _snowflake.not_an_id(id, l)::integer
        WHEN l[field + 1] = 0 THEN NULL
        WHEN l[field] = 0 THEN (id & l[field + 1])::integer
        ELSE (id >> l[field]::integer & l[field + 1])::integer END;

-- Ends the call for a time that no ID has.
CREATE OR REPLACE FUNCTION _snowflake.outside(at timestamptz, l bigint[], hint text DEFAULT '') RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF hint = '' THEN
        RAISE datetime_field_overflow USING MESSAGE = format('%s is outside the time of snowflake IDs', at),
            DETAIL = _snowflake.times(l);
    END IF;
    RAISE datetime_field_overflow USING MESSAGE = format('%s is outside the time of snowflake IDs', at),
        DETAIL = _snowflake.times(l), HINT = hint;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.times(l bigint[]) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format('IDs of the layout "%s" have times from %s to before %s.', _snowflake.notation(l),
        _snowflake.instant(l[2], l), _snowflake.instant(l[2] + (l[4] + 1) * l[1], l));
END $$;

-- The datacenter and the worker at their places in an ID, which are checked.
CREATE OR REPLACE FUNCTION _snowflake.place_worker(datacenter integer, worker integer, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    names CONSTANT text[] := '{datacenter,worker}';
    given CONSTANT integer[] := ARRAY[datacenter, worker];
    placed bigint := 0;
    highest bigint;
BEGIN
    FOR i IN 1..2 LOOP
        highest := l[5 + 2 * i];
        IF given[i] < 0 THEN
            RAISE numeric_value_out_of_range USING MESSAGE = format('%s must not be negative: %s', names[i], given[i]),
                DETAIL = format('The layout is "%s".', _snowflake.notation(l));
        END IF;
    END LOOP;
    FOR i IN 1..2 LOOP
        highest := l[5 + 2 * i];
        IF given[i] IS NULL AND highest > 0 THEN
            RAISE null_value_not_allowed USING MESSAGE = format('the layout has a %s, but none is given', names[i]),
                DETAIL = format('The layout is "%s".', _snowflake.notation(l));
        ELSIF given[i] IS NOT NULL AND highest = 0 THEN
            RAISE invalid_parameter_value USING MESSAGE = format('the layout has no %s, but one is given', names[i]),
                DETAIL = format('The layout is "%s".', _snowflake.notation(l));
        ELSIF given[i] > highest THEN
            RAISE numeric_value_out_of_range USING
                MESSAGE = format('%s %s is above the layout''s highest, %s', names[i], given[i], highest),
                DETAIL = format('The layout is "%s".', _snowflake.notation(l));
        END IF;
        placed := placed | (coalesce(given[i], 0)::bigint << l[4 + 2 * i]::integer);
    END LOOP;
    RETURN placed;
END $$;

-- Not really immutable where it fails: the message writes the time as the session does.
CREATE OR REPLACE FUNCTION _snowflake.encode(at timestamptz, worker integer, sequence integer, datacenter integer, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    placed bigint;
    number CONSTANT integer := CASE WHEN sequence IS NULL AND l[11] = 0 THEN 0 ELSE sequence END;
BEGIN
    IF at IS NULL OR number IS NULL OR l IS NULL THEN
        RETURN NULL;
    END IF;
    IF NOT isfinite(at) THEN
        RAISE datetime_field_overflow USING MESSAGE = 'an ID cannot have an infinite time', HINT = 'Use a finite timestamp.';
    END IF;
    IF number < 0 AND coalesce(datacenter, 0) >= 0 AND coalesce(worker, 0) >= 0 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('sequence must not be negative: %s', number),
            DETAIL = format('The layout is "%s".', _snowflake.notation(l));
    END IF;
    IF coalesce(datacenter, 0) >= 0 AND coalesce(worker, 0) >= 0
        AND (at < _snowflake.instant(l[2], l) OR at >= _snowflake.instant(l[2] + (l[4] + 1) * l[1], l)) THEN
        PERFORM _snowflake.outside(at, l);
    END IF;
    placed := _snowflake.place_worker(datacenter, worker, l);
    IF number > l[11] THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('sequence %s is above the layout''s highest, %s', number, l[11]),
            DETAIL = format('The layout is "%s".', _snowflake.notation(l));
    END IF;
    RETURN (_snowflake.micros(at, l) - l[2]) / l[1] << l[3]::integer | placed | (number::bigint << l[10]::integer);
END $$;

-- Bounds of a range of time. The times that a layout lacks are compared as timestamptz, so nothing overflows.

CREATE OR REPLACE FUNCTION _snowflake.lowest(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN at <= _snowflake.instant(l[2], l) THEN 0
        WHEN at > _snowflake.instant(l[2] + l[4] * l[1], l) THEN 9223372036854775807
        ELSE (_snowflake.micros(at, l) - l[2] + l[1] - 1) / l[1] << l[3]::integer END;

CREATE OR REPLACE FUNCTION _snowflake.highest(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN at < _snowflake.instant(l[2], l) THEN -1
        WHEN at >= _snowflake.instant(l[2] + (l[4] + 1) * l[1], l) THEN l[5]
        ELSE (_snowflake.micros(at, l) - l[2]) / l[1] << l[3]::integer | (1::bigint << l[3]::integer) - 1 END;

CREATE OR REPLACE FUNCTION _snowflake.highest_before(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN at <= _snowflake.instant(l[2], l) THEN -1
        WHEN at > _snowflake.instant(l[2] + (l[4] + 1) * l[1], l) THEN l[5]
        ELSE (_snowflake.micros(at, l) - l[2] - 1) / l[1] << l[3]::integer | (1::bigint << l[3]::integer) - 1 END;

-- Making IDs. A position is tick << bits of the sequence | sequence, as in the library. Two sequences make it:
--
--   position = base + next number
--
-- nextval() draws the number. Whoever draws reads the base before and after, and discards the number where the two differ. So the base
-- was the same when the number was drawn; as numbers and bases only rise, a position that was drawn later is higher. There is nothing
-- to lock for that.
--
-- Whoever skips positions, as a dump says that they may be in use, or a worker ID is new, raises the base before the end or the worker is
-- set. Whoever draws reads these two before the base is read once more. So where the base has not risen, they are from before.
--
-- To go on with the clock's tick, the base is raised, by one session at a time, under an advisory lock. The lock belongs to a
-- subtransaction that is always rolled back, which sequences ignore: it ends with the function, and with every error, cancel and
-- termination. The same session writes the reservation: positions from `end` on are not given out before it covers them.
--
-- And it writes the mark, which no dump can write back: the first position of the tick, in multiples of 64, and what PostgreSQL keeps beside
-- a sequence's value, log_cnt. That is not 0 after setval() and nextval(), as here, and 0 after a setval() alone, as in a dump. A crash or a
-- failover leaves 0 as well, and the value 32 higher. What pg_upgrade writes back has the rest of another major version.

CREATE SEQUENCE IF NOT EXISTS _snowflake.number AS bigint START 1 NO CYCLE CACHE 1;
COMMENT ON SEQUENCE _snowflake.number IS
    'internal: numbers that are added to _snowflake.base, each drawn once';

CREATE SEQUENCE IF NOT EXISTS _snowflake.base AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.base IS
    'internal: what a drawn number is added to, so that the sum is a position in the clock''s tick; only rises';

CREATE SEQUENCE IF NOT EXISTS _snowflake."end" AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake."end" IS
    'internal: the first position that _snowflake.reservation does not cover; another reservation comes from elsewhere';

CREATE SEQUENCE IF NOT EXISTS _snowflake.worker AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.worker IS
    'internal: OID of the database << 31 | datacenter and worker; see snowflake_configure()';

CREATE SEQUENCE IF NOT EXISTS _snowflake.mark AS bigint MINVALUE -1 START 0 NO CYCLE CACHE 1;
COMMENT ON SEQUENCE _snowflake.mark IS
    'internal: a position that was reached, by which it is seen that a dump or setval() has set these sequences back';

-- The OID of this database. A copy by CREATE DATABASE has another one, and mostly the restore of a dump; pg_upgrade keeps it.
CREATE OR REPLACE FUNCTION _snowflake.home() RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1 SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (SELECT oid::bigint FROM pg_database WHERE datname = current_database());
END $$;

-- The first position of the clock's tick.
CREATE OR REPLACE FUNCTION _snowflake.clock(l bigint[]) RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN pg_catalog.floor(((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000)::bigint - l[2])
        / l[1]::double precision)::bigint << l[12]::integer;

CREATE OR REPLACE FUNCTION _snowflake.clock() RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN _snowflake.clock(_snowflake.layout());

-- The first position that a reservation, in milliseconds since 1970, does not cover.
CREATE OR REPLACE FUNCTION _snowflake.end_of(reservation bigint, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN greatest(0, least(l[4] + 1, pg_catalog.ceil((reservation * 1000 - l[2]) / l[1]::numeric)::bigint)) << l[12]::integer;

-- max_burst, 100 ms, as positions.
CREATE OR REPLACE FUNCTION _snowflake.burst(l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 100000 / l[1] << l[12]::integer;

CREATE OR REPLACE FUNCTION _snowflake.id(place bigint, worker bigint, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN (place >> l[12]::integer << l[3]::integer) | ((place & l[11]) << l[10]::integer)
        | ((worker & 2147483647) / (l[9] + 1) << l[6]::integer) | ((worker & l[9]) << l[8]::integer);

CREATE OR REPLACE FUNCTION _snowflake.id(place bigint, worker bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN _snowflake.id(place, worker, _snowflake.layout());

-- The position of a number that was drawn while the base was known; NULL where it may have changed meanwhile.
CREATE OR REPLACE FUNCTION _snowflake.place(before bigint, number bigint, after bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE WHEN after = before THEN before + number END;

-- Whether a position can be given out at once: in the tick of the clock alone, as one ahead of it may be of a record that was set back. NULL or
-- false where next_slowly() must look at it.
CREATE OR REPLACE FUNCTION _snowflake.is_open(place bigint, floor bigint, "end" bigint, worker bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN place >= floor AND place < "end"
        AND place <= floor + least(_snowflake.burst(_snowflake.layout()), (_snowflake.layout())[11]) AND worker >> 31 = _snowflake.home();

-- The mark: a position that was reached, NULL where none is on record; whether somebody else wrote it; and whether it is as a crash leaves
-- it, or pg_upgrade: a dump of that would be taken for a crash when it is restored. Without the lock, these two may be neither of before nor
-- of after another session's writing: SELECT copies a sequence's row without one.
CREATE OR REPLACE FUNCTION _snowflake.read_mark(OUT reached bigint, OUT is_set_back boolean, OUT is_bare boolean)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    m record;
BEGIN
    SELECT last_value, log_cnt, is_called INTO m FROM _snowflake.mark;
    IF m.is_called THEN
        reached := m.last_value >> 6 << 6;
    END IF;
    is_set_back := m.is_called AND m.log_cnt = 0 AND m.last_value & 63 = _snowflake.major();
    is_bare := m.is_called AND m.log_cnt = 0 AND NOT is_set_back;
END $$;

-- The major version, as the rest of the mark.
CREATE OR REPLACE FUNCTION _snowflake.major() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.current_setting('server_version_num')::bigint / 10000 % 32;

-- Raises the base, so that the next number makes a position; then the mark, so that after a crash it is never above. In one statement, as a
-- cancel takes effect between statements.
CREATE OR REPLACE FUNCTION _snowflake.go_on_from(place bigint, number bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM setval('_snowflake.base', place - number - 1),
        setval('_snowflake.mark', (place >> 6 << 6) + _snowflake.major() - 1), nextval('_snowflake.mark');
END $$;

-- Ends the call with the errors of the library, and one more.

CREATE OR REPLACE FUNCTION _snowflake.refuse_set_back(place bigint, reached bigint, l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = 'the record of the IDs of this database was set back',
        DETAIL = format('A dump that was restored, or setval(), has set sequences in the schema _snowflake: IDs would go on at %s%s. '
            'What was made since that time is not on record.', _snowflake.instant(l[2] + (place >> l[12]::integer) * l[1], l),
            CASE WHEN reached > place THEN format(', below %s', _snowflake.instant(l[2] + (reached >> l[12]::integer) * l[1], l)) END),
        HINT = format('As the owner of the extension''s functions, give the worker ID again: SELECT snowflake_configure(%s); IDs go on above '
            'those of the rows that it finds.', concat_ws(', ', pg_sequence_last_value('_snowflake.worker') & l[9],
            CASE WHEN l[7] > 0 THEN (pg_sequence_last_value('_snowflake.worker') & 2147483647) / (l[9] + 1) END));
END $$;

-- A length of time, as messages write it.
CREATE OR REPLACE FUNCTION _snowflake.duration(micros bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    seconds CONSTANT bigint := micros / 1000000;
    millis CONSTANT bigint := micros / 1000 % 1000;
BEGIN
    RETURN CASE WHEN seconds = 0 THEN millis || ' ms' WHEN millis = 0 THEN seconds || ' s'
        ELSE format('%s.%s s', seconds, lpad(millis::text, 3, '0')) END;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.refuse_lead(behind bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('the clock is %s behind the last ID', _snowflake.duration(behind)),
        DETAIL = 'IDs go on while it is at most 600 s behind.',
        HINT = 'If the clock is wrong, set it right. If it is right, IDs were made or reserved while it was ahead: wait.';
END $$;

CREATE OR REPLACE FUNCTION _snowflake.refuse_end(l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    is_past CONSTANT boolean := clock_timestamp() >= _snowflake.instant(l[2] + (l[4] + 1) * l[1], l);
    ending CONSTANT text := format('The layout "%s" ends at %s', _snowflake.notation(l),
        _snowflake.written(l[2] + (l[4] + 1) * l[1]));
BEGIN
    IF is_past THEN
        RAISE sequence_generator_limit_exceeded USING MESSAGE = 'the layout is exhausted',
            DETAIL = ending || ', and the clock is past it.',
            HINT = 'Check the system''s clock. If it is right, a layout with a later end is needed.';
    END IF;
    RAISE sequence_generator_limit_exceeded USING MESSAGE = 'the layout is used up to its end',
        DETAIL = ending || '. The clock is not there yet, but IDs were made or reserved up to then.';
END $$;

-- Waits while a position is too far ahead of the clock. At most one session in a tick is let through where that is longer than twice the
-- burst, as after the clock went back; so the lead hardly grows.
CREATE OR REPLACE FUNCTION _snowflake.wait_for(place bigint, l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    burst CONSTANT bigint := 100000 / l[1];
    tick CONSTANT bigint := place >> l[12]::integer;
    lead bigint := tick - (_snowflake.clock(l) >> l[12]::integer);
    before CONSTANT timestamptz := clock_timestamp();
    reads integer := 0;
BEGIN
    IF lead * l[1]::numeric > 600000000 THEN
        PERFORM _snowflake.refuse_lead(least(lead::numeric * l[1], 9000000000000000000)::bigint);
    END IF;
    -- pg_sleep() would never end.
    WHILE clock_timestamp() = before LOOP
        reads := reads + 1;
        IF reads = 300000 THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = 'the clock stands still', HINT = 'Check the system''s clock.';
        END IF;
    END LOOP;
    IF lead > 2 * burst + 1 THEN
        IF place & l[11] = 0 THEN
            PERFORM pg_sleep(l[1] / 1000000::double precision);
        END IF;
        RETURN;
    END IF;
    WHILE lead > burst LOOP
        PERFORM pg_sleep(least((lead - burst) * l[1], 10000) / 1000000::double precision);
        lead := tick - (_snowflake.clock(l) >> l[12]::integer);
    END LOOP;
END $$;

-- Opens the tick of the clock, where the next position is below it, and reserves up to beyond a position. Returns false where another
-- session is just doing it.
CREATE OR REPLACE FUNCTION _snowflake.open(needs bigint, l bigint[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    bits CONSTANT integer := l[12];
    alone boolean := false;
    reserved bigint;
    "end" bigint;
    covered bigint;
    base bigint;
    number bigint;
    lowest bigint;
    floor bigint;
    first bigint;
    needed bigint;
    until bigint;
    mark record;
BEGIN
    BEGIN
        alone := pg_try_advisory_xact_lock(1936617062, 1);
        IF alone THEN
            reserved := coalesce(pg_sequence_last_value('_snowflake.reservation'), 0);
            "end" := coalesce(pg_sequence_last_value('_snowflake.end'), 0);
            covered := _snowflake.end_of(reserved, l);
            number := coalesce(pg_sequence_last_value('_snowflake.number'), 0);
            base := pg_sequence_last_value('_snowflake.base');
            lowest := coalesce(base, 0) + number + 1;
            mark := _snowflake.read_mark();
            IF base IS NULL OR mark.is_set_back OR lowest < mark.reached THEN
                PERFORM _snowflake.refuse_set_back(lowest, mark.reached, l);
            END IF;
            floor := _snowflake.clock(l);
            -- A reservation that is not the one written here came with a dump: IDs up to there may be in use.
            IF covered > "end" AND covered > lowest THEN
                IF ((covered >> bits) - (floor >> bits)) * l[1]::numeric > 600000000 THEN
                    PERFORM _snowflake.refuse_lead(((covered >> bits) - (floor >> bits)) * l[1]);
                END IF;
                floor := greatest(floor, covered);
            END IF;
            -- As in the library, ticks begin with different sequence numbers, so that rare IDs are not all multiples of one number.
            first := CASE WHEN lowest < floor THEN floor | (lowest & least(63, l[11])) ELSE lowest END;
            needed := greatest(first, needs);
            IF needed >> bits > l[4] THEN
                PERFORM _snowflake.refuse_end(l);
            END IF;
            -- From the number that was read above, or the base might not rise.
            IF first > lowest OR mark.is_bare THEN
                PERFORM _snowflake.go_on_from(first, number);
            END IF;
            IF needed >= "end" OR covered <> "end" THEN
                until := greatest(reserved, ceil((l[2] + (needed >> bits) * l[1] + 1000000) / 1000::numeric)::bigint);
                -- In one statement, as a cancel takes effect between statements. Not over what a restore has just written.
                PERFORM setval('_snowflake.reservation', until), setval('_snowflake.end', _snowflake.end_of(until, l))
                    WHERE coalesce(pg_sequence_last_value('_snowflake.reservation'), 0) = reserved;
            END IF;
        END IF;
        -- The end of the subtransaction, and of the lock.
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION
        WHEN SQLSTATE 'SNOWF' THEN
            NULL;
    END;
    RETURN alone;
END $$;

-- Who holds a lock, as messages write it. A prepared transaction has no process, and in pg_locks, a number of its own.
CREATE OR REPLACE FUNCTION _snowflake.holder(process integer, transaction text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN CASE WHEN process IS NULL THEN (SELECT format('prepared transaction %L', p.gid) FROM pg_locks AS x
        JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid WHERE x.pid IS NULL AND x.locktype = 'transactionid'
        AND x.virtualtransaction = holder.transaction LIMIT 1) ELSE format('process %s', process) END;
END $$;

-- Ends the call if this is not the number that the database was given.
CREATE OR REPLACE FUNCTION _snowflake.check_worker(worker bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF worker >> 31 IS DISTINCT FROM _snowflake.home() THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'this database has no worker ID',
            DETAIL = CASE WHEN worker > 0 THEN 'It is a copy of a database that has one. '
                'Two databases with the same number would make the same IDs.' ELSE
                'Every database that makes IDs needs a worker ID different from all others''.' END,
            HINT = 'As the owner of the extension''s functions: SELECT snowflake_configure(1);';
    END IF;
END $$;

-- An ID, in all but the ordinary case: that of a position which was drawn, with the end and the worker that were read then, or of another
-- one.
CREATE OR REPLACE FUNCTION _snowflake.next_slowly(place bigint, "end" bigint, worker bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    l bigint[];
    r record;
    base bigint := 0;
    number bigint;
    floor bigint;
    mark record;
    is_opened boolean := false;
    tries integer := 0;
    since timestamptz;
BEGIN
    LOOP
        l := _snowflake.layout();
        r := _snowflake.record();
        IF l[14] <> r.form OR l[2] <> r.epoch THEN
            -- A restore has set another layout since this session made its plans.
            DISCARD PLANS;
            CONTINUE;
        END IF;
        -- A position that is drawn after the mark was read is not below it.
        mark := _snowflake.read_mark();
        IF place IS NULL OR place < mark.reached THEN
            base := pg_sequence_last_value('_snowflake.base');
            number := nextval('_snowflake.number');
            "end" := pg_sequence_last_value('_snowflake.end');
            worker := pg_sequence_last_value('_snowflake.worker');
            place := _snowflake.place(base, number, pg_sequence_last_value('_snowflake.base'));
        END IF;
        PERFORM _snowflake.check_worker(worker);
        -- Without a base, as ALTER SEQUENCE ... RESTART leaves it, there is no position. open() says so.
        CONTINUE WHEN place IS NULL AND base IS NOT NULL;
        -- What this session has just opened is near enough: a slow one would find the clock beyond it each time.
        IF NOT is_opened THEN
            floor := _snowflake.clock(l);
        END IF;
        -- Another session may be writing the mark: whether it was set back, open() sees, which has the lock for that.
        IF place >= floor AND place >= coalesce(mark.reached, place) AND place < "end" AND NOT (mark.is_bare OR mark.is_set_back) THEN
            IF place > floor + _snowflake.burst(l) THEN
                PERFORM _snowflake.wait_for(place, l);
            END IF;
            RETURN _snowflake.id(place, worker, l);
        END IF;
        is_opened := _snowflake.open(greatest(place, floor), l);
        -- It may have been skipped.
        place := NULL;
        IF NOT is_opened THEN
            tries := tries + 1;
            IF tries > 2 THEN
                PERFORM pg_sleep(0.0005);
            END IF;
            since := coalesce(since, clock_timestamp());
            -- The clock may have been set forward: 1,000 tries take half a second at least.
            IF tries > 1000 AND clock_timestamp() - since > interval '5 s' THEN
                RAISE lock_not_available USING MESSAGE = 'the lock that opens ticks is not released',
                    DETAIL = format('It is the advisory lock (1936617062, 1), of %s.', (SELECT string_agg(_snowflake.holder(pid,
                        virtualtransaction), ', ') FROM pg_locks WHERE locktype = 'advisory' AND database = _snowflake.home() AND granted
                            AND (classid, objid, objsubid) = (1936617062, 1, 2))),
                    HINT = 'End that session, or end the prepared transaction by COMMIT PREPARED or ROLLBACK PREPARED: the extension itself '
                        'holds the lock for a moment only, but for snowflake_configure(), until its transaction ends.';
            END IF;
        END IF;
    END LOOP;
END $$;

-- For calls of 0.2.0 that are under way when the file is run.
CREATE OR REPLACE FUNCTION _snowflake.next_slowly(place bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN _snowflake.next_slowly(NULL, NULL, NULL);
END $$;

-- Text forms.

-- The digits of a form, its width where it is fixed, bits after the number, and whether letters are read in either case. No row for a
-- form that does not exist.
CREATE OR REPLACE FUNCTION _snowflake.form(
    form text, OUT digits text, OUT width integer, OUT padding integer, OUT any_case boolean
) RETURNS SETOF record
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 1 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    base64 CONSTANT text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
BEGIN
    RETURN QUERY SELECT f.digits, f.width, f.padding, f.any_case FROM (VALUES
        ('decimal', '0123456789', 19, 0, false),
        ('hex', '0123456789abcdef', 16, 0, true),
        ('base32', '0123456789ABCDEFGHJKMNPQRSTVWXYZ', 13, 0, true),
        ('base36', '0123456789abcdefghijklmnopqrstuvwxyz', NULL, 0, true),
        ('base58', '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', 11, 0, false),
        ('base58-bwmarrin', '123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ', NULL, 0, false),
        ('base62', '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 11, 0, false),
        ('base64url', base64, 11, 2, false),
        ('shortcode', base64, NULL, 0, false)
    ) AS f (name, digits, width, padding, any_case) WHERE f.name = form;
    IF NOT FOUND THEN
        RAISE invalid_parameter_value USING MESSAGE = format('"%s" is not a text form', _snowflake.shortened(form)),
            HINT = 'Use one of decimal, hex, base32, base36, base58, base58-bwmarrin, base62, base64url, shortcode.';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.to_text(id bigint, form text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    f record;
    number numeric;
    base integer;
    said text := '';
BEGIN
    SELECT * INTO f FROM _snowflake.form(form);
    IF id < 0 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('%s has no text form', id),
            DETAIL = 'IDs range from 0 to 9223372036854775807.', HINT = 'Leave such numbers out, for example with WHERE id >= 0.';
    END IF;
    number := id::numeric * (1 << f.padding);
    base := length(f.digits);
    WHILE number > 0 OR length(said) < coalesce(f.width, 1) LOOP
        said := substr(f.digits, (number % base)::integer + 1, 1) || said;
        number := div(number, base);
    END LOOP;
    RETURN said;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.from_text("text" text, form text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    f record;
    number numeric := 0;
    digit integer;
    digits integer[] := '{}';
    c text;
    problem text;
    code text := '22P02';
BEGIN
    SELECT * INTO f FROM _snowflake.form(form);
    IF octet_length("text") > 64 THEN
        problem := 'The text has more than 64 bytes, and an ID at most 19 characters';
    ELSE
        FOR i IN 1..length("text") LOOP
            c := substr("text", i, 1);
            digit := strpos(f.digits, c) - 1;
            IF digit < 0 AND f.any_case THEN
                c := translate(c, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ');
                IF form = 'base32' THEN
                    c := translate(c, 'OIL', '011');
                END IF;
                digit := greatest(strpos(f.digits, c),
                    strpos(f.digits, translate(c, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'))) - 1;
            END IF;
            IF digit < 0 THEN
                problem := format('Character %s, "%s", is no digit of the form', i, substr("text", i, 1));
                EXIT;
            END IF;
            digits := digits || digit;
            number := number * length(f.digits) + digit;
        END LOOP;
    END IF;
    IF problem IS NULL THEN
        IF length("text") <> f.width THEN
            problem := format('The text has %s characters, and the form %s', length("text"), f.width);
        ELSIF f.width IS NULL AND length("text") <> 1 AND coalesce(digits[1], 0) = 0 THEN
            problem := 'The form has at least one digit, and no leading zeros';
        ELSIF number % (1 << f.padding) <> 0 THEN
            problem := 'The last character has bits below the number';
        ELSIF div(number, 1 << f.padding) > 9223372036854775807 THEN
            problem := 'The number is above 9223372036854775807';
            code := '22003';
        END IF;
    END IF;
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = code,
            MESSAGE = format('"%s" is not a snowflake ID in the form %s', _snowflake.shortened("text"), form),
            DETAIL = problem || '.', HINT = 'Give the form that it was written in, one of decimal, hex, base32, base36, base58, '
                'base58-bwmarrin, base62, base64url, shortcode.';
    END IF;
    RETURN div(number, 1 << f.padding);
END $$;

-- The statements that give a partition the privileges that its table has, its row-level security and its replica identity.
-- src/tables/partitions/privileges.rs runs this text, too, with a search_path of pg_catalog, as the owner of both.

CREATE OR REPLACE FUNCTION _snowflake.privileges(parent oid, partition oid) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH both_tables AS (
        SELECT p.oid::regclass::text AS name, p.relowner AS owner, t.relrowsecurity AS has_policies,
            t.relforcerowsecurity AS is_forced, t.relreplident AS identity,
            coalesce(t.relacl, acldefault('r', t.relowner)) AS wanted, coalesce(p.relacl, acldefault('r', p.relowner)) AS has
        FROM pg_class t, pg_class p WHERE t.oid = $1 AND p.oid = $2
    ), differing AS (
        SELECT * FROM both_tables WHERE NOT (wanted @> has AND has @> wanted)
    )
    SELECT statement FROM (
        SELECT 1 AS step, 0 AS place, grantee::text, format('REVOKE ALL ON TABLE %s FROM %s', name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS statement
        FROM differing, LATERAL (SELECT DISTINCT grantee FROM aclexplode(has)) AS granted
        UNION ALL
        SELECT 2, 0, grantee::text, format('GRANT %s ON TABLE %s TO %s%s',
            string_agg(DISTINCT privilege_type, ', ' ORDER BY privilege_type), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable AND grantee <> owner THEN ' WITH GRANT OPTION' END)
        FROM differing, aclexplode(wanted) GROUP BY name, owner, grantee, is_grantable
        UNION ALL
        SELECT 3, attnum, grantee::text, format('GRANT %s ON TABLE %s TO %s%s',
            string_agg(DISTINCT format('%s (%I)', privilege_type, attname), ', '), name,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
        FROM both_tables, pg_attribute, aclexplode(attacl) WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped
        GROUP BY name, attnum, grantee, is_grantable
        UNION ALL
        SELECT 4, 0, '', format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', name) FROM both_tables WHERE has_policies
        UNION ALL
        SELECT 5, 0, '', format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', name) FROM both_tables WHERE is_forced
        UNION ALL
        SELECT 6, 0, '', format('ALTER TABLE %s REPLICA IDENTITY %s', name, CASE identity WHEN 'f' THEN 'FULL' ELSE 'NOTHING' END)
        FROM both_tables WHERE identity IN ('f', 'n')
        UNION ALL
        SELECT 6, 0, '', format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', name, i.relname)
        FROM both_tables, pg_index p, pg_inherits, pg_index c, pg_class i
        WHERE identity = 'i' AND p.indrelid = $1 AND p.indisreplident AND inhparent = p.indexrelid AND c.indexrelid = inhrelid
            AND c.indrelid = $2 AND i.oid = inhrelid
    ) statements ORDER BY step, place, grantee
$$;
COMMENT ON FUNCTION _snowflake.privileges(oid, oid) IS
    'part of snowflake_partition_default_rows(): statements that give a partition the privileges of its table';

-- Partitions by ID time.

-- Ends the call if code of another role's would run as the caller: that of the table, in its indexes for example, of what it is a
-- partition of, and of its default partition, which is read. The library runs it as the owner, in a restricted operation; PL/pgSQL cannot.
CREATE OR REPLACE FUNCTION _snowflake.check_owners(parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
BEGIN
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, t.oid = parent AS is_parent, pg_get_userbyid(t.relowner) AS owner
        INTO c FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE t.oid IN (
            SELECT parent UNION SELECT relid FROM pg_partition_ancestors(parent)
            UNION SELECT tree.relid FROM pg_inherits JOIN pg_class AS d ON d.oid = inhrelid, pg_partition_tree(d.oid) AS tree
            WHERE inhparent = parent AND pg_get_expr(d.relpartbound, d.oid) = 'DEFAULT'
        ) AND pg_get_userbyid(t.relowner) <> current_user ORDER BY is_parent DESC, t.oid LIMIT 1;
    IF FOUND AND c.is_parent THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table %s belongs to role %I, and the caller is role %I', c.quoted, c.owner, current_user),
            DETAIL = 'Code of the table, such as expressions of its indexes, would run as the caller: the extension in SQL cannot run it '
                'as the owner alone, as the library does.',
            HINT = format('Have role %1$I call this in a session of its own. If you trust that role''s code with your rights, SET ROLE '
                '%1$I does as well.', c.owner);
    ELSIF FOUND THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table %s belongs to role %I, and table %s does not', c.quoted, c.owner, parent),
            DETAIL = 'Code of both would run as the caller: the extension in SQL cannot run it as their owners, as the library does.',
            HINT = format('Give both tables one owner, for example ALTER TABLE %s OWNER TO %I;', c.quoted, current_user);
    END IF;
END $$;

-- Locks a table as strongly as CREATE TABLE ... PARTITION OF locks its parent. LOCK TABLE looks the name up again when the lock is granted.
-- If it is another table's by then, or the table has another owner, the call ends before any of their code runs.
CREATE OR REPLACE FUNCTION _snowflake.lock(tbl regclass, quoted text, parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    EXECUTE format('LOCK TABLE %s%s IN ACCESS EXCLUSIVE MODE', CASE WHEN tbl = parent THEN 'ONLY ' END, quoted);
    IF to_regclass(quoted) IS DISTINCT FROM tbl THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed by others meanwhile', quoted),
            DETAIL = 'It was dropped or renamed while this call waited for it.',
            HINT = 'Call it again.';
    END IF;
    PERFORM _snowflake.check_owners(parent);
END $$;

-- The instant k steps after another one, in microseconds since 1970, by the calendar of UTC; a number beyond all layouts where the
-- year is too high.
CREATE OR REPLACE FUNCTION _snowflake.after(since bigint, months bigint, days bigint, micros bigint, k bigint) RETURNS numeric
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    at CONSTANT timestamp := timestamp '1970-01-01' + make_interval(hours => (since / 3600000000)::integer);
    of_day CONSTANT bigint := since % 86400000000;
    month CONSTANT numeric := extract(year FROM at) * 12 + extract(month FROM at) - 1 + months::numeric * k;
    first date;
BEGIN
    IF month >= 120000 THEN
        RETURN 9999999999999999999;
    END IF;
    first := make_date(div(month, 12)::integer, mod(month, 12)::integer + 1, 1);
    RETURN (first - date '1970-01-01' + least(extract(day FROM at), extract(day FROM first + interval '1 month' - interval '1 day')) - 1
        + days::numeric * k) * 86400000000 + of_day + micros::numeric * k;
END $$;

-- IDs of a partition, in messages.
CREATE OR REPLACE FUNCTION _snowflake.range("from" text, "to" text, l bigint[]) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format('from %s to before %s', "from" || CASE WHEN "from" ~ '^[0-9]+$' THEN
        format(' (%s)', _snowflake.time_of("from"::bigint, l)) ELSE '' END, "to" || CASE WHEN "to" ~ '^[0-9]+$' THEN
        format(' (%s)', _snowflake.time_of("to"::bigint, l)) ELSE '' END);
END $$;

-- A table that is to get partitions: the caller's own. The function is named where the transaction must be able to write.
CREATE OR REPLACE FUNCTION _snowflake.own_table(parent regclass, function text) RETURNS record
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    t record;
BEGIN
    SELECT c.relname, n.nspname, c.relnamespace, c.relowner, c.relpersistence, format('%I.%I', n.nspname, c.relname) AS quoted
        INTO t FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('there is no table with OID %s', parent::oid),
            HINT = 'Give the partitioned table, for example ''orders''.';
    ELSIF NOT pg_has_role(t.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', t.relname),
            HINT = 'Only its owner can give a table partitions.';
    ELSIF function IS NOT NULL AND current_setting('transaction_read_only') = 'on' THEN
        RAISE read_only_sql_transaction USING
            MESSAGE = CASE WHEN pg_is_in_recovery() AND function LIKE '%maintain%' THEN format('cannot execute %s during recovery', function)
                ELSE format('cannot execute %s in a read-only transaction', function) END;
    END IF;
    PERFORM _snowflake.check_owners(parent);
    RETURN t;
END $$;

-- The column by whose ranges a table is partitioned, a bigint.
CREATE OR REPLACE FUNCTION _snowflake.range_key(parent regclass) RETURNS name
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    col name;
    key_type text;
    key_def text;
BEGIN
    SELECT a.attname INTO col FROM pg_partitioned_table AS d JOIN pg_opclass AS o ON o.oid = d.partclass[0]
        JOIN pg_attribute AS a ON a.attrelid = d.partrelid AND a.attnum = d.partattrs[0]
        JOIN pg_type AS y ON y.oid = a.atttypid
        WHERE d.partrelid = parent AND d.partattrs[0] > 0 AND o.opcdefault AND d.partstrat = 'r' AND d.partnatts = 1
            AND 'bigint'::regtype IN (y.oid, y.typbasetype);
    IF NOT FOUND THEN
        SELECT format_type(a.atttypid, NULL) INTO key_type FROM pg_partitioned_table AS d
            JOIN pg_opclass AS o ON o.oid = d.partclass[0]
            JOIN pg_attribute AS a ON a.attrelid = d.partrelid AND a.attnum = d.partattrs[0]
            WHERE d.partrelid = parent AND d.partattrs[0] > 0 AND o.opcdefault AND d.partstrat = 'r' AND d.partnatts = 1;
        key_def := pg_get_partkeydef(parent);
        RAISE wrong_object_type USING
            MESSAGE = format('table "%s" is not partitioned by a range of a bigint column', (SELECT relname FROM pg_class WHERE oid = parent)),
            DETAIL = CASE WHEN key_def IS NULL THEN 'It is not partitioned.' WHEN key_type IS NULL
                THEN format('Its partition key is %s.', key_def)
                ELSE format('Its partition key is %s, of type %s.', key_def, key_type) END,
            HINT = 'Create the table with PARTITION BY RANGE (id), where id is the bigint column of its IDs.';
    END IF;
    RETURN col;
END $$;

-- The partitions of a table but for the default one, with their bounds as numbers, and as they are written.
CREATE OR REPLACE FUNCTION _snowflake.partitions_of(parent regclass) RETURNS TABLE (
    tbl regclass, relname name, nspname name, lower numeric, upper numeric, "from" text, "to" text
)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT c.oid::regclass, c.relname, n.nspname, CASE b[1] WHEN 'MINVALUE' THEN '-Infinity' ELSE b[1] END::numeric,
        CASE b[2] WHEN 'MAXVALUE' THEN 'Infinity' ELSE b[2] END::numeric, b[1], b[2]
    FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace,
        regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM [(]''?([^'')]*)''?[)] TO [(]''?([^'')]*)''?[)]') AS b
    WHERE inhparent = parent AND b IS NOT NULL
    $$;

-- Ends the call if a new partition cannot have its name.
CREATE OR REPLACE FUNCTION _snowflake.check_name(t record, name text, lower bigint, upper bigint, l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF octet_length(name) > 63 THEN
        RAISE name_too_long USING
            MESSAGE = format('the name of partition "%s" would be too long', name),
            DETAIL = format('It would have %s bytes; PostgreSQL''s names have at most 63.', octet_length(name)),
            HINT = format('Give the table a shorter name, or create its partitions under names of your own: CREATE TABLE ... '
                'PARTITION OF %s FOR VALUES FROM (%s) TO (%s);', t.quoted, lower, upper);
    ELSIF EXISTS (SELECT FROM pg_class WHERE relname = check_name.name AND relnamespace = t.relnamespace) THEN
        RAISE duplicate_table USING MESSAGE = format('relation "%s" already exists', name),
            DETAIL = format('It has the name of a partition that is to be made, of IDs %s, and is not that partition.',
                _snowflake.range(lower::text, upper::text, l)),
            HINT = format('Rename it; or, if it holds the rows of that time, make it the partition: ALTER TABLE %s '
                'ATTACH PARTITION ... FOR VALUES FROM (%s) TO (%s);', t.quoted, lower, upper);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.check_may_create(t record) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF t.relpersistence <> 't' AND NOT has_schema_privilege(t.relowner, t.relnamespace, 'CREATE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('role %I may not create partitions in schema %I',
                pg_get_userbyid(t.relowner), t.nspname),
            DETAIL = format('Partitions belong to the owner of their table, %s, and are created as that role.', t.quoted),
            HINT = format('For example: GRANT CREATE ON SCHEMA %I TO %I;', t.nspname, pg_get_userbyid(t.relowner));
    END IF;
END $$;

-- Ends the call if the default partition has rows of new partitions. It is locked, if that is asked for. Where row security hides its rows
-- from their owner, PostgreSQL still looks at all of them before it makes a partition, and ends the call.
CREATE OR REPLACE FUNCTION _snowflake.check_default(
    parent regclass, t record, col name, names text[], lower bigint[], upper bigint[], l bigint[], locks boolean
) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    d record;
    lowest bigint;
BEGIN
    SELECT c.oid::regclass AS tbl, c.relname, format('%I.%I', n.nspname, c.relname) AS quoted INTO d
        FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT';
    IF NOT FOUND THEN
        RETURN;
    ELSIF locks THEN
        PERFORM _snowflake.lock(d.tbl, d.quoted, parent);
    END IF;
    FOR i IN 1..cardinality(names) LOOP
        EXECUTE format('SELECT min(%1$I) FROM %2$s WHERE %1$I >= $1 AND %1$I < $2', col, d.quoted)
            INTO lowest USING lower[i], upper[i];
        CONTINUE WHEN lowest IS NULL;
        RAISE check_violation USING
            MESSAGE = format('default partition "%s" has rows of a partition that is to be made', d.relname),
            DETAIL = format('The first has the ID %s. It belongs to "%s", of IDs %s.', lowest, names[i],
                _snowflake.range(lower[i]::text, upper[i]::text, l)),
            HINT = format('This makes the partitions of such rows, and moves the rows there: CALL snowflake_partition_default_rows(%L, '
                'every => ...); then make this call again.', t.quoted);
    END LOOP;
END $$;

-- The statement that makes a partition.
CREATE OR REPLACE FUNCTION _snowflake.partition_statement(t record, name text, lower bigint, upper bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', t.nspname, name, t.quoted, lower, upper);
END $$;

-- Makes partitions of a table that is locked.
CREATE OR REPLACE FUNCTION _snowflake.make_partitions(
    parent regclass, t record, col name, names text[], lower bigint[], upper bigint[], l bigint[]
) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made regclass;
    statement text;
BEGIN
    PERFORM _snowflake.check_default(parent, t, col, names, lower, upper, l, true);
    FOR i IN 1..cardinality(names) LOOP
        EXECUTE _snowflake.partition_statement(t, names[i], lower[i], upper[i]);
        made := format('%I.%I', t.nspname, names[i])::regclass;
        FOR statement IN SELECT s FROM _snowflake.privileges(parent, made) AS s LOOP
            EXECUTE statement;
        END LOOP;
        RETURN NEXT made;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.create_partitions(
    parent regclass, every interval, since timestamptz, until timestamptz, l bigint[]
) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    months bigint := extract(year FROM every) * 12 + extract(month FROM every);
    days bigint := extract(day FROM every);
    micros bigint := (extract(hour FROM every) * 3600 + extract(minute FROM every) * 60) * 1000000
        + extract(microseconds FROM every);
    t record;
    col name;
    shortest numeric;
    first bigint;
    high bigint;
    low bigint := 1;
    middle bigint;
    starts bigint[] := '{}';
    names text[] := '{}';
    missing integer[] := '{}';
    at numeric;
    p record;
    lower bigint;
    upper bigint;
    locked boolean := false;
BEGIN
    IF parent IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'parent must not be NULL',
            HINT = 'For example: SELECT snowflake_create_partitions(''orders'', ''1 month'', ''2026-01-01'', ''2027-01-01'');';
    END IF;
    t := _snowflake.own_table(parent, 'snowflake_create_partitions()');
    col := _snowflake.range_key(parent);
    IF every IS NULL OR since IS NULL OR until IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = format('%s must not be NULL',
                CASE WHEN every IS NULL THEN 'every' WHEN since IS NULL THEN 'since' ELSE 'until' END),
            HINT = 'For example: SELECT snowflake_create_partitions(''orders'', ''1 month'', ''2026-01-01'', ''2027-01-01'');';
    END IF;
    shortest := (months::numeric * 28 + days) * 86400000000 + micros;
    IF months < 0 OR days < 0 OR micros < 0 OR shortest < 1000000 OR micros % 1000000 <> 0 THEN
        RAISE invalid_parameter_value USING MESSAGE = CASE WHEN months < 0 OR days < 0 OR micros < 0
                THEN 'every must be positive in all of its parts' ELSE 'every must be one or more whole seconds' END,
            DETAIL = format('It is "%s".', every),
            HINT = 'Use a step such as ''1 month'', ''1 day'' or ''6 hours''; the smallest is ''1 second''.';
    ELSIF NOT isfinite(since) OR NOT isfinite(until) THEN
        RAISE datetime_field_overflow USING
            MESSAGE = format('%s must be finite', CASE WHEN NOT isfinite(since) THEN 'since' ELSE 'until' END),
            HINT = 'A partition without a lower or upper bound is made by CREATE TABLE ... PARTITION OF, with MINVALUE or MAXVALUE.';
    ELSIF since < _snowflake.instant(l[2], l) OR since > _snowflake.instant(l[2] + l[4] * l[1], l) THEN
        PERFORM _snowflake.outside(since, l, 'Give a since within that time.');
    ELSIF until < _snowflake.instant(l[2], l) OR until > _snowflake.instant(l[2] + l[4] * l[1], l) THEN
        PERFORM _snowflake.outside(until, l, 'Give an until within that time.');
    ELSIF since >= until THEN
        RAISE invalid_parameter_value USING MESSAGE = 'since must be before until',
            DETAIL = format('since is %s, until is %s.', since, until),
            HINT = 'until is the first instant that needs no partition any more.';
    ELSIF shortest < l[1] THEN
        RAISE invalid_parameter_value USING MESSAGE = 'every is shorter than a tick of the layout',
            DETAIL = format('A tick of the layout "%s" is the shortest time that IDs tell.', _snowflake.notation(l)),
            HINT = format('Use a step of at least %s.', _snowflake.duration(l[1]));
    END IF;
    first := _snowflake.micros(since);
    -- Where since lies within a partition that is such a piece, they are counted from its start.
    SELECT coalesce(min(begins), first) INTO first FROM (
        SELECT b[1]::bigint AS begin_id, b[2]::bigint AS end_id, l[2] + (b[1]::bigint >> l[3]::integer) * l[1] AS begins
        FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid,
            regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM [(]''?([0-9]+)''?[)] TO [(]''?([0-9]+)''?[)]') AS b
        WHERE inhparent = parent AND b IS NOT NULL
    ) AS existing
    WHERE begins < first AND begin_id = ((begins - l[2]) / l[1]) << l[3]::integer
        AND ceil((first - l[2])::numeric / l[1])::bigint << l[3]::integer < end_id
        AND ceil((_snowflake.after(begins, months, days, micros, 1) - l[2]) / l[1])::bigint << l[3]::integer = end_id;
    high := div(_snowflake.micros(until) - first, shortest) + 1;
    WHILE low < high LOOP
        middle := (low + high) / 2;
        IF _snowflake.after(first, months, days, micros, middle) < _snowflake.micros(until) THEN
            low := middle + 1;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    IF low > 1000 THEN
        RAISE program_limit_exceeded USING MESSAGE = format('that would be %s partitions', low),
            DETAIL = format('The range is from %s to before %s. One call makes at most 1000 partitions.', since, until),
            HINT = 'Give a longer step, or a shorter range.';
    END IF;
    FOR k IN 0..low LOOP
        at := _snowflake.after(first, months, days, micros, k);
        IF at > l[2] + l[4] * l[1] THEN
            RAISE datetime_field_overflow USING MESSAGE = 'the last partition would end after the last snowflake IDs',
                DETAIL = format('The range is from %s to before %s. %s', since, until, _snowflake.times(l)),
                HINT = 'The last partition is a whole one. Give an earlier until or a shorter step, and make the very last by '
                    'CREATE TABLE ... PARTITION OF, with MAXVALUE.';
        END IF;
        starts := starts || CASE WHEN at <= l[2] THEN 0
            ELSE ceil((at - l[2]) / l[1])::bigint << l[3]::integer END;
        names := names || (t.relname || to_char(timestamp '1970-01-01' + make_interval(hours => div(at, 3600000000)::integer,
            secs => mod(at, 3600000000)::double precision / 1000000), CASE WHEN first % 86400000000 = 0
            AND micros % 86400000000 = 0 THEN '_YYYYMMDD' ELSE '_YYYYMMDD_HH24MISS' END));
    END LOOP;

    -- First without a lock: usually all partitions exist.
    LOOP
        missing := '{}';
        FOR i IN 1..low LOOP
            lower := starts[i];
            upper := starts[i + 1];
            SELECT * INTO p FROM _snowflake.partitions_of(parent) AS existing
                WHERE existing.lower < starts[i + 1] AND starts[i] < existing.upper ORDER BY existing.lower LIMIT 1;
            CONTINUE WHEN FOUND AND p.lower = lower AND p.upper = upper;
            IF FOUND THEN
                RAISE invalid_object_definition USING
                    MESSAGE = format('new partition "%s" would overlap partition "%s"', names[i], p.relname),
                    DETAIL = format('The new one would hold IDs %s. The existing one holds those %s.',
                        _snowflake.range(lower::text, upper::text, l), _snowflake.range(p."from", p."to", l)),
                    HINT = 'Choose since and until so that the range leaves out the existing partition, or since and every so '
                        'that a new partition has its bounds.';
            END IF;
            missing := missing || i;
        END LOOP;
        FOREACH middle IN ARRAY missing LOOP
            PERFORM _snowflake.check_name(t, names[middle], starts[middle], starts[middle + 1], l);
        END LOOP;
        EXIT WHEN locked OR missing = '{}';
        -- As strong as the lock of CREATE TABLE ... PARTITION OF. Two sessions that held a weaker one would deadlock.
        PERFORM _snowflake.lock(parent, t.quoted, parent);
        locked := true;
    END LOOP;
    IF missing = '{}' THEN
        RETURN;
    END IF;
    PERFORM _snowflake.check_may_create(t);
    RETURN QUERY SELECT _snowflake.make_partitions(parent, t, col, (SELECT array_agg(names[i] ORDER BY i) FROM unnest(missing) AS i),
        (SELECT array_agg(starts[i] ORDER BY i) FROM unnest(missing) AS i), (SELECT array_agg(starts[i + 1] ORDER BY i) FROM unnest(missing) AS i), l);
END $$;

-- Partitions of the time to come, and those that are older than rows are kept: core/src/pieces/upkeep.rs in PL/pgSQL.
--
-- A grid is a start, in microseconds since 1970, and a step of months, days and microseconds. Piece k begins k steps after the start.

-- The first ID of piece k; NULL where the layout has no such time.
CREATE OR REPLACE FUNCTION _snowflake.bound(start bigint, months bigint, days bigint, micros bigint, k bigint, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    at CONSTANT numeric := _snowflake.after(start, months, days, micros, k);
BEGIN
    RETURN CASE WHEN at <= l[2] THEN 0 WHEN at <= l[2] + l[4] * l[1] THEN ceil((at - l[2]) / l[1])::bigint << l[3]::integer END;
END $$;

-- Which piece an instant lies in that is not before the start.
CREATE OR REPLACE FUNCTION _snowflake.piece_at(start bigint, months bigint, days bigint, micros bigint, at numeric) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    low bigint := 0;
    high bigint := div(at - start, (months::numeric * 28 + days) * 86400000000 + micros);
    middle bigint;
BEGIN
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        IF _snowflake.after(start, months, days, micros, middle) <= at THEN
            low := middle;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- Whether a piece of the grid begins at an instant, and has these IDs.
CREATE OR REPLACE FUNCTION _snowflake.has_piece(
    start bigint, months bigint, days bigint, micros bigint, at bigint, lower numeric, upper numeric, l bigint[]
) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    k bigint;
BEGIN
    IF at < start THEN
        RETURN false;
    END IF;
    k := _snowflake.piece_at(start, months, days, micros, at);
    RETURN coalesce(_snowflake.bound(start, months, days, micros, k, l) = lower
        AND _snowflake.bound(start, months, days, micros, k + 1, l) = upper, false);
END $$;

-- The instant from which on a bound's IDs are, if it is the first of such IDs.
CREATE OR REPLACE FUNCTION _snowflake.whole_time(bound numeric, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF bound BETWEEN 0 AND l[5] AND bound::bigint & ((1::bigint << l[3]::integer) - 1) = 0 THEN
        RETURN l[2] + (bound::bigint >> l[3]::integer) * l[1];
    END IF;
    RETURN NULL;
END $$;

-- An instant of a message.
CREATE OR REPLACE FUNCTION _snowflake.instant_of(micros numeric) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN CASE WHEN micros > 9000000000000000000 THEN 'infinity' ELSE timezone('0'::interval, timestamp '1970-01-01' + make_interval(
        hours => div(micros, 3600000000)::integer, secs => mod(micros, 3600000000)::double precision / 1000000)) END;
END $$;

-- What stands in the way of letting a partition go, and whether somebody has begun to detach it. What belongs to the partition goes with it,
-- such as its type; what others have of these keeps it, as DROP would fail, and with it all that the call does.
CREATE OR REPLACE FUNCTION _snowflake.kept_by(tbl regclass, is_drop boolean, OUT reason text, OUT is_pending boolean)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE parts (classid, objid) AS (
        SELECT 'pg_class'::regclass::oid, tbl::oid WHERE is_drop
        UNION
        SELECT d.classid, d.objid FROM parts JOIN pg_depend d ON d.refclassid = parts.classid AND d.refobjid = parts.objid
        WHERE d.deptype IN ('a', 'i', 'P', 'S')
    )
    SELECT CASE
        WHEN relkind = 'f' THEN 'it is a foreign table'
        WHEN relkind <> 'r' THEN 'it has partitions of its own'
        WHEN pg_get_userbyid(relowner) <> current_user THEN format('it belongs to role %I', pg_get_userbyid(relowner))
        WHEN referring IS NOT NULL THEN format('rows of %s may refer to its rows', referring)
        WHEN extension IS NOT NULL THEN format('it belongs to %s', extension)
        WHEN dependent IS NOT NULL THEN format('%s depends on it', dependent)
    END, inhdetachpending
    FROM pg_class c JOIN pg_inherits ON inhrelid = c.oid
    LEFT JOIN LATERAL (
        SELECT min(conrelid::regclass::text) AS referring FROM pg_constraint WHERE confrelid = c.oid AND contype = 'f'
    ) AS keys ON true
    LEFT JOIN LATERAL (
        SELECT min(pg_describe_object(d.refclassid, d.refobjid, 0)) AS extension FROM parts JOIN pg_depend d USING (classid, objid)
        WHERE d.deptype = 'e'
    ) AS extensions ON true
    LEFT JOIN LATERAL (
        SELECT min(pg_describe_object(d.classid, d.objid, d.objsubid)) AS dependent
        FROM parts JOIN pg_depend d ON d.refclassid = parts.classid AND d.refobjid = parts.objid
        WHERE d.deptype = 'n' AND (d.classid, d.objid) NOT IN (SELECT classid, objid FROM parts)
    ) AS objects ON true
    WHERE c.oid = tbl
    $$;

-- Partitions that are older than rows are kept, in the order of their IDs, and what becomes of them. A partition may get rows for as long as
-- the clock may be behind, 600 s, after its end. With `locks`, those that go are locked: until then, others can rename them, and write to
-- them by their own names.
CREATE OR REPLACE FUNCTION _snowflake.old_partitions(
    parent regclass, months bigint, days bigint, micros bigint, expired text, now bigint, l bigint[], locks boolean
) RETURNS TABLE (relname name, quoted text, lower numeric, upper numeric, action text, statement text, note text,
    is_obstructed boolean, is_carried_out boolean)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    p record;
    at bigint;
    facts record;
    -- As in partition_default_rows().
    floor CONSTANT bigint := _snowflake.first_id_at(_snowflake.time_of_id(0) + interval '1 hour');
    has_earlier_keys boolean;
    detach text;
BEGIN
    IF months IS NULL THEN
        RETURN;
    END IF;
    FOR p IN SELECT e.*, format('%I.%I', e.nspname, e.relname) AS whole FROM _snowflake.partitions_of(parent) AS e
        WHERE e.upper < 'Infinity' ORDER BY e.lower LOOP
        relname := p.relname;
        quoted := p.whole;
        lower := p.lower;
        upper := p.upper;
        action := 'keep';
        statement := NULL;
        note := NULL;
        is_obstructed := false;
        is_carried_out := false;
        at := CASE WHEN p.upper BETWEEN 0 AND l[5] THEN l[2] + (p.upper::bigint >> l[3]::integer) * l[1] END;
        CONTINUE WHEN p.upper >= 0 AND coalesce(_snowflake.after(at, months, days, micros, 1) > now OR at + 600000000 > now, true);
        IF _snowflake.whole_time(p.lower, l) IS NULL AND NOT (p.lower = '-Infinity' AND p.upper > 0) OR _snowflake.whole_time(p.upper, l) IS NULL THEN
            note := 'its bounds do not say how old its rows are';
            is_obstructed := p.lower = '-Infinity';
            RETURN NEXT;
            CONTINUE;
        END IF;
        FOR pass IN 1..2 LOOP
            facts := _snowflake.kept_by(p.tbl, expired = 'drop');
            note := facts.reason;
            IF note IS NULL AND p.lower < floor AND row_security_active(p.tbl) THEN
                note := 'row security hides its rows from its owner, so it may have keys of the layout''s first hour';
            ELSIF note IS NULL AND p.lower < floor THEN
                EXECUTE format('SELECT EXISTS (SELECT FROM ONLY %s WHERE %I < %s)', p.whole, _snowflake.range_key(parent), floor)
                    INTO has_earlier_keys;
                note := CASE
                    WHEN has_earlier_keys THEN
                        'it has keys of the layout''s first hour, as tables have from before, which do not say how old rows are'
                    WHEN current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
                        'it may have keys of the layout''s first hour that only a READ COMMITTED transaction sees'
                END;
            END IF;
            is_carried_out := note IS NULL AND (expired <> 'detach concurrently' OR facts.is_pending);
            EXIT WHEN pass = 2 OR NOT (locks AND is_carried_out);
            PERFORM _snowflake.lock(p.tbl, p.whole, parent);
        END LOOP;
        IF note IS NOT NULL THEN
            is_obstructed := true;
            RETURN NEXT;
            CONTINUE;
        END IF;
        detach := format('ALTER TABLE %s DETACH PARTITION %s', (SELECT format('%I.%I', n.nspname, c.relname)
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = parent), p.whole);
        action := CASE WHEN expired = 'detach concurrently' AND facts.is_pending THEN 'detach' ELSE expired END;
        statement := CASE WHEN expired = 'drop' THEN format('DROP TABLE %s', p.whole) WHEN facts.is_pending THEN detach || ' FINALIZE'
            WHEN action = 'detach' THEN detach ELSE detach || ' CONCURRENTLY' END;
        note := CASE action WHEN 'detach concurrently' THEN 'run the statement by itself' END;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.maintain_partitions(
    parent regclass, every interval, ahead interval, retention interval, expired text, dry_run boolean, default_rows text, l bigint[]
) RETURNS TABLE (partition text, action text, since timestamptz, until timestamptz, statement text, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    example CONSTANT text := 'For example: SELECT * FROM snowflake_maintain_partitions(''orders'', ''1 month'', ''3 months'');';
    spans CONSTANT interval[] := ARRAY[every, ahead, retention];
    months bigint[] := '{}';
    days bigint[] := '{}';
    micros bigint[] := '{}';
    shortest numeric;
    t record;
    col name;
    p record;
    now bigint;
    needed numeric;
    start bigint;
    first bigint;
    last bigint;
    lower bigint[];
    upper bigint[];
    names text[];
    piece_start bigint;
    piece_end bigint;
    present bigint;
    at numeric;
    goes text[];
    kept text[];
    kept_names name[];
    over bigint;
BEGIN
    IF parent IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'parent must not be NULL', HINT = example;
    END IF;
    dry_run := coalesce(dry_run, false);
    t := _snowflake.own_table(parent, CASE WHEN NOT dry_run THEN 'snowflake_maintain_partitions()' END);
    FOR i IN 1..3 LOOP
        months := months || (extract(year FROM spans[i]) * 12 + extract(month FROM spans[i]))::bigint;
        days := days || extract(day FROM spans[i])::bigint;
        micros := micros || ((extract(hour FROM spans[i]) * 3600 + extract(minute FROM spans[i]) * 60) * 1000000
            + extract(microseconds FROM spans[i]))::bigint;
        IF spans[i] IS NULL AND i < 3 THEN
            RAISE null_value_not_allowed USING MESSAGE = format('%s must not be NULL', ('{every,ahead}'::text[])[i]), HINT = example;
        ELSIF i = 1 THEN
            shortest := (months[1]::numeric * 28 + days[1]) * 86400000000 + micros[1];
            IF months[1] < 0 OR days[1] < 0 OR micros[1] < 0 OR shortest < 1000000 OR micros[1] % 1000000 <> 0 THEN
                RAISE invalid_parameter_value USING MESSAGE = CASE WHEN months[1] < 0 OR days[1] < 0 OR micros[1] < 0
                        THEN 'every must be positive in all of its parts' ELSE 'every must be one or more whole seconds' END,
                    DETAIL = format('It is "%s".', every),
                    HINT = 'Use a step such as ''1 month'', ''1 day'' or ''6 hours''; the smallest is ''1 second''.';
            END IF;
        ELSIF months[i] < 0 OR days[i] < 0 OR micros[i] < 0 THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('%s must not be negative in any of its parts', ('{every,ahead,retention}'::text[])[i]),
                DETAIL = format('It is "%s".', spans[i]), HINT = 'Give a length of time, such as ''3 months''.';
        END IF;
    END LOOP;
    IF expired IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'expired must not be NULL', HINT = example;
    ELSIF expired NOT IN ('detach', 'detach concurrently', 'drop') THEN
        RAISE invalid_parameter_value USING MESSAGE = format('expired must be "detach", "detach concurrently" or "drop", not "%s"',
                _snowflake.shortened(expired)),
            HINT = 'Detached partitions stay as tables; dropped ones are gone with their rows.';
    END IF;
    IF default_rows IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'default_rows must not be NULL', HINT = example;
    ELSIF default_rows NOT IN ('refuse', 'move') THEN
        RAISE invalid_parameter_value USING MESSAGE = format('default_rows must be "refuse" or "move", not "%s"', _snowflake.shortened(default_rows)),
            HINT = 'Rows of the default partition are in the way of partitions for them; "move" puts them there.';
    ELSIF default_rows = 'move' THEN
        RAISE feature_not_supported USING MESSAGE = 'snowflake_maintain_partitions() moves no rows here',
            DETAIL = 'The extension in SQL moves rows of a default partition by a procedure.',
            HINT = format('First CALL snowflake_partition_default_rows(%L, every => ...);', t.quoted);
    END IF;
    col := _snowflake.range_key(parent);

    -- First without a lock: usually there is nothing to do.
    BEGIN
        FOR pass IN 1..2 LOOP
            now := _snowflake.micros(clock_timestamp());
            needed := _snowflake.after(now, months[2], days[2], micros[2], 1);
            IF now < l[2] OR now > l[2] + l[4] * l[1] THEN
                PERFORM _snowflake.outside(_snowflake.instant_of(now), l, 'That is what the server''s clock says. Set it right.');
            ELSIF needed > l[2] + l[4] * l[1] THEN
                PERFORM _snowflake.outside(_snowflake.instant_of(needed), l, 'Give a shorter ahead.');
            ELSIF shortest < l[1] THEN
                RAISE invalid_parameter_value USING MESSAGE = 'every is shorter than a tick of the layout',
                    DETAIL = format('A tick of the layout "%s" is the shortest time that IDs tell.', _snowflake.notation(l)),
                    HINT = format('Use a step of at least %s.', _snowflake.duration(l[1]));
            END IF;
            -- The grid of 1600, or of a Monday in 1601; or that of the last partition, where that has the length of the pieces.
            start := CASE WHEN months[1] > 0 THEN -11676096000000000 ELSE -11644473600000000 END;
            SELECT e.lower, e.upper, _snowflake.whole_time(e.lower, l) AS begins INTO p FROM _snowflake.partitions_of(parent) AS e
                WHERE _snowflake.whole_time(e.lower, l) IS NOT NULL ORDER BY begins DESC LIMIT 1;
            IF FOUND AND NOT _snowflake.has_piece(start, months[1], days[1], micros[1], p.begins, p.lower, p.upper, l) THEN
                SELECT w.begins INTO over FROM _snowflake.partitions_of(parent) AS e, LATERAL (SELECT _snowflake.whole_time(e.lower, l) AS begins) AS w
                    WHERE w.begins <= now AND _snowflake.has_piece(w.begins, months[1], days[1], micros[1], p.begins, p.lower, p.upper, l)
                    ORDER BY w.begins LIMIT 1;
                start := coalesce(over, start);
            END IF;
            first := _snowflake.piece_at(start, months[1], days[1], micros[1], now);
            last := greatest(first, _snowflake.piece_at(start, months[1], days[1], micros[1], needed - 1));
            IF last - first >= 1000 THEN
                RAISE program_limit_exceeded USING MESSAGE = format('that would be %s partitions', last - first + 1),
                    DETAIL = format('The range is from %s to before %s. One call makes at most 1000 partitions.',
                        _snowflake.instant_of(now), _snowflake.instant_of(needed)),
                    HINT = 'Give a longer every, or a shorter ahead.';
            END IF;
            piece_start := _snowflake.bound(start, months[1], days[1], micros[1], first, l);
            piece_end := _snowflake.bound(start, months[1], days[1], micros[1], last + 1, l);
            IF piece_start IS NULL OR piece_end IS NULL THEN
                RAISE datetime_field_overflow USING MESSAGE = 'the last partition would end after the last snowflake IDs',
                    DETAIL = format('The range is from %s to before %s. %s', _snowflake.instant_of(now), _snowflake.instant_of(needed),
                        _snowflake.times(l)),
                    HINT = 'The last partition is a whole one. Give an earlier until or a shorter step, and make the very last by '
                        'CREATE TABLE ... PARTITION OF, with MAXVALUE.';
            END IF;
            SELECT * INTO p FROM _snowflake.partitions_of(parent) AS e
                WHERE e.lower > piece_start AND e.lower < piece_end AND _snowflake.whole_time(e.lower, l) IS NULL
                    OR e.upper > piece_start AND e.upper < piece_end AND _snowflake.whole_time(e.upper, l) IS NULL
                ORDER BY e.lower LIMIT 1;
            IF FOUND THEN
                RAISE invalid_object_definition USING MESSAGE = format('partition "%s" is in the way, and is not a range of time', p.relname),
                    DETAIL = format('It holds IDs %s. A range of time begins and ends with the first ID of an instant.',
                        _snowflake.range(p."from", p."to", l)),
                    HINT = format('Create the partition beside it by hand, with its bound: CREATE TABLE ... PARTITION OF %s FOR VALUES '
                        'FROM (...) TO (...);', t.quoted);
            END IF;
            -- What no partition has of each piece, but for what has passed.
            lower := '{}';
            upper := '{}';
            names := '{}';
            present := (now - l[2]) / l[1] << l[3]::integer;
            FOR k IN first..last LOOP
                piece_start := _snowflake.bound(start, months[1], days[1], micros[1], k, l);
                piece_end := _snowflake.bound(start, months[1], days[1], micros[1], k + 1, l);
                over := piece_start;
                FOR p IN SELECT * FROM _snowflake.partitions_of(parent) AS e WHERE e.lower < piece_end AND e.upper > piece_start
                    UNION ALL SELECT NULL, NULL, NULL, piece_end, NULL, NULL, NULL ORDER BY 4 LOOP
                    IF p.lower > over AND p.lower > present THEN
                        at := _snowflake.after(start, months[1], days[1], micros[1], k);
                        IF _snowflake.bound(start, months[1], days[1], micros[1], k, l) <> over THEN
                            at := l[2] + (over >> l[3]::integer) * l[1];
                        END IF;
                        lower := lower || over;
                        upper := upper || p.lower::bigint;
                        names := names || (t.relname || to_char(timezone('UTC', _snowflake.instant_of(at)),
                            CASE WHEN start % 86400000000 = 0 AND micros[1] % 86400000000 = 0 AND mod(at, 86400000000) = 0
                                THEN '_YYYYMMDD' ELSE '_YYYYMMDD_HH24MISS' END));
                        PERFORM _snowflake.check_name(t, names[cardinality(names)], over, p.lower::bigint, l);
                    END IF;
                    over := least(p.upper, piece_end)::bigint;
                END LOOP;
            END LOOP;
            IF retention IS NOT NULL AND expired = 'detach concurrently'
                AND EXISTS (SELECT FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
                    WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT') THEN
                RAISE object_not_in_prerequisite_state USING MESSAGE = format('partitions of %s cannot be detached concurrently', t.quoted),
                    DETAIL = 'PostgreSQL does not do that for a table with a default partition.',
                    HINT = 'Use expired => ''detach'', with a lock_timeout.';
            END IF;
            EXIT WHEN dry_run OR pass = 2;
            -- Whether there is anything to do.
            EXIT WHEN names = '{}' AND NOT EXISTS (
                SELECT FROM _snowflake.old_partitions(parent, months[3], days[3], micros[3], expired, now, l, false) AS o WHERE o.is_carried_out);
            -- As strong as the locks that the statements take, so that no other session is in between.
            PERFORM _snowflake.lock(parent, t.quoted, parent);
        END LOOP;
        IF names <> '{}' THEN
            PERFORM _snowflake.check_may_create(t);
            IF dry_run THEN
                PERFORM _snowflake.check_default(parent, t, col, names, lower, upper, l, false);
            ELSE
                PERFORM _snowflake.make_partitions(parent, t, col, names, lower, upper, l);
            END IF;
        END IF;
        FOR i IN 1..cardinality(names) LOOP
            partition := format('%I.%I', t.nspname, names[i]);
            action := 'create';
            since := _snowflake.instant(l[2] + (lower[i] >> l[3]::integer) * l[1], l);
            until := _snowflake.instant(l[2] + (upper[i] >> l[3]::integer) * l[1], l);
            statement := _snowflake.partition_statement(t, names[i], lower[i], upper[i]);
            note := CASE WHEN dry_run AND EXISTS (SELECT FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
                    WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT' AND row_security_active(c.oid))
                THEN 'it fails if the default partition has rows of it, which row security hides from their owner' END;
            RETURN NEXT;
        END LOOP;
        kept := '{}';
        kept_names := '{}';
        FOR p IN SELECT * FROM _snowflake.old_partitions(parent, months[3], days[3], micros[3], expired, now, l, NOT dry_run) LOOP
            partition := p.quoted;
            action := p.action;
            since := CASE WHEN p.lower BETWEEN 0 AND l[5] THEN _snowflake.time_of(p.lower::bigint, l) END;
            until := CASE WHEN p.upper BETWEEN 0 AND l[5] THEN _snowflake.time_of(p.upper::bigint, l) END;
            statement := p.statement;
            note := p.note;
            IF p.is_obstructed THEN
                kept := kept || p.note;
                kept_names := kept_names || p.relname;
            ELSIF p.is_carried_out AND NOT dry_run THEN
                EXECUTE p.statement;
            END IF;
            RETURN NEXT;
        END LOOP;
    EXCEPTION
        WHEN lock_not_available THEN
            RAISE lock_not_available USING MESSAGE = format('the lock of table "%s" or of a partition was not granted in time', t.relname),
                DETAIL = 'Another session holds it for longer than lock_timeout. Nothing was changed.',
                HINT = 'Call again later; pg_stat_activity and pg_blocking_pids() tell who holds it.';
    END;
    IF kept <> '{}' THEN
        RAISE WARNING USING MESSAGE = CASE cardinality(kept)
                WHEN 1 THEN format('partition "%s" is older than the retention, and stays', kept_names[1])
                ELSE format('partition "%s" and %s more are older than the retention, and stay', kept_names[1], cardinality(kept) - 1) END,
            DETAIL = format('Of table "%s", the first: %s.', t.relname, kept[1]),
            HINT = 'The rows with the action "keep" in the result say why each stays.';
    END IF;
END $$;

-- What is required, checked before the first ID is made: core/src/capacity.rs and src/sql/checks in PL/pgSQL, as far as it can be seen from
-- inside a database.

-- A key column of a table, with what is to be known of it; or the error that says why there is none.
CREATE OR REPLACE FUNCTION _snowflake.key_of(tbl regclass, col name) RETURNS record
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    t record;
    k record;
    candidates text[];
BEGIN
    IF tbl IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'tbl must not be NULL',
            HINT = 'For example: SELECT * FROM snowflake_adopt_plan(''orders'');';
    END IF;
    SELECT c.oid, c.relname, c.relkind, c.relnamespace, c.relowner, c.relispartition, c.relpersistence, n.nspname INTO t
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = tbl;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('there is no table with OID %s', tbl::oid), HINT = 'Give a table, for example ''orders''.';
    ELSIF t.relkind NOT IN ('r', 'p') THEN
        RAISE wrong_object_type USING MESSAGE = format('"%s" is %s, not a table', t.relname, CASE t.relkind WHEN 'v' THEN 'a view'
            WHEN 'm' THEN 'a materialized view' WHEN 'f' THEN 'a foreign table' WHEN 'S' THEN 'a sequence' WHEN 'c' THEN 'a composite type'
            ELSE 'an index' END);
    ELSIF t.nspname IN ('pg_catalog', 'information_schema', 'pg_toast') THEN
        RAISE wrong_object_type USING MESSAGE = format('"%s" is a system catalog', t.relname);
    ELSIF t.relpersistence = 't' AND t.relnamespace <> pg_my_temp_schema() THEN
        RAISE wrong_object_type USING MESSAGE = format('"%s" is a temporary table of another session', t.relname);
    ELSIF t.relispartition THEN
        RAISE wrong_object_type USING MESSAGE = format('"%s" is a partition of %s', t.relname, (SELECT format('%I.%I', n.nspname, p.relname)
                FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent JOIN pg_namespace AS n ON n.oid = p.relnamespace WHERE inhrelid = tbl)),
            HINT = format('Give the partitioned table at the top, %s or its parent.', (SELECT format('%I.%I', n.nspname, p.relname)
                FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent JOIN pg_namespace AS n ON n.oid = p.relnamespace WHERE inhrelid = tbl));
    END IF;
    IF col IS NULL THEN
        SELECT a.attname INTO col FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = tbl AND a.attnum = i.indkey[0]
            WHERE i.indrelid = tbl AND i.indisprimary AND i.indnkeyatts = 1;
        IF NOT FOUND THEN
            SELECT CASE count(*) WHEN 1 THEN min(a.attname::text) END INTO col FROM pg_attribute AS a
                LEFT JOIN pg_attrdef AS d ON d.adrelid = tbl AND d.adnum = a.attnum
                WHERE a.attrelid = tbl AND a.attnum > 0 AND NOT a.attisdropped AND (a.attidentity <> '' OR EXISTS (
                    SELECT FROM pg_depend AS x WHERE x.classid = 'pg_attrdef'::regclass AND x.objid = d.oid AND (x.refobjid = _snowflake.next_function()
                    OR x.refclassid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_class AS s WHERE s.oid = x.refobjid AND s.relkind = 'S'))));
        END IF;
        IF col IS NULL THEN
            SELECT array_agg(a.attname::text ORDER BY a.attnum) INTO candidates FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
                WHERE a.attrelid = tbl AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND (y.oid IN ('smallint'::regtype,
                'integer'::regtype, 'bigint'::regtype) OR y.typbasetype = 'bigint'::regtype);
            RAISE ambiguous_column USING
                MESSAGE = format('it is not clear which column of "%s" is to get the IDs', t.relname),
                DETAIL = coalesce('These are of an integer type: ' || array_to_string(candidates, ', ') || '.',
                    'It has no column of an integer type.'),
                HINT = CASE WHEN candidates IS NULL THEN 'Add a bigint column for the IDs, with DEFAULT snowflake_next().'
                    ELSE 'Give the column, for example: SELECT * FROM snowflake_adopt_plan(''orders'', ''id'');' END;
        END IF;
    END IF;
    SELECT t.oid AS tbl, t.relname, t.nspname, t.relnamespace, t.relowner, t.relkind, format('%I.%I', t.nspname, t.relname) AS quoted, a.attname, a.attnum,
            format('%I.%I.%I', t.nspname, t.relname, a.attname) AS whole, a.attidentity, a.attnotnull, a.attgenerated,
            y.oid AS type, 'bigint'::regtype IN (y.oid, y.typbasetype) AS is_bigint, format_type(y.oid, NULL) AS type_name,
            pg_get_expr(d.adbin, d.adrelid) AS expression,
            coalesce(pg_get_expr(d.adbin, d.adrelid) = _snowflake.next_function()::text, false) AS makes_ids
        INTO k FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid LEFT JOIN pg_attrdef AS d ON d.adrelid = tbl AND d.adnum = a.attnum
        WHERE a.attrelid = tbl AND a.attname = col AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
        RAISE undefined_column USING MESSAGE = format('column "%s" of "%s" does not exist', col, t.relname);
    ELSIF NOT (k.is_bigint OR k.type IN ('smallint'::regtype, 'integer'::regtype)) THEN
        RAISE datatype_mismatch USING MESSAGE = format('column "%s" of "%s" is of type %s', col, t.relname, k.type_name),
            DETAIL = 'Snowflake IDs take a column of type smallint, integer or bigint, or a domain over bigint.',
            HINT = 'Add a bigint column for the IDs, with DEFAULT snowflake_next().';
    ELSIF k.attgenerated <> '' THEN
        RAISE wrong_object_type USING MESSAGE = format('column "%s" of "%s" is a generated column', col, t.relname);
    END IF;
    RETURN k;
END $$;

-- snowflake_next(), wherever it is.
CREATE OR REPLACE FUNCTION _snowflake.next_function() RETURNS regprocedure
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.proname = 'snowflake_next' AND p.pronargs = 0
        AND p.proowner = (SELECT nspowner FROM pg_namespace WHERE nspname = '_snowflake') ORDER BY p.oid LIMIT 1
    $$;

-- A table, its partitions and the tables that inherit from it.
CREATE OR REPLACE FUNCTION _snowflake.family_of(tbl regclass) RETURNS SETOF regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE family (relid) AS (
        SELECT tbl::oid UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = relid
    ) SELECT relid::regclass FROM family ORDER BY relid
    $$;

-- The lowest and the highest value of a column of the caller's own tables. Whoever reads a table runs code of its owner, as of indexes.
CREATE OR REPLACE FUNCTION _snowflake.values_of(k record, OUT lowest bigint, OUT highest bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET row_security = off
    AS $$
DECLARE
    c record;
BEGIN
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, pg_get_userbyid(t.relowner) AS owner INTO c FROM _snowflake.family_of(k.tbl) AS f
        JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE pg_get_userbyid(t.relowner) <> current_user ORDER BY t.oid LIMIT 1;
    IF FOUND THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table %s belongs to role %I, and the caller is role %I', c.quoted, c.owner, current_user),
            DETAIL = 'Code of the table, such as expressions of its indexes, would run as the caller.',
            HINT = format('Have role %I call this.', c.owner);
    END IF;
    EXECUTE format('SELECT min(%1$I)::bigint, max(%1$I)::bigint FROM %2$s', k.attname, k.quoted) INTO lowest, highest;
END $$;

-- The datacenter and the worker of this database as one number; NULL where it has none.
CREATE OR REPLACE FUNCTION _snowflake.worker_id() RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    worker CONSTANT bigint := pg_sequence_last_value('_snowflake.worker');
BEGIN
    RETURN CASE WHEN worker >> 31 = _snowflake.home() THEN worker & 2147483647 END;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.preflight(
    given text, epoch timestamptz, servers integer, datacenters integer, leases boolean, ids_per_second double precision, years integer,
    javascript boolean, oldest_row timestamptz, keys regclass[], key_column name
) RETURNS TABLE (subject text, verdict text, finding text, advice text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    year CONSTANT bigint := 31556952000000;
    r CONSTANT record := _snowflake.record();
    l bigint[] := coalesce(_snowflake.layout(given), _snowflake.recorded_layout(r.form, r.epoch), _snowflake.layout('default'));
    now CONSTANT bigint := _snowflake.micros(clock_timestamp());
    made record;
    ends bigint;
    at bigint;
    share bigint;
    most numeric;
    next bigint;
    tbl regclass;
    k record;
    v record;
    likely text;
    worker bigint;
    shut_out text;
BEGIN
    IF epoch IS NOT NULL THEN
        made := _snowflake.with_epoch(l, CASE WHEN isfinite(epoch) AND epoch < '294000-01-01' THEN _snowflake.micros(epoch) ELSE -1 END);
        IF made.problem IS NOT NULL THEN
            RAISE invalid_parameter_value USING MESSAGE = format('the layout cannot begin at %s', epoch),
                DETAIL = format('%s. The layout is "%s".', upper(left(made.problem, 1)) || substr(made.problem, 2), _snowflake.notation(l)),
                HINT = 'Give an epoch from 1970 on, such as ''2024-01-01 00:00+00'', or a narrower timestamp.';
        END IF;
        l := made.layout;
    END IF;
    IF cardinality(keys) > 10000 THEN
        RAISE program_limit_exceeded USING MESSAGE = format('keys has %s tables', cardinality(keys)),
            DETAIL = 'One call checks at most 10000 keys.', HINT = 'Check them in several calls.';
    ELSIF array_position(keys, NULL) IS NOT NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'keys must not have a NULL',
            HINT = 'For example: SELECT * FROM snowflake_preflight(keys => ''{orders, customers}'');';
    ELSIF ids_per_second = 'nan' OR ids_per_second <= 0 THEN
        RAISE invalid_parameter_value USING MESSAGE = format('ids_per_second must be a number above 0: %s', ids_per_second),
            HINT = 'Give the IDs that the busiest server makes in a second, or leave it out if that is not known.';
    ELSIF least(servers, datacenters, years) < 1 THEN
        RAISE invalid_parameter_value USING MESSAGE = CASE WHEN servers < 1 THEN format('servers must be at least 1: %s', servers)
                WHEN datacenters < 1 THEN format('datacenters must be at least 1: %s', datacenters)
                ELSE format('years must be at least 1: %s', years) END,
            HINT = 'Leave it out, or NULL, if it is not known.';
    END IF;
    ends := l[2] + (l[4] + 1) * l[1];

    subject := 'layout';
    IF l[9] > 0 AND l[11] > 0 THEN
        verdict := 'ok';
        finding := _snowflake.notation(l);
    ELSE
        verdict := 'problem';
        finding := format('%s: field %s is missing, so IDs can only be read in this layout, not made', _snowflake.notation(l),
            CASE WHEN l[11] = 0 THEN 'sequence' ELSE 'worker' END);
        advice := 'Choose a layout with a worker and a sequence.';
    END IF;
    RETURN NEXT;

    subject := 'time';
    verdict := 'problem';
    finding := format('IDs can be made until %s, for %s years more; %s years have passed since the epoch', _snowflake.instant(ends, l),
        round(greatest(ends - now, 0)::numeric / year, 1), round(greatest(now - l[2], 0)::numeric / year, 1));
    IF now < l[2] THEN
        finding := format('the epoch, %s, is in the future: no ID can be made before it', _snowflake.instant(l[2], l));
        advice := 'Choose an epoch that has passed on all servers.';
    ELSIF now >= ends THEN
        finding := format('the time of the layout ended at %s', _snowflake.instant(ends, l));
        advice := 'Choose a later epoch, or a wider timestamp.';
    ELSIF ends - now < coalesce(years, 0) * year::numeric THEN
        finding := format('%s; %s years are planned', finding, years);
        advice := 'Choose a later epoch, or a wider timestamp: each bit more doubles the time.';
    ELSE
        verdict := 'ok';
        advice := NULL;
    END IF;
    RETURN NEXT;

    subject := 'bigint';
    verdict := 'ok';
    finding := format('IDs are from 0 to %s: they fit bigint and are never negative; their times are exact to %s', l[5],
        CASE WHEN l[1] % 1000000 = 0 THEN l[1] / 1000000 || ' s' WHEN l[1] % 1000 = 0 THEN l[1] / 1000 || ' ms' ELSE l[1] || ' us' END);
    advice := NULL;
    RETURN NEXT;

    subject := 'javascript';
    IF l[5] >= 9007199254740992 THEN
        at := l[2] + (9007199254740992 >> l[3]::integer) * l[1];
    END IF;
    advice := 'Send IDs to JavaScript as text (id::text), or choose a layout of 53 bits, such as cosid-js.';
    verdict := CASE WHEN javascript THEN 'problem' WHEN NOT javascript THEN 'ok' ELSE 'warning' END;
    IF l[5] < 9007199254740992 THEN
        finding := 'all IDs are below 2^53, so JavaScript has them exactly as numbers';
        verdict := 'ok';
        advice := NULL;
    ELSIF at <= now THEN
        finding := format('IDs are above 2^53 since %s: they lose digits as numbers of JavaScript', _snowflake.instant(at, l));
    ELSE
        finding := format('IDs are below 2^53 until %s: from then on, they lose digits as numbers of JavaScript', _snowflake.instant(at, l));
        IF at >= now + years * year::numeric THEN
            verdict := 'ok';
            advice := NULL;
        END IF;
    END IF;
    RETURN NEXT;

    subject := 'servers';
    verdict := 'problem';
    finding := CASE WHEN l[9] = 0 THEN 'the layout does not tell servers apart' ELSE format('%s servers can make IDs', 1::bigint << l[15]::integer) END
        || CASE WHEN l[7] > 0 AND l[9] > 0 THEN format(': %s datacenters with %s each', l[7] + 1, l[9] + 1) ELSE '' END
        || CASE WHEN servers IS NOT NULL AND datacenters IS NOT NULL THEN format('; %s are planned, in %s %s', servers, datacenters,
                CASE datacenters WHEN 1 THEN 'datacenter' ELSE 'datacenters' END)
            WHEN servers IS NOT NULL THEN format('; %s are planned', servers)
            WHEN datacenters IS NOT NULL THEN format('; %s datacenters are planned', datacenters) ELSE '' END;
    share := coalesce(servers, 0);
    most := 1::bigint << l[15]::integer;
    IF l[7] > 0 AND datacenters IS NOT NULL THEN
        share := ceil(share::numeric / datacenters);
        most := l[9] + 1;
    END IF;
    IF l[7] > 0 AND datacenters > l[7] + 1 THEN
        advice := 'Choose a layout with a wider datacenter, or one that numbers all servers together.';
    ELSIF share > most THEN
        advice := CASE WHEN l[7] > 0 THEN 'Choose a layout with a wider worker or datacenter.' ELSE 'Choose a layout with a wider worker.' END;
    ELSIF leases AND share * 2 > most THEN
        verdict := 'warning';
        advice := 'With leases, plan two workers for each server: after a crash, a server takes another worker at once, and its own is free '
            'only when the old lease ends.';
    ELSE
        verdict := 'ok';
        advice := CASE WHEN l[7] = 0 AND datacenters > 1 THEN
            'The layout has no datacenter: number the servers of all datacenters together.' END;
    END IF;
    RETURN NEXT;

    subject := 'rate';
    most := (l[11] + 1) * 1000000::numeric / l[1];
    finding := format('a server can make %s IDs a second, and a peak %s more in advance (max_burst is 100 ms)',
        round(most, CASE WHEN most < 10 THEN 2 ELSE 0 END), (l[11] + 1) * (100000 / l[1]))
        || CASE WHEN ids_per_second IS NULL THEN '' ELSE format('; %s are planned', CASE WHEN ids_per_second = 'infinity' THEN 'inf'
            ELSE round(ids_per_second::numeric, CASE WHEN ids_per_second < 10 THEN 2 ELSE 0 END)::text END) END;
    verdict := CASE WHEN ids_per_second > most THEN 'problem' WHEN ids_per_second * 2 > most THEN 'warning' ELSE 'ok' END;
    advice := CASE verdict WHEN 'problem' THEN 'Choose a layout with a wider sequence or a shorter tick, or write on more servers.'
        WHEN 'warning' THEN 'Peaks wait: choose a layout with a wider sequence or a shorter tick, or write on more servers.' END;
    RETURN NEXT;

    subject := 'old rows';
    verdict := 'ok';
    finding := format('rows from %s on can get IDs of their own time', coalesce(oldest_row, _snowflake.instant(l[2], l)));
    advice := NULL;
    IF oldest_row < _snowflake.instant(l[2], l) THEN
        verdict := 'problem';
        finding := format('the oldest row is of %s, and there are no IDs before %s', oldest_row, _snowflake.instant(l[2], l));
        advice := 'No layout begins before 1970. Such rows can keep other numbers.';
        IF oldest_row >= timestamptz '1970-01-01 00:00+00' THEN
            made := _snowflake.with_epoch(l, _snowflake.micros(oldest_row) / 86400000000 * 86400000000);
            IF made.problem IS NULL THEN
                advice := format('With the epoch ''%s'', they can; IDs then end at %s.', _snowflake.written(made.layout[2]),
                    _snowflake.instant(made.layout[2] + (l[4] + 1) * l[1], made.layout));
            END IF;
        END IF;
    ELSIF oldest_row >= _snowflake.instant(ends, l) THEN
        verdict := 'problem';
        finding := format('the oldest row is of %s, and there are no IDs from %s on', oldest_row, _snowflake.instant(ends, l));
        advice := 'Choose a later epoch, or a wider timestamp.';
    END IF;
    RETURN NEXT;

    next := CASE WHEN now >= l[2] AND now < ends THEN _snowflake.lowest(_snowflake.instant(now, l), l) END;
    FOREACH tbl IN ARRAY coalesce(keys, '{}') LOOP
        subject := 'key';
        BEGIN
            k := _snowflake.key_of(tbl, key_column);
            v := _snowflake.values_of(k);
        EXCEPTION
            WHEN null_value_not_allowed OR undefined_table OR wrong_object_type OR ambiguous_column OR undefined_column OR datatype_mismatch
                OR insufficient_privilege THEN
                GET STACKED DIAGNOSTICS finding = MESSAGE_TEXT, advice = PG_EXCEPTION_HINT;
                advice := CASE WHEN SQLSTATE = '42702' THEN 'Give it as key_column.' ELSE nullif(advice, '') END;
                verdict := 'problem';
                RETURN NEXT;
                CONTINUE;
        END;
        verdict := 'ok';
        advice := CASE WHEN NOT k.makes_ids THEN CASE WHEN k.is_bigint THEN 'snowflake_adopt() gives it IDs.'
            ELSE 'The library''s snowflake_adopt() gives it IDs, and makes it bigint; or stages do.' END END;
        IF v.highest IS NULL THEN
            finding := format('%s has no values', k.whole);
        ELSIF k.makes_ids AND l = _snowflake.recorded_layout(r.form, r.epoch) THEN
            finding := format('%s has IDs of this layout, from %s to %s', k.whole, v.lowest, v.highest);
        ELSIF next IS NULL THEN
            verdict := 'problem';
            finding := format('%s has values from %s to %s, and no ID can be made now', k.whole, v.lowest, v.highest);
            advice := NULL;
        ELSIF v.highest < next THEN
            finding := format('%s has values from %s to %s, which sort below the next ID, %s%s; times are true from %s on', k.whole, v.lowest, v.highest,
                next, CASE WHEN v.highest BETWEEN 0 AND l[5] THEN format('; read as IDs, they would be of the time up to %s',
                    _snowflake.time_of(v.highest, l)) END, _snowflake.time_of(next, l));
            advice := concat_ws(' ', advice, 'Have queries by time leave out what is below the first ID.',
                CASE WHEN v.lowest < 0 THEN 'Negative numbers are not IDs, and stay as they were.' END);
        ELSE
            verdict := 'problem';
            finding := format('%s has the value %s, and the next ID would be %s, which is not above it', k.whole, v.highest, next);
            SELECT string_agg(format('%s (%s)', b.name, b.at), ' or ' ORDER BY b.at DESC) INTO likely FROM (
                SELECT i.name, CASE WHEN v.highest BETWEEN 0 AND m[5] THEN _snowflake.time_of(v.highest, m) END AS at
                FROM _snowflake.built_in() AS i, _snowflake.layout(i.layout) AS m
            ) AS b WHERE b.at BETWEEN _snowflake.instant(now - year, l) AND _snowflake.instant(now + 60000000, l);
            advice := coalesce('If these are IDs, choose the layout that made them, so that they keep their meaning. The value could be of '
                || likely || '.', 'Choose an earlier epoch, or give such rows lower numbers.');
        END IF;
        RETURN NEXT;
        shut_out := _snowflake.shut_out(k.tbl, k.quoted);
        IF shut_out IS NOT NULL THEN
            verdict := 'problem';
            finding := shut_out;
            advice := 'Grant it, as the owner of the function. Or revoke INSERT from such roles.';
            RETURN NEXT;
        END IF;
    END LOOP;

    subject := 'server';
    worker := _snowflake.worker_id();
    verdict := 'warning';
    IF leases THEN
        finding := 'leases are planned, and the extension in SQL has none';
        advice := 'Number the databases by snowflake_configure(), each another number.';
        RETURN NEXT;
    END IF;
    IF l[15] > 31 THEN
        verdict := 'problem';
        finding := 'datacenter and worker have more than 31 bits together: IDs of this layout are made by the library only';
        advice := 'Choose a layout with fewer.';
        RETURN NEXT;
    ELSIF worker IS NULL THEN
        finding := 'this database has no worker ID';
        advice := 'SELECT snowflake_configure(1), with a number that no other database has.';
        RETURN NEXT;
    ELSIF NOT coalesce(leases, false) THEN
        verdict := 'ok';
        finding := 'this database has its worker ID';
        advice := NULL;
        RETURN NEXT;
    END IF;

    subject := 'database';
    verdict := 'ok';
    advice := NULL;
    IF l = _snowflake.recorded_layout(r.form, r.epoch) THEN
        finding := CASE WHEN pg_sequence_last_value('_snowflake.reservation') IS NOT NULL
            THEN 'this database has this layout on record, and IDs were made in it: the choice is made'
            ELSE 'this database has this layout on record, and no ID was made in it yet' END;
    ELSIF _snowflake.recorded_layout(r.form, r.epoch) IS NULL THEN
        verdict := 'warning';
        finding := 'this database has no layout on record yet';
        advice := format('SELECT snowflake_configure(1, layout => %L);', _snowflake.notation(l));
    ELSIF pg_sequence_last_value('_snowflake.reservation') IS NULL THEN
        verdict := 'warning';
        finding := format('this database has the layout "%s" on record, and no ID was made in it yet',
            _snowflake.notation(_snowflake.recorded_layout(r.form, r.epoch)));
        advice := format('SELECT snowflake_configure(1, layout => %L);', _snowflake.notation(l));
    ELSE
        verdict := 'problem';
        finding := format('IDs of the layout "%s" were made in this database: new ones could repeat them, and all would be misread',
            _snowflake.notation(_snowflake.recorded_layout(r.form, r.epoch)));
        advice := 'Keep that layout. To change it, dump the database, drop it, set the layout, and restore all but the sequences of the schema _snowflake, '
            'with tables that have no IDs of the old layout.';
    END IF;
    RETURN NEXT;
END $$;

-- A layout with another epoch, or why there is none.
CREATE OR REPLACE FUNCTION _snowflake.with_epoch(l bigint[], epoch bigint, OUT layout bigint[], OUT problem text)
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    fields integer[] := '{}';
    widths bigint[] := '{}';
    part bigint;
    made record;
BEGIN
    FOR place IN REVERSE 3..0 LOOP
        part := l[14] >> (8 * place) & 255;
        IF part > 0 THEN
            fields := fields || (part >> 6)::integer;
            widths := widths || (part & 63);
        END IF;
    END LOOP;
    made := _snowflake.make_layout(fields, widths, l[1], epoch);
    layout := made.layout;
    problem := made.problem;
END $$;

-- The roles (0 for PUBLIC) that may insert rows of a table, its partitions and heirs; of views that PostgreSQL writes through; or of what has
-- a rule that inserts, where its owner may do that: anybody can make a view. A default is evaluated as whoever inserts.
CREATE OR REPLACE FUNCTION _snowflake.writers(tbl regclass) RETURNS SETOF oid
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE ways (relation, privilege) AS (
        SELECT f::oid, 'INSERT' FROM _snowflake.family_of(tbl) AS f
        UNION
        SELECT w.ev_class, CASE w.ev_type WHEN '2' THEN 'UPDATE' WHEN '4' THEN 'DELETE' ELSE 'INSERT' END
        FROM ways JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.classid = 'pg_rewrite'::regclass
            JOIN pg_rewrite AS w ON w.oid = d.objid JOIN pg_class AS v ON v.oid = w.ev_class
            JOIN pg_class AS c ON c.oid = relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE CASE w.ev_type WHEN '1' THEN pg_relation_is_updatable(w.ev_class, false) & 8 <> 0
                ELSE strpos(pg_get_ruledef(w.oid), format('INSERT INTO %I.%I ', n.nspname, c.relname)) > 0 END
            AND CASE privilege WHEN 'DELETE' THEN has_table_privilege(v.relowner, relation, privilege)
                ELSE has_any_column_privilege(v.relowner, relation, privilege) END
    )
    SELECT g.grantee FROM ways JOIN pg_class AS c ON c.oid = relation, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS g
    WHERE g.privilege_type = privilege
    UNION
    SELECT g.grantee FROM ways JOIN pg_attribute AS a ON a.attrelid = relation, aclexplode(a.attacl) AS g
    WHERE g.privilege_type = privilege AND NOT a.attisdropped
    UNION
    SELECT oid FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, 'pg_write_all_data', 'USAGE')
    $$;

-- Those of them that may not call snowflake_next(), as a sentence; NULL where there are none.
CREATE OR REPLACE FUNCTION _snowflake.shut_out(tbl regclass, quoted text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT CASE WHEN count(*) > 0 THEN format('%s may insert rows of %s, and may not execute snowflake_next()',
        string_agg(r.name, ', ' ORDER BY r.name), quoted) END
    FROM _snowflake.writers(tbl) AS writer,
        LATERAL (SELECT CASE writer WHEN 0 THEN 'PUBLIC' ELSE format('role %I', pg_get_userbyid(writer)) END AS name) AS r
    WHERE NOT CASE writer WHEN 0 THEN has_function_privilege('public', _snowflake.next_function(), 'EXECUTE')
        ELSE has_function_privilege(writer, _snowflake.next_function(), 'EXECUTE') END
    $$;

-- Keys that are bigint already, from a sequence or an identity to snowflake IDs, and back: the crate moving in PL/pgSQL, as far as no column
-- becomes wider. What is on record is written as the library writes it, so each can lead the other's columns back.

-- The options of a sequence, without its type.
CREATE OR REPLACE FUNCTION _snowflake.sequence_clauses(sequence regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('START WITH %s INCREMENT BY %s %s %s CACHE %s%s', seqstart, seqincrement,
        CASE WHEN seqmin = CASE WHEN seqincrement > 0 THEN 1 ELSE lowest END THEN 'NO MINVALUE' ELSE format('MINVALUE %s', seqmin) END,
        CASE WHEN seqmax = CASE WHEN seqincrement > 0 THEN highest ELSE -1 END THEN 'NO MAXVALUE' ELSE format('MAXVALUE %s', seqmax) END,
        seqcache, CASE WHEN seqcycle THEN ' CYCLE' ELSE '' END)
    FROM pg_sequence, LATERAL (SELECT CASE seqtypid WHEN 'smallint'::regtype THEN -32768 WHEN 'integer'::regtype THEN -2147483648
        ELSE (-9223372036854775808)::bigint END AS lowest, CASE seqtypid WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype
        THEN 2147483647 ELSE 9223372036854775807 END AS highest) AS limits
    WHERE seqrelid = sequence
    $$;

-- Statements that give a sequence that is made again its privileges, and no others, whatever ALTER DEFAULT PRIVILEGES gives.
CREATE OR REPLACE FUNCTION _snowflake.sequence_grants(sequence regclass, quoted text) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH given AS (
        SELECT DISTINCT g.grantee FROM pg_class AS c JOIN pg_default_acl AS a ON a.defaclrole = c.relowner AND a.defaclobjtype = 'S'
            AND a.defaclnamespace IN (0, c.relnamespace), aclexplode(a.defaclacl) AS g
        WHERE c.oid = sequence
    )
    SELECT s.statement FROM (
        SELECT 1 AS step, g.grantee::bigint AS place, format('REVOKE ALL ON SEQUENCE %s FROM %s', quoted,
            CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END) AS statement
        FROM given AS g, pg_class AS c WHERE c.oid = sequence AND g.grantee <> c.relowner
        UNION ALL
        SELECT 2, min(g.place), format('GRANT %s ON SEQUENCE %s TO %s%s', string_agg(g.privilege_type, ', ' ORDER BY g.privilege_type), quoted,
            CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
        FROM pg_class AS c, aclexplode(c.relacl) WITH ORDINALITY AS g (grantor, grantee, privilege_type, is_grantable, place)
        WHERE c.oid = sequence AND g.grantee <> c.relowner GROUP BY g.grantee, g.is_grantable
    ) AS s ORDER BY s.step, s.place
    $$;

-- A name that no relation of a schema has.
CREATE OR REPLACE FUNCTION _snowflake.free_name(schema oid, wanted text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    base text := wanted;
    name text;
BEGIN
    WHILE octet_length(base) > 58 LOOP
        base := left(base, -1);
    END LOOP;
    name := base;
    FOR i IN 1..10000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = schema);
        name := base || i;
    END LOOP;
    RETURN name;
END $$;

-- Checks what both ways need, and takes the locks.
CREATE OR REPLACE FUNCTION _snowflake.check_moving(k record, locks boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT format('%I.%I', n.nspname, t.relname) AS quoted, pg_get_userbyid(t.relowner) AS owner, f AS tbl, t.relkind
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace ORDER BY t.oid LOOP
        IF NOT pg_has_role(c.owner, 'USAGE') THEN
            RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', c.quoted),
                DETAIL = 'These would have to change: the table itself, its partitions and the tables that inherit from it, and tables with '
                    'foreign keys that refer to it.';
        ELSIF c.owner <> current_user THEN
            RAISE insufficient_privilege USING
                MESSAGE = format('table %s belongs to role %I, and the caller is role %I', c.quoted, c.owner, current_user),
                DETAIL = 'Code of the table, such as expressions of its indexes, would run as the caller: the extension in SQL cannot run it '
                    'as the owner alone, as the library does.',
                HINT = format('Have role %1$I call this in a session of its own. If you trust that role''s code with your rights, SET ROLE '
                    '%1$I does as well.', c.owner);
        END IF;
    END LOOP;
    IF NOT locks THEN
        RETURN;
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE active_sql_transaction USING MESSAGE = 'a table can be moved in a READ COMMITTED transaction only',
            DETAIL = 'At other levels, the snapshot is older than the locks, and does not show what others committed in between.',
            HINT = 'Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', (SELECT string_agg(format('ONLY %I.%I', n.nspname, t.relname), ', ' ORDER BY t.oid)
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE t.relkind IN ('r', 'p')));
    IF to_regclass(k.quoted) IS DISTINCT FROM k.tbl::regclass THEN
        RAISE serialization_failure USING MESSAGE = format('others changed %s meanwhile', k.quoted),
            DETAIL = 'It was dropped or renamed while this call waited for it.', HINT = 'Nothing was changed by this call. Call it again.';
    END IF;
END $$;

-- The sequence that belongs to a column, with what is on record there.
CREATE OR REPLACE FUNCTION _snowflake.sequence_of(k record) RETURNS record
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    marker CONSTANT text := '; snowflake_release() drops this sequence';
    s record;
BEGIN
    SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS quoted, q.seqtypid, q.seqmin, q.seqmax, q.seqincrement, r.comment,
            m.memo, coalesce(m.memo IS NOT NULL AND r.is_marker, false) AS is_marker,
            nullif(CASE WHEN m.memo IS NOT NULL THEN r.line[1] ELSE r.comment END, '') AS users_comment,
            EXISTS (SELECT FROM pg_depend AS x WHERE x.refclassid = 'pg_class'::regclass AND x.refobjid = c.oid AND x.deptype = 'n'
                AND x.classid = 'pg_attrdef'::regclass AND NOT EXISTS (SELECT FROM pg_attrdef AS f WHERE f.oid = x.objid
                    AND f.adrelid IN (SELECT _snowflake.family_of(k.tbl)) AND f.adnum = k.attnum)) AS is_shared
        INTO s FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S' JOIN pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_sequence AS q ON q.seqrelid = c.oid,
            -- The last line that begins so, and what follows: the text of a default may have several lines.
            LATERAL (SELECT comment, line, right(line[2], length(marker)) = marker AS is_marker
                FROM (SELECT obj_description(c.oid, 'pg_class') AS comment) AS t,
                    regexp_match(t.comment, E'^(?:(.*)\n)?[[]snowflake_adopt: (.*)[]]$') AS line) AS r,
            LATERAL (SELECT CASE WHEN r.is_marker THEN left(r.line[2], -length(marker)) ELSE r.line[2] END AS said) AS o,
            LATERAL (SELECT CASE WHEN o.said ~ '^(GENERATED (ALWAYS|BY DEFAULT) AS IDENTITY$|no default$|DEFAULT )' THEN o.said END AS memo) AS m
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = k.tbl AND d.refobjsubid = k.attnum
            AND d.deptype IN ('a', 'i') ORDER BY m.memo IS NULL, c.oid LIMIT 1;
    RETURN s;
END $$;

-- Whether a text that is put into a statement is one expression there, or else cannot be read. Nothing here has the parser read a text
-- without running it. So this takes it apart as the lexer does where standard_conforming_strings is on, and looks at what is not quoted:
-- a comma or a semicolon outside of parentheses would begin another command. Comments and dollar quotes, which pg_get_expr() never
-- writes, are refused.
CREATE OR REPLACE FUNCTION _snowflake.is_one_expression(source text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    -- By the codes of its letters: those that are not of ASCII belong to it, whatever the locale says, and an E at its end begins no string.
    name CONSTANT text := E'[^\\u0001-@[-\\^`{-\\u007f][^\\u0001-#%-/:-@[-\\^`{-\\u007f]*';
    tokens CONSTANT text := E'[Ee]''(?:[^''\\\\]|\\\\.|'''')*''|''(?:[^'']|'''')*''|"(?:[^"]|"")*"|--|/[*]|' || name || '|.';
    token text;
    previous text := '';
    depth integer := 0;
BEGIN
    FOR token IN SELECT m[1] FROM regexp_matches(source, '(' || tokens || ')', 'g') AS m LOOP
        depth := depth + CASE WHEN token IN ('(', '[') THEN 1 WHEN token IN (')', ']') THEN -1 ELSE 0 END;
        -- A string that goes on in the next line is read as it begins, with an E or without.
        IF depth < 0 OR token = ',' AND depth = 0 OR token IN ('''', '"', '$', ';', '--', '/*')
            OR left(token, 1) = '''' AND right(previous, 1) = '''' THEN
            RETURN false;
        END IF;
        IF token !~ '^[[:space:]]' THEN
            previous := token;
        END IF;
    END LOOP;
    RETURN depth = 0 AND source ~ '[^[:space:]]';
END $$;

-- The columns that hold the values of a key: itself, and those that refer to it, also by way of others, partitions and tables that inherit.
CREATE OR REPLACE FUNCTION _snowflake.reached_columns(tbl regclass, key smallint) RETURNS TABLE (relation oid, number smallint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE reached (relation, number) AS (
        SELECT tbl::oid, key
        UNION
        SELECT next.* FROM reached AS r, LATERAL (
            SELECT f.conrelid, pair.here FROM pg_constraint AS f, unnest(f.conkey, f.confkey) AS pair (here, there)
            WHERE f.contype = 'f' AND f.confrelid = r.relation AND pair.there = r.number
            UNION ALL
            SELECT i.inhrelid, heir.attnum FROM pg_attribute AS own JOIN pg_inherits AS i ON i.inhparent = own.attrelid
                JOIN pg_attribute AS heir ON heir.attrelid = i.inhrelid AND heir.attname = own.attname
            WHERE own.attrelid = r.relation AND own.attnum = r.number
            UNION ALL
            SELECT i.inhparent, parent.attnum FROM pg_attribute AS own JOIN pg_inherits AS i ON i.inhrelid = own.attrelid
                JOIN pg_attribute AS parent ON parent.attrelid = i.inhparent AND parent.attname = own.attname
            WHERE own.attrelid = r.relation AND own.attnum = r.number AND NOT parent.attisdropped
        ) AS next
    )
    SELECT * FROM reached
    $$;

-- Those that are narrower than bigint. Of partitions and tables that inherit, the one at the top is named.
CREATE OR REPLACE FUNCTION _snowflake.narrow_columns(tbl regclass, key smallint) RETURNS TABLE (relation oid, number smallint, whole text, type_name text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT a.attrelid, a.attnum, format('%I.%I.%I', n.nspname, t.relname, a.attname), format_type(a.atttypid, NULL)
    FROM _snowflake.reached_columns(tbl, key) AS r JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.number
        JOIN pg_type AS y ON y.oid = a.atttypid JOIN pg_class AS t ON t.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace
    WHERE (a.attinhcount = 0 OR (a.attrelid, a.attnum) = (tbl, key)) AND 'bigint'::regtype NOT IN (y.oid, y.typbasetype)
    $$;

-- What PostgreSQL does not let a column change its type for, or be replaced; as sentences.
CREATE OR REPLACE FUNCTION _snowflake.in_the_way(tbl oid, number smallint, whole text) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT DISTINCT format('%s depends on column %s', pg_describe_object(d.classid, d.objid, d.objsubid), whole)
    FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = number AND d.classid IN
        ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
    UNION ALL
    -- Up to PostgreSQL 14, it is the generated column itself that depends, and not its expression.
    SELECT DISTINCT format('generated %s depends on column %s', pg_describe_object('pg_class'::regclass, g.attrelid, g.attnum), whole)
    FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        JOIN pg_attribute AS g ON (g.attrelid, g.attnum) = (f.adrelid, f.adnum)
            OR d.classid = 'pg_class'::regclass AND (g.attrelid, g.attnum) = (d.objid, d.objsubid)
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = number AND g.attgenerated <> ''
    UNION ALL
    SELECT format('%s is partitioned by column %s', pg_describe_object('pg_class'::regclass, tbl, 0), whole)
    FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = tbl AND d.objsubid = number
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = 0 AND d.deptype = 'i'
    UNION ALL
    SELECT format('%s is of the type %s', pg_describe_object('pg_class'::regclass, t.oid, 0), format_type(t.reloftype, NULL))
    FROM pg_class AS t WHERE t.oid = tbl AND t.reloftype <> 0
    UNION ALL
    SELECT format('%s has rows of %s as its type', pg_describe_object(d.classid, d.objid, d.objsubid),
        pg_describe_object('pg_class'::regclass, tbl, 0))
    FROM pg_class AS t JOIN pg_type AS y ON y.oid = t.reltype JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass
        AND d.refobjid IN (y.oid, y.typarray)
    WHERE t.oid = tbl AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
    ORDER BY 1
    $$;

-- Constraints of these columns that no ID from this one on passes, as sentences: of the caller's own tables and domains, if they call nothing
-- but PostgreSQL's functions.
CREATE OR REPLACE FUNCTION _snowflake.refusing(tbl regclass, key smallint, first bigint) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
    refused boolean;
BEGIN
    FOR c IN
        WITH RECURSIVE held AS (
            SELECT a.* FROM _snowflake.reached_columns(tbl, key) AS r JOIN pg_attribute AS a ON (a.attrelid, a.attnum) = (r.relation, r.number)
                JOIN pg_class AS t ON t.oid = a.attrelid WHERE pg_get_userbyid(t.relowner) = current_user
        ), bases (type) AS (
            SELECT atttypid FROM held UNION SELECT y.typbasetype FROM bases AS b JOIN pg_type AS y ON y.oid = b.type WHERE y.typtype = 'd'
        ), found AS (
            SELECT k.oid, k.contypid, to_jsonb(k) AS all_of_it, format('constraint %I: %s', k.conname, pg_get_expr(k.conbin, k.conrelid)) AS what,
                pg_get_expr(k.conbin, k.conrelid) AS expression, h.attname
            FROM held AS h JOIN pg_constraint AS k ON k.conrelid = h.attrelid AND k.conkey = ARRAY[h.attnum] AND k.contype = 'c' AND k.coninhcount = 0
            -- Rows of a partition or a child are not all rows.
            WHERE NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = h.attrelid)
            UNION ALL
            -- The word VALUE of a domain's constraint is the name of a column here.
            SELECT k.oid, k.contypid, to_jsonb(k), format('constraint of the domain %s: %s', b.type::regtype, pg_get_constraintdef(k.oid)),
                pg_get_expr(k.conbin, 0), 'value'
            FROM bases AS b JOIN pg_type AS y ON y.oid = b.type JOIN pg_constraint AS k ON k.contypid = y.oid AND k.contype = 'c'
            WHERE pg_get_userbyid(y.typowner) = current_user
        )
        SELECT what, expression, attname FROM found AS f WHERE NOT EXISTS (SELECT FROM pg_depend AS d
            WHERE d.classid = 'pg_constraint'::regclass AND d.objid = f.oid AND d.refclassid <> 'pg_class'::regclass
                AND (d.refclassid, d.refobjid) <> ('pg_type'::regclass, f.contypid))
            -- From 18 on, one may not be enforced.
            AND coalesce((f.all_of_it ->> 'conenforced')::boolean, true)
        ORDER BY what
    LOOP
        BEGIN
            -- One that lets some pass, as by a remainder or of another worker, does not count.
            EXECUTE format('SELECT bool_and((%s) IS FALSE) FROM (SELECT $1 | _snowflake.id(n & 15, n, _snowflake.layout()) AS %I
                FROM generate_series(0, 1023) AS n) AS v', c.expression, c.attname) INTO refused USING first;
        EXCEPTION WHEN OTHERS THEN
            refused := true;
            c.what := format('%s, which fails for it: %s', c.what, SQLERRM);
        END;
        IF refused THEN
            RETURN NEXT 'no new ID passes the ' || c.what;
        END IF;
    END LOOP;
END $$;

-- What snowflake_adopt() does: obstacles, statements in their order, notes.
CREATE OR REPLACE FUNCTION _snowflake.adopt_steps(k record) RETURNS TABLE (kind text, statement text, locks text, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
    s record;
    v record;
    alter_column CONSTANT text := format('ALTER TABLE %s ALTER COLUMN %I', k.quoted, k.attname);
    next bigint;
    marker text;
    p record;
BEGIN
    kind := 'obstacle';
    FOR c IN SELECT n.*, (n.relation, n.number) = (k.tbl, k.attnum) AS is_key
        FROM _snowflake.narrow_columns(k.tbl, k.attnum) AS n ORDER BY is_key DESC, n.whole LOOP
        note := CASE WHEN c.is_key THEN format('column %s is %s, and the extension in SQL gives IDs to bigint columns only', c.whole, c.type_name)
            ELSE format('column %s, which refers to it, is %s, and is to be bigint first', c.whole, c.type_name) END;
        RETURN NEXT;
        -- What stages would have to drop.
        FOR note IN SELECT w FROM _snowflake.in_the_way(c.relation, c.number, c.whole) AS w LOOP
            RETURN NEXT;
        END LOOP;
    END LOOP;
    note := _snowflake.shut_out(k.tbl, k.quoted);
    IF note IS NOT NULL THEN
        RETURN NEXT;
    END IF;
    FOR c IN SELECT format('%I.%I', n.nspname, t.relname) AS quoted, pg_get_expr(d.adbin, d.adrelid) AS expression, a.attidentity
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = f AND a.attname = k.attname LEFT JOIN pg_attrdef AS d ON d.adrelid = f AND d.adnum = a.attnum
        WHERE f <> k.tbl::regclass AND (t.relkind NOT IN ('r', 'p') OR d.adbin IS NOT NULL AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM k.expression)
    LOOP
        note := format('%s is a foreign table, or has a default of its own for the column', c.quoted);
        RETURN NEXT;
    END LOOP;
    v := _snowflake.values_of(k);
    next := _snowflake.lowest(clock_timestamp(), _snowflake.layout());
    IF v.highest >= next THEN
        note := format('column %s has the value %s, and the next ID would be %s, which is not above it', k.whole, v.highest, next);
        RETURN NEXT;
    END IF;
    IF k.relkind = 'p' AND EXISTS (SELECT FROM pg_partitioned_table AS d WHERE d.partrelid = k.tbl AND d.partstrat IN ('r', 'l') AND d.partattrs[0] = k.attnum)
        AND NOT EXISTS (SELECT FROM pg_inherits JOIN pg_class AS t ON t.oid = inhrelid,
            regexp_match(pg_get_expr(t.relpartbound, t.oid), 'FROM [(]''?([^'',)]*)''?.* TO [(]''?([^'',)]*)') AS b
            WHERE inhparent = k.tbl AND (pg_get_expr(t.relpartbound, t.oid) = 'DEFAULT' OR
                CASE b[1] WHEN 'MINVALUE' THEN '-Infinity' ELSE b[1] END::numeric <= next AND CASE b[2] WHEN 'MAXVALUE' THEN 'Infinity' ELSE b[2] END::numeric > next)) THEN
        note := format('table %s is partitioned by the column, and has no partition for new IDs, from %s on', k.quoted, next);
        RETURN NEXT;
    END IF;
    FOR note IN SELECT r FROM _snowflake.refusing(k.tbl, k.attnum, next) AS r LOOP
        RETURN NEXT;
    END LOOP;

    kind := 'statement';
    SELECT string_agg(format('%I.%I', n.nspname, t.relname), ', ' ORDER BY t.oid) INTO locks
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace;
    statement := format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', locks);
    note := 'takes all locks first, in the order of the tables'' OIDs';
    RETURN NEXT;
    s := _snowflake.sequence_of(k);
    IF k.attidentity <> '' THEN
        statement := alter_column || ' DROP IDENTITY';
        note := 'the identity''s sequence goes with it, and is made again';
        RETURN NEXT;
        EXECUTE format('SELECT last_value, is_called FROM %s', s.quoted) INTO p;
        locks := NULL;
        statement := format('CREATE SEQUENCE %s AS %s %s', s.quoted, format_type(s.seqtypid, NULL), _snowflake.sequence_clauses(s.oid));
        note := 'as it was';
        RETURN NEXT;
        statement := format('SELECT pg_catalog.setval(%L::pg_catalog.regclass, %s, %s)', s.quoted, p.last_value, p.is_called::text);
        note := 'goes on where it was';
        RETURN NEXT;
        note := NULL;
        statement := format('ALTER SEQUENCE %s OWNED BY %s', s.quoted, k.whole);
        locks := s.quoted;
        RETURN NEXT;
        locks := NULL;
        FOR statement IN SELECT g FROM _snowflake.sequence_grants(s.oid, s.quoted) AS g LOOP
            RETURN NEXT;
        END LOOP;
        locks := k.quoted;
    END IF;
    statement := format('%s SET DEFAULT %s', alter_column, _snowflake.next_function()::text);
    note := CASE WHEN k.attidentity <> '' THEN NULL WHEN k.expression IS NULL THEN 'the column had no default'
        ELSE format('the default was %s', k.expression) END;
    RETURN NEXT;
    locks := NULL;
    note := 'for snowflake_release()';
    IF k.attidentity <> '' THEN
        statement := format('COMMENT ON SEQUENCE %s IS %L', s.quoted, concat_ws(E'\n', s.comment, format('[snowflake_adopt: GENERATED %s AS IDENTITY]',
            CASE k.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END)));
        RETURN NEXT;
    ELSIF s.oid IS NULL OR k.expression IS DISTINCT FROM format('nextval(%L::regclass)', s.quoted) THEN
        marker := format('%I.%I', k.nspname, _snowflake.free_name(k.relnamespace, format('%s_%s_before_snowflake', k.relname, k.attname)));
        statement := format('CREATE SEQUENCE %s', marker);
        note := 'for the way back: its comment says what was before, and it goes with the column';
        RETURN NEXT;
        note := NULL;
        statement := format('ALTER SEQUENCE %s OWNED BY %s', marker, k.whole);
        locks := marker;
        RETURN NEXT;
        locks := NULL;
        note := 'for snowflake_release()';
        statement := format('COMMENT ON SEQUENCE %s IS %L', marker, format('[snowflake_adopt: %s; snowflake_release() drops this sequence]',
            CASE WHEN k.expression IS NULL THEN 'no default' ELSE format('DEFAULT %s', k.expression) END));
        RETURN NEXT;
    END IF;

    kind := 'note';
    statement := NULL;
    IF s.oid IS NOT NULL THEN
        note := format('sequence %s stays, for the way back: clients that ask it by themselves, as Hibernate''s SEQUENCE does, still get small numbers', s.quoted);
        RETURN NEXT;
    END IF;
    note := CASE WHEN v.highest IS NULL THEN format('%s has no values yet', k.whole)
        ELSE format('%s has values from %s to %s, which stay. They have no true times: new IDs are at or above first_id, which snowflake_adopt() '
            'returns, and which is at least %s', k.whole, v.lowest, v.highest, next) END;
    RETURN NEXT;
    IF v.lowest < 0 THEN
        note := format('negative values of %s are no IDs: functions such as snowflake_timestamp() refuse them', k.whole);
        RETURN NEXT;
    END IF;
    IF k.attidentity = 'a' THEN
        note := format('from now on, clients may give values of their own for %s, which GENERATED ALWAYS refused', k.whole);
        RETURN NEXT;
    END IF;
    note := 'no row is tried: the extension in SQL does not do that';
    RETURN NEXT;
    note := 'lastval() and currval() know nothing of IDs: clients must use INSERT ... RETURNING';
    RETURN NEXT;
END $$;

-- What snowflake_release() does.
CREATE OR REPLACE FUNCTION _snowflake.release_steps(k record, start bigint, identity boolean)
    RETURNS TABLE (kind text, statement text, locks text, note text, begins bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    alter_column CONSTANT text := format('ALTER TABLE %s ALTER COLUMN %I', k.quoted, k.attname);
    s record;
    v record;
    p record;
    fresh text;
    taken boolean;
    to_identity boolean;
    is_new boolean;
    statements text[] := '{}';
    writers text;
BEGIN
    s := _snowflake.sequence_of(k);
    v := _snowflake.values_of(k);
    to_identity := coalesce(identity, false) OR s.memo LIKE 'GENERATED%' AND s.memo IS NOT NULL;
    is_new := s.oid IS NULL OR s.is_marker AND (start IS NOT NULL OR to_identity);
    IF to_identity AND NOT k.attnotnull THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s may be NULL, and an identity may not', k.whole),
            HINT = 'Set it NOT NULL first, or leave identity out.';
    ELSIF to_identity AND k.relkind = 'r' AND (SELECT count(*) FROM _snowflake.family_of(k.tbl)) > 1 THEN
        RAISE feature_not_supported USING MESSAGE = format('tables inherit column %s, and would not inherit an identity', k.whole),
            HINT = 'Leave identity out: they inherit the default.';
    END IF;
    IF start IS NULL AND s.is_marker AND NOT to_identity THEN
        begins := NULL;
    ELSE
        IF start IS NULL AND v.highest = 9223372036854775807 THEN
            RAISE sequence_generator_limit_exceeded USING MESSAGE = format('no bigint is above the highest value of column %s', k.whole),
                HINT = 'Give a start in a range of values that no row has.';
        END IF;
        begins := coalesce(start, greatest(v.highest + 1, 1), 1);
        IF NOT is_new AND s.is_shared THEN
            EXECUTE format('SELECT CASE WHEN is_called THEN last_value + $1 ELSE last_value END AS next FROM %s', s.quoted) INTO p USING s.seqincrement;
            begins := greatest(coalesce(start, p.next), p.next);
        END IF;
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I = $1)', k.quoted, k.attname) INTO taken USING begins;
        IF taken THEN
            RAISE invalid_parameter_value USING MESSAGE = format('a row has the value %s in column %s', begins, k.whole),
                HINT = 'Give a start that no row has, or leave it out for the value after the highest.';
        END IF;
    END IF;

    kind := 'statement';
    SELECT string_agg(format('%I.%I', n.nspname, t.relname), ', ' ORDER BY t.oid) INTO locks
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace;
    statement := format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', locks);
    note := 'takes all locks first, in the order of the tables'' OIDs';
    RETURN NEXT;
    note := NULL;
    fresh := CASE WHEN is_new THEN format('%I.%I', k.nspname, _snowflake.free_name(k.relnamespace, format('%s_%s_seq', k.relname, k.attname)))
        ELSE s.quoted END;
    IF to_identity THEN
        statements := statements || (alter_column || ' DROP DEFAULT');
        IF s.oid IS NOT NULL THEN
            statements := statements || format('DROP SEQUENCE %s', s.quoted);
        END IF;
        statements := statements || format('%s ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s%s)', alter_column,
                CASE WHEN s.memo LIKE 'GENERATED ALWAYS%' AND s.memo IS NOT NULL THEN 'ALWAYS' ELSE 'BY DEFAULT' END, fresh,
                CASE WHEN NOT is_new THEN ' ' || _snowflake.sequence_clauses(s.oid) WHEN begins < 1 THEN format(' MINVALUE %s', begins) END)
            || format('ALTER SEQUENCE %s RESTART WITH %s', fresh, begins);
        IF NOT is_new THEN
            statements := statements || ARRAY(SELECT g FROM _snowflake.sequence_grants(s.oid, s.quoted) AS g);
            IF s.users_comment IS NOT NULL THEN
                statements := statements || format('COMMENT ON SEQUENCE %s IS %L', s.quoted, s.users_comment);
            END IF;
        END IF;
    ELSIF begins IS NULL THEN
        IF s.memo <> 'no default' AND NOT _snowflake.is_one_expression(substr(s.memo, 9)) THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s cannot be released yet', k.whole),
                DETAIL = format('The default that is on record, %s, cannot be put back: it is not one expression.', substr(s.memo, 9)),
                HINT = 'Nothing was changed. It stands in the comment of a sequence that belongs to the column. Change it there, or give a '
                    'start, for a new sequence.';
        END IF;
        statements := statements || CASE s.memo WHEN 'no default' THEN alter_column || ' DROP DEFAULT'
                ELSE format('%s SET DEFAULT %s', alter_column, substr(s.memo, 9)) END
            || format('DROP SEQUENCE %s', s.quoted);
    ELSE
        IF is_new THEN
            statements := statements || format('CREATE SEQUENCE %s AS bigint MINVALUE %s START WITH %s', fresh, least(begins, 1), begins)
                || format('ALTER SEQUENCE %s OWNED BY %s', fresh, k.whole);
        ELSE
            statements := statements || format('ALTER SEQUENCE %s%s%s RESTART WITH %s', fresh,
                CASE WHEN begins > s.seqmax THEN ' AS bigint' END,
                CASE WHEN begins < s.seqmin THEN format(' MINVALUE %s', begins) WHEN begins > s.seqmax AND s.seqtypid = 'bigint'::regtype THEN ' NO MAXVALUE' END,
                begins);
            IF s.memo IS NOT NULL THEN
                statements := statements || format('COMMENT ON SEQUENCE %s IS %s', fresh, quote_nullable(s.users_comment));
            END IF;
        END IF;
        statements := statements || format('%s SET DEFAULT pg_catalog.nextval(%L::pg_catalog.regclass)', alter_column, fresh);
        IF s.oid IS NOT NULL AND is_new THEN
            statements := statements || format('DROP SEQUENCE %s', s.quoted);
        END IF;
        SELECT string_agg(w.name, ', ' ORDER BY w.name) INTO writers FROM (
            SELECT CASE writer WHEN 0 THEN 'PUBLIC' ELSE writer::regrole::text END AS name FROM _snowflake.writers(k.tbl) AS writer
            WHERE writer <> k.relowner AND (is_new OR NOT CASE writer WHEN 0 THEN has_sequence_privilege('public', s.oid, 'USAGE, UPDATE')
                ELSE has_sequence_privilege(writer, s.oid, 'USAGE, UPDATE') END)
        ) AS w;
        IF writers IS NOT NULL THEN
            statements := statements || format('GRANT USAGE ON SEQUENCE %s TO %s', fresh, writers);
        END IF;
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        locks := CASE WHEN statement LIKE 'ALTER TABLE%' THEN k.quoted WHEN statement LIKE 'ALTER SEQUENCE%' THEN fresh END;
        RETURN NEXT;
    END LOOP;
    kind := 'note';
    statement := NULL;
    locks := NULL;
    note := format('rows keep their IDs, and column %s stays bigint', k.whole);
    RETURN NEXT;
END $$;

-- The plans, as rows. Here, and where they are carried out, texts of expressions are written and read in one way.
CREATE OR REPLACE FUNCTION _snowflake.adopt_plan(tbl regclass, col name, views text)
    RETURNS TABLE (step integer, kind text, statement text, locks text, rewrites text, bytes bigint, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    k record;
    s record;
    number integer := 0;
BEGIN
    PERFORM _snowflake.check_views(views);
    k := _snowflake.key_of(tbl, col);
    PERFORM _snowflake.check_moving(k, false);
    PERFORM _snowflake.refuse_adopted(k);
    FOR s IN SELECT * FROM _snowflake.adopt_steps(k) LOOP
        number := number + (s.kind = 'statement')::integer;
        step := CASE s.kind WHEN 'statement' THEN number END;
        kind := s.kind;
        statement := s.statement || ';';
        locks := s.locks;
        note := s.note;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.check_views(views text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF views IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'views must not be NULL',
            HINT = 'For example: SELECT * FROM snowflake_adopt_plan(''orders'');';
    ELSIF views NOT IN ('refuse', 'recreate') THEN
        RAISE invalid_parameter_value USING MESSAGE = format('views cannot be "%s"', _snowflake.shortened(views)),
            HINT = 'Use "refuse", or "recreate" to have views dropped and created again.';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.refuse_adopted(k record) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF k.makes_ids AND k.is_bigint THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s makes snowflake IDs already', k.whole),
            DETAIL = 'Its default is snowflake_next(), and all columns that refer to it are bigint.';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.adopt(tbl regclass, col name, views text) RETURNS TABLE (first_id bigint, adopted_at timestamptz, highest_before bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    l CONSTANT bigint[] := _snowflake.layout();
    k record;
    s record;
    v record;
    obstacles text;
    statements text[];
    statement text;
    id bigint;
BEGIN
    PERFORM _snowflake.check_views(views);
    k := _snowflake.key_of(tbl, col);
    PERFORM _snowflake.check_moving(k, true);
    -- What others have changed before the lock was granted.
    k := _snowflake.key_of(tbl, k.attname);
    PERFORM _snowflake.check_moving(k, true);
    PERFORM _snowflake.refuse_adopted(k);
    SELECT string_agg(a.note, E'.\n') FILTER (WHERE a.kind = 'obstacle'), array_agg(a.statement) FILTER (WHERE a.kind = 'statement')
        INTO obstacles, statements FROM _snowflake.adopt_steps(k) AS a;
    IF obstacles IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s cannot get snowflake IDs yet', k.whole),
            DETAIL = obstacles || '.',
            HINT = 'Nothing was changed.' || CASE WHEN obstacles ~ 'bigint columns only|is to be bigint first' THEN
                ' Columns become bigint in stages, by examples/moving-in/staged.sql, which needs no library; or by the library''s '
                'snowflake_adopt().' ELSE '' END;
    END IF;
    v := _snowflake.values_of(k);
    -- Drawn behind the lock: whatever is made after it is above.
    EXECUTE format('SELECT %s', _snowflake.next_function()::text) INTO id;
    IF id <= v.highest THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s cannot get snowflake IDs yet', k.whole),
            DETAIL = format('It has the value %s, and the next ID is %s, which is not above it.', v.highest, id), HINT = 'Nothing was changed.';
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement;
    END LOOP;
    k := _snowflake.key_of(tbl, k.attname);
    IF NOT k.makes_ids THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('the default of column %s would call another function', k.whole),
            HINT = 'Nothing was changed. Find out who created that function.';
    END IF;
    first_id := id >> l[3]::integer << l[3]::integer;
    adopted_at := _snowflake.time_of(first_id, l);
    highest_before := v.highest;
    RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.release_plan(tbl regclass, col name, start bigint, identity boolean)
    RETURNS TABLE (step integer, kind text, statement text, locks text, rewrites text, bytes bigint, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    k record;
    s record;
    number integer := 0;
BEGIN
    k := _snowflake.released_key(tbl, col);
    PERFORM _snowflake.check_moving(k, false);
    FOR s IN SELECT * FROM _snowflake.release_steps(k, start, identity) LOOP
        number := number + (s.kind = 'statement')::integer;
        step := CASE s.kind WHEN 'statement' THEN number END;
        kind := s.kind;
        statement := s.statement || ';';
        locks := s.locks;
        note := s.note;
        RETURN NEXT;
    END LOOP;
END $$;

-- The column that is to be led back.
CREATE OR REPLACE FUNCTION _snowflake.released_key(tbl regclass, col name) RETURNS record
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    k record := _snowflake.key_of(tbl, col);
BEGIN
    IF NOT k.makes_ids THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('the default of column %s is not snowflake_next()', k.whole);
    END IF;
    RETURN k;
END $$;

CREATE OR REPLACE FUNCTION _snowflake.release(tbl regclass, col name, start bigint, identity boolean) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    k record;
    statements text[];
    statement text;
    begins bigint;
BEGIN
    k := _snowflake.released_key(tbl, col);
    PERFORM _snowflake.check_moving(k, true);
    k := _snowflake.released_key(tbl, k.attname);
    PERFORM _snowflake.check_moving(k, true);
    SELECT array_agg(a.statement) FILTER (WHERE a.kind = 'statement'), min(a.begins) INTO statements, begins
        FROM _snowflake.release_steps(k, start, identity) AS a;
    FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement;
    END LOOP;
    RETURN begins;
END $$;

-- In place of the library's type, which only a superuser can create: a domain. So tables are declared and dumped alike.

IF to_regtype('_snowflake.snowflake_id') IS NULL THEN
    CREATE DOMAIN snowflake_id AS bigint;
END IF;
COMMENT ON TYPE snowflake_id IS
    'a bigint, for tables that are declared as with the library; JSON functions write it as a number';
CREATE OR REPLACE FUNCTION snowflake_database_layout() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 10
    RETURN _snowflake.notation(_snowflake.layout());
COMMENT ON FUNCTION snowflake_database_layout() IS
    'layout of the snowflake IDs of this database, in full notation';

-- Reading the parts of an ID, and composing an ID from parts. These functions work without preloading and on standbys.
--
-- The accessors are C functions. snowflake_decode() is an SQL function that calls them. It is not STRICT, so that the planner can
-- inline it: (snowflake_decode(id)).* costs as much as the accessors.
IF to_regtype('_snowflake.snowflake_parts') IS NULL THEN
CREATE TYPE snowflake_parts AS (
    "timestamp" timestamptz,
    datacenter_id integer,
    worker_id integer,
    sequence integer
);
END IF;
COMMENT ON TYPE snowflake_parts IS
    'parts of a snowflake ID; a part that its layout does not have is NULL';

CREATE OR REPLACE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.time_of(id, _snowflake.layout());
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time of a snowflake ID, rounded down to a tick of its layout';

CREATE OR REPLACE FUNCTION snowflake_datacenter(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 6, _snowflake.layout());
COMMENT ON FUNCTION snowflake_datacenter(bigint) IS
    'datacenter of a snowflake ID; NULL if the layout has none';

CREATE OR REPLACE FUNCTION snowflake_worker(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 8, _snowflake.layout());
COMMENT ON FUNCTION snowflake_worker(bigint) IS
    'worker of a snowflake ID; NULL if the layout has none';

CREATE OR REPLACE FUNCTION snowflake_sequence(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 10, _snowflake.layout());
COMMENT ON FUNCTION snowflake_sequence(bigint) IS
    'sequence number of a snowflake ID within its tick';

CREATE OR REPLACE FUNCTION snowflake_decode(id bigint) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN ROW (
        snowflake_timestamp(id),
        snowflake_datacenter(id),
        snowflake_worker(id),
        snowflake_sequence(id)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of a snowflake ID';

CREATE OR REPLACE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer DEFAULT 0,
    datacenter_id integer DEFAULT NULL
) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN CASE WHEN sequence IS NOT NULL THEN
        _snowflake.encode("timestamp", worker_id, sequence, datacenter_id, _snowflake.layout()) END;
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'composes a snowflake ID from its parts, for tests and for existing rows; does not ensure that it is unique';

-- The same functions for a layout that the caller names: a built-in one, or one in the notation of pg_snowflake.layout.
CREATE OR REPLACE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.time_of(id, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time of a snowflake ID of the given layout, rounded down to a tick';

CREATE OR REPLACE FUNCTION snowflake_datacenter(id bigint, layout text) RETURNS integer
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 6, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_datacenter(bigint, text) IS
    'datacenter of a snowflake ID of the given layout; NULL if the layout has none';

CREATE OR REPLACE FUNCTION snowflake_worker(id bigint, layout text) RETURNS integer
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 8, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_worker(bigint, text) IS
    'worker of a snowflake ID of the given layout; NULL if the layout has none';

CREATE OR REPLACE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 10, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
    'sequence number of a snowflake ID of the given layout; NULL if the layout has none';

CREATE OR REPLACE FUNCTION snowflake_decode(id bigint, layout text) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 8
    RETURN ROW (
        snowflake_timestamp(id, layout),
        snowflake_datacenter(id, layout),
        snowflake_worker(id, layout),
        snowflake_sequence(id, layout)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of a snowflake ID of the given layout';

CREATE OR REPLACE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer,
    datacenter_id integer,
    layout text
) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN _snowflake.encode("timestamp", worker_id, sequence, datacenter_id, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'composes a snowflake ID of the given layout from its parts; does not ensure that it is unique';

-- The built-in layouts.
EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_layouts() RETURNS TABLE (
    name text,
    layout text,
    tick interval,
    first_time timestamptz,
    last_time timestamptz,
    workers bigint,
    ids_per_second bigint,
    makes_ids boolean,
    fits_double boolean,
    source text
)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 100 ROWS 16
    BEGIN ATOMIC
        SELECT b.name, b.layout, l[1] * interval '1 microsecond', _snowflake.instant(l[2], l),
            _snowflake.instant(l[2] + l[4] * l[1], l), 1::bigint << l[15]::integer, (l[11] + 1) * 1000000 / l[1],
            l[9] > 0 AND l[11] > 0 AND pg_catalog.clock_timestamp() < _snowflake.instant(l[2] + (l[4] + 1) * l[1], l),
            l[5] < 9007199254740992, b.source
        FROM _snowflake.built_in() AS b, _snowflake.layout(b.layout) AS l;
    END
$sql$;
COMMENT ON FUNCTION snowflake_layouts() IS
    'built-in layouts of snowflake IDs; ids_per_second is the highest rate of one worker';

-- Lowest and highest IDs of a range of time. With them, a query by time can use an index on the ID. They have a result
-- for every instant: where no ID is at or before it, the highest such ID is -1, and where none is at or after it, the
-- lowest such ID is the highest bigint.
CREATE OR REPLACE FUNCTION snowflake_min_id(at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.lowest(at, _snowflake.layout());
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one';

CREATE OR REPLACE FUNCTION snowflake_max_id(at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest(at, _snowflake.layout());
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'highest snowflake ID whose time is at or before the given one';

CREATE OR REPLACE FUNCTION snowflake_max_id_before(at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest_before(at, _snowflake.layout());
COMMENT ON FUNCTION snowflake_max_id_before(timestamptz) IS
    'highest snowflake ID whose time is before the given one';

-- Not STRICT, so that the planner can inline it. Each time is used once: a subquery that is used twice is not inlined.
-- The lower bound is compared with >=, because by > PostgreSQL would also read the partition that ends where the range
-- begins; the upper one with <=, because the lowest ID at or after 'infinity' would be out of range for bigint.
CREATE OR REPLACE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN id >= snowflake_min_id(since) AND id <= snowflake_max_id_before(until);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'whether the time of a snowflake ID is at or after since and before until; can use an index on the ID';

-- The same functions for a layout that the caller names.
CREATE OR REPLACE FUNCTION snowflake_min_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.lowest(at, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS
    'lowest snowflake ID of the given layout whose time is at or after the given one';

CREATE OR REPLACE FUNCTION snowflake_max_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest(at, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS
    'highest snowflake ID of the given layout whose time is at or before the given one';

CREATE OR REPLACE FUNCTION snowflake_max_id_before(at timestamptz, layout text) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest_before(at, _snowflake.layout(layout));
COMMENT ON FUNCTION snowflake_max_id_before(timestamptz, text) IS
    'highest snowflake ID of the given layout whose time is before the given one';

CREATE OR REPLACE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz, layout text) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 3
    RETURN id >= snowflake_min_id(since, layout) AND id <= snowflake_max_id_before(until, layout);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, text) IS
    'whether the time of a snowflake ID of the given layout is at or after since and before until; can use an index on the ID';

-- Making snowflake IDs.
CREATE OR REPLACE FUNCTION snowflake_next() RETURNS bigint
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT SECURITY DEFINER PARALLEL UNSAFE COST 20
    AS $$
DECLARE
    base bigint := pg_catalog.pg_sequence_last_value('_snowflake.base');
    floor bigint := _snowflake.clock();
    number bigint := pg_catalog.nextval('_snowflake.number');
    "end" bigint := pg_catalog.pg_sequence_last_value('_snowflake.end');
    worker bigint := pg_catalog.pg_sequence_last_value('_snowflake.worker');
    place bigint := _snowflake.place(base, number, pg_catalog.pg_sequence_last_value('_snowflake.base'));
BEGIN
    IF _snowflake.is_open(place, floor, "end", worker) THEN
        RETURN _snowflake.id(place, worker);
    END IF;
    RETURN _snowflake.next_slowly(place, "end", worker);
END $$;
COMMENT ON FUNCTION snowflake_next() IS
    'next snowflake ID of this server';

-- PARALLEL RESTRICTED: in FROM, each parallel worker would return as many IDs as the caller has asked for.
CREATE OR REPLACE FUNCTION snowflake_next(count integer) RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER PARALLEL UNSAFE COST 20 ROWS 1000
    AS $$
DECLARE
    base bigint;
    floor bigint;
    number bigint;
    "end" bigint;
    place bigint;
    worker bigint;
BEGIN
    IF pg_catalog.int4lt(count, 0) THEN
        RAISE invalid_parameter_value USING MESSAGE = pg_catalog.format('count must not be negative: %s', count),
            HINT = 'Ask for 0 or more IDs.';
    END IF;
    FOR i IN 1..count LOOP
        base := pg_catalog.pg_sequence_last_value('_snowflake.base');
        floor := _snowflake.clock();
        number := pg_catalog.nextval('_snowflake.number');
        "end" := pg_catalog.pg_sequence_last_value('_snowflake.end');
        worker := pg_catalog.pg_sequence_last_value('_snowflake.worker');
        place := _snowflake.place(base, number, pg_catalog.pg_sequence_last_value('_snowflake.base'));
        IF _snowflake.is_open(place, floor, "end", worker) THEN
            RETURN NEXT _snowflake.id(place, worker);
        ELSE
            RETURN NEXT _snowflake.next_slowly(place, "end", worker);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION snowflake_next(integer) IS
    'the given number of next snowflake IDs of this server, in ascending order';
-- IDs as text. The forms and their numbers of characters:
--
-- * in the C collation, these sort as the IDs do: decimal (19), hex (16), base32 (13; Crockford's alphabet), base58 (11;

--   Bitcoin's alphabet), base62 (11)
-- * these do not: base64url (11), base36 and base58-bwmarrin (variable; those of the Go package bwmarrin/snowflake), shortcode
--   (variable; that of Instagram)
CREATE OR REPLACE FUNCTION snowflake_to_text(id bigint, form text) RETURNS text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN _snowflake.to_text(id, form);
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'writes a snowflake ID in the given text form';

CREATE OR REPLACE FUNCTION snowflake_from_text("text" text, form text) RETURNS bigint
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN _snowflake.from_text("text", form);
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'reads a snowflake ID that is written in the given text form';

-- How long ago an ID was made.
CREATE OR REPLACE FUNCTION snowflake_age(id bigint) RETURNS interval
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN pg_catalog.now() OPERATOR(pg_catalog.-) snowflake_timestamp(id);
COMMENT ON FUNCTION snowflake_age(bigint) IS
    'time from a snowflake ID to the start of the transaction';

CREATE OR REPLACE FUNCTION snowflake_age(id bigint, layout text) RETURNS interval
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN pg_catalog.now() OPERATOR(pg_catalog.-) snowflake_timestamp(id, layout);
COMMENT ON FUNCTION snowflake_age(bigint, text) IS
    'time from a snowflake ID of the given layout to the start of the transaction';

-- Partitions by ID time.
EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz
) RETURNS SETOF regclass
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    BEGIN ATOMIC
        SELECT _snowflake.create_partitions(parent, every, since, until, _snowflake.layout());
    END
$sql$;
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz) IS
    'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them';

EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_maintain_partitions(
    parent regclass,
    every interval,
    ahead interval,
    retention interval DEFAULT NULL,
    expired text DEFAULT 'detach',
    dry_run boolean DEFAULT false,
    default_rows text DEFAULT 'refuse'
) RETURNS TABLE (partition text, action text, since timestamptz, until timestamptz, statement text, note text)
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 4
    BEGIN ATOMIC
        SELECT * FROM _snowflake.maintain_partitions(parent, every, ahead, retention, expired, dry_run, default_rows, _snowflake.layout());
    END
$sql$;
COMMENT ON FUNCTION snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean, text) IS
    'for a job: creates the missing partitions of the time ahead, and detaches or drops those that are older than the retention';

-- For pg_partman from 5.2 on, for a partition key of type text that holds IDs in decimal form.
CREATE OR REPLACE FUNCTION snowflake_time_encoder(at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_to_text(snowflake_min_id(at), 'decimal');
COMMENT ON FUNCTION snowflake_time_encoder(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one, in decimal form; for p_time_encoder of pg_partman';

CREATE OR REPLACE FUNCTION snowflake_time_decoder("text" text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_timestamp(snowflake_from_text("text", 'decimal'));
COMMENT ON FUNCTION snowflake_time_decoder(text) IS
    'time of a snowflake ID in decimal form; for p_time_decoder of pg_partman';

-- What is required, checked before the first ID is made. Each row answers one question; what is not given is not compared.
EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_preflight(
    layout text DEFAULT NULL,
    epoch timestamptz DEFAULT NULL,
    servers integer DEFAULT NULL,
    datacenters integer DEFAULT NULL,
    leases boolean DEFAULT NULL,
    ids_per_second double precision DEFAULT NULL,
    years integer DEFAULT 20,
    javascript boolean DEFAULT NULL,
    oldest_row timestamptz DEFAULT NULL,
    keys regclass[] DEFAULT NULL,
    key_column name DEFAULT NULL
) RETURNS TABLE (
    subject text,
    verdict text,
    finding text,
    advice text
)
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    BEGIN ATOMIC
        SELECT * FROM _snowflake.preflight(layout, epoch, servers, datacenters, leases, ids_per_second, years, javascript, oldest_row, keys, key_column);
    END
$sql$;
COMMENT ON FUNCTION snowflake_preflight(text, timestamptz, integer, integer, boolean, double precision, integer, boolean, timestamptz, regclass[], name) IS
    'checks a layout and the settings of this server before the first snowflake ID is made: until when IDs last, how many servers and IDs a second there is room for, which rows can have IDs, whether existing keys sort below; changes nothing';

-- Existing tables: from a sequence or an identity to snowflake IDs, and back. The plans say what would be done, as rows: what
-- stands in the way (kind 'obstacle'), the statements in order, and what one should know ('note').
EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_adopt_plan(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    BEGIN ATOMIC
        SELECT * FROM _snowflake.adopt_plan(tbl, col, views);
    END
$sql$;
COMMENT ON FUNCTION snowflake_adopt_plan(regclass, name, text) IS
    'what snowflake_adopt() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_adopt(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 1
    BEGIN ATOMIC
        SELECT * FROM _snowflake.adopt(tbl, col, views);
    END
$sql$;
COMMENT ON FUNCTION snowflake_adopt(regclass, name, text) IS
    'gives an existing column the default snowflake_next(), and makes it and all columns that refer to it bigint; new IDs are at or above first_id, old numbers below it';

EXECUTE $sql$
CREATE OR REPLACE FUNCTION snowflake_release_plan(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS TABLE (
    step integer,
    kind text,
    statement text,
    locks text,
    rewrites text,
    bytes bigint,
    note text
)
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    BEGIN ATOMIC
        SELECT * FROM _snowflake.release_plan(tbl, col, start, identity);
    END
$sql$;
COMMENT ON FUNCTION snowflake_release_plan(regclass, name, bigint, boolean) IS
    'what snowflake_release() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode; does nothing';

CREATE OR REPLACE FUNCTION snowflake_release(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS bigint
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000
    RETURN _snowflake.release(tbl, col, start, identity);
COMMENT ON FUNCTION snowflake_release(regclass, name, bigint, boolean) IS
    'gives a column whose default is snowflake_next() back what it had before, or else a sequence or an identity; returns the next value, where it is known';

-- Partitions for the rows of a default partition. In PL/pgSQL, as a procedure with a SET clause or of another role's rights could not commit.

CREATE OR REPLACE FUNCTION _snowflake.first_id_at(at timestamptz) RETURNS bigint
    LANGUAGE sql STABLE
    RETURN snowflake_min_id(at);
COMMENT ON FUNCTION _snowflake.first_id_at(timestamptz) IS
    'part of snowflake_partition_default_rows(): snowflake_min_id(), wherever it is';

CREATE OR REPLACE FUNCTION _snowflake.time_of_id(id bigint) RETURNS timestamptz
    LANGUAGE sql STABLE
    RETURN snowflake_timestamp(id);
COMMENT ON FUNCTION _snowflake.time_of_id(bigint) IS
    'part of snowflake_partition_default_rows(): snowflake_timestamp(), wherever it is';

-- What stands in the way of moving rows out of a default partition: the call ends. All code that moving runs must be the caller's own.
CREATE OR REPLACE FUNCTION _snowflake.check_default_partition(parent regclass, rest regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
BEGIN
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, t.relowner::regrole AS owner INTO c
        FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE t.oid IN (SELECT parent UNION SELECT relid FROM pg_partition_ancestors(parent)
            UNION SELECT relid FROM pg_partition_tree(rest))
        AND pg_get_userbyid(t.relowner) <> current_user ORDER BY t.oid = parent DESC, t.oid LIMIT 1;
    IF FOUND THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table %s belongs to role %s, and the caller is role %I', c.quoted, c.owner, current_user),
            DETAIL = 'Code of the table, such as expressions of its indexes, would run as the caller.',
            HINT = format('Have role %1$s call this. If you trust that role''s code with your rights, SET ROLE %1$s does as well. The table, '
                'those that it is a partition of, and its default partition need one owner.', c.owner);
    END IF;
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, t.relkind INTO c
        FROM pg_partition_tree(rest) AS tree JOIN pg_class AS t ON t.oid = tree.relid JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE t.relkind NOT IN ('r', 'p') OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = t.oid) ORDER BY t.oid LIMIT 1;
    IF FOUND THEN
        RAISE wrong_object_type USING MESSAGE = format('rows of %s cannot be moved', c.quoted),
            DETAIL = CASE c.relkind WHEN 'f' THEN 'It is a foreign table: its rows cannot be moved in one transaction.'
                ELSE 'It has rules, which would run for each row that is moved.' END,
            HINT = 'Move its rows yourself, or detach it.';
    END IF;
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, k.conname, pg_get_constraintdef(k.oid) AS definition INTO c
        FROM pg_constraint AS k JOIN pg_class AS t ON t.oid = k.conrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid IN (SELECT parent UNION
            SELECT relid FROM pg_partition_ancestors(parent) UNION SELECT relid FROM pg_partition_tree(rest))
        ORDER BY k.oid LIMIT 1;
    IF FOUND THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('rows to which foreign key "%s" of table %s refers cannot be moved', c.conname, c.quoted),
            DETAIL = 'To PostgreSQL, a row that is moved to another partition is deleted and inserted again.',
            HINT = format('Drop the foreign key, and add it again afterwards: ALTER TABLE %1$s DROP CONSTRAINT %2$I; and '
                'ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s;', c.quoted, c.conname, c.definition);
    END IF;
END $$;
COMMENT ON FUNCTION _snowflake.check_default_partition(regclass, regclass) IS
    'part of snowflake_partition_default_rows(): refuses to move rows of a default partition where that cannot be done';

-- The statements that disable the triggers of a table and its partitions that fire for an event, a bit of pg_trigger.tgtype, or enable them
-- as they are now; or the same for what these triggers are on a partition that is not there yet. Those of foreign keys are left out.
-- has_copies: whether some are a partition's copies of its table's triggers, which only superusers can disable up to PostgreSQL 14.
CREATE OR REPLACE FUNCTION _snowflake.triggers(tbl regclass, event integer, partition text, OUT off text[], OUT as_now text[], OUT has_copies boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT coalesce(array_agg(format('ALTER TABLE %s DISABLE TRIGGER %I', name, tgname) ORDER BY oid), '{}'),
        coalesce(array_agg(format('ALTER TABLE %s ENABLE %sTRIGGER %I', name,
            CASE tgenabled WHEN 'A' THEN 'ALWAYS ' WHEN 'R' THEN 'REPLICA ' END, tgname) ORDER BY oid), '{}'),
        coalesce(bool_or(tgparentid <> 0 OR partition IS NOT NULL), false)
    FROM (
        SELECT g.*, coalesce(partition, format('%I.%I', n.nspname, c.relname)) AS name
        FROM pg_trigger AS g JOIN pg_class AS c ON c.oid = g.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE (NOT g.tgisinternal OR g.tgparentid <> 0 AND (g.tgconstraint = 0
                OR EXISTS (SELECT FROM pg_constraint AS k WHERE k.oid = g.tgconstraint AND k.contype = 't')))
            AND g.tgenabled <> 'D' AND g.tgtype & event <> 0
            AND CASE WHEN partition IS NULL THEN g.tgrelid IN (SELECT relid FROM pg_partition_tree(tbl))
                ELSE g.tgrelid = tbl AND g.tgtype & 1 = 1 END
    ) AS firing
    $$;
COMMENT ON FUNCTION _snowflake.triggers(regclass, integer, text) IS
    'part of snowflake_partition_default_rows(): statements that disable triggers, and enable them again';

-- Whether a default partition can become the partition itself, as nothing of it would be missed on the new, empty one: it is a table like
-- any that CREATE TABLE ... PARTITION OF makes, and nothing depends on it.
CREATE OR REPLACE FUNCTION _snowflake.is_plain_partition(parent regclass, rest regclass) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT r.relkind = 'r' AND r.reloptions IS NULL AND r.reltablespace = t.reltablespace AND r.relpersistence = t.relpersistence
        AND r.relacl IS NOT DISTINCT FROM t.relacl AND (r.relrowsecurity, r.relforcerowsecurity, r.relreplident)
            = (t.relrowsecurity, t.relforcerowsecurity, t.relreplident) AND NOT t.relrowsecurity
        AND r.relreplident <> 'i' AND r.reloftype = 0
        AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid IN (rest, parent) AND attacl IS NOT NULL)
        AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = rest AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = indexrelid))
        AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = rest AND CASE WHEN tgparentid = 0 THEN NOT tgisinternal
            ELSE tgenabled <> (SELECT p.tgenabled FROM pg_trigger AS p WHERE p.oid = pg_trigger.tgparentid) END)
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = rest AND contype IN ('c', 'f') AND conislocal)
        AND NOT EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = rest)
        AND NOT EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = rest)
        AND NOT EXISTS (SELECT FROM pg_description WHERE objoid = rest AND classoid = 'pg_class'::regclass)
        AND NOT EXISTS (SELECT FROM pg_seclabel WHERE objoid = rest AND classoid = 'pg_class'::regclass)
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = rest
            AND d.deptype = 'n' AND d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_class'::regclass, 'pg_policy'::regclass))
    FROM pg_class AS r, pg_class AS t WHERE r.oid = rest AND t.oid = parent
    $$;
COMMENT ON FUNCTION _snowflake.is_plain_partition(regclass, regclass) IS
    'part of snowflake_partition_default_rows(): whether a default partition is as CREATE TABLE ... PARTITION OF makes it';

-- Makes one partition, for the lowest ID in the default partition from an ID on, and moves the rows of its time into it; or, in a dry run,
-- says what it would do. What it returns is NULL where there is no such row.
CREATE OR REPLACE FUNCTION _snowflake.partition_default_rows(
    parent regclass, every interval, dry_run boolean, since bigint,
    OUT made text, OUT moved bigint, OUT lower bigint, OUT until bigint, OUT statements text[]
)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET row_security = off
    AS $$
DECLARE
    example CONSTANT text := 'For example: CALL snowflake_partition_default_rows(''orders'', every => ''1 day'');';
    months CONSTANT integer := extract(year FROM every) * 12 + extract(month FROM every);
    length CONSTANT numeric := extract(epoch FROM make_interval(days => extract(day FROM every)::integer)
        + make_interval(secs => extract(hour FROM every)::integer * 3600 + extract(minute FROM every)::integer * 60
            + extract(second FROM every)::double precision));
    t record;
    d record;
    cols text;
    -- Keys below are not taken for IDs: those that a table had before its IDs read as times of the layout's first hour.
    floor CONSTANT bigint := _snowflake.first_id_at(_snowflake.time_of_id(0) + interval '1 hour');
    id bigint;
    -- No partition holds this one: bounds are bigints, too.
    highest CONSTANT bigint := 9223372036854775807;
    others boolean;
    at timestamp;
    start timestamp;
    "end" timestamp;
    after bigint;
    before bigint;
    name text;
    quoted text;
    condition text;
    deleting record;
    inserting record;
    statement text;
    changed bigint;
BEGIN
    IF parent IS NULL OR every IS NULL OR dry_run IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = format('%s must not be NULL', CASE WHEN parent IS NULL THEN 'parent' WHEN every IS NULL THEN 'every' ELSE 'dry_run' END),
            HINT = example;
    END IF;
    SELECT c.relname, n.nspname, c.relowner, c.relnamespace, c.relpersistence, format('%I.%I', n.nspname, c.relname) AS quoted,
            (SELECT a.attname FROM pg_partitioned_table AS p JOIN pg_opclass AS o ON o.oid = p.partclass[0] AND o.opcdefault
                JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
                JOIN pg_type AS y ON y.oid = a.atttypid
                WHERE p.partrelid = c.oid AND p.partattrs[0] > 0 AND p.partstrat = 'r' AND p.partnatts = 1
                AND ('bigint'::regtype IN (y.oid, y.typbasetype) OR y.oid = (SELECT x.oid FROM pg_type AS x
                    JOIN pg_depend AS m ON m.classid = 'pg_type'::regclass AND m.objid = x.oid AND m.deptype = 'e'
                    JOIN pg_extension AS e ON m.refclassid = 'pg_extension'::regclass AND e.oid = m.refobjid
                    WHERE x.typname = 'snowflake_id' AND e.extname = 'pg_snowflake'))) AS col
        INTO t FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('there is no table with OID %s', parent::oid), HINT = example;
    ELSIF NOT pg_has_role(t.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', t.relname),
            HINT = 'Only its owner can give a table partitions.';
    ELSIF t.col IS NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('table "%s" is not partitioned by a range of a bigint column', t.relname),
            DETAIL = coalesce('Its partition key is ' || nullif(pg_get_partkeydef(parent), '') || '.', 'It is not partitioned.'),
            HINT = 'Create the table with PARTITION BY RANGE (id), where id is the bigint column of its IDs.';
    ELSIF months < 0 OR length < 0 OR (months > 0) = (length > 0) OR months = 0 AND length <> floor(length) THEN
        RAISE invalid_parameter_value USING MESSAGE = 'every must be one or more months, or one or more whole seconds',
            DETAIL = format('It is "%s".', every), HINT = 'Use a step such as ''1 month'', ''1 day'' or ''6 hours''.';
    END IF;

    -- First without a lock: there may be no such rows.
    FOR pass IN 1..2 LOOP
        SELECT c.oid::regclass AS tbl, c.relname, n.nspname, format('%I.%I', n.nspname, c.relname) AS quoted INTO d
            FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT';
        IF NOT FOUND THEN
            RETURN;
        END IF;
        PERFORM _snowflake.check_default_partition(parent, d.tbl);
        EXECUTE format('SELECT %1$I::bigint FROM %2$s WHERE %1$I >= $1 AND %1$I < $2 ORDER BY %1$I LIMIT 1', t.col, d.quoted) INTO id
            USING greatest(since, floor), highest;
        IF id IS NULL THEN
            EXECUTE format('SELECT count(*) FROM %2$s WHERE %1$I::bigint < $1 OR %1$I::bigint >= $2 OR %1$I IS NULL', t.col, d.quoted) INTO changed
                USING floor, highest;
            IF changed > 0 THEN
                RAISE NOTICE 'rows that stay in the default partition: %', changed
                    USING DETAIL = format('Their "%s" is NULL, negative, the highest bigint, or of the layout''s first hour, as keys from before a '
                        'table had IDs are. So it has no time.', t.col);
            END IF;
            RETURN;
        END IF;
        EXIT WHEN dry_run OR pass = 2;
        -- As strong as the locks of CREATE TABLE ... PARTITION OF, and in its order.
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', t.quoted);
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', d.quoted);
        IF to_regclass(t.quoted) IS DISTINCT FROM parent OR to_regclass(d.quoted) IS DISTINCT FROM d.tbl THEN
            RAISE serialization_failure USING MESSAGE = format('table %s was changed by others meanwhile', t.quoted),
                DETAIL = 'It, or its default partition, was dropped or renamed while this call waited for it.', HINT = 'Call it again.';
        END IF;
    END LOOP;

    -- The piece of time, on the grid of snowflake_maintain_partitions(), and as much of it as has no partition.
    at := timezone('UTC', _snowflake.time_of_id(id));
    IF months > 0 THEN
        start := timestamp '1600-01-01' + make_interval(months => div((extract(year FROM at) - 1600) * 12 + extract(month FROM at) - 1,
            months)::integer * months);
    ELSE
        start := date_bin(every, at, timestamp '1601-01-01');
    END IF;
    "end" := start + every;
    lower := CASE WHEN timezone('UTC', start) <= _snowflake.time_of_id(floor) THEN floor ELSE _snowflake.first_id_at(timezone('UTC', start)) END;
    until := _snowflake.first_id_at(timezone('UTC', "end"));
    SELECT max(b[2]::numeric) FILTER (WHERE b[2] <> 'MAXVALUE' AND b[2]::numeric <= id),
            min(b[1]::numeric) FILTER (WHERE b[1] <> 'MINVALUE' AND b[1]::numeric > id)
        INTO after, before FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid,
            regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM [(]''?([^'')]*)''?[)] TO [(]''?([^'')]*)''?[)]') AS b
        WHERE inhparent = parent AND b IS NOT NULL;
    IF after > lower THEN
        lower := after;
        start := timezone('UTC', _snowflake.time_of_id(lower));
    END IF;
    until := least(until, before);
    name := t.relname || to_char(start, CASE WHEN start = date_trunc('day', start) AND (months > 0 OR mod(length, 86400) = 0)
        THEN '_YYYYMMDD' ELSE '_YYYYMMDD_HH24MISS' END);
    quoted := format('%I.%I', t.nspname, name);
    made := name;
    IF octet_length(name) > 63 THEN
        RAISE name_too_long USING MESSAGE = format('the name of partition "%s" would be too long', name),
            DETAIL = format('It would have %s bytes; PostgreSQL''s names have at most 63.', octet_length(name)),
            HINT = 'Give the table a shorter name.';
    ELSIF EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = t.relnamespace) THEN
        RAISE duplicate_table USING MESSAGE = format('relation "%s" already exists', name),
            DETAIL = format('It has the name of a partition that is to be made, of IDs from %s to before %s, and is not that partition.',
                lower, until),
            HINT = 'Rename it.';
    END IF;

    -- Where no row would stay, the table need not be written again.
    EXECUTE format('SELECT EXISTS (SELECT FROM %1$s WHERE %2$I < $1 OR %2$I >= $2 OR %2$I IS NULL)', d.quoted, t.col)
        INTO others USING lower, until;
    IF NOT others AND _snowflake.is_plain_partition(parent, d.tbl) THEN
        statements := ARRAY[
            format('ALTER TABLE %s DETACH PARTITION %s', t.quoted, d.quoted),
            format('ALTER TABLE %s RENAME TO %I', d.quoted, name)
        ];
        IF d.nspname <> t.nspname THEN
            statements := statements || format('ALTER TABLE %I.%I SET SCHEMA %I', d.nspname, name, t.nspname);
        END IF;
        statements := statements || ARRAY[
            format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)', t.quoted, quoted, lower, until),
            format('CREATE TABLE %s PARTITION OF %s DEFAULT', d.quoted, t.quoted)
        ];
        IF NOT dry_run THEN
            FOREACH statement IN ARRAY statements LOOP
                EXECUTE statement;
            END LOOP;
            FOR statement IN SELECT s FROM _snowflake.privileges(parent, d.quoted::regclass) AS s LOOP
                EXECUTE statement;
            END LOOP;
        END IF;
        RETURN;
    END IF;

    -- The rows are kept aside while there is no place for them: a subscriber of the table's publications sees them go and come.
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO cols FROM pg_attribute
        WHERE attrelid = parent AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
    condition := format('%1$I >= %2$s AND %1$I < %3$s', t.col, lower, until);
    deleting := _snowflake.triggers(d.tbl, 8, NULL);
    inserting := _snowflake.triggers(parent, 4, quoted);
    IF current_setting('server_version_num')::integer < 150000 AND (deleting.has_copies OR inserting.has_copies)
        AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
    THEN
        RAISE feature_not_supported USING MESSAGE = format('triggers of partitions of table %s cannot be disabled', t.quoted),
            DETAIL = 'They would run for each row that is moved. On PostgreSQL 14, only superusers can disable a partition''s copy of a '
                'trigger.',
            HINT = 'Drop the triggers that the table has FOR EACH ROW, and create them again afterwards.';
    END IF;
    statements := format('CREATE TEMPORARY TABLE snowflake_default_rows AS SELECT %s FROM %s WHERE %s', cols, d.quoted, condition)
        || deleting.off || format('DELETE FROM %s WHERE %s', d.quoted, condition) || deleting.as_now
        || format('CREATE %sTABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', CASE t.relpersistence WHEN 't' THEN 'TEMPORARY ' END,
            CASE t.relpersistence WHEN 't' THEN quote_ident(name) ELSE quoted END, t.quoted, lower, until)
        || inserting.off || format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM pg_temp.snowflake_default_rows',
            quoted, cols, cols) || inserting.as_now || text 'DROP TABLE pg_temp.snowflake_default_rows';
    IF dry_run THEN
        EXECUTE format('SELECT count(*) FROM %s WHERE %s', d.quoted, condition) INTO moved;
        RETURN;
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement;
        GET DIAGNOSTICS changed = ROW_COUNT;
        IF moved IS NULL THEN
            moved := changed;
        ELSIF statement ~ '^(DELETE|INSERT) ' THEN
            -- ALTER TABLE refuses a table with checks that are put off to the end of the transaction.
            SET CONSTRAINTS ALL IMMEDIATE;
            IF changed <> moved THEN
                RAISE data_exception USING MESSAGE = format('%s rows of %s are to be moved, but %s were', moved, d.quoted, changed),
                    DETAIL = format('The statement was: %s', statement), HINT = 'Nothing was changed. Call it again.';
            END IF;
        END IF;
    END LOOP;
    FOR statement IN SELECT s FROM _snowflake.privileges(parent, quoted::regclass) AS s LOOP
        EXECUTE statement;
    END LOOP;
END $$;
COMMENT ON FUNCTION _snowflake.partition_default_rows(regclass, interval, boolean, bigint) IS
    'part of snowflake_partition_default_rows(): makes one partition';

-- What stands here is looked up by the caller's search_path, so it has a schema, and no operator.
CREATE OR REPLACE PROCEDURE snowflake_partition_default_rows(parent regclass, every interval, dry_run boolean DEFAULT false)
    LANGUAGE plpgsql
    AS $$
DECLARE
    made pg_catalog.text;
    moved bigint;
    until bigint;
    statements pg_catalog.text[];
    statement pg_catalog.text;
    since bigint := 0;
BEGIN
    LOOP
        -- A partition is a transaction. What waited for the locks must see what was done meanwhile.
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        SELECT s.made, s.moved, s.until, s.statements INTO made, moved, until, statements
            FROM _snowflake.partition_default_rows(parent, every, dry_run, since) AS s;
        EXIT WHEN made IS NULL;
        IF dry_run THEN
            since := until;
            FOREACH statement IN ARRAY statements LOOP
                RAISE INFO '%;', statement;
            END LOOP;
        ELSE
            COMMIT;
            IF moved IS NULL THEN
                RAISE NOTICE 'the default partition has become partition "%"', made;
            ELSE
                RAISE NOTICE 'partition "%" is made, % rows were moved', made, moved;
            END IF;
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE snowflake_partition_default_rows(regclass, interval, boolean) IS
    'makes partitions, by ID time, for the rows of a default partition, and moves these there, each partition in a transaction of its own';

-- Columns of numbers or text that get their values from snowflake_next(), by a default of their own or of their domain, with those of
-- partitions and heirs. A partition has code of all tables above it, in indexes. Those of text and of foreign tables are not read.
CREATE OR REPLACE FUNCTION _snowflake.id_columns() RETURNS TABLE (relation oid, tbl text, col name, is_own boolean, is_hidden boolean, is_read boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE filled (classid, objid) AS (
        SELECT d.classid, d.objid FROM pg_proc AS p JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
        WHERE p.proname = 'snowflake_next' AND p.pronargs = 0
            AND p.proowner = (SELECT nspowner FROM pg_namespace WHERE nspname = '_snowflake')
    ), tree (relation, name) AS (
        SELECT a.attrelid, a.attname FROM filled AS d JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
            JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
        UNION ALL
        SELECT a.attrelid, a.attname FROM filled AS d JOIN pg_attribute AS a
            ON d.classid = 'pg_type'::regclass AND a.atttypid = d.objid AND NOT a.atthasdef
        UNION
        SELECT i.inhrelid, t.name FROM tree AS t JOIN pg_inherits AS i ON i.inhparent = t.relation
    ), numbers (type) AS (
        SELECT unnest('{bigint, numeric}'::regtype[])::oid UNION ALL SELECT y.oid FROM numbers AS b JOIN pg_type AS y ON y.typbasetype = b.type
    )
    SELECT c.oid, format('%I.%I', n.nspname, c.relname), a.attname, NOT EXISTS (SELECT FROM pg_class AS o
            WHERE o.oid IN (SELECT c.oid UNION SELECT relid FROM pg_partition_ancestors(c.oid)) AND pg_get_userbyid(o.relowner) <> current_user),
        row_security_active(c.oid), c.relkind = 'r' AND y.oid IN (SELECT type FROM numbers)
    FROM tree AS t JOIN pg_class AS c ON c.oid = t.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = t.name AND NOT a.attisdropped
        JOIN pg_type AS y ON y.oid = a.atttypid
    WHERE c.relkind IN ('r', 'f') AND NOT pg_is_other_temp_schema(c.relnamespace) AND (y.typcategory = 'S' OR y.oid IN (SELECT type FROM numbers))
    ORDER BY 2, 3
$$;

-- The highest ID of a worker in rows of the caller's tables, and where it is. Tables of other roles are named: whoever reads a table runs
-- code of its owner, as of indexes. And so are those whose row security is for their owner, too, and columns that are not read.
CREATE OR REPLACE FUNCTION _snowflake.highest_id(worker bigint, l bigint[], OUT id bigint, OUT tbl text, OUT others text, OUT hidden text, OUT unread text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET row_security = off
    AS $$
DECLARE
    c record;
    found bigint;
BEGIN
    FOR c IN SELECT * FROM _snowflake.id_columns() LOOP
        IF NOT c.is_read THEN
            unread := concat_ws(', ', unread, format('%s.%I', c.tbl, c.col));
            CONTINUE;
        ELSIF NOT c.is_own THEN
            others := concat_ws(', ', others, c.tbl);
            CONTINUE;
        ELSIF c.is_hidden THEN
            hidden := concat_ws(', ', hidden, c.tbl);
            CONTINUE;
        END IF;
        -- Of a numeric, only what is in the range can become a bigint.
        EXECUTE format('SELECT %1$I::bigint FROM ONLY %2$s WHERE %1$I >= 0 AND %1$I <= $1 '
            'AND CASE WHEN %1$I >= 0 AND %1$I <= $1 THEN %1$I::bigint END & $2 = $3 ORDER BY %1$I DESC LIMIT 1', c.col, c.tbl) INTO found
            USING l[5], (l[7] << l[6]::integer) | (l[9] << l[8]::integer), _snowflake.id(0, worker, l);
        IF found > id OR id IS NULL AND found IS NOT NULL THEN
            id := found;
            tbl := c.tbl;
        END IF;
    END LOOP;
END $$;

-- Whether the record was set back. It is read under the lock, as the mark may be just written; the lock ends with the subtransaction.
CREATE OR REPLACE FUNCTION _snowflake.is_set_back() RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    mark record;
    lowest bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(1936617062, 1);
        mark := _snowflake.read_mark();
        lowest := coalesce(pg_sequence_last_value('_snowflake.base'), 0) + coalesce(pg_sequence_last_value('_snowflake.number'), 0) + 1;
        RAISE SQLSTATE 'SNOWF';
    EXCEPTION
        WHEN SQLSTATE 'SNOWF' THEN
            NULL;
    END;
    RETURN coalesce(mark.is_set_back OR lowest < mark.reached, false);
END $$;

-- Where the record was set back, waits until the rows can be seen of all transactions that were open: those that drew a number, and those
-- that write rows with IDs that were drawn before them. Sessions that wait for the lock of ticks may be among these, so this comes before
-- that lock is taken. Says whether the record was set back.
CREATE OR REPLACE FUNCTION _snowflake.wait_for_rows() RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    relations CONSTANT oid[] := (SELECT array_agg(relation) FROM _snowflake.id_columns()) || '_snowflake.number'::regclass::oid;
    were_open text[];
    are_open text[];
    they text;
BEGIN
    IF NOT _snowflake.is_set_back() THEN
        RETURN false;
    ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE active_sql_transaction USING MESSAGE = 'after the record was set back, a READ COMMITTED transaction is needed',
            DETAIL = 'At other levels, rows are not seen that were committed since the transaction began.',
            HINT = 'Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
    FOR i IN 1..100 LOOP
        SELECT array_agg(DISTINCT h.virtualtransaction), string_agg(DISTINCT _snowflake.holder(h.pid, h.virtualtransaction), ', ')
            INTO are_open, they FROM pg_locks AS h
            WHERE h.locktype = 'relation' AND h.database = _snowflake.home() AND h.relation = ANY (relations)
                AND h.mode = 'RowExclusiveLock' AND h.granted AND h.pid IS DISTINCT FROM pg_backend_pid()
                AND (were_open IS NULL OR h.pid IS NULL OR h.virtualtransaction = ANY (were_open));
        IF are_open IS NULL THEN
            RETURN true;
        END IF;
        were_open := coalesce(were_open, are_open);
        PERFORM pg_sleep(0.05);
    END LOOP;
    RAISE lock_not_available USING
        MESSAGE = 'the record was set back, and transactions are open whose rows are not seen yet',
        DETAIL = format('They are of %s. Their IDs could be made again.', they),
        HINT = 'Commit these transactions, or end them. Then call snowflake_configure() again.';
END $$;

-- Ends the call if no IDs can be made in a layout, or were made in another one.
CREATE OR REPLACE FUNCTION _snowflake.check_layout(wanted bigint[], l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF wanted[9] = 0 OR wanted[11] = 0 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'IDs cannot be made in this layout',
            DETAIL = format('Field %s is missing.', CASE WHEN wanted[11] = 0 THEN 'sequence' ELSE 'worker' END);
    ELSIF wanted[15] > 31 THEN
        RAISE feature_not_supported USING MESSAGE = 'IDs cannot be made in this layout here',
            DETAIL = 'Its datacenter and worker have more than 31 bits together.', HINT = 'Choose a layout with a narrower datacenter or worker. Only the library makes IDs in this one.';
    ELSIF wanted <> l AND pg_sequence_last_value('_snowflake.reservation') IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'IDs were made in this database already',
            DETAIL = 'In another layout, new IDs could repeat them, and they would be misread.',
            HINT = 'Leave out the layout, or give what snowflake_database_layout() says.';
    END IF;
END $$;

-- What a rollback undoes, unlike setval(), and the next call does again: the numbers that the record's sequences begin with, and new plans.
-- Plans have the layout as a constant. Those of all sessions are made again when a function changes that is in them. ALTER SEQUENCE writes
-- a new file, with the value that was set: so it comes after setval(), which would be undone there.
CREATE OR REPLACE FUNCTION _snowflake.begin_with(l bigint[], is_new boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    touch text;
BEGIN
    IF NOT is_new AND (SELECT seqstart FROM pg_sequence WHERE seqrelid = '_snowflake.layout'::regclass) = l[14]
            AND (SELECT seqstart FROM pg_sequence WHERE seqrelid = '_snowflake.epoch'::regclass) = l[2] THEN
        RETURN;
    END IF;
    EXECUTE format('ALTER SEQUENCE _snowflake.layout START %s', l[14]);
    EXECUTE format('ALTER SEQUENCE _snowflake.epoch START %s', l[2]);
    FOR touch IN
        SELECT format('ALTER FUNCTION %s COST %s', p.oid::regprocedure, p.procost) FROM pg_depend AS d
            JOIN pg_proc AS p ON p.oid = d.objid WHERE d.classid = 'pg_proc'::regclass
            AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = '_snowflake.layout()'::regprocedure
            AND p.proowner = (SELECT proowner FROM pg_proc WHERE oid = d.refobjid)
    LOOP
        EXECUTE touch;
    END LOOP;
    DISCARD PLANS;
END $$;

CREATE OR REPLACE FUNCTION snowflake_configure(worker_id integer, datacenter_id integer DEFAULT NULL, layout text DEFAULT NULL) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 1000 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    given CONSTANT bigint[] := _snowflake.layout(layout);
    go_above CONSTANT text := 'If the clock is right, nothing needs to be done. If not, with the highest ID of their rows: SELECT '
        'setval(''_snowflake.end'', 0), setval(''_snowflake.reservation'', (extract(epoch FROM snowflake_timestamp(...)) * 1000)::bigint + 1);';
    r record;
    l bigint[];
    wanted bigint[];
    is_new boolean;
    placed bigint;
    base bigint;
    number bigint;
    lowest bigint;
    mark record;
    is_set_back boolean;
    is_waited_for boolean;
    highest record;
    floor bigint;
BEGIN
    is_waited_for := _snowflake.wait_for_rows();
    -- Until the transaction ends, no other session opens a tick or configures. What is on record is read after that.
    PERFORM pg_advisory_xact_lock(1936617062, 1);
    r := _snowflake.record();
    l := _snowflake.recorded_layout(r.form, r.epoch);
    wanted := coalesce(given, l, _snowflake.layout('default'));
    is_new := wanted IS DISTINCT FROM l;
    PERFORM _snowflake.check_layout(wanted, l);
    PERFORM _snowflake.place_worker(datacenter_id, worker_id, wanted);
    base := CASE WHEN NOT is_new THEN pg_sequence_last_value('_snowflake.base') END;
    placed := _snowflake.home() << 31 | coalesce(datacenter_id, 0)::bigint * (wanted[9] + 1) | worker_id;
    number := coalesce(pg_sequence_last_value('_snowflake.number'), 0);
    lowest := coalesce(base, 0) + number + 1;
    -- The sequences may have been set back, and the clock be behind.
    mark := _snowflake.read_mark();
    is_set_back := mark.is_set_back OR NOT is_new AND lowest < mark.reached;
    IF is_set_back AND NOT is_waited_for THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'the record was set back just now',
            HINT = 'Call snowflake_configure() again.';
    END IF;
    highest := _snowflake.highest_id(placed, wanted);
    lowest := greatest(lowest, (highest.id >> wanted[3]::integer << wanted[12]::integer) | (highest.id >> wanted[10]::integer & wanted[11]),
        CASE WHEN NOT is_new AND NOT mark.is_set_back THEN mark.reached END);
    floor := _snowflake.clock(wanted);
    IF highest.id IS NOT NULL AND ((lowest >> wanted[12]::integer) - (floor >> wanted[12]::integer)) * wanted[1]::numeric > 600000000 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('table %s has an ID of this worker that is %s ahead of the clock', highest.tbl,
                _snowflake.duration(((lowest >> wanted[12]::integer) - (floor >> wanted[12]::integer)) * wanted[1])),
            DETAIL = format('It is %s. New IDs would be above it, and IDs are at most 600 s ahead.', highest.id),
            HINT = 'If the clock is wrong, set it right. If this database did not make that number, give it another worker ID.';
    ELSIF highest.hidden IS NOT NULL AND is_set_back THEN
        RAISE insufficient_privilege USING MESSAGE = 'rows of tables are hidden that may have IDs above the record',
            DETAIL = format('The row security of these is for their owner, too: %s.', highest.hidden),
            HINT = 'In one transaction, ALTER TABLE ... NO FORCE ROW LEVEL SECURITY, call this again, and force it again.';
    ELSIF highest.others IS NOT NULL AND is_set_back THEN
        RAISE WARNING USING MESSAGE = 'tables of other roles were not looked at for IDs above the record',
            DETAIL = format('They are %s. Reading them would run code of theirs.', highest.others), HINT = go_above;
    END IF;
    IF highest.unread IS NOT NULL AND is_set_back THEN
        RAISE WARNING USING MESSAGE = 'columns were not looked at for IDs above the record',
            DETAIL = format('They are %s. Columns of text and of foreign tables are not read.', highest.unread), HINT = go_above;
    END IF;
    -- The rest of the tick is given up, so that IDs rise, even if the new worker is the lower number. No rollback undoes this, so all
    -- that can fail comes before it.
    PERFORM setval('_snowflake.layout', wanted[14]), setval('_snowflake.epoch', wanted[2]),
        _snowflake.go_on_from(((lowest >> wanted[12]::integer) + 1) << wanted[12]::integer, number),
        CASE WHEN base IS NULL THEN setval('_snowflake.end', 0) END, setval('_snowflake.worker', placed);
    PERFORM _snowflake.begin_with(wanted, is_new);
    RETURN _snowflake.notation(wanted);
END $$;
COMMENT ON FUNCTION snowflake_configure(integer, integer, text) IS
    'sets the worker ID of this database, which no other may have that makes snowflake IDs; and, before the first ID, their layout';

-- The columns of the library's snowflake_status() that mean something here.
CREATE OR REPLACE FUNCTION snowflake_status() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    layout text,
    epoch timestamptz,
    layout_end timestamptz,
    last_time timestamptz,
    lead interval,
    reserved_until timestamptz
)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE COST 100 ROWS 1 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    l CONSTANT bigint[] := _snowflake.layout();
    worker CONSTANT bigint := pg_sequence_last_value('_snowflake.worker');
    reservation CONSTANT bigint := pg_sequence_last_value('_snowflake.reservation');
BEGIN
    IF worker >> 31 = _snowflake.home() THEN
        worker_id := worker & l[9];
        datacenter_id := CASE WHEN l[7] > 0 THEN (worker & 2147483647) / (l[9] + 1) END;
    END IF;
    layout := _snowflake.notation(l);
    epoch := _snowflake.instant(l[2], l);
    layout_end := _snowflake.instant(l[2] + (l[4] + 1) * l[1], l);
    IF reservation IS NOT NULL THEN
        reserved_until := _snowflake.instant(reservation * 1000, l);
        last_time := _snowflake.instant(l[2] + l[1] * (pg_sequence_last_value('_snowflake.base')
            + coalesce(pg_sequence_last_value('_snowflake.number'), 0) >> l[12]::integer), l);
        lead := greatest(last_time - clock_timestamp(), '0');
    END IF;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION snowflake_status() IS
    'state of the snowflake IDs of this database; does not make an ID';

-- A function of an earlier version, or of somebody's, that was not replaced could be called instead of PostgreSQL's.
SELECT string_agg(format('Function %s was not made by this file.', oid::regprocedure), ' ' ORDER BY oid) INTO findings
    FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace AND concat_ws(' ', oid, ctid) = ANY (before);
IF findings IS NOT NULL THEN
    RAISE duplicate_object USING MESSAGE = 'the schema _snowflake has what is not of the extension in SQL', DETAIL = findings,
        HINT = 'Drop it, or move it to another schema by ALTER FUNCTION ... SET SCHEMA.';
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
GRANT USAGE ON SCHEMA _snowflake TO PUBLIC;
GRANT SELECT ON SEQUENCE _snowflake.reservation TO PUBLIC;
GRANT SELECT ON SEQUENCE _snowflake.layout TO PUBLIC;
GRANT SELECT ON SEQUENCE _snowflake.epoch TO PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.go_on_from(bigint, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.open(bigint, bigint[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.next_slowly(bigint, bigint, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.next_slowly(bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.is_set_back() FROM PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.wait_for_rows() FROM PUBLIC;
REVOKE ALL ON FUNCTION _snowflake.begin_with(bigint[], boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION snowflake_configure(integer, integer, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION snowflake_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;

FOR made IN SELECT oid FROM pg_proc WHERE pronamespace = '_snowflake'::regnamespace AND proname LIKE 'snowflake\_%' LOOP
    EXECUTE format('ALTER ROUTINE %s SET SCHEMA %I', made, target);
END LOOP;
EXECUTE format('ALTER TYPE snowflake_parts SET SCHEMA %I', target);
EXECUTE format('ALTER TYPE snowflake_id SET SCHEMA %I', target);
PERFORM set_config('standard_conforming_strings', strings, true), set_config('plpgsql.extra_errors', errors, true),
    set_config('plpgsql.extra_warnings', warnings, true), set_config('search_path', path, true);
END $pg_snowflake$;
