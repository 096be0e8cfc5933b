// What TypeORM makes of snowflake_id: a string, as of bigint. It does not know the type, so the entity says bigint, and a migration makes
// the column.

import assert from 'node:assert/strict';
import 'reflect-metadata';
import { DataSource, EntitySchema, In } from 'typeorm';

const KEY = '382304429472247813';
const { PGHOST: host, PGPORT: port, PGUSER: username, PGDATABASE: database } = process.env;
const define = (type) => new EntitySchema({
  name: 'Order',
  tableName: 'typed_orders',
  columns: { id: { type, primary: true, default: () => 'snowflake_next()' }, parent: { type, nullable: true } },
});
const open = (type) =>
  new DataSource({ type: 'postgres', host, port: Number(port), username, database, entities: [define(type)], poolSize: 1 }).initialize();

await assert.rejects(open('snowflake_id'), /Data type "snowflake_id" in "Order.id" is not supported/);
const source = await open('bigint');
await source.query('CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)');
const orders = source.getRepository('Order');
assert.equal((await orders.save(orders.create({ id: KEY, parent: KEY }))).id, KEY);
assert.deepEqual(await orders.findBy({ id: In([KEY, '5']) }), [{ id: KEY, parent: KEY }]);
assert.equal(typeof (await orders.save(orders.create({ parent: '5' }))).id, 'string');
await source.destroy();
console.log('seen: typeorm');
