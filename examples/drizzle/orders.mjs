// Orders with Drizzle.

import { sql } from 'drizzle-orm';
import { Layout } from 'snowflake-ids';
import { orders } from './schema.mjs';

// Adds an order and returns it, with its key.
export const add = async (db, order) => (await db.insert(orders).values(order).returning())[0];

// Adds orders by one statement, and returns them with their keys. A statement has up to 65,534 parameters.
export const addMany = (db, list) => db.insert(orders).values(list).returning();

// JSON has keys as text: as a number, JavaScript reads another key. JSON.stringify by itself refuses a BigInt.
export const toJson = (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (db) =>
  new Layout((await db.execute(sql`SELECT snowflake_database_layout() AS layout`)).rows[0].layout);
