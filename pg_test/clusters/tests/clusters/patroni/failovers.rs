//! Failovers of every kind, with clients that write all the time. `FAILOVERS=20` for so many; else each kind once.

use postgres::error::SqlState;
use snowflake_clusters::load::{Load, connect};
use snowflake_clusters::numbers::{self, Numbers};
use snowflake_clusters::patroni::{Cluster, Numbering, Options};
use snowflake_clusters::probes::Probes;
use snowflake_clusters::record::{Call, Record, Run, TABLES};
use snowflake_test::ids;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What happens to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// `patronictl switchover`.
    Switchover,
    /// SIGKILL for the primary and its Patroni.
    Kill,
    /// SIGSTOP for both, until another server is the primary, and then SIGCONT.
    Freeze,
    /// SIGSTOP for Patroni alone: the old primary goes on beside the new one.
    SplitBrain,
    /// SIGKILL for the server alone: Patroni starts it again.
    Crash,
    /// SIGKILL for etcd, until the primary is none any more.
    Outage,
}

impl Fault {
    const ALL: [Self; 6] = [Self::Switchover, Self::SplitBrain, Self::Crash, Self::Freeze, Self::Outage, Self::Kill];

    /// Whether another server is the primary afterwards.
    fn fails_over(self) -> bool {
        !matches!(self, Self::Crash | Self::Outage)
    }
}

/// A cluster, its load, and the record of all IDs.
struct Scene {
    cluster: Cluster,
    record: Arc<Record>,
    load: Load,
    probes: Probes,
}

impl Scene {
    fn start(options: Options) -> Self {
        let cluster = options.start();
        cluster.client().batch_execute(TABLES).unwrap();
        let record = Arc::new(Record::default());
        let probes = Probes::start(&record, &cluster.ports());
        let load = Load::start(&record, &cluster.ports(), 4);
        let scene = Self { cluster, record, load, probes };
        let primary = scene.cluster.wait_for_primary(|_| true);
        scene.makes_ids(primary, scene.record.now());
        scene
    }

    /// Waits until this server has made a good many IDs since an instant, by any clients.
    fn makes_ids(&self, place: usize, since: Duration) {
        let port = self.cluster.members[place].port;
        self.cluster.wait(&format!("node {place} makes IDs"), || self.record.given_since(port, since) > 300);
    }

    /// Notes what a server has stored; its rows may be lost later.
    fn note_stored(&self, place: usize) {
        self.record.note_stored(&mut connect(self.cluster.members[place].port).unwrap());
    }

    /// Lets it happen, waits until all is well again, and says how long there were no writes, and no IDs.
    fn happens(&mut self, fault: Fault) {
        let old = self.cluster.wait_for_primary(|_| true);
        self.note_stored(old);
        let since = self.record.now();
        let another = |place: usize| place != old;
        match fault {
            Fault::Switchover => {
                let names = (self.cluster.members[old].name.clone(), &self.cluster.members[(old + 1) % 3].name);
                self.cluster.patronictl(&[
                    "switchover",
                    "--force",
                    "--leader",
                    &names.0,
                    "--candidate",
                    names.1,
                    "shop",
                ]);
                self.cluster.wait_for_primary(another);
            }
            Fault::Kill => {
                self.cluster.members[old].kill();
                let new = self.cluster.wait_for_primary(another);
                self.makes_ids(new, since);
                self.cluster.members[old].start();
            }
            Fault::Freeze => {
                self.cluster.members[old].freeze();
                let new = self.cluster.wait_for_primary(another);
                self.makes_ids(new, since);
                self.cluster.members[old].thaw();
            }
            Fault::SplitBrain => {
                self.cluster.members[old].freeze_patroni();
                let new = self.cluster.wait_for_primary(another);
                let both = self.record.now();
                self.makes_ids(new, both);
                self.makes_ids(old, self.record.now());
                // These rows are lost when the old primary is rewound.
                self.note_stored(old);
                self.cluster.members[old].thaw();
            }
            Fault::Crash => self.cluster.members[old].kill_server(),
            Fault::Outage => {
                self.cluster.etcd.kill();
                self.cluster.wait("the primary steps down", || self.cluster.primary().is_none());
                self.cluster.etcd.start();
            }
        }
        self.cluster.wait_until_healthy();
        let new = self.cluster.wait_for_primary(|place| !fault.fails_over() || place != old);
        self.makes_ids(new, self.record.now());
        let outage = self.probes.outage_since(since);
        println!(
            "{fault:?}: {:.2} s without writes, {:.2} s without IDs; all is well again after {:.0} s",
            outage.without_writes.as_secs_f64(),
            outage.without_ids.as_secs_f64(),
            (self.record.now() - since).as_secs_f64()
        );
    }

    /// Ends the load, and notes what all servers have stored.
    fn finish(self) -> (Cluster, Arc<Record>) {
        let Self { cluster, record, load, probes } = self;
        load.finish();
        probes.finish();
        for member in &cluster.members {
            record.note_stored(&mut connect(member.port).unwrap());
        }
        println!("errors: {:?}", record.errors());
        (cluster, record)
    }
}

