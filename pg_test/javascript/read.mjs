// Reads the table `ids` with Node's PostgreSQL client, in each of the ways that a program may, and prints how many of
// the IDs come out as the server has them. Whether that is right, tests/javascript.rs says.
//
//   node read.mjs <epoch> <bits of worker> <bits of sequence>      and PGHOST, PGUSER, PGDATABASE

import pg from 'pg';

const [epoch, workerBits, sequenceBits] = process.argv.slice(2);

const connect = async (int8) => {
  const types = new pg.TypeOverrides();
  if (int8) types.setTypeParser(pg.types.builtins.INT8, int8);
  const client = new pg.Client({ types });
  await client.connect();
  return client;
};
const asStrings = await connect(); // pg's own choice for int8
const asNumbers = await connect(Number);
const asBigInts = await connect(BigInt);

// The server's text, in the order in which all the others come.
const texts = (await asStrings.query('SELECT id::text AS text FROM ids ORDER BY id')).rows.map((row) => row.text);
const read = async (client) => (await client.query('SELECT id FROM ids ORDER BY id')).rows.map((row) => row.id);
const strings = await read(asStrings);
const numbers = await read(asNumbers);
const bigints = await read(asBigInts);
if (![strings, numbers, bigints].every((ids) => ids.length === texts.length)) throw new Error('lists of other lengths');

const count = (ids, test) => ids.filter(test).length;
const same = (ids, type) => count(ids, (id, i) => typeof id === type && String(id) === texts[i]);
const found = async (ids) => {
  const query = 'SELECT count(*)::int AS count FROM ids WHERE id = ANY ($1::bigint[])';
  return (await asStrings.query(query, [ids])).rows[0].count;
};

// JSON that the server writes is parsed by pg: its numbers are Numbers, whatever int8 is read as.
const json = (await asStrings.query(`
  SELECT json_agg(id ORDER BY id) AS numbers, json_agg(id::text ORDER BY id) AS strings FROM ids`)).rows[0];

// Put together again, the parts must be the ID.
const parts = (await asStrings.query('SELECT (snowflake_decode(id)).* FROM ids ORDER BY id')).rows;
const decoded = count(parts, ({ timestamp, datacenter_id, worker_id, sequence }, i) =>
  timestamp instanceof Date && datacenter_id === null && Number.isInteger(worker_id) && Number.isInteger(sequence) &&
  worker_id < 2 ** workerBits && sequence < 2 ** sequenceBits &&
  (((BigInt(timestamp - new Date(epoch)) << BigInt(workerBits)) + BigInt(worker_id)) << BigInt(sequenceBits)) +
    BigInt(sequence) === BigInt(texts[i]));

const verdict = {
  ids: texts.length,
  strings: same(strings, 'string'),
  bigints: same(bigints, 'bigint'),
  numbers: same(numbers, 'number'),
  safe_numbers: count(numbers, Number.isSafeInteger),
  distinct_numbers: new Set(numbers).size,
  numbers_through_json: same(JSON.parse(JSON.stringify(numbers)), 'number'),
  strings_through_json: same(JSON.parse(JSON.stringify(strings)), 'string'),
  server_json_numbers: same(json.numbers, 'number'),
  server_json_strings: same(json.strings, 'string'),
  found_by_strings: await found(strings),
  found_by_bigints: await found(bigints),
  found_by_numbers: await found(numbers),
  sum_of_numbers: String(numbers.reduce((sum, id) => sum + BigInt(id), 0n)),
  sum_of_bigints: String(bigints.reduce((sum, id) => sum + id, 0n)),
  decoded,
};
console.log(JSON.stringify(verdict));
await Promise.all([asStrings, asNumbers, asBigInts].map((client) => client.end()));
