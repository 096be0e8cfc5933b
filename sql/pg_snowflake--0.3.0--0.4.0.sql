\echo Use "ALTER EXTENSION pg_snowflake UPDATE TO '0.4.0'" to load this file. \quit

-- Who may make many IDs by one call: snowflake_next(count) needs USAGE on this type, and does nothing else with it. It belongs to
-- whoever owns the database, who can so keep that from PUBLIC; the functions belong to a superuser. Defaults do not need it.

CREATE DOMAIN _snowflake.batch AS bigint;
ALTER DOMAIN _snowflake.batch OWNER TO pg_database_owner;
GRANT USAGE ON TYPE _snowflake.batch TO PUBLIC;
COMMENT ON DOMAIN _snowflake.batch IS
    'USAGE allows to call snowflake_next(count); for the owner of the database to revoke and grant';

-- Names of tables that stay what they are, and keys that are read without a name: for functions in PL/pgSQL.

-- A table, its partitions and the tables that inherit from it, without a lock: that of pg_partition_tree() would stay.
CREATE FUNCTION _snowflake.family_of(tbl regclass) RETURNS SETOF regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE family (relid) AS (
        SELECT tbl::oid UNION SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = relid
    ) SELECT relid::regclass FROM family ORDER BY relid <> tbl, relid
    $$;
COMMENT ON FUNCTION _snowflake.family_of(regclass) IS
    'part of snowflake_partition_default_rows(): a table first, then its partitions and the tables that inherit from it';

-- As long as this transaction lasts, the name stands for this table: the lock keeps the table, and another its schema.
CREATE FUNCTION _snowflake.hold(tbl regclass) RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100
    AS 'MODULE_PATHNAME', 'snowflake_hold';
COMMENT ON FUNCTION _snowflake.hold(regclass) IS
    'part of snowflake_partition_default_rows(): locks a table of the caller''s, and returns its name as statements write it; NULL where it is gone';

-- These read without SQL, which would find the tables by their names, and run code of theirs already to plan it.
CREATE FUNCTION _snowflake.lowest_key(tbl regclass, col name, since bigint, until bigint) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_lowest_key';
COMMENT ON FUNCTION _snowflake.lowest_key(regclass, name, bigint, bigint) IS
    'part of snowflake_partition_default_rows(): the lowest key of a range in a table of the caller''s and its partitions';

CREATE FUNCTION _snowflake.count_keys(tbl regclass, col name, since bigint, until bigint)
    RETURNS TABLE (inside bigint, outside bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 1
    AS 'MODULE_PATHNAME', 'snowflake_count_keys';
COMMENT ON FUNCTION _snowflake.count_keys(regclass, name, bigint, bigint) IS
    'part of snowflake_partition_default_rows(): how many rows have a key of a range, and how many have not';

CREATE OR REPLACE FUNCTION _snowflake.check_default_partition(parent regclass, rest regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
BEGIN
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, t.relowner::regrole AS owner INTO c
        FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE t.oid IN (SELECT parent UNION SELECT relid FROM pg_partition_ancestors(parent)
            UNION SELECT _snowflake.family_of(rest))
        AND pg_get_userbyid(t.relowner) <> current_user ORDER BY t.oid = parent DESC, t.oid LIMIT 1;
    IF FOUND THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('table %s belongs to role %s, and the caller is role %I', c.quoted, c.owner, current_user),
            DETAIL = 'Code of the table, such as expressions of its indexes, would run as the caller.',
            HINT = format('Have role %1$s call this. If you trust that role''s code with your rights, SET ROLE %1$s does as well. The table, '
                'those that it is a partition of, and its default partition need one owner.', c.owner);
    END IF;
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, t.relkind INTO c
        FROM _snowflake.family_of(rest) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace
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
            SELECT relid FROM pg_partition_ancestors(parent) UNION SELECT _snowflake.family_of(rest))
        ORDER BY k.oid LIMIT 1;
    IF FOUND THEN
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('rows to which foreign key "%s" of table %s refers cannot be moved', c.conname, c.quoted),
            DETAIL = 'To PostgreSQL, a row that is moved to another partition is deleted and inserted again.',
            HINT = format('Drop the foreign key, and add it again afterwards: ALTER TABLE %1$s DROP CONSTRAINT %2$I; and '
                'ALTER TABLE %1$s ADD CONSTRAINT %2$I %3$s;', c.quoted, c.conname, c.definition);
    END IF;
END $$;

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
            AND CASE WHEN partition IS NULL THEN g.tgrelid IN (SELECT _snowflake.family_of(tbl))
                ELSE g.tgrelid = tbl AND g.tgtype & 1 = 1 END
    ) AS firing
    $$;

