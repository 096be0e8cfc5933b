-- The constraints of domains that columns ($1, tables, and $2, numbers) are of: the domain with the constraint, and the expression as a tree of nodes.
WITH RECURSIVE base (type) AS (
    SELECT atttypid FROM unnest($1::oid[], $2::int2[]) columns (relation, number)
    JOIN pg_attribute ON attrelid = relation AND attnum = number
    UNION SELECT typbasetype FROM base JOIN pg_type ON oid = type AND typtype = 'd'
)
SELECT DISTINCT type::regtype || ': ' || pg_get_constraintdef(c.oid), conbin::text
FROM base JOIN pg_constraint c ON contypid = type AND contype = 'c' ORDER BY 1
