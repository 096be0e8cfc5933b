// libpq's environment variables name the server. TABLES and SCHEMAS are filters, if they are set.
const list = (name) => process.env[name]?.split(",");

module.exports = {
  dialect: "postgresql",
  schema: "./schema.js",
  dbCredentials: {
    host: process.env.PGHOST,
    user: process.env.PGUSER,
    database: process.env.PGDATABASE,
    ssl: false,
  },
  ...(list("TABLES") && { tablesFilter: list("TABLES") }),
  ...(list("SCHEMAS") && { schemaFilter: list("SCHEMAS") }),
};
