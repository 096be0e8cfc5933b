// For a directory `pg-snowflake` of CloudNativePG's catalogue. The versions are those of packages at apt.postgresql.org, which has none yet.
metadata = {
  name                     = "pg-snowflake"
  sql_name                 = "pg_snowflake"
  image_name               = "pg-snowflake"
  licenses                 = ["Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-3-Clause", "ISC", "MIT", "PostgreSQL", "Unicode-3.0", "Zlib"]
  shared_preload_libraries = ["pg_snowflake"]
  // Worker IDs come from a registry, or are set where there is one instance only, as in the test.
  postgresql_parameters    = {}
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
