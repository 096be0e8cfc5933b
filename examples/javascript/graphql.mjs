// Customers and their orders. Primary and foreign keys are Snowflakes, and the time of an order is read from its key.

import { GraphQLList, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { Snowflake } from './graphql-snowflake.mjs';

export const TABLES = `
  CREATE TABLE customers (id bigint PRIMARY KEY DEFAULT snowflake_next(), name text NOT NULL);
  CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_next(), customer_id bigint NOT NULL REFERENCES customers, item text NOT NULL)`;

const key = { type: new GraphQLNonNull(Snowflake) };
const text = { type: new GraphQLNonNull(GraphQLString) };

const Order = new GraphQLObjectType({
  name: 'Order',
  fields: {
    id: key,
    customerId: { ...key, resolve: (order) => order.customer_id },
    createdAt: { ...text, resolve: ({ id }, _, { layout }) => layout.timestamp(id).toISOString() },
    item: text,
  },
});

const Customer = new GraphQLObjectType({
  name: 'Customer',
  fields: {
    id: key,
    name: text,
    orders: {
      type: new GraphQLList(Order),
      args: { since: text, until: text },
      // A range of time is a range of keys.
      resolve: async ({ id }, { since, until }, { client, layout }) => {
        const range = [layout.minId(new Date(since)), layout.maxIdBefore(new Date(until))];
        const query = 'SELECT * FROM orders WHERE customer_id = $1 AND id BETWEEN $2 AND $3 ORDER BY id';
        return (await client.query(query, [id, ...range])).rows;
      },
    },
  },
});

export const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      customer: {
        type: Customer,
        args: { id: key },
        resolve: async (_, { id }, { client }) => (await client.query('SELECT * FROM customers WHERE id = $1', [id])).rows[0],
      },
    },
  }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      addOrder: {
        type: Order,
        args: { customerId: key, item: text },
        resolve: async (_, { customerId, item }, { client }) => {
          const query = 'INSERT INTO orders (customer_id, item) VALUES ($1, $2) RETURNING *';
          return (await client.query(query, [customerId, item])).rows[0];
        },
      },
    },
  }),
});
