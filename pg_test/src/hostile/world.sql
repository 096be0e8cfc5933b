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

-- Defines a function that writes down who runs it, and then does what PostgreSQL's own does.
CREATE FUNCTION pg_temp.define(signature text, result text, options text, what text, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE FUNCTION %s %s LANGUAGE plpgsql %s AS %L', signature, result, options, format($f$
        #variable_conflict use_column
        BEGIN
            IF CURRENT_USER OPERATOR(pg_catalog.<>) 'mallory' THEN
                RAISE LOG 'sprung: %%', pg_catalog.concat(%L::pg_catalog.text, ' as '::pg_catalog.text, CURRENT_USER);
            END IF;
            %s
        END
    $f$, what, body));
EXCEPTION WHEN OTHERS THEN
    RAISE EXCEPTION '% % %: %', signature, result, body, SQLERRM;
END $$;

-- Conversions from and to every type.
SELECT pg_temp.define(format('mallory_code."from"(%s)', type), 'RETURNS mallory_code.anything', 'IMMUTABLE',
    'cast from ' || typname, 'RETURN NULL;')
FROM pool;
SELECT pg_temp.define(format('mallory_code.%I(mallory_code.anything)', typname), 'RETURNS ' || type, 'IMMUTABLE', 'cast to ' || typname,
    'RETURN NULL;') FROM pool;
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
        PERFORM pg_temp.define(format('%s(pg_catalog.%I)', code, p.typname), 'RETURNS pg_catalog.bool', 'IMMUTABLE',
            'type ' || p.typname, 'RETURN true;');
        EXECUTE format('CREATE DOMAIN %I.%I AS pg_catalog.%2$I CHECK (%3$s(VALUE))', p.name, p.typname, code);
    END LOOP;
END $$;

-- What may be given where a type is asked for.
CREATE TEMP TABLE choices AS
    SELECT t.oid AS asked, p.type::oid AS given FROM pg_type AS t JOIN pool AS p
        ON p.type = t.oid OR p.type = 'mallory_code.anything'::regtype
        OR EXISTS (SELECT FROM pg_cast WHERE (castsource, casttarget, castcontext) = (p.type, t.oid, 'i'))
    WHERE t.typtype <> 'p'
    UNION SELECT oid, oid FROM pg_type WHERE typtype <> 'p';

-- The types with which a list of types that may be open is called: where any type will do, each.
CREATE FUNCTION pg_temp.closed(types oid[], type oid, of_array oid) RETURNS oid[] LANGUAGE sql AS $$
    SELECT array_agg(CASE WHEN t IN ('anyarray'::regtype, 'anycompatiblearray'::regtype) THEN of_array
        WHEN typtype = 'p' THEN type ELSE t END ORDER BY n)
    FROM unnest(types) WITH ORDINALITY AS a (t, n) JOIN pg_type ON pg_type.oid = t $$;

-- Operators. CREATE OPERATOR would take long for so many.
CREATE TEMP TABLE operators AS
    SELECT DISTINCT ON (name, "left", "right") * FROM (
        SELECT oprname AS name, coalesce(l.given, 0) AS "left", r.given AS "right", oprresult AS result,
            2 - (coalesce(l.given, 0) = oprleft)::integer - (r.given = oprright)::integer AS converted
        FROM pg_operator JOIN words ON word = oprname JOIN choices AS r ON r.asked = oprright LEFT JOIN choices AS l ON l.asked = oprleft
        WHERE oprnamespace = 'pg_catalog'::regnamespace AND (oprkind = 'l' OR l.given IS NOT NULL)
        UNION ALL
        SELECT oprname, closed[1], closed[2], CASE WHEN r.typtype = 'p' THEN closed[3] ELSE oprresult END, 1
        FROM pg_operator JOIN words ON word = oprname JOIN pg_type AS r ON r.oid = oprresult JOIN pool AS p ON true
        CROSS JOIN pg_temp.closed(ARRAY[oprleft, oprright, oprresult], p.type, p.typarray) AS closed
        WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b'
            AND EXISTS (SELECT FROM pg_type WHERE oid IN (oprleft, oprright) AND typtype = 'p' AND typname ~ '^any(array|element|nonarray|compatible)')
    ) AS all_of_them
    WHERE "left" IS NOT NULL AND "right" <> 0 AND result <> 0 ORDER BY name, "left", "right", converted,
        (SELECT typispreferred FROM pg_type WHERE oid = result) DESC, result;
