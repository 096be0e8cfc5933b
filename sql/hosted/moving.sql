-- Keys that are bigint already, from a sequence or an identity to snowflake IDs, and back: the crate moving in PL/pgSQL, as far as no column
-- becomes wider. What is on record is written as the library writes it, so each can lead the other's columns back.

-- The options of a sequence, without its type.
CREATE FUNCTION _snowflake.sequence_clauses(sequence regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('START WITH %s INCREMENT BY %s %s %s CACHE %s%s', seqstart, seqincrement,
        CASE WHEN seqmin = CASE WHEN seqincrement > 0 THEN 1 ELSE lowest END THEN 'NO MINVALUE' ELSE format('MINVALUE %s', seqmin) END,
        CASE WHEN seqmax = CASE WHEN seqincrement > 0 THEN highest ELSE -1 END THEN 'NO MAXVALUE' ELSE format('MAXVALUE %s', seqmax) END,
        seqcache, CASE WHEN seqcycle THEN ' CYCLE' ELSE '' END)
    FROM pg_sequence, LATERAL (SELECT CASE seqtypid WHEN 'smallint'::regtype THEN -32768 WHEN 'integer'::regtype THEN -2147483648
        ELSE (-9223372036854775808)::bigint END AS lowest, CASE seqtypid WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype
        THEN 2147483647 ELSE 9223372036854775807 END AS highest) AS limits
    WHERE seqrelid = sequence
    $$;

-- Statements that give a sequence that is made again its privileges, and no others, whatever ALTER DEFAULT PRIVILEGES gives.
CREATE FUNCTION _snowflake.sequence_grants(sequence regclass, quoted text) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH given AS (
        SELECT DISTINCT g.grantee FROM pg_class AS c JOIN pg_default_acl AS a ON a.defaclrole = c.relowner AND a.defaclobjtype = 'S'
            AND a.defaclnamespace IN (0, c.relnamespace), aclexplode(a.defaclacl) AS g
        WHERE c.oid = sequence
    )
    SELECT s.statement FROM (
        SELECT 1 AS step, g.grantee::bigint AS place, format('REVOKE ALL ON SEQUENCE %s FROM %s', quoted,
            CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END) AS statement
        FROM given AS g, pg_class AS c WHERE c.oid = sequence AND g.grantee <> c.relowner
        UNION ALL
        SELECT 2, min(g.place), format('GRANT %s ON SEQUENCE %s TO %s%s', string_agg(g.privilege_type, ', ' ORDER BY g.privilege_type), quoted,
            CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END)
        FROM pg_class AS c, aclexplode(c.relacl) WITH ORDINALITY AS g (grantor, grantee, privilege_type, is_grantable, place)
        WHERE c.oid = sequence AND g.grantee <> c.relowner GROUP BY g.grantee, g.is_grantable
    ) AS s ORDER BY s.step, s.place
    $$;

-- A name that no relation of a schema has.
CREATE FUNCTION _snowflake.free_name(schema oid, wanted text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    base text := wanted;
    name text;
BEGIN
    WHILE octet_length(base) > 58 LOOP
        base := left(base, -1);
    END LOOP;
    name := base;
    FOR i IN 1..10000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM pg_class WHERE relname = name AND relnamespace = schema);
        name := base || i;
    END LOOP;
    RETURN name;
END $$;

-- Who has a lock on a relation, as a sentence. What is shown of another's session is what pg_stat_activity shows.
CREATE FUNCTION _snowflake.holders_of(relation oid) RETURNS text
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT pg_stat_clear_snapshot();
    SELECT coalesce('It is held by ' || string_agg(concat(coalesce(
            'the prepared transaction ' || quote_literal(p.gid) || to_char(p.prepared, '", since "YYYY-MM-DD HH24:MI:SSOF'),
            'process ' || l.pid || ' of ' || coalesce('role ' || quote_ident(a.usename), a.backend_type, 'a role that is not shown')),
        to_char(a.xact_start, '", since "YYYY-MM-DD HH24:MI:SSOF') || ', whose ' || CASE a.state WHEN 'active' THEN '' ELSE 'last ' END
            || 'statement, of ' || to_char(a.query_start, 'HH24:MI:SS') || ', is: '
            || left(regexp_replace(a.query, '\s+', ' ', 'g'), 80) || CASE WHEN length(a.query) > 80 THEN '...' ELSE '' END),
        E';\nby ' ORDER BY a.xact_start, l.pid) || '.', 'Whoever had it has it no more.')
    FROM (
        SELECT DISTINCT k.pid, k.virtualtransaction FROM pg_locks AS k
        WHERE k.locktype = 'relation' AND k.relation = holders_of.relation AND k.granted AND k.pid IS DISTINCT FROM pg_backend_pid()
            AND k.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    ) AS l
    LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
    LEFT JOIN pg_locks AS t ON l.pid IS NULL AND t.virtualtransaction = l.virtualtransaction AND t.locktype = 'transactionid'
    LEFT JOIN pg_prepared_xacts AS p ON p.transaction = t.transactionid
    $$;

-- Checks what both ways need, and takes the locks.
CREATE FUNCTION _snowflake.check_moving(k record, locks boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    longest CONSTANT text := current_setting('lock_timeout');
    c record;
BEGIN
    FOR c IN SELECT format('%I.%I', n.nspname, t.relname) AS quoted, pg_get_userbyid(t.relowner) AS owner, f AS tbl, t.relkind
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace ORDER BY t.oid LOOP
        IF NOT pg_has_role(c.owner, 'USAGE') THEN
            RAISE insufficient_privilege USING MESSAGE = format('must be owner of table %s', c.quoted),
                DETAIL = 'These would have to change: the table itself, its partitions and the tables that inherit from it, and tables with '
                    'foreign keys that refer to it.';
        ELSIF c.owner <> current_user THEN
            RAISE insufficient_privilege USING
                MESSAGE = format('table %s belongs to role %I, and the caller is role %I', c.quoted, c.owner, current_user),
                DETAIL = 'Code of the table, such as expressions of its indexes, would run as the caller: the extension in SQL cannot run it '
                    'as the owner alone, as the library does.',
                HINT = format('Have role %1$I call this in a session of its own. If you trust that role''s code with your rights, SET ROLE '
                    '%1$I does as well.', c.owner);
        END IF;
        PERFORM _snowflake.check_schema(c.tbl);
    END LOOP;
    IF NOT locks THEN
        RETURN;
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE active_sql_transaction USING MESSAGE = 'a table can be moved in a READ COMMITTED transaction only',
            DETAIL = 'At other levels, the snapshot is older than the locks, and does not show what others committed in between.',
            HINT = 'Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
    -- While it waits, all others wait behind it: so not for long.
    IF longest = '0' THEN
        PERFORM set_config('lock_timeout', '5s', true);
    END IF;
    FOR c IN SELECT t.oid, format('%I.%I', n.nspname, t.relname) AS quoted FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f
        JOIN pg_namespace AS n ON n.oid = t.relnamespace WHERE t.relkind IN ('r', 'p') ORDER BY t.oid LOOP
        BEGIN
            PERFORM _snowflake.held(c.oid, 'ACCESS EXCLUSIVE');
        EXCEPTION WHEN lock_not_available THEN
            RAISE lock_not_available USING MESSAGE = format('the lock of %s was not granted in time', c.quoted),
                DETAIL = _snowflake.holders_of(c.oid),
                HINT = 'Nothing was changed. Call this again when those transactions have ended; SELECT pg_terminate_backend(...) ends one. A '
                    'call waits for lock_timeout, or 5 seconds where that is 0: while it waits, all others wait behind it.';
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', longest, true);
    IF to_regclass(k.quoted) IS DISTINCT FROM k.tbl::regclass THEN
        RAISE serialization_failure USING MESSAGE = format('others changed %s meanwhile', k.quoted),
            DETAIL = 'It was dropped or renamed while this call waited for it.', HINT = 'Nothing was changed by this call. Call it again.';
    END IF;
END $$;

-- The sequence that belongs to a column, with what is on record there.
CREATE FUNCTION _snowflake.sequence_of(k record) RETURNS record
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    marker CONSTANT text := '; snowflake_release() drops this sequence';
    s record;
BEGIN
    SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS quoted, q.seqtypid, q.seqmin, q.seqmax, q.seqincrement, r.comment,
            -- The type that it had, and its limits.
            CASE WHEN m.memo IS NOT NULL THEN w.was END AS was, CASE w.was WHEN 'smallint' THEN 32767 ELSE 2147483647 END AS was_highest, q.seqstart,
            m.memo, coalesce(m.memo IS NOT NULL AND r.is_marker, false) AS is_marker,
            nullif(CASE WHEN m.memo IS NOT NULL THEN r.line[1] ELSE r.comment END, '') AS users_comment,
            EXISTS (SELECT FROM pg_depend AS x WHERE x.refclassid = 'pg_class'::regclass AND x.refobjid = c.oid AND x.deptype = 'n'
                AND x.classid = 'pg_attrdef'::regclass AND NOT EXISTS (SELECT FROM pg_attrdef AS f WHERE f.oid = x.objid
                    AND f.adrelid IN (SELECT _snowflake.family_of(k.tbl)) AND f.adnum = k.attnum)) AS is_shared
        INTO s FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S' JOIN pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_sequence AS q ON q.seqrelid = c.oid,
            -- The last line that begins so, and what follows: the text of a default may have several lines.
            LATERAL (SELECT comment, line, right(line[2], length(marker)) = marker AS is_marker
                FROM (SELECT obj_description(c.oid, 'pg_class') AS comment) AS t,
                    regexp_match(t.comment, E'^(?:(.*)\n)?[[]snowflake_adopt: (.*)[]]$') AS line) AS r,
            LATERAL (SELECT CASE WHEN r.is_marker THEN left(r.line[2], -length(marker)) ELSE r.line[2] END AS typed) AS y,
            LATERAL (SELECT substring(y.typed, '; of type (smallint|integer)$') AS was) AS w,
            LATERAL (SELECT CASE WHEN w.was IS NULL THEN y.typed ELSE left(y.typed, -length('; of type ' || w.was)) END AS said) AS o,
            LATERAL (SELECT CASE WHEN o.said ~ '^(GENERATED (ALWAYS|BY DEFAULT) AS IDENTITY$|no default$|nextval\(\) of this sequence$|DEFAULT )'
                THEN o.said END AS memo) AS m
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = k.tbl AND d.refobjsubid = k.attnum
            AND d.deptype IN ('a', 'i') ORDER BY m.memo IS NULL, c.oid LIMIT 1;
    RETURN s;
END $$;

-- Whether a text that is put into a statement is one expression there, or else cannot be read. Nothing here has the parser read a text
-- without running it. So this takes it apart as the lexer does where standard_conforming_strings is on, and looks at what is not quoted:
-- a comma or a semicolon outside of parentheses would begin another command. Comments and dollar quotes, which pg_get_expr() never
-- writes, are refused.
CREATE FUNCTION _snowflake.is_one_expression(source text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    -- By the codes of its letters: those that are not of ASCII belong to it, whatever the locale says, and an E at its end begins no string.
    name CONSTANT text := E'[^\\u0001-@[-\\^`{-\\u007f][^\\u0001-#%-/:-@[-\\^`{-\\u007f]*';
    tokens CONSTANT text := E'[Ee]''(?:[^''\\\\]|\\\\.|'''')*''|''(?:[^'']|'''')*''|"(?:[^"]|"")*"|--|/[*]|' || name || '|.';
    token text;
    previous text := '';
    depth integer := 0;
BEGIN
    FOR token IN SELECT m[1] FROM regexp_matches(source, '(' || tokens || ')', 'g') AS m LOOP
        depth := depth + CASE WHEN token IN ('(', '[') THEN 1 WHEN token IN (')', ']') THEN -1 ELSE 0 END;
        -- A string that goes on in the next line is read as it begins, with an E or without.
        IF depth < 0 OR token = ',' AND depth = 0 OR token IN ('''', '"', '$', ';', '--', '/*')
            OR left(token, 1) = '''' AND right(previous, 1) = '''' THEN
            RETURN false;
        END IF;
        IF token !~ '^[[:space:]]' THEN
            previous := token;
        END IF;
    END LOOP;
    RETURN depth = 0 AND source ~ '[^[:space:]]';
END $$;

-- The columns that hold the values of a key: itself, and those that refer to it, also by way of others, partitions and tables that inherit.
CREATE FUNCTION _snowflake.reached_columns(tbl regclass, key smallint) RETURNS TABLE (relation oid, number smallint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    WITH RECURSIVE reached (relation, number) AS (
        SELECT tbl::oid, key
        UNION
        SELECT next.* FROM reached AS r, LATERAL (
            SELECT f.conrelid, pair.here FROM pg_constraint AS f, unnest(f.conkey, f.confkey) AS pair (here, there)
            WHERE f.contype = 'f' AND f.confrelid = r.relation AND pair.there = r.number
            UNION ALL
            SELECT i.inhrelid, heir.attnum FROM pg_attribute AS own JOIN pg_inherits AS i ON i.inhparent = own.attrelid
                JOIN pg_attribute AS heir ON heir.attrelid = i.inhrelid AND heir.attname = own.attname
            WHERE own.attrelid = r.relation AND own.attnum = r.number
            UNION ALL
            SELECT i.inhparent, parent.attnum FROM pg_attribute AS own JOIN pg_inherits AS i ON i.inhrelid = own.attrelid
                JOIN pg_attribute AS parent ON parent.attrelid = i.inhparent AND parent.attname = own.attname
            WHERE own.attrelid = r.relation AND own.attnum = r.number AND NOT parent.attisdropped
        ) AS next
    )
    SELECT * FROM reached
    $$;

-- Those that are narrower than bigint. Of partitions and tables that inherit, the one at the top is named.
CREATE FUNCTION _snowflake.narrow_columns(tbl regclass, key smallint) RETURNS TABLE (relation oid, number smallint, whole text, type_name text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT a.attrelid, a.attnum, format('%I.%I.%I', n.nspname, t.relname, a.attname), format_type(a.atttypid, NULL)
    FROM _snowflake.reached_columns(tbl, key) AS r JOIN pg_attribute AS a ON a.attrelid = r.relation AND a.attnum = r.number
        JOIN pg_type AS y ON y.oid = a.atttypid JOIN pg_class AS t ON t.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace
    WHERE (a.attinhcount = 0 OR (a.attrelid, a.attnum) = (tbl, key)) AND 'bigint'::regtype NOT IN (y.oid, y.typbasetype)
    $$;

-- What PostgreSQL does not let a column change its type for, or be replaced; as sentences.
CREATE FUNCTION _snowflake.in_the_way(tbl oid, number smallint, whole text) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT DISTINCT format('%s depends on column %s', pg_describe_object(d.classid, d.objid, d.objsubid), whole)
    FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = number AND d.classid IN
        ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
    UNION ALL
    -- Up to PostgreSQL 14, it is the generated column itself that depends, and not its expression.
    SELECT DISTINCT format('generated %s depends on column %s', pg_describe_object('pg_class'::regclass, g.attrelid, g.attnum), whole)
    FROM pg_depend AS d LEFT JOIN pg_attrdef AS f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
        JOIN pg_attribute AS g ON (g.attrelid, g.attnum) = (f.adrelid, f.adnum)
            OR d.classid = 'pg_class'::regclass AND (g.attrelid, g.attnum) = (d.objid, d.objsubid)
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = number AND g.attgenerated <> ''
    UNION ALL
    SELECT format('%s is partitioned by column %s', pg_describe_object('pg_class'::regclass, tbl, 0), whole)
    FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = tbl AND d.objsubid = number
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = tbl AND d.refobjsubid = 0 AND d.deptype = 'i'
    UNION ALL
    SELECT format('%s is of the type %s', pg_describe_object('pg_class'::regclass, t.oid, 0), format_type(t.reloftype, NULL))
    FROM pg_class AS t WHERE t.oid = tbl AND t.reloftype <> 0
    UNION ALL
    SELECT format('%s has rows of %s as its type', pg_describe_object(d.classid, d.objid, d.objsubid),
        pg_describe_object('pg_class'::regclass, tbl, 0))
    FROM pg_class AS t JOIN pg_type AS y ON y.oid = t.reltype JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass
        AND d.refobjid IN (y.oid, y.typarray)
    WHERE t.oid = tbl AND d.classid = 'pg_class'::regclass AND d.objsubid > 0
    ORDER BY 1
    $$;

-- Constraints of these columns that no ID from this one on passes, as sentences: of the caller's own tables and domains, if they call nothing
-- but PostgreSQL's functions.
CREATE FUNCTION _snowflake.refusing(tbl regclass, key smallint, first bigint) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
    refused boolean;
BEGIN
    FOR c IN
        WITH RECURSIVE held AS (
            SELECT a.* FROM _snowflake.reached_columns(tbl, key) AS r JOIN pg_attribute AS a ON (a.attrelid, a.attnum) = (r.relation, r.number)
                JOIN pg_class AS t ON t.oid = a.attrelid WHERE pg_get_userbyid(t.relowner) = current_user
        ), bases (type) AS (
            SELECT atttypid FROM held UNION SELECT y.typbasetype FROM bases AS b JOIN pg_type AS y ON y.oid = b.type WHERE y.typtype = 'd'
        ), found AS (
            SELECT k.oid, k.contypid, to_jsonb(k) AS all_of_it, format('constraint %I: %s', k.conname, pg_get_expr(k.conbin, k.conrelid)) AS what,
                pg_get_expr(k.conbin, k.conrelid) AS expression, h.attname
            FROM held AS h JOIN pg_constraint AS k ON k.conrelid = h.attrelid AND k.conkey = ARRAY[h.attnum] AND k.contype = 'c' AND k.coninhcount = 0
            -- Rows of a partition or a child are not all rows.
            WHERE NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = h.attrelid)
            UNION ALL
            -- The word VALUE of a domain's constraint is the name of a column here.
            SELECT k.oid, k.contypid, to_jsonb(k), format('constraint of the domain %s: %s', b.type::regtype, pg_get_constraintdef(k.oid)),
                pg_get_expr(k.conbin, 0), 'value'
            FROM bases AS b JOIN pg_type AS y ON y.oid = b.type JOIN pg_constraint AS k ON k.contypid = y.oid AND k.contype = 'c'
            WHERE pg_get_userbyid(y.typowner) = current_user
        )
        SELECT what, expression, attname FROM found AS f WHERE NOT EXISTS (SELECT FROM pg_depend AS d
            WHERE d.classid = 'pg_constraint'::regclass AND d.objid = f.oid AND d.refclassid <> 'pg_class'::regclass
                AND (d.refclassid, d.refobjid) <> ('pg_type'::regclass, f.contypid))
            -- From 18 on, one may not be enforced.
            AND coalesce((f.all_of_it ->> 'conenforced')::boolean, true)
        ORDER BY what
    LOOP
        BEGIN
            -- One that lets some pass, as by a remainder or of another worker, does not count.
            EXECUTE format('SELECT bool_and((%s) IS FALSE) FROM (SELECT $1 | _snowflake.id(n & 15, n, _snowflake.layout()) AS %I
                FROM generate_series(0, 1023) AS n) AS v', c.expression, c.attname) INTO refused USING first;
        EXCEPTION WHEN OTHERS THEN
            refused := true;
            c.what := format('%s, which fails for it: %s', c.what, SQLERRM);
        END;
        IF refused THEN
            RETURN NEXT 'no new ID passes the ' || c.what;
        END IF;
    END LOOP;
END $$;

-- What snowflake_adopt() does: obstacles, statements in their order, notes.
CREATE FUNCTION _snowflake.adopt_steps(k record) RETURNS TABLE (kind text, statement text, locks text, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    c record;
    s record;
    v record;
    alter_column CONSTANT text := format('ALTER TABLE %s ALTER COLUMN %I', k.quoted, k.attname);
    next bigint;
    marker text;
    p record;
BEGIN
    kind := 'obstacle';
    FOR c IN SELECT n.*, (n.relation, n.number) = (k.tbl, k.attnum) AS is_key
        FROM _snowflake.narrow_columns(k.tbl, k.attnum) AS n ORDER BY is_key DESC, n.whole LOOP
        note := CASE WHEN c.is_key THEN format('column %s is %s, and the extension in SQL gives IDs to bigint columns only', c.whole, c.type_name)
            ELSE format('column %s, which refers to it, is %s, and is to be bigint first', c.whole, c.type_name) END;
        RETURN NEXT;
        -- What stages would have to drop.
        FOR note IN SELECT w FROM _snowflake.in_the_way(c.relation, c.number, c.whole) AS w LOOP
            RETURN NEXT;
        END LOOP;
    END LOOP;
    note := _snowflake.shut_out(k.tbl, k.quoted);
    IF note IS NOT NULL THEN
        RETURN NEXT;
    END IF;
    FOR c IN SELECT format('%I.%I', n.nspname, t.relname) AS quoted, pg_get_expr(d.adbin, d.adrelid) AS expression, a.attidentity
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = f AND a.attname = k.attname LEFT JOIN pg_attrdef AS d ON d.adrelid = f AND d.adnum = a.attnum
        WHERE f <> k.tbl::regclass AND (t.relkind NOT IN ('r', 'p') OR d.adbin IS NOT NULL AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM k.expression)
    LOOP
        note := format('%s is a foreign table, or has a default of its own for the column', c.quoted);
        RETURN NEXT;
    END LOOP;
    v := _snowflake.values_of(k);
    next := _snowflake.lowest(clock_timestamp(), _snowflake.layout());
    IF v.highest >= next THEN
        note := format('column %s has the value %s, and the next ID would be %s, which is not above it', k.whole, v.highest, next);
        RETURN NEXT;
    END IF;
    IF k.relkind = 'p' AND EXISTS (SELECT FROM pg_partitioned_table AS d WHERE d.partrelid = k.tbl AND d.partstrat IN ('r', 'l') AND d.partattrs[0] = k.attnum)
        AND NOT EXISTS (SELECT FROM pg_inherits JOIN pg_class AS t ON t.oid = inhrelid,
            regexp_match(pg_get_expr(t.relpartbound, 0), 'FROM [(]''?([^'',)]*)''?.* TO [(]''?([^'',)]*)') AS b
            WHERE inhparent = k.tbl AND (pg_get_expr(t.relpartbound, 0) = 'DEFAULT' OR
                CASE b[1] WHEN 'MINVALUE' THEN '-Infinity' ELSE b[1] END::numeric <= next AND CASE b[2] WHEN 'MAXVALUE' THEN 'Infinity' ELSE b[2] END::numeric > next)) THEN
        note := format('table %s is partitioned by the column, and has no partition for new IDs, from %s on', k.quoted, next);
        RETURN NEXT;
    END IF;
    FOR note IN SELECT r FROM _snowflake.refusing(k.tbl, k.attnum, next) AS r LOOP
        RETURN NEXT;
    END LOOP;

    kind := 'statement';
    SELECT string_agg(format('%I.%I', n.nspname, t.relname), ', ' ORDER BY t.oid) INTO locks
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace;
    statement := format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', locks);
    note := 'takes all locks first, in the order of the tables'' OIDs';
    RETURN NEXT;
    s := _snowflake.sequence_of(k);
    IF k.attidentity <> '' THEN
        statement := alter_column || ' DROP IDENTITY';
        note := 'the identity''s sequence goes with it, and is made again';
        RETURN NEXT;
        p := _snowflake.place_of(s.oid);
        locks := NULL;
        statement := format('CREATE SEQUENCE %s AS bigint %s', s.quoted, _snowflake.sequence_clauses(s.oid));
        note := 'as it was';
        RETURN NEXT;
        statement := format('SELECT pg_catalog.setval(%L::pg_catalog.regclass, %s, %s)', s.quoted, p.last_value, p.is_called::text);
        note := 'goes on where it was';
        RETURN NEXT;
        note := NULL;
        statement := format('ALTER SEQUENCE %s OWNED BY %s', s.quoted, k.whole);
        locks := s.quoted;
        RETURN NEXT;
        locks := NULL;
        FOR statement IN SELECT g FROM _snowflake.sequence_grants(s.oid, s.quoted) AS g LOOP
            RETURN NEXT;
        END LOOP;
        locks := k.quoted;
    END IF;
    statement := format('%s SET DEFAULT %s', alter_column, _snowflake.next_function()::text);
    note := CASE WHEN k.attidentity <> '' THEN NULL WHEN k.expression IS NULL THEN 'the column had no default'
        ELSE format('the default was %s', k.expression) END;
    RETURN NEXT;
    locks := NULL;
    note := 'for snowflake_release()';
    IF k.attidentity <> '' THEN
        statement := format('COMMENT ON SEQUENCE %s IS %L', s.quoted, concat_ws(E'\n', s.comment, format('[snowflake_adopt: GENERATED %s AS IDENTITY]',
            CASE k.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END)));
        RETURN NEXT;
    ELSIF s.oid IS NULL OR k.expression IS DISTINCT FROM format('nextval(%L::regclass)', s.quoted) THEN
        marker := format('%I.%I', k.nspname, _snowflake.free_name(k.relnamespace, format('%s_%s_before_snowflake', k.relname, k.attname)));
        statement := format('CREATE SEQUENCE %s', marker);
        note := 'for the way back: its comment says what was before, and it goes with the column';
        RETURN NEXT;
        note := NULL;
        statement := format('ALTER SEQUENCE %s OWNED BY %s', marker, k.whole);
        locks := marker;
        RETURN NEXT;
        locks := NULL;
        note := 'for snowflake_release()';
        statement := format('COMMENT ON SEQUENCE %s IS %L', marker, format('[snowflake_adopt: %s; snowflake_release() drops this sequence]',
            CASE WHEN k.expression IS NULL THEN 'no default' ELSE format('DEFAULT %s', k.expression) END));
        RETURN NEXT;
    ELSIF s.seqtypid <> 'bigint'::regtype THEN
        -- Clients set it to the highest ID, as the fixtures of Rails and Django do.
        statement := format('ALTER SEQUENCE %s AS bigint', s.quoted);
        note := 'so that it can be set to an ID';
        RETURN NEXT;
        statement := format('COMMENT ON SEQUENCE %s IS %L', s.quoted, concat_ws(E'\n', s.users_comment,
            format('[snowflake_adopt: nextval() of this sequence; of type %s]', format_type(s.seqtypid, NULL))));
        note := 'for snowflake_release()';
        RETURN NEXT;
    END IF;

    kind := 'note';
    statement := NULL;
    IF s.oid IS NOT NULL THEN
        note := format('sequence %s stays, for the way back: clients that ask it by themselves, as Hibernate''s SEQUENCE does, still get small numbers', s.quoted);
        RETURN NEXT;
    END IF;
    note := CASE WHEN v.highest IS NULL THEN format('%s has no values yet', k.whole)
        ELSE format('%s has values from %s to %s, which stay. %s: new IDs are at or above first_id, which snowflake_adopt() '
            'returns, and which is at least %s', k.whole, v.lowest, v.highest, CASE
            WHEN v.highest <= next >> 10 OR k.attidentity <> '' OR k.expression LIKE 'nextval(%' THEN 'They have no true times'
            WHEN k.expression IS NULL THEN 'Their times are true only if they are IDs of this database''s layout'
            ELSE format('Their times are true only if %s makes IDs of this database''s layout', k.expression) END, next) END;
    RETURN NEXT;
    -- What was only counted is nowhere near the next ID.
    IF v.highest > next >> 10 AND k.attidentity = '' AND (k.expression LIKE 'nextval(%') IS NOT TRUE THEN
        note := format('clients that %s can make an ID again that this database has made, if that '
            'has its worker ID: %s, or give this database another number', CASE WHEN k.expression IS NULL THEN format('go on making values of %s', k.whole)
            ELSE format('still call %s for %s', k.expression, k.whole) END,
            CASE WHEN k.expression IS NULL THEN 'let them leave the column out' ELSE 'let nobody call it' END);
        RETURN NEXT;
    END IF;
    IF v.lowest < 0 THEN
        note := format('negative values of %s are no IDs: functions such as snowflake_timestamp() refuse them', k.whole);
        RETURN NEXT;
    END IF;
    IF k.attidentity = 'a' THEN
        note := format('from now on, clients may give values of their own for %s, which GENERATED ALWAYS refused', k.whole);
        RETURN NEXT;
    END IF;
    note := 'no row is tried: the extension in SQL does not do that';
    RETURN NEXT;
    note := 'lastval() and currval() know nothing of IDs: clients must use INSERT ... RETURNING';
    RETURN NEXT;
END $$;

-- What snowflake_release() does.
CREATE FUNCTION _snowflake.release_steps(k record, start bigint, identity boolean)
    RETURNS TABLE (kind text, statement text, locks text, note text, begins bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    alter_column CONSTANT text := format('ALTER TABLE %s ALTER COLUMN %I', k.quoted, k.attname);
    s record;
    v record;
    p record;
    following bigint;
    fresh text;
    taken boolean;
    to_identity boolean;
    is_new boolean;
    statements text[] := '{}';
    writers text;
BEGIN
    s := _snowflake.sequence_of(k);
    v := _snowflake.values_of(k);
    to_identity := coalesce(identity, false) OR s.memo LIKE 'GENERATED%' AND s.memo IS NOT NULL;
    is_new := s.oid IS NULL OR s.is_marker AND (start IS NOT NULL OR to_identity);
    IF to_identity AND NOT k.attnotnull THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s may be NULL, and an identity may not', k.whole),
            HINT = 'Set it NOT NULL first, or leave identity out.';
    ELSIF to_identity AND k.relkind = 'r' AND (SELECT count(*) FROM _snowflake.family_of(k.tbl)) > 1 THEN
        RAISE feature_not_supported USING MESSAGE = format('tables inherit column %s, and would not inherit an identity', k.whole),
            HINT = 'Leave identity out: they inherit the default.';
    END IF;
    IF start IS NULL AND s.is_marker AND NOT to_identity THEN
        begins := NULL;
    ELSE
        IF start IS NULL AND v.highest = 9223372036854775807 THEN
            RAISE sequence_generator_limit_exceeded USING MESSAGE = format('no bigint is above the highest value of column %s', k.whole),
                HINT = 'Give a start in a range of values that no row has.';
        END IF;
        begins := coalesce(start, greatest(v.highest + 1, 1), 1);
        IF NOT is_new AND s.is_shared THEN
            p := _snowflake.place_of(s.oid);
            following := CASE WHEN p.is_called THEN p.last_value + s.seqincrement ELSE p.last_value END;
            begins := greatest(coalesce(start, following), following);
        END IF;
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I = $1)', _snowflake.held(k.tbl, 'ACCESS SHARE'), k.attname)
            INTO taken USING begins;
        IF taken THEN
            RAISE invalid_parameter_value USING MESSAGE = format('a row has the value %s in column %s', begins, k.whole),
                HINT = 'Give a start that no row has, or leave it out for the value after the highest.';
        END IF;
    END IF;

    kind := 'statement';
    SELECT string_agg(format('%I.%I', n.nspname, t.relname), ', ' ORDER BY t.oid) INTO locks
        FROM _snowflake.family_of(k.tbl) AS f JOIN pg_class AS t ON t.oid = f JOIN pg_namespace AS n ON n.oid = t.relnamespace;
    statement := format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', locks);
    note := 'takes all locks first, in the order of the tables'' OIDs';
    RETURN NEXT;
    note := NULL;
    fresh := CASE WHEN is_new THEN format('%I.%I', k.nspname, _snowflake.free_name(k.relnamespace, format('%s_%s_seq', k.relname, k.attname)))
        ELSE s.quoted END;
    IF to_identity THEN
        statements := statements || (alter_column || ' DROP DEFAULT');
        IF s.oid IS NOT NULL THEN
            statements := statements || format('DROP SEQUENCE %s', s.quoted);
        END IF;
        statements := statements || format('%s ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s%s)', alter_column,
                CASE WHEN s.memo LIKE 'GENERATED ALWAYS%' AND s.memo IS NOT NULL THEN 'ALWAYS' ELSE 'BY DEFAULT' END, fresh,
                CASE WHEN NOT is_new THEN ' ' || _snowflake.sequence_clauses(s.oid) WHEN begins < 1 THEN format(' MINVALUE %s', begins) END)
            || format('ALTER SEQUENCE %s RESTART WITH %s', fresh, begins);
        IF NOT is_new THEN
            statements := statements || ARRAY(SELECT g FROM _snowflake.sequence_grants(s.oid, s.quoted) AS g);
            IF s.users_comment IS NOT NULL THEN
                statements := statements || format('COMMENT ON SEQUENCE %s IS %L', s.quoted, s.users_comment);
            END IF;
        END IF;
    ELSIF begins IS NULL THEN
        IF s.memo <> 'no default' AND NOT _snowflake.is_one_expression(substr(s.memo, 9)) THEN
            RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s cannot be released yet', k.whole),
                DETAIL = format('The default that is on record, %s, cannot be put back: it is not one expression.', substr(s.memo, 9)),
                HINT = 'Nothing was changed. It stands in the comment of a sequence that belongs to the column. Change it there, or give a '
                    'start, for a new sequence.';
        END IF;
        statements := statements || CASE s.memo WHEN 'no default' THEN alter_column || ' DROP DEFAULT'
                ELSE format('%s SET DEFAULT %s', alter_column, substr(s.memo, 9)) END
            || format('DROP SEQUENCE %s', s.quoted);
    ELSE
        IF is_new THEN
            statements := statements || format('CREATE SEQUENCE %s AS bigint MINVALUE %s START WITH %s', fresh, least(begins, 1), begins)
                || format('ALTER SEQUENCE %s OWNED BY %s', fresh, k.whole);
        ELSE
            statements := statements || format('ALTER SEQUENCE %s%s%s RESTART WITH %s', fresh,
                CASE WHEN begins > s.seqmax THEN ' AS bigint' END,
                CASE WHEN begins < s.seqmin THEN format(' MINVALUE %s', begins) WHEN begins > s.seqmax AND s.seqtypid = 'bigint'::regtype THEN ' NO MAXVALUE' END,
                begins);
            IF s.was IS NOT NULL AND s.seqtypid = 'bigint'::regtype AND begins BETWEEN s.seqmin AND s.was_highest
                AND s.seqstart BETWEEN -s.was_highest AND s.was_highest AND s.seqmin BETWEEN -s.was_highest AND s.was_highest
                AND (s.seqmax <= s.was_highest OR s.seqmax = 9223372036854775807) THEN
                statements := statements || format('ALTER SEQUENCE %s AS %s', fresh, s.was);
            END IF;
            IF s.memo IS NOT NULL THEN
                statements := statements || format('COMMENT ON SEQUENCE %s IS %s', fresh, quote_nullable(s.users_comment));
            END IF;
        END IF;
        statements := statements || format('%s SET DEFAULT pg_catalog.nextval(%L::pg_catalog.regclass)', alter_column, fresh);
        IF s.oid IS NOT NULL AND is_new THEN
            statements := statements || format('DROP SEQUENCE %s', s.quoted);
        END IF;
        SELECT string_agg(w.name, ', ' ORDER BY w.name) INTO writers FROM (
            SELECT CASE writer WHEN 0 THEN 'PUBLIC' ELSE writer::regrole::text END AS name FROM _snowflake.writers(k.tbl) AS writer
            WHERE writer <> k.relowner AND (is_new OR NOT CASE writer WHEN 0 THEN has_sequence_privilege('public', s.oid, 'USAGE, UPDATE')
                ELSE has_sequence_privilege(writer, s.oid, 'USAGE, UPDATE') END)
        ) AS w;
        IF writers IS NOT NULL THEN
            statements := statements || format('GRANT USAGE ON SEQUENCE %s TO %s', fresh, writers);
        END IF;
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        locks := CASE WHEN statement LIKE 'ALTER TABLE%' THEN k.quoted WHEN statement LIKE 'ALTER SEQUENCE%' THEN fresh END;
        RETURN NEXT;
    END LOOP;
    kind := 'note';
    statement := NULL;
    locks := NULL;
    note := format('rows keep their IDs, and column %s stays bigint', k.whole);
    RETURN NEXT;
END $$;

-- The plans, as rows. Here, and where they are carried out, texts of expressions are written and read in one way.
CREATE FUNCTION _snowflake.adopt_plan(tbl regclass, col name, views text)
    RETURNS TABLE (step integer, kind text, statement text, locks text, rewrites text, bytes bigint, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    k record;
    s record;
    number integer := 0;
BEGIN
    PERFORM _snowflake.check_views(views);
    k := _snowflake.key_of(tbl, col);
    PERFORM _snowflake.check_moving(k, false);
    PERFORM _snowflake.refuse_adopted(k);
    FOR s IN SELECT * FROM _snowflake.adopt_steps(k) LOOP
        number := number + (s.kind = 'statement')::integer;
        step := CASE s.kind WHEN 'statement' THEN number END;
        kind := s.kind;
        statement := s.statement || ';';
        locks := s.locks;
        note := s.note;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE FUNCTION _snowflake.check_views(views text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF views IS NULL THEN
        RAISE null_value_not_allowed USING MESSAGE = 'views must not be NULL',
            HINT = 'For example: SELECT * FROM snowflake_adopt_plan(''orders'');';
    ELSIF views NOT IN ('refuse', 'recreate') THEN
        RAISE invalid_parameter_value USING MESSAGE = format('views cannot be "%s"', _snowflake.shortened(views)),
            HINT = 'Use "refuse", or "recreate" to have views dropped and created again.';
    END IF;
END $$;

CREATE FUNCTION _snowflake.refuse_adopted(k record) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF k.makes_ids AND k.is_bigint THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s makes snowflake IDs already', k.whole),
            DETAIL = 'Its default is snowflake_next(), and all columns that refer to it are bigint.';
    END IF;
END $$;

CREATE FUNCTION _snowflake.adopt(tbl regclass, col name, views text) RETURNS TABLE (first_id bigint, adopted_at timestamptz, highest_before bigint)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    l CONSTANT bigint[] := _snowflake.layout();
    k record;
    s record;
    v record;
    obstacles text;
    statements text[];
    statement text;
    id bigint;
BEGIN
    PERFORM _snowflake.check_views(views);
    k := _snowflake.key_of(tbl, col);
    PERFORM _snowflake.check_moving(k, true);
    -- What others have changed before the lock was granted.
    k := _snowflake.key_of(tbl, k.attname);
    PERFORM _snowflake.check_moving(k, true);
    PERFORM _snowflake.refuse_adopted(k);
    SELECT string_agg(a.note, E'.\n') FILTER (WHERE a.kind = 'obstacle'), array_agg(a.statement) FILTER (WHERE a.kind = 'statement')
        INTO obstacles, statements FROM _snowflake.adopt_steps(k) AS a;
    IF obstacles IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s cannot get snowflake IDs yet', k.whole),
            DETAIL = obstacles || '.',
            HINT = 'Nothing was changed.' || CASE WHEN obstacles ~ 'bigint columns only|is to be bigint first' THEN
                ' Columns become bigint in stages, by examples/moving-in/staged.sql, which needs no library; or by the library''s '
                'snowflake_adopt().' ELSE '' END || CASE WHEN obstacles ~ 'no partition for new IDs' THEN ' Create a DEFAULT partition, or those of '
                'the next days by snowflake_create_partitions().' ELSE '' END;
    END IF;
    v := _snowflake.values_of(k);
    -- Drawn behind the lock: whatever is made after it is above.
    EXECUTE format('SELECT %s', _snowflake.next_function()::text) INTO id;
    IF id <= v.highest THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('column %s cannot get snowflake IDs yet', k.whole),
            DETAIL = format('It has the value %s, and the next ID is %s, which is not above it.', v.highest, id), HINT = 'Nothing was changed.';
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement;
    END LOOP;
    k := _snowflake.key_of(tbl, k.attname);
    IF NOT k.makes_ids THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('the default of column %s would call another function', k.whole),
            HINT = 'Nothing was changed. Find out who created that function.';
    END IF;
    first_id := id >> l[3]::integer << l[3]::integer;
    PERFORM _snowflake.mark_open(tbl, k.attname, first_id, true, l);
    adopted_at := _snowflake.time_of(first_id, l);
    highest_before := v.highest;
    RETURN NEXT;
END $$;

CREATE FUNCTION _snowflake.release_plan(tbl regclass, col name, start bigint, identity boolean)
    RETURNS TABLE (step integer, kind text, statement text, locks text, rewrites text, bytes bigint, note text)
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    k record;
    s record;
    number integer := 0;
BEGIN
    k := _snowflake.released_key(tbl, col);
    PERFORM _snowflake.check_moving(k, false);
    FOR s IN SELECT * FROM _snowflake.release_steps(k, start, identity) LOOP
        number := number + (s.kind = 'statement')::integer;
        step := CASE s.kind WHEN 'statement' THEN number END;
        kind := s.kind;
        statement := s.statement || ';';
        locks := s.locks;
        note := s.note;
        RETURN NEXT;
    END LOOP;
END $$;

-- The column that is to be led back.
CREATE FUNCTION _snowflake.released_key(tbl regclass, col name) RETURNS record
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    k record := _snowflake.key_of(tbl, col);
BEGIN
    IF NOT k.makes_ids THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = format('the default of column %s is not snowflake_next()', k.whole);
    END IF;
    RETURN k;
END $$;

CREATE FUNCTION _snowflake.release(tbl regclass, col name, start bigint, identity boolean) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
    AS $$
DECLARE
    k record;
    statements text[];
    statement text;
    begins bigint;
BEGIN
    k := _snowflake.released_key(tbl, col);
    PERFORM _snowflake.check_moving(k, true);
    k := _snowflake.released_key(tbl, k.attname);
    PERFORM _snowflake.check_moving(k, true);
    SELECT array_agg(a.statement) FILTER (WHERE a.kind = 'statement'), min(a.begins) INTO statements, begins
        FROM _snowflake.release_steps(k, start, identity) AS a;
    FOREACH statement IN ARRAY statements LOOP
        EXECUTE statement;
    END LOOP;
    -- Of a sequence that falls, or goes on where it is, it is not known from which key on others come.
    PERFORM _snowflake.mark_open(tbl, k.attname, coalesce(begins, (-9223372036854775808)::bigint), false, NULL);
    RETURN begins;
END $$;
