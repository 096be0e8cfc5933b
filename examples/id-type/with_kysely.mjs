// What Kysely makes of snowflake_id: a string, as of bigint; in migrations, sql`snowflake_id`.

import assert from 'node:assert/strict';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';

const KEY = 382304429472247813n;
const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ max: 1 }) }) });
await db.schema
  .createTable('typed_orders')
  .temporary()
  .addColumn('id', sql`snowflake_id`, (column) => column.primaryKey().defaultTo(sql`snowflake_next()`))
  .addColumn('parent', sql`snowflake_id`)
  .execute();
const insert = (values) => db.insertInto('typed_orders').values(values).returning('id').executeTakeFirstOrThrow();
assert.deepEqual(await insert({ id: KEY, parent: String(KEY) }), { id: String(KEY) });
const found = await db.selectFrom('typed_orders').selectAll().where('id', 'in', [KEY, '5']).execute();
assert.deepEqual(found, [{ id: String(KEY), parent: String(KEY) }]);
assert.equal(typeof (await insert({ parent: 5 })).id, 'string');
await db.destroy();
console.log('seen: kysely');
