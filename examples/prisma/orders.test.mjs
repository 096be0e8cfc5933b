import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '@prisma/client';
import pg from 'pg';
import { add, addMany, between, layoutOf, toJson } from './orders.mjs';

const PUBLISHED = 382304429472247813n;
const MANY = Array.from({ length: 5000 }, (_, n) => ({ item: `item ${n}`, quantity: n }));
// libpq's environment variables name the server.
const prisma = new PrismaClient({ adapter: new PrismaPg({}) });
const client = new pg.Client();
const rows = async (query, values) => (await client.query(query, values)).rows;

// How many INSERT statements the server has executed since the last call.
const statements = async () => Number((await rows('SELECT test.insert_statements() AS count'))[0].count);

before(() => client.connect());
after(() => Promise.all([client.end(), prisma.$disconnect()]));
beforeEach(async () => {
  await client.query('DROP TABLE IF EXISTS orders');
  // What `prisma migrate` makes of schema.prisma.
  await client.query(`
    CREATE TABLE "orders" (
      "id" BIGINT NOT NULL DEFAULT snowflake_next(), "item" TEXT NOT NULL, "quantity" INTEGER NOT NULL,
      CONSTRAINT "orders_pkey" PRIMARY KEY ("id"))`);
  await statements();
});

test('the key comes back', async () => {
  const order = await add(prisma, { item: 'lamp', quantity: 2 });
  assert.ok(order.id > 1n << 53n);
  assert.deepEqual(await rows('SELECT * FROM orders'), [{ ...order, id: String(order.id) }]);
  assert.deepEqual(await prisma.order.findUnique({ where: { id: order.id } }), order);
});

test('many are one statement', async () => {
  const orders = await addMany(prisma, MANY);
  assert.equal(await statements(), 1);
  const expected = orders.map(({ id, item, quantity }) => ({ id: String(id), item, quantity }));
  assert.deepEqual(await rows('SELECT * FROM orders ORDER BY quantity'), expected);
  assert.deepEqual(orders.map(({ item, quantity }) => ({ item, quantity })), MANY);
});

test('keys survive JSON', async () => {
  const order = await add(prisma, { id: PUBLISHED, item: 'lamp', quantity: 1 });
  const text = toJson(order);
  assert.equal(text, '{"id":"382304429472247813","item":"lamp","quantity":1}');
  assert.deepEqual(await prisma.order.findUnique({ where: { id: BigInt(JSON.parse(text).id) } }), order);
});

test('times, and the rows of a day', async () => {
  const layout = await layoutOf(prisma);
  await addMany(prisma, MANY);
  for (const { id, timestamp } of await rows('SELECT id, snowflake_timestamp(id) AS timestamp FROM orders')) {
    assert.deepEqual(layout.timestamp(id), timestamp);
  }
  const day = Date.UTC(2026, 10, 20);
  const keys = [day - 10, day, day + 86_399_990, day + 86_400_000].map((ms) =>
    layout.encode({ timestamp: new Date(ms), workerId: 1 }));
  for (const id of keys) await add(prisma, { id, item: 'lamp', quantity: 1 });
  const found = await between(prisma, layout, new Date(day), new Date(day + 86_400_000));
  assert.deepEqual(found.map(({ id }) => id), keys.slice(1, 3));
});
