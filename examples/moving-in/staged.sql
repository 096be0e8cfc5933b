-- Widens integer keys of tables that are too big to be rewritten at once, while clients read and write, and then has the key made
-- by snowflake_next(). Read docs/moving-in-stages.md first. Each step can be repeated: after a crash, run it again.
--
--   \i staged.sql
--   CALL moving.prepare('lines', 'order_id');   -- each column that refers to the key
--   CALL moving.prepare('orders', 'id');        -- and the key
--   CALL moving.backfill();                     -- commits after each batch; SELECT * FROM moving.progress; shows how far it is
--   SELECT moving.index_statements() \gexec     -- CREATE INDEX CONCURRENTLY
--   CALL moving.check();                        -- locks each table for a moment, then reads all rows while others write
--   CALL moving.swap('orders', 'id');           -- one short transaction for all tables
--   CALL moving.validate();                     -- the foreign keys; reads all rows while others write
--   CALL moving.finish();                       -- drops the old columns
--   SELECT * FROM moving.result;
--   CALL moving.remove();                       -- looks whether all is done, and drops this schema
--
-- Before the swap, CALL moving.abandon() takes everything back; between moving.finish() and moving.remove(), CALL moving.take_back('orders', 'id')
-- does, as long as all keys fit the old type. Whatever fails, and whatever is called after it: clients go on
-- writing. What keeps the columns equal, and what proves that they are, goes with this schema.
--
-- As the owner of the tables: what they carry, such as triggers, runs as whoever calls this. All names are looked up in pg_catalog alone,
-- whatever the session's search_path is; triggers and constraints see the session's.
--
-- For plain tables. Each column gets a new one beside it, of type bigint, that a trigger keeps equal to it. The new column takes the
-- name of the old one in the swap, and with it the foreign keys, CHECK constraints and indexes.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA moving;
COMMENT ON SCHEMA moving IS 'staged.sql of pg_snowflake 0.4.0';

CREATE TABLE moving.columns (
    tbl regclass,
    col name,
    new name NOT NULL,
    filenode oid NOT NULL,              -- the file that is being backfilled
    blocks bigint NOT NULL,             -- how many blocks it had when the trigger was in place
    next_block bigint NOT NULL DEFAULT 0,
    is_swapped boolean NOT NULL DEFAULT false,
    subscribers_are_ready boolean NOT NULL,
    PRIMARY KEY (tbl, col)
);
-- Constraints to be made again in the swap, and validated after it.
CREATE TABLE moving.constraints (tbl regclass, name name, definition text NOT NULL, was_valid boolean NOT NULL, comment text,
    PRIMARY KEY (tbl, name));
-- Extended statistics to be made again in the swap.
CREATE TABLE moving.statistics (tbl regclass, name text PRIMARY KEY, definition text NOT NULL, target integer NOT NULL, comment text);
-- Identities to be made again in the swap.
CREATE TABLE moving.identities (tbl regclass, col name, definition text NOT NULL, privileges aclitem[], comment text, last bigint,
    is_called boolean, PRIMARY KEY (tbl, col));
-- The types from before, for the way back.
CREATE TABLE moving.types (tbl regclass, col name, type text NOT NULL, PRIMARY KEY (tbl, col));
CREATE TABLE moving.result (tbl regclass, col name, first_id bigint, adopted_at timestamptz, highest_before bigint, PRIMARY KEY (tbl, col));

CREATE VIEW moving.progress AS
    SELECT tbl, col, next_block, blocks, round(100.0 * next_block / nullif(blocks, 0), 1) AS percent FROM moving.columns;

-- The proofs call this, so that they go with the schema, as the triggers do: without these, no row could be written. It runs as
-- whoever writes.
CREATE FUNCTION moving.same(new bigint, old bigint) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN new IS NOT DISTINCT FROM old;

