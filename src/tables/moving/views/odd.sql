-- A part of others: whether a new view's owner has other privileges on it than this one's has.
(NOT coalesce(relacl, acldefault('r', relowner)) @> acldefault('r', relowner) OR EXISTS (SELECT FROM pg_default_acl
    WHERE :given AND defaclnamespace = 0 AND NOT defaclacl @> acldefault('r', relowner)))
