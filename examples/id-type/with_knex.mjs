// What Knex makes of snowflake_id: a string, as of bigint; in migrations, specificType().

import assert from 'node:assert/strict';
import makeKnex from 'knex';

const KEY = 382304429472247813n;
const knex = makeKnex({ client: 'pg', connection: {}, pool: { min: 1, max: 1 } });
await knex.raw('SET search_path = pg_temp, public');
await knex.schema.createTable('typed_orders', (table) => {
  table.specificType('id', 'snowflake_id').primary().defaultTo(knex.raw('snowflake_next()'));
  table.specificType('parent', 'snowflake_id');
});
assert.deepEqual(await knex('typed_orders').insert({ id: KEY, parent: String(KEY) }).returning('id'), [{ id: String(KEY) }]);
assert.deepEqual(await knex('typed_orders').whereIn('id', [KEY, '5']), [{ id: String(KEY), parent: String(KEY) }]);
assert.equal(typeof (await knex('typed_orders').insert({ parent: 5 }).returning('id'))[0].id, 'string');
await knex.destroy();
console.log('seen: knex');
