//! Citus's columnar tables, whose scans are their own. There is no package of Debian's.

use super::queries::{ROWS, create_plain, return_the_same_but};
use super::{beside, execute, rows, same_rows};
use postgres::Client;

fn create(client: &mut Client) {
    create_plain(client);
    execute(
        client,
        &format!(
            "SET columnar.stripe_row_limit = 2000; SET columnar.chunk_group_row_limit = 1000;
             CREATE TABLE bare (id bigint, device integer, value double precision) USING columnar;
             INSERT INTO bare {ROWS};
             CREATE TABLE keyed (id bigint PRIMARY KEY, device integer, value double precision) USING columnar;
             INSERT INTO keyed {ROWS};
             CREATE TABLE timed (id bigint, device integer, value double precision) USING columnar;
             INSERT INTO timed {ROWS};
             CREATE INDEX ON timed (snowflake_timestamp(id));
             CREATE TABLE both_ways (id bigint UNIQUE, device integer, value double precision) USING columnar;
             INSERT INTO both_ways {ROWS};
             CREATE INDEX ON both_ways (snowflake_timestamp(id));
             CREATE TABLE parts (id bigint NOT NULL, device integer, value double precision) PARTITION BY RANGE (id);
             CREATE TABLE parts_old PARTITION OF parts FOR VALUES FROM (0) TO (snowflake_min_id('2026-01-08+00')) USING columnar;
             CREATE TABLE parts_new PARTITION OF parts FOR VALUES FROM (snowflake_min_id('2026-01-08+00')) TO (MAXVALUE);
             CREATE INDEX ON parts (id);
             INSERT INTO parts {ROWS};
             VACUUM ANALYZE; RESET ALL"
        ),
    );
}

fn returns_the_same_rows(table: &str, settings: &str) {
    beside("citus_columnar", "citus_columnar", |cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(&mut client, settings);
        // It fails for a UNION ALL with a partitioned table, whatever else is loaded: `invalid perminfoindex 0 in RTE with relid 0` in 13.2.
        let fails = |query: &str| table == "parts" && query.contains("UNION ALL");
        return_the_same_but(&mut cluster.client(), table, fails);
    });
}

/// Then its tables are scanned as those of PostgreSQL are.
const NO_SCANS_OF_ITS_OWN: &str = "ALTER ROLE postgres SET columnar.enable_custom_scan = off";

#[test]
#[ignore = "needs Citus's columnar tables"]
fn one_without_an_index_returns_the_same_rows() {
    returns_the_same_rows("bare", "");
}

#[test]
#[ignore = "needs Citus's columnar tables"]
fn one_with_a_key_returns_the_same_rows() {
    returns_the_same_rows("keyed", "");
    returns_the_same_rows("keyed", NO_SCANS_OF_ITS_OWN);
}

#[test]
#[ignore = "needs Citus's columnar tables"]
fn one_with_an_index_on_the_time_returns_the_same_rows() {
    returns_the_same_rows("timed", "");
}

#[test]
#[ignore = "needs Citus's columnar tables"]
fn one_with_both_returns_the_same_rows() {
    returns_the_same_rows("both_ways", "");
}

#[test]
#[ignore = "needs Citus's columnar tables"]
fn one_of_two_partitions_returns_the_same_rows() {
    returns_the_same_rows("parts", "");
}

/// A columnar table knows the lowest and highest ID of each thousand rows here, and reads those that it must.
#[test]
#[ignore = "needs Citus's columnar tables"]
fn groups_of_rows_are_left_out_by_the_time() {
    beside("citus_columnar", "citus_columnar", |cluster| {
        let mut client = cluster.client();
        create(&mut client);
        let query = "SELECT count(*), sum(value) FROM bare WHERE snowflake_timestamp(id) >= '2026-01-06 12:00+00' AND snowflake_timestamp(id) < '2026-01-07+00'";
        assert_eq!(same_rows(&mut client, query), ["144 | 238392"]);
        let removed = |client: &mut Client| {
            let plan =
                rows(client, &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {query}")).join("\n");
            let removed = plan.split("Columnar Chunk Groups Removed by Filter: ").nth(1).map(str::to_owned);
            removed.map_or(0, |text| text.split_whitespace().next().unwrap().parse::<u32>().unwrap())
        };
        assert_eq!(removed(&mut client), 4);
        execute(&mut client, "SET pg_snowflake.plan_by_time = off");
        assert_eq!(removed(&mut client), 0);
    });
}
