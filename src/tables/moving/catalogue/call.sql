-- A function without arguments ($1), as a statement writes its call.
SELECT quote_ident(nspname) || '.' || quote_ident(proname) || '()'
FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE p.oid = $1
