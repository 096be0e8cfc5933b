-- A part of others: the statement that creates a view without rows, of c.
concat('CREATE ', kind, name,
    CASE relkind WHEN 'm' THEN
        (SELECT ' USING ' || quote_ident(amname) FROM pg_am WHERE pg_am.oid = relam) END,
    (SELECT ' WITH (' || string_agg(of || quote_ident(option_name) || ' = ' || quote_literal(option_value), ', ') || ')'
        FROM (
            SELECT '' AS of, option_name, option_value FROM pg_options_to_table(reloptions)
            UNION ALL
            SELECT 'toast.', o.option_name, o.option_value
            FROM pg_class t, pg_options_to_table(t.reloptions) o WHERE t.oid = c.reltoastrelid
        ) options),
    CASE relkind WHEN 'm' THEN
        (SELECT ' TABLESPACE ' || quote_ident(spcname) FROM pg_database JOIN pg_tablespace s
            ON s.oid = CASE reltablespace WHEN 0 THEN dattablespace ELSE reltablespace END
            WHERE datname = current_database()) END,
    ' AS ', rtrim(pg_get_viewdef(view), ';'),
    CASE relkind WHEN 'm' THEN ' WITH NO DATA' END)
