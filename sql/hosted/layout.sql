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
CREATE FUNCTION _snowflake.make_layout(
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
CREATE FUNCTION _snowflake.recorded_layout(form bigint, epoch bigint) RETURNS bigint[]
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
CREATE FUNCTION _snowflake.record(OUT form bigint, OUT epoch bigint)
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
CREATE FUNCTION _snowflake.layout() RETURNS bigint[]
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
CREATE FUNCTION _snowflake.instant(micros bigint, l bigint[]) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 3
    RETURN CASE WHEN l[13] = 1 THEN pg_catalog.to_timestamp(micros / 1000000::double precision)
        ELSE pg_catalog.timezone('0'::interval, timestamp '1970-01-01' + pg_catalog.make_interval(
            hours => (micros / 3600000000)::integer, secs => (micros % 3600000000) / 1000000::double precision)) END;

CREATE FUNCTION _snowflake.micros(at timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN (extract(epoch FROM at - timestamptz '1970-01-01 00:00:00+00') * 1000000)::bigint;

-- The same for an instant of the layout. A double has the microseconds of 2^32 seconds.
CREATE FUNCTION _snowflake.micros(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN l[13] = 1
        THEN (pg_catalog.date_part('epoch', at - timestamptz '1970-01-01 00:00:00+00') * 1000000)::bigint
        ELSE _snowflake.micros(at) END;

-- As messages write an instant of a layout.
CREATE FUNCTION _snowflake.written(micros bigint) RETURNS text
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
CREATE FUNCTION _snowflake.read_epoch("text" text) RETURNS bigint
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
CREATE FUNCTION _snowflake.notation(l bigint[]) RETURNS text
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
CREATE FUNCTION _snowflake.shortened("text" text) RETURNS text
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
CREATE FUNCTION _snowflake.layout(layout text) RETURNS bigint[]
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
CREATE FUNCTION _snowflake.not_an_id(id bigint, l bigint[]) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 1 SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE numeric_value_out_of_range USING MESSAGE = format('%s is not a snowflake ID', id),
        DETAIL = format('IDs of the layout "%s" range from 0 to %s.', _snowflake.notation(l), l[5]),
        HINT = 'Leave such numbers out, for example with WHERE id >= 0.';
END $$;

CREATE FUNCTION _snowflake.is_id(id bigint, l bigint[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE WHEN l[5] = 9223372036854775807 THEN id >= 0 ELSE id >= 0 AND id <= l[5] END;

CREATE FUNCTION _snowflake.time_of(id bigint, l bigint[]) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE
        WHEN NOT _snowflake.is_id(id, l) THEN pg_catalog.to_timestamp(_snowflake.not_an_id(id, l))
        WHEN l[16] > 0 THEN pg_catalog.to_timestamp(((id >> l[3]::integer) + l[2] / l[1]) / l[16]::double precision)
        ELSE _snowflake.instant((id >> l[3]::integer) * l[1] + l[2], l) END;

-- The datacenter (field 6), the worker (8), the sequence (10).
CREATE FUNCTION _snowflake.part_of(id bigint, field integer, l bigint[]) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE
        WHEN NOT _snowflake.is_id(id, l) THEN _snowflake.not_an_id(id, l)::integer
        WHEN l[field + 1] = 0 THEN NULL
        WHEN l[field] = 0 THEN (id & l[field + 1])::integer
        ELSE (id >> l[field]::integer & l[field + 1])::integer END;

-- Ends the call for a time that no ID has.
CREATE FUNCTION _snowflake.outside(at timestamptz, l bigint[], hint text DEFAULT '') RETURNS void
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

CREATE FUNCTION _snowflake.times(l bigint[]) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format('IDs of the layout "%s" have times from %s to before %s.', _snowflake.notation(l),
        _snowflake.instant(l[2], l), _snowflake.instant(l[2] + (l[4] + 1) * l[1], l));
END $$;

-- The datacenter and the worker at their places in an ID, which are checked.
CREATE FUNCTION _snowflake.place_worker(datacenter integer, worker integer, l bigint[]) RETURNS bigint
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
CREATE FUNCTION _snowflake.encode(at timestamptz, worker integer, sequence integer, datacenter integer, l bigint[]) RETURNS bigint
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

CREATE FUNCTION _snowflake.lowest(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN at <= _snowflake.instant(l[2], l) THEN 0
        WHEN at > _snowflake.instant(l[2] + l[4] * l[1], l) THEN 9223372036854775807
        ELSE (_snowflake.micros(at, l) - l[2] + l[1] - 1) / l[1] << l[3]::integer END;

CREATE FUNCTION _snowflake.highest(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN at < _snowflake.instant(l[2], l) THEN -1
        WHEN at >= _snowflake.instant(l[2] + (l[4] + 1) * l[1], l) THEN l[5]
        ELSE (_snowflake.micros(at, l) - l[2]) / l[1] << l[3]::integer | (1::bigint << l[3]::integer) - 1 END;

CREATE FUNCTION _snowflake.highest_before(at timestamptz, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN CASE WHEN at <= _snowflake.instant(l[2], l) THEN -1
        WHEN at > _snowflake.instant(l[2] + (l[4] + 1) * l[1], l) THEN l[5]
        ELSE (_snowflake.micros(at, l) - l[2] - 1) / l[1] << l[3]::integer | (1::bigint << l[3]::integer) - 1 END;
