import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import pg from 'pg';
import { Sequelize } from 'sequelize';
import { add, addMany, between, defineOrder, layoutOf } from './orders.mjs';

const PUBLISHED = '382304429472247813';
const MANY = Array.from({ length: 5000 }, (_, n) => ({ item: `item ${n}`, quantity: n }));
const { PGHOST: host, PGPORT: port, PGUSER: username, PGDATABASE: database } = process.env;
const sequelize = new Sequelize({ dialect: 'postgres', host, port, username, database, logging: false });
const Order = defineOrder(sequelize);
// Looks at what is there.
const client = new pg.Client();
const rows = async (query, values) => (await client.query(query, values)).rows;

// How many INSERT statements the server has executed since the last call.
const statements = async () => Number((await rows('SELECT test.insert_statements() AS count'))[0].count);

before(async () => {
  await client.connect();
});
after(() => Promise.all([client.end(), sequelize.close()]));
beforeEach(async () => {
  await client.query('DROP TABLE IF EXISTS orders');
  await sequelize.sync();
  await statements();
});

test('the table has the default', async () => {
  const query = `SELECT data_type, column_default FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'id'`;
  assert.deepEqual(await rows(query), [{ data_type: 'bigint', column_default: 'snowflake_next()' }]);
});

test('the key comes back, as text', async () => {
  const id = await add(Order, { item: 'lamp', quantity: 2 });
  assert.ok(BigInt(id) > 1n << 53n);
  assert.deepEqual(await rows('SELECT * FROM orders'), [{ id, item: 'lamp', quantity: 2 }]);
  assert.equal(JSON.stringify({ id }), `{"id":"${id}"}`);
});

test('many are one statement', async () => {
  const ids = await addMany(Order, MANY);
  assert.equal(await statements(), 1);
  assert.deepEqual(await rows('SELECT * FROM orders ORDER BY quantity'), MANY.map((order, n) => ({ id: ids[n], ...order })));
});

test('times, and the rows of a day', async () => {
  const layout = await layoutOf(sequelize);
  await addMany(Order, MANY);
  for (const { id, timestamp } of await rows('SELECT id, snowflake_timestamp(id) AS timestamp FROM orders')) {
    assert.deepEqual(layout.timestamp(id), timestamp);
  }
  const day = Date.UTC(2026, 10, 20);
  const keys = [day - 10, day, day + 86_399_990, day + 86_400_000].map((ms) =>
    String(layout.encode({ timestamp: new Date(ms), workerId: 1 })));
  for (const id of [...keys, PUBLISHED]) await add(Order, { id, item: 'lamp', quantity: 1 });
  assert.deepEqual(await between(Order, layout, new Date(day), new Date(day + 86_400_000)), keys.slice(1, 3));
  assert.equal((await rows('SELECT FROM orders WHERE id = $1', [PUBLISHED])).length, 1);
});