-- Only its owner moves a table.
CREATE PROCEDURE moving.must_own(tbl regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner regrole;
BEGIN
    SELECT relowner INTO owner FROM pg_class WHERE oid = tbl;
    IF NOT FOUND THEN
        RAISE undefined_table USING MESSAGE = format('the table with OID %s is gone', tbl::oid);
    END IF;
    IF owner <> quote_ident(current_user)::regrole THEN
        RAISE insufficient_privilege USING MESSAGE = format('table %s belongs to %s', tbl, owner),
            DETAIL = 'Its triggers, constraints and indexes may run functions of this role, and would run them as you.',
            HINT = format('SET ROLE %s for all of the move, from the script on. It needs CREATE on the database.', owner);
    END IF;
END $$;

-- The same, with the lock that a step needs. LOCK TABLE looks the name up again when the lock is granted. If it is another table's by then,
-- the call ends before any code of that table runs. While an ACCESS EXCLUSIVE lock is waited for, all others wait, too: so not for long.
CREATE PROCEDURE moving.lock(tbl regclass, mode text) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := tbl::text;
BEGIN
    CALL moving.must_own(tbl);
    IF mode = 'ACCESS EXCLUSIVE' AND current_setting('lock_timeout') = '0' THEN
        PERFORM set_config('lock_timeout', '5s', true);
    END IF;
    EXECUTE format('LOCK TABLE %s IN %s MODE', name, mode);
    IF to_regclass(name) IS DISTINCT FROM tbl THEN
        RAISE serialization_failure USING MESSAGE = format('table %s was dropped or renamed by others meanwhile', name);
    END IF;
    CALL moving.must_own(tbl);
END $$;

-- A function of the extension, by its library: whoever may create functions in its schema could have made others of the same name. Or that of
-- the extension in SQL, by its owner: the caller, the database's owner, or a superuser.
CREATE FUNCTION moving.of_extension(symbol text, arguments text DEFAULT 'regclass, name, text') RETURNS text LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
BEGIN
    SELECT format('%I.%I', nspname, proname) INTO name
    FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
        AND classid = 'pg_proc'::regclass
    JOIN pg_proc p ON p.oid = objid JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_language l ON l.oid = prolang AND lanname = 'c'
    WHERE extname = 'pg_snowflake' AND prosrc = symbol AND probin ~ '(^|/)pg_snowflake$';
    IF name IS NULL THEN
        SELECT format('%I.%I', n.nspname, proname) INTO name
        FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_namespace record ON record.nspname = '_snowflake'
        JOIN pg_roles r ON r.oid = proowner
        WHERE proname = symbol AND oidvectortypes(proargtypes) = arguments AND proowner = record.nspowner
            AND (rolsuper OR rolname = current_user OR proowner = (SELECT datdba FROM pg_database WHERE datname = current_database()));
    END IF;
    IF name IS NULL THEN
        RAISE undefined_function USING MESSAGE = format('there is no function %s() of the extension', symbol),
            HINT = 'CREATE EXTENSION pg_snowflake; or install the extension in SQL, as the owner of the database.';
    END IF;
    RETURN name;
END $$;

-- Who may do something with one column may do it with the other: SELECT * reads both.
CREATE PROCEDURE moving.copy_privileges(tbl regclass, col name, new name) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT text FROM (
            SELECT DISTINCT 1 AS step, format('REVOKE ALL (%I) ON %s FROM %s', new, tbl,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS text
            FROM pg_attribute, aclexplode(attacl) WHERE attrelid = tbl AND attname = new
            UNION ALL
            SELECT 2, format('GRANT %s (%I) ON %s TO %s%s', privilege_type, new, tbl,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
            FROM pg_attribute, aclexplode(attacl) WHERE attrelid = tbl AND attname = col
        ) statements ORDER BY step, text
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;

-- The indexes with a column.
CREATE FUNCTION moving.indexes_of(tbl regclass, number smallint) RETURNS SETOF regclass LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT indexrelid::regclass FROM pg_index WHERE indrelid = tbl AND (number = ANY (indkey) OR EXISTS (SELECT FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = indexrelid AND refclassid = 'pg_class'::regclass AND refobjid = tbl
            AND refobjsubid = number)) $$;

-- The sequence of a column's identity.
CREATE FUNCTION moving.sequence_of(tbl regclass, number smallint) RETURNS regclass LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT objid::regclass FROM pg_depend WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass
        AND refobjid = tbl AND refobjsubid = number AND deptype = 'i' AND EXISTS (SELECT FROM pg_sequence WHERE seqrelid = objid) $$;

-- The name of the new column, with room for what else is added to it.
CREATE FUNCTION moving.name_beside(col name, number smallint) RETURNS name LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT ((CASE WHEN octet_length(col::text) <= 50 THEN col::text ELSE 'column_' || number END) || '_moving')::name $$;

-- What keeps a column from being moved in stages, and what to do about it. The plan of snowflake_adopt() has more of it, for keys.
CREATE FUNCTION moving.hindrances(tbl regclass, col name, subscribers_are_ready boolean) RETURNS TABLE (what text, advice text) LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE moved AS (SELECT attnum AS number, moving.name_beside(col, attnum) AS new FROM pg_attribute WHERE attrelid = tbl AND attname = col),
    -- Types whose values have rows of the table in them.
    of_rows (type) AS (
        SELECT reltype FROM pg_class WHERE oid = tbl
        UNION
        SELECT CASE classid WHEN 'pg_type'::regclass THEN objid ELSE (SELECT reltype FROM pg_class WHERE oid = objid) END
        FROM of_rows JOIN pg_depend ON refclassid = 'pg_type'::regclass AND refobjid = type
        WHERE classid = 'pg_type'::regclass OR classid = 'pg_class'::regclass AND objsubid > 0
    )
    -- Rows that the backfill would not see, or not change, or that another would change after the copy.
    SELECT format('trigger %I of %s may change rows after the one that keeps the columns equal', tgname, tbl),
        'ALTER TRIGGER ... RENAME TO a name that comes before zzz_moving.'
    FROM moved JOIN pg_trigger ON tgrelid = tbl JOIN pg_proc p ON p.oid = tgfoid
    -- BEFORE, FOR EACH ROW, INSERT or UPDATE; in the order of the names' bytes.
    WHERE tgtype & 3 = 3 AND tgtype & 20 <> 0 AND tgname::text COLLATE "C" > 'zzz_moving_' || number
        AND pronamespace <> 'moving'::regnamespace
    UNION ALL
    SELECT format('rule %I on %s takes the place of UPDATE', rulename, tbl), 'Drop such objects, and make them again after the swap.'
    FROM pg_rewrite WHERE ev_class = tbl AND ev_type = '2' AND is_instead
    UNION ALL
    SELECT format('row-level security hides rows of %s from its owner', tbl), 'Until the swap, ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.'
    WHERE row_security_active(tbl::oid)
    UNION ALL
    SELECT format('publication %I has %s, and subscribers lack the new column', pubname, tbl),
        format('On each subscriber, first %schange column %I to bigint, and add columns %I and %I of type bigint, to be dropped after '
            'moving.finish(). Then say so: CALL moving.prepare(%L, %L, subscribers_are_ready => true)',
            -- The tables of this schema are published, too.
            CASE WHEN puballtables THEN 'load this script, ' ELSE '' END, col, new, new || '_old', tbl, col)
    FROM moved JOIN pg_class c ON c.oid = tbl JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_publication_tables t ON schemaname = nspname AND tablename = relname JOIN pg_publication USING (pubname)
    WHERE NOT subscribers_are_ready
    UNION ALL
    -- What would stay with the old column, which nobody fills then. What the swap makes again is none of these.
    SELECT DISTINCT format('%s depends on column %s.%I', CASE WHEN rulename = '_RETURN' THEN pg_describe_object('pg_class'::regclass, ev_class, 0)
        ELSE pg_describe_object(classid, objid, objsubid) END, tbl, col), 'Drop such objects, and make them again after the swap.'
    FROM moved JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = tbl AND refobjsubid = number
    LEFT JOIN pg_rewrite w ON classid = 'pg_rewrite'::regclass AND w.oid = objid
    WHERE classid NOT IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
        -- On PostgreSQL 14, a generated column is there as a column.
        AND NOT (classid = 'pg_class'::regclass AND objsubid = 0 AND EXISTS (SELECT FROM pg_class c WHERE c.oid = objid AND relkind IN ('i', 'S')))
        AND NOT (classid = 'pg_attrdef'::regclass AND EXISTS (SELECT FROM pg_attrdef d WHERE d.oid = objid AND adrelid = tbl AND adnum = number))
    UNION ALL
    -- An identity's sequence is made again.
    SELECT format('%s depends on sequence %s', pg_describe_object(classid, objid, objsubid), refobjid::regclass),
        'Drop such objects, and make them again after the swap.'
    FROM moved JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = moving.sequence_of(tbl, number) AND deptype = 'n'
    UNION ALL
    SELECT format('column %s.%I has rows of %s in it', attrelid::regclass, attname, tbl),
        'Keep the values of such a column elsewhere, drop it, and make it again after the swap.'
    FROM of_rows JOIN pg_depend ON refclassid = 'pg_type'::regclass AND refobjid = type AND classid = 'pg_class'::regclass
    JOIN pg_class c ON c.oid = objid AND relkind IN ('r', 'p', 'm', 'f') JOIN pg_attribute ON attrelid = objid AND attnum = objsubid
    UNION ALL
    SELECT format('column %s.%I, which refers to it, is of type %s', conrelid::regclass, attname, format_type(atttypid, NULL)),
        'Change such a column to bigint first.'
    FROM moved JOIN pg_constraint ON contype = 'f' AND confrelid = tbl CROSS JOIN unnest(conkey, confkey) AS k (own, other)
    JOIN pg_attribute ON attrelid = conrelid AND attnum = own
    WHERE other = number AND atttypid NOT IN ('int2'::regtype, 'int4'::regtype) AND NOT EXISTS (
        WITH RECURSIVE bases (type) AS (SELECT atttypid UNION ALL SELECT typbasetype FROM bases JOIN pg_type ON oid = type WHERE typtype = 'd')
        SELECT FROM bases WHERE type IN ('int8'::regtype, 'numeric'::regtype))
    UNION ALL
    SELECT format(CASE relkind WHEN 'p' THEN 'foreign key %I of %s, which is partitioned, cannot be made again without a look at all rows'
        ELSE 'foreign key %I of %s belongs to %s' END, conname, conrelid::regclass, relowner::regrole),
        'Drop such a foreign key, and make it again after the swap.'
    FROM moved JOIN pg_constraint ON contype = 'f' AND conparentid = 0 JOIN pg_class c ON c.oid = conrelid
    WHERE (relkind = 'p' OR relowner <> quote_ident(current_user)::regrole)
        AND (confrelid = tbl AND number = ANY (confkey) OR conindid IN (SELECT moving.indexes_of(tbl, number)))
    UNION ALL
    SELECT DISTINCT format('foreign key %I of %s has triggers that are disabled, and would be made again with all of them enabled', conname,
        conrelid::regclass), 'Enable such triggers, and disable them again after the swap.'
    FROM moved JOIN pg_constraint k ON contype = 'f' AND (conrelid = tbl AND number = ANY (conkey) OR confrelid = tbl AND number = ANY (confkey)
        OR conindid IN (SELECT moving.indexes_of(tbl, number)))
    WHERE EXISTS (SELECT FROM pg_trigger WHERE tgconstraint = k.oid AND tgenabled <> 'O')
    UNION ALL
    SELECT format('%s belongs to %s', pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), stxowner::regrole),
        'ALTER STATISTICS ... OWNER TO the owner of the table.'
    FROM moved JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = tbl AND refobjsubid = number
        AND classid = 'pg_statistic_ext'::regclass
    JOIN pg_statistic_ext s ON s.oid = objid WHERE stxowner <> quote_ident(current_user)::regrole
    UNION ALL
    SELECT format('column %s.%I, which refers to it, is in a partition or an inheritance tree', conrelid::regclass, attname),
        'Change such a column to bigint first.'
    FROM moved JOIN pg_constraint ON contype = 'f' AND confrelid = tbl CROSS JOIN unnest(conkey, confkey) AS k (own, other)
    JOIN pg_attribute ON attrelid = conrelid AND attnum = own
    WHERE other = number AND atttypid IN ('int2'::regtype, 'int4'::regtype)
        AND EXISTS (SELECT FROM pg_inherits WHERE conrelid IN (inhrelid, inhparent))
    UNION ALL
    SELECT format('%s has a security label of %s', pg_describe_object(classoid, objoid, objsubid), provider),
        'Take such a label away, and give it again after the swap.'
    FROM moved JOIN pg_seclabel ON classoid = 'pg_class'::regclass
        AND (objoid = tbl AND objsubid = number OR objoid = moving.sequence_of(tbl, number))
$$;

-- Makes an index, a CHECK or statistics for the columns as they will be: of moving.copy, a table without rows. It is to call what the original
-- calls, though another function or operator of the name may fit bigint better. PostgreSQL's own are not in pg_depend, and may differ.
CREATE PROCEDURE moving.make_for_copy(tbl regclass, class regclass, object oid, statement text) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c moving.columns;
    what text := pg_describe_object(class, object, 0);
    called text;
    calls text;
BEGIN
    EXECUTE format('CREATE TABLE moving.copy (LIKE %s)', tbl);
    FOR c IN SELECT * FROM moving.columns m WHERE m.tbl = make_for_copy.tbl AND NOT is_swapped LOOP
        EXECUTE format('ALTER TABLE moving.copy ALTER COLUMN %I TYPE bigint', c.col);
    END LOOP;
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = format('%s cannot be made for bigint', what), DETAIL = SQLERRM,
            HINT = 'Drop it, and make it again after the swap.';
    END;
    SELECT string_agg(DISTINCT name, ', ') FILTER (WHERE objid = object), string_agg(DISTINCT name, ', ') FILTER (WHERE objid <> object)
    INTO called, calls
    FROM pg_depend d, pg_describe_object(refclassid, refobjid, 0) AS name
    WHERE classid = class AND refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass) AND (objid = object OR EXISTS (SELECT FROM pg_depend
        WHERE classid = class AND objid = d.objid AND refclassid = 'pg_class'::regclass AND refobjid = 'moving.copy'::regclass));
    IF called IS DISTINCT FROM calls THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('%s would not mean the same for bigint', what),
            DETAIL = format('It calls %s; then it would call %s.', coalesce(called, 'PostgreSQL''s own'), coalesce(calls, 'PostgreSQL''s own')),
            HINT = 'Drop it, and make it again after the swap.';
    END IF;
END $$;

-- Says so. Behind a lock, nothing comes to it.
CREATE PROCEDURE moving.must_be_free(tbl regclass, col name, subscribers_are_ready boolean) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    hindrances text;
    advice text;
    i record;
BEGIN
    SELECT string_agg(DISTINCT h.what, '; '), string_agg(DISTINCT h.advice, ' ') INTO hindrances, advice
    FROM moving.hindrances(tbl, col, subscribers_are_ready) h;
    IF hindrances IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s.%I cannot be moved in stages as it is', tbl, col),
            DETAIL = hindrances, HINT = advice;
    END IF;
    FOR i IN
        SELECT classid, objid, CASE WHEN contype = 'c'
            THEN 'ALTER TABLE moving.copy ADD ' || regexp_replace(pg_get_constraintdef(objid), '( NOT VALID)?$', ' NOT VALID')
            ELSE format('CREATE STATISTICS moving.copied ON %s FROM moving.copy', pg_get_statisticsobjdef_columns(objid)) END AS statement
        FROM (SELECT DISTINCT classid, objid FROM pg_depend JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
            WHERE refclassid = 'pg_class'::regclass AND refobjid = tbl AND attname = col) of_column
        LEFT JOIN pg_constraint k ON classid = 'pg_constraint'::regclass AND k.oid = objid
        WHERE contype = 'c' OR classid = 'pg_statistic_ext'::regclass
    LOOP
        CALL moving.make_for_copy(tbl, i.classid, i.objid, i.statement);
        DROP TABLE moving.copy;
    END LOOP;
END $$;

-- Adds the new column and its trigger. Locks the table for a moment.
CREATE PROCEDURE moving.prepare(tbl regclass, col name, subscribers_are_ready boolean DEFAULT false) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number smallint := (SELECT attnum FROM pg_attribute WHERE attrelid = tbl AND attname = col AND attnum > 0);
    new name := moving.name_beside(col, number);
    trigger_name name := 'zzz_moving_' || number;
    odd text;
BEGIN
    IF EXISTS (SELECT FROM moving.columns c WHERE c.tbl = prepare.tbl AND c.col = prepare.col) THEN
        UPDATE moving.columns c SET subscribers_are_ready = c.subscribers_are_ready OR prepare.subscribers_are_ready
        WHERE c.tbl = prepare.tbl AND c.col = prepare.col;
        RETURN;
    END IF;
    CALL moving.lock(tbl, 'ACCESS EXCLUSIVE');
    -- What the swap will call.
    PERFORM moving.of_extension('snowflake_adopt');
    SELECT CASE
        WHEN relkind <> 'r' OR relispartition OR EXISTS (SELECT FROM pg_inherits WHERE tbl IN (inhparent, inhrelid))
            THEN 'it is no plain table: use snowflake_adopt()'
        WHEN number IS NULL THEN 'there is no such column'
        WHEN atttypid NOT IN ('int2'::regtype, 'int4'::regtype) THEN 'the column is of type ' || format_type(atttypid, NULL)
        WHEN EXISTS (SELECT FROM aclexplode(attacl) WHERE grantor <> relowner)
            THEN 'the column has privileges that others than the owner have granted, which would be lost: revoke them'
    END INTO odd
    FROM pg_class c LEFT JOIN pg_attribute ON attrelid = c.oid AND attname = col AND NOT attisdropped WHERE c.oid = tbl;
    IF odd IS NOT NULL THEN
        RAISE EXCEPTION 'column %.% cannot be moved in stages', tbl, col USING DETAIL = odd;
    END IF;
    EXECUTE format('ALTER TABLE %s ADD COLUMN %I bigint', tbl, new);
    EXECUTE format('CREATE FUNCTION moving.%I() RETURNS trigger LANGUAGE plpgsql AS %L', tbl::oid || '_' || trigger_name,
        format('BEGIN NEW.%I := NEW.%I; RETURN NEW; END', new, col));
    -- Last of all that run before the row is written; also for rows that come by replication.
    EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION moving.%I()',
        trigger_name, tbl, tbl::oid || '_' || trigger_name);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tbl, trigger_name);
    -- With the table locked: every row that is written from now on has the new column.
    DELETE FROM moving.result r WHERE (r.tbl, r.col) = (prepare.tbl, prepare.col);
    INSERT INTO moving.columns SELECT tbl, col, new, pg_relation_filenode(tbl),
        pg_relation_size(tbl) / current_setting('block_size')::bigint, 0, false, subscribers_are_ready;
    CALL moving.copy_privileges(tbl, col, new);
    -- What cannot be made is said now, and not after hours.
    CALL moving.must_be_free(tbl, col, subscribers_are_ready);
    PERFORM moving.index_statements();
    SELECT string_agg(function::text, ', ') INTO odd FROM moving.functions() WHERE renewal IS NULL;
    IF odd IS NOT NULL THEN
        RAISE WARNING 'after the swap, sessions that have called functions of others must connect again: %', odd
            USING HINT = 'Have their owner CREATE OR REPLACE them then.';
    END IF;