fn fail_over_and_over(numbering: Numbering) {
    let wanted: usize = std::env::var("FAILOVERS").map_or(0, |text| text.parse().expect("FAILOVERS is a number"));
    let mut scene = Scene::start(Options::new(numbering));
    // With a registry, clients take numbers of a segment, too.
    let numbers = (numbering == Numbering::Leases).then(|| {
        scene.cluster.client().batch_execute(numbers::CREATE).unwrap();
        Numbers::start(&scene.cluster.ports(), 3)
    });
    let (mut failovers, mut faults) = (0, Fault::ALL.iter().cycle());
    let mut happened = 0;
    while failovers < wanted || happened < Fault::ALL.len() {
        let &fault = faults.next().unwrap();
        scene.happens(fault);
        if let Some(numbers) = &numbers {
            let before = numbers.count();
            scene.cluster.wait("numbers are taken", || numbers.count() > before + 100);
        }
        happened += 1;
        failovers += usize::from(fault.fails_over());
    }
    if let Some(numbers) = numbers {
        println!("{} numbers of a segment, none came again", numbers.finish());
    }
    let (_cluster, record) = scene.finish();
    let count = record.check();
    println!("{numbering:?}: {failovers} failovers, {count} IDs, none came again");
    assert!(count > 1_000, "{count}");
}

#[test]
fn with_a_worker_id_of_each_member() {
    fail_over_and_over(Numbering::PerMember);
}

#[test]
fn with_leases() {
    fail_over_and_over(Numbering::Leases);
}

/// What must not be done: one worker ID in the dynamic configuration. As long as there is one primary, that does; where
/// there are two, IDs come again. This is also the proof that the others could fail.
#[test]
fn one_worker_id_for_all_repeats_ids_in_a_split_brain() {
    let cluster = Options::new(Numbering::Shared).start();
    let old = cluster.wait_for_primary(|_| true);
    cluster.members[old].freeze_patroni();
    let record = Record::default();
    cluster.wait("an ID comes again", || {
        // On a busy machine, Patroni may move it once more.
        let new = cluster.wait_for_primary(|place| place != old);
        let both = [old, new].map(|place| cluster.members[place].port);
        // Both use whole ticks at the same time.
        thread::scope(|scope| {
            for port in both {
                let record = &record;
                scope.spawn(move || give(port, 20_000, record));
            }
        });
        !record.repeated().0.is_empty()
    });
    let (repeated, count) = record.repeated();
    println!("{} of {count} IDs came again", repeated.len());
}

/// Makes so many IDs by one call, or none where the member is no primary any more.
fn give(port: u16, count: i32, record: &Record) {
    let mut client = connect(port).unwrap();
    let (run, begin) = (Run::of(&mut client).unwrap(), record.now());
    let tag = record.tags(usize::try_from(count).unwrap());
    let ids = match client.query("SELECT snowflake_next($1)", &[&count]) {
        Ok(rows) => ids(&rows),
        Err(error) if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => return,
        Err(error) => panic!("{error:?}"),
    };
    record.note(Call { run, begin, end: record.now(), tag, ids });
}

/// With `failsafe_mode`, the primary goes on without etcd, and so do its IDs until the lease ends, which is what the window
/// says. Then writes without an ID go on, those with one fail, and all go on when etcd is back.
#[test]
fn in_failsafe_mode_ids_last_as_long_as_the_lease() {
    let window = "pg_snowflake.registry_window: 15s";
    let options = Options::new(Numbering::Leases).failsafe().parameter(window).parameter("pg_snowflake.max_wait: 1s");
    let mut cluster = options.start();
    cluster.client().batch_execute(TABLES).unwrap();
    let primary = cluster.wait_for_primary(|_| true);
    let record = Arc::new(Record::default());
    let probes = Probes::start(&record, &cluster.ports());
    cluster.wait("IDs are made", || record.given_since(cluster.members[primary].port, Duration::ZERO) > 50);
    let since = record.now();
    cluster.etcd.kill();
    let refused = || record.errors().keys().any(|message| message.starts_with("55000"));
    cluster.wait("the lease ends", refused);
    let lasted = record.now() - since;
    assert!(lasted > Duration::from_secs(8), "{lasted:?}");
    let ended = record.now();
    cluster.wait("writes go on", || record.now() - ended > Duration::from_secs(5));
    assert!(cluster.members[primary].is_primary());
    cluster.etcd.start();
    let again = record.now();
    cluster.wait("IDs are made", || record.given_since(cluster.members[primary].port, again) > 50);
    cluster.wait_until_healthy();
    let outage = probes.outage_since(since);
    println!(
        "failsafe mode: IDs for {:.1} s without etcd, then {:.1} s without IDs; {:.1} s without writes",
        lasted.as_secs_f64(),
        outage.without_ids.as_secs_f64(),
        outage.without_writes.as_secs_f64()
    );
    assert!(outage.without_writes < Duration::from_secs(5), "{outage:?}");
    probes.finish();
    record.check();
}
