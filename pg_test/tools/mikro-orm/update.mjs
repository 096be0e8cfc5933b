// Brings a database up to date, writes orders, and finds nothing more to do. libpq's environment
// variables name the server.

import assert from 'node:assert/strict';
import { MikroORM } from '@mikro-orm/postgresql';
import { Numbered, Order } from './orders.mjs';

const { PGHOST: host, PGPORT: port, PGUSER: user, PGDATABASE: dbName } = process.env;
const open = (...entities) =>
  MikroORM.init({
    entities,
    port: Number(port),
    user,
    dbName,
    allowGlobalContext: true,
    driverOptions: { connection: { host } },
  });
const statements = async (orm) => (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter(Boolean);

const orm = await open(Order);
assert.deepEqual(await statements(orm), [
  'create table "orders" ("id" bigint not null default snowflake_next(), "item" text not null, ' +
    'constraint "orders_pkey" primary key ("id"));',
]);
await orm.schema.updateSchema();
assert.deepEqual(await statements(orm), []);
const orders = Array.from({ length: 1000 }, (_, n) => orm.em.create(Order, { item: `item ${n}` }));
await orm.em.flush();
assert.equal(new Set(orders.map(({ id }) => id)).size, 1000);
const { id } = orders[999];
assert.equal(typeof id, 'bigint');
assert.equal(JSON.stringify(await orm.em.fork().findOneOrFail(Order, id)), `{"id":"${id}","item":"item 999"}`);
await orm.close();

const careless = await open(Order, Numbered);
assert.deepEqual(await statements(careless), ['create table "numbered" ("id" bigserial primary key);']);
await careless.close();
console.log('all is as expected');
