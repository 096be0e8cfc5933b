//! A server whose user of the registry has the rights of docs/reference/registries.md and no others; and one that has less.

use crate::leasing;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::query::{next, value};
use snowflake_test::registries::rights::{NAMESPACE, PASSWORD};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::{Cluster, Options, Stop};
use std::thread;
use std::time::Duration;

mod by_etcd {
    use super::Kind::Etcd;

    #[test]
    fn the_user_of_the_page_is_enough() {
        super::the_user_of_the_page_is_enough(Etcd);
    }

    #[test]
    fn who_has_less_is_told_what_is_missing() {
        super::who_has_less_is_told_what_is_missing(Etcd);
    }
}

mod by_redis {
    use super::Kind::Redis;

    #[test]
    fn the_user_of_the_page_is_enough() {
        super::the_user_of_the_page_is_enough(Redis);
    }

    #[test]
    fn who_has_less_is_told_what_is_missing() {
        super::who_has_less_is_told_what_is_missing(Redis);
    }
}

fn of_the_namespace(url: &str, namespace: &str) -> Options {
    leasing(url).set(&format!("pg_snowflake.registry_namespace = '{namespace}'"))
}

fn start(kind: Kind) -> (Server, String) {
    let registry = Setup::of(kind).password("top").start();
    let url = registry.make_user_of_the_page(NAMESPACE);
    (registry, url)
}

fn wait_for_ids(cluster: &Cluster) {
    wait_for("IDs are made", || cluster.client().query("SELECT snowflake_next()", &[]).is_ok());
}

fn the_user_of_the_page_is_enough(kind: Kind) {
    let (_registry, url) = start(kind);
    let options = of_the_namespace(&url, NAMESPACE).patient();
    let servers = [options.clone().start(), options.start()];
    servers.iter().for_each(wait_for_ids);
    let create = "SELECT snowflake_segment_create('orders')";
    wait_for("the tag is created", || servers[0].client().query(create, &[]).is_ok());
    let mut numbers = Vec::new();
    for round in 0..2 {
        for server in &servers {
            let mut client = server.client();
            wait_for("there is a number", || match client.query_one("SELECT snowflake_segment_next('orders')", &[]) {
                Ok(row) => {
                    numbers.push(row.get::<_, i64>(0));
                    true
                }
                Err(_) => false,
            });
            assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM snowflake_workers()"), 2);
            assert!(value::<i64>(&mut client, "SELECT count(*) FROM snowflake_segments()") > 0);
        }
        if round == 0 {
            servers[0].restart(Stop::Fast);
            wait_for_ids(&servers[0]);
        }
    }
    snowflake_test::check::distinct(&[numbers]);
    for server in &servers {
        let log = server.log();
        assert!(!log.contains("WARNING") && !log.contains("ERROR:  the registry"), "{log}");
        let unseen = log.contains("the registry of worker IDs does not show all of its settings");
        assert!(unseen == (kind == Kind::Redis) && !log.contains(PASSWORD), "{log}");
        assert_eq!(log.contains("does not show its setting appendfsync"), unseen, "{log}");
    }
}

/// It goes on when the right is given, and does not ask too often until then.
fn who_has_less_is_told_what_is_missing(kind: Kind) {
    let (registry, url) = start(kind);
    let cluster = of_the_namespace(&url, "other").set("pg_snowflake.max_wait = '200ms'").start();
    let mut client = cluster.client();
    wait_for("the error says it", || {
        let error = refused(&mut client, "SELECT snowflake_next()", "55000");
        error.detail().is_some_and(|detail| detail.contains("the user needs") && detail.contains("other"))
    });
    // The WARNING comes once.
    thread::sleep(Duration::from_secs(4));
    let log = cluster.log();
    let warnings = log.matches("the registry of worker IDs does not answer").count();
    assert!(warnings <= 1 && !log.contains(PASSWORD) && !log.contains("PANIC"), "{log}");
    if kind == Kind::Redis {
        let asked = registry.redis_cli(&["info", "commandstats"]);
        let rejected: u32 = asked
            .split("rejected_calls=")
            .skip(1)
            .map(|rest| rest.split(',').next().unwrap().parse::<u32>().unwrap())
            .sum();
        assert!((1..60).contains(&rejected), "{rejected} in 4 s: {asked}");
    }
    match kind {
        Kind::Etcd => {
            let prefix = "/pg_snowflake/other/";
            registry.etcdctl(&["role", "grant-permission", NAMESPACE, "--prefix=true", "readwrite", prefix]);
        }
        _ => {
            registry.redis_cli(&["acl", "setuser", NAMESPACE, "~pg_snowflake*other*"]);
        }
    }
    wait_for_ids(&cluster);
    next(&mut client);
}
