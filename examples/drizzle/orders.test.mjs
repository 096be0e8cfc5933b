import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { asc, eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { add, addMany, layoutOf, toJson } from './orders.mjs';
import { orders } from './schema.mjs';

const PUBLISHED = 382304429472247813n;
const MANY = Array.from({ length: 5000 }, (_, n) => ({ item: `item ${n}`, quantity: n }));
const client = new pg.Client();
const db = drizzle(client);

// How many INSERT statements the server has executed since the last call.
const statements = async () => Number((await client.query('SELECT test.insert_statements() AS count')).rows[0].count);

before(() => client.connect());
after(() => client.end());
beforeEach(async () => {
  await client.query('DROP TABLE IF EXISTS orders');
  await client.query(`
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)`);
  await statements();
});

test('the key comes back', async () => {
  const order = await add(db, { item: 'lamp', quantity: 2 });
  assert.equal(typeof order.id, 'bigint');
  assert.deepEqual(await db.select().from(orders).where(eq(orders.id, order.id)), [order]);
});

test('many are one statement', async () => {
  const added = await addMany(db, MANY);
  assert.equal(await statements(), 1);
  assert.deepEqual(added.map(({ item, quantity }) => ({ item, quantity })), MANY);
  assert.deepEqual(await db.select().from(orders).orderBy(asc(orders.id)), added);
});

test('keys survive JSON', async () => {
  const order = await add(db, { id: PUBLISHED, item: 'lamp', quantity: 1 });
  const text = toJson(order);
  assert.equal(text, '{"id":"382304429472247813","item":"lamp","quantity":1}');
  assert.deepEqual(await db.select().from(orders).where(eq(orders.id, BigInt(JSON.parse(text).id))), [order]);
  assert.notEqual(BigInt(Number(PUBLISHED)), PUBLISHED);
});

test('the time is read from the key', async () => {
  const layout = await layoutOf(db);
  await addMany(db, MANY);
  const timestamp = sql`snowflake_timestamp(${orders.id})`.mapWith((text) => new Date(text));
  const rows = await db.select({ id: orders.id, timestamp }).from(orders);
  assert.equal(rows.length, MANY.length);
  for (const { id, timestamp } of rows) assert.deepEqual(layout.timestamp(id), timestamp);
});
