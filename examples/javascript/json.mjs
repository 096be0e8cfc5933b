// JSON has keys as text: as a number, JavaScript reads another key. JSON.stringify by itself refuses a BigInt.
export const toJson = (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));
