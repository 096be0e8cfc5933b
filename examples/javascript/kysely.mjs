// Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with Kysely. It reads a bigint as a string, which is exact; in
// TypeScript, the column is `id: Generated<string>`.

import { sql } from 'kysely';
import { Layout } from 'snowflake-ids';

export const createTable = (db) =>
  db.schema
    .createTable('orders')
    .addColumn('id', 'bigint', (column) => column.primaryKey().defaultTo(sql`snowflake_next()`))
    .addColumn('item', 'text', (column) => column.notNull())
    .addColumn('quantity', 'integer', (column) => column.notNull())
    .execute();

// Adds an order and returns its key.
export const add = async (db, order) =>
  (await db.insertInto('orders').values(order).returning('id').executeTakeFirstOrThrow()).id;

// Adds orders by one statement. Returns their keys.
export const addMany = async (db, orders) =>
  (await db.insertInto('orders').values(orders).returning('id').execute()).map(({ id }) => id);

export const find = (db, id) => db.selectFrom('orders').selectAll().where('id', '=', id).executeTakeFirst();

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (db) =>
  new Layout((await sql`SELECT snowflake_database_layout() AS layout`.execute(db)).rows[0].layout);

// The keys of a range of time, which is a range of the primary key.
export const between = async (db, layout, since, until) => {
  const query = db.selectFrom('orders').select('id').where('id', '>=', layout.minId(since));
  const rows = await query.where('id', '<=', layout.maxIdBefore(until)).orderBy('id').execute();
  return rows.map(({ id }) => id);
};
