//! pg_cron: the job of docs/partitions.md, as that page has it but for how often it runs.

use super::{beside_with, execute};
use snowflake_test::check::wait_for;
use snowflake_test::value;

/// The statement of docs/partitions.md that schedules the job.
fn documented() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/partitions.md");
    let page = std::fs::read_to_string(page).unwrap();
    let statement = page.split("    SELECT cron.schedule(").nth(1).unwrap();
    format!("SELECT cron.schedule({}$$)", statement.split("$$);").next().unwrap())
}

#[test]
fn a_job_creates_and_drops_partitions() {
    let options = |options: snowflake_test::Options| options.set("cron.use_background_workers = on");
    beside_with("pg_cron", "pg_cron", options, |cluster| {
        let mut client = cluster.client();
        execute(
            &mut client,
            "CREATE TABLE metrics (id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('metrics', '1 day', date_trunc('day', now(), 'UTC') - interval '95 days',
                 date_trunc('day', now(), 'UTC'));
             INSERT INTO metrics SELECT snowflake_max_id(now() - n * interval '1 day'), n FROM generate_series(1, 94) n",
        );
        let statement = documented();
        assert!(statement.contains("'0 3 * * *'"), "{statement}");
        client.batch_execute(&statement.replace("'0 3 * * *'", "'1 second'")).unwrap();
        wait_for("the job has run twice", || {
            value(&mut cluster.client(), "SELECT count(*) >= 2 FROM cron.job_run_details WHERE status = 'succeeded'")
        });
        let failed = "SELECT count(*) FROM cron.job_run_details WHERE status = 'failed'";
        assert_eq!(value::<i64>(&mut client, failed), 0, "{}", cluster.log());
        // 90 days are kept: the partition in which the ninetieth lies is whole. For seven days there are partitions ahead.
        assert_eq!(value::<i32>(&mut client, "SELECT max(n) FROM metrics"), 90);
        execute(
            &mut client,
            "INSERT INTO metrics VALUES (snowflake_max_id(now() + interval '7 days' - interval '1 minute'), 0)",
        );
        let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'metrics'::regclass";
        assert_eq!(value::<i64>(&mut client, partitions), 91 + 7);
    });
}
