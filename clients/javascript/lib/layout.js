// A layout: how the 63 bits of an ID are divided, how long a tick is, and when tick 0 begins.

import { IdError } from './errors.js';
import { parse, write, writeInstant } from './notation.js';

const MAX_BIGINT = (1n << 63n) - 1n;

// An ID as BigInt. A number is taken only where it is certainly exact.
export const toBigInt = (id) => {
  if (typeof id === 'bigint') return id;
  if (typeof id === 'string' && /^-?[0-9]+$/.test(id)) return BigInt(id);
  if (typeof id === 'number' && Number.isSafeInteger(id)) return BigInt(id);
  const problem = typeof id === 'number' ? 'is a number, which may not be exact' : 'is no whole number';
  throw new TypeError(`${String(id)} ${problem}: give a BigInt or a string`);
};

// Microseconds since 1970, of those or of a Date.
const toMicros = (at) => {
  if (typeof at === 'bigint') return at;
  if (at instanceof Date && !Number.isNaN(at.getTime())) return BigInt(at.getTime()) * 1000n;
  throw new TypeError(`${String(at)} is no time: give a valid Date, or microseconds since 1970 as BigInt`);
};

// BigInt's own division rounds towards 0.
const floorDivide = (number, divisor) => (number - (((number % divisor) + divisor) % divisor)) / divisor;

const isGiven = (value) => value !== null && value !== undefined;

export class Layout {
  #text;
  #fields = {};

  // From the name of a built-in one, or from the notation that `SELECT snowflake_database_layout()` returns.
  constructor(text) {
    const { widths, tick, epoch } = parse(text);
    let shift = widths.reduce((sum, [, width]) => sum + width, 0);
    this.highestId = (1n << BigInt(shift)) - 1n;
    for (const [name, width] of widths) {
      shift -= width;
      this.#fields[name] = { shift: BigInt(shift), max: (1n << BigInt(width)) - 1n };
    }
    this.fields = Object.freeze(Object.fromEntries(widths));
    this.tickMicros = tick;
    this.epochMicros = epoch;
    this.#text = write({ widths, tick, epoch });
    Object.freeze(this);
  }

  // The notation with nothing left out.
  toString() {
    return this.#text;
  }

  toJSON() {
    return this.#text;
  }

  // When tick 0 begins, without microseconds.
  get epoch() {
    return toDate(this.epochMicros);
  }

  // Whether JavaScript's numbers hold all IDs exactly.
  get fitsDouble() {
    return this.highestId < 1n << 53n;
  }

  // An ID's parts.

  // The start of the ID's tick. A Date has milliseconds, and those of ticks of microseconds are rounded down.
  timestamp(id) {
    return toDate(this.timestampMicros(id));
  }

  // The same, exactly: in microseconds since 1970.
  timestampMicros(id) {
    return this.epochMicros + (this.#check(id) >> this.#fields.timestamp.shift) * this.tickMicros;
  }

  datacenter(id) {
    return this.#take('datacenter', id);
  }

  worker(id) {
    return this.#take('worker', id);
  }

  sequence(id) {
    return this.#take('sequence', id);
  }

  decode(id) {
    return {
      timestamp: this.timestamp(id),
      timestampMicros: this.timestampMicros(id),
      datacenterId: this.datacenter(id),
      workerId: this.worker(id),
      sequence: this.sequence(id),
    };
  }

  // The milliseconds from the ID until now.
  age(id) {
    return Date.now() - this.timestamp(id).getTime();
  }

  // The ID of these parts. It need not be unique: for tests, and for rows that exist.
  encode({ timestamp, workerId, sequence = 0, datacenterId }) {
    const given = Object.entries({ datacenter: datacenterId, worker: workerId, sequence });
    const parts = given.map(([name, value]) => [name, isGiven(value) ? toBigInt(value) : undefined]);
    for (const [name, value] of parts) if (value < 0n) throw new IdError(`${name} must not be negative: ${value}`);
    const micros = toMicros(timestamp);
    const tick = floorDivide(micros - this.epochMicros, this.tickMicros);
    const { shift, max } = this.#fields.timestamp;
    if (tick < 0n || tick > max) throw new IdError(`${writeInstant(micros)} is outside the time of the layout "${this}"`);
    return parts.reduce((id, [name, value]) => id | this.#put(name, value), tick << shift);
  }

  // The IDs of a range of time. For every instant and every ID, comparing the ID with the bound is the same as comparing
  // the ID's time with the instant.

  // The lowest ID whose time is at or after the given one: 0 before the epoch, the highest bigint where there is none.
  minId(at) {
    const ticks = -floorDivide(this.epochMicros - toMicros(at), this.tickMicros);
    const { shift, max } = this.#fields.timestamp;
    if (ticks <= 0n) return 0n;
    return ticks > max ? MAX_BIGINT : ticks << shift;
  }

  // The highest ID whose time is at or before the given one: -1 where there is none, the layout's highest after its end.
  maxId(at) {
    return this.#highestUntil(toMicros(at));
  }

  // The highest ID whose time is before the given one.
  maxIdBefore(at) {
    return this.#highestUntil(toMicros(at) - 1n);
  }

  // Whether the time of an ID is at or after `since` and before `until`.
  between(id, since, until) {
    const number = toBigInt(id);
    return number >= this.minId(since) && number <= this.maxIdBefore(until);
  }

  #highestUntil(micros) {
    const tick = floorDivide(micros - this.epochMicros, this.tickMicros);
    const { shift, max } = this.#fields.timestamp;
    if (tick < 0n) return -1n;
    return (((tick < max ? tick : max) + 1n) << shift) - 1n;
  }

  #check(id) {
    const number = toBigInt(id);
    if (number >= 0n && number <= this.highestId) return number;
    const range = `IDs of the layout "${this}" range from 0 to ${this.highestId}`;
    throw new IdError(`${number} is not a snowflake ID: ${range}`);
  }

  #take(name, id) {
    const number = this.#check(id);
    const field = this.#fields[name];
    return field ? Number((number >> field.shift) & field.max) : null;
  }

  #put(name, value) {
    const field = this.#fields[name];
    if (value === undefined) {
      if (field) throw new IdError(`the layout has a ${name}, but none is given`);
      return 0n;
    }
    // A sequence of 0 is that of every ID of a layout that has none.
    if (!field && name !== 'sequence') throw new IdError(`the layout has no ${name}, but one is given`);
    const max = field?.max ?? 0n;
    if (value > max) throw new IdError(`${name} ${value} is above the layout's highest, ${max}`);
    return field ? value << field.shift : 0n;
  }
}

const toDate = (micros) => new Date(Number(floorDivide(micros, 1000n)));
