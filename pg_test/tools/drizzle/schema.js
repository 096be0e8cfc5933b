const { sql } = require("drizzle-orm");
const { bigint, pgTable, text } = require("drizzle-orm/pg-core");

exports.orders = pgTable("orders", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_next()`),
  note: text(),
});