END $$;

-- What stands in the way of the swap. With all its arguments, nothing else is meant than the extension's function.
CREATE FUNCTION moving.obstacles(tbl regclass, col name) RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    obstacles text;
BEGIN
    -- To the extension in SQL, a narrow column is an obstacle: that is what this changes.
    EXECUTE format('SELECT string_agg(note, ''; '') FROM %s($1, $2, $3) WHERE kind = ''obstacle'' AND note !~ $4',
        moving.of_extension('snowflake_adopt_plan')) INTO obstacles
        USING tbl, col, 'refuse'::text, '(gives IDs to bigint columns only|is to be bigint first)$'::text;
    RETURN obstacles;
END $$;

-- The columns that refer to no other, so that they may be keys to be given IDs.
CREATE FUNCTION moving.keys() RETURNS SETOF moving.columns LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT * FROM moving.columns m WHERE NOT EXISTS (SELECT FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
        WHERE contype = 'f' AND conrelid = m.tbl AND attname = m.col) $$;

-- Fills the new columns of the rows from before. Commits after so many blocks of 8 kB, and then sleeps. One transaction has a batch
-- and how far it came, so a crash loses at most a batch.
CREATE PROCEDURE moving.backfill(batch_blocks integer DEFAULT 1000, pause interval DEFAULT '0.1 s') LANGUAGE plpgsql AS $$
DECLARE
    -- A procedure that commits cannot have a setting of its own. Until it has set the path, and after each COMMIT, it names no more
    -- than what stands in a schema.
    path pg_catalog.text := pg_catalog.current_setting('search_path');
    c moving.columns;
    until pg_catalog.int8;
    batch pg_catalog.text;
    obstacles pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF batch_blocks < 1 THEN
        RAISE EXCEPTION 'batch_blocks must be at least 1';
    END IF;
    -- What is in the way is said now, and not after hours.
    FOR c IN SELECT * FROM moving.columns WHERE next_block < blocks LOOP
        CALL moving.must_own(c.tbl);
        CALL moving.must_be_free(c.tbl, c.col, c.subscribers_are_ready);
    END LOOP;
    FOR c IN SELECT * FROM moving.keys() WHERE next_block < blocks LOOP
        obstacles := moving.obstacles(c.tbl, c.col);
        IF obstacles IS NOT NULL THEN
            RAISE EXCEPTION 'column %.% cannot be swapped later', c.tbl, c.col USING DETAIL = obstacles,
                HINT = 'Take this out of the way first. CALL moving.abandon() takes the move back.';
        END IF;
    END LOOP;
    LOOP
        SELECT * INTO c FROM moving.columns WHERE next_block < blocks ORDER BY tbl::text, col LIMIT 1 FOR UPDATE;
        EXIT WHEN NOT FOUND;
        CALL moving.lock(c.tbl, 'ROW EXCLUSIVE');
        IF row_security_active(c.tbl::oid) THEN
            CALL moving.must_be_free(c.tbl, c.col, c.subscribers_are_ready);
        END IF;
        IF c.filenode <> pg_relation_filenode(c.tbl) THEN
            -- VACUUM FULL or CLUSTER has moved the rows.
            UPDATE moving.columns SET filenode = pg_relation_filenode(c.tbl), next_block = 0,
                blocks = pg_relation_size(c.tbl) / current_setting('block_size')::bigint
            WHERE (tbl, col) = (c.tbl, c.col);
        ELSE
            until := least(c.next_block + batch_blocks, c.blocks);
            UPDATE moving.columns SET next_block = until WHERE (tbl, col) = (c.tbl, c.col);
            batch := format('UPDATE %s SET %2$I = %3$I WHERE ctid OPERATOR(pg_catalog.>=) %4$L::pg_catalog.tid '
                'AND ctid OPERATOR(pg_catalog.<) %5$L::pg_catalog.tid AND (%2$I OPERATOR(pg_catalog.=) %3$I) IS NOT TRUE '
                'AND (%2$I IS NOT NULL OR %3$I IS NOT NULL)',
                c.tbl, c.new, c.col, format('(%s,0)', c.next_block), format('(%s,0)', until));
            -- The table's own triggers run, and find their objects where they always do.
            PERFORM set_config('search_path', path, true);
            EXECUTE batch;
        END IF;
        COMMIT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        PERFORM pg_sleep_for(pause);
    END LOOP;
