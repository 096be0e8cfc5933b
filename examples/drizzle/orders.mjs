// Orders with Drizzle.

import { orders } from './schema.mjs';

// Adds an order and returns it, with its key.
export const add = async (db, order) => (await db.insert(orders).values(order).returning())[0];

// Adds orders by one statement, and returns them with their keys. A statement has up to 65,534 parameters.
export const addMany = (db, list) => db.insert(orders).values(list).returning();

// JSON has keys as text: as a number, JavaScript reads another key. JSON.stringify by itself refuses a BigInt.
export const toJson = (value) => JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part));

// When a key of the default layout was made: its bits from the 22nd on are milliseconds since the epoch.
export const createdAt = (key) => new Date(Number(key >> 22n) + Date.UTC(2024, 0, 1));
