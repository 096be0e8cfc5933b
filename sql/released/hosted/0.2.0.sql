-- pg_snowflake in SQL and PL/pgSQL, for servers where no library can be installed. Made by scripts/hosted; docs/hosted.md says how to
-- install it. It can be run again, and so is also the script of an upgrade.

-- In a database that has the extension, only the extension's own update may run this.
DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('pg_catalog.pg_class', '');
EXCEPTION
    WHEN object_not_in_prerequisite_state THEN
        NULL; -- CREATE EXTENSION or ALTER EXTENSION
    WHEN feature_not_supported THEN
        IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_snowflake') THEN
            RAISE duplicate_object USING MESSAGE = 'extension pg_snowflake is created in this database already',
                HINT = 'Update it by ALTER EXTENSION pg_snowflake UPDATE.';
        END IF;
END $$;

-- The record that a database keeps of its IDs: three sequences, used as variables that hold one number each.
--
-- Sequences, because pg_dump writes each as one setval(), which on restore overwrites the number that CREATE EXTENSION stored; and
-- because FOR ALL TABLES publications, TRUNCATE, and tools that map tables to models leave sequences alone.
-- Everybody may read them, so that the owner of a database can dump it. They belong to the role that creates the extension, so
-- that this role can restore a dump.
CREATE SCHEMA IF NOT EXISTS _snowflake;
COMMENT ON SCHEMA _snowflake IS
    'pg_snowflake''s internal record of the IDs of this database';
GRANT USAGE ON SCHEMA _snowflake TO PUBLIC;

CREATE SEQUENCE IF NOT EXISTS _snowflake.reservation AS bigint MINVALUE 0 START 0 NO CYCLE;
GRANT SELECT ON SEQUENCE _snowflake.reservation TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.reservation IS
    'internal: upper bound of the times of the snowflake IDs of this database, in milliseconds since 1970';

DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('_snowflake.reservation', '');
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- no extension
END $$;

CREATE SEQUENCE IF NOT EXISTS _snowflake.layout AS bigint MINVALUE 0 START 0 NO CYCLE;
GRANT SELECT ON SEQUENCE _snowflake.layout TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.layout IS
    'internal: fields and tick of the layout of this database, encoded as a number; see snowflake_database_layout()';

DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('_snowflake.layout', '');
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- no extension
END $$;

CREATE SEQUENCE IF NOT EXISTS _snowflake.epoch AS bigint MINVALUE 0 START 0 NO CYCLE;
GRANT SELECT ON SEQUENCE _snowflake.epoch TO PUBLIC;
COMMENT ON SEQUENCE _snowflake.epoch IS
    'internal: epoch of the layout of this database, in microseconds since 1970; see snowflake_database_layout()';

DO $$
BEGIN
    PERFORM pg_catalog.pg_extension_config_dump('_snowflake.epoch', '');
EXCEPTION WHEN feature_not_supported THEN
    NULL; -- no extension
END $$;


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

