//! The password of a registry is shown to nobody.

use crate::{leasing, secret_file, status};
use snowflake_test::Cluster;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::query::{next, value};
use snowflake_test::registries::{Kind, Setup};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_password_shows_nowhere() {
    let registry = Setup::of(Kind::Redis).password("s3cret").start();
    let url = format!("redis://:s3cret@{}", registry.address());
    let cluster = leasing(&url).set("log_min_messages = debug1").start();
    let mut client = cluster.client();
    next(&mut client);
    let shown = status(&mut client, "registry");
    assert!(shown.starts_with(&format!("redis://{}", registry.address())) && !shown.contains("s3cret"), "{shown}");
    let shown: String = value(&mut client, "SHOW pg_snowflake.registry");
    assert!(!shown.contains("s3cret"), "{shown}");
    let settings = "SELECT string_agg(setting, '') FROM pg_settings";
    assert!(!value::<String>(&mut client, settings).contains("s3cret"));
    client.batch_execute("CREATE ROLE clerk LOGIN").unwrap();
    let mut clerk = cluster.client_of("clerk", "postgres");
    refused(&mut clerk, "SHOW pg_snowflake.registry", "42501");
    assert_eq!(value::<i64>(&mut clerk, "SELECT count(*) FROM pg_settings WHERE name = 'pg_snowflake.registry'"), 0);
    refused(&mut clerk, "SELECT * FROM snowflake_workers()", "42501");
    assert!(!cluster.log().contains("s3cret"));
}

#[test]
fn a_password_file_that_others_can_read_is_refused() {
    let registry = Setup::of(Kind::Redis).password("right").start();
    let cluster = Cluster::options().create();
    let file = secret_file(&cluster, "right");
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    cluster.append(
        "postgresql.conf",
        &format!(
            "pg_snowflake.worker_id = -1\npg_snowflake.registry = 'redis://{}'\npg_snowflake.max_wait = '1s'\n\
             pg_snowflake.registry_password_file = '{}'\n",
            registry.address(),
            file.display()
        ),
    );
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("can be read by others"), "{error:?}");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    wait_for("the password is read again", || client.query_one("SELECT snowflake_next()", &[]).is_ok());
}

#[test]
fn a_wrong_url_ends_the_start_and_is_not_shown() {
    for url in ["ftp://user:s3cret@host", "redis://user:s3cret@", "postgres://u:s3cret@h/?no=1"] {
        let cluster = Cluster::options().set(&format!("pg_snowflake.registry = '{url}'")).create();
        let log = cluster.try_start().unwrap_err();
        assert!(log.contains("invalid value for parameter \"pg_snowflake.registry\""), "{log}");
        assert!(!log.contains("s3cret"), "{log}");
    }
}
