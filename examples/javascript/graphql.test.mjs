import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { graphql } from 'graphql';
import pg from 'pg';
import { Layout } from 'snowflake-ids';
import { TABLES, schema } from './graphql.mjs';
import { Snowflake } from './graphql-snowflake.mjs';

const PUBLISHED = '382304429472247813';
const client = new pg.Client();
let layout;

// The answer to a request, as a browser reads it: both have been JSON.
const ask = async (source, variables) => {
  const request = JSON.parse(JSON.stringify({ source, variableValues: variables }));
  return JSON.parse(JSON.stringify(await graphql({ schema, contextValue: { client, layout }, ...request })));
};

before(async () => {
  await client.connect();
  layout = new Layout((await client.query('SELECT snowflake_database_layout() AS layout')).rows[0].layout);
});
after(() => client.end());
beforeEach(async () => {
  await client.query('DROP TABLE IF EXISTS orders, customers');
  await client.query(TABLES);
  await client.query('INSERT INTO customers VALUES ($1, $2)', [PUBLISHED, 'Ada']);
});

const ADD = 'mutation ($customerId: Snowflake!) { addOrder(customerId: $customerId, item: "lamp") { id customerId createdAt item } }';

test('keys are text both ways', async () => {
  const { data: { addOrder: order } } = await ask(ADD, { customerId: PUBLISHED });
  const { rows } = await client.query('SELECT id, customer_id, snowflake_timestamp(id) AS timestamp FROM orders');
  assert.deepEqual(rows, [{ id: order.id, customer_id: PUBLISHED, timestamp: new Date(order.createdAt) }]);
  assert.equal(order.customerId, PUBLISHED);
  const read = 'query ($id: Snowflake!) { customer(id: $id) { id name orders(since: "2020-01-01", until: "2100-01-01") { id } } }';
  assert.deepEqual(await ask(read, { id: PUBLISHED }), { data: { customer: { id: PUBLISHED, name: 'Ada', orders: [{ id: order.id }] } } });
});

test('literals are exact as text and as digits', async () => {
  for (const literal of [`"${PUBLISHED}"`, PUBLISHED]) {
    assert.deepEqual(await ask(`{ customer(id: ${literal}) { id } }`), { data: { customer: { id: PUBLISHED } } });
  }
});

test('the orders of a day are a range of keys', async () => {
  const day = new Date('2026-11-20').getTime();
  const at = (ms) => layout.encode({ timestamp: new Date(ms), workerId: 1 });
  const keys = [day - 10, day, day + 86_399_990, day + 86_400_000].map(at);
  for (const id of keys) await client.query('INSERT INTO orders VALUES ($1, $2, $3)', [id, PUBLISHED, 'lamp']);
  const { data } = await ask(`{ customer(id: ${PUBLISHED}) { orders(since: "2026-11-20", until: "2026-11-21") { id } } }`);
  assert.deepEqual(data.customer.orders.map(({ id }) => id), keys.slice(1, 3).map(String));
});

test('what may be another number is refused', async () => {
  for (const customerId of [Number(PUBLISHED), 1, 'x', '', '-1', '9223372036854775808', true]) {
    const { data, errors } = await ask(ADD, { customerId });
    assert.equal(data, undefined);
    assert.match(errors[0].message, /\$customerId.*(is no snowflake ID|send a snowflake ID as text)/);
  }
  for (const literal of ['1.0', '"x"', 'true', '-1']) {
    assert.match((await ask(`{ customer(id: ${literal}) { id } }`)).errors[0].message, /snowflake ID/);
  }
  assert.throws(() => Snowflake.serialize(Number(PUBLISHED)), /returned a number/);
});