-- The instant that an epoch is written as; NULL where it is none.
CREATE OR REPLACE FUNCTION _snowflake.read_epoch("text" text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    read bigint;
BEGIN
    IF "text" !~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?Z$' OR "text" < '1970' COLLATE "C" THEN
        RETURN NULL;
    END IF;
    read := _snowflake.micros(timezone('0'::interval, left("text", -1)::timestamp));
    RETURN CASE WHEN _snowflake.written(read) = "text" THEN read END;
EXCEPTION
    WHEN data_exception THEN
        RETURN NULL;
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
            at := at + length(substring(substr(given, at) FROM '^[ \t\n\f\r]*'));
            word := substring(substr(given, at) FROM '^[^ \t\n\f\r]+');
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
                        micros := substring(value FROM '^\d+')::numeric
                            * CASE substring(value FROM '\D+') WHEN 's' THEN 1000000 WHEN 'ms' THEN 1000 ELSE 1 END;
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
-- To go on with the clock's tick, the base is raised, by one session at a time, under an advisory lock. The lock belongs to a
-- subtransaction that is always rolled back, which sequences ignore: it ends with the function, and with every error, cancel and
-- termination. The same session writes the reservation: positions from `end` on are not given out before it covers them.

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

-- Whether a position can be given out at once; NULL or false where next_slowly() must look at it.
CREATE OR REPLACE FUNCTION _snowflake.is_open(place bigint, floor bigint, "end" bigint, worker bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN place >= floor AND place < "end" AND place <= floor + _snowflake.burst(_snowflake.layout())
        AND worker >> 31 = _snowflake.home();

-- Ends the call with the errors of the library.

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
    number bigint;
    lowest bigint;
    floor bigint;
    first bigint;
    needed bigint;
    until bigint;
BEGIN
    BEGIN
        alone := pg_try_advisory_xact_lock(1936617062, 1);
        IF alone THEN
            reserved := coalesce(pg_sequence_last_value('_snowflake.reservation'), 0);
            "end" := coalesce(pg_sequence_last_value('_snowflake.end'), 0);
            covered := _snowflake.end_of(reserved, l);
            number := coalesce(pg_sequence_last_value('_snowflake.number'), 0);
            lowest := coalesce(pg_sequence_last_value('_snowflake.base'), 0) + number + 1;
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
            IF needed >= "end" OR covered <> "end" THEN
                until := greatest(reserved, ceil((l[2] + (needed >> bits) * l[1] + 1000000) / 1000::numeric)::bigint);
                -- In one statement, as a cancel takes effect between statements.
                PERFORM setval('_snowflake.reservation', until), setval('_snowflake.end', _snowflake.end_of(until, l));
            END IF;
            -- From the number that was read above, or the base might not rise.
            IF first > lowest THEN
                PERFORM setval('_snowflake.base', first - number - 1);
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
REVOKE ALL ON FUNCTION _snowflake.open(bigint, bigint[]) FROM PUBLIC;

-- An ID, in all but the ordinary case: that of a position which was drawn, or of another one.
CREATE OR REPLACE FUNCTION _snowflake.next_slowly(place bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    l bigint[];
    r record;
    base bigint;
    number bigint;
    floor bigint;
    worker bigint;
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
        worker := pg_sequence_last_value('_snowflake.worker');
        IF worker >> 31 IS DISTINCT FROM _snowflake.home() THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = 'this database has no worker ID',
                DETAIL = CASE WHEN worker > 0 THEN 'It is a copy of a database that has one. '
                    'Two databases with the same number would make the same IDs.' ELSE
                    'Every database that makes IDs needs a worker ID different from all others''.' END,
                HINT = 'As the owner of the extension''s functions: SELECT snowflake_configure(1);';
        END IF;
        IF place IS NULL THEN
            base := pg_sequence_last_value('_snowflake.base');
            number := nextval('_snowflake.number');
            place := _snowflake.place(base, number, pg_sequence_last_value('_snowflake.base'));
            CONTINUE WHEN place IS NULL;
        END IF;
        floor := _snowflake.clock(l);
        IF place >= floor AND place < pg_sequence_last_value('_snowflake.end') THEN
            IF place > floor + _snowflake.burst(l) THEN
                PERFORM _snowflake.wait_for(place, l);
            END IF;
            RETURN _snowflake.id(place, worker, l);
        END IF;
        IF place < floor THEN
            place := NULL;
        END IF;
        IF NOT _snowflake.open(coalesce(place, floor), l) THEN
            tries := tries + 1;
            IF tries > 2 THEN
                PERFORM pg_sleep(0.0005);
            END IF;
            since := coalesce(since, clock_timestamp());
            IF clock_timestamp() - since > interval '5 s' THEN
                RAISE lock_not_available USING MESSAGE = 'the lock that opens ticks is not released',
                    DETAIL = format('It is the advisory lock (1936617062, 1), of process %s.', (SELECT string_agg(pid::text, ', ')
                        FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (1936617062, 1, 2)
                            AND database = _snowflake.home() AND granted)),
                    HINT = 'Nothing here holds it for longer than a moment: end that session.';
            END IF;
        END IF;
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION _snowflake.next_slowly(bigint) FROM PUBLIC;

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

-- The statements that give a partition the privileges of its table.
CREATE OR REPLACE FUNCTION _snowflake.privileges(parent oid, partition oid) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH both_tables AS (
        SELECT p.oid::regclass::text AS name, p.relowner AS owner, t.relrowsecurity AS has_policies,
            t.relforcerowsecurity AS is_forced,
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
    ) statements ORDER BY step, place, grantee
$$;

-- Partitions by ID time. Unlike the library, this creates them as the caller, as CREATE TABLE does, and then gives them to the owner
-- of the table.

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
    RETURN format('from %s to before %s', "from" || CASE WHEN "from" ~ '^\d+$' THEN
        format(' (%s)', _snowflake.time_of("from"::bigint, l)) ELSE '' END, "to" || CASE WHEN "to" ~ '^\d+$' THEN
        format(' (%s)', _snowflake.time_of("to"::bigint, l)) ELSE '' END);
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
    key_type text;
    key_def text;
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
    lowest bigint;
    statement text;
    locked boolean := false;
    fallback regclass;
    made regclass;
BEGIN
    IF parent IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'parent must not be NULL',
            HINT = 'For example: SELECT snowflake_create_partitions(''orders'', ''1 month'', ''2026-01-01'', ''2027-01-01'');';
    END IF;
    SELECT c.relname, n.nspname, c.relnamespace, c.relowner, c.relpersistence, format('%s.%s', quote_ident(n.nspname),
            quote_ident(c.relname)) AS quoted
        INTO t FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = parent;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('there is no table with OID %s', parent::oid),
            HINT = 'Give the partitioned table, for example ''orders''.';
    ELSIF NOT pg_has_role(t.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', t.relname),
            HINT = 'Only its owner can give a table partitions.';
    ELSIF current_setting('transaction_read_only') = 'on' THEN
        RAISE read_only_sql_transaction USING
            MESSAGE = 'cannot execute snowflake_create_partitions() in a read-only transaction';
    END IF;
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
            MESSAGE = format('table "%s" is not partitioned by a range of a bigint column', t.relname),
            DETAIL = CASE WHEN key_def IS NULL THEN 'It is not partitioned.' WHEN key_type IS NULL
                THEN format('Its partition key is %s.', key_def)
                ELSE format('Its partition key is %s, of type %s.', key_def, key_type) END,
            HINT = 'Create the table with PARTITION BY RANGE (id), where id is the bigint column of its IDs.';
    END IF;
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
            SELECT * INTO p FROM (
                SELECT c.relname, CASE b[1] WHEN 'MINVALUE' THEN '-Infinity' ELSE b[1] END::numeric AS lower,
                    CASE b[2] WHEN 'MAXVALUE' THEN 'Infinity' ELSE b[2] END::numeric AS upper, b[1] AS "from", b[2] AS "to"
                FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid,
                    regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''?([^'')]*)''?\) TO \(''?([^'')]*)''?\)') AS b
                WHERE inhparent = parent AND b IS NOT NULL
            ) AS existing WHERE existing.lower < starts[i + 1] AND starts[i] < existing.upper ORDER BY existing.lower LIMIT 1;
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
            IF octet_length(names[middle]) > 63 THEN
                RAISE name_too_long USING
                    MESSAGE = format('the name of partition "%s" would be too long', names[middle]),
                    DETAIL = format('It would have %s bytes; PostgreSQL''s names have at most 63.', octet_length(names[middle])),
                    HINT = format('Give the table a shorter name, or create its partitions under names of your own: CREATE TABLE ... '
                        'PARTITION OF %s FOR VALUES FROM (%s) TO (%s);', t.quoted, starts[middle], starts[middle + 1]);
            ELSIF EXISTS (SELECT FROM pg_class WHERE relname = names[middle] AND relnamespace = t.relnamespace) THEN
                RAISE duplicate_table USING MESSAGE = format('relation "%s" already exists', names[middle]),
                    DETAIL = format('It has the name of a partition that is to be made, of IDs %s, and is not that partition.',
                        _snowflake.range(starts[middle]::text, starts[middle + 1]::text, l)),
                    HINT = format('Rename it; or, if it holds the rows of that time, make it the partition: ALTER TABLE %s '
                        'ATTACH PARTITION ... FOR VALUES FROM (%s) TO (%s);', t.quoted, starts[middle], starts[middle + 1]);
            END IF;
        END LOOP;
        EXIT WHEN locked OR missing = '{}';
        -- As strong as the lock of CREATE TABLE ... PARTITION OF. Two sessions that held a weaker one would deadlock.
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', t.quoted);
        locked := true;
    END LOOP;
    IF missing = '{}' THEN
        RETURN;
    ELSIF t.relpersistence <> 't' AND NOT has_schema_privilege(t.relowner, t.relnamespace, 'CREATE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('role %I may not create partitions in schema %I',
                pg_get_userbyid(t.relowner), t.nspname),
            DETAIL = format('Partitions belong to the owner of their table, %s, and are created as that role.', t.quoted),
            HINT = format('For example: GRANT CREATE ON SCHEMA %I TO %I;', t.nspname, pg_get_userbyid(t.relowner));
    END IF;
    SELECT c.oid::regclass INTO fallback FROM pg_inherits JOIN pg_class AS c ON c.oid = inhrelid
        WHERE inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT';
    IF FOUND THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', fallback);
        FOREACH middle IN ARRAY missing LOOP
            EXECUTE format('SELECT min(%1$I) FROM %2$s WHERE %1$I >= $1 AND %1$I < $2', col, fallback)
                INTO lowest USING starts[middle], starts[middle + 1];
            CONTINUE WHEN lowest IS NULL;
            SELECT c.relname, format('%I.%I', n.nspname, c.relname) AS quoted INTO p
                FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = fallback;
            RAISE check_violation USING
                MESSAGE = format('default partition "%s" has rows of a partition that is to be made', p.relname),
                DETAIL = format('The first has the ID %s. It belongs to "%s", of IDs %s.', lowest, names[middle],
                    _snowflake.range(starts[middle]::text, starts[middle + 1]::text, l)),
                HINT = format('Move such rows, for example in one transaction: ALTER TABLE %1$s DETACH PARTITION %2$s; then this '
                    'call again; then WITH moved AS (DELETE FROM %2$s WHERE %3$I >= %4$s AND %3$I < %5$s RETURNING *) INSERT INTO '
                    '%1$s SELECT * FROM moved; then ALTER TABLE %1$s ATTACH PARTITION %2$s DEFAULT;',
                    t.quoted, p.quoted, col, starts[1], starts[low + 1]);
        END LOOP;
    END IF;
    FOREACH middle IN ARRAY missing LOOP
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', t.nspname, names[middle], t.quoted,
            starts[middle], starts[middle + 1]);
        made := format('%I.%I', t.nspname, names[middle])::regclass;
        IF (SELECT relowner FROM pg_class WHERE oid = made) <> t.relowner THEN
            EXECUTE format('ALTER TABLE %s OWNER TO %I', made, pg_get_userbyid(t.relowner));
        END IF;
        FOR statement IN SELECT s FROM _snowflake.privileges(parent, made) AS s LOOP
            EXECUTE statement;
        END LOOP;
        RETURN NEXT made;
    END LOOP;
