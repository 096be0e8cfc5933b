-- Gives tables whose keys are uuid or text keys of snowflake_next(). Read docs/moving-in.md first.
--
--   \i from-uuid.sql
--   CALL from_uuid.move('users', keep_as => 'uuid', order_by => 'created_at');
--   DROP SCHEMA from_uuid CASCADE;
--
-- The key keeps its name, its place, its indexes and what refers to it, and becomes bigint; so do all columns that refer to it. The old
-- key stays as a column beside it, with its default, UNIQUE and NOT NULL: what clients know of rows, they still find. Old rows get IDs of
-- now, in the order of a column that says when they were made. A call is one transaction: it locks all these tables and rewrites them.

-- As the owner of these tables: functions of their indexes and constraints run as whoever calls this. All names are looked up in pg_catalog
-- alone, whatever the session's search_path is.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;

CREATE SCHEMA from_uuid;
COMMENT ON SCHEMA from_uuid IS 'from-uuid.sql of pg_snowflake 0.4.0';

-- snowflake_next() of the extension, by its library: whoever may create functions in its schema could have made others of the same name. Or
-- that of the extension in SQL, by its owner: the caller, the database's owner, or a superuser.
CREATE FUNCTION from_uuid.next() RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I()', nspname, proname)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_language l ON l.oid = prolang JOIN pg_roles r ON r.oid = proowner
    WHERE proname = 'snowflake_next' AND pronargs = 0 AND CASE lanname
        WHEN 'c' THEN probin ~ '(^|/)pg_snowflake$' AND EXISTS (SELECT FROM pg_extension e JOIN pg_depend ON refobjid = e.oid
            WHERE extname = 'pg_snowflake' AND refclassid = 'pg_extension'::regclass AND classid = 'pg_proc'::regclass AND objid = p.oid)
        ELSE proowner = (SELECT nspowner FROM pg_namespace WHERE nspname = '_snowflake')
            AND (rolsuper OR rolname = current_user OR proowner = (SELECT datdba FROM pg_database WHERE datname = current_database())) END
    ORDER BY lanname <> 'c' LIMIT 1 $$;

-- The rows of a table in the order in which PostgreSQL rewrites it, each with the ID for one of its columns: by one join, and then from a cursor. To
-- look each key up would take ten times as long, with the tables locked.
CREATE PROCEDURE from_uuid.line_up(tbl regclass, col name, number smallint, collate_as text) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lined_up text := 'from_uuid_' || number;
    rows refcursor := lined_up;
    missing text;
BEGIN
    EXECUTE format('CREATE TEMPORARY TABLE %1$I ON COMMIT DROP AS SELECT t.ctid AS place, t.%2$I::text AS key, i.id FROM %3$s t '
        'LEFT JOIN from_uuid_ids i ON i.key = t.%2$I::text%4$s', lined_up, col, tbl, collate_as);
    EXECUTE format('SELECT min(key) FROM %I WHERE id IS NULL AND key IS NOT NULL', lined_up) INTO missing;
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'no row has the key %', missing;
    END IF;
    OPEN rows FOR EXECUTE format('SELECT key, id FROM %I ORDER BY place', lined_up);
END $$;

-- The ID of the next row, which is to have this key.
CREATE FUNCTION from_uuid.id_of(lined_up text, key text) RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rows refcursor := lined_up;
    next_key text;
    id bigint;
BEGIN
    FETCH rows INTO next_key, id;
    IF NOT FOUND OR next_key IS DISTINCT FROM key COLLATE "C" THEN
        RAISE EXCEPTION 'PostgreSQL reads the rows in another order: % comes before %', key, next_key;
    END IF;
    RETURN id;
END $$;

-- The primary key of the table, and all columns that hold its values: those of foreign keys, and of those that refer to these.
CREATE FUNCTION from_uuid.columns(tbl regclass) RETURNS TABLE (of regclass, number smallint, col name) LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE reached (relation, number) AS (
        SELECT conrelid, conkey[1] FROM pg_constraint WHERE conrelid = tbl AND contype = 'p' AND cardinality(conkey) = 1
        UNION
        SELECT conrelid, own FROM reached r JOIN pg_constraint ON contype = 'f' AND confrelid = r.relation
        CROSS JOIN unnest(conkey, confkey) AS k (own, other) WHERE other = r.number
    )
    SELECT relation::regclass, r.number, attname FROM reached r JOIN pg_attribute ON attrelid = relation AND attnum = r.number $$;