SELECT pg_temp.define(format('mallory_code.%I(%s%s)', name, format_type(nullif("left", 0), NULL) || ', ', format_type("right", NULL)),
    'RETURNS ' || format_type(result, NULL), 'IMMUTABLE', 'operator ' || name,
    format('RETURN %s OPERATOR(pg_catalog.%s) %s;', CASE WHEN "left" <> 0 THEN '$1' END, name, CASE WHEN "left" <> 0 THEN '$2' ELSE '$1' END))
FROM operators;
INSERT INTO pg_operator
SELECT 100000 + row_number() OVER (), o.name, s.oid, 'mallory'::regrole, CASE "left" WHEN 0 THEN 'l' ELSE 'b' END::"char", false, false,
    "left", "right", result, 0, 0, p.oid, 0, 0
FROM operators AS o JOIN schemas ON true JOIN pg_namespace AS s ON s.nspname = schemas.name
JOIN pg_proc AS p ON p.proname = o.name AND p.pronamespace = 'mallory_code'::regnamespace
    AND p.proargtypes::text = concat(nullif("left", 0)::text || ' ', "right");

-- Functions. Their arguments are PostgreSQL's own, which are found where the path has them first; or what PostgreSQL would convert to those.
CREATE TEMP TABLE functions AS
    SELECT p.oid, proname, prokind, pronargs, ARRAY(SELECT unnest(proargtypes)) AS types, proargnames, pronargdefaults, provariadic, proretset,
        prorettype, provolatile, r.typtype = 'p' AND prorettype NOT IN ('void'::regtype, 'record'::regtype) AS is_open,
        (SELECT array_agg(format('%I %s', coalesce(nullif(proargnames[n], ''), 'column' || n), format_type(t, NULL)) ORDER BY n)
            FROM unnest(proallargtypes) WITH ORDINALITY AS a (t, n) WHERE proargmodes[n] IN ('o', 't')) AS columns
    FROM pg_proc AS p JOIN pg_type AS r ON r.oid = prorettype
    WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a') AND proname IN (SELECT word FROM words)
        AND coalesce(NOT proargmodes && '{b}'::"char"[], true)
        AND NOT EXISTS (SELECT FROM pg_aggregate WHERE aggfnoid = p.oid AND aggkind <> 'n')
        AND NOT proargtypes::oid[] || prorettype && ARRAY['internal', 'trigger', 'event_trigger', 'cstring', 'language_handler',
            'fdw_handler', 'index_am_handler', 'table_am_handler', 'tsm_handler', 'anyrange', 'anymultirange', 'anycompatiblerange',
            'anycompatiblemultirange', 'anyenum']::regtype[]::oid[];
ANALYZE pool, functions, choices;
CREATE TEMP TABLE variants AS
    SELECT DISTINCT ON (proname, given) * FROM (
        SELECT f.*, new.types AS given, new.result AS result FROM functions AS f CROSS JOIN LATERAL (
            SELECT f.types, f.prorettype AS result
            UNION ALL
            SELECT ARRAY[a.given], prorettype FROM choices AS a WHERE pronargs = 1 AND a.asked = f.types[1]
            UNION ALL
            SELECT ARRAY[a.given, b.given], prorettype FROM choices AS a, choices AS b
            WHERE pronargs = 2 AND (a.asked, b.asked) = (f.types[1], f.types[2])
            UNION ALL
            SELECT ARRAY[a.given, b.given, c.given], prorettype FROM choices AS a, choices AS b, choices AS c
            WHERE pronargs = 3 AND (a.asked, b.asked, c.asked) = (f.types[1], f.types[2], f.types[3])
            UNION ALL
            -- Of many arguments, another one at a time.
            SELECT f.types[:n - 1] || a.given || f.types[n + 1:], prorettype FROM generate_series(1, pronargs) AS n
            JOIN choices AS a ON a.asked = f.types[n] WHERE pronargs > 3
            UNION ALL
            SELECT closed[:pronargs], CASE WHEN is_open THEN closed[pronargs + 1] ELSE prorettype END
            FROM pool AS p CROSS JOIN pg_temp.closed(f.types || prorettype, p.type, p.typarray) AS closed
            WHERE provariadic = 0 AND EXISTS (SELECT FROM unnest(f.types) AS t JOIN pg_type ON oid = t WHERE typtype = 'p')
            UNION ALL
            -- As a list of arguments has them, up to four.
            SELECT f.types[:pronargs - 1] || array_fill(p.type::oid, ARRAY[n]), prorettype FROM pool AS p
            JOIN generate_series(1, 4) AS n ON true WHERE provariadic <> 0 AND NOT is_open
        ) AS new (types, result)
    ) AS all_of_them
    WHERE (SELECT typtype <> 'p' FROM pg_type WHERE oid = result) OR result IN ('void'::regtype, 'record'::regtype)
    ORDER BY proname, given, (SELECT count(*) FROM unnest(given, types) AS both_of (a, b) WHERE a IS DISTINCT FROM b), oid;
