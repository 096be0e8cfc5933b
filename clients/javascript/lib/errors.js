// What can be wrong with a layout, an ID, or a text.

export class SnowflakeError extends Error {
  name = 'SnowflakeError';
}

export class LayoutError extends SnowflakeError {
  name = 'LayoutError';
}

export class IdError extends SnowflakeError {
  name = 'IdError';
}

export class TextError extends SnowflakeError {
  name = 'TextError';
}

// A longer text is shortened to this many bytes, or to the few fewer that end with a whole character.
const QUOTED = 128;
const encoder = new TextEncoder();

// How many bytes a text has in UTF-8.
export const bytes = (text) => encoder.encode(text).length;

// The text as messages quote it: not longer than a message should be.
export const shortened = (text) => {
  if (bytes(text) <= QUOTED) return text;
  let kept = '';
  let length = 0;
  for (const character of text) {
    length += bytes(character);
    if (length > QUOTED) break;
    kept += character;
  }
  return `${kept}...`;
};
