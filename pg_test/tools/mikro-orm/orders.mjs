// Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with MikroORM.

import { BigIntType, EntitySchema } from '@mikro-orm/postgresql';

export const Order = new EntitySchema({
  name: 'Order',
  tableName: 'orders',
  properties: {
    // Without `autoincrement: false`, the key is a bigserial, and the default is left out in silence.
    id: { type: new BigIntType('bigint'), primary: true, autoincrement: false, defaultRaw: 'snowflake_next()' },
    item: { type: 'text' },
  },
});

// What one is told who forgets it.
export const Numbered = new EntitySchema({
  name: 'Numbered',
  tableName: 'numbered',
  properties: { id: { type: new BigIntType('bigint'), primary: true, defaultRaw: 'snowflake_next()' } },
});
