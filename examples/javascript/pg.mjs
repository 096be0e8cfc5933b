// Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with pg. It reads a bigint as a string, which is exact.

import pg from 'pg';
import { Layout } from 'snowflake-ids';

export const createTable = (client) =>
  client.query('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)');

// Adds an order and returns its key.
export const add = async (client, { item, quantity }) => {
  const query = 'INSERT INTO orders (item, quantity) VALUES ($1, $2) RETURNING id';
  return (await client.query(query, [item, quantity])).rows[0].id;
};

// Adds orders by one statement. Returns their keys in the same order.
export const addMany = async (client, orders) => {
  const query = `
    WITH added AS (
      INSERT INTO orders (item, quantity)
      SELECT item, quantity FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS o (item, quantity, n) ORDER BY n
      RETURNING id)
    SELECT id FROM added ORDER BY id -- keys rise in the order in which they are made`;
  const columns = [orders.map(({ item }) => item), orders.map(({ quantity }) => quantity)];
  return (await client.query(query, columns)).rows.map(({ id }) => id);
};

export const find = async (client, id) => (await client.query('SELECT * FROM orders WHERE id = $1', [id])).rows[0];

// The keys of a range of time, which is a range of the primary key.
export const between = async (client, layout, since, until) => {
  const query = 'SELECT id FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id';
  return (await client.query(query, [layout.minId(since), layout.maxIdBefore(until)])).rows.map(({ id }) => id);
};

// Types for a client that reads bigint as BigInt: new pg.Client({ types: bigints }). They compare and sort as numbers do.
export const bigints = {
  getTypeParser: (type, format) => (type === pg.types.builtins.INT8 ? BigInt : pg.types.getTypeParser(type, format)),
};

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (client) =>
  new Layout((await client.query('SELECT snowflake_database_layout() AS layout')).rows[0].layout);
