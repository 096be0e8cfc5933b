// What pg makes of snowflake_id: a string, as of bigint. As a BigInt, where it is told so.

import assert from 'node:assert/strict';
import pg from 'pg';

const KEY = 382304429472247813n;
const client = new pg.Client();
await client.connect();
await client.query('CREATE TEMPORARY TABLE t (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)');
await client.query('INSERT INTO t VALUES ($1, $2)', [KEY, String(KEY)]);
const read = async () => (await client.query('SELECT id, ARRAY[id] AS ids FROM t WHERE id = $1', [KEY])).rows[0];
assert.deepEqual(await read(), { id: String(KEY), ids: `{${KEY}}` });
const [{ oid }] = (await client.query("SELECT 'snowflake_id'::regtype::oid AS oid")).rows;
client.setTypeParser(oid, BigInt);
assert.equal((await read()).id, KEY);
// What JSON has is exact.
const { rows } = await client.query('SELECT json_agg(t) AS list FROM t');
assert.deepEqual(rows[0].list, [{ id: String(KEY), parent: String(KEY) }]);
await client.end();
console.log('seen: pg');
