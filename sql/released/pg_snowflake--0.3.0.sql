\echo Use "CREATE EXTENSION pg_snowflake" to load this file. \quit

-- Reading the parts of an ID, and composing an ID from parts. These functions work without preloading and on standbys.
--
-- The accessors are C functions. snowflake_decode() is an SQL function that calls them. It is not STRICT, so that the planner can
-- inline it: (snowflake_decode(id)).* costs as much as the accessors.

CREATE TYPE snowflake_parts AS (
    "timestamp" timestamptz,
    datacenter_id integer,
    worker_id integer,
    sequence integer
);
COMMENT ON TYPE snowflake_parts IS
    'parts of a snowflake ID; a part that its layout does not have is NULL';

CREATE FUNCTION snowflake_timestamp(id bigint) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_timestamp';
COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
    'time of a snowflake ID, rounded down to a tick of its layout';

CREATE FUNCTION snowflake_datacenter(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_datacenter';
COMMENT ON FUNCTION snowflake_datacenter(bigint) IS
    'datacenter of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_worker';
COMMENT ON FUNCTION snowflake_worker(bigint) IS
    'worker of a snowflake ID; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_sequence';
COMMENT ON FUNCTION snowflake_sequence(bigint) IS
    'sequence number of a snowflake ID within its tick';

CREATE FUNCTION snowflake_decode(id bigint) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN ROW (
        snowflake_timestamp(id),
        snowflake_datacenter(id),
        snowflake_worker(id),
        snowflake_sequence(id)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint) IS
    'parts of a snowflake ID';

CREATE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer DEFAULT 0,
    datacenter_id integer DEFAULT NULL
) RETURNS bigint
    LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_encode';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer) IS
    'composes a snowflake ID from its parts, for tests and for existing rows; does not ensure that it is unique';

-- The same functions for a layout that the caller names: a built-in one, or one in the notation of pg_snowflake.layout.

CREATE FUNCTION snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_timestamp_in';
COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
    'time of a snowflake ID of the given layout, rounded down to a tick';

