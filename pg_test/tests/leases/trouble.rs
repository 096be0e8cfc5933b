//! Whatever keeps a server from its lease, or from numbers of segments, is in `snowflake_status()` as a sentence with its cause, and in
//! `snowflake_preflight()` as not ok. There is a function for each reason that the code knows, and a test that none is forgotten.

use crate::forgotten::{short, wait_for_ids};
use crate::{leasing, registry, status};
use snowflake_test::check::{refused, wait_for};
use snowflake_test::load::End;
use snowflake_test::query::{next, value};
use snowflake_test::registries::Kind;
use snowflake_test::{Cluster, Installation, Stop, seconds};
use std::fs;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

/// The reasons, by the source that knows them, and how the functions begin that bring them about.
const REASONS: [(&str, &str, &str); 3] = [
    ("core/src/lease/trouble.rs", "pub enum Trouble {", "lease_"),
    ("core/src/lease/choice.rs", "pub enum Why {", "lease_no_worker_"),
    ("core/src/segment/trouble.rs", "pub enum Trouble {", "segments_"),
];

/// What no server can be brought to, and which test of the core has it.
const IN_THE_CORE: [(&str, &str); 2] = [
    ("lease_outrun", "who_is_outrun_says_so"),
    ("lease_no_such_worker", "a_worker_that_the_layout_does_not_have_is_said"),
];

#[test]
fn no_reason_is_forgotten() {
    let read = |path: &str| fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (here, core) = (read("pg_test/tests/leases/trouble.rs"), read("core/tests/lease/lessee.rs"));
    for (path, begin, prefix) in REASONS {
        let source = read(path);
        let body = source.split_once(begin).unwrap().1.split_once("\n}").unwrap().0;
        let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
        let variants: Vec<&str> = variants
            .filter(|line| line.starts_with(char::is_uppercase))
            .map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap())
            .collect();
        assert!(variants.len() > 2, "{path}: {variants:?}");
        for variant in variants {
            let mut name = prefix.trim_end_matches('_').to_owned();
            for letter in variant.chars() {
                if letter.is_uppercase() {
                    name.push('_');
                }
                name.extend(letter.to_lowercase());
            }
            match IN_THE_CORE.iter().find(|(reason, _)| *reason == name) {
                Some((_, test)) => assert!(core.contains(&format!("fn {test}()")), "{test}"),
                None => assert!(here.contains(&format!("\nfn {name}()")), "{path}: no function {name}"),
            }
        }
    }
}

/// The rows of `snowflake_preflight()` about the server.
fn preflight(cluster: &Cluster) -> String {
    let rows =
        "SELECT string_agg(verdict || ': ' || finding, E'\n') FROM snowflake_preflight() WHERE subject = 'server'";
    value(&mut cluster.client(), rows)
}

/// The status says this, as a sentence, and preflight the same.
fn says(cluster: &Cluster, verdict: &str, words: &str) {
    let mut client = cluster.client();
    let mut said = String::new();
    wait_for(words, || {
        said = status(&mut client, "registry_error");
        said.contains(words)
    });
    assert!(said.ends_with('.'), "{said}");
    let found = preflight(cluster);
    assert!(found.lines().any(|row| row.starts_with(verdict) && row.contains(words)), "{found}");
    assert!(!found.contains("ok: "), "{found}");
}

/// Of the lease: calls say the same.
fn keeps_from_lease(cluster: &Cluster, words: &str) {
    says(cluster, "problem: this server gets no lease", words);
    let error = refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains(words), "{error:?}");
    // Names of hosts and directories are for monitors.
    cluster
        .client()
        .batch_execute("DO 'BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN END'")
        .unwrap();
    let mut clerk = cluster.client_of("clerk", "postgres");
    let rows = "SELECT string_agg(finding, ' ') FROM snowflake_preflight() WHERE subject = 'server'";
    let found: String = value(&mut clerk, rows);
    assert!(found.contains("The server's log says why.") && !found.contains(words), "{found}");
}

/// Nothing keeps the server from anything.
fn is_well(cluster: &Cluster) {
    wait_for("nothing is said", || status(&mut cluster.client(), "registry_error").is_empty());
    let found = preflight(cluster);
    assert!(!found.contains("this server gets no"), "{found}");
}