END $$;
CREATE OR REPLACE FUNCTION snowflake_database_layout() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 10
    RETURN _snowflake.notation(_snowflake.layout());
COMMENT ON FUNCTION snowflake_database_layout() IS
    'layout of the snowflake IDs of this database, in full notation';

-- Reading the parts of an ID, and composing an ID from parts. These functions work without preloading and on standbys.
--
-- The accessors are C functions. snowflake_decode() is an SQL function that calls them. It is not STRICT, so that the planner can
-- inline it: (snowflake_decode(id)).* costs as much as the accessors.
DO $$
BEGIN
CREATE TYPE snowflake_parts AS (
    "timestamp" timestamptz,
    datacenter_id integer,
    worker_id integer,
    sequence integer
);
EXCEPTION WHEN duplicate_object THEN
    NULL;
END $$;
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
    END;
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
    place bigint := _snowflake.place(base, number, pg_catalog.pg_sequence_last_value('_snowflake.base'));
    worker bigint := pg_catalog.pg_sequence_last_value('_snowflake.worker');
BEGIN
    IF _snowflake.is_open(place, floor, pg_catalog.pg_sequence_last_value('_snowflake.end'), worker) THEN
        RETURN _snowflake.id(place, worker);
    END IF;
    RETURN _snowflake.next_slowly(place);
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
        place := _snowflake.place(base, number, pg_catalog.pg_sequence_last_value('_snowflake.base'));
        worker := pg_catalog.pg_sequence_last_value('_snowflake.worker');
        IF _snowflake.is_open(place, floor, pg_catalog.pg_sequence_last_value('_snowflake.end'), worker) THEN
            RETURN NEXT _snowflake.id(place, worker);
        ELSE
            RETURN NEXT _snowflake.next_slowly(place);
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
CREATE OR REPLACE FUNCTION snowflake_create_partitions(
    parent regclass,
    every interval,
    since timestamptz,
    until timestamptz
) RETURNS SETOF regclass
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    BEGIN ATOMIC
        SELECT _snowflake.create_partitions(parent, every, since, until, _snowflake.layout());
    END;
