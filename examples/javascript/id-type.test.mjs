// What each library makes of snowflake_id, a type that it does not know.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '@prisma/client';
import { eq, sql as drizzleSql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { bigint, customType, pgTable, text } from 'drizzle-orm/pg-core';
import makeKnex from 'knex';
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely';
import pg from 'pg';
import { DataTypes, Sequelize } from 'sequelize';
import { DataSource, EntitySchema, In } from 'typeorm';

const KEY = 382304429472247813n;
const TEXT = String(KEY);
const TABLE = 'CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)';
const { PGHOST: host, PGPORT: port, PGUSER: username, PGDATABASE: database } = process.env;

test('pg: a string, as of bigint. As a BigInt, where it is told so', async () => {
  const client = new pg.Client();
  await client.connect();
  await client.query(TABLE);
  await client.query('INSERT INTO typed_orders VALUES ($1, $2)', [KEY, TEXT]);
  const read = async () => (await client.query('SELECT id, ARRAY[id] AS ids FROM typed_orders WHERE id = $1', [KEY])).rows[0];
  assert.deepEqual(await read(), { id: TEXT, ids: `{${KEY}}` });
  const [{ oid }] = (await client.query("SELECT 'snowflake_id'::regtype::oid AS oid")).rows;
  client.setTypeParser(oid, BigInt);
  assert.equal((await read()).id, KEY);
  // What JSON has is exact.
  const { rows } = await client.query('SELECT json_agg(t) AS list FROM typed_orders AS t');
  assert.deepEqual(rows[0].list, [{ id: TEXT, parent: TEXT }]);
  await client.end();
});

test("Drizzle: a BigInt, as bigint({ mode: 'bigint' }). As a type of its own, it is in the migrations", async () => {
  const snowflakeId = customType({ dataType: () => 'snowflake_id', fromDriver: BigInt, toDriver: String });
  const as = (type) => pgTable('typed_orders', { id: type().primaryKey().default(drizzleSql`snowflake_next()`), item: text().notNull() });
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
});

test('Knex: a string, as of bigint; in migrations, specificType()', async () => {
  const knex = makeKnex({ client: 'pg', connection: {}, pool: { min: 1, max: 1 } });
  await knex.raw('SET search_path = pg_temp, public');
  await knex.schema.createTable('typed_orders', (table) => {
    table.specificType('id', 'snowflake_id').primary().defaultTo(knex.raw('snowflake_next()'));
    table.specificType('parent', 'snowflake_id');
  });
  assert.deepEqual(await knex('typed_orders').insert({ id: KEY, parent: TEXT }).returning('id'), [{ id: TEXT }]);
  assert.deepEqual(await knex('typed_orders').whereIn('id', [KEY, '5']), [{ id: TEXT, parent: TEXT }]);
  assert.equal(typeof (await knex('typed_orders').insert({ parent: 5 }).returning('id'))[0].id, 'string');
  await knex.destroy();
});

test('Kysely: a string, as of bigint; in migrations, sql`snowflake_id`', async () => {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ max: 1 }) }) });
  await db.schema
    .createTable('typed_orders')
    .temporary()
    .addColumn('id', kyselySql`snowflake_id`, (column) => column.primaryKey().defaultTo(kyselySql`snowflake_next()`))
    .addColumn('parent', kyselySql`snowflake_id`)
    .execute();
  const insert = (values) => db.insertInto('typed_orders').values(values).returning('id').executeTakeFirstOrThrow();
  assert.deepEqual(await insert({ id: KEY, parent: TEXT }), { id: TEXT });
  const found = await db.selectFrom('typed_orders').selectAll().where('id', 'in', [KEY, '5']).execute();
  assert.deepEqual(found, [{ id: TEXT, parent: TEXT }]);
  assert.equal(typeof (await insert({ parent: 5 })).id, 'string');
  await db.destroy();
});

test('Prisma: a BigInt, as BigInt. In what it reads by SQL, a string', async () => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({}) });
  await prisma.$executeRaw`DROP TABLE IF EXISTS orders`;
  await prisma.$executeRaw`CREATE TABLE orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text, quantity integer)`;
  const lamp = { item: 'lamp', quantity: 1 };
  assert.deepEqual(await prisma.order.create({ data: { id: KEY, ...lamp } }), { id: KEY, ...lamp });
  assert.equal(typeof (await prisma.order.create({ data: lamp })).id, 'bigint');
  assert.deepEqual(await prisma.order.findMany({ where: { id: { in: [KEY, 5n] } } }), [{ id: KEY, ...lamp }]);
  const read = await prisma.$queryRaw`SELECT id, id::bigint AS number FROM orders WHERE id = ${KEY}`;
  assert.deepEqual(read, [{ id: TEXT, number: KEY }]);
  await prisma.$disconnect();
});

test('Sequelize: a string, as of bigint', async () => {
  const sequelize = new Sequelize({ dialect: 'postgres', host, port, username, database, logging: false, pool: { max: 1 } });
  const type = DataTypes.BIGINT;
  const Order = sequelize.define('Order', {
    id: { type, primaryKey: true, defaultValue: sequelize.literal('snowflake_next()') },
    parent: { type },
  }, { tableName: 'typed_orders', timestamps: false });
  await sequelize.query(TABLE);
  assert.equal((await Order.create({ id: TEXT, parent: TEXT })).id, TEXT);
  assert.equal((await Order.findByPk(TEXT)).parent, TEXT);
  assert.equal((await Order.findAll({ where: { id: [TEXT, '5'] } })).length, 1);
  assert.equal(typeof (await Order.create({ parent: 5 })).id, 'string');
  await sequelize.close();
});

test('TypeORM: a string, as of bigint. The entity says bigint, as it does not know the type, and a migration makes the column', async () => {
  const define = (type) => new EntitySchema({
    name: 'Order',
    tableName: 'typed_orders',
    columns: { id: { type, primary: true, default: () => 'snowflake_next()' }, parent: { type, nullable: true } },
  });
  const open = (type) =>
    new DataSource({ type: 'postgres', host, port: Number(port), username, database, entities: [define(type)], poolSize: 1 }).initialize();
  await assert.rejects(open('snowflake_id'), /Data type "snowflake_id" in "Order.id" is not supported/);
  const source = await open('bigint');
  await source.query(TABLE);
  const orders = source.getRepository('Order');
  assert.equal((await orders.save(orders.create({ id: TEXT, parent: TEXT }))).id, TEXT);
  assert.deepEqual(await orders.findBy({ id: In([TEXT, '5']) }), [{ id: TEXT, parent: TEXT }]);
  assert.equal(typeof (await orders.save(orders.create({ parent: '5' }))).id, 'string');
  await source.destroy();
});
