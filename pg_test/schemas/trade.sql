-- A wholesaler: keys without a default, of smallint and text, and sequences that no column owns.
SET check_function_bodies = off;
CREATE TABLE categories (category_id smallint NOT NULL, category_name varchar(15) NOT NULL);
CREATE TABLE customers (customer_id varchar(5) NOT NULL PRIMARY KEY, company_name varchar(40) NOT NULL);
CREATE TABLE orders (
    order_id smallint NOT NULL,
    customer_id varchar(5) REFERENCES customers,
    order_date date,
    freight real,
    CONSTRAINT pk_orders PRIMARY KEY (order_id)
);
CREATE TABLE order_details (order_id smallint NOT NULL, product_id smallint NOT NULL, quantity smallint NOT NULL,
    CONSTRAINT pk_order_details PRIMARY KEY (order_id, product_id));
CREATE SEQUENCE product_numbers AS smallint START 100 INCREMENT 5;
CREATE TABLE products (product_id smallint DEFAULT nextval('product_numbers') PRIMARY KEY, category_id smallint, name text);
CREATE TABLE parts (part_id integer DEFAULT nextval('product_numbers'), product_id smallint REFERENCES products, PRIMARY KEY (part_id));
CREATE FUNCTION next_invoice() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('invoices_id_seq') * 10 + 1 $$;
CREATE TABLE invoices (id bigserial PRIMARY KEY, order_id smallint);
ALTER TABLE invoices ALTER id SET DEFAULT next_invoice();
ALTER TABLE categories ADD CONSTRAINT pk_categories PRIMARY KEY (category_id);
ALTER TABLE products ADD CONSTRAINT fk_products_categories FOREIGN KEY (category_id) REFERENCES categories ON UPDATE CASCADE;
ALTER TABLE order_details ADD CONSTRAINT fk_order FOREIGN KEY (order_id) REFERENCES orders,
    ADD CONSTRAINT fk_product FOREIGN KEY (product_id) REFERENCES products;
ALTER TABLE invoices ADD FOREIGN KEY (order_id) REFERENCES orders (order_id) MATCH FULL;
CREATE VIEW subtotals AS SELECT order_id, sum(quantity) AS total FROM order_details GROUP BY order_id;
CREATE MATERIALIZED VIEW by_customer AS SELECT customer_id, o.order_id, total FROM orders o JOIN subtotals USING (order_id);
CREATE UNIQUE INDEX by_customer_key ON by_customer (order_id) WITH (fillfactor = 70);