-- Since when this database makes IDs is not known here: it did before that was on record.
CREATE SEQUENCE _snowflake.since AS bigint MINVALUE 0 START 0 NO CYCLE;
DO $$
BEGIN
    EXECUTE pg_catalog.format('ALTER SEQUENCE _snowflake.since OWNER TO %s', (SELECT relowner::pg_catalog.regrole FROM pg_catalog.pg_class
        WHERE oid OPERATOR(pg_catalog.=) '_snowflake.reservation'::pg_catalog.regclass));
END $$;
GRANT SELECT ON SEQUENCE _snowflake.since TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.since IS
    'internal: since when this database makes snowflake IDs, in milliseconds since 1970; lower keys are not its own';
SELECT pg_catalog.pg_extension_config_dump('_snowflake.since', '');

-- Functions with a layout as one more argument take the place of those without it, and the privileges that these were given.
ALTER FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz) RENAME TO snowflake_create_partitions_of_0_3_0;
ALTER FUNCTION snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean, text)
    RENAME TO snowflake_maintain_partitions_of_0_3_0;
ALTER PROCEDURE snowflake_partition_default_rows(regclass, interval, boolean) RENAME TO snowflake_partition_default_rows_of_0_3_0;
DROP FUNCTION _snowflake.partition_default_rows(regclass, interval, boolean, bigint);

CREATE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz,
    layout text DEFAULT NULL
) RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_create_partitions_in';
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz, text) IS
    'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them';

CREATE FUNCTION snowflake_maintain_partitions(
    parent regclass,
    every interval,
    ahead interval,
    retention interval DEFAULT NULL,
    expired text DEFAULT 'detach',
    dry_run boolean DEFAULT false,
    default_rows text DEFAULT 'refuse',
    layout text DEFAULT NULL
) RETURNS TABLE (partition text, action text, since timestamptz, until timestamptz, statement text, note text)
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 4
    AS 'MODULE_PATHNAME', 'snowflake_maintain_partitions_in';
COMMENT ON FUNCTION snowflake_maintain_partitions(regclass, interval, interval, interval, text, boolean, text, text) IS
    'for a job: creates the missing partitions of the time ahead, and detaches or drops those that are older than the retention';

CREATE FUNCTION snowflake_declare_keys(parent regclass, since timestamptz DEFAULT NULL, layout text DEFAULT NULL)
    RETURNS SETOF regclass
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    AS 'MODULE_PATHNAME', 'snowflake_declare_keys';
COMMENT ON FUNCTION snowflake_declare_keys(regclass, timestamptz, text) IS
    'declares that the keys of a partitioned table from a time on are snowflake IDs, so that its partitions can expire; returns those that it marks';

CREATE FUNCTION _snowflake.first_id_in(at timestamptz, layout text) RETURNS bigint
    LANGUAGE sql STABLE
    RETURN snowflake_min_id(at, layout);
COMMENT ON FUNCTION _snowflake.first_id_in(timestamptz, text) IS
    'part of snowflake_partition_default_rows(): snowflake_min_id(), wherever it is';

CREATE FUNCTION _snowflake.time_of_id_in(id bigint, layout text) RETURNS timestamptz
    LANGUAGE sql STABLE
    RETURN snowflake_timestamp(id, layout);
COMMENT ON FUNCTION _snowflake.time_of_id_in(bigint, text) IS
    'part of snowflake_partition_default_rows(): snowflake_timestamp(), wherever it is';

-- Each of these needs EXECUTE on the function of its case alone.
CREATE FUNCTION _snowflake.first_id_at(at timestamptz, layout text) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF layout IS NULL THEN
        RETURN _snowflake.first_id_at(at);
    END IF;
    RETURN _snowflake.first_id_in(at, layout);
END $$;
COMMENT ON FUNCTION _snowflake.first_id_at(timestamptz, text) IS
    'part of snowflake_partition_default_rows(): snowflake_min_id() by a layout, or by that of the database';

