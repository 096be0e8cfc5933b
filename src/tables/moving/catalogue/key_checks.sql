-- CHECK constraints that concern one of the columns ($1, tables, and $2, numbers) alone: with their table, its name, and the column's.
-- Only those of PostgreSQL's own functions and operators: their text is read anew, for another type, and could then mean what somebody else
-- has made.
SELECT quote_ident(conname), pg_get_expr(conbin, conrelid), quote_ident(attname)
FROM unnest($1::oid[], $2::int2[]) columns (relation, number) JOIN pg_attribute ON attrelid = relation AND attnum = number
JOIN pg_constraint k ON conrelid = relation AND conkey = ARRAY[number] AND contype = 'c' AND coninhcount = 0
WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_constraint'::regclass AND d.objid = k.oid AND d.refclassid <> 'pg_class'::regclass)
    -- From 18 on, one may not be enforced.
    AND coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true)
ORDER BY conrelid, conname
