// What Prisma makes of snowflake_id, declared as BigInt: a BigInt. In what it reads by SQL, a string.

import assert from 'node:assert/strict';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '@prisma/client';

const KEY = 382304429472247813n;
const prisma = new PrismaClient({ adapter: new PrismaPg({}) });
await prisma.$executeRaw`DROP TABLE IF EXISTS orders`;
await prisma.$executeRaw`CREATE TABLE orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text, quantity integer)`;
const lamp = { item: 'lamp', quantity: 1 };
assert.deepEqual(await prisma.order.create({ data: { id: KEY, ...lamp } }), { id: KEY, ...lamp });
assert.equal(typeof (await prisma.order.create({ data: lamp })).id, 'bigint');
assert.deepEqual(await prisma.order.findMany({ where: { id: { in: [KEY, 5n] } } }), [{ id: KEY, ...lamp }]);
const read = await prisma.$queryRaw`SELECT id, id::bigint AS number FROM orders WHERE id = ${KEY}`;
assert.deepEqual(read, [{ id: String(KEY), number: KEY }]);
await prisma.$disconnect();
console.log('seen: prisma');
