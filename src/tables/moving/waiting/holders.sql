-- Who has a lock on one of these relations ($1), or, where $3 is true, on what is tied to these by foreign keys and inheritance; but for locks
-- of modes that exclude nothing ($2). What the third column has is shown to those only who may see another's session.
WITH RECURSIVE near (relation) AS (
    SELECT unnest($1::oid[])
    UNION
    SELECT other FROM near, LATERAL (
        SELECT conrelid AS other FROM pg_constraint WHERE contype = 'f' AND confrelid = relation
        UNION ALL SELECT confrelid FROM pg_constraint WHERE contype = 'f' AND conrelid = relation
        UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = relation
        UNION ALL SELECT inhparent FROM pg_inherits WHERE inhrelid = relation
    ) others WHERE $3
)
SELECT l.relation,
    coalesce('the prepared transaction ' || quote_literal(gid) || to_char(prepared, '", since "YYYY-MM-DD HH24:MI:SSOF'),
        'process ' || l.pid || ' of ' || coalesce('role ' || quote_ident(usename), backend_type, 'a role that is not shown')),
    to_char(xact_start, '", since "YYYY-MM-DD HH24:MI:SSOF') || ', whose ' || CASE state WHEN 'active' THEN '' ELSE 'last ' END
        || 'statement, of ' || to_char(query_start, 'HH24:MI:SS') || ', is: '
        || left(regexp_replace(query, '\s+', ' ', 'g'), 80) || CASE WHEN length(query) > 80 THEN '...' ELSE '' END
FROM (
    SELECT DISTINCT relation, pid, virtualtransaction FROM pg_locks JOIN near USING (relation)
    WHERE locktype = 'relation' AND granted AND pid IS DISTINCT FROM pg_backend_pid() AND mode <> ALL ($2)
        AND database IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
) l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_locks t ON l.pid IS NULL AND t.virtualtransaction = l.virtualtransaction AND t.locktype = 'transactionid'
LEFT JOIN pg_prepared_xacts p ON p.transaction = t.transactionid
ORDER BY l.relation, xact_start, l.pid LIMIT 5