-- The roles (0 for PUBLIC) that may insert rows: of the table, of views that PostgreSQL writes through, of what has a rule that inserts.
CREATE FUNCTION from_uuid.writers(tbl regclass) RETURNS SETOF oid LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE ways (relation, privilege) AS (
        SELECT tbl::oid, 'INSERT'
        UNION
        SELECT ev_class, CASE ev_type WHEN '2' THEN 'UPDATE' WHEN '4' THEN 'DELETE' ELSE 'INSERT' END
        FROM ways JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite w ON w.oid = objid JOIN pg_class c ON c.oid = relation JOIN pg_namespace n ON n.oid = relnamespace
        JOIN pg_class v ON v.oid = ev_class
        WHERE CASE ev_type WHEN '1' THEN pg_relation_is_updatable(ev_class, false) & 8 <> 0
            ELSE strpos(pg_get_ruledef(w.oid), format('INSERT INTO %I.%I ', nspname, c.relname)) > 0 END
            -- It writes as its owner, and anybody can create one.
            AND CASE privilege WHEN 'DELETE' THEN has_table_privilege(v.relowner, relation, privilege)
                ELSE has_any_column_privilege(v.relowner, relation, privilege) END
    )
    SELECT grantee FROM ways JOIN pg_class c ON c.oid = relation, aclexplode(coalesce(relacl, acldefault('r', relowner)))
    WHERE privilege_type = privilege
    UNION
    SELECT grantee FROM ways JOIN pg_attribute ON attrelid = relation, aclexplode(attacl) WHERE privilege_type = privilege
    UNION
    SELECT oid FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, 'pg_write_all_data', 'USAGE') $$;

-- What would be lost, or would silently mean the old key.
CREATE FUNCTION from_uuid.obstacles(tbl regclass) RETURNS SETOF text LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('table %s has no primary key of one column that is uuid or text', tbl) WHERE NOT EXISTS (
        SELECT FROM from_uuid.columns(tbl) c JOIN pg_attribute ON attrelid = of AND attnum = number
        WHERE of = tbl AND atttypid IN ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype, 'bpchar'::regtype))
    UNION ALL
    SELECT format('table %s belongs to %s: SET ROLE %2$s for all of the move, or give all these tables one owner', of, relowner::regrole)
    FROM (SELECT DISTINCT of FROM from_uuid.columns(tbl)) t JOIN pg_class ON oid = of WHERE relowner <> quote_ident(current_user)::regrole
    UNION ALL
    -- A default is evaluated as whoever inserts.
    SELECT format('%s may insert into %s, and not execute %s: GRANT EXECUTE ON FUNCTION %3$s TO %1$s',
        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, tbl, from_uuid.next())
    FROM from_uuid.writers(tbl) AS grantee
    WHERE NOT CASE grantee WHEN 0 THEN has_function_privilege('public', from_uuid.next(), 'EXECUTE')
        ELSE has_function_privilege(grantee, from_uuid.next(), 'EXECUTE') END
    UNION ALL
    SELECT format('table %s is partitioned, a partition, or part of an inheritance tree', of) FROM from_uuid.columns(tbl)
    JOIN pg_class c ON c.oid = of WHERE relkind <> 'r' OR EXISTS (SELECT FROM pg_inherits WHERE of IN (inhrelid, inhparent))
    UNION ALL
    SELECT format('foreign key %I of %s has several columns', conname, conrelid::regclass) FROM pg_constraint f
    WHERE contype = 'f' AND cardinality(conkey) > 1 AND EXISTS (SELECT FROM from_uuid.columns(tbl) c
        WHERE of = conrelid AND number = ANY (conkey) OR of = confrelid AND number = ANY (confkey))
    UNION ALL
    SELECT format('%s.%I refers to %s, too', c.of, c.col, confrelid::regclass) FROM from_uuid.columns(tbl) c
    JOIN pg_constraint ON contype = 'f' AND conrelid = of AND number = ANY (conkey)
    WHERE NOT EXISTS (SELECT FROM from_uuid.columns(tbl) o WHERE o.of = confrelid AND o.number = ANY (confkey))
    UNION ALL
    SELECT DISTINCT format('%s depends on %s.%I', CASE WHEN classid = 'pg_rewrite'::regclass
        THEN (SELECT pg_describe_object('pg_class'::regclass, ev_class, 0) FROM pg_rewrite w WHERE w.oid = objid)
        ELSE pg_describe_object(classid, objid, objsubid) END, of, col)
    FROM from_uuid.columns(tbl) JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = of AND refobjsubid = number
    WHERE classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_proc'::regclass) AND deptype <> 'i'
    UNION ALL
    -- The new keys are not replicated.
    SELECT DISTINCT format('publication %I has %s, and its subscribers would keep the old keys: take it out, and copy it to them anew after the move',
        p.pubname, of)
    FROM from_uuid.columns(tbl) JOIN pg_class c ON c.oid = of JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_publication_tables t ON schemaname = nspname AND tablename = relname
    JOIN pg_publication p ON p.pubname = t.pubname AND (pubinsert OR pubupdate OR pubdelete)
    UNION ALL
    SELECT DISTINCT format('foreign key %I of %s has triggers that are disabled, and would be made again with all of them enabled',
        conname, conrelid::regclass)
    FROM from_uuid.columns(tbl) JOIN pg_constraint k
        ON contype = 'f' AND (conrelid = of AND number = ANY (conkey) OR confrelid = of AND number = ANY (confkey))
    WHERE EXISTS (SELECT FROM pg_trigger WHERE tgconstraint = k.oid AND tgenabled <> 'O')
    UNION ALL
    SELECT DISTINCT format('%s belongs to %s: ALTER STATISTICS ... OWNER TO %s', pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0),
        stxowner::regrole, quote_ident(current_user))
    FROM from_uuid.columns(tbl) JOIN pg_statistic_ext s ON stxrelid = of AND EXISTS (SELECT FROM pg_depend
        WHERE classid = 'pg_statistic_ext'::regclass AND objid = s.oid AND refclassid = 'pg_class'::regclass AND refobjid = of AND refobjsubid = number)
    WHERE stxowner <> quote_ident(current_user)::regrole AND coalesce(stxstattarget, -1) >= 0
    UNION ALL
    SELECT format('CHECK constraint %I of %s depends on %I', conname, of, col) FROM from_uuid.columns(tbl)
    JOIN pg_constraint ON contype = 'c' AND conrelid = of AND number = ANY (conkey)
    UNION ALL
    SELECT format('%s.%I has a default', of, col) FROM from_uuid.columns(tbl)
    JOIN pg_attribute ON attrelid = of AND attnum = number AND atthasdef WHERE NOT EXISTS (
        SELECT FROM pg_constraint WHERE conrelid = of AND contype = 'p' AND of = tbl AND conkey = ARRAY[number]) $$;

