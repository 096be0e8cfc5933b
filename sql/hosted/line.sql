-- Making IDs. A position is tick << bits of the sequence | sequence, as in the library. Two sequences make it:
--
--   position = base + next number
--
-- nextval() draws the number. Whoever draws reads the base before and after, and discards the number where the two differ. So the base
-- was the same when the number was drawn; as numbers and bases only rise, a position that was drawn later is higher. There is nothing
-- to lock for that.
--
-- Whoever skips positions, as a dump says that they may be in use, or a worker ID is new, raises the base before the end or the worker is
-- set. Whoever draws reads these two before the base is read once more. So where the base has not risen, they are from before.
--
-- To go on with the clock's tick, the base is raised, by one session at a time, under an advisory lock. The lock belongs to a
-- subtransaction that is always rolled back, which sequences ignore: it ends with the function, and with every error, cancel and
-- termination. The same session writes the reservation: positions from `end` on are not given out before it covers them.
--
-- And it writes the mark, which no dump can write back: the first position of the tick, in multiples of 64, and what PostgreSQL keeps beside
-- a sequence's value, log_cnt. That is not 0 after setval() and nextval(), as here, and 0 after a setval() alone, as in a dump. A crash or a
-- failover leaves 0 as well, and the value 32 higher. What pg_upgrade writes back has the rest of another major version.

CREATE SEQUENCE _snowflake.number AS bigint START 1 NO CYCLE CACHE 1;
COMMENT ON SEQUENCE _snowflake.number IS
    'internal: numbers that are added to _snowflake.base, each drawn once';

CREATE SEQUENCE _snowflake.base AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.base IS
    'internal: what a drawn number is added to, so that the sum is a position in the clock''s tick; only rises';

CREATE SEQUENCE _snowflake."end" AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake."end" IS
    'internal: the first position that _snowflake.reservation does not cover; another reservation comes from elsewhere';

CREATE SEQUENCE _snowflake.worker AS bigint MINVALUE 0 START 0 NO CYCLE;
COMMENT ON SEQUENCE _snowflake.worker IS
    'internal: OID of the database << 31 | datacenter and worker; see snowflake_configure()';

CREATE SEQUENCE _snowflake.mark AS bigint MINVALUE -1 START 0 NO CYCLE CACHE 1;
COMMENT ON SEQUENCE _snowflake.mark IS
    'internal: a position that was reached, by which it is seen that a dump or setval() has set these sequences back';

-- The OID of this database. A copy by CREATE DATABASE has another one, and mostly the restore of a dump; pg_upgrade keeps it.
CREATE FUNCTION _snowflake.home() RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1 SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (SELECT oid::bigint FROM pg_database WHERE datname = current_database());
END $$;

-- The first position of the clock's tick.
CREATE FUNCTION _snowflake.clock(l bigint[]) RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN pg_catalog.floor(((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000)::bigint - l[2])
        / l[1]::double precision)::bigint << l[12]::integer;

CREATE FUNCTION _snowflake.clock() RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN _snowflake.clock(_snowflake.layout());

