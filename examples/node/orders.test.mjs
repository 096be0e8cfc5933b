import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import pg from 'pg';
import { SCHEMA, add, addMany, bigints, layoutOf, toJson } from './orders.mjs';

const PUBLISHED = '382304429472247813';
const MANY = Array.from({ length: 5000 }, (_, n) => ({ item: `item ${n}`, quantity: n }));
const clients = { string: new pg.Client(), bigint: new pg.Client({ types: bigints }) };
const { string: client } = clients;

// How many INSERT statements the server has executed since the last call.
const statements = async () => Number((await client.query('SELECT test.insert_statements() AS count')).rows[0].count);

before(() => Promise.all(Object.values(clients).map((client) => client.connect())));
after(() => Promise.all(Object.values(clients).map((client) => client.end())));
beforeEach(async () => {
  await client.query('DROP TABLE IF EXISTS orders');
  await client.query(SCHEMA);
  await statements();
});

for (const [type, client] of Object.entries(clients)) {
  const stored = async () => (await client.query('SELECT id, item, quantity FROM orders ORDER BY quantity')).rows;

  test(`the key comes back as a ${type}`, async () => {
    const id = await add(client, { item: 'lamp', quantity: 2 });
    assert.equal(typeof id, type);
    assert.deepEqual(await stored(), [{ id, item: 'lamp', quantity: 2 }]);
    assert.equal((await client.query('SELECT FROM orders WHERE id = $1', [id])).rowCount, 1);
  });

  test(`many are one statement, with keys of type ${type}`, async () => {
    const ids = await addMany(client, MANY);
    assert.equal(await statements(), 1);
    assert.deepEqual(await stored(), MANY.map((order, n) => ({ id: ids[n], ...order })));
    assert.equal(new Set(ids).size, MANY.length);
  });

  test(`keys of type ${type} survive JSON`, async () => {
    const { id } = (await client.query('SELECT $1::bigint AS id', [PUBLISHED])).rows[0];
    const text = toJson({ id, item: 'lamp' });
    assert.equal(text, `{"id":"${PUBLISHED}","item":"lamp"}`);
    assert.equal((await client.query('SELECT $1::bigint AS id', [JSON.parse(text).id])).rows[0].id, id);
  });

  test(`the time is read from keys of type ${type}`, async () => {
    await addMany(client, MANY);
    const layout = await layoutOf(client);
    const { rows } = await client.query('SELECT id, snowflake_timestamp(id) AS timestamp FROM orders');
    assert.equal(rows.length, MANY.length);
    for (const { id, timestamp } of rows) assert.deepEqual(layout.timestamp(id), timestamp);
  });
}

test('a number cannot hold a key', () => {
  assert.notEqual(String(JSON.parse(`{"id":${PUBLISHED}}`).id), PUBLISHED);
  assert.throws(() => JSON.stringify({ id: BigInt(PUBLISHED) }), TypeError);
});
