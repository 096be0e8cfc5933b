// Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with TypeORM. It reads a bigint as a string, which is exact.

import 'reflect-metadata';
import { Between, EntitySchema } from 'typeorm';
import { Layout } from 'snowflake-ids';

// With decorators: @PrimaryColumn({ type: 'bigint', default: () => 'snowflake_next()' }) id: string. Not
// @PrimaryGeneratedColumn('increment', { type: 'bigint' }), whose column is a bigserial.
export const Order = new EntitySchema({
  name: 'Order',
  tableName: 'orders',
  columns: {
    id: { type: 'bigint', primary: true, default: () => 'snowflake_next()' },
    item: { type: 'text' },
    quantity: { type: 'integer' },
  },
});

// Adds an order, which then has its key, and returns that.
export const add = async (repository, order) => (await repository.save(repository.create(order))).id;

// Adds orders by one statement. Returns their keys. (`save` of 5,000 objects looks at each of them, and takes longer.)
export const addMany = async (repository, orders) => (await repository.insert(orders)).identifiers.map(({ id }) => id);

export const find = (repository, id) => repository.findOneBy({ id });

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (repository) =>
  new Layout((await repository.query('SELECT snowflake_database_layout() AS layout'))[0].layout);

// The keys of a range of time, which is a range of the primary key.
export const between = async (repository, layout, since, until) => {
  const range = Between(String(layout.minId(since)), String(layout.maxIdBefore(until)));
  const orders = await repository.find({ where: { id: range }, order: { id: 'ASC' } });
  return orders.map(({ id }) => id);
};
