-- Columns of numbers or text that get their values from snowflake_next(), by a default of their own or of their domain, with those of
-- partitions and heirs. A partition has code of all tables above it, in indexes. Those of text and of foreign tables are not read.
CREATE FUNCTION _snowflake.id_columns() RETURNS TABLE (relation oid, tbl text, col name, is_own boolean, is_hidden boolean, is_read boolean)
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
CREATE FUNCTION _snowflake.highest_id(worker bigint, l bigint[], OUT id bigint, OUT tbl text, OUT others text, OUT hidden text, OUT unread text)
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
        c.tbl := _snowflake.held(c.relation, 'ACCESS SHARE');
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
CREATE FUNCTION _snowflake.is_set_back() RETURNS boolean
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
REVOKE ALL ON FUNCTION _snowflake.is_set_back() FROM PUBLIC;

-- Where the record was set back, waits until the rows can be seen of all transactions that were open: those that drew a number, and those
-- that write rows with IDs that were drawn before them. Sessions that wait for the lock of ticks may be among these, so this comes before
-- that lock is taken. Says whether the record was set back.
CREATE FUNCTION _snowflake.wait_for_rows() RETURNS boolean
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
REVOKE ALL ON FUNCTION _snowflake.wait_for_rows() FROM PUBLIC;

-- Ends the call if no IDs can be made in a layout, or were made in another one.
CREATE FUNCTION _snowflake.check_layout(wanted bigint[], l bigint[]) RETURNS void
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
--
-- The sequences of the layout are bounded by it, too, so that a dump of another layout cannot set them: PostgreSQL refuses its setval(). A
-- range has two numbers at least.
CREATE FUNCTION _snowflake.begin_with(l bigint[], is_new boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    touch text;
BEGIN
    IF NOT is_new AND (SELECT (seqstart, seqmin, seqmax) = (l[14], l[14], l[14] + 1) FROM pg_sequence
                WHERE seqrelid = '_snowflake.layout'::regclass)
            AND (SELECT (seqstart, seqmin, seqmax) = (l[2], l[2], l[2] + 1) FROM pg_sequence
                WHERE seqrelid = '_snowflake.epoch'::regclass) THEN
        RETURN;
    END IF;
    EXECUTE format('ALTER SEQUENCE _snowflake.layout MINVALUE %1$s MAXVALUE %2$s START %1$s', l[14], l[14] + 1);
    EXECUTE format('ALTER SEQUENCE _snowflake.epoch MINVALUE %1$s MAXVALUE %2$s START %1$s', l[2], l[2] + 1);
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
REVOKE ALL ON FUNCTION _snowflake.begin_with(bigint[], boolean) FROM PUBLIC;

CREATE FUNCTION snowflake_configure(worker_id integer, datacenter_id integer DEFAULT NULL, layout text DEFAULT NULL) RETURNS text
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
    is_first boolean;
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
    -- As long as there are no IDs, a layout can be replaced; where that was rolled back, the positions are those of another one.
    is_first := is_new OR pg_sequence_last_value('_snowflake.reservation') IS NULL
        AND coalesce(pg_sequence_last_value('_snowflake.end'), 0) = 0;
    base := CASE WHEN NOT is_first THEN pg_sequence_last_value('_snowflake.base') END;
    placed := _snowflake.home() << 31 | coalesce(datacenter_id, 0)::bigint * (wanted[9] + 1) | worker_id;
    number := coalesce(pg_sequence_last_value('_snowflake.number'), 0);
    lowest := coalesce(base, 0) + number + 1;
    -- The sequences may have been set back, and the clock be behind.
    mark := _snowflake.read_mark();
    is_set_back := mark.is_set_back OR NOT is_first AND lowest < mark.reached;
    IF is_set_back AND NOT is_waited_for THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'the record was set back just now',
            HINT = 'Call snowflake_configure() again.';
    END IF;
    floor := _snowflake.clock(wanted);
    -- What a dump of another layout has set is no position of this one.
    IF is_set_back AND ((lowest >> wanted[12]::integer) - (floor >> wanted[12]::integer)) * wanted[1]::numeric > 600000000 THEN
        lowest := 0;
    END IF;
    highest := _snowflake.highest_id(placed, wanted);
    lowest := greatest(lowest, (highest.id >> wanted[3]::integer << wanted[12]::integer) | (highest.id >> wanted[10]::integer & wanted[11]),
        CASE WHEN NOT is_first AND NOT mark.is_set_back THEN mark.reached END);
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
    -- What another layout has bounded that was chosen before, and without IDs. Where it is not bounded, setval() alone outlives a rollback.
    IF is_new AND (SELECT seqmax < 9223372036854775807 FROM pg_sequence WHERE seqrelid = '_snowflake.layout'::regclass) THEN
        ALTER SEQUENCE _snowflake.layout MINVALUE 0 NO MAXVALUE;
        ALTER SEQUENCE _snowflake.epoch MINVALUE 0 NO MAXVALUE;
    END IF;
    -- The rest of the tick is given up, so that IDs rise, even if the new worker is the lower number. No rollback undoes this, so all
    -- that can fail comes before it.
    PERFORM setval('_snowflake.layout', wanted[14]), setval('_snowflake.epoch', wanted[2]),
        _snowflake.go_on_from(((lowest >> wanted[12]::integer) + 1) << wanted[12]::integer, number),
        CASE WHEN base IS NULL THEN setval('_snowflake.end', 0) END, setval('_snowflake.worker', placed),
        CASE WHEN base IS NULL AND pg_sequence_last_value('_snowflake.since') IS NULL
            THEN setval('_snowflake.since', _snowflake.micros(clock_timestamp()) / 1000) END;
    PERFORM _snowflake.begin_with(wanted, is_new);
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
