-- A shop that lends: domains, partitions, triggers, materialized views, an aggregate, comments on all of it, roles.
DO $$ BEGIN CREATE ROLE rental_owner; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE rental_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
CREATE SCHEMA rental AUTHORIZATION rental_owner;
SET ROLE rental_owner;
SET search_path = rental;
CREATE DOMAIN year AS integer CHECK (VALUE >= 1901 AND VALUE <= 2155);
CREATE DOMAIN number AS bigint CHECK (VALUE > 0);
CREATE TYPE rating AS ENUM ('G', 'PG', 'R');
CREATE FUNCTION last_updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.last_update = now(); RETURN NEW; END $$;
CREATE SEQUENCE actor_actor_id_seq;
CREATE TABLE actor (
    actor_id integer DEFAULT nextval('actor_actor_id_seq') NOT NULL PRIMARY KEY,
    first_name text NOT NULL,
    last_update timestamptz DEFAULT now() NOT NULL
);
ALTER SEQUENCE actor_actor_id_seq OWNED BY actor.actor_id;
CREATE TABLE film (
    film_id serial PRIMARY KEY,
    title text NOT NULL,
    release_year year,
    original_id integer REFERENCES film,
    rating rating DEFAULT 'G'
);
CREATE TABLE film_actor (
    actor_id integer NOT NULL REFERENCES actor ON UPDATE CASCADE ON DELETE RESTRICT,
    film_id integer NOT NULL REFERENCES film ON UPDATE CASCADE ON DELETE RESTRICT,
    PRIMARY KEY (actor_id, film_id)
);
CREATE TABLE shop (shop_id number DEFAULT nextval('actor_actor_id_seq') PRIMARY KEY);
CREATE SEQUENCE payment_payment_id_seq;
CREATE TABLE payment (
    payment_id integer DEFAULT nextval('payment_payment_id_seq') NOT NULL,
    film_id integer NOT NULL,
    payment_date date NOT NULL,
    PRIMARY KEY (payment_date, payment_id)
) PARTITION BY RANGE (payment_date);
CREATE TABLE payment_1 (payment_id integer DEFAULT nextval('payment_payment_id_seq') NOT NULL, film_id integer NOT NULL, payment_date date NOT NULL);
ALTER TABLE payment ATTACH PARTITION payment_1 FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE payment_2 PARTITION OF payment FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
ALTER TABLE payment_2 ALTER payment_id SET DEFAULT 7;
ALTER TABLE payment_1 ADD CONSTRAINT payment_1_film_id_fkey FOREIGN KEY (film_id) REFERENCES film;
ALTER TABLE payment_2 ADD FOREIGN KEY (film_id) REFERENCES film;
CREATE UNLOGGED TABLE visit (visit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz DEFAULT now());
CREATE TABLE log (entry bigserial PRIMARY KEY, what text);
CREATE TABLE log_of_films (film_id integer REFERENCES film) INHERITS (log);
CREATE TABLE log_of_others () INHERITS (log);
ALTER TABLE log_of_others ALTER entry SET DEFAULT -1;
CREATE TRIGGER last_updated BEFORE UPDATE ON actor FOR EACH ROW EXECUTE FUNCTION last_updated();
CREATE TRIGGER watched AFTER INSERT ON log FOR EACH STATEMENT EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER TABLE log DISABLE TRIGGER watched;
CREATE AGGREGATE group_concat (text) (SFUNC = textcat, STYPE = text);
CREATE VIEW actor_info WITH (security_barrier) AS
    SELECT a.actor_id, first_name, group_concat(title || ', ') AS films
    FROM actor a LEFT JOIN film_actor fa ON a.actor_id = fa.actor_id LEFT JOIN film f USING (film_id) GROUP BY a.actor_id, first_name;
CREATE VIEW busy AS SELECT * FROM actor_info WHERE films <> '';
CREATE MATERIALIZED VIEW by_film AS SELECT film_id, count(*) AS payments FROM payment GROUP BY film_id WITH NO DATA;
CREATE INDEX by_film_count ON by_film (payments);
COMMENT ON VIEW actor_info IS 'who played in what';
COMMENT ON COLUMN actor_info.films IS 'their titles';
COMMENT ON INDEX by_film_count IS 'by number';
GRANT SELECT ON actor_info TO rental_reader;
GRANT SELECT (films) ON busy TO rental_reader WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE film_film_id_seq, visit_visit_id_seq TO rental_reader;
RESET ROLE;
