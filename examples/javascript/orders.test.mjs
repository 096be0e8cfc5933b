// What holds for the orders of each library.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '@prisma/client';
import { drizzle } from 'drizzle-orm/node-postgres';
import makeKnex from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { Sequelize } from 'sequelize';
import { DataSource } from 'typeorm';
import * as byDrizzle from './drizzle.mjs';
import { toJson } from './json.mjs';
import * as byKnex from './knex.mjs';
import * as byKysely from './kysely.mjs';
import * as byPg from './pg.mjs';
import * as byPrisma from './prisma.mjs';
import * as bySequelize from './sequelize.mjs';
import * as byTypeOrm from './typeorm.mjs';

const PUBLISHED = '382304429472247813';
const LAMP = { item: 'lamp', quantity: 2 };
const MANY = Array.from({ length: 5000 }, (_, n) => ({ item: `item ${n}`, quantity: n }));

const connect = async (options) => {
  const client = new pg.Client(options);
  await client.connect();
  return client;
};
// Looks at what is there.
const client = await connect();
after(() => client.end());
const rows = async (query, values) => (await client.query(query, values)).rows;

// How many INSERT statements the server has executed since the last call.
const statements = async () => Number((await rows('SELECT test.insert_statements() AS count'))[0].count);

// The others know libpq's environment variables.
const { PGHOST: host, PGPORT: port, PGUSER: username, PGDATABASE: database } = process.env;
const server = { host, port: Number(port), username, database };

// Its program takes no key of ours.
const insert = (client, { id, item, quantity }) => client.query('INSERT INTO orders VALUES ($1, $2, $3)', [id, item, quantity]);
const ofPg = { ...byPg, insert, close: (client) => client.end() };

// The program of each, how it connects, and as what it has a key.
const LIBRARIES = {
  'pg': { ...ofPg, keys: String, open: () => connect() },
  'pg with bigints': { ...ofPg, keys: BigInt, open: () => connect({ types: byPg.bigints }) },
  'Drizzle': {
    ...byDrizzle,
    keys: BigInt,
    open: async () => drizzle(await connect()),
    createTable: () => byPg.createTable(client),
    close: (db) => db.$client.end(),
  },
  'Knex': {
    ...byKnex,
    keys: String,
    open: () => makeKnex({ client: 'pg', connection: {} }),
    close: (knex) => knex.destroy(),
  },
  'Kysely': {
    ...byKysely,
    keys: String,
    open: () => new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) }),
    close: (db) => db.destroy(),
  },
  'Prisma': {
    ...byPrisma,
    keys: BigInt,
    open: () => new PrismaClient({ adapter: new PrismaPg({}) }),
    // What `prisma migrate` makes of schema.prisma.
    createTable: () => client.query(`
      CREATE TABLE "orders" (
        "id" BIGINT NOT NULL DEFAULT snowflake_next(), "item" TEXT NOT NULL, "quantity" INTEGER NOT NULL,
        CONSTRAINT "orders_pkey" PRIMARY KEY ("id"))`),
    close: (prisma) => prisma.$disconnect(),
  },
  'Sequelize': {
    ...bySequelize,
    keys: String,
    open: () => bySequelize.defineOrder(new Sequelize({ dialect: 'postgres', ...server, logging: false })),
    createTable: (Order) => Order.sync(),
    close: ({ sequelize }) => sequelize.close(),
  },
  'TypeORM': {
    ...byTypeOrm,
    keys: String,
    open: async () => {
      const source = new DataSource({ type: 'postgres', ...server, entities: [byTypeOrm.Order] });
      return (await source.initialize()).getRepository(byTypeOrm.Order);
    },
    createTable: ({ manager }) => manager.connection.synchronize(),
    close: ({ manager }) => manager.connection.destroy(),
  },
};

// Some return orders, some their keys.
const keyOf = (added) => added.id ?? added;

for (const [name, library] of Object.entries(LIBRARIES)) {
  const { keys, open, createTable, close, add, addMany, find, between, layoutOf, insert = add } = library;
  const isKey = (id) => assert.equal(typeof id, keys.name.toLowerCase());

  describe(name, () => {
    let db;
    before(async () => { db = await open(); });
    after(() => close(db));
    beforeEach(async () => {
      await client.query('DROP TABLE IF EXISTS orders');
      await createTable(db);
      await statements();
    });

    test(`${name}: the table has the default`, async () => {
      const query = `SELECT data_type, column_default FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'id'`;
      assert.deepEqual(await rows(query), [{ data_type: 'bigint', column_default: 'snowflake_next()' }]);
    });

    test(`${name}: the key comes back`, async () => {
      const id = keyOf(await add(db, LAMP));
      isKey(id);
      assert.ok(BigInt(id) > 1n << 53n);
      assert.deepEqual(await rows('SELECT * FROM orders'), [{ id: String(id), ...LAMP }]);
      assert.deepEqual(await find(db, id), { id, ...LAMP });
    });

    test(`${name}: many are one statement`, async () => {
      const ids = (await addMany(db, MANY)).map(keyOf);
      assert.equal(await statements(), 1);
      ids.forEach(isKey);
      assert.equal(new Set(ids).size, MANY.length);
      const expected = MANY.map((order, n) => ({ id: String(ids[n]), ...order }));
      assert.deepEqual(await rows('SELECT * FROM orders ORDER BY quantity'), expected);
      assert.deepEqual(await rows('SELECT * FROM orders ORDER BY id'), expected);
    });

    test(`${name}: keys survive JSON`, async () => {
      const order = { id: keys(PUBLISHED), ...LAMP };
      await insert(db, order);
      const text = toJson(await find(db, order.id));
      assert.equal(text, `{"id":"${PUBLISHED}","item":"lamp","quantity":2}`);
      assert.deepEqual(await find(db, keys(JSON.parse(text).id)), order);
      if (keys === String) assert.equal(JSON.stringify(order), text);
    });

    test(`${name}: times, and the rows of a day`, async () => {
      const layout = await layoutOf(db);
      const ids = (await addMany(db, MANY)).map(keyOf);
      const times = await rows('SELECT snowflake_timestamp(id) AS timestamp FROM orders ORDER BY id');
      assert.deepEqual(ids.map((id) => ({ timestamp: layout.timestamp(id) })), times);

      const day = Date.UTC(2026, 10, 20);
      const days = [day - 10, day, day + 86_399_990, day + 86_400_000].map((ms) =>
        keys(layout.encode({ timestamp: new Date(ms), workerId: 1 })));
      for (const id of days) await insert(db, { id, ...LAMP });
      const found = await between(db, layout, new Date(day), new Date(day + 86_400_000));
      assert.deepEqual(found.map(keyOf), days.slice(1, 3));
    });
  });
}

test('a number cannot hold a key', () => {
  assert.notEqual(String(JSON.parse(`{"id":${PUBLISHED}}`).id), PUBLISHED);
  assert.notEqual(BigInt(Number(PUBLISHED)), BigInt(PUBLISHED));
  assert.throws(() => JSON.stringify({ id: BigInt(PUBLISHED) }), TypeError);
});
