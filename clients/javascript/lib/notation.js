// Layouts as text: the name of a built-in one, or
// `timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z`.

import { LayoutError, bytes, shortened } from './errors.js';

// The built-in layouts.
export const LAYOUTS = Object.freeze({
  default: 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z',
  twitter: 'timestamp=41 datacenter=5 worker=5 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z',
  discord: 'timestamp=41 worker=5 datacenter=5 sequence=12 tick=1ms epoch=2015-01-01T00:00:00Z',
  instagram: 'timestamp=40 worker=13 sequence=10 tick=1ms epoch=2011-08-24T21:07:01.721Z',
  mastodon: 'timestamp=47 sequence=16 tick=1ms epoch=1970-01-01T00:00:00Z',
  sonyflake: 'timestamp=39 sequence=8 worker=16 tick=10ms epoch=2014-09-01T00:00:00Z',
  sonyflake2: 'timestamp=39 sequence=8 worker=16 tick=10ms epoch=2025-01-01T00:00:00Z',
  leaf: 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z',
  bwmarrin: 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z',
  baidu: 'timestamp=28 worker=22 sequence=13 tick=1s epoch=2016-05-19T16:00:00Z',
  cosid: 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2019-12-24T16:00:00Z',
  'cosid-js': 'timestamp=41 worker=3 sequence=9 tick=1ms epoch=2019-12-24T16:00:00Z',
  yitter: 'timestamp=47 worker=6 sequence=6 tick=1ms epoch=2020-02-19T18:20:02Z',
  tsid: 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2020-01-01T00:00:00Z',
  cockroach: 'timestamp=48 worker=15 tick=10us epoch=2015-01-01T00:00:00Z',
  pgedge: 'timestamp=41 worker=10 sequence=12 tick=1ms epoch=2023-01-01T00:00:00Z',
});

const FIELDS = ['timestamp', 'datacenter', 'worker', 'sequence'];
const DEFAULT_TICK = 1000n;
const DEFAULT_EPOCH = 1_704_067_200_000_000n;
const LONGEST = 256;
const MAX_WRITTEN = 253_402_300_799_999_999n; // 9999-12-31T23:59:59.999999Z
const MAX_TICK = 60_000_000n;
const MAX_FIELD_WIDTH = 31;
const UNITS = [['s', 1_000_000n], ['ms', 1000n], ['us', 1n]];

// The fields with their widths, the tick and the epoch in microseconds.
export const parse = (text) => {
  if (typeof text !== 'string') throw new TypeError(`a layout is a text, not ${typeof text}`);
  if (bytes(text) > LONGEST) throw new LayoutError(`a layout has at most ${LONGEST} bytes`);
  if (Object.hasOwn(LAYOUTS, text)) text = LAYOUTS[text];
  else if (!text.includes('=')) {
    throw new LayoutError(`no built-in layout is named "${shortened(text)}", at character 1`);
  }
  const widths = [];
  let tick;
  let epoch;
  for (const { 0: word, index } of text.matchAll(/[^ \t\n\f\r]+/g)) {
    const equals = word.indexOf('=');
    const [key, value] = equals < 0 ? [word] : [word.slice(0, equals), word.slice(equals + 1)];
    // What stands before the first mistake is ASCII, of which JavaScript counts each character as one.
    const fail = (problem, at = index) => {
      throw new LayoutError(`${problem}, at character ${at + 1}`);
    };
    const failAtValue = (problem) => fail(`"${shortened(value)}" ${problem}`, index + key.length + 1);
    if (value === undefined) fail(`"${shortened(word)}" is not of the form key=value`);
    if (key === 'tick') {
      if (tick !== undefined) fail('tick is given twice');
      tick = parseTick(value) ?? failAtValue('is not a tick such as 1ms, 10ms or 1s');
    } else if (key === 'epoch') {
      if (epoch !== undefined) fail('epoch is given twice');
      epoch = parseInstant(value) ?? failAtValue('is not an instant such as 2024-01-01T00:00:00Z');
    } else if (FIELDS.includes(key)) {
      if (tick !== undefined || epoch !== undefined) fail(`field ${key} stands after tick or epoch`);
      if (!/^(0|[1-9][0-9]*)$/.test(value) || BigInt(value) >= 1n << 32n) failAtValue('is not a number of bits');
      widths.push([key, Number(value)]);
    } else {
      fail(`"${shortened(key)}" is not a field, nor tick or epoch`);
    }
  }
  tick ??= DEFAULT_TICK;
  epoch ??= DEFAULT_EPOCH;
  check(widths, tick, epoch);
  return { widths, tick, epoch };
};

const parseTick = (text) => {
  const match = /^(0|[1-9][0-9]*)(s|ms|us)$/.exec(text);
  if (!match) return undefined;
  const micros = BigInt(match[1]) * UNITS.find(([unit]) => unit === match[2])[1];
  return micros < 1n << 63n ? micros : undefined;
};

const parseInstant = (text) => {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{3}|\d{6}))?Z$/.exec(text);
  if (!match) return undefined;
  const whole = Date.parse(`${match[1]}Z`);
  if (Number.isNaN(whole)) return undefined;
  const micros = BigInt(whole) * 1000n + BigInt((match[2] ?? '').padEnd(6, '0'));
  // Other spellings of an instant are refused, and days that a month does not have.
  return writeInstant(micros) === text ? micros : undefined;
};

const check = (widths, tick, epoch) => {
  const fail = (problem) => {
    throw new LayoutError(problem);
  };
  let shift = 0;
  const seen = new Set();
  for (const [field, width] of [...widths].reverse()) {
    if (seen.has(field)) fail(`field ${field} is given twice`);
    if (width === 0) fail(`field ${field} must have at least 1 bit`);
    if (field !== 'timestamp' && width > MAX_FIELD_WIDTH) {
      fail(`field ${field} has ${width} bits, more than ${MAX_FIELD_WIDTH}`);
    }
    if (width > 63 - shift) {
      const total = widths.reduce((sum, [, width]) => sum + width, 0);
      fail(`the fields have ${total} bits together, more than 63`);
    }
    seen.add(field);
    shift += width;
  }
  if (!seen.has('timestamp')) fail('field timestamp is missing');
  if (widths[0][0] !== 'timestamp') fail('the timestamp must be the first field, so that IDs sort by time');
  if (tick < 1n || tick > MAX_TICK) fail('a tick must last between 1us and 60s');
  if (epoch + (tick << BigInt(widths[0][1])) > MAX_WRITTEN + 1n) {
    fail('the timestamp would run on beyond the year 9999: give it fewer bits');
  }
};

// The notation with nothing left out.
export const write = ({ widths, tick, epoch }) => {
  const [unit, length] = UNITS.find(([, length]) => tick % length === 0n);
  const fields = widths.map(([field, width]) => `${field}=${width}`).join(' ');
  return `${fields} tick=${tick / length}${unit} epoch=${writeInstant(epoch)}`;
};

// Three or six decimals where they are not zero.
export const writeInstant = (micros) => {
  if (micros < 0n) return `${-micros} us before 1970`;
  if (micros > MAX_WRITTEN) return `${micros} us after 1970`;
  const text = new Date(Number(micros / 1000n)).toISOString().slice(0, -1);
  if (micros % 1000n !== 0n) return `${text}${String(micros % 1000n).padStart(3, '0')}Z`;
  return `${micros % 1_000_000n === 0n ? text.slice(0, -4) : text}Z`;
};