-- The first position that a reservation, in milliseconds since 1970, does not cover.
CREATE FUNCTION _snowflake.end_of(reservation bigint, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN greatest(0, least(l[4] + 1, pg_catalog.ceil((reservation * 1000 - l[2]) / l[1]::numeric)::bigint)) << l[12]::integer;

-- max_burst, 100 ms, as positions.
CREATE FUNCTION _snowflake.burst(l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 100000 / l[1] << l[12]::integer;

CREATE FUNCTION _snowflake.id(place bigint, worker bigint, l bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN (place >> l[12]::integer << l[3]::integer) | ((place & l[11]) << l[10]::integer)
        | ((worker & 2147483647) / (l[9] + 1) << l[6]::integer) | ((worker & l[9]) << l[8]::integer);

CREATE FUNCTION _snowflake.id(place bigint, worker bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN _snowflake.id(place, worker, _snowflake.layout());

-- The position of a number that was drawn while the base was known; NULL where it may have changed meanwhile.
CREATE FUNCTION _snowflake.place(before bigint, number bigint, after bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1
    RETURN CASE WHEN after = before THEN before + number END;

-- Whether a position can be given out at once: in the tick of the clock alone, as one ahead of it may be of a record that was set back. NULL or
-- false where next_slowly() must look at it.
CREATE FUNCTION _snowflake.is_open(place bigint, floor bigint, "end" bigint, worker bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 5
    RETURN place >= floor AND place < "end"
        AND place <= floor + least(_snowflake.burst(_snowflake.layout()), (_snowflake.layout())[11]) AND worker >> 31 = _snowflake.home();

-- The mark: a position that was reached, NULL where none is on record; whether somebody else wrote it; and whether it is as a crash leaves
-- it, or pg_upgrade: a dump of that would be taken for a crash when it is restored. Without the lock, these two may be neither of before nor
-- of after another session's writing: SELECT copies a sequence's row without one.
CREATE FUNCTION _snowflake.read_mark(OUT reached bigint, OUT is_set_back boolean, OUT is_bare boolean)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    m record;
BEGIN
    SELECT last_value, log_cnt, is_called INTO m FROM _snowflake.mark;
    IF m.is_called THEN
        reached := m.last_value >> 6 << 6;
    END IF;
    is_set_back := m.is_called AND m.log_cnt = 0 AND m.last_value & 63 = _snowflake.major();
    is_bare := m.is_called AND m.log_cnt = 0 AND NOT is_set_back;
END $$;

-- The major version, as the rest of the mark.
CREATE FUNCTION _snowflake.major() RETURNS bigint
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.current_setting('server_version_num')::bigint / 10000 % 32;

-- Raises the base, so that the next number makes a position; then the mark, so that after a crash it is never above. In one statement, as a
-- cancel takes effect between statements.
CREATE FUNCTION _snowflake.go_on_from(place bigint, number bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM setval('_snowflake.base', place - number - 1),
        setval('_snowflake.mark', (place >> 6 << 6) + _snowflake.major() - 1), nextval('_snowflake.mark');
END $$;
REVOKE ALL ON FUNCTION _snowflake.go_on_from(bigint, bigint) FROM PUBLIC;

-- Ends the call with the errors of the library, and one more.

CREATE FUNCTION _snowflake.refuse_set_back(place bigint, reached bigint, l bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = 'the record of the IDs of this database was set back',
        DETAIL = format('A dump that was restored, or setval(), has set sequences in the schema _snowflake: IDs would go on at %s%s. '
            'What was made since that time is not on record.', _snowflake.instant(l[2] + (place >> l[12]::integer) * l[1], l),
            CASE WHEN reached > place THEN format(', below %s', _snowflake.instant(l[2] + (reached >> l[12]::integer) * l[1], l)) END),
        HINT = format('As the owner of the extension''s functions, give the worker ID again: SELECT snowflake_configure(%s); IDs go on above '
            'those of the rows that it finds.', concat_ws(', ', pg_sequence_last_value('_snowflake.worker') & l[9],
            CASE WHEN l[7] > 0 THEN (pg_sequence_last_value('_snowflake.worker') & 2147483647) / (l[9] + 1) END));
END $$;

-- A length of time, as messages write it.
CREATE FUNCTION _snowflake.duration(micros bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    seconds CONSTANT bigint := micros / 1000000;
    millis CONSTANT bigint := micros / 1000 % 1000;
BEGIN
    RETURN CASE WHEN seconds = 0 THEN millis || ' ms' WHEN millis = 0 THEN seconds || ' s'
        ELSE format('%s.%s s', seconds, lpad(millis::text, 3, '0')) END;
END $$;

CREATE FUNCTION _snowflake.refuse_lead(behind bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('the clock is %s behind the last ID', _snowflake.duration(behind)),
        DETAIL = 'IDs go on while it is at most 600 s behind.',
        HINT = 'If the clock is wrong, set it right. If it is right, IDs were made or reserved while it was ahead: wait.';
END $$;

CREATE FUNCTION _snowflake.refuse_end(l bigint[]) RETURNS void
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
CREATE FUNCTION _snowflake.wait_for(place bigint, l bigint[]) RETURNS void
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
CREATE FUNCTION _snowflake.open(needs bigint, l bigint[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    bits CONSTANT integer := l[12];
    alone boolean := false;
    reserved bigint;
    "end" bigint;
    covered bigint;
    base bigint;
    number bigint;
    lowest bigint;
    floor bigint;
    first bigint;
    needed bigint;
    until bigint;
    ahead numeric;
    is_left boolean := false;
    mark record;
BEGIN
    BEGIN
        alone := pg_try_advisory_xact_lock(1936617062, 1);
        IF alone THEN
            reserved := coalesce(pg_sequence_last_value('_snowflake.reservation'), 0);
            "end" := coalesce(pg_sequence_last_value('_snowflake.end'), 0);
            covered := _snowflake.end_of(reserved, l);
            number := coalesce(pg_sequence_last_value('_snowflake.number'), 0);
            base := pg_sequence_last_value('_snowflake.base');
            lowest := coalesce(base, 0) + number + 1;
            mark := _snowflake.read_mark();
            IF base IS NULL OR mark.is_set_back OR lowest < mark.reached THEN
                PERFORM _snowflake.refuse_set_back(lowest, mark.reached, l);
            END IF;
            floor := _snowflake.clock(l);
            -- A reservation that is not the one written here came with a dump: IDs up to there may be in use.
            IF covered > "end" AND covered > lowest THEN
                ahead := ((covered >> bits) - (floor >> bits)) * l[1]::numeric;
                -- In a database that has made IDs, one further ahead of the clock than a server's own would only stop them.
                is_left := "end" > 0 AND ahead > 1101000 + l[1];
                IF is_left THEN
                    RAISE WARNING USING
                        MESSAGE = format('a reservation %s ahead of the clock was not taken over', _snowflake.duration(ahead::bigint)),
                        DETAIL = 'It came with a dump. This database has IDs of its own, which go on as before.',
                        HINT = 'Rows of the dump may have IDs of times to come. If they were made with the worker ID of this database, give '
                            'it another one by snowflake_configure(): else the same IDs could be made again then.';
                ELSIF ahead > 600000000 THEN
                    PERFORM _snowflake.refuse_lead(ahead::bigint);
                ELSE
                    floor := greatest(floor, covered);
                END IF;
            END IF;
            -- As in the library, ticks begin with different sequence numbers, so that rare IDs are not all multiples of one number.
            first := CASE WHEN lowest < floor THEN floor | (lowest & least(63, l[11])) ELSE lowest END;
            needed := greatest(first, needs);
            IF needed >> bits > l[4] THEN
                PERFORM _snowflake.refuse_end(l);
            END IF;
            -- From the number that was read above, or the base might not rise.
            IF first > lowest OR mark.is_bare THEN
                PERFORM _snowflake.go_on_from(first, number);
            END IF;
            IF needed >= "end" OR covered <> "end" THEN
                until := greatest(CASE WHEN is_left THEN ceil((l[2] + ("end" >> bits) * l[1]) / 1000::numeric)::bigint ELSE reserved END,
                    ceil((l[2] + (needed >> bits) * l[1] + 1000000) / 1000::numeric)::bigint);
                -- In one statement, as a cancel takes effect between statements. Not over what a restore has just written.
                PERFORM setval('_snowflake.reservation', until), setval('_snowflake.end', _snowflake.end_of(until, l))
                    WHERE coalesce(pg_sequence_last_value('_snowflake.reservation'), 0) = reserved;
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

-- Who holds a lock, as messages write it. A prepared transaction has no process, and in pg_locks, a number of its own.
CREATE FUNCTION _snowflake.holder(process integer, transaction text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN CASE WHEN process IS NULL THEN (SELECT format('prepared transaction %L', p.gid) FROM pg_locks AS x
        JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid WHERE x.pid IS NULL AND x.locktype = 'transactionid'
        AND x.virtualtransaction = holder.transaction LIMIT 1) ELSE format('process %s', process) END;
END $$;

-- Ends the call if this is not the number that the database was given.
CREATE FUNCTION _snowflake.check_worker(worker bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF worker >> 31 IS DISTINCT FROM _snowflake.home() THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'this database has no worker ID',
            DETAIL = CASE WHEN worker > 0 THEN 'It is a copy of a database that has one. '
                'Two databases with the same number would make the same IDs.' ELSE
                'Every database that makes IDs needs a worker ID different from all others''.' END,
            HINT = 'As the owner of the extension''s functions: SELECT snowflake_configure(1);';
    END IF;
END $$;

-- An ID, in all but the ordinary case: that of a position which was drawn, with the end and the worker that were read then, or of another
-- one.
CREATE FUNCTION _snowflake.next_slowly(place bigint, "end" bigint, worker bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    l bigint[];
    r record;
    base bigint := 0;
    number bigint;
    floor bigint;
    mark record;
    is_opened boolean := false;
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
        -- A position that is drawn after the mark was read is not below it.
        mark := _snowflake.read_mark();
        IF place IS NULL OR place < mark.reached THEN
            base := pg_sequence_last_value('_snowflake.base');
            number := nextval('_snowflake.number');
            "end" := pg_sequence_last_value('_snowflake.end');
            worker := pg_sequence_last_value('_snowflake.worker');
            place := _snowflake.place(base, number, pg_sequence_last_value('_snowflake.base'));
        END IF;
        PERFORM _snowflake.check_worker(worker);
        -- Without a base, as ALTER SEQUENCE ... RESTART leaves it, there is no position. open() says so.
        CONTINUE WHEN place IS NULL AND base IS NOT NULL;
        -- What this session has just opened is near enough: a slow one would find the clock beyond it each time.
        IF NOT is_opened THEN
            floor := _snowflake.clock(l);
        END IF;
        -- Another session may be writing the mark: whether it was set back, open() sees, which has the lock for that.
        IF place >= floor AND place >= coalesce(mark.reached, place) AND place < "end" AND NOT (mark.is_bare OR mark.is_set_back) THEN
            IF place > floor + _snowflake.burst(l) THEN
                PERFORM _snowflake.wait_for(place, l);
            END IF;
            RETURN _snowflake.id(place, worker, l);
        END IF;
        is_opened := _snowflake.open(greatest(place, floor), l);
        -- It may have been skipped.
        place := NULL;
        IF NOT is_opened THEN
            tries := tries + 1;
            IF tries > 2 THEN
                PERFORM pg_sleep(0.0005);
            END IF;
            since := coalesce(since, clock_timestamp());
            -- The clock may have been set forward: 1,000 tries take half a second at least.
            IF tries > 1000 AND clock_timestamp() - since > interval '5 s' THEN
                RAISE lock_not_available USING MESSAGE = 'the lock that opens ticks is not released',
                    DETAIL = format('It is the advisory lock (1936617062, 1), of %s.', (SELECT string_agg(_snowflake.holder(pid,
                        virtualtransaction), ', ') FROM pg_locks WHERE locktype = 'advisory' AND database = _snowflake.home() AND granted
                            AND (classid, objid, objsubid) = (1936617062, 1, 2))),
                    HINT = 'End that session, or end the prepared transaction by COMMIT PREPARED or ROLLBACK PREPARED: the extension itself '
                        'holds the lock for a moment only, but for snowflake_configure(), until its transaction ends.';
            END IF;
        END IF;
    END LOOP;
END $$;
REVOKE ALL ON FUNCTION _snowflake.next_slowly(bigint, bigint, bigint) FROM PUBLIC;

-- For calls of 0.2.0 that are under way when the file is run.
CREATE FUNCTION _snowflake.next_slowly(place bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN _snowflake.next_slowly(NULL, NULL, NULL);
END $$;
REVOKE ALL ON FUNCTION _snowflake.next_slowly(bigint) FROM PUBLIC;
