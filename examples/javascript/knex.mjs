// Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with Knex. It reads a bigint as a string, which is exact.

import { Layout } from 'snowflake-ids';

export const createTable = (knex) =>
  knex.schema.createTable('orders', (table) => {
    table.bigint('id').primary().defaultTo(knex.raw('snowflake_next()'));
    table.text('item').notNullable();
    table.integer('quantity').notNullable();
  });

// Adds an order and returns its key.
export const add = async (knex, order) => (await knex('orders').insert(order).returning('id'))[0].id;

// Adds orders by one statement. Returns their keys.
export const addMany = async (knex, orders) => (await knex('orders').insert(orders).returning('id')).map(({ id }) => id);

export const find = (knex, id) => knex('orders').where({ id }).first();

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (knex) => new Layout((await knex.first(knex.raw('snowflake_database_layout() AS layout'))).layout);

// The keys of a range of time, which is a range of the primary key.
export const between = (knex, layout, since, until) =>
  knex('orders').whereBetween('id', [layout.minId(since), layout.maxIdBefore(until)]).orderBy('id').pluck('id');