CREATE PROCEDURE from_uuid.move(tbl regclass, keep_as name, order_by name DEFAULT NULL) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key record;
    f record;
    problems text;
    tables text;
    left_out text[];
    synchronize text := current_setting('synchronize_seqscans');
    next text := from_uuid.next();
BEGIN
    IF next IS NULL THEN
        RAISE EXCEPTION 'there is no function snowflake_next()' USING HINT = 'CREATE EXTENSION pg_snowflake;';
    END IF;
    SELECT string_agg(of::text, ', ' ORDER BY of::oid) INTO tables FROM (SELECT DISTINCT of FROM from_uuid.columns(tbl)) t;
    IF tables IS NOT NULL THEN
        -- While it waits, all others wait behind it: so not for long.
        IF current_setting('lock_timeout') = '0' THEN
            PERFORM set_config('lock_timeout', '5s', true);
        END IF;
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', tables);
    END IF;
    -- Names are looked up again when the locks are granted.
    IF tables IS DISTINCT FROM (SELECT string_agg(of::text, ', ' ORDER BY of::oid) FROM (SELECT DISTINCT of FROM from_uuid.columns(tbl)) t) THEN
        RAISE serialization_failure USING MESSAGE = format('tables were changed by others meanwhile: %s', tables);
    END IF;
    SELECT string_agg(o, '; ') INTO problems FROM from_uuid.obstacles(tbl) o;
    IF problems IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot get other keys yet', tbl USING DETAIL = problems;
    END IF;
    SELECT col, format_type(atttypid, atttypmod) || coalesce(collate_as, '') AS type, coalesce(collate_as, '') AS collate_as,
        pg_get_expr(adbin, adrelid) AS "default" INTO key
    FROM from_uuid.columns(tbl) JOIN pg_attribute ON attrelid = of AND attnum = number
    LEFT JOIN LATERAL (SELECT format(' COLLATE %I.%I', nspname, collname) AS collate_as
        FROM pg_collation c JOIN pg_namespace n ON n.oid = collnamespace WHERE c.oid = attcollation) written ON true
    LEFT JOIN pg_attrdef ON adrelid = of AND adnum = number WHERE of = tbl AND number =
        (SELECT conkey[1] FROM pg_constraint WHERE conrelid = tbl AND contype = 'p');

    -- The foreign keys say which columns these are, and go first.
    CREATE TEMPORARY TABLE from_uuid_columns ON COMMIT DROP AS SELECT * FROM from_uuid.columns(tbl);
    EXECUTE format('CREATE TEMPORARY TABLE from_uuid_ids (key text%s PRIMARY KEY, id bigint NOT NULL) ON COMMIT DROP', key.collate_as);
    EXECUTE format('INSERT INTO from_uuid_ids SELECT key, %s FROM (SELECT %I::text AS key FROM %s ORDER BY %I) k',
        next, key.col, tbl, coalesce(order_by, key.col));
    ANALYZE from_uuid_ids;

    CREATE TEMPORARY TABLE from_uuid_keys ON COMMIT DROP AS
    SELECT DISTINCT conrelid::regclass AS of, conname, pg_get_constraintdef(k.oid) AS definition, obj_description(k.oid, 'pg_constraint') AS comment
    FROM from_uuid_columns c JOIN pg_constraint k ON contype = 'f'
        AND (conrelid = c.of AND c.number = ANY (conkey) OR confrelid = c.of AND c.number = ANY (confkey));
    FOR f IN SELECT * FROM from_uuid_keys LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', f.of, f.conname);
    END LOOP;
    EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', tbl, keep_as, key.type);
    -- Who may do something with the key may do it with the old one, too.
    FOR f IN
        SELECT format('GRANT %s (%I) ON %s TO %s%s', privilege_type, keep_as, tbl, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END) AS privilege
        FROM pg_attribute, aclexplode(attacl) WHERE attrelid = tbl AND attname = key.col
    LOOP
        EXECUTE f.privilege;
    END LOOP;
    -- PostgreSQL makes indexes and statistics again without these.
    left_out := ARRAY(
        SELECT format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', indexrelid::regclass, attnum, attstattarget)
        FROM (SELECT DISTINCT of FROM from_uuid_columns) t JOIN pg_index ON indrelid = of
        JOIN pg_attribute ON attrelid = indexrelid AND coalesce(attstattarget, -1) >= 0
        UNION ALL
        SELECT DISTINCT format('ALTER STATISTICS %I.%I SET STATISTICS %s', nspname, stxname, stxstattarget)
        FROM from_uuid_columns JOIN pg_depend ON classid = 'pg_statistic_ext'::regclass AND refclassid = 'pg_class'::regclass
            AND refobjid = of AND refobjsubid = number JOIN pg_statistic_ext s ON s.oid = objid
        JOIN pg_namespace n ON n.oid = stxnamespace WHERE coalesce(stxstattarget, -1) >= 0);
    -- What stands in USING is what the row had before, so that no trigger runs, and no row is visited twice.
    PERFORM set_config('synchronize_seqscans', 'off', true);
    FOR f IN SELECT of, array_agg(col) AS cols, array_agg(number) AS numbers, string_agg(format('ALTER COLUMN %1$I DROP DEFAULT, ALTER COLUMN %1$I '
            'TYPE bigint USING from_uuid.id_of(%2$L, %1$I::text)', col, 'from_uuid_' || number), ', ') AS changes
        FROM from_uuid_columns GROUP BY of ORDER BY of = tbl
    LOOP
        FOR i IN 1..cardinality(f.cols) LOOP
            CALL from_uuid.line_up(f.of, f.cols[i], f.numbers[i], key.collate_as);
        END LOOP;
        EXECUTE format('ALTER TABLE %s %s%s', f.of, f.changes,
            CASE WHEN f.of = tbl THEN format(', ALTER COLUMN %I TYPE %s USING %I', keep_as, key.type, key.col) ELSE '' END);
        FOR i IN 1..cardinality(f.cols) LOOP
            EXECUTE format('CLOSE %I', 'from_uuid_' || f.numbers[i]);
            EXECUTE format('DROP TABLE %I', 'from_uuid_' || f.numbers[i]);
        END LOOP;
    END LOOP;
    PERFORM set_config('synchronize_seqscans', synchronize, true);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s, ALTER COLUMN %I SET NOT NULL, ADD UNIQUE (%4$I)',
        tbl, key.col, next, keep_as);
    IF key."default" IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', tbl, keep_as, key."default");
    END IF;
    FOR f IN SELECT * FROM from_uuid_keys LOOP
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', f.of, f.conname, f.definition);
        EXECUTE format('COMMENT ON CONSTRAINT %I ON %s IS %L', f.conname, f.of, f.comment);
    END LOOP;
    FOR f IN SELECT unnest(left_out) AS statement LOOP
        EXECUTE f.statement;
    END LOOP;
    DROP TABLE from_uuid_columns, from_uuid_ids, from_uuid_keys;
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
            SELECT nspacl AS acl FROM pg_namespace WHERE oid = 'from_uuid'::regnamespace
            UNION ALL SELECT relacl FROM pg_class WHERE relnamespace = 'from_uuid'::regnamespace
            UNION ALL SELECT proacl FROM pg_proc WHERE pronamespace = 'from_uuid'::regnamespace
        ) made, aclexplode(acl) WHERE grantee NOT IN (0, quote_ident(current_user)::regrole)
    LOOP
        EXECUTE format('REVOKE ALL ON SCHEMA from_uuid FROM %s', other);
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA from_uuid FROM %s', other);
        EXECUTE format('REVOKE ALL ON ALL ROUTINES IN SCHEMA from_uuid FROM %s', other);
    END LOOP;
END $$;

COMMIT;
