-- A part of others: the bytes of a column's integer, also where it is a domain over bigint; else NULL.
(CASE atttypid WHEN 'int2'::regtype THEN 2 WHEN 'int4'::regtype THEN 4 WHEN 'int8'::regtype THEN 8 ELSE (
    WITH RECURSIVE base (type) AS (
        SELECT typbasetype FROM pg_type WHERE oid = atttypid AND typtype = 'd'
        UNION ALL SELECT typbasetype FROM base JOIN pg_type ON oid = type AND typtype = 'd'
    ) SELECT 8 FROM base WHERE type = 'int8'::regtype
) END)
