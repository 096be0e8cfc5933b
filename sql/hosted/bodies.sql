-- What takes the place of the library's functions: after the name of a symbol, what stands after the result in CREATE FUNCTION. The
-- declarations and comments are those of sql/parts. A function that is not here is left out.

--- snowflake_timestamp
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.time_of(id, _snowflake.layout())
--- snowflake_timestamp_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.time_of(id, _snowflake.layout(layout))
--- snowflake_datacenter
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 6, _snowflake.layout())
--- snowflake_datacenter_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 6, _snowflake.layout(layout))
--- snowflake_worker
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 8, _snowflake.layout())
--- snowflake_worker_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 8, _snowflake.layout(layout))
--- snowflake_sequence
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 10, _snowflake.layout())
--- snowflake_sequence_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.part_of(id, 10, _snowflake.layout(layout))
--- snowflake_encode
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN CASE WHEN sequence IS NOT NULL THEN
        _snowflake.encode("timestamp", worker_id, sequence, datacenter_id, _snowflake.layout()) END
--- snowflake_encode_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN _snowflake.encode("timestamp", worker_id, sequence, datacenter_id, _snowflake.layout(layout))
--- snowflake_min_id
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.lowest(at, _snowflake.layout())
--- snowflake_min_id_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.lowest(at, _snowflake.layout(layout))
--- snowflake_max_id
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest(at, _snowflake.layout())
--- snowflake_max_id_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest(at, _snowflake.layout(layout))
--- snowflake_max_id_before
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest_before(at, _snowflake.layout())
--- snowflake_max_id_before_in
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 5
    RETURN _snowflake.highest_before(at, _snowflake.layout(layout))
--- snowflake_next
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
END $$
--- snowflake_next_many
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
END $$
--- snowflake_database_layout
    LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 10
    RETURN _snowflake.notation(_snowflake.layout())
--- snowflake_layouts
    LANGUAGE sql STABLE STRICT PARALLEL SAFE COST 100 ROWS 16
    BEGIN ATOMIC
        SELECT b.name, b.layout, l[1] * interval '1 microsecond', _snowflake.instant(l[2], l),
            _snowflake.instant(l[2] + l[4] * l[1], l), 1::bigint << l[15]::integer, (l[11] + 1) * 1000000 / l[1],
            l[9] > 0 AND l[11] > 0 AND pg_catalog.clock_timestamp() < _snowflake.instant(l[2] + (l[4] + 1) * l[1], l),
            l[5] < 9007199254740992, b.source
        FROM _snowflake.built_in() AS b, _snowflake.layout(b.layout) AS l;
    END
--- snowflake_to_text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN _snowflake.to_text(id, form)
--- snowflake_from_text
    LANGUAGE sql IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE COST 20
    RETURN _snowflake.from_text("text", form)
--- snowflake_create_partitions_in
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    BEGIN ATOMIC
        SELECT _snowflake.create_partitions(parent, every, since, until,
            CASE WHEN layout IS NULL THEN _snowflake.layout() ELSE _snowflake.layout(layout) END);
    END
--- snowflake_maintain_partitions_in
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 4
    BEGIN ATOMIC
        SELECT * FROM _snowflake.maintain_partitions(parent, every, ahead, retention, expired, dry_run, default_rows,
            CASE WHEN layout IS NULL THEN _snowflake.layout() ELSE _snowflake.layout(layout) END);
    END
--- snowflake_declare_keys
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 ROWS 12
    BEGIN ATOMIC
        SELECT _snowflake.declare_keys(parent, since, CASE WHEN layout IS NULL THEN _snowflake.layout() ELSE _snowflake.layout(layout) END);
    END
--- snowflake_known_from
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    l CONSTANT bigint[] := CASE WHEN layout IS NULL THEN _snowflake.layout() ELSE _snowflake.layout(layout) END;
    known CONSTANT record := _snowflake.known(parent, _snowflake.default_of(parent), _snowflake.range_key(parent), l);
BEGIN
    -- The first ID of a tick, so that it can be a bound.
    RETURN CASE WHEN known."from" BETWEEN 0 AND l[5] - (1::bigint << l[3]::integer)
        THEN (known."from" - 1 >> l[3]::integer) + 1 << l[3]::integer ELSE known."from" END;
END $$
--- snowflake_mark
    LANGUAGE plpgsql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 1000 SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM _snowflake.set_mark(partition, "from", CASE WHEN layout IS NULL THEN _snowflake.layout() ELSE _snowflake.layout(layout) END);
END $$
--- snowflake_hold
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE COST 100
    RETURN _snowflake.held(tbl, 'ACCESS EXCLUSIVE')
--- snowflake_lowest_key
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE COST 1000 SET search_path = pg_catalog, pg_temp SET row_security = off
    AS $$
DECLARE
    relation regclass;
    name text;
    lowest bigint;
    found_here bigint;
BEGIN
    FOR relation IN SELECT f FROM _snowflake.family_of(tbl) AS f JOIN pg_class AS c ON c.oid = f WHERE c.relkind = 'r' LOOP
        -- The lock ends with the subtransaction: who holds it and then wants a stronger one waits for another who does the same.
        BEGIN
            name := _snowflake.held(relation, 'ACCESS SHARE');
            EXECUTE format('SELECT %1$I::bigint FROM ONLY %2$s WHERE %1$I >= $1 AND %1$I < $2 ORDER BY %1$I LIMIT 1', col, name)
                INTO found_here USING since, until;
            RAISE SQLSTATE 'SNOWF';
        EXCEPTION
            WHEN SQLSTATE 'SNOWF' THEN
                lowest := least(lowest, found_here);
        END;
    END LOOP;
    RETURN lowest;
END $$
--- snowflake_count_keys
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 1 SET search_path = pg_catalog, pg_temp SET row_security = off
    AS $$
DECLARE
    relation regclass;
    name text;
    here record;
BEGIN
    inside := 0;
    outside := 0;
    FOR relation IN SELECT f FROM _snowflake.family_of(tbl) AS f JOIN pg_class AS c ON c.oid = f WHERE c.relkind = 'r' LOOP
        BEGIN
            name := _snowflake.held(relation, 'ACCESS SHARE');
            EXECUTE format('SELECT count(*) FILTER (WHERE %1$I::bigint >= $1 AND %1$I::bigint < $2) AS inside, count(*) AS rows FROM ONLY %2$s',
                col, name) INTO here USING since, until;
            RAISE SQLSTATE 'SNOWF';
        EXCEPTION
            WHEN SQLSTATE 'SNOWF' THEN
                inside := inside + here.inside;
                outside := outside + here.rows - here.inside;
        END;
    END LOOP;
    RETURN NEXT;
END $$
--- snowflake_preflight
    LANGUAGE sql STABLE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    BEGIN ATOMIC
        SELECT * FROM _snowflake.preflight(layout, epoch, servers, datacenters, leases, ids_per_second, years, javascript, oldest_row, keys, key_column);
    END
--- snowflake_adopt_plan
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    BEGIN ATOMIC
        SELECT * FROM _snowflake.adopt_plan(tbl, col, views);
    END
--- snowflake_adopt
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000 ROWS 1
    BEGIN ATOMIC
        SELECT * FROM _snowflake.adopt(tbl, col, views);
    END
--- snowflake_release_plan
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 10000 ROWS 10
    BEGIN ATOMIC
        SELECT * FROM _snowflake.release_plan(tbl, col, start, identity);
    END
--- snowflake_release
    LANGUAGE sql VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE COST 100000
    RETURN _snowflake.release(tbl, col, start, identity)