DELETE FROM variants WHERE EXISTS (SELECT FROM unnest(given) AS t LEFT JOIN pg_type ON pg_type.oid = t WHERE typtype IS NULL OR typtype = 'p')
    -- What PostgreSQL makes of a record, only it knows.
    OR result = 'record'::regtype AND columns IS NULL;
DO $$
DECLARE
    v record;
    arguments text;
    call text;
    code text;
BEGIN
    FOR v IN SELECT schemas.name, variants.* FROM variants JOIN schemas ON true WHERE prokind = 'f' LOOP
        arguments := (SELECT string_agg(concat(quote_ident(nullif(v.proargnames[n], '')), ' ', format_type(t, NULL),
            CASE WHEN n > cardinality(v.given) - v.pronargdefaults THEN ' DEFAULT NULL' END), ', ' ORDER BY n)
            FROM unnest(v.given) WITH ORDINALITY AS a (t, n));
        call := format('pg_catalog.%I(%s)', v.proname, (SELECT string_agg(CASE WHEN v.provariadic <> 0 AND v.given = v.types
            AND n = v.pronargs THEN 'VARIADIC ' ELSE '' END || '$' || n, ', ' ORDER BY n) FROM generate_subscripts(v.given, 1) AS n));
        PERFORM pg_temp.define(format('%I.%I(%s)', v.name, v.proname, arguments),
            CASE WHEN v.columns IS NOT NULL THEN format('RETURNS TABLE (%s)', array_to_string(v.columns, ', '))
                ELSE 'RETURNS ' || CASE WHEN v.proretset THEN 'SETOF ' ELSE '' END || format_type(v.result, NULL) END,
            CASE v.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END, 'function ' || v.proname,
            CASE WHEN v.proretset OR v.columns IS NOT NULL THEN format('RETURN QUERY SELECT * FROM %s;', call)
                WHEN v.result = 'void'::regtype THEN format('PERFORM %s;', call) ELSE format('RETURN %s;', call) END);
    END LOOP;
    -- Aggregates of one argument, as arrays of what they aggregate.
    FOR v IN
        SELECT schemas.name, variants.*, format_type(given[1], NULL) AS item, format_type(typarray, NULL) AS items
        FROM variants JOIN schemas ON true JOIN pg_type ON pg_type.oid = given[1] AND typarray <> 0 WHERE prokind = 'a' AND pronargs = 1
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION mallory_code.collect(%s, %s) RETURNS %1$s LANGUAGE sql IMMUTABLE AS %3$L', v.items, v.item,
            'SELECT pg_catalog.array_append($1, $2)');
        code := format('mallory_code.%I', v.name || '.' || v.proname);
        PERFORM pg_temp.define(format('%s(%s)', code, v.items), 'RETURNS ' || format_type(v.result, NULL), 'IMMUTABLE',
            'aggregate ' || v.proname, format('RETURN (SELECT pg_catalog.%I(i) FROM pg_catalog.unnest($1) AS i);', v.proname));
        EXECUTE format('CREATE AGGREGATE %I.%I(%s) (SFUNC = mallory_code.collect, STYPE = %s, INITCOND = ''{}'', FINALFUNC = %s)', v.name,
            v.proname, v.item, v.items, code);
    END LOOP;
END $$;

-- Views with the names of tables and views of the catalog.
SELECT pg_temp.define('mallory_code.relation(name name)', 'RETURNS bool', 'IMMUTABLE', 'relation', 'RETURN true;');
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
