-- The objects of an attacker, in schema evil: everything that a table can carry and that has code. Run as mallory, who may create
-- objects in the database. Each piece of code says in the log that it ran, and as whom if that is anybody but mallory.
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;

CREATE FUNCTION evil.spring(kind text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE LOG 'ran: %;', kind;
    IF current_user <> 'mallory' THEN
        RAISE LOG 'sprung: % as %', kind, current_user;
    END IF;
    -- For what the session does next.
    IF session_user <> 'mallory' THEN
        PERFORM set_config('search_path', 'evil', false), set_config('application_name', kind, false);
    END IF;
    -- In an operation that is not restricted, back to the role that has logged in.
    BEGIN
        EXECUTE 'RESET ROLE';
        IF current_user <> 'mallory' THEN
            RAISE LOG 'sprung: % became %', kind, current_user;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
END $$;
CREATE FUNCTION evil.num(kind text, n bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.spring(kind);
    RETURN n;
END $$;
CREATE FUNCTION evil.yes(kind text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.spring(kind);
    RETURN true;
END $$;
CREATE FUNCTION evil.fires() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.spring('trigger');
    RETURN NEW;
END $$;
CREATE FUNCTION evil.adds(integer, text) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$ SELECT evil.num('operator', $1) $$;
CREATE FUNCTION evil.on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.spring('event trigger');
END $$;
CREATE OPERATOR evil.+ (LEFTARG = integer, RIGHTARG = text, FUNCTION = evil.adds);
CREATE TYPE evil.box AS (n integer);
CREATE FUNCTION evil.unbox(evil.box) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evil.spring('cast');
    RETURN $1.n;
END $$;
CREATE CAST (evil.box AS integer) WITH FUNCTION evil.unbox AS IMPLICIT;
-- A text of such a type is checked where a definition is read, before anything is run.
CREATE DOMAIN evil.word AS text CHECK (evil.yes('domain'));

-- With an integer key, to which another table refers and from which one inherits.
CREATE TABLE evil.orders (
    id serial PRIMARY KEY,
    n integer NOT NULL DEFAULT evil.num('default', 1),
    word evil.word DEFAULT 'w',
    box evil.box DEFAULT ROW (1),
    made bigint GENERATED ALWAYS AS (evil.num('generated column', n)) STORED,
    CHECK (evil.num('check', id) IS NOT NULL),
    CHECK (n OPERATOR(evil.+) 'x'::text > 0),
    CHECK (box::integer > 0)
);
CREATE INDEX ON evil.orders (evil.num('index', n));
CREATE INDEX ON evil.orders (n) WHERE evil.yes('predicate');
CREATE INDEX ON evil.orders (n) WHERE evil.num('predicate of the key', id) > 0;
CREATE STATISTICS evil.of_orders ON (evil.num('statistics', n)), n FROM evil.orders;
ALTER TABLE evil.orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY policy ON evil.orders USING (evil.yes('policy'));
CREATE TRIGGER a AFTER INSERT ON evil.orders FOR EACH ROW EXECUTE FUNCTION evil.fires();
CREATE TRIGGER b BEFORE UPDATE OR DELETE ON evil.orders FOR EACH STATEMENT EXECUTE FUNCTION evil.fires();
CREATE CONSTRAINT TRIGGER c AFTER UPDATE ON evil.orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION evil.fires();
CREATE RULE rule AS ON INSERT TO evil.orders DO ALSO SELECT evil.spring('rule');
CREATE TABLE evil.heirs (CHECK (evil.num('check of an heir', id) IS NOT NULL)) INHERITS (evil.orders);
CREATE INDEX ON evil.heirs (n) WHERE evil.yes('predicate of an heir');
CREATE TABLE evil.lines (order_id integer REFERENCES evil.orders, CHECK (evil.num('check of a referring table', order_id) > 0));
CREATE INDEX ON evil.lines (order_id) WHERE evil.yes('predicate of a referring table');
CREATE VIEW evil.view AS SELECT id, evil.num('view', id) AS num, '{x}'::evil.word[] AS words FROM evil.orders;
CREATE MATERIALIZED VIEW evil.stored AS SELECT id, evil.num('materialized view', id) AS num FROM evil.orders;
CREATE INDEX ON evil.stored (evil.num('index of a materialized view', num));
INSERT INTO evil.orders (n) VALUES (1), (2);
INSERT INTO evil.heirs DEFAULT VALUES;
INSERT INTO evil.lines VALUES (1);
REFRESH MATERIALIZED VIEW evil.stored;
ALTER TABLE evil.orders FORCE ROW LEVEL SECURITY;

-- Partitioned, with a default partition that has rows.
CREATE TABLE evil.events (
    id bigint DEFAULT snowflake_next(),
    n integer DEFAULT evil.num('default', 1),
    word evil.word DEFAULT 'w',
    made bigint GENERATED ALWAYS AS (evil.num('generated column', n)) STORED,
    CHECK (evil.num('check', id) IS NOT NULL),
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX ON evil.events (evil.num('index', n));
CREATE INDEX ON evil.events (n) WHERE evil.yes('predicate');
CREATE TABLE evil.events_default PARTITION OF evil.events DEFAULT;
CREATE INDEX ON evil.events_default (id) WHERE evil.num('predicate of the key', id) > 0;
CREATE TRIGGER a AFTER INSERT ON evil.events FOR EACH ROW EXECUTE FUNCTION evil.fires();
ALTER TABLE evil.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE evil.events FORCE ROW LEVEL SECURITY;
CREATE POLICY policy ON evil.events USING (evil.yes('policy'));
INSERT INTO evil.events VALUES (5);

CREATE TABLE evil.plain (id bigint PRIMARY KEY DEFAULT snowflake_next(), CHECK (evil.num('check', id) IS NOT NULL));
CREATE INDEX ON evil.plain (id) WHERE evil.yes('predicate');

-- A view, too, can have a column with a default.
CREATE VIEW evil.looks_like_a_table AS SELECT evil.num('view with a default', 1) AS id;
ALTER VIEW evil.looks_like_a_table ALTER COLUMN id SET DEFAULT snowflake_next();