END $$;

-- The statements that make the indexes of the new columns, to be run one by one, outside a transaction. PostgreSQL writes them: of a table
-- without rows, whose columns are renamed once it has the index. Names of pg_catalog have no schema in them, and others may have such names on
-- the session's search_path. So they are run with a safe one; `path` is the session's own, which the last statement sets again.
CREATE FUNCTION moving.index_statements(path text DEFAULT current_setting('search_path')) RETURNS SETOF text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    i record;
    m moving.columns;
    definition text;
    has_any boolean := false;
BEGIN
    FOR i IN
        SELECT indexrelid AS index, indrelid::regclass AS tbl, indisexclusion, nspname,
            format('CREATE %sINDEX %I ON ', CASE WHEN indisunique THEN 'UNIQUE ' ELSE '' END, relname) AS beginning,
            CASE WHEN indisunique THEN 'UNIQUE ' ELSE '' END AS uniquely,
            coalesce((SELECT spcname::text FROM pg_tablespace s WHERE s.oid = reltablespace), '') AS space
        FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_namespace n ON n.oid = relnamespace
        WHERE indexrelid IN (SELECT moving.indexes()) ORDER BY indexrelid
    LOOP
        CONTINUE WHEN moving.is_made(i.index);
        IF i.indisexclusion THEN
            RAISE EXCEPTION 'index % belongs to an exclusion constraint, which cannot be made while others write', i.index::regclass
                USING HINT = 'Drop the constraint, and create it again after the swap.';
        END IF;
        definition := substr(pg_get_indexdef(i.index), length(i.beginning || i.tbl) + 1);
        CALL moving.make_for_copy(i.tbl, 'pg_class', i.index, 'CREATE INDEX copied ON moving.copy' || definition);
        FOR m IN SELECT * FROM moving.columns WHERE tbl = i.tbl AND NOT is_swapped LOOP
            EXECUTE format('ALTER TABLE moving.copy DROP COLUMN %I', m.new);
            EXECUTE format('ALTER TABLE moving.copy RENAME COLUMN %I TO %I', m.col, m.new);
        END LOOP;
        definition := substr(pg_get_indexdef('moving.copied'::regclass), length('CREATE INDEX copied ON moving.copy') + 1);
        DROP TABLE moving.copy;
        IF NOT has_any THEN
            RETURN NEXT 'SET search_path = pg_catalog, pg_temp';
        END IF;
        -- What a crash has left half made is invalid.
        RETURN NEXT format('DROP INDEX CONCURRENTLY IF EXISTS %I.%I', i.nspname, i.index || '_moving');
        RETURN NEXT format('SET default_tablespace = %L', i.space);
        RETURN NEXT format('CREATE %sINDEX CONCURRENTLY %I ON %s%s', i.uniquely, i.index || '_moving', i.tbl, definition);
        has_any := true;
    END LOOP;
    IF has_any THEN
        RETURN NEXT format('SET default_tablespace = %L', current_setting('default_tablespace'));
        -- Not by SET, which cannot read every path. Where an error stopped these statements before, the session still has the safe one.
        RETURN NEXT CASE path WHEN 'pg_catalog, pg_temp' THEN 'RESET search_path'
            ELSE format('DO %L', format('BEGIN PERFORM pg_catalog.set_config(''search_path'', %L, false); END', path)) END;
    END IF;
END $$;

-- The indexes with columns that are moved, but for those that were made for new ones.
CREATE FUNCTION moving.indexes() RETURNS SETOF regclass LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT i FROM moving.columns m JOIN pg_attribute ON attrelid = tbl AND attname IN (col, new), LATERAL moving.indexes_of(tbl, attnum) i
    WHERE NOT is_swapped GROUP BY i HAVING bool_and(attname = col) $$;

-- Whether what is to take the place of an index is there. It is not if one of its columns was prepared later.
CREATE FUNCTION moving.is_made(index regclass) RETURNS boolean LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_class o JOIN pg_class p ON p.relnamespace = o.relnamespace AND p.relname = o.oid || '_moving'
        JOIN pg_index ON indexrelid = p.oid AND indisvalid
        WHERE o.oid = index AND NOT EXISTS (SELECT FROM moving.columns JOIN pg_attribute ON attrelid = tbl AND attname = col
            WHERE NOT is_swapped AND p.oid IN (SELECT moving.indexes_of(tbl, attnum)))) $$;

-- Proves that the columns are equal, by constraints that the swap uses.
CREATE PROCEDURE moving.check() LANGUAGE plpgsql AS $$
DECLARE
    c moving.columns;
    condition pg_catalog.text;
    difference pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR c IN SELECT * FROM moving.columns WHERE NOT is_swapped LOOP
        IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.tbl AND conname = c.new) THEN
            CALL moving.lock(c.tbl, 'ACCESS EXCLUSIVE');
            CALL moving.must_be_free(c.tbl, c.col, c.subscribers_are_ready);
            IF c.next_block < c.blocks THEN
                RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s.%I is not filled', c.tbl, c.new),
                    HINT = 'CALL moving.backfill() first.';
            END IF;
            SELECT format(CASE WHEN attnotnull THEN '%1$I IS NOT NULL AND ' ELSE '' END || 'moving.same(%1$I, %2$I)', c.new, c.col)
            INTO condition FROM pg_attribute WHERE attrelid = c.tbl AND attname = c.col;
            EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%s) NOT VALID', c.tbl, c.new, condition);
            COMMIT;
            PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        END IF;
        CALL moving.lock(c.tbl, 'SHARE UPDATE EXCLUSIVE');
        difference := NULL;
        BEGIN
            EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT %I', c.tbl, c.new);
        EXCEPTION WHEN check_violation THEN
            difference := SQLERRM;
        END;
        COMMIT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        IF difference IS NOT NULL THEN
            -- Whatever makes the columns differ, its statements would fail.
            CALL moving.lock(c.tbl, 'ACCESS EXCLUSIVE');
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.tbl, c.new);
            UPDATE moving.columns SET next_block = 0, filenode = pg_relation_filenode(c.tbl),
                blocks = pg_relation_size(c.tbl) / current_setting('block_size')::bigint
            WHERE (tbl, col) = (c.tbl, c.col);
            COMMIT;
            RAISE check_violation USING MESSAGE = format('column %s.%I differs from %I in some rows', c.tbl, c.new, c.col), DETAIL = difference,
                HINT = 'Find out why: a trigger may skip an UPDATE, or be disabled. Then CALL moving.backfill(), which visits all rows again.';
        END IF;
    END LOOP;
END $$;