#[test]
fn lease_no_answer() {
    // It takes connections, and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let cluster = leasing(&url).set("pg_snowflake.max_wait = '50ms'").start();
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease'";
    let words = "The registry has not answered yet.";
    // It is so up to the time that a call may take, in each process.
    wait_for(words, || {
        cluster.client().batch_execute(terminate).unwrap();
        (0..20).any(|_| {
            thread::sleep(seconds(1) / 20);
            status(&mut cluster.client(), "registry_error") == words && preflight(&cluster).contains(words)
        })
    });
    keeps_from_lease(&cluster, "does not answer in time");
}

#[test]
fn lease_failing() {
    let mut registry = registry(Kind::Redis);
    let cluster = short(leasing(&registry.url())).start();
    wait_for_ids(&cluster);
    is_well(&cluster);
    registry.kill();
    wait_for("the lease has ended", || status(&mut cluster.client(), "lease") == "expired");
    keeps_from_lease(&cluster, "The registry cannot be reached");
    registry.start();
    wait_for_ids(&cluster);
    is_well(&cluster);
    // What is remembered of the namespace, which is not the registry's.
    cluster.stop(Stop::Fast);
    fs::create_dir(cluster.data().join("pg_snowflake.namespaces.new")).unwrap();
    fs::remove_file(cluster.data().join("pg_snowflake.namespaces")).unwrap();
    cluster.start();
    keeps_from_lease(&cluster, "The file pg_snowflake.namespaces cannot be written");
}

/// Requests about segments that succeed do not hide that the lease is not renewed.
#[test]
fn a_lease_that_is_not_renewed_is_said_while_segments_are_granted() {
    let registry = registry(Kind::Postgres);
    let cluster = leasing(&registry.url()).patient().set("pg_snowflake.registry_window = '6s'").start();
    wait_for_ids(&cluster);
    let mut client = cluster.client();
    client.batch_execute("SELECT snowflake_segment_create('orders')").unwrap();
    let mut owner = registry.cluster().client();
    owner.batch_execute("BEGIN; LOCK TABLE snowflake_registry.workers IN ACCESS EXCLUSIVE MODE").unwrap();
    let words = "does not answer in time";
    wait_for(words, || status(&mut client, "registry_error").contains(words));
    for _ in 0..20 {
        client.batch_execute("SELECT snowflake_segment_next('orders', 100)").unwrap();
        assert!(status(&mut client, "registry_error").contains(words));
    }
    owner.batch_execute("ROLLBACK").unwrap();
    is_well(&cluster);
}

#[test]
fn lease_other_layout() {
    let registry = registry(Kind::Redis);
    let options = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'");
    let first = options.clone().start();
    wait_for_ids(&first);
    let layout = options.clone().set("pg_snowflake.layout = 'timestamp=41 worker=3 sequence=5'").start();
    keeps_from_lease(&layout, "is for the layout");
    let epoch = options.set("pg_snowflake.epoch = '2021-01-01T00:00:00Z'").start();
    keeps_from_lease(&epoch, "is for the layout");
    is_well(&first);
}

#[test]
fn lease_not_before() {
    let mut registry = registry(Kind::Redis);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'").start();
    wait_for_ids(&cluster);
    cluster.stop(Stop::Fast);
    registry.wipe();
    cluster.start();
    keeps_from_lease(&cluster, "The registry has forgotten what it had stored.");
    cluster.reload(&[("pg_snowflake.registry_trusted", "on")]);
    wait_for_ids(&cluster);
    is_well(&cluster);
}

#[test]
fn lease_clock_ahead() {
    let registry = registry(Kind::Postgres);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'").with_clock().start();
    wait_for_ids(&cluster);
    cluster.stop(Stop::Fast);
    cluster.step_clock("+31536000s");
    cluster.start();
    keeps_from_lease(&cluster, "ahead of what the registry knows");
    cluster.step_clock("+0s");
    wait_for_ids(&cluster);
    is_well(&cluster);
}