CREATE FUNCTION snowflake_datacenter(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_datacenter_in';
COMMENT ON FUNCTION snowflake_datacenter(bigint, text) IS
    'datacenter of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_worker(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_worker_in';
COMMENT ON FUNCTION snowflake_worker(bigint, text) IS
    'worker of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_sequence(id bigint, layout text) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_sequence_in';
COMMENT ON FUNCTION snowflake_sequence(bigint, text) IS
    'sequence number of a snowflake ID of the given layout; NULL if the layout has none';

CREATE FUNCTION snowflake_decode(id bigint, layout text) RETURNS snowflake_parts
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 8
    RETURN ROW (
        snowflake_timestamp(id, layout),
        snowflake_datacenter(id, layout),
        snowflake_worker(id, layout),
        snowflake_sequence(id, layout)
    )::snowflake_parts;
COMMENT ON FUNCTION snowflake_decode(bigint, text) IS
    'parts of a snowflake ID of the given layout';

CREATE FUNCTION snowflake_encode(
    "timestamp" timestamptz,
    worker_id integer,
    sequence integer,
    datacenter_id integer,
    layout text
) RETURNS bigint
    LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_encode_in';
COMMENT ON FUNCTION snowflake_encode(timestamptz, integer, integer, integer, text) IS
    'composes a snowflake ID of the given layout from its parts; does not ensure that it is unique';

-- The built-in layouts.

CREATE FUNCTION snowflake_layouts() RETURNS TABLE (
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
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 100 ROWS 16
    AS 'MODULE_PATHNAME', 'snowflake_layouts';
COMMENT ON FUNCTION snowflake_layouts() IS
    'built-in layouts of snowflake IDs; ids_per_second is the highest rate of one worker';

-- Lowest and highest IDs of a range of time. With them, a query by time can use an index on the ID. They have a result
-- for every instant: where no ID is at or before it, the highest such ID is -1, and where none is at or after it, the
-- lowest such ID is the highest bigint.

CREATE FUNCTION snowflake_min_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id';
COMMENT ON FUNCTION snowflake_min_id(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one';

CREATE FUNCTION snowflake_max_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id';
COMMENT ON FUNCTION snowflake_max_id(timestamptz) IS
    'highest snowflake ID whose time is at or before the given one';

CREATE FUNCTION snowflake_max_id_before(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before';
COMMENT ON FUNCTION snowflake_max_id_before(timestamptz) IS
    'highest snowflake ID whose time is before the given one';

-- Not STRICT, so that the planner can inline it. Each time is used once: a subquery that is used twice is not inlined.
-- The lower bound is compared with >=, because by > PostgreSQL would also read the partition that ends where the range
-- begins; the upper one with <=, because the lowest ID at or after 'infinity' would be out of range for bigint.
CREATE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN id >= snowflake_min_id(since) AND id <= snowflake_max_id_before(until);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz) IS
    'whether the time of a snowflake ID is at or after since and before until; can use an index on the ID';

-- The same functions for a layout that the caller names.

CREATE FUNCTION snowflake_min_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_in';
COMMENT ON FUNCTION snowflake_min_id(timestamptz, text) IS
    'lowest snowflake ID of the given layout whose time is at or after the given one';

CREATE FUNCTION snowflake_max_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_in';
COMMENT ON FUNCTION snowflake_max_id(timestamptz, text) IS
    'highest snowflake ID of the given layout whose time is at or before the given one';

CREATE FUNCTION snowflake_max_id_before(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_in';
COMMENT ON FUNCTION snowflake_max_id_before(timestamptz, text) IS
    'highest snowflake ID of the given layout whose time is before the given one';

CREATE FUNCTION snowflake_between(id bigint, since timestamptz, until timestamptz, layout text) RETURNS boolean
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 3
    RETURN id >= snowflake_min_id(since, layout) AND id <= snowflake_max_id_before(until, layout);
COMMENT ON FUNCTION snowflake_between(bigint, timestamptz, timestamptz, text) IS
    'whether the time of a snowflake ID of the given layout is at or after since and before until; can use an index on the ID';

-- Making snowflake IDs.

CREATE FUNCTION snowflake_next() RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_next';
COMMENT ON FUNCTION snowflake_next() IS
    'next snowflake ID of this server';

-- PARALLEL RESTRICTED: in FROM, each parallel worker would return as many IDs as the caller has asked for.
CREATE FUNCTION snowflake_next(count integer) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 1 ROWS 1000
    AS 'MODULE_PATHNAME', 'snowflake_next_many';
COMMENT ON FUNCTION snowflake_next(integer) IS
    'the given number of next snowflake IDs of this server, in ascending order';

-- The record that a database keeps of its IDs: three sequences, used as variables that hold one number each.
--
-- Sequences, because pg_dump writes each as one setval(), which on restore overwrites the number that CREATE EXTENSION stored; and
-- because FOR ALL TABLES publications, TRUNCATE, and tools that map tables to models leave sequences alone.
-- Everybody may read them, so that the owner of a database can dump it. They belong to the role that creates the extension, so
-- that this role can restore a dump.

CREATE SCHEMA _snowflake;
COMMENT ON SCHEMA _snowflake IS
    'pg_snowflake''s internal record of the IDs of this database';
GRANT USAGE ON SCHEMA _snowflake TO PUBLIC;

CREATE SEQUENCE _snowflake.reservation AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.reservation OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.reservation TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.reservation IS
    'internal: upper bound of the times of the snowflake IDs of this database, in milliseconds since 1970';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.reservation', '');

CREATE SEQUENCE _snowflake.layout AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.layout OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.layout TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.layout IS
    'internal: fields and tick of the layout of this database, encoded as a number; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.layout', '');

CREATE SEQUENCE _snowflake.epoch AS bigint MINVALUE 0 START 0 NO CYCLE;
ALTER SEQUENCE _snowflake.epoch OWNER TO @extowner@;
GRANT SELECT ON SEQUENCE _snowflake.epoch TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.epoch IS
    'internal: epoch of the layout of this database, in microseconds since 1970; see snowflake_database_layout()';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.epoch', '');

-- Stores the server's layout in the record. If the library is preloaded, also creates the replication origin that the server's
-- reservation is stored in.
CREATE FUNCTION _snowflake.prepare() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_prepare';
SELECT _snowflake.prepare();
DROP FUNCTION _snowflake.prepare();

CREATE FUNCTION snowflake_server_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_server_layout';
COMMENT ON FUNCTION snowflake_server_layout() IS
    'layout that this server is configured with, in full notation';

CREATE FUNCTION snowflake_database_layout() RETURNS text
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
    AS 'MODULE_PATHNAME', 'snowflake_database_layout';
COMMENT ON FUNCTION snowflake_database_layout() IS
    'layout of the snowflake IDs of this database, in full notation';

CREATE FUNCTION snowflake_adopt_layout() RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_adopt_layout';
REVOKE ALL ON FUNCTION snowflake_adopt_layout() FROM PUBLIC;
COMMENT ON FUNCTION snowflake_adopt_layout() IS
    'sets the layout of this database to that of this server; refused if snowflake IDs were made in the database';

CREATE FUNCTION snowflake_rewind(last_id bigint) RETURNS timestamptz
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_rewind';
REVOKE ALL ON FUNCTION snowflake_rewind(bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_rewind(bigint) IS
    'continues with snowflake IDs after last_id, or of the current time if that is later; for a server whose clock was ahead when it made IDs; no ID above last_id may be in use anywhere';

-- The state of the server's IDs, for monitoring. A function rather than a view, since tools that compare a database with a model
-- would want to drop a view that is not in the model.

CREATE FUNCTION snowflake_status() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    previous_worker_id integer,
    previous_datacenter_id integer,
    previous_until timestamptz,
    layout text,
    epoch timestamptz,
    layout_end timestamptz,
    clock_source text,
    last_time timestamptz,
    lead interval,
    reserved_until timestamptz,
    started_at timestamptz,
    started_after text,
    reservations bigint,
    waits bigint,
    wait_time interval,
    clock_steps bigint,
    largest_clock_step interval,
    clock_leaps bigint,
    clock_leap interval,
    errors bigint,
    registry text,
    lease text,
    granted_until timestamptz,
    registry_error text
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 100 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_status_0_2_0';
REVOKE ALL ON FUNCTION snowflake_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_status() IS
    'state of the snowflake IDs of this server, and counters since its start; does not make an ID';

-- IDs as text. The forms and their numbers of characters:
--
-- * in the C collation, these sort as the IDs do: decimal (19), hex (16), base32 (13; Crockford's alphabet), base58 (11;
--   Bitcoin's alphabet), base62 (11)
-- * these do not: base64url (11), base36 and base58-bwmarrin (variable; those of the Go package bwmarrin/snowflake), shortcode
--   (variable; that of Instagram)

CREATE FUNCTION snowflake_to_text(id bigint, form text) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_to_text';
COMMENT ON FUNCTION snowflake_to_text(bigint, text) IS
    'writes a snowflake ID in the given text form';

CREATE FUNCTION snowflake_from_text("text" text, form text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_from_text';
COMMENT ON FUNCTION snowflake_from_text(text, text) IS
    'reads a snowflake ID that is written in the given text form';

-- How long ago an ID was made.

CREATE FUNCTION snowflake_age(id bigint) RETURNS interval
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN pg_catalog.now() OPERATOR(pg_catalog.-) snowflake_timestamp(id);
COMMENT ON FUNCTION snowflake_age(bigint) IS
    'time from a snowflake ID to the start of the transaction';

CREATE FUNCTION snowflake_age(id bigint, layout text) RETURNS interval
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL SAFE COST 2
    RETURN pg_catalog.now() OPERATOR(pg_catalog.-) snowflake_timestamp(id, layout);
COMMENT ON FUNCTION snowflake_age(bigint, text) IS
    'time from a snowflake ID of the given layout to the start of the transaction';

-- Partitions by ID time.

CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz
) RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_create_partitions';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz) IS
    'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them';

CREATE FUNCTION snowflake_maintain_partitions(
    parent regclass,
    every interval,
    ahead interval,
    retention interval DEFAULT NULL,
    expired text DEFAULT 'detach',
    dry_run boolean DEFAULT false,
    default_rows text DEFAULT 'refuse'
) RETURNS TABLE (partition text, action text, since timestamptz, until timestamptz, statement text, note text)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 4
    AS 'MODULE_PATHNAME', 'snowflake_maintain_partitions';
COMMENT ON FUNCTION snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean, text) IS
    'for a job: creates the missing partitions of the time ahead, and detaches or drops those that are older than the retention';

-- For pg_partman from 5.2 on, for a partition key of type text that holds IDs in decimal form.

CREATE FUNCTION snowflake_time_encoder(at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_to_text(snowflake_min_id(at), 'decimal');
COMMENT ON FUNCTION snowflake_time_encoder(timestamptz) IS
    'lowest snowflake ID whose time is at or after the given one, in decimal form; for p_time_encoder of pg_partman';

CREATE FUNCTION snowflake_time_decoder("text" text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 4
    RETURN snowflake_timestamp(snowflake_from_text("text", 'decimal'));
COMMENT ON FUNCTION snowflake_time_decoder(text) IS
    'time of a snowflake ID in decimal form; for p_time_decoder of pg_partman';

-- The statements that give a partition the privileges that its table has, its row-level security and its replica identity.
-- src/tables/partitions/privileges.rs runs this text, too, with a search_path of pg_catalog, as the owner of both.

CREATE FUNCTION _snowflake.privileges(parent oid, partition oid) RETURNS SETOF text
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

-- Partitions for the rows of a default partition. In PL/pgSQL, as a procedure with a SET clause or of another role's rights could not commit.

CREATE FUNCTION _snowflake.first_id_at(at timestamptz) RETURNS bigint
    LANGUAGE sql STABLE
    RETURN snowflake_min_id(at);
COMMENT ON FUNCTION _snowflake.first_id_at(timestamptz) IS
    'part of snowflake_partition_default_rows(): snowflake_min_id(), wherever it is';

CREATE FUNCTION _snowflake.time_of_id(id bigint) RETURNS timestamptz
    LANGUAGE sql STABLE
    RETURN snowflake_timestamp(id);
COMMENT ON FUNCTION _snowflake.time_of_id(bigint) IS
    'part of snowflake_partition_default_rows(): snowflake_timestamp(), wherever it is';

-- What stands in the way of moving rows out of a default partition: the call ends. All code that moving runs must be the caller's own.
CREATE FUNCTION _snowflake.check_default_partition(parent regclass, rest regclass) RETURNS void
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
CREATE FUNCTION _snowflake.triggers(tbl regclass, event integer, partition text, OUT off text[], OUT as_now text[], OUT has_copies boolean)
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
CREATE FUNCTION _snowflake.is_plain_partition(parent regclass, rest regclass) RETURNS boolean
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
CREATE FUNCTION _snowflake.partition_default_rows(
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
CREATE PROCEDURE snowflake_partition_default_rows(parent regclass, every interval, dry_run boolean DEFAULT false)
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

-- Bounds of ranges of time for the planner, which replaces comparisons of an ID's time by comparisons of the ID. Those
-- of a timestamp or a date are STABLE, because they use the session's time zone, as PostgreSQL's operators do that
-- compare these types with timestamptz.

CREATE FUNCTION _snowflake.min_id(at timestamptz) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamptz';
COMMENT ON FUNCTION _snowflake.min_id(timestamptz) IS
    'internal: lowest snowflake ID whose time is at or after the given one; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.min_id(timestamp) IS
    'internal: lowest snowflake ID whose time is at or after the given timestamp in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_date';
COMMENT ON FUNCTION _snowflake.min_id(date) IS
    'internal: lowest snowflake ID whose time is at or after the start of the given date in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.max_id(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp';
COMMENT ON FUNCTION _snowflake.max_id(timestamp) IS
    'internal: highest snowflake ID whose time is at or before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date';
COMMENT ON FUNCTION _snowflake.max_id(date) IS
    'internal: highest snowflake ID whose time is at or before the start of the given date in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at timestamp) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp) IS
    'internal: highest snowflake ID whose time is before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at date) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date';
COMMENT ON FUNCTION _snowflake.max_id_before(date) IS
    'internal: highest snowflake ID whose time is before the start of the given date in the session''s time zone; -1 if there is none';

-- The same functions for a layout that the caller names.

CREATE FUNCTION _snowflake.min_id(at timestamptz, layout text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamptz_in';
COMMENT ON FUNCTION _snowflake.min_id(timestamptz, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the given one; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.min_id(timestamp, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the given timestamp in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.min_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_min_id_of_date_in';
COMMENT ON FUNCTION _snowflake.min_id(date, text) IS
    'internal: lowest snowflake ID of the layout whose time is at or after the start of the given date in the session''s time zone; NULL if there is none';

CREATE FUNCTION _snowflake.max_id(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_of_date_in';
COMMENT ON FUNCTION _snowflake.max_id(date, text) IS
    'internal: highest snowflake ID of the layout whose time is at or before the start of the given date in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at timestamp, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_timestamp_in';
COMMENT ON FUNCTION _snowflake.max_id_before(timestamp, text) IS
    'internal: highest snowflake ID of the layout whose time is before the given timestamp in the session''s time zone; -1 if there is none';

CREATE FUNCTION _snowflake.max_id_before(at date, layout text) RETURNS bigint
    LANGUAGE c STABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_max_id_before_date_in';
COMMENT ON FUNCTION _snowflake.max_id_before(date, text) IS
    'internal: highest snowflake ID of the layout whose time is before the start of the given date in the session''s time zone; -1 if there is none';

-- Which times a condition accepts that compares what is made of the time, as date_trunc() is. The way from the time to that is a text.

CREATE FUNCTION _snowflake.earliest(way text, VARIADIC given "any") RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL SAFE COST 20
    AS 'MODULE_PATHNAME', 'snowflake_earliest';
COMMENT ON FUNCTION _snowflake.earliest(text, VARIADIC "any") IS
    'internal: no time before this one is accepted by a condition that compares what is made of the time; -infinity where none is known';

CREATE FUNCTION _snowflake.latest(way text, VARIADIC given "any") RETURNS timestamptz
    LANGUAGE c STABLE PARALLEL SAFE COST 20
    AS 'MODULE_PATHNAME', 'snowflake_latest';
COMMENT ON FUNCTION _snowflake.latest(text, VARIADIC "any") IS
    'internal: no time after this one is accepted by a condition that compares what is made of the time; infinity where none is known';

-- The elements of a list of times, for a scan that reads an index by one after the other.

CREATE FUNCTION _snowflake.sorted("values" anyarray) RETURNS anyarray
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 2
    AS 'MODULE_PATHNAME', 'snowflake_sorted';
COMMENT ON FUNCTION _snowflake.sorted(anyarray) IS
    'internal: the elements of an array of timestamptz, timestamp or date that are not NULL, each once, in rising order';

-- The workers of all servers, as the registry has them.

CREATE FUNCTION snowflake_workers() RETURNS TABLE (
    worker_id integer,
    datacenter_id integer,
    state text,
    granted_from timestamptz,
    granted_until timestamptz,
    host text,
    port integer,
    data_directory text,
    cluster_name text,
    system_identifier bigint,
    is_this_server boolean
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_workers';
REVOKE ALL ON FUNCTION snowflake_workers() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_workers() TO pg_monitor;
COMMENT ON FUNCTION snowflake_workers() IS
    'worker IDs that servers have leased from the registry, and who has them; asks the registry';

-- Existing tables: from a sequence or an identity to snowflake IDs, and back. The plans say what would be done, as rows: what
-- stands in the way (kind 'obstacle'), the statements in order, and what one should know ('note').

CREATE FUNCTION snowflake_adopt_plan(
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
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_adopt_plan';
COMMENT ON FUNCTION snowflake_adopt_plan(regclass, name, text) IS
    'what snowflake_adopt() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

CREATE FUNCTION snowflake_adopt(
    tbl regclass,
    col name DEFAULT NULL,
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_adopt';
COMMENT ON FUNCTION snowflake_adopt(regclass, name, text) IS
    'gives an existing column the default snowflake_next(), and makes it and all columns that refer to it bigint; new IDs are at or above first_id, old numbers below it';

CREATE FUNCTION snowflake_adopt_all_plan(
    tables regclass[],
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
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_adopt_all_plan';
COMMENT ON FUNCTION snowflake_adopt_all_plan(regclass[], text) IS
    'what snowflake_adopt_all() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode and rewrites; does nothing';

CREATE FUNCTION snowflake_adopt_all(
    tables regclass[],
    views text DEFAULT 'refuse'
) RETURNS TABLE (
    tbl regclass,
    col text,
    first_id bigint,
    adopted_at timestamptz,
    highest_before bigint
)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_adopt_all';
COMMENT ON FUNCTION snowflake_adopt_all(regclass[], text) IS
    'does for several tables what snowflake_adopt() does for one, by one plan that locks and rewrites each table once; leaves out those that make snowflake IDs already';

CREATE FUNCTION snowflake_release_plan(
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
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_release_plan';
COMMENT ON FUNCTION snowflake_release_plan(regclass, name, bigint, boolean) IS
    'what snowflake_release() would do: the statements with the tables that each locks in ACCESS EXCLUSIVE mode; does nothing';

CREATE FUNCTION snowflake_release(
    tbl regclass,
    col name DEFAULT NULL,
    start bigint DEFAULT NULL,
    identity boolean DEFAULT false
) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000
    AS 'MODULE_PATHNAME', 'snowflake_release';
COMMENT ON FUNCTION snowflake_release(regclass, name, bigint, boolean) IS
    'gives a column whose default is snowflake_next() back what it had before, or else a sequence or an identity; returns the next value, where it is known';

-- What is required, checked before the first ID is made. Each row answers one question; what is not given is not compared.

CREATE FUNCTION snowflake_preflight(
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
    LANGUAGE c STABLE CALLED ON NULL INPUT PARALLEL RESTRICTED COST 10000 ROWS 10
    AS 'MODULE_PATHNAME', 'snowflake_preflight';
COMMENT ON FUNCTION snowflake_preflight(text, timestamptz, integer, integer, boolean, double precision, integer, boolean, timestamptz, regclass[], name) IS
    'checks a layout and the settings of this server before the first snowflake ID is made: until when IDs last, how many servers and IDs a second there is room for, which rows can have IDs, whether existing keys sort below; changes nothing';

-- Segments: plain numbers by tag, unique over all servers of a registry's namespace.

CREATE FUNCTION snowflake_segment_create(
    tag text,
    first bigint DEFAULT 1,
    last bigint DEFAULT 9223372036854775807,
    smallest_range bigint DEFAULT NULL,
    largest_range bigint DEFAULT NULL
) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000
    AS 'MODULE_PATHNAME', 'snowflake_segment_create';
REVOKE ALL ON FUNCTION snowflake_segment_create(text, bigint, bigint, bigint, bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_create(text, bigint, bigint, bigint, bigint) IS
    'creates a segment in the registry; one that was dropped goes on above what was used; returns its next number';

CREATE FUNCTION snowflake_segment_next(tag text) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_segment_next';
REVOKE ALL ON FUNCTION snowflake_segment_next(text) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_next(text) IS
    'next number of a segment, unique over all servers of the registry''s namespace';

-- PARALLEL RESTRICTED: in FROM, each parallel worker would return as many numbers as the caller has asked for.
CREATE FUNCTION snowflake_segment_next(tag text, count integer) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 1 ROWS 1000
    AS 'MODULE_PATHNAME', 'snowflake_segment_next_many';
REVOKE ALL ON FUNCTION snowflake_segment_next(text, integer) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_next(text, integer) IS
    'the given number of next numbers of a segment, in ascending order';

CREATE FUNCTION snowflake_segment_raise(tag text, above bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000
    AS 'MODULE_PATHNAME', 'snowflake_segment_raise';
REVOKE ALL ON FUNCTION snowflake_segment_raise(text, bigint) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_raise(text, bigint) IS
    'has later numbers of a segment be above this one, on other servers within a minute; returns its next number';

CREATE FUNCTION snowflake_segment_drop(tag text) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 10000
    AS 'MODULE_PATHNAME', 'snowflake_segment_drop';
REVOKE ALL ON FUNCTION snowflake_segment_drop(text) FROM PUBLIC;
COMMENT ON FUNCTION snowflake_segment_drop(text) IS
    'drops a segment, on other servers within a minute; the registry keeps what was used; returns the number from which it would go on';

CREATE FUNCTION snowflake_segments(all_servers boolean DEFAULT true) RETURNS TABLE (
    tag text,
    state text,
    first bigint,
    last bigint,
    next_granted bigint,
    worker_id integer,
    datacenter_id integer,
    host text,
    is_this_server boolean,
    as_of timestamptz,
    current_from bigint,
    current_until bigint,
    after_from bigint,
    after_until bigint,
    held bigint,
    range_size bigint,
    per_second double precision,
    lasts interval,
    conflicts bigint,
    waits bigint
)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED COST 10000 ROWS 100
    AS 'MODULE_PATHNAME', 'snowflake_segments';
REVOKE ALL ON FUNCTION snowflake_segments(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_segments(boolean) TO pg_monitor;
COMMENT ON FUNCTION snowflake_segments(boolean) IS
    'segments, and which servers hold which ranges, how fast they are used and for how long they last; asks the registry, unless only this server is meant';

-- A type of IDs that PostgreSQL's JSON functions write as text, since JavaScript cannot hold all bigint. Its values are stored, sorted and
-- indexed as bigint, by the operators of bigint: it has none of its own.

CREATE TYPE snowflake_id;

CREATE FUNCTION _snowflake.id_in(cstring) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_in';
COMMENT ON FUNCTION _snowflake.id_in(cstring) IS
    'reads a snowflake_id';

CREATE FUNCTION _snowflake.id_out(snowflake_id) RETURNS cstring
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_out';
COMMENT ON FUNCTION _snowflake.id_out(snowflake_id) IS
    'writes a snowflake_id';

CREATE FUNCTION _snowflake.id_recv(internal) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_recv';
COMMENT ON FUNCTION _snowflake.id_recv(internal) IS
    'reads a snowflake_id in binary form';

CREATE FUNCTION _snowflake.id_send(snowflake_id) RETURNS bytea
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_send';
COMMENT ON FUNCTION _snowflake.id_send(snowflake_id) IS
    'writes a snowflake_id in binary form';

CREATE TYPE snowflake_id (
    INPUT = _snowflake.id_in,
    OUTPUT = _snowflake.id_out,
    RECEIVE = _snowflake.id_recv,
    SEND = _snowflake.id_send,
    LIKE = bigint,
    CATEGORY = 'N'
);
COMMENT ON TYPE snowflake_id IS
    'a bigint that JSON functions write as text, for IDs that JavaScript reads';

-- To bigint wherever one is expected, so that all operators and functions of bigint take it. Back only where a value is stored: an
-- implicit cast both ways would leave the type of COALESCE and CASE to the order of their arguments.
CREATE CAST (snowflake_id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (bigint AS snowflake_id) WITHOUT FUNCTION AS ASSIGNMENT;

-- Small literals are integer: COALESCE(id, 0), and bounds of partitions. Drivers send small numbers as smallint.
CREATE FUNCTION _snowflake.id_from(integer) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_of_integer';
COMMENT ON FUNCTION _snowflake.id_from(integer) IS
    'the snowflake_id of this number, for the cast';
CREATE CAST (integer AS snowflake_id) WITH FUNCTION _snowflake.id_from(integer) AS IMPLICIT;

CREATE FUNCTION _snowflake.id_from(smallint) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_of_smallint';
COMMENT ON FUNCTION _snowflake.id_from(smallint) IS
    'the snowflake_id of this number, for the cast';
CREATE CAST (smallint AS snowflake_id) WITH FUNCTION _snowflake.id_from(smallint) AS IMPLICIT;

-- As bigint has them. They are no implicit ones, as abs(id) would be ambiguous.
CREATE FUNCTION _snowflake.id_from(numeric) RETURNS snowflake_id
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_of_numeric';
COMMENT ON FUNCTION _snowflake.id_from(numeric) IS
    'the snowflake_id of this number, for the cast';
CREATE CAST (numeric AS snowflake_id) WITH FUNCTION _snowflake.id_from(numeric) AS ASSIGNMENT;

CREATE FUNCTION _snowflake.id_to_numeric(snowflake_id) RETURNS numeric
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_to_numeric';
COMMENT ON FUNCTION _snowflake.id_to_numeric(snowflake_id) IS
    'the number of a snowflake_id, for the cast';
CREATE CAST (snowflake_id AS numeric) WITH FUNCTION _snowflake.id_to_numeric(snowflake_id) AS ASSIGNMENT;

-- The functions of JSON look for this cast.
CREATE FUNCTION _snowflake.id_to_json(snowflake_id) RETURNS json
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1
    AS 'MODULE_PATHNAME', 'snowflake_id_to_json';
COMMENT ON FUNCTION _snowflake.id_to_json(snowflake_id) IS
    'a snowflake_id as text in JSON, for the cast';
CREATE CAST (snowflake_id AS json) WITH FUNCTION _snowflake.id_to_json(snowflake_id);

-- Privileges that do not depend on default privileges. Only the owner may change the record, as IDs could be made twice otherwise; functions for
-- administrators are for them alone; and everybody may call functions that are part of others.
CREATE FUNCTION _snowflake.set_privileges() RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_set_privileges';
SELECT _snowflake.set_privileges();
DROP FUNCTION _snowflake.set_privileges();