-- The functions in PL/pgSQL that triggers of these tables call, or that name one of these. Sessions keep their plans, with the types of columns.
CREATE FUNCTION moving.functions() RETURNS TABLE (function regprocedure, renewal text) LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.oid::regprocedure, CASE WHEN pg_has_role(proowner, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
        THEN CASE prokind
            WHEN 'p' THEN format('ALTER PROCEDURE %s SECURITY %s', p.oid::regprocedure, CASE WHEN prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
            ELSE format('ALTER FUNCTION %s COST %s', p.oid::regprocedure, procost) END
        END
    FROM pg_proc p JOIN pg_language l ON l.oid = prolang AND lanname = 'plpgsql'
    WHERE pronamespace <> 'moving'::regnamespace AND EXISTS (SELECT FROM (SELECT tbl FROM moving.columns UNION SELECT tbl FROM moving.types) moved
        JOIN pg_class c ON c.oid = tbl
        WHERE prosrc ~* (E'\\m' || regexp_replace(relname, '([^[:alnum:]_])', E'\\\\\\1', 'g') || E'\\M')
                -- An example in the text of an extension is no table of this database's.
                AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
            OR p.oid IN (SELECT tgfoid FROM pg_trigger WHERE tgrelid = tbl AND NOT tgisinternal))
    ORDER BY 1 $$;

-- Gives the new column the identity that the old one had.
CREATE PROCEDURE moving.make_identity(tbl regclass, col name) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    was moving.identities;
    sequence regclass;
    statement text;
BEGIN
    SELECT * INTO was FROM moving.identities i WHERE (i.tbl, i.col) = (make_identity.tbl, make_identity.col);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    EXECUTE was.definition;
    SELECT moving.sequence_of(attrelid, attnum) INTO sequence
    FROM pg_attribute WHERE attrelid = make_identity.tbl AND attname = make_identity.col;
    PERFORM setval(sequence, was.last, was.is_called);
    FOR statement IN
        SELECT text FROM (
            -- ALTER DEFAULT PRIVILEGES may have given others.
            SELECT DISTINCT 1 AS step, format('REVOKE ALL ON SEQUENCE %s FROM %s', sequence,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END) AS text
            FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = sequence
            UNION ALL
            SELECT 2, format('GRANT %s ON SEQUENCE %s TO %s%s', privilege_type, sequence,
                CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
            FROM pg_class, aclexplode(coalesce(was.privileges, acldefault('s', relowner))) WHERE pg_class.oid = sequence
        ) statements ORDER BY step, text
    LOOP
        EXECUTE statement;
    END LOOP;
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence, was.comment);
END $$;

-- The part of the swap that changes the columns, once their tables are locked and all is ready.
CREATE PROCEDURE moving.change_places() LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c moving.columns;
    i record;
    sequence regclass;
    place record;
    statement text;
    statements text[];
BEGIN
    -- The proofs spare PostgreSQL a look at all rows.
    FOR c IN SELECT * FROM moving.columns WHERE NOT is_swapped LOOP
        CALL moving.must_be_free(c.tbl, c.col, c.subscribers_are_ready);
        IF (SELECT attnotnull FROM pg_attribute WHERE attrelid = c.tbl AND attname = c.col) THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', c.tbl, c.new);
        END IF;
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.tbl, c.new);
    END LOOP;
    -- Foreign keys and CHECK constraints are text with the names of columns, so they can be made again as they were.
    INSERT INTO moving.constraints
    SELECT conrelid, conname, regexp_replace(pg_get_constraintdef(k.oid), ' NOT VALID$', ''), convalidated,
        obj_description(k.oid, 'pg_constraint')
    -- Those of partitions go with their parents.
    FROM pg_constraint k WHERE conparentid = 0 AND (contype IN ('f', 'c') AND EXISTS (
        SELECT FROM moving.columns m JOIN pg_attribute ON attrelid = m.tbl AND attname = m.col
        WHERE NOT is_swapped
            AND (conrelid = m.tbl AND attnum = ANY (conkey) OR confrelid = m.tbl AND attnum = ANY (confkey)))
        -- Those that depend on an index for columns that they do not refer to.
        OR contype = 'f' AND conindid IN (SELECT moving.indexes()));
    FOR i IN SELECT * FROM moving.constraints LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', i.tbl, i.name);
    END LOOP;
    -- So are extended statistics.
    INSERT INTO moving.statistics
    SELECT stxrelid, format('%I.%I', nspname, stxname), pg_get_statisticsobjdef(s.oid), coalesce(stxstattarget, -1),
        obj_description(s.oid, 'pg_statistic_ext')
    FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = stxnamespace WHERE EXISTS (
        SELECT FROM moving.columns m JOIN pg_attribute ON attrelid = m.tbl AND attname = m.col
        JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = m.tbl AND refobjsubid = attnum
        WHERE NOT is_swapped AND classid = 'pg_statistic_ext'::regclass AND objid = s.oid);
    FOR i IN SELECT * FROM moving.statistics LOOP
        EXECUTE 'DROP STATISTICS ' || i.name;
    END LOOP;
    -- Each index gives its name to the one that was made for it. Keys are made by their indexes.
    FOR i IN
        SELECT o AS old, indrelid::regclass AS tbl, nspname, relname, k.conname, condeferrable, condeferred, indisclustered, indisreplident,
            obj_description(k.oid, 'pg_constraint') AS key_comment,
            CASE contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' END AS key, obj_description(o, 'pg_class') AS comment,
            format('%I.%I', nspname, o::oid || '_moving') AS new, o::oid || '_moving' AS new_name
        FROM moving.indexes() o JOIN pg_index ON indexrelid = o JOIN pg_class p ON p.oid = o
        JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_constraint k ON conindid = o AND contype IN ('p', 'u')
    LOOP
        statements := ARRAY(SELECT format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', i.nspname, i.relname, attnum, attstattarget)
            FROM pg_attribute WHERE attrelid = i.old AND coalesce(attstattarget, -1) >= 0);
        IF i.key IS NULL THEN
            EXECUTE format('DROP INDEX %I.%I', i.nspname, i.relname);
            EXECUTE format('ALTER INDEX %s RENAME TO %I', i.new, i.relname);
        ELSE
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', i.tbl, i.conname);
            EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I %s %s', i.tbl, i.conname, i.key, i.new_name,
                CASE WHEN i.condeferrable THEN 'DEFERRABLE' ELSE '' END, CASE WHEN i.condeferred THEN 'INITIALLY DEFERRED' ELSE '' END);
        END IF;
        IF i.comment IS NOT NULL THEN
            EXECUTE format('COMMENT ON INDEX %I.%I IS %L', i.nspname, i.relname, i.comment);
        END IF;
        IF i.indisclustered THEN
            EXECUTE format('ALTER TABLE %s CLUSTER ON %I', i.tbl, i.relname);
        END IF;
        IF i.indisreplident THEN
            EXECUTE format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', i.tbl, i.relname);
        END IF;
        IF i.key_comment IS NOT NULL THEN
            EXECUTE format('COMMENT ON CONSTRAINT %I ON %s IS %L', i.conname, i.tbl, i.key_comment);
        END IF;
        FOREACH statement IN ARRAY statements LOOP
            EXECUTE statement;
        END LOOP;
    END LOOP;
    FOR c IN SELECT * FROM moving.columns WHERE NOT is_swapped LOOP
        INSERT INTO moving.types SELECT c.tbl, c.col, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = c.tbl AND attname = c.col
            ON CONFLICT DO NOTHING;
        CALL moving.copy_privileges(c.tbl, c.col, c.new);
        SELECT attnum, attidentity AS identity, attoptions AS options, coalesce(attstattarget, -1) AS target, col_description(c.tbl, attnum) AS comment, pg_get_expr(adbin, adrelid) AS "default",
            -- From PostgreSQL 18 on, NOT NULL has a name.
            (SELECT conname FROM pg_constraint WHERE conrelid = c.tbl AND contype = 'n' AND conkey = ARRAY[attnum]) AS not_null,
            (SELECT conname FROM pg_constraint JOIN pg_attribute n ON n.attrelid = conrelid AND n.attname = c.new
                WHERE conrelid = c.tbl AND contype = 'n' AND conkey = ARRAY[n.attnum]) AS new_not_null
        INTO i
        FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = c.tbl AND attname = c.col;
        EXECUTE format('DROP TRIGGER %I ON %s', 'zzz_moving_' || i.attnum, c.tbl);
        EXECUTE format('DROP FUNCTION moving.%I()', c.tbl::oid || '_zzz_moving_' || i.attnum);
        IF i.identity <> '' THEN
            SELECT moving.sequence_of(c.tbl, i.attnum) INTO sequence;
            INSERT INTO moving.identities
            SELECT c.tbl, c.col, format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %I.%I START WITH %s '
                'INCREMENT BY %s MINVALUE %s %s CACHE %s %s)', c.tbl, c.col, CASE i.identity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
                nspname, relname, seqstart, seqincrement, seqmin,
                CASE WHEN seqmax IN (32767, 2147483647) THEN 'NO MAXVALUE' ELSE 'MAXVALUE ' || seqmax END,
                seqcache, CASE WHEN seqcycle THEN 'CYCLE' ELSE '' END),
                relacl, obj_description(s.oid, 'pg_class')
            FROM pg_class s JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_sequence ON seqrelid = s.oid WHERE s.oid = sequence;
            EXECUTE format('SELECT last_value, is_called FROM %s', sequence) INTO place;
            UPDATE moving.identities SET last = place.last_value, is_called = place.is_called
            WHERE (identities.tbl, identities.col) = (c.tbl, c.col);
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', c.tbl, c.col);
        END IF;
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT, ALTER COLUMN %2$I DROP NOT NULL', c.tbl, c.col);
        EXECUTE format('ALTER TABLE %s RENAME COLUMN %I TO %I', c.tbl, c.col, c.new || '_old');
        EXECUTE format('ALTER TABLE %s RENAME COLUMN %I TO %I', c.tbl, c.new, c.col);
        IF i.target >= 0 THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', c.tbl, c.col, i.target);
        END IF;
        IF i.options IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET (%s)', c.tbl, c.col, array_to_string(i.options, ', '));
        END IF;
        IF i.new_not_null IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', c.tbl, i.new_not_null, i.not_null);
        END IF;
        EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', c.tbl, c.col, i.comment);
        -- Those of the key, too: snowflake_adopt() puts on record what was there.
        IF i."default" IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', c.tbl, c.col, i."default");
        END IF;
        FOR sequence IN SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass
            AND refobjid = c.tbl AND refobjsubid = i.attnum AND deptype = 'a'
            AND EXISTS (SELECT FROM pg_sequence WHERE seqrelid = objid)
        LOOP
            EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', sequence, c.tbl, c.col);
        END LOOP;
        CALL moving.make_identity(c.tbl, c.col);
    END LOOP;
    FOR i IN SELECT * FROM moving.constraints LOOP
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', i.tbl, i.name, i.definition);
        IF i.comment IS NOT NULL THEN
            EXECUTE format('COMMENT ON CONSTRAINT %I ON %s IS %L', i.name, i.tbl, i.comment);
        END IF;
    END LOOP;
    FOR i IN SELECT * FROM moving.statistics LOOP
        EXECUTE i.definition;
        IF i.target >= 0 THEN
            EXECUTE format('ALTER STATISTICS %s SET STATISTICS %s', i.name, i.target);
        END IF;
        EXECUTE format('COMMENT ON STATISTICS %s IS %L', i.name, i.comment);
    END LOOP;
    -- Changes nothing of them, and has sessions compile them again.
    FOR statement IN SELECT renewal FROM moving.functions() WHERE renewal IS NOT NULL LOOP
        EXECUTE statement;
    END LOOP;
    DELETE FROM moving.statistics;
    DELETE FROM moving.identities;
    UPDATE moving.columns SET is_swapped = true;
