// The scalar Snowflake: text in JSON, as JavaScript reads a number of 63 bits as another number; BigInt in resolvers.

import { GraphQLError, GraphQLScalarType, Kind } from 'graphql';

const HIGHEST = (1n << 63n) - 1n;

const parse = (text) => {
  if (/^[0-9]{1,19}$/.test(text) && BigInt(text) <= HIGHEST) return BigInt(text);
  throw new GraphQLError(`"${text}" is no snowflake ID`);
};

export const Snowflake = new GraphQLScalarType({
  name: 'Snowflake',
  description: 'A snowflake ID, as text: "382304429472247813".',
  // What a resolver returns: pg's text, or BigInt. A number may be another one already.
  serialize(value) {
    if (typeof value === 'bigint' || typeof value === 'string') return String(parse(String(value)));
    throw new GraphQLError(`a resolver returned a ${typeof value} for a snowflake ID, and not a BigInt or text`);
  },
  // A variable, which JSON.parse has read: a number may have been another one.
  parseValue(value) {
    if (typeof value === 'string') return parse(value);
    throw new GraphQLError('send a snowflake ID as text');
  },
  // In the text of a query, the digits of a number are those that were written.
  parseLiteral(node) {
    if (node.kind === Kind.STRING || node.kind === Kind.INT) return parse(node.value);
    throw new GraphQLError('write a snowflake ID as text');
  },
});
