/** An ID: a bigint, its decimal text as PostgreSQL's clients return it, or a number up to 2^53 - 1. */
export type Id = bigint | string | number;

/** A time: a Date, or microseconds since 1970. */
export type Time = Date | bigint;

/** The parts of an ID, as snowflake_decode() has them. null where the layout has no such field. */
export interface Parts {
  /** The start of the ID's tick, rounded down to a millisecond. */
  timestamp: Date;
  /** The same, exactly: in microseconds since 1970. */
  timestampMicros: bigint;
  datacenterId: number | null;
  workerId: number | null;
  sequence: number | null;
}

/** How the 63 bits of an ID are divided, how long a tick is, and when tick 0 begins. */
export class Layout {
  /** From the name of a built-in one, or from the notation that `SELECT snowflake_database_layout()` returns. */
  constructor(text: string);
  /** The widths of the fields in bits, from the highest to the lowest. */
  readonly fields: Readonly<Partial<Record<'timestamp' | 'datacenter' | 'worker' | 'sequence', number>>>;
  /** How long a tick lasts, in microseconds. */
  readonly tickMicros: bigint;
  /** When tick 0 begins, in microseconds since 1970. */
  readonly epochMicros: bigint;
  /** When tick 0 begins, rounded down to a millisecond. */
  readonly epoch: Date;
  /** The highest ID. */
  readonly highestId: bigint;
  /** Whether JavaScript's numbers hold all IDs exactly. */
  readonly fitsDouble: boolean;
  /** The notation with nothing left out. */
  toString(): string;
  toJSON(): string;

  /** The start of the ID's tick, rounded down to a millisecond. */
  timestamp(id: Id): Date;
  /** The start of the ID's tick in microseconds since 1970. */
  timestampMicros(id: Id): bigint;
  /** The datacenter; null where the layout has none. */
  datacenter(id: Id): number | null;
  /** The worker; null where the layout has none. */
  worker(id: Id): number | null;
  /** The number within the tick; null where the layout has none. */
  sequence(id: Id): number | null;
  /** All parts. */
  decode(id: Id): Parts;
  /** The milliseconds from the ID until now. */
  age(id: Id): number;
  /** The ID of these parts. It need not be unique: for tests, and for rows that exist. */
  encode(parts: {
    timestamp: Time;
    workerId?: number | null;
    sequence?: number | null;
    datacenterId?: number | null;
  }): bigint;

  /** The lowest ID at or after a time: 0 before the epoch, 9223372036854775807n where there is none. */
  minId(at: Time): bigint;
  /** The highest ID at or before a time: -1n where there is none, the layout's highest after its end. */
  maxId(at: Time): bigint;
  /** The highest ID before a time. */
  maxIdBefore(at: Time): bigint;
  /** Whether the time of an ID is at or after `since` and before `until`. */
  between(id: Id, since: Time, until: Time): boolean;
}

/** The built-in layouts: their names, and their notation. */
export const LAYOUTS: Readonly<Record<string, string>>;

export type Form =
  | 'decimal'
  | 'hex'
  | 'base32'
  | 'base36'
  | 'base58'
  | 'base58-bwmarrin'
  | 'base62'
  | 'base64url'
  | 'shortcode';

/** The names of the text forms. */
export const FORMS: readonly Form[];
/** Writes an ID in the given text form. */
export function toText(id: Id, form: Form): string;
/** Reads an ID that is written in the given text form. */
export function fromText(text: string, form: Form): bigint;

/** Any error of this package that is not one of types. */
export class SnowflakeError extends Error {}
/** A text is no layout. */
export class LayoutError extends SnowflakeError {}
/** A number is no ID of the layout, or parts do not make one. */
export class IdError extends SnowflakeError {}
/** A text is no ID in the form, or a number has no text. */
export class TextError extends SnowflakeError {}