END $$;

-- Ways to write rows of a table whose key is moved, and of those that refer to it by columns that are moved: with this key or, after the move, with
-- that of the default. What follows an INSERT is done to its row. As snowflake_adopt() tries it, with the search_path that it has, too.
CREATE FUNCTION moving.trials(tbl regclass, col name, id bigint, by_default boolean)
    RETURNS TABLE (of regclass, path text, place bigint, statements text[]) LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH tables AS (
        SELECT t.of, t.of = tbl AS has_key, array_agg(t.own) FILTER (WHERE t.own <> '') AS given FROM (
            SELECT tbl AS of, '' AS own
            UNION
            SELECT m.tbl, m.col FROM moving.columns m JOIN pg_attribute a ON a.attrelid = m.tbl AND a.attname = m.col
            JOIN pg_constraint f ON f.contype = 'f' AND f.conrelid = m.tbl AND f.confrelid = trials.tbl AND a.attnum = ANY (f.conkey)
            WHERE m.tbl <> trials.tbl
        ) t GROUP BY t.of
    ), written AS (
        SELECT of, has_key,
            (SELECT string_agg(format('%I', g), ', ') FROM unnest(given) g) AS given,
            (SELECT string_agg(id::text, ', ') FROM unnest(given) g) AS ids,
            (SELECT string_agg(format('%I = %s', g, id), ', ') FROM unnest(given) g) AS assigned,
            coalesce(string_agg(', ' || quote_ident(attname), '' ORDER BY attnum), '') AS others,
            coalesce(string_agg(', ' || quote_ident(attname), '' ORDER BY attnum) FILTER (WHERE NOT (atthasdef AND EXISTS (SELECT FROM pg_index
                WHERE indrelid = of AND indisunique AND indnkeyatts = 1 AND indkey[0] = attnum))), '') AS copied,
            coalesce(string_agg(quote_ident(attname) || ' = ' || quote_ident(attname), ', ' ORDER BY attnum), '') AS same,
            coalesce((SELECT ' ORDER BY ' || string_agg(format('%I DESC', k.attname), ', ' ORDER BY place)
                FROM pg_index, unnest(indkey) WITH ORDINALITY AS keys (number, place) JOIN pg_attribute k ON k.attrelid = of AND k.attnum = number
                WHERE indrelid = of AND indisprimary AND place <= indnkeyatts), '') AS newest
        FROM tables LEFT JOIN pg_attribute a ON attrelid = of AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
            AND NOT (has_key AND attname = trials.col) AND attname <> ALL (coalesce(given, '{}'))
            AND NOT EXISTS (SELECT FROM moving.columns m WHERE m.tbl = of AND attname IN (new, new || '_old'))
        GROUP BY of, has_key, given
    ), afterwards AS (
        SELECT of, array_remove(ARRAY[
            format('UPDATE %s SET %s WHERE ctid OPERATOR(pg_catalog.=) $1 RETURNING ctid', of, nullif(concat_ws(', ', CASE WHEN NOT has_key THEN assigned END,
                nullif(same, '')), '')),
            -- Not where PostgreSQL would look for rows that refer to it.
            CASE WHEN NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND confrelid = of)
                THEN format('DELETE FROM %s WHERE ctid OPERATOR(pg_catalog.=) $1 RETURNING ctid', of) END], NULL) AS rest
        FROM written
    ), keys AS (
        SELECT 1 AS place, format('INSERT INTO %s (%I) OVERRIDING SYSTEM VALUE VALUES (%s) RETURNING ctid', of, col, id) AS statement FROM written
        WHERE has_key
        UNION ALL
        SELECT 2, format('INSERT INTO %s (%I%s) OVERRIDING SYSTEM VALUE SELECT %s%s FROM %1$s ORDER BY %2$I DESC LIMIT 1 RETURNING ctid', of, col, others,
            id, others) FROM written WHERE has_key
    ), all_of_them AS (
        SELECT of, k.place::bigint AS place, CASE WHEN k.place = 1 AND by_default THEN format('INSERT INTO %s DEFAULT VALUES RETURNING ctid', of)
            ELSE statement END || rest AS statements
        FROM keys k, written JOIN afterwards USING (of) WHERE has_key
        UNION ALL
        SELECT of, 10 * k.place + w.place, ARRAY[k.statement, w.statement] || CASE WHEN w.place < 3 THEN rest ELSE '{}' END
        FROM keys k, written JOIN afterwards USING (of), LATERAL (VALUES
            (1, format('INSERT INTO %s (%s) VALUES (%s) RETURNING ctid', of, given, ids)),
            (2, format('INSERT INTO %s (%s%s) SELECT %s%3$s FROM %1$s%s LIMIT 1 RETURNING ctid', of, given, copied, ids, newest)),
            (3, format('UPDATE %s SET %s WHERE ctid OPERATOR(pg_catalog.=) (SELECT ctid FROM %1$s%s LIMIT 1) RETURNING ctid', of,
                concat_ws(', ', assigned, nullif(same, '')), newest))) w (place, statement)
        WHERE NOT has_key
        UNION ALL
        SELECT of, 30 + w.place, ARRAY[w.statement] FROM written, LATERAL (VALUES
            (1, format('INSERT INTO %s DEFAULT VALUES RETURNING ctid', of)),
            (2, format('INSERT INTO %s (%s%s) SELECT %2$s%3$s FROM %1$s%s LIMIT 1 RETURNING ctid', of, given, copied, newest)),
            (3, format('UPDATE %s SET (%s) = ROW(%2$s) WHERE ctid OPERATOR(pg_catalog.=) (SELECT ctid FROM %1$s%s LIMIT 1) RETURNING ctid', of, given || copied, newest)))
            w (place, statement)
        WHERE NOT has_key
    )
    SELECT a.of, 'pg_catalog, ' || CASE WHEN is_closed THEN quote_ident(nspname) || ', ' ELSE '' END || 'pg_temp', a.place, a.statements
    FROM all_of_them a JOIN pg_class c ON c.oid = a.of JOIN pg_namespace n ON n.oid = relnamespace, LATERAL (
        SELECT (nspowner = relowner OR nspowner = 'pg_database_owner'::regrole OR (SELECT rolsuper FROM pg_roles r WHERE r.oid = nspowner))
            AND NOT EXISTS (SELECT FROM aclexplode(coalesce(nspacl, acldefault('n', nspowner)))
                WHERE privilege_type = 'CREATE' AND grantee NOT IN (nspowner, relowner)) AS is_closed
    ) s ORDER BY a.place $$;

