CREATE FUNCTION snowflake_configure(worker_id integer, datacenter_id integer DEFAULT NULL, layout text DEFAULT NULL) RETURNS text
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
                AND p.proowner = (SELECT proowner FROM pg_proc WHERE oid = d.refobjid)
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
CREATE FUNCTION snowflake_status() RETURNS TABLE (
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
