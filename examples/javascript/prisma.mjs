// Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with Prisma 7. A BigInt is exact.

import { Layout } from 'snowflake-ids';

// Adds an order and returns it, with its key.
export const add = (prisma, order) => prisma.order.create({ data: order });

// Adds orders by one statement, and returns them with their keys.
export const addMany = (prisma, orders) => prisma.order.createManyAndReturn({ data: orders });

export const find = (prisma, id) => prisma.order.findUnique({ where: { id } });

// The layout of the database's keys, which reads them. It never changes, so a program asks once.
export const layoutOf = async (prisma) =>
  new Layout((await prisma.$queryRaw`SELECT snowflake_database_layout() AS layout`)[0].layout);

// The orders of a range of time, which is a range of the primary key.
export const between = (prisma, layout, since, until) =>
  prisma.order.findMany({ where: { id: { gte: layout.minId(since), lte: layout.maxIdBefore(until) } }, orderBy: { id: 'asc' } });
