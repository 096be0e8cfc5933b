// The package's answers to calls that are written as JSON, to compare them with those of the library in PostgreSQL. Numbers are
// texts there, as JSON's are not exact here.
//
//   node test/answers.mjs < cases.json      compares the answers with those that the file has

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Layout, SnowflakeError, fromText, toText } from 'snowflake-ids';

const number = (text) => (text === null ? null : Number(text));
const text = (value) => (value === null ? null : String(value));

const call = (kase) => {
  const layout = 'layout' in kase ? new Layout(kase.layout) : undefined;
  switch (kase.call) {
    case 'layout':
      return [String(layout), String(layout.highestId)];
    case 'decode': {
      const { timestamp, timestampMicros, datacenterId, workerId, sequence } = layout.decode(kase.id);
      const parts = { timestamp: timestampMicros, datacenterId, workerId, sequence };
      assert.equal(layout.encode(parts), BigInt(kase.id));
      const rest = timestampMicros - BigInt(timestamp.getTime()) * 1000n;
      assert.ok(rest >= 0n && rest < 1000n);
      return [timestampMicros, datacenterId, workerId, sequence].map(text);
    }
    case 'encode': {
      const [workerId, sequence, datacenterId] = [kase.worker, kase.sequence, kase.datacenter].map(number);
      return [String(layout.encode({ timestamp: BigInt(kase.at), workerId, sequence, datacenterId }))];
    }
    case 'bounds': {
      const at = BigInt(kase.at);
      const bounds = (at) => [layout.minId(at), layout.maxId(at), layout.maxIdBefore(at)].map(String);
      if (at % 1000n === 0n) assert.deepEqual(bounds(new Date(Number(at / 1000n))), bounds(at));
      return bounds(at);
    }
    case 'between':
      return [String(layout.between(kase.id, BigInt(kase.since), BigInt(kase.until)))];
    case 'to_text':
      return [toText(kase.id, kase.form)];
    case 'from_text':
      return [String(fromText(kase.text, kase.form))];
    default:
      throw new Error(kase.call);
  }
};

const same = (left, right) => JSON.stringify(left) === JSON.stringify(right);

// The cases whose answer is another one here. Where a case has the text of an error, that of the package has it, too.
export const wrong = (cases) =>
  cases.flatMap((kase) => {
    try {
      const here = call(kase);
      return same(here, kase.answer) ? [] : [{ ...kase, here }];
    } catch (error) {
      if (!(error instanceof SnowflakeError)) throw new Error(JSON.stringify(kase), { cause: error });
      const isIt = kase.error !== undefined && error.message.includes(kase.error);
      return isIt ? [] : [{ ...kase, here: error.message }];
    }
  });

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const cases = JSON.parse(readFileSync(0, 'utf8'));
  for (const kase of wrong(cases)) console.log(JSON.stringify(kase));
  console.log(`${cases.length} compared`);
}
