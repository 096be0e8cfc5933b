// For a directory `pg-snowflake` of CloudNativePG's catalogue, whose programs want each field, the
// empty ones, too. The versions are those of packages at apt.postgresql.org, which has none yet.
metadata = {
  name                     = "pg-snowflake"
  sql_name                 = "pg_snowflake"
  image_name               = "pg-snowflake"
  licenses                 = ["Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-3-Clause", "ISC", "MIT", "PostgreSQL", "Unicode-3.0", "Zlib"]
  shared_preload_libraries = ["pg_snowflake"]
  // For tests alone, whose cluster has one instance. More of them would lease theirs.
  postgresql_parameters    = { "pg_snowflake.worker_id" = "7" }
  extension_control_path   = []
  dynamic_library_path     = []
  ld_library_path          = []
  bin_path                 = []
  env                      = {}
  auto_update_os_libs      = false
  required_extensions      = []
  create_extension         = true

  versions = {
    bookworm = {
      "18" = {
        // renovate: suite=bookworm-pgdg depName=postgresql-18-pg-snowflake
        package = "@VERSION@-1.pgdg12+1"
        // renovate: suite=bookworm-pgdg depName=postgresql-18-pg-snowflake extractVersion=^(?<version>\d+\.\d+\.\d+)
        sql     = "@VERSION@"
      }
    }
    trixie = {
      "18" = {
        // renovate: suite=trixie-pgdg depName=postgresql-18-pg-snowflake
        package = "@VERSION@-1.pgdg13+1"
        // renovate: suite=trixie-pgdg depName=postgresql-18-pg-snowflake extractVersion=^(?<version>\d+\.\d+\.\d+)
        sql     = "@VERSION@"
      }
    }
  }
}
