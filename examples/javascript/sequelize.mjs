// Orders whose keys PostgreSQL makes by snowflake_next(), with Sequelize 6. It reads a bigint as a string, which is exact.

import { DataTypes, Op } from 'sequelize';
import { Layout } from 'snowflake-ids';

// As autoIncrement, the key would be a bigserial.
export const defineOrder = (sequelize) =>
  sequelize.define('Order', {
    id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: sequelize.literal('snowflake_next()') },
    item: { type: DataTypes.TEXT, allowNull: false },
    quantity: { type: DataTypes.INTEGER, allowNull: false },
  }, { tableName: 'orders', timestamps: false });

// Adds an order and returns its key.
export const add = async (Order, order) => (await Order.create(order)).id;

// Adds orders by one statement. Returns their keys.
export const addMany = async (Order, orders) =>
  (await Order.bulkCreate(orders, { returning: true })).map(({ id }) => id);

export const find = (Order, id) => Order.findByPk(id, { raw: true });

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async ({ sequelize }) => {
  const [[{ layout }]] = await sequelize.query('SELECT snowflake_database_layout() AS layout');
  return new Layout(layout);
};

// The keys of a range of time, which is a range of the primary key. Sequelize takes keys as strings and as BigInt.
export const between = async (Order, layout, since, until) => {
  const range = [layout.minId(since), layout.maxIdBefore(until)];
  const orders = await Order.findAll({ where: { id: { [Op.between]: range.map(String) } }, order: ['id'] });
  return orders.map(({ id }) => id);
};
