-- The state of a relation ($1, its name).
SELECT :state FROM pg_class c WHERE c.oid = to_regclass($1)
