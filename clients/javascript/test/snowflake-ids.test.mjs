import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  FORMS, IdError, LAYOUTS, Layout, LayoutError, SnowflakeError, TextError, fromText, toText,
} from 'snowflake-ids';
import { wrong } from './answers.mjs';

const VECTORS = new URL('../../vectors.json', import.meta.url);
const ID = 382304429472247813n;
const MADE = new Date('2026-11-20T23:01:18.859Z');
const layout = new Layout('default');

test('answers are those of the library', () => {
  const cases = JSON.parse(readFileSync(VECTORS, 'utf8'));
  assert.ok(cases.length > 200);
  assert.deepEqual(wrong(cases), []);
});

test('a wrong answer is found', () => {
  const right = { call: 'layout', layout: 'default', answer: [LAYOUTS.default, String((1n << 63n) - 1n)] };
  assert.deepEqual(wrong([right]), []);
  for (const other of [{ answer: ['', ''] }, { answer: undefined, error: 'x' }]) {
    assert.equal(wrong([{ ...right, ...other }]).length, 1);
  }
  const bad = { call: 'layout', layout: 'x' };
  for (const other of [{ answer: ['', ''] }, { error: 'another' }]) assert.equal(wrong([{ ...bad, ...other }]).length, 1);
  assert.deepEqual(wrong([{ ...bad, error: 'no built-in layout is named "x"' }]), []);
});

test('a layout is a value', () => {
  assert.equal(String(layout), LAYOUTS.default);
  assert.equal(JSON.stringify({ layout }), JSON.stringify({ layout: LAYOUTS.default }));
  assert.deepEqual(layout.fields, { timestamp: 41, worker: 10, sequence: 12 });
  assert.deepEqual(layout.epoch, new Date('2024-01-01T00:00:00Z'));
  assert.deepEqual(Object.keys(LAYOUTS).filter((name) => new Layout(name).fitsDouble), ['cosid-js']);
  assert.throws(() => { layout.epochMicros = 0n; }, TypeError);
});

test('decoding', () => {
  const parts = { timestamp: MADE, timestampMicros: 1795215678859000n, datacenterId: null, workerId: 7, sequence: 5 };
  for (const id of [ID, String(ID)]) assert.deepEqual(layout.decode(id), parts);
  assert.equal(layout.encode({ timestamp: MADE, workerId: 7, sequence: 5 }), ID);
  for (const id of [-1n, 1n << 63n, '-1']) assert.throws(() => layout.timestamp(id), IdError);
  assert.deepEqual(new Layout('cosid-js').decode(4096).sequence, 0);
});

test('what is not certainly exact is refused', () => {
  for (const id of [382304429472247800, 1.5, NaN]) {
    assert.throws(() => layout.timestamp(id), { name: 'TypeError', message: /which may not be exact/ });
  }
  for (const id of ['', '1.0', '0x1', ' 1', null, undefined, {}, true]) {
    assert.throws(() => layout.timestamp(id), { name: 'TypeError', message: /give a BigInt or a string/ });
  }
});

test('age', () => {
  const age = layout.age(layout.encode({ timestamp: new Date(Date.now() - 3_600_000), workerId: 0 }));
  assert.ok(Math.abs(age - 3_600_000) < 300_000);
});

test('times are valid Dates, or microseconds', () => {
  for (const at of [new Date(NaN), Date.now(), '2026-01-01', null, undefined]) {
    for (const name of ['minId', 'maxId', 'maxIdBefore']) assert.throws(() => layout[name](at), TypeError);
    assert.throws(() => layout.encode({ timestamp: at, workerId: 1 }), TypeError);
  }
});

test('bounds exist for every time', () => {
  const bounds = (at) => [layout.minId(at), layout.maxId(at), layout.maxIdBefore(at)];
  const highest = (1n << 63n) - 1n;
  assert.deepEqual(bounds(new Date(-8.64e15)), [0n, -1n, -1n]);
  assert.deepEqual(bounds(new Date(8.64e15)), [highest, highest, highest]);
});

test('errors have names', () => {
  for (const [raises, error, name] of [
    [() => new Layout('timestamp=41 worker=x'), LayoutError, 'LayoutError'],
    [() => layout.encode({ timestamp: MADE, workerId: 1024 }), IdError, 'IdError'],
    [() => toText(-1, 'hex'), TextError, 'TextError'],
    [() => toText(1, 'base16'), TextError, 'TextError'],
    [() => fromText('1', 'hex'), TextError, 'TextError'],
  ]) {
    assert.throws(raises, (raised) => raised instanceof error && raised instanceof SnowflakeError && raised.name === name);
  }
  assert.throws(() => new Layout(undefined), TypeError);
});

test('texts', () => {
  assert.equal(toText(ID, 'base62'), '0SExPrxHXPh');
  for (const form of FORMS) {
    for (const id of [0n, 1n, ID, (1n << 63n) - 1n]) assert.equal(fromText(toText(id, form), form), id);
  }
});

// Each line of code of README.md with a comment that says its value has that value.
test('the README is right', async () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const code = /```js\n([^]*?)```/.exec(readme)[1].split('\n');
  const values = code.filter((line) => line.includes('; // '));
  assert.ok(values.length >= 6);
  const names = 'Layout, toText, fromText, layout';
  for (const line of values) {
    const [expression, value] = line.split('; // ');
    const run = new Function(...names.split(', '), `return [${expression.replace(/^const \w+ = /, '')}, ${value}]`);
    const [left, right] = run(Layout, toText, fromText, layout);
    assert.deepEqual(left, right, line);
  }
});