-- What comes of statements, which are rolled back: NULL where all succeed; else how many did, and the error.
CREATE FUNCTION moving.tried(path text, statements text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    was pg_catalog.text := pg_catalog.current_setting('search_path');
    statement pg_catalog.text;
    place pg_catalog.tid;
    done pg_catalog.int4 := 0;
    is_over pg_catalog.bool := false;
    detail pg_catalog.text;
BEGIN
    BEGIN
        PERFORM pg_catalog.set_config('search_path', path, true);
        SET CONSTRAINTS ALL IMMEDIATE;
        FOREACH statement IN ARRAY statements LOOP
            EXECUTE statement INTO place USING place;
            done := done OPERATOR(pg_catalog.+) 1;
        END LOOP;
        is_over := true;
        RAISE EXCEPTION 'to be rolled back';
    EXCEPTION WHEN OTHERS THEN
        -- The end of the subtransaction has set the path back.
        IF is_over THEN
            RETURN NULL;
        END IF;
        GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
        RETURN ARRAY[done::pg_catalog.text, SQLSTATE, pg_catalog.concat_ws(': ', SQLERRM, CASE detail WHEN '' THEN NULL ELSE detail END)];
    END;
END $$;

-- The outcomes of all trials, by their table and number.
CREATE FUNCTION moving.outcomes(tbl regclass, col name, id bigint, by_default boolean)
    RETURNS TABLE (of regclass, place bigint, outcome text[]) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT * FROM moving.trials(tbl, col, id, by_default) LOOP
        of := t.of;
        place := t.place;
        outcome := moving.tried(t.path, t.statements);
        RETURN NEXT;
    END LOOP;
END $$;

-- Puts the new columns into the place of the old ones, and has snowflake_next() make the key. Reads no table but for the highest
-- value, by its index. All prepared columns change places at once; for further keys among them, call it for each.
CREATE PROCEDURE moving.swap(tbl regclass, col name, longest_wait interval DEFAULT '5 s') LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t regclass;
    missing text;
    advice text;
    waits text;
    has_ids boolean := EXISTS (SELECT FROM moving.result r WHERE (r.tbl, r.col) = (swap.tbl, swap.col));
    is_tried boolean := current_setting('pg_snowflake.probe', true) IS DISTINCT FROM 'off';
    is_waived boolean := coalesce(current_setting('pg_snowflake.waive', true), '') <> '';
    id bigint;
    failed record;
BEGIN
    IF has_ids AND NOT EXISTS (SELECT FROM moving.columns WHERE NOT is_swapped) THEN
        RETURN;
    ELSIF NOT has_ids AND NOT EXISTS (SELECT FROM moving.columns m WHERE (m.tbl, m.col) = (swap.tbl, swap.col)) THEN
        RAISE undefined_column USING MESSAGE = format('column %s.%I has not been prepared', tbl, col),
            HINT = format('CALL moving.prepare(%L, %L) first. If the column is bigint already: SELECT * FROM snowflake_adopt(%1$L, %2$L)', tbl, col);
    END IF;
    PERFORM set_config('lock_timeout', (1000 * extract(epoch FROM longest_wait))::bigint || 'ms', true);
    FOR t IN SELECT DISTINCT m.tbl::oid FROM moving.columns m WHERE NOT is_swapped OR m.tbl = swap.tbl ORDER BY 1 LOOP
        CALL moving.lock(t, 'ACCESS EXCLUSIVE');
    END LOOP;

    -- What is not ready.
    SELECT string_agg(DISTINCT what, '; ') INTO missing FROM (
        SELECT format('column %s.%s has not been prepared', conrelid::regclass, a.attname) AS what
        FROM moving.columns m JOIN pg_attribute t ON t.attrelid = m.tbl AND t.attname = m.col
        JOIN pg_constraint f ON contype = 'f' AND confrelid = m.tbl
        CROSS JOIN unnest(conkey, confkey) AS k (own, other)
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = own
        WHERE other = t.attnum AND a.atttypid IN ('int2'::regtype, 'int4'::regtype)
            AND NOT EXISTS (SELECT FROM moving.columns n WHERE n.tbl = conrelid AND n.col = a.attname)
        UNION ALL
        SELECT format('CALL moving.check() has not proved column %s.%s', m.tbl, m.new) FROM moving.columns m
        WHERE NOT is_swapped AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = m.tbl AND conname = m.new AND convalidated)
        UNION ALL
        SELECT format('CALL moving.validate() has not validated constraint %I of %s', k.name, k.tbl) FROM moving.constraints k
        WHERE EXISTS (SELECT FROM moving.columns WHERE NOT is_swapped)
        UNION ALL
        SELECT format('the index for %s is missing or invalid', o) FROM moving.indexes() o WHERE NOT moving.is_made(o)
        UNION ALL
        SELECT h.what FROM moving.columns m, moving.hindrances(m.tbl, m.col, m.subscribers_are_ready) h WHERE NOT is_swapped
        UNION ALL
        SELECT moving.obstacles(k.tbl, k.col) FROM (SELECT k.tbl, k.col FROM moving.keys() k WHERE NOT is_swapped
            UNION SELECT swap.tbl, swap.col WHERE NOT has_ids) k
    ) problems WHERE what IS NOT NULL;
    IF missing IS NOT NULL THEN
        SELECT string_agg(DISTINCT h.advice, ' ') INTO advice
        FROM moving.columns m, moving.hindrances(m.tbl, m.col, m.subscribers_are_ready) h WHERE NOT is_swapped;
        RAISE EXCEPTION 'the swap is not prepared' USING DETAIL = missing, HINT = concat_ws(' ', 'Nothing was changed.', advice);
    END IF;

    -- Before anything is changed. The key is one that no row has, and that fits.
    CREATE TEMPORARY TABLE moving_before (of regclass, place bigint, outcome text[]) ON COMMIT DROP;
    IF is_tried THEN
        EXECUTE format('SELECT CASE WHEN max(%1$I) < (CASE atttypid WHEN ''int2''::regtype THEN 32767 WHEN ''int4''::regtype THEN 2147483647 '
            'ELSE 9223372036854775807 END) THEN max(%1$I)::bigint + 1 WHEN max(%1$I) IS NULL THEN 1 ELSE min(%1$I)::bigint - 1 END '
            'FROM pg_attribute LEFT JOIN %2$s ON true WHERE attrelid = $1 AND attname = $2 GROUP BY atttypid', col, tbl) INTO id USING tbl, col;
        INSERT INTO moving_before SELECT * FROM moving.outcomes(tbl, col, id, has_ids);
    END IF;
    IF EXISTS (SELECT FROM moving.columns WHERE NOT is_swapped) THEN
        CALL moving.change_places();
    END IF;
    -- With all its arguments, nothing else is meant than the extension's function.
    IF NOT has_ids THEN
        EXECUTE format('INSERT INTO moving.result SELECT $1, $2, a.* FROM %s($1, $2, $3) a', moving.of_extension('snowflake_adopt'))
            USING swap.tbl, swap.col, 'refuse'::text;
    END IF;
    IF is_tried THEN
        EXECUTE 'SELECT ' || (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
            WHERE attrelid = tbl AND attname = col) INTO id;
        -- What fails for a reason of its own did so before; and other values agree with other rows, or do not.
        SELECT a.of, a.outcome[3] AS problem INTO failed FROM moving.outcomes(tbl, col, id, true) a JOIN moving_before b USING (of, place)
        WHERE a.outcome[2] NOT IN ('23505', '23503', '23P01') AND (b.outcome IS NULL OR b.outcome[1]::integer > a.outcome[1]::integer
            OR b.outcome[1] = a.outcome[1] AND b.outcome[2] <> a.outcome[2] AND a.outcome[2] <> '23502') LIMIT 1;
        IF FOUND AND is_waived THEN
            RAISE WARNING USING MESSAGE = format('rows of table %s could not be written any more', failed.of), DETAIL = failed.problem,
                HINT = 'The columns are swapped anyway, because of pg_snowflake.waive. Fix what failed.';
        ELSIF FOUND THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = format('rows of table %s could not be written any more', failed.of),
                DETAIL = 'A test row failed that could be written before the swap: ' || failed.problem,
                HINT = 'Nothing was changed. Fix what failed, and call this again; or CALL moving.abandon().';
        END IF;
    END IF;
    DROP TABLE moving_before;
    SELECT string_agg(format('CALL moving.swap(%L, %L)', k.tbl, k.col), '; ' ORDER BY k.tbl::text, k.col) INTO waits
    FROM moving.keys() k JOIN pg_attribute a ON attrelid = k.tbl AND attname = k.col
    WHERE (attidentity <> '' OR atthasdef) AND NOT EXISTS (SELECT FROM moving.result r WHERE (r.tbl, r.col) = (k.tbl, k.col));
    IF waits IS NOT NULL THEN
        RAISE NOTICE 'other prepared columns keep what makes their values' USING HINT = 'To give them IDs, too, before moving.finish(): ' || waits;
    END IF;
END $$;

