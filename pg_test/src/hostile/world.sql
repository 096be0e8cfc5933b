-- Fills the schemas of the temporary table `schemas` with what is named as PostgreSQL's own, and matches better: for each operator and each
-- function of pg_catalog whose name is in the temporary table `words`; for types; and by conversions. All of it belongs to mallory, and says
-- in the log who else has run it.
--
-- Which there are comes from the catalog alone. Types are those of columns of the catalog, those that have an order, and arrays of the former.

SET search_path = pg_catalog, pg_temp;

CREATE TEMP TABLE was_there AS
    SELECT oid FROM pg_proc UNION ALL SELECT oid FROM pg_type UNION ALL SELECT oid FROM pg_class;

CREATE TEMP TABLE pool AS
    SELECT oid::regtype AS type, typname, typarray FROM pg_type AS t
    WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typcategory <> 'Z' AND typname !~ '^pg_(?!lsn)|statistic' AND (
        EXISTS (SELECT FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
            WHERE atttypid = t.oid AND relnamespace = 'pg_catalog'::regnamespace)
        OR typcategory <> 'A' AND EXISTS (SELECT FROM pg_opclass WHERE opcintype = t.oid AND opcdefault)
        -- What has an order of another type.
        OR typname ~ '^reg' OR typname IN ('varchar', '_int4', '_int8'));

CREATE SCHEMA mallory_code;
GRANT USAGE ON SCHEMA mallory_code TO PUBLIC;
CREATE TYPE mallory_code.anything AS ENUM ('nothing');

CREATE FUNCTION pg_temp.define(signature text, result text, what text, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE FUNCTION %s RETURNS %s LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS %L', signature, result,
        format($f$
            BEGIN
                IF CURRENT_USER OPERATOR(pg_catalog.<>) 'mallory' THEN
                    RAISE LOG 'sprung: %%', pg_catalog.concat(%L::pg_catalog.text, ' as '::pg_catalog.text, CURRENT_USER);
                END IF;
                %s
            END
        $f$, what, body));
END $$;

-- Conversions from and to every type.
SELECT pg_temp.define(format('mallory_code."from"(%s)', type), 'mallory_code.anything', 'cast from ' || typname, 'RETURN NULL;')
FROM pool;
SELECT pg_temp.define(format('mallory_code.%I(mallory_code.anything)', typname), type::text, 'cast to ' || typname, 'RETURN NULL;') FROM pool;
DO $$
DECLARE
    p record;
BEGIN
    FOR p IN SELECT * FROM pool LOOP
        EXECUTE format('CREATE CAST (%s AS mallory_code.anything) WITH FUNCTION mallory_code."from"(%1$s) AS IMPLICIT', p.type);
        EXECUTE format('CREATE CAST (mallory_code.anything AS %s) WITH FUNCTION mallory_code.%I(mallory_code.anything) AS IMPLICIT', p.type,
            p.typname);
    END LOOP;
END $$;
INSERT INTO pool SELECT oid, typname, typarray FROM pg_type WHERE oid = 'mallory_code.anything'::regtype;

-- Domains with the names of types. What the grammar spells, as bigint, is not looked up.
DO $$
DECLARE
    p record;
    code text;
BEGIN
    FOR p IN SELECT * FROM pool JOIN schemas ON true WHERE typname !~ '^_|anything' LOOP
        code := format('mallory_code.%I', p.name || '.' || p.typname);
        PERFORM pg_temp.define(format('%s(pg_catalog.%I)', code, p.typname), 'pg_catalog.bool', 'type ' || p.typname, 'RETURN true;');
        EXECUTE format('CREATE DOMAIN %I.%I AS pg_catalog.%2$I CHECK (%3$s(VALUE))', p.name, p.typname, code);
    END LOOP;
END $$;

-- Operators, of every pair of types. Their code does not look at the operands, so that of two numbers does for all.
-- CREATE OPERATOR would take a minute for so many.
CREATE TEMP TABLE operators AS SELECT DISTINCT oprname AS name, oprkind AS kind FROM pg_operator JOIN words ON word = oprname
    WHERE oprnamespace = 'pg_catalog'::regnamespace;