#[test]
fn lease_clock_behind() {
    let mut registry = registry(Kind::Redis);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'").with_clock().create();
    cluster.step_clock("-3600s");
    cluster.start();
    cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    wait_for_ids(&cluster);
    cluster.stop(Stop::Fast);
    registry.wipe();
    cluster.start();
    keeps_from_lease(&cluster, "behind what the registry shows");
    cluster.stop(Stop::Fast);
    cluster.step_clock("+0s");
    cluster.start();
    keeps_from_lease(&cluster, "The registry has forgotten what it had stored.");
}

#[test]
fn lease_no_worker() {
    lease_no_worker_held();
}

#[test]
fn lease_no_worker_held() {
    let registry = registry(Kind::Redis);
    let first = leasing(&registry.url()).set("pg_snowflake.worker_id = 3").start();
    wait_for_ids(&first);
    let second = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'\npg_snowflake.worker_id = 3").start();
    keeps_from_lease(&second, "Worker ID 3 is leased by");
    // A server that has a lease, and wants another worker.
    second.reload(&[("pg_snowflake.worker_id", "5")]);
    wait_for_ids(&second);
    is_well(&second);
    second.reload(&[("pg_snowflake.worker_id", "3")]);
    says(&second, "problem", "Worker ID 3 is leased by");
    next(&mut second.client());
    second.reload(&[("pg_snowflake.worker_id", "5")]);
    is_well(&second);
}

#[test]
fn lease_no_worker_may_be_copy() {
    let registry = registry(Kind::Redis);
    let original = leasing(&registry.url())
        .set("pg_snowflake.max_wait = '200ms'\npg_snowflake.worker_id = 3\npg_snowflake.registry_window = '6s'")
        .start();
    wait_for_ids(&original);
    let copy = Cluster::empty(Installation::under_test(), false);
    copy.copy_from(&original, &[]);
    copy.start();
    keeps_from_lease(&copy, "was leased by this server, or a copy of it,");
}

#[test]
fn lease_no_worker_too_far_ahead() {
    let registry = registry(Kind::Etcd);
    let options = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'\npg_snowflake.worker_id = 3");
    let cluster = options.with_clock().create();
    cluster.step_clock("+31536000s");
    cluster.start();
    cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    wait_for_ids(&cluster);
    cluster.stop(Stop::Kill);
    cluster.step_clock("+0s");
    cluster.start();
    keeps_from_lease(&cluster, "far ahead of the clock, by");
}

/// What is no reason of the registry's process, as it does not run.
#[test]
fn the_process_does_not_run() {
    let registry = registry(Kind::Redis);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'").start();
    cluster.append("postgresql.conf", "max_worker_processes = 1\n");
    cluster.restart(Stop::Fast);
    keeps_from_lease(&cluster, "needs one of max_worker_processes");
}

/// A standby has neither, and that is no trouble.
#[test]
fn a_standby_is_well() {
    let registry = registry(Kind::Redis);
    let primary = leasing(&registry.url()).start();
    wait_for_ids(&primary);
    let standby = primary.standby();
    is_well(&standby);
}

/// A server with a lease, and a tag.
fn with_tag(url: &str, arguments: &str, settings: &str) -> Cluster {
    let cluster = leasing(url).set("pg_snowflake.max_wait = '300ms'").set(settings).start();
    wait_for_ids(&cluster);
    let create = format!("SELECT snowflake_segment_create('orders'{arguments})");
    wait_for("the tag is created", || cluster.client().query(&create, &[]).is_ok());
    wait_for("numbers are there", || cluster.client().query("SELECT snowflake_segment_next('orders')", &[]).is_ok());
    is_well(&cluster);
    cluster
}

const NUMBERS: &str = "warning: this server gets no numbers of a segment";

#[test]
fn segments_failing() {
    let registry = registry(Kind::Postgres);
    let cluster = with_tag(&registry.url(), ", largest_range => 10", "");
    let mut owner = registry.cluster().client();
    owner.batch_execute("BEGIN; LOCK TABLE snowflake_registry.segments IN ACCESS EXCLUSIVE MODE").unwrap();
    let taken = "SELECT snowflake_segment_next('orders', 1000)";
    wait_for("a call says why", || {
        let error = refused(&mut cluster.client(), taken, "55000");
        error.detail().unwrap().contains("does not answer in time")
    });
    says(&cluster, NUMBERS, "does not answer in time");
    next(&mut cluster.client());
    owner.batch_execute("ROLLBACK").unwrap();
    is_well(&cluster);
}