COMMENT ON FUNCTION snowflake_create_partitions(regclass, interval, timestamptz, timestamptz) IS
    'creates the missing partitions, by ID time, of a table that is partitioned by range of snowflake IDs, and returns them';

-- For pg_partman 5, for a partition key of type text that holds IDs in decimal form.
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

CREATE OR REPLACE FUNCTION snowflake_configure(worker_id integer, datacenter_id integer DEFAULT NULL, layout text DEFAULT NULL) RETURNS text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 1000 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    r CONSTANT record := _snowflake.record();
    l CONSTANT bigint[] := _snowflake.recorded_layout(r.form, r.epoch);
    wanted CONSTANT bigint[] := coalesce(_snowflake.layout(layout), l, _snowflake.layout('default'));
    used CONSTANT boolean := pg_sequence_last_value('_snowflake.reservation') IS NOT NULL;
    touch text;
    number bigint;
    lowest bigint;
BEGIN
    IF wanted[9] = 0 OR wanted[11] = 0 THEN
        RAISE invalid_parameter_value USING MESSAGE = 'IDs cannot be made in this layout',
            DETAIL = format('Field %s is missing.', CASE WHEN wanted[11] = 0 THEN 'sequence' ELSE 'worker' END);
    ELSIF wanted[15] > 31 THEN
        RAISE feature_not_supported USING MESSAGE = 'IDs cannot be made in this layout here',
            DETAIL = 'Its datacenter and worker have more than 31 bits together.', HINT = 'The library makes them.';
    END IF;
    PERFORM _snowflake.place_worker(datacenter_id, worker_id, wanted);
    -- Until the transaction ends, no other session opens a tick.
    PERFORM pg_advisory_xact_lock(1936617062, 1);
    IF wanted IS DISTINCT FROM l THEN
        IF used AND l IS NOT NULL THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = 'IDs were made in this database already',
                DETAIL = 'In another layout, new IDs could repeat them, and they would be misread.',
                HINT = 'Leave out the layout, or give what snowflake_database_layout() says.';
        END IF;
        PERFORM setval('_snowflake.layout', wanted[14]), setval('_snowflake.epoch', wanted[2]);
        EXECUTE format('ALTER SEQUENCE _snowflake.layout START %s', wanted[14]);
        EXECUTE format('ALTER SEQUENCE _snowflake.epoch START %s', wanted[2]);
        -- Plans have the layout as a constant. Those of all sessions are made again when a function changes that is in them.
        FOR touch IN
            SELECT format('ALTER FUNCTION %s COST %s', p.oid::regprocedure, p.procost) FROM pg_depend AS d
                JOIN pg_proc AS p ON p.oid = d.objid WHERE d.classid = 'pg_proc'::regclass
                AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = '_snowflake.layout()'::regprocedure
        LOOP
            EXECUTE touch;
        END LOOP;
        DISCARD PLANS;
    END IF;
    IF wanted IS DISTINCT FROM l OR pg_sequence_last_value('_snowflake.base') IS NULL THEN
        PERFORM setval('_snowflake.base', 0), setval('_snowflake.end', 0);
    END IF;
    PERFORM setval('_snowflake.worker',
        _snowflake.home() << 31 | coalesce(datacenter_id, 0)::bigint * (wanted[9] + 1) | worker_id);
    -- The rest of the tick is given up, so that IDs rise, even if the new worker is the lower number.
    number := coalesce(pg_sequence_last_value('_snowflake.number'), 0);
    lowest := pg_sequence_last_value('_snowflake.base') + number + 1;
    PERFORM setval('_snowflake.base', (((lowest >> wanted[12]::integer) + 1) << wanted[12]::integer) - number - 1);
    RETURN _snowflake.notation(wanted);
END $$;
REVOKE ALL ON FUNCTION snowflake_configure(integer, integer, text) FROM PUBLIC;
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
REVOKE ALL ON FUNCTION snowflake_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_status() TO pg_monitor;
COMMENT ON FUNCTION snowflake_status() IS
    'state of the snowflake IDs of this database; does not make an ID';
