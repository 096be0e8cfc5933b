-- Partitions of the time to come, and those that are older than rows are kept: core/src/pieces/upkeep.rs in PL/pgSQL.
--
-- A grid is a start, in microseconds since 1970, and a step of months, days and microseconds. Piece k begins k steps after the start.

-- The first ID of piece k; NULL where the layout has no such time.
CREATE FUNCTION _snowflake.bound(start bigint, months bigint, days bigint, micros bigint, k bigint, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    at CONSTANT numeric := _snowflake.after(start, months, days, micros, k);
BEGIN
    RETURN CASE WHEN at <= l[2] THEN 0 WHEN at <= l[2] + l[4] * l[1] THEN ceil((at - l[2]) / l[1])::bigint << l[3]::integer END;
END $$;

-- Which piece an instant lies in that is not before the start.
CREATE FUNCTION _snowflake.piece_at(start bigint, months bigint, days bigint, micros bigint, at numeric) RETURNS bigint
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
CREATE FUNCTION _snowflake.has_piece(
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
CREATE FUNCTION _snowflake.whole_time(bound numeric, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF bound BETWEEN 0 AND l[5] AND bound::bigint & ((1::bigint << l[3]::integer) - 1) = 0 THEN
        RETURN l[2] + (bound::bigint >> l[3]::integer) * l[1];
    END IF;
    RETURN NULL;
END $$;

-- An instant of a message.
CREATE FUNCTION _snowflake.instant_of(micros numeric) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN CASE WHEN micros > 9000000000000000000 THEN 'infinity' ELSE timezone('0'::interval, timestamp '1970-01-01' + make_interval(
        hours => div(micros, 3600000000)::integer, secs => mod(micros, 3600000000)::double precision / 1000000)) END;
END $$;

-- What stands in the way of letting a partition go, and whether somebody has begun to detach it. What belongs to the partition goes with it,
-- such as its type; what others have of these keeps it, as DROP would fail, and with it all that the call does.
CREATE FUNCTION _snowflake.kept_by(tbl regclass, is_drop boolean, OUT reason text, OUT is_pending boolean)
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
CREATE FUNCTION _snowflake.old_partitions(
    parent regclass, col name, months bigint, days bigint, micros bigint, expired text, now bigint, l bigint[], locks boolean, most bigint
) RETURNS TABLE (relname name, quoted text, lower numeric, upper numeric, action text, statement text, note text,
    is_obstructed boolean, is_carried_out boolean)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    p record;
    at bigint;
    facts record;
    known record;
    first bigint;
    detach text;
    later numeric[] := '{}';
    later_names text[] := '{}';
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
        IF most = 0 THEN
            later := later || ARRAY[p.lower, p.upper];
            later_names := later_names || p.whole;
            CONTINUE;
        END IF;
        FOR pass IN 1..2 LOOP
            facts := _snowflake.kept_by(p.tbl, expired = 'drop');
            note := facts.reason;
            known := _snowflake.known(parent, p.tbl, col, l);
            first := coalesce(known."from", 9223372036854775807);
            IF note IS NULL AND p.lower < first THEN
                note := CASE
                    WHEN row_security_active(p.tbl) THEN
                        'row security hides its rows from its owner, so it may have keys that are no snowflake IDs'
                    WHEN _snowflake.lowest_key(p.tbl, col, (-9223372036854775808)::bigint, first) IS NOT NULL THEN coalesce(known.reason,
                        format('it has keys below %s, of which nothing says that they are snowflake IDs: see snowflake_declare_keys()', first))
                    WHEN current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
                        'it may have keys that are no snowflake IDs, and that only a READ COMMITTED transaction sees'
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
        most := most - is_carried_out::integer;
        RETURN NEXT;
    END LOOP;
    IF later <> '{}' THEN
        quoted := later_names[1];
        lower := later[1];
        upper := later[cardinality(later)];
        action := 'later';
        statement := NULL;
        note := format('%s more old partitions are left to the next calls: one call can lock so many', cardinality(later_names));
        is_obstructed := false;
        is_carried_out := false;
        RETURN NEXT;
    END IF;
END $$;

CREATE FUNCTION _snowflake.maintain_partitions(
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
    most bigint;
    locked boolean := false;
    blocked integer[] := '{}';
    endless name;
    old jsonb[];
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
                    WHERE inhparent = parent AND pg_get_expr(c.relpartbound, 0) = 'DEFAULT') THEN
                RAISE object_not_in_prerequisite_state USING MESSAGE = format('partitions of %s cannot be detached concurrently', t.quoted),
                    DETAIL = 'PostgreSQL does not do that for a table with a default partition.',
                    HINT = 'Use expired => ''detach'', with a lock_timeout.';
            END IF;
            EXIT WHEN dry_run OR pass = 2;
            -- Whether there is anything to do.
            EXIT WHEN names = '{}' AND NOT EXISTS (
                    SELECT FROM _snowflake.old_partitions(parent, col, months[3], days[3], micros[3], expired, now, l, false, 1) AS o
                    WHERE o.is_carried_out)
                AND NOT EXISTS (SELECT FROM _snowflake.to_mark(parent, col, present, l));
            -- As strong as the locks that the statements take, so that no other session is in between.
            PERFORM _snowflake.lock(parent, t.quoted, parent);
            locked := true;
        END LOOP;
        IF names <> '{}' THEN
            PERFORM _snowflake.check_may_create(t);
            blocked := _snowflake.check_default(parent, t, col, names, lower, upper, l, NOT dry_run, coalesce(
                (_snowflake.known(parent, _snowflake.default_of(parent), col, l))."from", 9223372036854775807));
            IF NOT dry_run AND cardinality(blocked) < cardinality(names) THEN
                PERFORM _snowflake.make_partitions(parent, t, col, array_agg(names[i] ORDER BY i), array_agg(lower[i] ORDER BY i),
                    array_agg(upper[i] ORDER BY i), l) FROM generate_subscripts(names, 1) AS i WHERE i <> ALL (blocked);
            END IF;
        END IF;
        most := greatest(_snowflake.most(parent) - cardinality(names), 0);
        IF NOT dry_run THEN
            FOR p IN SELECT * FROM _snowflake.to_mark(parent, col, present, l) LIMIT most LOOP
                PERFORM _snowflake.set_mark(p.tbl, p."from", l);
                most := most - 1;
            END LOOP;
            -- Our own keys of the past have their partitions by now. So whatever comes into the default partition with such a key is not ours.
            IF locked THEN
                FOR p IN SELECT d AS tbl, k."from" FROM _snowflake.default_of(parent) AS d, _snowflake.known(parent, d, col, l) AS k
                    WHERE d IS NOT NULL AND k."from" < present
                LOOP
                    IF NOT row_security_active(p.tbl) AND _snowflake.lowest_key(p.tbl, col, p."from", present) IS NULL THEN
                        PERFORM _snowflake.set_mark(p.tbl, present, l);
                    END IF;
                END LOOP;
            END IF;
        END IF;
        FOR i IN 1..cardinality(names) LOOP
            partition := format('%I.%I', t.nspname, names[i]);
            action := CASE WHEN i = ANY (blocked) THEN 'later' ELSE 'create' END;
            since := _snowflake.instant(l[2] + (lower[i] >> l[3]::integer) * l[1], l);
            until := _snowflake.instant(l[2] + (upper[i] >> l[3]::integer) * l[1], l);
            statement := CASE WHEN i <> ALL (blocked) THEN _snowflake.partition_statement(t, names[i], lower[i], upper[i]) END;
            note := CASE WHEN i = ANY (blocked) THEN 'the default partition has rows of it, and nothing says that their keys are snowflake '
                'IDs: see snowflake_declare_keys()' WHEN dry_run AND EXISTS (SELECT FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
                    WHERE inhparent = parent AND pg_get_expr(c.relpartbound, 0) = 'DEFAULT' AND row_security_active(c.oid))
                THEN 'it fails if the default partition has rows of it, which row security hides from their owner' END;
            RETURN NEXT;
        END LOOP;
        SELECT e.*, format('%I.%I', e.nspname, e.relname) AS quoted INTO p FROM _snowflake.partitions_of(parent) AS e
            WHERE e.upper = 'Infinity' AND e.lower < ceil((needed - l[2]) / l[1]) * (1::bigint << l[3]::integer);
        IF FOUND THEN
            endless := p.relname;
            partition := p.quoted;
            action := 'keep';
            since := CASE WHEN p.lower BETWEEN 0 AND l[5] THEN _snowflake.time_of(p.lower::bigint, l) END;
            until := NULL;
            statement := NULL;
            note := 'it has no upper bound: no partitions are made for the time in it, and its rows do not expire';
            RETURN NEXT;
        END IF;
        kept := '{}';
        kept_names := '{}';
        -- The partitions of tomorrow stay, whatever keeps those of the past.
        BEGIN
            old := ARRAY(SELECT to_jsonb(o) FROM _snowflake.old_partitions(parent, col, months[3], days[3], micros[3], expired, now, l,
                NOT dry_run, most) AS o);
            FOR p IN SELECT * FROM unnest(old) AS o WHERE NOT dry_run AND (o ->> 'is_carried_out')::boolean LOOP
                EXECUTE p.o ->> 'statement';
            END LOOP;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected OR out_of_memory THEN
                old := ARRAY(SELECT CASE WHEN o.is_carried_out THEN to_jsonb(o) || jsonb_build_object('action', 'keep', 'statement', NULL,
                        'is_carried_out', false, 'is_obstructed', true, 'note', 'the next call tries again: ' || SQLERRM) ELSE to_jsonb(o) END
                    FROM _snowflake.old_partitions(parent, col, months[3], days[3], micros[3], expired, now, l, false, most) AS o);
        END;
        FOR p IN SELECT o.* FROM unnest(old) AS j, jsonb_to_record(j) AS o (relname name, quoted text, lower numeric, upper numeric,
            action text, statement text, note text, is_obstructed boolean) LOOP
            partition := p.quoted;
            action := p.action;
            since := CASE WHEN p.lower BETWEEN 0 AND l[5] THEN _snowflake.time_of(p.lower::bigint, l) END;
            until := CASE WHEN p.upper BETWEEN 0 AND l[5] THEN _snowflake.time_of(p.upper::bigint, l) END;
            statement := p.statement;
            note := p.note;
            IF p.is_obstructed THEN
                kept := kept || p.note;
                kept_names := kept_names || p.relname;
            END IF;
            RETURN NEXT;
        END LOOP;
    EXCEPTION
        WHEN lock_not_available THEN
            RAISE lock_not_available USING MESSAGE = format('the lock of table "%s" or of a partition was not granted in time', t.relname),
                DETAIL = 'Another session holds it for longer than lock_timeout. Nothing was changed.',
                HINT = 'Call again later; pg_stat_activity and pg_blocking_pids() tell who holds it.';
    END;
    IF endless IS NOT NULL THEN
        RAISE WARNING USING MESSAGE = format('partition "%s" has no upper bound', endless),
            DETAIL = format('It is one of table %s: no partitions are made for the time in it, and its rows do not expire.', t.quoted),
            HINT = 'Detach it, and attach it again with an upper bound above its keys; or make it the default partition.';
    END IF;
    IF kept <> '{}' THEN
        RAISE WARNING USING MESSAGE = CASE cardinality(kept)
                WHEN 1 THEN format('partition "%s" is older than the retention, and stays', kept_names[1])
                ELSE format('partition "%s" and %s more are older than the retention, and stay', kept_names[1], cardinality(kept) - 1) END,
            DETAIL = format('Of table "%s", the first: %s.', t.relname, kept[1]),
            HINT = 'The rows with the action "keep" in the result say why each stays.';
    END IF;
END $$;
