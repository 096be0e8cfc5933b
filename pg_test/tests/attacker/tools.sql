-- What mallory makes things of: every kind of code that an object can carry. Each writes into the
-- log who ran it, where that is neither she nor her crew. Run once in a database, as mallory.
CREATE SCHEMA tools;
GRANT USAGE ON SCHEMA tools TO PUBLIC;

CREATE FUNCTION tools.note(kind text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_user NOT IN ('mallory', 'crew') THEN
        RAISE LOG 'attacker: % ran as %', kind, current_user;
    ELSIF session_user NOT IN ('mallory', 'crew') AND current_setting('attacker.staff', true) IS DISTINCT FROM 'on' THEN
        -- Back to whom the session belongs, where the operation is not restricted.
        BEGIN
            EXECUTE 'RESET ROLE';
            IF current_user NOT IN ('mallory', 'crew') THEN
                RAISE LOG 'attacker: % became %', kind, current_user;
            END IF;
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END IF;
END $$;

-- Where a call runs code of her own, that can have it wait, the first time or a later one.
CREATE SEQUENCE tools.passed;
GRANT ALL ON SEQUENCE tools.passed TO PUBLIC;
CREATE FUNCTION tools.pass() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number integer;
BEGIN
    IF current_setting('attacker.gates', true) = 'on' THEN
        number := pg_catalog.nextval('tools.passed');
        PERFORM pg_catalog.pg_advisory_xact_lock_shared(68, number);
    END IF;
END $$;

CREATE FUNCTION tools.num(kind text, n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tools.note(kind), tools.pass();
    RETURN n;
END $$;
CREATE FUNCTION tools.yes(kind text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tools.note(kind), tools.pass();
    RETURN true;
END $$;
-- Not at planning: for each row.
CREATE FUNCTION tools.seen(kind text, n bigint) RETURNS bigint VOLATILE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tools.note(kind), tools.pass();
    RETURN n;
END $$;
CREATE FUNCTION tools.fires() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tools.note('trigger'), tools.pass();
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE DOMAIN tools.number AS bigint CHECK (VALUE IS NULL OR tools.num('domain', VALUE) IS NOT NULL);

-- What a foreign table shows.
CREATE VIEW tools.remote AS SELECT i AS id, tools.seen('remote view', 1)::integer AS n, i AS last_value, 32::bigint AS log_cnt,
    true AS is_called FROM generate_series(1::bigint, 3) AS i;

-- Gives a table of hers all code that a table can be given later.
CREATE PROCEDURE tools.arm(tbl text) LANGUAGE plpgsql AS $$
DECLARE
    is_partitioned boolean := (SELECT relkind = 'p' FROM pg_class WHERE oid = tbl::regclass);
BEGIN
    EXECUTE format('ALTER TABLE %1$s ALTER n SET DEFAULT tools.num(''default'', 1);
        CREATE INDEX ON %1$s (tools.num(''index expression'', n));
        CREATE INDEX ON %1$s (id) WHERE tools.yes(''index predicate'');
        CREATE INDEX ON %1$s (id) WHERE tools.num(''index predicate on the key'', id) > 0;
        ALTER TABLE %1$s ENABLE ROW LEVEL SECURITY;
        CREATE POLICY policy ON %1$s USING (tools.yes(''policy''));
        CREATE RULE added AS ON INSERT TO %1$s DO ALSO SELECT tools.yes(''rule'');
        CREATE RULE removed AS ON DELETE TO %1$s DO ALSO SELECT tools.yes(''rule'');
        CREATE TRIGGER statement BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %1$s
            FOR EACH STATEMENT EXECUTE FUNCTION tools.fires()', tbl);
    IF NOT is_partitioned THEN
        EXECUTE format('CREATE STATISTICS %1$s_%2$s ON (tools.num(''statistics'', n)), n FROM %1$s;
            CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON %1$s DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION tools.fires()', tbl, tbl::regclass::oid);
    END IF;
    EXECUTE format('ALTER TABLE %1$s ADD CHECK (tools.num(''check'', n) IS NOT NULL), ADD CHECK (tools.yes(''constant check''))', tbl);
    -- A partition has that of its table.
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = tbl::regclass AND tgname = 'each_row') THEN
        EXECUTE format('CREATE TRIGGER each_row BEFORE INSERT OR UPDATE OR DELETE ON %1$s
            FOR EACH ROW EXECUTE FUNCTION tools.fires()', tbl);
    END IF;
END $$;

-- Makes something that is taken for a relation: a table, a sequence, a view, a foreign table. It
-- becomes a partition of `part`; `key` has its bounds, and how it is partitioned itself.
CREATE PROCEDURE tools.decoy(name text, kind text, key_type text, part text, key text, ids bigint[]) LANGUAGE plpgsql AS $$
BEGIN
    IF kind = 'sequence' THEN
        EXECUTE format('CREATE SEQUENCE %s', name);
    ELSIF kind = 'view' THEN
        EXECUTE format('CREATE VIEW %1$s AS SELECT i AS id, tools.seen(''view'', 1)::integer AS n, i AS last_value, 32::bigint AS log_cnt,
                tools.seen(''view'', 1) = 1 AS is_called FROM unnest(%2$L::bigint[]) AS i WHERE tools.seen(''view'', 1) = 1;
            ALTER VIEW %1$s ALTER n SET DEFAULT tools.num(''default of a view'', 1);
            CREATE TRIGGER instead INSTEAD OF INSERT OR UPDATE OR DELETE ON %1$s FOR EACH ROW EXECUTE FUNCTION tools.fires()',
            name, ids);
    ELSIF kind = 'foreign table' THEN
        EXECUTE format('CREATE FOREIGN TABLE %1$s (id bigint, n integer DEFAULT tools.num(''default'', 1), last_value bigint, log_cnt bigint,
                is_called boolean, CHECK (tools.num(''check'', n) IS NOT NULL), CHECK (tools.yes(''constant check''))) SERVER abroad %2$s;
            CREATE TRIGGER each_row BEFORE INSERT OR UPDATE OR DELETE ON %1$s FOR EACH ROW EXECUTE FUNCTION tools.fires()',
            name, (SELECT 'OPTIONS (schema_name ''tools'', table_name ''remote'')' FROM pg_foreign_server AS s
                JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw WHERE srvname = 'abroad' AND fdwhandler <> 0));
    ELSE
        IF part IS NULL THEN
            EXECUTE format('CREATE TABLE %s (id %s, n integer, last_value bigint DEFAULT 1, log_cnt bigint DEFAULT 32,
                    is_called boolean DEFAULT true, word tools.number DEFAULT 1,
                    made bigint GENERATED ALWAYS AS (tools.num(''generated column'', n)) STORED) %s', name, key_type, key);
        ELSE
            EXECUTE format('CREATE TABLE %s PARTITION OF %s %s', name, part, key);
        END IF;
        -- Before there is code, which would run for each of them.
        IF (SELECT relkind = 'r' FROM pg_class WHERE oid = name::regclass) THEN
            EXECUTE format('INSERT INTO %s (id, n) SELECT i, 1 FROM unnest($1) AS i', name) USING ids;
        END IF;
        CALL tools.arm(name);
    END IF;
END $$;
