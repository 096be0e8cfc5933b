// What Sequelize makes of snowflake_id: a string, as of bigint.

import assert from 'node:assert/strict';
import { DataTypes, Sequelize } from 'sequelize';

const KEY = '382304429472247813';
const { PGHOST: host, PGPORT: port, PGUSER: username, PGDATABASE: database } = process.env;
const sequelize = new Sequelize({ dialect: 'postgres', host, port, username, database, logging: false, pool: { max: 1 } });
const defineOrder = (type) =>
  sequelize.define('Order', {
    id: { type, primaryKey: true, defaultValue: sequelize.literal('snowflake_next()') },
    parent: { type },
  }, { tableName: 'typed_orders', timestamps: false });

await sequelize.query('CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)');
const Order = defineOrder(DataTypes.BIGINT);
assert.equal((await Order.create({ id: KEY, parent: KEY })).id, KEY);
assert.equal((await Order.findByPk(KEY)).parent, KEY);
assert.equal((await Order.findAll({ where: { id: [KEY, '5'] } })).length, 1);
assert.equal(typeof (await Order.create({ parent: 5 })).id, 'string');
await sequelize.close();
console.log('seen: sequelize');
