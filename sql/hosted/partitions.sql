-- Partitions by ID time.

-- Ends the call if code of another role's would run as the caller: that of the table, in its indexes for example, of what it is a
-- partition of, and of its default partition, which is read. The library runs it as the owner, in a restricted operation; PL/pgSQL cannot.
CREATE FUNCTION _snowflake.check_owners(parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
BEGIN
    SELECT format('%I.%I', n.nspname, t.relname) AS quoted, t.oid = parent AS is_parent, pg_get_userbyid(t.relowner) AS owner
        INTO c FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace
        WHERE t.oid IN (
            SELECT parent UNION SELECT relid FROM pg_partition_ancestors(parent)
            UNION SELECT f FROM pg_inherits JOIN pg_class AS d ON d.oid = inhrelid, _snowflake.family_of(d.oid) AS f
            WHERE inhparent = parent AND pg_get_expr(d.relpartbound, 0) = 'DEFAULT'
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
    PERFORM _snowflake.check_schema(parent);
END $$;

-- Locks a table as strongly as CREATE TABLE ... PARTITION OF locks its parent, and its default partition with all that this consists of. If a
-- name is another table's by then, or a table has another owner, the call ends before any of their code runs.
CREATE FUNCTION _snowflake.lock(tbl regclass, quoted text, parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM _snowflake.held(f, 'ACCESS EXCLUSIVE') FROM _snowflake.family_of(tbl) AS f JOIN pg_class AS c ON c.oid = f
        WHERE f = tbl OR tbl <> parent AND c.relkind IN ('r', 'p');
    IF to_regclass(quoted) IS DISTINCT FROM tbl THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was changed by others meanwhile', quoted),
            DETAIL = 'It was dropped or renamed while this call waited for it.',
            HINT = 'Call it again.';
    END IF;
    PERFORM _snowflake.check_owners(parent);
END $$;

-- The instant k steps after another one, in microseconds since 1970, by the calendar of UTC; a number beyond all layouts where the
-- year is too high.
CREATE FUNCTION _snowflake.after(since bigint, months bigint, days bigint, micros bigint, k bigint) RETURNS numeric
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
CREATE FUNCTION _snowflake.range("from" text, "to" text, l bigint[]) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format('from %s to before %s', "from" || CASE WHEN "from" ~ '^[0-9]+$' THEN
        format(' (%s)', _snowflake.time_of("from"::bigint, l)) ELSE '' END, "to" || CASE WHEN "to" ~ '^[0-9]+$' THEN
        format(' (%s)', _snowflake.time_of("to"::bigint, l)) ELSE '' END);
END $$;

-- A table that is to get partitions: the caller's own. The function is named where the transaction must be able to write.
CREATE FUNCTION _snowflake.own_table(parent regclass, function text) RETURNS record
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
CREATE FUNCTION _snowflake.range_key(parent regclass) RETURNS name
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
CREATE FUNCTION _snowflake.partitions_of(parent regclass) RETURNS TABLE (
    tbl regclass, relname name, nspname name, lower numeric, upper numeric, "from" text, "to" text
)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT c.oid::regclass, c.relname, n.nspname, CASE b[1] WHEN 'MINVALUE' THEN '-Infinity' ELSE b[1] END::numeric,
        CASE b[2] WHEN 'MAXVALUE' THEN 'Infinity' ELSE b[2] END::numeric, b[1], b[2]
    FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace,
        regexp_match(pg_get_expr(c.relpartbound, 0), 'FROM [(]''?([^'')]*)''?[)] TO [(]''?([^'')]*)''?[)]') AS b
    WHERE inhparent = parent AND b IS NOT NULL
    $$;

-- The default partition of a table.
CREATE FUNCTION _snowflake.default_of(parent regclass) RETURNS regclass
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT c.oid::regclass FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
    WHERE inhparent = parent AND pg_get_expr(c.relpartbound, 0) = 'DEFAULT'
    $$;

-- All partitions of a table, with the bounds of those that have some.
CREATE FUNCTION _snowflake.parts_of(parent regclass) RETURNS TABLE (tbl regclass, lower numeric, upper numeric)
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT e.tbl, e.lower, e.upper FROM _snowflake.partitions_of(parent) AS e
    UNION ALL SELECT d, '-Infinity', 'Infinity' FROM _snowflake.default_of(parent) AS d WHERE d IS NOT NULL
    $$;

-- Whose the keys of a partition are, on record: core/src/pieces/mark.rs in PL/pgSQL.

-- Notes from which key on those of a partition are IDs of a layout; without a key, takes the note away.
CREATE FUNCTION _snowflake.set_mark(tbl regclass, "from" bigint, l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    name CONSTANT text := _snowflake.held(tbl, 'SHARE UPDATE EXCLUSIVE');
    users CONSTANT text := regexp_replace(obj_description(tbl, 'pg_class'),
        format('(^|%s)[[]pg_snowflake: keys from -?[0-9]+ on are IDs of [^]]+[]]$', chr(10)), '');
BEGIN
    EXECUTE format('COMMENT ON TABLE %s IS %L', name, CASE WHEN "from" IS NULL THEN nullif(users, '') ELSE concat_ws(chr(10), nullif(users, ''),
        format('[pg_snowflake: keys from %s on are IDs of %s]', "from", _snowflake.notation(l))) END);
END $$;

-- From which key on a partition's are on record as IDs, and of which layout.
CREATE FUNCTION _snowflake.mark_of(tbl regclass, OUT "from" bigint, OUT layout text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT m[1]::bigint, m[2] FROM regexp_match(obj_description(tbl, 'pg_class'),
        format('(?:^|%s)[[]pg_snowflake: keys from (-?[0-9]+) on are IDs of ([^]]+)[]]$', chr(10))) AS m
    $$;

-- Where keys of a table come from that are not given: whether from snowflake_next() alone, and whether it was so from the beginning. The
-- reason, where no key has an age, whatever marks say.
CREATE FUNCTION _snowflake.source(parent regclass, col name, l bigint[], OUT is_ours boolean, OUT is_other boolean, OUT is_original boolean,
    OUT is_named boolean, OUT reason text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    is_named := l <> _snowflake.layout();
    SELECT EXISTS (SELECT FROM pg_depend WHERE (classid, objid) = (f.class, f.oid) AND refclassid = 'pg_proc'::regclass
                AND refobjid = ANY (next.functions))
            AND NOT EXISTS (SELECT FROM pg_depend WHERE (classid, objid) = (f.class, f.oid)
                AND (refclassid = 'pg_class'::regclass AND refobjid <> parent
                    OR refclassid = 'pg_proc'::regclass AND NOT refobjid = ANY (next.ours))),
        d.oid IS NOT NULL OR a.attidentity <> '' OR y.typdefaultbin IS NOT NULL,
        d.xmin = (SELECT s.xmin FROM pg_attribute AS s WHERE s.attrelid = parent AND s.attname = 'ctid')
        INTO is_ours, is_other, is_original
        FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
            LEFT JOIN pg_attrdef AS d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum),
            LATERAL (SELECT CASE WHEN d.oid IS NULL THEN 'pg_type'::regclass ELSE 'pg_attrdef'::regclass END, coalesce(d.oid, y.oid))
                AS f (class, oid),
            (SELECT coalesce(array_agg(oid) FILTER (WHERE proname = 'snowflake_next' AND pronargs = 0), '{}'), coalesce(array_agg(oid), '{}')
                FROM pg_proc WHERE starts_with(proname, 'snowflake_')
                AND proowner = (SELECT nspowner FROM pg_namespace WHERE nspname = '_snowflake')) AS next (functions, ours)
        WHERE a.attrelid = parent AND a.attname = col;
    is_other := is_other AND NOT is_ours;
    reason := CASE
        WHEN is_other THEN format('the default of column "%s" is not snowflake_next(), so its keys may come from elsewhere', col)
        WHEN is_named AND is_ours THEN format('the default of column "%s" makes IDs of the layout of the database', col)
    END;
    is_ours := is_ours AND reason IS NULL;
    is_other := is_other AND NOT is_named;
END $$;

-- From which key on those of a partition, or of the default partition, are known to be IDs of a layout; or why that is known of none.
CREATE FUNCTION _snowflake.known(parent regclass, tbl regclass, col name, l bigint[], OUT "from" bigint, OUT reason text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    s CONSTANT record := _snowflake.source(parent, col, l);
    mark CONSTANT record := _snowflake.mark_of(tbl);
    since CONSTANT bigint := pg_sequence_last_value('_snowflake.since');
    p record;
    made record;
    follower record;
    part regclass;
    is_restored boolean;
BEGIN
    reason := s.reason;
    IF reason IS NOT NULL THEN
        RETURN;
    ELSIF mark.layout = _snowflake.notation(l) THEN
        "from" := mark."from";
        RETURN;
    ELSIF mark.layout IS NOT NULL THEN
        reason := format('its keys are IDs of the layout "%s"', mark.layout);
        RETURN;
    END IF;
    reason := 'nothing says that its keys are snowflake IDs: see snowflake_declare_keys()';
    SELECT i.xmin = a.xmin AS here, a.xmin = t.xmin AS with_table, a.xmin AS maker INTO made
        FROM pg_inherits AS i JOIN pg_attribute AS a ON a.attrelid = inhrelid AND a.attname = 'ctid', pg_attribute AS t
        WHERE inhrelid = tbl AND inhparent = parent AND t.attrelid = parent AND t.attname = 'ctid';
    IF (s.is_ours AND s.is_original AND made.here) IS NOT TRUE THEN
        RETURN;
    ELSIF made.with_table THEN
        -- A restore attaches partitions; or it does all in one transaction, with their rows.
        FOR part IN SELECT f FROM _snowflake.family_of(tbl) AS f JOIN pg_class AS c ON c.oid = f WHERE c.relkind = 'r' LOOP
            IF row_security_active(part) THEN
                RETURN;
            END IF;
            BEGIN
                EXECUTE format('SELECT EXISTS (SELECT FROM ONLY %s WHERE xmin = $1)', _snowflake.held(part, 'ACCESS SHARE'))
                    INTO is_restored USING made.maker;
                RAISE SQLSTATE 'SNOWF';
            EXCEPTION
                -- With the lock, as in lowest_key().
                WHEN SQLSTATE 'SNOWF' THEN
                    IF is_restored THEN
                        RETURN;
                    END IF;
            END;
        END LOOP;
    END IF;
    SELECT * INTO p FROM _snowflake.partitions_of(parent) AS e WHERE e.tbl = known.tbl;
    IF since IS NOT NULL THEN
        "from" := greatest(_snowflake.lowest(timestamptz 'epoch' + since * interval '1 ms', l), CASE WHEN p.lower > '-Infinity' THEN p.lower::bigint END);
    ELSIF p.lower > '-Infinity' THEN
        -- The database made IDs before that was on record: so where partitions were made as time went by, by a job.
        SELECT a.xmin <> made.maker AS later INTO follower FROM _snowflake.partitions_of(parent) AS e JOIN pg_attribute AS a
            ON a.attrelid = e.tbl AND a.attname = 'ctid' WHERE e.lower >= p.upper ORDER BY e.lower LIMIT 1;
        IF follower.later AND _snowflake.is_id(p.lower::bigint, l) AND p.relname IN (
                SELECT c.relname || to_char(timezone('UTC', _snowflake.time_of(p.lower::bigint, l)), form)
                FROM pg_class AS c, unnest('{_YYYYMMDD,_YYYYMMDD_HH24MISS}'::text[]) AS form WHERE c.oid = parent) THEN
            "from" := p.lower::bigint;
        END IF;
    END IF;
    IF "from" IS NOT NULL THEN
        reason := NULL;
    END IF;
END $$;

-- What marks a job sets, or removes, of partitions that were made without it and may get IDs.
CREATE FUNCTION _snowflake.to_mark(parent regclass, col name, present bigint, l bigint[]) RETURNS TABLE (tbl regclass, "from" bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    s CONSTANT record := _snowflake.source(parent, col, l);
    p record;
    known record;
BEGIN
    IF NOT s.is_ours AND NOT s.is_other THEN
        RETURN;
    END IF;
    FOR p IN SELECT e.* FROM _snowflake.parts_of(parent) AS e JOIN pg_class AS c ON c.oid = e.tbl
        WHERE pg_get_userbyid(c.relowner) = current_user
    LOOP
        tbl := p.tbl;
        "from" := NULL;
        IF s.is_other THEN
            -- What comes now is of another generator.
            IF p.upper > present AND (SELECT m.layout FROM _snowflake.mark_of(p.tbl) AS m) IS NOT NULL THEN
                RETURN NEXT;
            END IF;
        ELSIF (SELECT m.layout FROM _snowflake.mark_of(p.tbl) AS m) IS NULL THEN
            known := _snowflake.known(parent, p.tbl, col, l);
            "from" := coalesce(known."from", CASE WHEN p.upper > present THEN CASE
                WHEN p.lower > '-Infinity' AND NOT row_security_active(p.tbl) AND _snowflake.lowest_key(p.tbl, col,
                    (-9223372036854775808)::bigint, 9223372036854775807) IS NULL THEN p.lower::bigint
                ELSE present END END);
            IF "from" IS NOT NULL THEN
                RETURN NEXT;
            END IF;
        END IF;
    END LOOP;
END $$;

-- After a column was given its IDs, marks the partitions that may get keys from the first on; after it gets other keys, takes their marks away.
-- Partitions by another column stay as they are.
CREATE FUNCTION _snowflake.mark_open(parent regclass, col name, first bigint, is_ours boolean, l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    p record;
BEGIN
    FOR p IN SELECT e.tbl, e.lower FROM _snowflake.parts_of(parent) AS e WHERE e.upper > first LOOP
        CONTINUE WHEN NOT EXISTS (SELECT FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
            WHERE partrelid = parent AND partnatts = 1 AND partstrat = 'r' AND attname = col);
        IF is_ours THEN
            PERFORM _snowflake.set_mark(p.tbl, greatest(first, CASE WHEN p.lower > '-Infinity' THEN p.lower::bigint END), l);
        ELSIF (SELECT m.layout FROM _snowflake.mark_of(p.tbl) AS m) IS NOT NULL THEN
            PERFORM _snowflake.set_mark(p.tbl, NULL, l);
        END IF;
    END LOOP;
END $$;

-- The first ID of the present tick.
CREATE FUNCTION _snowflake.present(l bigint[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN greatest((_snowflake.micros(clock_timestamp()) - l[2]) / l[1], 0) << l[3]::integer;
END $$;

-- How many partitions one call may lock: no more than three quarters of the server's locks are for.
CREATE FUNCTION _snowflake.most(parent regclass) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN greatest(current_setting('max_locks_per_transaction')::bigint * (current_setting('max_connections')::bigint
        + current_setting('max_prepared_transactions')::bigint) / 4 * 3 / (3 + (SELECT count(*) FROM pg_index WHERE indrelid = parent)), 1);
END $$;

CREATE FUNCTION _snowflake.declare_keys(parent regclass, since timestamptz, l bigint[]) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    t record;
    col name;
    first CONSTANT bigint := CASE WHEN since IS NULL THEN _snowflake.lowest(_snowflake.instant(l[2] + 3600000000, l), l)
        WHEN since = '-infinity' THEN 0 WHEN since < 'infinity' THEN _snowflake.lowest(since, l) END;
    s record;
    p record;
    number bigint := 0;
    later bigint := 0;
BEGIN
    IF parent IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'parent must not be NULL', HINT = 'For example: SELECT snowflake_declare_keys(''orders'');';
    END IF;
    t := _snowflake.own_table(parent, 'snowflake_declare_keys()');
    col := _snowflake.range_key(parent);
    s := _snowflake.source(parent, col, l);
    IF s.reason IS NOT NULL AND first IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('keys of table %s cannot be declared to be snowflake IDs', t.quoted),
            DETAIL = format('That is because %s.', s.reason),
            HINT = 'First give the column its IDs by snowflake_adopt(); for IDs of another layout, which applications insert, name that by layout.';
    END IF;
    FOR p IN SELECT e.tbl, k."from" FROM _snowflake.parts_of(parent) AS e, _snowflake.mark_of(e.tbl) AS m,
            LATERAL (SELECT greatest(CASE WHEN e.lower > '-Infinity' THEN e.lower::bigint END, first) AS "from") AS k
        WHERE CASE WHEN first IS NULL THEN m.layout IS NOT NULL
            ELSE e.upper > first AND (m."from", m.layout) IS DISTINCT FROM (k."from", _snowflake.notation(l)) END
        ORDER BY e.upper, e.lower DESC
    LOOP
        IF number = _snowflake.most(parent) THEN
            later := later + 1;
            CONTINUE;
        END IF;
        PERFORM _snowflake.set_mark(p.tbl, CASE WHEN first IS NOT NULL THEN p."from" END, l);
        number := number + 1;
        RETURN NEXT p.tbl;
    END LOOP;
    IF later > 0 THEN
        RAISE NOTICE USING MESSAGE = format('%s more partitions are left to the next calls', later),
            DETAIL = format('One call can lock %s.', number), HINT = 'Call it again.';
    END IF;
END $$;

-- Ends the call if a new partition cannot have its name.
CREATE FUNCTION _snowflake.check_name(t record, name text, lower bigint, upper bigint, l bigint[]) RETURNS void
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

CREATE FUNCTION _snowflake.check_may_create(t record) RETURNS void
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

-- Which of new partitions cannot be made, as rows of the default partition are in the way whose keys are not known to be IDs, as those below
-- `known` are not. Ends the call if others are in the way. It is locked, if that is asked for. Where row security hides its rows
-- from their owner, PostgreSQL still looks at all of them before it makes a partition, and ends the call.
CREATE FUNCTION _snowflake.check_default(
    parent regclass, t record, col name, names text[], lower bigint[], upper bigint[], l bigint[], locks boolean, known bigint
) RETURNS integer[]
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    d record;
    lowest bigint;
    blocked integer[] := '{}';
BEGIN
    SELECT c.oid::regclass AS tbl, c.relname, format('%I.%I', n.nspname, c.relname) AS quoted INTO d
        FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE inhparent = parent AND pg_get_expr(c.relpartbound, 0) = 'DEFAULT';
    IF NOT FOUND THEN
        RETURN blocked;
    ELSIF locks THEN
        PERFORM _snowflake.lock(d.tbl, d.quoted, parent);
    END IF;
    -- Then only CREATE TABLE sees the rows.
    IF EXISTS (SELECT FROM _snowflake.family_of(d.tbl) AS f WHERE row_security_active(f)) THEN
        RETURN blocked;
    END IF;
    FOR i IN 1..cardinality(names) LOOP
        lowest := _snowflake.lowest_key(d.tbl, col, lower[i], upper[i]);
        CONTINUE WHEN lowest IS NULL;
        IF lowest < known THEN
            blocked := blocked || i;
            CONTINUE;
        END IF;
        RAISE check_violation USING
            MESSAGE = format('default partition "%s" has rows of a partition that is to be made', d.relname),
            DETAIL = format('The first has the ID %s. It belongs to "%s", of IDs %s.', lowest, names[i],
                _snowflake.range(lower[i]::text, upper[i]::text, l)),
            HINT = format('This makes the partitions of such rows, and moves the rows there: CALL snowflake_partition_default_rows(%L, '
                'every => ...); then make this call again.', t.quoted);
    END LOOP;
    RETURN blocked;
END $$;

-- The statement that makes a partition.
CREATE FUNCTION _snowflake.partition_statement(t record, name text, lower bigint, upper bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', t.nspname, name, t.quoted, lower, upper);
END $$;

-- Makes partitions of a table that is locked.
CREATE FUNCTION _snowflake.make_partitions(
    parent regclass, t record, col name, names text[], lower bigint[], upper bigint[], l bigint[]
) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made regclass;
    statement text;
    origin CONSTANT record := _snowflake.source(parent, col, l);
    present CONSTANT bigint := _snowflake.present(l);
    -- Where keys are given, as those of the last partition are known.
    is_known CONSTANT boolean := origin.is_ours OR origin.is_named OR (SELECT m.layout FROM _snowflake.partitions_of(parent) AS e,
        _snowflake.mark_of(e.tbl) AS m WHERE e.lower < present ORDER BY e.lower DESC LIMIT 1) = _snowflake.notation(l);
BEGIN
    FOR i IN 1..cardinality(names) LOOP
        EXECUTE _snowflake.partition_statement(t, names[i], lower[i], upper[i]);
        made := format('%I.%I', t.nspname, names[i])::regclass;
        FOR statement IN SELECT s FROM _snowflake.privileges(parent, made) AS s LOOP
            EXECUTE statement;
        END LOOP;
        IF origin.reason IS NULL AND is_known AND (origin.is_named OR upper[i] > present) THEN
            PERFORM _snowflake.set_mark(made, lower[i], l);
        END IF;
        RETURN NEXT made;
    END LOOP;
END $$;

CREATE FUNCTION _snowflake.create_partitions(
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
            regexp_match(pg_get_expr(c.relpartbound, 0), 'FROM [(]''?([0-9]+)''?[)] TO [(]''?([0-9]+)''?[)]') AS b
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
    PERFORM _snowflake.check_may_create(t),
        _snowflake.check_default(parent, t, col, (SELECT array_agg(names[i] ORDER BY i) FROM unnest(missing) AS i),
            (SELECT array_agg(starts[i] ORDER BY i) FROM unnest(missing) AS i),
            (SELECT array_agg(starts[i + 1] ORDER BY i) FROM unnest(missing) AS i), l, true, NULL);
    RETURN QUERY SELECT _snowflake.make_partitions(parent, t, col, (SELECT array_agg(names[i] ORDER BY i) FROM unnest(missing) AS i),
        (SELECT array_agg(starts[i] ORDER BY i) FROM unnest(missing) AS i), (SELECT array_agg(starts[i + 1] ORDER BY i) FROM unnest(missing) AS i), l);
END $$;
