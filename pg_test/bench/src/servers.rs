//! The servers of a run, which differ in the layout and the clock source only, and how to measure with them.

use crate::contenders;
use postgres::Client;
pub use snowflake_test::programs::cpu_micros;
use snowflake_test::{Cluster, run};
use statrs::statistics::{Data, Distribution, OrderStatistics};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// A layout whose sequence is never the limit: 2 million IDs a millisecond.
pub const WIDE: &str = "timestamp=41 worker=1 sequence=21";

/// All servers of a run.
pub struct Servers {
    /// With [`WIDE`].
    pub wide: Cluster,
    /// The same, but reads the clock for each ID.
    pub clock: Cluster,
    /// With the default layout.
    pub default: Cluster,
}

/// The configuration of every server.
const SETTINGS: [&str; 10] = [
    "fsync = on",
    "max_connections = 250",
    "shared_buffers = 1GB",
    "max_wal_size = 16GB",
    "checkpoint_timeout = 1h",
    "autovacuum = off",
    "jit = off",
    "pg_snowflake.worker_id = 1",
    // For thousands of partitions.
    "max_locks_per_transaction = 256",
    contenders::SETTINGS,
];

/// Further settings that the results show.
const SHOWN: [&str; 5] = [
    "synchronous_commit",
    "wal_sync_method",
    "max_parallel_workers_per_gather",
    "pg_snowflake.max_burst",
    "pg_snowflake.reserve_ahead",
];

/// Makes and starts a server with further settings.
pub fn server(settings: &[&str]) -> Cluster {
    let options = SETTINGS.iter().chain(settings).fold(Cluster::options(), |options, line| options.set(line));
    options.start()
}

impl Servers {
    /// Makes and starts them.
    pub fn start() -> Self {
        let wide = format!("pg_snowflake.layout = '{WIDE}'");
        Self {
            wide: server(&[&wide]),
            clock: server(&[&wide, "pg_snowflake.clock_source = system"]),
            default: server(&[]),
        }
    }
}

/// The machine, the versions and the settings.
pub fn conditions(servers: &Servers) -> Vec<(&'static str, String)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let memory = read("/proc/meminfo");
    let kilobytes: u64 = memory.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut client = servers.wide.client();
    let mut ask = |query: &str| client.query_one(query, &[]).unwrap().get::<_, String>(0);
    let processors = processors();
    let mut settings: String = SETTINGS[..7].join(", ");
    for name in SHOWN {
        let value = ask(&format!("SELECT current_setting('{name}')"));
        let _ = write!(settings, ", {name} = {value}");
    }
    vec![
        ("processor", format!("{}, {processors} cores", model.trim_start_matches([' ', '\t', ':']))),
        ("memory", format!("{} GiB", kilobytes.div_ceil(1 << 20))),
        ("kernel", format!("Linux {}", read("/proc/sys/kernel/osrelease").trim())),
        (
            "clock source of the kernel",
            read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim().to_owned(),
        ),
        ("PostgreSQL", ask("SELECT current_setting('server_version')")),
        ("pg_snowflake", ask("SELECT extversion FROM pg_extension WHERE extname = 'pg_snowflake'")),
        ("its clock source", ask("SELECT clock_source FROM snowflake_status()")),
        ("settings", settings),
        ("date", ask("SELECT current_date::text")),
    ]
}

/// How many cores there are for this program and the servers.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A table expression of so many rows, which are made as they are read. `generate_series` in FROM would store them
/// first, which takes longer than what is measured here.
pub fn rows(count: impl std::fmt::Display) -> String {
    format!("(SELECT generate_series(1, {count}) OFFSET 0) AS rows")
}

/// How long a statement takes.
pub fn time(client: &mut Client, statement: &str) -> Duration {
    let start = Instant::now();
    client.batch_execute(statement).unwrap();
    start.elapsed()
}

/// The processor time that a process has used so far, in seconds.
pub fn cpu(pid: u32) -> f64 {
    cpu_times(pid)[..2].iter().sum()
}

/// The processor time of a process's children that have ended, in seconds. For a postmaster, these are the past
/// sessions.
pub fn cpu_of_ended(pid: u32) -> f64 {
    cpu_times(pid)[2..].iter().sum()
}

