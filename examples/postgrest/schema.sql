-- What PostgREST shows of tables with snowflake IDs: views of a schema of their own, in which primary and foreign keys are text.
-- JavaScript reads a number of 63 bits as another number, and PostgREST sends a bigint as a number.

CREATE SCHEMA shop;
CREATE TABLE shop.customers (id bigint PRIMARY KEY DEFAULT snowflake_next(), name text NOT NULL);
CREATE TABLE shop.orders (
    id bigint PRIMARY KEY DEFAULT snowflake_next(),
    customer_id bigint NOT NULL REFERENCES shop.customers,
    item text NOT NULL
);
-- For filters such as id=eq.382304429472247813 and customer_id=eq.…, which compare texts.
CREATE UNIQUE INDEX ON shop.customers ((id::text));
CREATE UNIQUE INDEX ON shop.orders ((id::text));
CREATE INDEX ON shop.orders ((customer_id::text));

-- With security_invoker, the tables' row-level security holds for whoever asks; he needs privileges on the tables, too. PostgreSQL 14 does
-- not have it: there, make no such views of tables with policies, as they would show all rows.
CREATE SCHEMA api;
CREATE VIEW api.customers WITH (security_invoker = true) AS SELECT id::text AS id, name FROM shop.customers;
-- created_at is filtered by the primary key of the table: created_at=gte.2026-11-20&created_at=lt.2026-11-21.
CREATE VIEW api.orders WITH (security_invoker = true) AS
    SELECT id::text AS id, customer_id::text AS customer_id, item, snowflake_timestamp(id) AS created_at FROM shop.orders;

-- The foreign key between the views, for select=*,customer(*): PostgREST does not see it through the casts.
CREATE FUNCTION api.customer(api.orders) RETURNS SETOF api.customers ROWS 1 LANGUAGE sql STABLE AS
    $$ SELECT * FROM api.customers WHERE id = $1.customer_id $$;

-- A view with expressions takes writes by a trigger only. RETURNING has the key.
CREATE FUNCTION api.write_orders() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM shop.orders WHERE id = OLD.id::bigint;
        RETURN OLD;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO shop.orders (customer_id, item) VALUES (NEW.customer_id::bigint, NEW.item) RETURNING id::text INTO NEW.id;
    ELSE
        UPDATE shop.orders SET customer_id = NEW.customer_id::bigint, item = NEW.item WHERE id = OLD.id::bigint;
        NEW.id := OLD.id;
    END IF;
    NEW.created_at := snowflake_timestamp(NEW.id::bigint);
    RETURN NEW;
END $$;
CREATE TRIGGER write_orders INSTEAD OF INSERT OR UPDATE OR DELETE ON api.orders FOR EACH ROW EXECUTE FUNCTION api.write_orders();
