-- Of calls by the names of functions ($1), with the place of an argument ($2): whether all that have such a name take a smaller type there than an
-- ID has, and so none is found for it.
SELECT coalesce((SELECT bool_and(proargtypes[place - 1] IN ('int2'::regtype, 'int4'::regtype)) FROM pg_proc WHERE proname = name), false)
FROM unnest($1::text[], $2::int4[]) WITH ORDINALITY AS calls (name, place, number) ORDER BY number
