import { sql } from 'drizzle-orm';
import { bigint, integer, pgTable, text } from 'drizzle-orm/pg-core';

// PostgreSQL makes the keys. They are BigInt here: as numbers they would be other keys. drizzle-kit makes of this
//   CREATE TABLE "orders" ("id" bigint PRIMARY KEY DEFAULT snowflake_next() NOT NULL, ...)
export const orders = pgTable('orders', {
  id: bigint({ mode: 'bigint' }).primaryKey().default(sql`snowflake_next()`),
  item: text().notNull(),
  quantity: integer().notNull(),
});