-- Validates what the swap has made again.
CREATE PROCEDURE moving.validate() LANGUAGE plpgsql AS $$
DECLARE
    path pg_catalog.text := pg_catalog.current_setting('search_path');
    i pg_catalog.record;
    validation pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR i IN SELECT * FROM moving.constraints LOOP
        CALL moving.lock(i.tbl, 'SHARE UPDATE EXCLUSIVE');
        DELETE FROM moving.constraints WHERE (tbl, name) = (i.tbl, i.name);
        IF i.was_valid THEN
            validation := format('ALTER TABLE %s VALIDATE CONSTRAINT %I', i.tbl, i.name);
            -- It may call functions of the table's owner, which find their objects where they always do.
            PERFORM set_config('search_path', path, true);
            EXECUTE validation;
        END IF;
        COMMIT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    END LOOP;
END $$;

-- Drops the old columns. After it: SELECT * FROM moving.result, and CALL moving.remove().
CREATE PROCEDURE moving.finish() LANGUAGE plpgsql AS $$
DECLARE
    c moving.columns;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF EXISTS (SELECT FROM moving.constraints) OR EXISTS (SELECT FROM moving.columns WHERE NOT is_swapped) THEN
        RAISE EXCEPTION 'CALL moving.swap() and moving.validate() first';
    END IF;
    FOR c IN SELECT * FROM moving.columns LOOP
        CALL moving.lock(c.tbl, 'ACCESS EXCLUSIVE');
        EXECUTE format('ALTER TABLE %s DROP COLUMN %I', c.tbl, c.new || '_old');
        DELETE FROM moving.columns WHERE (tbl, col) = (c.tbl, c.col);
        COMMIT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    END LOOP;
END $$;

-- Before the swap: takes everything back.
CREATE PROCEDURE moving.abandon() LANGUAGE plpgsql AS $$
DECLARE
    c moving.columns;
    number pg_catalog.int2;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR c IN SELECT * FROM moving.columns WHERE NOT is_swapped LOOP
        CALL moving.lock(c.tbl, 'ACCESS EXCLUSIVE');
        SELECT attnum INTO number FROM pg_attribute WHERE attrelid = c.tbl AND attname = c.col;
        -- The proof goes with the column, and first.
        EXECUTE format('ALTER TABLE %s DROP COLUMN %I', c.tbl, c.new);
        EXECUTE format('DROP TRIGGER %I ON %s', 'zzz_moving_' || number, c.tbl);
        EXECUTE format('DROP FUNCTION moving.%I()', c.tbl::oid || '_zzz_moving_' || number);
        DELETE FROM moving.columns WHERE (tbl, col) = (c.tbl, c.col);
        COMMIT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    END LOOP;
END $$;

-- After moving.finish(), and before moving.remove(): the key is made by what made it before, and it and the columns that refer to it get their old
-- type back, if all values fit. Rewrites the tables, and locks them until it is done. One transaction.
CREATE PROCEDURE moving.take_back(tbl regclass, col name, longest_wait interval DEFAULT '5 s') LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t record;
    statement text;
    wide bigint;
    problems text[] := '{}';
BEGIN
    IF EXISTS (SELECT FROM moving.columns) THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'the move is not finished',
            HINT = 'Before the swap, CALL moving.abandon() takes everything back. After it, CALL moving.validate() and moving.finish() first.';
    ELSIF NOT EXISTS (SELECT FROM moving.types y WHERE (y.tbl, y.col) = (take_back.tbl, take_back.col)) THEN
        RAISE undefined_column USING MESSAGE = format('column %s.%I was not moved in stages', tbl, col);
    END IF;
    PERFORM set_config('lock_timeout', (1000 * extract(epoch FROM longest_wait))::bigint || 'ms', true);
    CREATE TEMPORARY TABLE moving_back ON COMMIT DROP AS
    SELECT y.tbl AS of, y.col AS own, y.type FROM moving.types y WHERE (y.tbl, y.col) = (take_back.tbl, take_back.col) OR EXISTS (
        SELECT FROM pg_constraint f CROSS JOIN unnest(conkey, confkey) AS k (own, other)
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.own JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = k.other
        WHERE contype = 'f' AND conrelid = y.tbl AND a.attname = y.col AND confrelid = take_back.tbl AND b.attname = take_back.col);
    FOR t IN SELECT of FROM moving_back GROUP BY of ORDER BY of::oid LOOP
        CALL moving.lock(t.of, 'ACCESS EXCLUSIVE');
    END LOOP;
    FOR t IN SELECT *, CASE type WHEN 'smallint' THEN 32767 ELSE 2147483647 END AS highest FROM moving_back LOOP
        EXECUTE format('SELECT count(*) FROM %s WHERE %I NOT BETWEEN -1 - $1 AND $1', t.of, t.own) INTO wide USING t.highest;
        IF wide > 0 THEN
            problems := problems || format('column %s.%I has values that %s does not hold: %s', t.of, t.own, t.type, wide);
        END IF;
    END LOOP;
    IF problems <> '{}' THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('column %s.%I cannot get its old type back', tbl, col),
            DETAIL = array_to_string(problems, '; '),
            HINT = format('Give such rows other keys. Or keep bigint: SELECT snowflake_release(%L, %L) has the old sequence make the keys again.', tbl, col);
    END IF;
    IF EXISTS (SELECT FROM moving.result r WHERE (r.tbl, r.col) = (take_back.tbl, take_back.col)) THEN
        EXECUTE format('SELECT %s($1, $2, NULL, false)', moving.of_extension('snowflake_release', 'regclass, name, bigint, boolean'))
            USING tbl, col;
    END IF;
    FOR t IN SELECT of, string_agg(format('ALTER COLUMN %I TYPE %s', own, type), ', ') AS changes FROM moving_back GROUP BY of ORDER BY of::oid LOOP
        EXECUTE format('ALTER TABLE %s %s', t.of, t.changes);
    END LOOP;
    -- As in the swap.
    FOR statement IN SELECT renewal FROM moving.functions() WHERE renewal IS NOT NULL LOOP
        EXECUTE statement;
    END LOOP;
    DELETE FROM moving.types y USING moving_back WHERE (y.tbl, y.col) = (of, own);
    DELETE FROM moving.result r WHERE (r.tbl, r.col) = (take_back.tbl, take_back.col);
    DROP TABLE moving_back;
END $$;

-- The last step: nothing is left to be done, or it says what is.
CREATE PROCEDURE moving.remove() LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    missing text;
BEGIN
    SELECT string_agg(what, '; ' ORDER BY what) INTO missing FROM (
        SELECT format(CASE WHEN is_swapped THEN 'CALL moving.finish() has not dropped the old column of %s.%I'
            ELSE 'CALL moving.swap() has not put column %2$I of %1$s into its place' END, tbl, col) AS what FROM moving.columns
        UNION ALL
        SELECT format('CALL moving.validate() has not validated constraint %I of %s', name, tbl) FROM moving.constraints
        UNION ALL
        SELECT format('column %s.%I is of type %s, and refers to a key that is wider', conrelid::regclass, a.attname,
            format_type(a.atttypid, NULL))
        FROM moving.result r JOIN pg_attribute t ON t.attrelid = r.tbl AND t.attname = r.col
        JOIN pg_constraint ON contype = 'f' AND confrelid = r.tbl CROSS JOIN unnest(conkey, confkey) AS k (own, other)
        JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = own
        WHERE other = t.attnum AND a.atttypid IN ('int2'::regtype, 'int4'::regtype)
    ) steps;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'the move is not finished' USING DETAIL = missing,
            HINT = 'Before the swap, CALL moving.abandon() takes everything back.';
    END IF;
    DROP SCHEMA moving CASCADE;
END $$;

-- What stands in this schema becomes statements of the role that moves the tables, so nobody else may do anything here, whatever ALTER
-- DEFAULT PRIVILEGES gives.
DO $$
DECLARE
    other text;
BEGIN
    FOR other IN
        SELECT 'PUBLIC'
        UNION
        SELECT grantee::regrole::text FROM (
            SELECT nspacl AS acl FROM pg_namespace WHERE oid = 'moving'::regnamespace
            UNION ALL SELECT relacl FROM pg_class WHERE relnamespace = 'moving'::regnamespace
            UNION ALL SELECT proacl FROM pg_proc WHERE pronamespace = 'moving'::regnamespace
        ) made, aclexplode(acl) WHERE grantee NOT IN (0, quote_ident(current_user)::regrole)
    LOOP
        EXECUTE format('REVOKE ALL ON SCHEMA moving FROM %s', other);
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA moving FROM %s', other);
        EXECUTE format('REVOKE ALL ON ALL ROUTINES IN SCHEMA moving FROM %s', other);
    END LOOP;
END $$;
-- But this is called by all who write, between check() and swap(): by OID, so it takes no USAGE on the schema.
GRANT EXECUTE ON FUNCTION moving.same TO PUBLIC;

COMMIT;
