CREATE TABLE IF NOT EXISTS books (id bigint PRIMARY KEY DEFAULT snowflake_next(), title text);
INSERT INTO books (title) VALUES ('Emma'), ('Ulysses');
SELECT title, id, (snowflake_decode(id)).* FROM books ORDER BY id;
SELECT worker_id, lease FROM snowflake_status();
