-- What is required, checked before the first ID is made: core/src/capacity.rs and src/sql/checks in PL/pgSQL, as far as it can be seen from
-- inside a database.

-- A key column of a table, with what is to be known of it; or the error that says why there is none.
CREATE FUNCTION _snowflake.key_of(tbl regclass, col name) RETURNS record
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
CREATE FUNCTION _snowflake.next_function() RETURNS regprocedure
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT p.oid::regprocedure FROM pg_proc AS p WHERE p.proname = 'snowflake_next' AND p.pronargs = 0
        AND p.proowner = (SELECT nspowner FROM pg_namespace WHERE nspname = '_snowflake') ORDER BY p.oid LIMIT 1
    $$;

-- The lowest and the highest value of a column of the caller's own tables. Whoever reads a table runs code of its owner, as of indexes.
CREATE FUNCTION _snowflake.values_of(k record, OUT lowest bigint, OUT highest bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET row_security = off
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
    PERFORM _snowflake.held(t.oid, 'ACCESS SHARE') FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f WHERE t.relkind IN ('r', 'p');
    EXECUTE format('SELECT min(%1$I)::bigint, max(%1$I)::bigint FROM %2$s', k.attname, _snowflake.held(k.tbl, 'ACCESS SHARE'))
        INTO lowest, highest;
END $$;

-- The datacenter and the worker of this database as one number; NULL where it has none.
CREATE FUNCTION _snowflake.worker_id() RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    worker CONSTANT bigint := pg_sequence_last_value('_snowflake.worker');
BEGIN
    RETURN CASE WHEN worker >> 31 = _snowflake.home() THEN worker & 2147483647 END;
END $$;

CREATE FUNCTION _snowflake.preflight(
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
    partitions record;
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

    subject := 'replication';
    FOR verdict, finding, advice IN SELECT said.verdict, said.finding, said.advice
        FROM _snowflake.replicated(_snowflake.next_function()) AS said
    LOOP
        RETURN NEXT;
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

    SELECT count(*), count(DISTINCT partrelid) AS tables, min(partrelid::regclass::text) INTO partitions
        FROM pg_partitioned_table JOIN pg_attrdef AS d ON (adrelid, adnum) = (partrelid, partattrs[0])
            JOIN pg_depend ON classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_proc'::regclass
                AND refobjid = _snowflake.next_function()::oid
            JOIN pg_inherits ON inhparent = partrelid
        WHERE partstrat = 'r' AND partnatts = 1 AND NOT EXISTS (SELECT FROM _snowflake.mark_of(inhrelid) AS m WHERE m.layout IS NOT NULL);
    IF partitions.count > 0 THEN
        subject := 'partitions';
        verdict := 'warning';
        finding := format('nothing says of %s partition%s of %s%s that their keys are snowflake IDs: where they have rows, they do not '
            'expire, and the disk fills up', partitions.count, CASE WHEN partitions.count > 1 THEN 's' END, partitions.min, CASE WHEN partitions.tables > 1
            THEN format(' and %s other tables', partitions.tables - 1) ELSE '' END);
        advice := 'Let the job run once, which knows some of them. For the others, their owner calls snowflake_declare_keys(), once for each table.';
        RETURN NEXT;
    END IF;
END $$;

-- A layout with another epoch, or why there is none.
CREATE FUNCTION _snowflake.with_epoch(l bigint[], epoch bigint, OUT layout bigint[], OUT problem text)
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
CREATE FUNCTION _snowflake.writers(tbl regclass) RETURNS SETOF oid
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
CREATE FUNCTION _snowflake.shut_out(tbl regclass, quoted text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT CASE WHEN count(*) > 0 THEN format('%s may insert rows of %s, and may not execute snowflake_next()',
        string_agg(r.name, ', ' ORDER BY r.name), quoted) END
    FROM _snowflake.writers(tbl) AS writer,
        LATERAL (SELECT CASE writer WHEN 0 THEN 'PUBLIC' ELSE format('role %I', pg_get_userbyid(writer)) END AS name) AS r
    WHERE NOT CASE writer WHEN 0 THEN has_function_privilege('public', _snowflake.next_function(), 'EXECUTE')
        ELSE has_function_privilege(writer, _snowflake.next_function(), 'EXECUTE') END
    $$;