/// utime, stime, cutime and cstime of proc(5), in seconds.
fn cpu_times(pid: u32) -> [f64; 4] {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The fields after the name, which is in parentheses and may hold anything.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split_whitespace().collect();
    std::array::from_fn(|at| fields[12 + at].parse::<f64>().unwrap() / 100.0)
}

/// The process behind a session.
pub fn process(client: &mut Client) -> u32 {
    client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get::<_, i32>(0).unsigned_abs()
}

/// The result of a load of pgbench, for one of its statements.
pub struct Load {
    /// How often it ran each second, over all clients.
    pub per_second: f64,
    /// Its mean latency, in milliseconds.
    pub mean: f64,
    /// The latency that 99 % keep below, in milliseconds.
    pub p99: f64,
}

/// Has pgbench run a statement over and over, by so many clients.
pub fn pgbench(cluster: &Cluster, statement: &str, clients: usize, seconds: u32, options: &str) -> Load {
    pgbench_mixed(cluster, &[statement.to_owned()], clients, seconds, options).remove(0)
}

/// The same with several statements, of which each client runs one at random, again and again.
pub fn pgbench_mixed(
    cluster: &Cluster,
    statements: &[String],
    clients: usize,
    seconds: u32,
    options: &str,
) -> Vec<Load> {
    pgbench_by(cluster, Protocol::Prepared, statements, clients, seconds, options)
}

/// How pgbench sends statements.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// As text, which is parsed and planned each time.
    Simple,
    /// As prepared statements.
    Prepared,
}

/// The same by one of the protocols.
pub fn pgbench_by(
    cluster: &Cluster,
    protocol: Protocol,
    statements: &[String],
    clients: usize,
    seconds: u32,
    options: &str,
) -> Vec<Load> {
    let directory = cluster.socket();
    let mut pgbench = cluster.program("pgbench");
    pgbench.env("PGOPTIONS", options);
    let protocol = match protocol {
        Protocol::Simple => "--protocol=simple",
        Protocol::Prepared => "--protocol=prepared",
    };
    pgbench.args(["--no-vacuum", protocol, "--log"]).arg(format!("--jobs={}", processors()));
    pgbench.arg("--log-prefix").arg(directory.join("latency"));
    pgbench.arg(format!("--client={clients}"));
    for (number, statement) in statements.iter().enumerate() {
        let script = directory.join(format!("script{number}"));
        std::fs::write(&script, statement).unwrap();
        pgbench.arg("--file").arg(script);
    }
    // If the machine stalls for all of the time, pgbench finishes no statement and prints no rate: then again, for longer.
    let mut said = String::new();
    let rate = [1, 4, 16].into_iter().find_map(|times| {
        remove_logs(directory);
        said = run(pgbench.arg(format!("--time={}", seconds * times)));
        said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok())
    });
    let rate = rate.unwrap_or_else(|| panic!("pgbench prints no rate:\n{said}"));

    // A line of the log: client, transaction, microseconds, number of the script, and when it was.
    let mut latencies: Vec<Vec<f64>> = vec![Vec::new(); statements.len()];
    for file in logs(directory) {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let field = |at| line.split(' ').nth(at).and_then(|field| field.parse::<u32>().ok());
            // The last line may be cut where pgbench was stopped by its time.
            if let (Some(micros), Some(script)) = (field(2), field(3)) {
                latencies[script as usize].push(f64::from(micros) / 1000.0);
            }
        }
    }
    remove_logs(directory);
    let all: usize = latencies.iter().map(Vec::len).sum();
    let load = |latencies: Vec<f64>| {
        let mut latencies = Data::new(latencies);
        Load {
            per_second: rate * latencies.len() as f64 / all as f64,
            mean: latencies.mean().unwrap_or(f64::NAN),
            p99: latencies.percentile(99),
        }
    };
    latencies.into_iter().map(load).collect()
}

fn logs(directory: &Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("latency.")).collect()
}

fn remove_logs(directory: &Path) {
    logs(directory).iter().for_each(|file| std::fs::remove_file(file).unwrap());
}
