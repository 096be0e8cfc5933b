// What Drizzle makes of snowflake_id, declared as bigint({ mode: 'bigint' }): a BigInt. As a type of its own, it is in the migrations.

import assert from 'node:assert/strict';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, customType, pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';

const snowflakeId = customType({ dataType: () => 'snowflake_id', fromDriver: BigInt, toDriver: String });
const as = (type) => pgTable('typed_orders', { id: type().primaryKey().default(sql`snowflake_next()`), item: text().notNull() });

const client = new pg.Client();
await client.connect();
await client.query('CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)');
const db = drizzle(client);
for (const orders of [as(() => bigint({ mode: 'bigint' })), as(snowflakeId)]) {
  const [order] = await db.insert(orders).values({ item: 'lamp' }).returning();
  assert.equal(typeof order.id, 'bigint');
  assert.deepEqual(await db.select().from(orders).where(eq(orders.id, order.id)), [order]);
}
await client.end();
console.log('seen: drizzle');
