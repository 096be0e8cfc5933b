-- The CHECK constraints on columns of tables ($1), with the tables' OIDs and the columns' names.
SELECT conrelid, quote_ident(attname), quote_ident(conname), pg_get_expr(conbin, conrelid)
FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
WHERE contype = 'c' AND coninhcount = 0 AND conrelid = ANY ($1) ORDER BY conrelid, conname, attnum
