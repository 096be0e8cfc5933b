-- Expressions that cast one of the columns ($1, tables, and $2, numbers) to a type that an ID does not fit into.
SELECT pg_describe_object(classid, objid, 0) || ' casts ' || quote_ident(attname) || ' to ' || (regexp_match(expression, cast_of))[1]
    || ': ' || expression
FROM (
    SELECT DISTINCT classid, objid, attname, '(?:^|[^[:alnum:]_"])' || regexp_replace(quote_ident(attname), '([^[:alnum:]_])', E'\\\\\\1', 'g')
        || E'\\)?::(smallint|integer)\\M' AS cast_of,
        CASE classid WHEN 'pg_class'::regclass THEN concat_ws(' WHERE ', (SELECT nullif(pg_get_expr(indexprs, indrelid), '')
                FROM pg_index WHERE indexrelid = objid), (SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = objid))
            WHEN 'pg_constraint'::regclass THEN (SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint k WHERE k.oid = objid)
            WHEN 'pg_statistic_ext'::regclass THEN (SELECT pg_get_expr(stxexprs, stxrelid) FROM pg_statistic_ext s WHERE s.oid = objid)
        END AS expression
    FROM unnest($1::oid[], $2::int2[]) columns (relation, number) JOIN pg_attribute ON attrelid = relation AND attnum = number
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
) expressions WHERE expression ~ cast_of ORDER BY 1
