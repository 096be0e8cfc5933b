// Snowflake IDs of any layout, read and composed without the database. The methods have the names of pg_snowflake's SQL
// functions, without their prefix.

export { IdError, LayoutError, SnowflakeError, TextError } from './lib/errors.js';
export { Layout } from './lib/layout.js';
export { LAYOUTS } from './lib/notation.js';
export { FORMS, fromText, toText } from './lib/text.js';
