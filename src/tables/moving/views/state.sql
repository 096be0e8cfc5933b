-- A part of others: what must be the same after a view was made again, of the relation c.
concat_ws(' / ', relkind, relowner::regrole, reltablespace, relam,
    (SELECT string_agg(acl::text, ' ' ORDER BY acl::text)
        FROM unnest(coalesce(relacl, acldefault('r', relowner))) acl),
    (SELECT string_agg(option, ' ' ORDER BY option) FROM unnest(reloptions) option),
    (SELECT string_agg('toast.' || option, ' ' ORDER BY option)
        FROM pg_class t, unnest(t.reloptions) option WHERE t.oid = c.reltoastrelid),
    obj_description(c.oid, 'pg_class'),
    (SELECT string_agg(concat_ws(' ', attname,
            (SELECT string_agg(acl::text, ' ' ORDER BY acl::text) FROM unnest(attacl) acl),
            col_description(attrelid, attnum)), ', ' ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT string_agg(concat_ws(' ', pg_get_indexdef(indexrelid), obj_description(indexrelid, 'pg_class')),
            ', ' ORDER BY indexrelid::regclass::text)
        FROM pg_index WHERE indrelid = c.oid))
