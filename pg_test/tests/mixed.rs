//! Servers with a released library and with this one, that lease their worker IDs from one registry while they are upgraded one by one, and
//! go back: no two of them make the same ID, and none of them waits for an operator. `RELEASED` is the directory of a released version's
//! library and scripts, as `make` leaves them in target/install.

use fastrand::Rng;
use snowflake_test::check::distinct;
use snowflake_test::installations::InstallationCopy;
use snowflake_test::registries::{Kind, Setup};
use snowflake_test::{Cluster, Installation, Stop, ids, millis, seconds, value, with_each_registry};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

const SERVERS: usize = 3;
const STEPS: usize = 15;

with_each_registry!(servers_are_upgraded_and_go_back_one_by_one);

fn released() -> PathBuf {
    std::env::var("RELEASED").expect("RELEASED names the directory of a released version").into()
}

/// Nobody is locked out.
fn makes_ids(server: &Cluster) {
    let begin = Instant::now();
    while let Err(error) = server.client().query("SELECT snowflake_next()", &[]) {
        assert!(begin.elapsed() < seconds(60), "{error:?}\n{}", server.log());
    }
}

/// Takes IDs, so many at once, until it is told to stop; what is refused is tried again.
fn take(socket: &Path, count: u32, done: &AtomicBool) -> Vec<i64> {
    let mut list = Vec::new();
    let query = format!("SELECT snowflake_next({count})");
    let mut config = postgres::Config::new();
    config.host_path(socket).user("postgres").dbname("postgres");
    while !done.load(Relaxed) {
        if let Ok(mut client) = config.connect(postgres::NoTls) {
            while let (false, Ok(rows)) = (done.load(Relaxed), client.query(&query, &[])) {
                list.extend(ids(&rows));
                thread::sleep(millis(1));
            }
        }
        thread::sleep(millis(20));
    }
    list
}

fn servers_are_upgraded_and_go_back_one_by_one(kind: Kind) {
    let this = Installation::under_test();
    let old = InstallationCopy::with(&this, &released());
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_125);
    let mut random = Rng::with_seed(seed);
    let registry = Setup::of(kind).start();
    // Leases are short, so that each server has several, and of two servers that are stopped, another takes a worker.
    let options = |installation: Installation| {
        Cluster::options()
            .on(installation)
            .own_identifier()
            .set("pg_snowflake.layout = 'timestamp=41 worker=2 sequence=12'\npg_snowflake.worker_id = -1")
            .set(&format!("pg_snowflake.registry = '{}'", registry.url()))
            .set("pg_snowflake.registry_window = '5s'\npg_snowflake.max_lead = '6s'\npg_snowflake.max_wait = '20s'")
            .create()
    };
    // The first is the one that makes the namespace's record: an old one with one registry, a new one with the others.
    let is_old_first = random.bool();
    let mut servers: Vec<Cluster> = (0..SERVERS)
        .map(|number| options(if (number == 0) == is_old_first { old.installation() } else { this.clone() }))
        .collect();
    for server in &servers {
        server.start();
        // The oldest objects that both libraries serve.
        let create = "CREATE EXTENSION IF NOT EXISTS pg_snowflake VERSION '0.2.0'";
        server.client().batch_execute("DROP EXTENSION IF EXISTS pg_snowflake").unwrap();
        server.client().batch_execute(create).unwrap();
        makes_ids(server);
    }
    let sockets: Vec<PathBuf> = servers.iter().map(|server| server.socket().to_owned()).collect();
    let done = AtomicBool::new(false);
    let all = Mutex::new(Vec::new());
    // A setting that is new.
    let is_old = |server: &Cluster| {
        !value::<bool>(
            &mut server.client(),
            "SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'pg_snowflake.waive')",
        )
    };
    thread::scope(|scope| {
        let _end = snowflake_test::load::End(&done);
        for socket in &sockets {
            for count in [50, 1] {
                let (all, done) = (&all, &done);
                scope.spawn(move || {
                    let list = take(socket, count, done);
                    all.lock().unwrap().push(list);
                });
            }
        }
        for step in 0..STEPS {
            thread::sleep(millis(random.u64(200..2500)));
            // All are upgraded first, one by one; then any of them goes either way.
            let number = if step < SERVERS { step } else { random.usize(..SERVERS) };
            let goes_back = step >= SERVERS && random.bool();
            let server = &mut servers[number];
            server.stop(*random.choice(&[Stop::Fast, Stop::Immediate, Stop::Kill]).unwrap());
            // Sometimes for longer than its lease.
            thread::sleep(millis(if random.u8(..3) == 0 { 7000 } else { 0 }));
            server.move_to(if goes_back { old.installation() } else { this.clone() });
            server.start();
            assert_eq!(is_old(server), goes_back);
            let begin = Instant::now();
            makes_ids(server);
            let library = if goes_back { "old" } else { "new" };
            println!("step {step}: server {number} with the {library} library makes IDs after {:?}", begin.elapsed());
        }
        done.store(true, Relaxed);
    });
    let lists = all.into_inner().unwrap();
    assert!(lists.iter().all(|list| list.len() > 50));
    println!("{} IDs", lists.iter().map(Vec::len).sum::<usize>());
    distinct(&lists);
}
