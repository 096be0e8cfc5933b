// Orders with Drizzle.

import { and, asc, eq, gte, lte, sql } from 'drizzle-orm';
import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { Layout } from 'snowflake-ids';

// PostgreSQL makes the keys. They are BigInt here: as numbers they would be other keys. drizzle-kit makes of this
//   CREATE TABLE "orders" ("id" bigint PRIMARY KEY DEFAULT snowflake_next() NOT NULL, ...)
export const orders = pgTable('orders', {
  id: bigint({ mode: 'bigint' }).primaryKey().default(sql`snowflake_next()`),
  item: text().notNull(),
  quantity: integer().notNull(),
});

// Adds an order and returns it, with its key.
export const add = async (db, order) => (await db.insert(orders).values(order).returning())[0];

// Adds orders by one statement, and returns them with their keys. A statement has up to 65,534 parameters.
export const addMany = (db, list) => db.insert(orders).values(list).returning();

export const find = async (db, id) => (await db.select().from(orders).where(eq(orders.id, id)))[0];

// The orders of a range of time, which is a range of the primary key.
export const between = (db, layout, since, until) => {
  const range = and(gte(orders.id, layout.minId(since)), lte(orders.id, layout.maxIdBefore(until)));
  return db.select().from(orders).where(range).orderBy(asc(orders.id));
};

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (db) =>
  new Layout((await db.execute(sql`SELECT snowflake_database_layout() AS layout`)).rows[0].layout);