CREATE FUNCTION _snowflake.time_of_id(id bigint, layout text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF layout IS NULL THEN
        RETURN _snowflake.time_of_id(id);
    END IF;
    RETURN _snowflake.time_of_id_in(id, layout);
END $$;
COMMENT ON FUNCTION _snowflake.time_of_id(bigint, text) IS
    'part of snowflake_partition_default_rows(): snowflake_timestamp() by a layout, or by that of the database';

CREATE FUNCTION _snowflake.known_from(parent regclass, layout text) RETURNS bigint
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_known_from';
COMMENT ON FUNCTION _snowflake.known_from(regclass, text) IS
    'part of snowflake_partition_default_rows(): from which key on those of the default partition are known to be snowflake IDs';

CREATE FUNCTION _snowflake.mark(partition regclass, "from" bigint, layout text) RETURNS void
    LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000
    AS 'MODULE_PATHNAME', 'snowflake_mark';
COMMENT ON FUNCTION _snowflake.mark(regclass, bigint, text) IS
    'part of snowflake_partition_default_rows(): notes from which key on those of a partition are snowflake IDs';

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
        AND NOT EXISTS (SELECT FROM pg_description WHERE objoid = rest AND classoid = 'pg_class'::regclass
            AND (objsubid <> 0 OR description !~ '^[[]pg_snowflake: keys from -?[0-9]+ on are IDs of [^]]+[]]$'))
        AND NOT EXISTS (SELECT FROM pg_seclabel WHERE objoid = rest AND classoid = 'pg_class'::regclass)
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = rest
            AND d.deptype = 'n' AND d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_class'::regclass, 'pg_policy'::regclass))
    FROM pg_class AS r, pg_class AS t WHERE r.oid = rest AND t.oid = parent
    $$;

CREATE FUNCTION _snowflake.partition_default_rows(
    parent regclass, every interval, dry_run boolean, since bigint, layout text DEFAULT NULL,
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
    held regclass;
    -- Keys below are not known to be IDs.
    floor bigint;
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
    -- First without a lock: there may be no such rows.
    -- Then all again, with what it names held: before that, any of it could become another.
    FOR pass IN 1..2 LOOP
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
        SELECT c.oid::regclass AS tbl, c.relname, n.nspname, format('%I.%I', n.nspname, c.relname) AS quoted INTO d
            FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE inhparent = parent AND pg_get_expr(c.relpartbound, 0) = 'DEFAULT';
        IF NOT FOUND THEN
            RETURN;
        END IF;
        PERFORM _snowflake.check_default_partition(parent, d.tbl);
        floor := coalesce(_snowflake.known_from(parent, layout), highest);
        id := _snowflake.lowest_key(d.tbl, t.col, greatest(since, floor), highest);
        IF id IS NULL THEN
            changed := (SELECT outside FROM _snowflake.count_keys(d.tbl, t.col, floor, highest));
            IF changed > 0 THEN
                RAISE NOTICE 'rows that stay in the default partition: %', changed
                    USING DETAIL = CASE WHEN floor < highest THEN format('Their "%s" is NULL, or below %s: nothing says that such keys are '
                        'snowflake IDs, so they have no time.', t.col, floor)
                        ELSE 'Nothing says that their keys are snowflake IDs, so they have no time.' END,
                    HINT = 'If they are snowflake IDs, say so by snowflake_declare_keys().';
            END IF;
            RETURN;
        END IF;
        EXIT WHEN dry_run OR pass = 2;
        -- As strong as the locks of CREATE TABLE ... PARTITION OF, and in its order.
        IF _snowflake.hold(parent) IS NULL OR _snowflake.hold(d.tbl) IS NULL THEN
            RAISE serialization_failure USING MESSAGE = format('table %s was changed by others meanwhile', t.quoted),
                DETAIL = 'It, or its default partition, was dropped while this call waited for it.', HINT = 'Call it again.';
        END IF;
        PERFORM _snowflake.hold(f) FROM _snowflake.family_of(d.tbl) AS f;
        held := d.tbl;
    END LOOP;
    IF NOT dry_run AND d.tbl <> held THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed by others meanwhile', t.quoted),
            DETAIL = 'It has another default partition than before this call waited for it.', HINT = 'Call it again.';
    END IF;

    -- The piece of time, on the grid of snowflake_maintain_partitions(), and as much of it as has no partition.
    at := timezone('UTC', _snowflake.time_of_id(id, layout));
    IF months > 0 THEN
        start := timestamp '1600-01-01' + make_interval(months => div((extract(year FROM at) - 1600) * 12 + extract(month FROM at) - 1,
            months)::integer * months);
    ELSE
        start := date_bin(every, at, timestamp '1601-01-01');
    END IF;
    "end" := start + every;
    lower := CASE WHEN timezone('UTC', start) <= _snowflake.time_of_id(0, layout) THEN 0
        ELSE _snowflake.first_id_at(timezone('UTC', start), layout) END;
    -- What is not known stays.
    IF lower < floor AND _snowflake.lowest_key(d.tbl, t.col, lower, floor) IS NOT NULL THEN
        lower := floor;
    END IF;
    until := _snowflake.first_id_at(timezone('UTC', "end"), layout);
    SELECT max(b[2]::numeric) FILTER (WHERE b[2] <> 'MAXVALUE' AND b[2]::numeric <= id),
            min(b[1]::numeric) FILTER (WHERE b[1] <> 'MINVALUE' AND b[1]::numeric > id)
        INTO after, before FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid,
            regexp_match(pg_get_expr(c.relpartbound, 0), 'FROM [(]''?([^'')]*)''?[)] TO [(]''?([^'')]*)''?[)]') AS b
        WHERE inhparent = parent AND b IS NOT NULL;
    IF after > lower THEN
        lower := after;
        start := timezone('UTC', _snowflake.time_of_id(lower, layout));
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
    IF dry_run THEN
        SELECT c.inside, c.outside > 0 INTO changed, others FROM _snowflake.count_keys(d.tbl, t.col, lower, until) AS c;
    ELSE
        EXECUTE format('SELECT EXISTS (SELECT FROM %1$s WHERE %2$I < $1 OR %2$I >= $2 OR %2$I IS NULL)', d.quoted, t.col)
            INTO others USING lower, until;
    END IF;
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
            PERFORM _snowflake.mark(d.tbl, floor, layout), _snowflake.mark(d.quoted::regclass, floor, layout);
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
        moved := changed;
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
    PERFORM _snowflake.mark(quoted::regclass, greatest(lower, floor), layout);
END $$;
COMMENT ON FUNCTION _snowflake.partition_default_rows(regclass, interval, boolean, bigint, text) IS
    'part of snowflake_partition_default_rows(): makes one partition';

CREATE PROCEDURE snowflake_partition_default_rows(parent regclass, every interval, dry_run boolean DEFAULT false,
    layout text DEFAULT NULL)
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
            FROM _snowflake.partition_default_rows(parent, every, dry_run, since, layout) AS s;
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
COMMENT ON PROCEDURE snowflake_partition_default_rows(regclass, interval, boolean, text) IS
    'makes partitions, by ID time, for the rows of a default partition, and moves these there, each partition in a transaction of its own';

DO $$
DECLARE
    renamed record;
    given record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR renamed IN SELECT p.oid::regprocedure AS before, n.oid::regprocedure AS after, p.proacl
        FROM pg_proc AS p JOIN pg_proc AS n ON n.pronamespace = p.pronamespace AND p.proname = n.proname || '_of_0_3_0'
            AND n.pronargs = p.pronargs + 1
        JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid AND e.extname = 'pg_snowflake'
    LOOP
        IF renamed.proacl IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', renamed.after);
            FOR given IN SELECT grantee, is_grantable FROM aclexplode(renamed.proacl) LOOP
                EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO %s%s', renamed.after,
                    CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END,
                    CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
            END LOOP;
        END IF;
        EXECUTE format('DROP ROUTINE %s', renamed.before);
    END LOOP;
END $$;

-- Whatever default privileges say: everybody may call functions that are part of others, and only its owner changes the record.
DO $$
DECLARE
    statement text;
BEGIN
    -- At the end of the script, as operators are looked up, too.
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR statement IN
        SELECT format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', p.oid::regprocedure)
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = '_snowflake' AND p.proname IN ('family_of', 'hold', 'lowest_key', 'count_keys', 'first_id_at', 'first_id_in',
            'time_of_id', 'time_of_id_in', 'known_from', 'mark', 'partition_default_rows')
        AND NOT EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) WHERE grantee = 0)
        UNION ALL
        SELECT DISTINCT format('REVOKE USAGE, UPDATE ON SEQUENCE _snowflake.since FROM %s CASCADE',
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
        FROM pg_class, aclexplode(relacl) WHERE oid = '_snowflake.since'::regclass AND grantee <> relowner
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;

-- Partitions that do not expire any more, as nothing says whose their keys are. The job knows some of them.
DO $$
DECLARE
    tables text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT string_agg(DISTINCT partrelid::regclass::text, ', ') INTO tables
        FROM pg_partitioned_table JOIN pg_attrdef AS d ON (adrelid, adnum) = (partrelid, partattrs[0])
            JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_proc'::regclass
            JOIN pg_proc AS p ON p.oid = u.refobjid AND p.prosrc = 'snowflake_next'
            JOIN pg_inherits ON inhparent = partrelid
        WHERE partstrat = 'r' AND partnatts = 1
            AND coalesce(obj_description(inhrelid, 'pg_class'), '') !~ '[[]pg_snowflake: keys from -?[0-9]+ on are IDs of [^]]+[]]$';
    IF tables IS NOT NULL THEN
        RAISE WARNING USING MESSAGE = 'old partitions may not expire any more until their owner has called snowflake_declare_keys()',
            DETAIL = format('Tables: %s. A retention keeps what is not known to have snowflake IDs; the disk grows meanwhile.', tables),
            HINT = 'Let the job run once, which knows partitions that it has made itself. Its rows with the action "keep" name the others.';
    END IF;
END $$;