#[test]
fn segments_missing() {
    let mut registry = registry(Kind::Redis);
    let cluster = with_tag(&registry.url(), "", "");
    registry.wipe();
    cluster.client().batch_execute("SELECT pg_reload_conf()").unwrap();
    says(&cluster, NUMBERS, "The registry has no segment \"orders\" any more.");
}

#[test]
fn segments_used_up() {
    let registry = registry(Kind::Redis);
    let cluster = with_tag(&registry.url(), ", 1, 25", "");
    for _ in 0..24 {
        cluster.retry(|client| client.query("SELECT snowflake_segment_next('orders')", &[]));
    }
    refused(&mut cluster.client(), "SELECT snowflake_segment_next('orders')", "2200H");
    says(&cluster, NUMBERS, "All numbers of segment \"orders\" were granted.");
    cluster.client().batch_execute("SELECT snowflake_segment_drop('orders')").unwrap();
    is_well(&cluster);
}

#[test]
fn segments_full() {
    let registry = registry(Kind::Redis);
    let cluster = with_tag(&registry.url(), "", "pg_snowflake.max_segments = 1");
    let mut client = cluster.client();
    client.batch_execute("SELECT snowflake_segment_create('other')").unwrap();
    refused(&mut client, "SELECT snowflake_segment_next('other')", "53400");
    says(&cluster, NUMBERS, "There is no room for segment \"other\": pg_snowflake.max_segments is 1.");
}

/// Also in the error of a call, in the log, and in what each server has counted.
#[test]
fn segments_too_small() {
    let registry = registry(Kind::Redis);
    let servers = [(); 3].map(|()| with_tag_of(&registry.url()));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = End(&done);
        for cluster in &servers {
            let done = &done;
            scope.spawn(move || {
                let mut client = cluster.client();
                client.batch_execute("SET pg_snowflake.max_wait = '60s'").unwrap();
                while !done.load(SeqCst) {
                    client.batch_execute("SELECT snowflake_segment_next('orders', 100)").unwrap();
                }
            });
        }
        let cluster = &servers[0];
        says(cluster, NUMBERS, "Servers collide on segment \"orders\".");
        wait_for("the log warns", || {
            let log = cluster.log();
            log.contains("WARNING:  servers collide on segment \"orders\"")
                && log.contains("its largest_range, 10, is too small")
        });
        let counted = "SELECT bool_and(CASE WHEN is_this_server THEN conflicts > 0 AND waits > 0
                                       ELSE conflicts IS NULL AND waits IS NULL END) AND count(*) > 1 FROM snowflake_segments()";
        wait_for("conflicts and waits are counted", || value(&mut cluster.client(), counted));
        let mut error = None;
        wait_for("a call fails", || {
            let mut client = cluster.client();
            client.batch_execute("SET pg_snowflake.max_wait = '20ms'").unwrap();
            error = client.query("SELECT snowflake_segment_next('orders', 10000)", &[]).err();
            error.as_ref().is_some_and(|error| error.as_db_error().unwrap().detail().unwrap().contains("too small"))
        });
        let error = error.unwrap();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.message(), "this server has no numbers of segment \"orders\"");
        assert!(error.detail().unwrap().contains("times another was faster"), "{error:?}");
        let enough = error.hint().unwrap().split_once("largest_range => ").unwrap().1.split_once(' ').unwrap().0;
        assert!(enough.parse::<u64>().unwrap() >= 100, "{error:?}");
    });
    servers.iter().for_each(is_well);
}

/// A server with a lease, and a tag whose ranges are too small.
fn with_tag_of(url: &str) -> Cluster {
    let cluster = leasing(url).set("pg_snowflake.max_wait = '300ms'").start();
    wait_for_ids(&cluster);
    let create = "SELECT snowflake_segment_create('orders', largest_range => 10)";
    wait_for("the tag is there", || match cluster.client().query(create, &[]) {
        Ok(_) => true,
        Err(error) => error.as_db_error().is_some_and(|error| error.code().code() == "42710"),
    });
    cluster
}
