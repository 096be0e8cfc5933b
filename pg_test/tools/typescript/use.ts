// What a program in TypeScript may do with the package, and what it may not.

import {
  FORMS, IdError, LAYOUTS, Layout, LayoutError, SnowflakeError, TextError, fromText, toText,
  type Form, type Id, type Parts, type Time,
} from 'snowflake-ids';

const layout = new Layout(LAYOUTS.default);
const ids: Id[] = [1n, '1', 1];
const times: Time[] = [new Date(), 0n];
const parts: Parts = layout.decode(ids[0]);
const encoded: bigint[] = [layout.encode(parts), layout.encode({ timestamp: times[0], workerId: 1 })];
const bounds: bigint[] = [layout.minId(times[0]), layout.maxId(times[1]), layout.maxIdBefore(times[0]), layout.highestId];
const fields: (number | null)[] = [layout.datacenter(1n), layout.worker(1n), layout.sequence(1n)];
const width: number | undefined = layout.fields.worker;
const moments: Date[] = [layout.timestamp(1n), layout.epoch];
const micros: bigint[] = [layout.timestampMicros(1n), layout.epochMicros, layout.tickMicros];
const answers: boolean[] = [layout.between(1n, times[0], times[1]), layout.fitsDouble];
const form: Form = FORMS[0];
const text: string = toText(fromText('1', form), form) + layout.toString() + layout.toJSON();
const errors: SnowflakeError[] = [new IdError(text), new LayoutError(text), new TextError(text)];
const age: number = layout.age(1n);
export { age, answers, bounds, encoded, errors, fields, micros, moments, width };

// @ts-expect-error a time is no number
layout.minId(1795215678859);
// @ts-expect-error there is no such form
toText(1n, 'base16');
// @ts-expect-error a part is missing
layout.encode({ workerId: 1 });
// @ts-expect-error a layout does not change
layout.highestId = 1n;