SELECT pg_temp.define(format('mallory_code.%I(%s)', name, CASE kind WHEN 'l' THEN 'bigint' ELSE 'bigint, bigint' END), 'boolean',
    'operator ' || name, 'RETURN NULL;') FROM operators;
-- What PostgreSQL's own returns for the same operand on the left, or on the right, or at all.
CREATE TEMP TABLE results AS
    SELECT oprname AS name, oprkind AS kind, oprleft AS "left", oprright AS "right", oprresult AS result
    FROM pg_operator JOIN pg_type AS t ON t.oid = oprresult WHERE oprnamespace = 'pg_catalog'::regnamespace AND typtype <> 'p';
INSERT INTO pg_operator
SELECT 100000 + row_number() OVER (), o.name, s.oid, 'mallory'::regrole, o.kind, false, false, coalesce(l.type, 0), r.type,
    coalesce(by_left.result, by_right.result, any_type.result, r.type), 0, 0, p.oid, 0, 0
FROM operators AS o JOIN schemas ON true JOIN pg_namespace AS s ON s.nspname = schemas.name
JOIN pg_proc AS p ON p.proname = o.name AND p.pronamespace = 'mallory_code'::regnamespace AND p.pronargs = CASE o.kind WHEN 'l' THEN 1 ELSE 2 END
JOIN pool AS r ON true LEFT JOIN pool AS l ON o.kind = 'b'
LEFT JOIN (SELECT name, kind, "left", min(result) AS result FROM results GROUP BY 1, 2, 3) AS by_left
    ON (by_left.name, by_left.kind, by_left."left") = (o.name, o.kind, l.type)
LEFT JOIN (SELECT name, kind, "right", min(result) AS result FROM results GROUP BY 1, 2, 3) AS by_right
    ON (by_right.name, by_right.kind, by_right."right") = (o.name, o.kind, r.type)
LEFT JOIN (SELECT name, kind, min(result) AS result FROM results GROUP BY 1, 2) AS any_type ON (any_type.name, any_type.kind) = (o.name, o.kind);

-- Functions. Their arguments are PostgreSQL's own, which are found where the path has them first; or what PostgreSQL would convert to those.
CREATE TEMP TABLE functions AS
    SELECT p.oid, proname, pronargs, ARRAY(SELECT unnest(proargtypes)) AS types, proargnames, pronargdefaults, provariadic, proretset,
        prorettype, r.typtype = 'p' AND prorettype NOT IN ('void'::regtype, 'record'::regtype) AS is_open
    FROM pg_proc AS p JOIN pg_type AS r ON r.oid = prorettype
    WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind <> 'p' AND proname IN (SELECT word FROM words)
        AND NOT proargtypes::oid[] || prorettype && ARRAY['internal', 'trigger', 'event_trigger', 'cstring', 'language_handler',
            'fdw_handler', 'index_am_handler', 'table_am_handler', 'tsm_handler']::regtype[]::oid[];
CREATE TEMP TABLE choices AS
    SELECT t.oid AS asked, p.type::oid AS given FROM pg_type AS t JOIN pool AS p
        ON p.type = t.oid OR p.type = 'mallory_code.anything'::regtype
        OR EXISTS (SELECT FROM pg_cast WHERE (castsource, casttarget, castcontext) = (p.type, t.oid, 'i'))
    WHERE t.typtype <> 'p'
    UNION SELECT oid, oid FROM pg_type WHERE typtype <> 'p';
