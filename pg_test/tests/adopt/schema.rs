//! Schemas as `pg_dump` writes them, to be compared.

use snowflake_test::{Cluster, run};

/// The schema of a database, without the tools of `staged.sql` and `from-uuid.sql`, as lines.
pub fn schema(cluster: &Cluster, database: &str) -> Vec<String> {
    let dump = run(cluster.program("pg_dump").args([
        "--schema-only",
        "--no-owner",
        "--exclude-schema=moving",
        "--exclude-schema=from_uuid",
        "--dbname",
        database,
    ]));
    // Some minor versions write a random key.
    let is_random = |line: &&str| line.starts_with("\\restrict") || line.starts_with("\\unrestrict");
    dump.lines().filter(|line| !is_random(line) && !line.is_empty()).map(str::to_owned).collect()
}

/// The lines that only the one has, and those that only the other has, each sorted.
pub fn difference(before: &[String], after: &[String]) -> (Vec<String>, Vec<String>) {
    let only = |left: &[String], right: &[String]| {
        let mut rest = right.to_vec();
        let mut only = Vec::new();
        for line in left {
            match rest.iter().position(|other| other == line) {
                Some(index) => drop(rest.swap_remove(index)),
                None => only.push(line.trim().to_owned()),
            }
        }
        only.sort();
        only
    };
    (only(before, after), only(after, before))
}

/// Dumps a database, restores it into a fresh cluster, and checks that this has the same schema and the same rows.
pub fn survives_a_restore(cluster: &Cluster, database: &str) {
    let file = cluster.new_file("moved.sql");
    run(cluster.program("pg_dump").args(["--dbname", database, "--file"]).arg(&file));
    let fresh = Cluster::options().create();
    fresh.start();
    fresh.client().batch_execute("CREATE DATABASE restored").unwrap();
    let mut psql = fresh.program("psql");
    run(psql
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=restored", "--output=/dev/null", "--file"])
        .arg(&file));
    assert_eq!(schema(cluster, database), schema(&fresh, "restored"));
    assert_eq!(rows(cluster, database), rows(&fresh, "restored"));
}

/// The number of rows of each table, and a sum over their text.
pub fn rows(cluster: &Cluster, database: &str) -> Vec<(String, i64, i64)> {
    let mut client = cluster.client_of("postgres", database);
    let tables = client
        .query(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE relkind IN ('r', 'p') AND NOT relispartition \
             AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY 1",
            &[],
        )
        .unwrap();
    let mut found = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let query = format!("SELECT count(*), coalesce(sum(hashtext(t::text)), 0)::bigint FROM {table} t");
        let row = client.query_one(&query, &[]).unwrap();
        found.push((table, row.get(0), row.get(1)));
    }
    found
}
