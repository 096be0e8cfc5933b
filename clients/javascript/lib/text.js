// IDs as text, in the forms that URLs, files and other systems use. Each form has one text for an ID.

import { TextError, bytes, shortened } from './errors.js';
import { toBigInt } from './layout.js';

const LONGEST = 64;
const HIGHEST = (1n << 63n) - 1n;
const UPPER_LOWER = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BASE_64_URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

// `width` is the number of digits, with leading zeros; without it, there are no leading zeros. `padding` is how many zero bits
// follow those of the number, to fill the last digit. `aliases` are characters that are read as a digit.
const form = (alphabet, { width, padding = 0n, anyCase = false, aliases = {} } = {}) => {
  const digits = new Map([...alphabet].map((digit, value) => [digit, BigInt(value)]));
  for (const [alias, digit] of Object.entries(aliases)) digits.set(alias, digits.get(digit));
  if (anyCase) {
    for (const [digit, value] of [...digits]) digits.set(digit.toLowerCase(), value).set(digit.toUpperCase(), value);
  }
  return { alphabet, base: BigInt(alphabet.length), width, padding, digits };
};

const forms = {
  decimal: form('0123456789', { width: 19 }),
  hex: form('0123456789abcdef', { width: 16, anyCase: true }),
  base32: form('0123456789ABCDEFGHJKMNPQRSTVWXYZ', { width: 13, anyCase: true, aliases: { O: '0', I: '1', L: '1' } }),
  base36: form('0123456789abcdefghijklmnopqrstuvwxyz', { anyCase: true }),
  base58: form('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', { width: 11 }),
  'base58-bwmarrin': form('123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ'),
  base62: form(UPPER_LOWER, { width: 11 }),
  base64url: form(BASE_64_URL, { width: 11, padding: 2n }),
  shortcode: form(BASE_64_URL),
};

// The names of the forms.
export const FORMS = Object.freeze(Object.keys(forms));

const named = (name) => {
  if (Object.hasOwn(forms, name)) return forms[name];
  throw new TextError(`"${shortened(String(name))}" is not a text form; use one of ${FORMS.join(', ')}`);
};

// Writes an ID in the given text form.
export const toText = (id, form) => {
  const { alphabet, base, width = 1, padding } = named(form);
  const checked = toBigInt(id);
  if (checked < 0n || checked > HIGHEST) throw new TextError(`${checked} has no text form: IDs range from 0 to ${HIGHEST}`);
  let text = '';
  for (let number = checked << padding; number > 0n || text.length < width; number /= base) {
    text = alphabet[Number(number % base)] + text;
  }
  return text;
};

// Reads an ID that is written in the given text form.
export const fromText = (text, form) => {
  const { base, width, padding, digits } = named(form);
  if (typeof text !== 'string') throw new TypeError(`the text of an ID is a string, not ${typeof text}`);
  const fail = (problem) => {
    throw new TextError(`"${shortened(text)}" is not a snowflake ID in the form ${form}: ${problem}`);
  };
  if (bytes(text) > LONGEST) fail(`the text has more than ${LONGEST} bytes, and an ID at most 19 characters`);
  let number = 0n;
  [...text].forEach((character, index) => {
    const digit = digits.get(character);
    if (digit === undefined) fail(`character ${index + 1}, "${character}", is no digit of the form`);
    number = number * base + digit;
  });
  if (width !== undefined && text.length !== width) {
    fail(`the text has ${text.length} characters, and the form ${width}`);
  }
  if (width === undefined && text.length !== 1 && !digits.get(text[0])) {
    fail('the form has at least one digit, and no leading zeros');
  }
  if (number & ((1n << padding) - 1n)) fail('the last character has bits below the number');
  const id = number >> padding;
  if (id > HIGHEST) fail(`the number is above ${HIGHEST}`);
  return id;
};