ANALYZE pool, functions, choices;
CREATE TEMP TABLE variants AS
    SELECT DISTINCT ON (proname, types) * FROM (
        SELECT f.proname, new.types, f.proargnames, f.pronargs, f.pronargdefaults, f.proretset, f.oid,
            CASE WHEN is_open THEN coalesce(new.types[1], 'text'::regtype) ELSE f.prorettype END AS result
        FROM functions AS f CROSS JOIN LATERAL (
            SELECT f.types
            UNION ALL
            SELECT ARRAY[a.given] FROM choices AS a WHERE pronargs = 1 AND a.asked = f.types[1]
            UNION ALL
            SELECT ARRAY[a.given, b.given] FROM choices AS a, choices AS b
            WHERE pronargs = 2 AND (a.asked, b.asked) = (f.types[1], f.types[2])
            UNION ALL
            SELECT ARRAY[a.given, b.given, c.given] FROM choices AS a, choices AS b, choices AS c
            WHERE pronargs = 3 AND (a.asked, b.asked, c.asked) = (f.types[1], f.types[2], f.types[3])
            UNION ALL
            -- Of many arguments, another one at a time.
            SELECT f.types[:n - 1] || a.given || f.types[n + 1:] FROM generate_series(1, pronargs) AS n JOIN choices AS a ON a.asked = f.types[n]
            WHERE pronargs > 3
            UNION ALL
            -- Where any type will do, each.
            SELECT ARRAY(SELECT CASE WHEN t IN ('anyarray'::regtype, 'anycompatiblearray'::regtype) THEN p.typarray
                    WHEN typtype = 'p' THEN p.type ELSE t END FROM unnest(f.types) WITH ORDINALITY AS a (t, n) JOIN pg_type ON oid = t ORDER BY n)
            FROM pool AS p WHERE EXISTS (SELECT FROM unnest(f.types) AS t JOIN pg_type ON oid = t WHERE typtype = 'p')
            UNION ALL
            -- As a list of arguments has them, up to four.
            SELECT f.types[:pronargs - 1] || array_fill(p.type::oid, ARRAY[n]) FROM pool AS p JOIN generate_series(1, 4) AS n ON true
            WHERE provariadic <> 0
        ) AS new (types)
    ) AS all_of_them
    WHERE NOT EXISTS (SELECT FROM unnest(types) AS t LEFT JOIN pg_type ON pg_type.oid = t WHERE typtype IS NULL OR typtype = 'p')
    ORDER BY proname, types, oid;
DO $$
DECLARE
    v record;
    arguments text;
BEGIN
    FOR v IN SELECT schemas.name, variants.* FROM variants JOIN schemas ON true LOOP
        arguments := (SELECT string_agg(concat(quote_ident(nullif(v.proargnames[ord], '')), ' ', format_type(t, NULL),
            CASE WHEN ord > cardinality(v.types) - v.pronargdefaults THEN ' DEFAULT NULL' END), ', ' ORDER BY ord)
            FROM unnest(v.types) WITH ORDINALITY AS a (t, ord));
        PERFORM pg_temp.define(format('%I.%I(%s)', v.name, v.proname, arguments),
            CASE WHEN v.proretset THEN 'SETOF ' ELSE '' END || format_type(v.result, NULL), 'function ' || v.proname,
            CASE WHEN v.proretset OR v.result = 'void'::regtype THEN 'RETURN;' ELSE 'RETURN NULL;' END);
    END LOOP;
END $$;

-- Views with the names of tables and views of the catalog.
SELECT pg_temp.define('mallory_code.relation(name name)', 'pg_catalog.bool', 'relation', 'RETURN true;');
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT s.name, relname, string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns
        FROM pg_class AS c JOIN words ON word = relname JOIN schemas AS s ON true
        JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 JOIN pg_type AS t ON t.oid = atttypid AND typtype <> 'p'
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') GROUP BY 1, 2
    LOOP
        EXECUTE format('CREATE VIEW %I.%I AS SELECT %s FROM pg_catalog.%2$I WHERE mallory_code.relation(%2$L)', r.name, r.relname, r.columns);
        EXECUTE format('GRANT SELECT ON %I.%I TO PUBLIC', r.name, r.relname);
    END LOOP;
END $$;

-- Whose all of this is.
UPDATE pg_proc SET proowner = 'mallory'::regrole WHERE oid NOT IN (SELECT oid FROM was_there);
UPDATE pg_type SET typowner = 'mallory'::regrole WHERE oid NOT IN (SELECT oid FROM was_there);
UPDATE pg_class SET relowner = 'mallory'::regrole WHERE oid NOT IN (SELECT oid FROM was_there) AND relpersistence <> 't';
UPDATE pg_namespace SET nspowner = 'mallory'::regrole WHERE nspname = 'mallory_code';
