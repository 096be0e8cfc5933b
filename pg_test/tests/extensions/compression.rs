//! TimescaleDB's compressed chunks, whose scans are its own. They are not among Debian's packages.

use super::hypertables::{create, with_hypertables};
use super::queries::return_the_same;
use super::{assert_plan, execute, same_rows};
use snowflake_test::value;

const COMPRESS: &str = "
    ALTER TABLE metrics SET (timescaledb.compress, timescaledb.compress_segmentby = 'device', timescaledb.compress_orderby = 'id');
    SELECT compress_chunk(chunk) FROM show_chunks('metrics', older_than => snowflake_min_id('2026-01-10+00')) chunk;
    VACUUM ANALYZE metrics";

#[test]
#[ignore = "needs TimescaleDB's own license"]
fn a_compressed_hypertable_returns_the_same_rows() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(&mut client, COMPRESS);
        return_the_same(&mut client, "metrics");
    });
}

/// Rows that came later, or were changed, are not compressed until the next time.
#[test]
#[ignore = "needs TimescaleDB's own license"]
fn one_that_is_compressed_in_part_returns_the_same_rows() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(&mut client, COMPRESS);
        for table in ["metrics", "plain"] {
            execute(
                &mut client,
                &format!(
                    "INSERT INTO {table} SELECT id + 10 * 4194304, device, value FROM other;
                     UPDATE {table} SET value = -value WHERE snowflake_timestamp(id) >= '2026-01-05+00' AND snowflake_timestamp(id) < '2026-01-05 12:00+00';
                     DELETE FROM {table} WHERE snowflake_timestamp(id) BETWEEN '2026-01-07 12:00+00' AND '2026-01-08 02:00+00'"
                ),
            );
        }
        return_the_same(&mut client, "metrics");
    });
}

/// Batches of a compressed chunk have their lowest and highest ID beside them.
#[test]
#[ignore = "needs TimescaleDB's own license"]
fn batches_are_left_out_by_the_time() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(&mut client, COMPRESS);
        let query = "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) >= '2026-01-05 12:00+00' AND snowflake_timestamp(id) < '2026-01-05 18:00+00'";
        assert_plan(
            &mut client,
            query,
            &["(DecompressChunk) on _hyper_1_5_chunk", "_ts_meta_max_1 >= ", "_ts_meta_min_1 <= ", "!_hyper_1_6_chunk"],
        );
        assert_eq!(same_rows(&mut client, query), ["72"]);
        // Rows that came later are read by an index, and the batches as before.
        execute(&mut client, "INSERT INTO metrics SELECT id + 10 * 4194304, device, value FROM other");
        assert_plan(&mut client, query, &["_ts_meta_max_1 >= ", "_ts_meta_min_1 <= ", "!_hyper_1_6_chunk"]);
        execute(&mut client, "SET enable_seqscan = off");
        assert_plan(&mut client, query, &["_ts_meta_max_1 >= ", "_ts_meta_min_1 <= ", "!_hyper_1_6_chunk"]);
    });
}

#[test]
#[ignore = "needs TimescaleDB's own license"]
fn policies_and_aggregates_are_in_units_of_ids() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(
            &mut client,
            "CREATE MATERIALIZED VIEW daily WITH (timescaledb.continuous) AS
             SELECT time_bucket(snowflake_min_id('2026-01-02+00') - snowflake_min_id('2026-01-01+00'), id) AS day, count(*), sum(value)
             FROM metrics GROUP BY 1 WITH NO DATA",
        );
        // It may not be in a transaction.
        execute(&mut client, "CALL refresh_continuous_aggregate('daily', NULL, NULL)");
        let query = "SELECT snowflake_timestamp(day), count FROM daily WHERE snowflake_timestamp(day) >= '2026-01-12+00' ORDER BY 1";
        assert_plan(&mut client, query, &["Index Cond: (day >= "]);
        assert_eq!(
            same_rows(&mut client, query),
            ["2026-01-12 00:00:00+00 | 288", "2026-01-13 00:00:00+00 | 288", "2026-01-14 00:00:00+00 | 288"]
        );
        let job: i32 = value(
            &mut client,
            "SELECT add_retention_policy('metrics', drop_after => snowflake_min_id('2026-02-01+00') - snowflake_min_id('2026-01-01+00'))",
        );
        execute(&mut client, &format!("CALL run_job({job})"));
        assert_eq!(same_rows(&mut client, "SELECT count(*) FROM metrics"), ["0"]);
    });
}
