//! A server with mallory and the caller, their sessions, and the objects that are attacked. These
//! are made anew for each attack, and read back from the catalogue.

use super::calls::{Call, Edition};
use postgres::{Client, Statement};
use snowflake_test::check::wait_for;
use snowflake_test::{Cluster, hosted, value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const TOOLS: &str = include_str!("tools.sql");
const SCENES: &str = include_str!("scenes.sql");

/// The database of all this.
const DATABASE: &str = "prey";

/// Columns with code.
const MORE: &str = ", word tools.number DEFAULT 1, \
    made bigint GENERATED ALWAYS AS (tools.num('generated column', n)) STORED";

/// Whose the objects are. Their schema is mallory's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Mallory's, with code of all kinds.
    Own,
    /// The same, and she has taken her rights on the sequences from herself.
    Bare,
    /// The caller's, who trusts her with the rows.
    Others,
}

/// A relation of the scene.
pub struct Relation {
    pub oid: u32,
    pub name: String,
    /// As in `pg_class.relkind`.
    pub kind: char,
    /// Of which table it is a partition.
    pub parent: Option<String>,
    /// Its bounds.
    pub bounds: Option<String>,
    /// How it is partitioned itself.
    pub key: Option<String>,
    /// Whether it cannot be dropped alone, as the sequence of an identity.
    pub is_inner: bool,
}

/// What is attacked once.
pub struct Scene {
    pub schema: String,
    pub ground: Ground,
    pub relations: Vec<Relation>,
}

impl Scene {
    /// The OID of a relation.
    pub fn oid(&self, name: &str) -> u32 {
        self.named(name).unwrap_or_else(|| panic!("there is no {name}")).oid
    }

    /// The relation with a name.
    pub fn named(&self, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }
}

/// What the catalogue says of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub name: String,
    pub kind: char,
    pub schema: u32,
    pub owner: u32,
    /// What it is a partition, an index or a sequence of.
    pub of: Vec<u32>,
    /// All that matters, in one.
    pub text: String,
}

/// All relations of the schemas of a scene. No function here locks one of them.
const STATE: &str = "
    SELECT c.oid, relname::text, relkind::text, relnamespace, relowner,
        ARRAY(SELECT inhparent FROM pg_inherits WHERE inhrelid = c.oid UNION SELECT indrelid FROM pg_index WHERE indexrelid = c.oid
            UNION SELECT refobjid FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid
                AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i') ORDER BY 1),
        concat_ws(' ', relname, relnamespace, relowner, relkind, relacl, relrowsecurity, relispartition, reltablespace,
            md5(relpartbound::text),
            (SELECT string_agg(inhparent::text, ' ' ORDER BY inhparent) FROM pg_inherits WHERE inhrelid = c.oid),
            (SELECT string_agg(concat_ws(' ', attname, atttypid, attnotnull, attidentity, md5(adbin::text)), ', ' ORDER BY attnum)
                FROM pg_attribute LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
                WHERE attrelid = c.oid AND attnum > 0))
    FROM pg_class AS c WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname ~ $1)";

const RELATIONS: &str = "
    SELECT c.oid, relname::text, relkind::text,
        (SELECT p.relname::text FROM pg_inherits JOIN pg_class AS p ON p.oid = inhparent WHERE inhrelid = c.oid AND c.relkind IN ('r', 'p')),
        pg_get_expr(relpartbound, c.oid), CASE relkind WHEN 'p' THEN 'PARTITION BY ' || pg_get_partkeydef(c.oid) END,
        EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'i')
    FROM pg_class AS c WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) ORDER BY c.oid";

/// What a session waits for, that one of some others has; and as what else it waits.
const WAITS: &str = "
    SELECT (SELECT string_agg(CASE locktype WHEN 'relation' THEN format('%s on %s', mode, relation::regclass)
            WHEN 'object' THEN format('%s on %s', mode, pg_describe_object(classid, objid, 0))
            ELSE format('%s on a %s', mode, locktype) END, ', ')
        FROM pg_locks WHERE pid = $1 AND NOT granted AND pg_blocking_pids($1) && $2),
        (SELECT wait_event_type IN ('Extension', 'Timeout') FROM pg_stat_activity WHERE pid = $1)";

/// How long a call sleeps, without a lock that it waits for, until it counts as waiting.
const SLEEP: Duration = Duration::from_millis(150);

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session, and its process ID.
pub struct Session {
    pub client: Client,
    pub pid: i32,
}

impl Session {
    pub fn new(cluster: &Cluster, user: &str) -> Self {
        let mut client = cluster.client_of(user, DATABASE);
        client
            .batch_execute(
                "SET client_min_messages = error; SET search_path = pg_catalog, public, pg_temp; SET lock_timeout = '80ms'",
            )
            .unwrap();
        let pid = value(&mut client, "SELECT pg_backend_pid()");
        Self { client, pid }
    }

    /// The relations of a scene as this session sees them.
    pub fn state(&mut self, scene: &Scene) -> Result<BTreeMap<u32, State>, postgres::Error> {
        let rows = self.client.query(STATE, &[&format!("^{}(_|$)", scene.schema)])?;
        let state = |row: &postgres::Row| State {
            name: row.get(1),
            kind: row.get::<_, String>(2).chars().next().unwrap(),
            schema: row.get(3),
            owner: row.get(4),
            of: row.get(5),
            text: row.get(6),
        };
        Ok(rows.iter().map(|row| (row.get(0), state(row))).collect())
    }
}

/// A server, and all sessions.
pub struct World {
    pub cluster: Cluster,
    /// Who calls.
    pub victim: Option<Session>,
    /// Mallory, who keeps the call waiting, and her helpers.
    pub mallory: Session,
    pub second: Option<Session>,
    pub third: Session,
    /// A superuser who gives a table away.
    pub steward: Session,
    /// Who looks on.
    observer: Session,
    waits: Statement,
    /// The first ID of the day so many days ago.
    days: BTreeMap<u32, i64>,
    scenes: u32,
    /// What is on record of a column that has moved, as SQL writes it.
    record: Option<String>,
    /// Until where the log has been read.
    read: u64,
}

impl World {
    /// Starts a server.
    pub fn new(edition: Edition, moves_clock: bool) -> Self {
        let mut options = match edition {
            Edition::Library => Cluster::options(),
            Edition::Sql => Cluster::options().not_preloaded(),
        };
        if moves_clock {
            options = options.with_clock().set("pg_snowflake.max_jump = '1000d'").set("pg_snowflake.max_wait = 0");
        }
        let options =
            options.set("autovacuum = off").set("deadlock_timeout = '30ms'").set("max_locks_per_transaction = 256");
        let cluster = options.create();
        cluster.start();
        let roles = "CREATE ROLE mallory LOGIN; CREATE ROLE crew; CREATE ROLE clerk; GRANT crew TO mallory";
        for statement in [roles, "CREATE DATABASE prey"] {
            cluster.client().batch_execute(statement).unwrap();
        }
        let mut observer = Session::new(&cluster, "postgres");
        observer
            .client
            .batch_execute(
                "GRANT CREATE, TEMPORARY ON DATABASE prey TO mallory; GRANT USAGE ON SCHEMA public TO PUBLIC",
            )
            .unwrap();
        match edition {
            Edition::Library => observer.client.batch_execute("CREATE EXTENSION pg_snowflake SCHEMA public").unwrap(),
            Edition::Sql => hosted_in(&cluster),
        }
        let mut mallory = Session::new(&cluster, "mallory");
        mallory.client.batch_execute(TOOLS).unwrap();
        abroad(&cluster, &mut observer.client);
        let days = [0, 20, 59, 60, 90, 100].map(|days| {
            let first =
                format!("SELECT public.snowflake_min_id(date_trunc('day', now(), 'UTC') - {days} * interval '1 day')");
            (days, value::<i64>(&mut observer.client, &first))
        });
        let mut steward = Session::new(&cluster, "postgres");
        steward.client.batch_execute("SET attacker.staff = 'on'").unwrap();
        let waits = observer.client.prepare(WAITS).unwrap();
        Self {
            waits,
            victim: Some(victim(&cluster)),
            mallory,
            second: Some(Session::new(&cluster, "mallory")),
            third: Session::new(&cluster, "mallory"),
            steward,
            observer,
            days: days.into(),
            scenes: 0,
            record: None,
            read: cluster.log_length(),
            cluster,
        }
    }

    /// The keys of the rows that a relation has.
    pub fn keys(&self, relation: &str) -> Vec<i64> {
        match relation {
            "e" => vec![self.days[&100], self.days[&60] + 1, self.days[&20]],
            "e_first" => vec![self.days[&100]],
            "e_old" => vec![self.days[&60] + 1],
            "e_rest" | "e_rest_all" => vec![self.days[&20]],
            _ => vec![1, 2, 3],
        }
    }

    /// Makes a scene.
    pub fn scene(&mut self, call: &Call, ground: Ground) -> Scene {
        self.scenes += 1;
        let schema = format!("s{}", self.scenes);
        let head = format!("-- stage: {}\n", call.stage);
        let (_, stage) = SCENES.split_once(&head).unwrap_or_else(|| panic!("{head}"));
        let mut script = stage.split("-- stage: ").next().unwrap().replace("{s}", &schema);
        for (days, first) in &self.days {
            script = script.replace(&format!("{{{days}}}"), &first.to_string());
        }
        let is_hers = ground != Ground::Others;
        script = script.replace("{more}", if is_hers { MORE } else { "" });
        // To move one takes longer than most attacks.
        let moved = match &self.record {
            None => format!("SELECT count(*) FROM snowflake_adopt('{schema}.t')"),
            Some(record) => format!(
                "ALTER TABLE {schema}.t ALTER id SET DEFAULT snowflake_next(); COMMENT ON SEQUENCE {schema}.t_id_seq IS {record}"
            ),
        };
        script = script.replace("{moved}", &moved);
        let own = format!(
            "CREATE SCHEMA {schema}; GRANT USAGE ON SCHEMA {schema} TO PUBLIC; GRANT CREATE ON SCHEMA {schema} TO crew;"
        );
        if is_hers {
            self.mallory.client.batch_execute(&format!("{own} {script}")).unwrap();
        } else {
            self.mallory.client.batch_execute(&own).unwrap();
            let trust = if self.major() >= 17 { ", MAINTAIN" } else { "" };
            let grants = format!(
                "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE{trust} ON ALL TABLES IN SCHEMA {schema} TO mallory WITH GRANT OPTION;
                 GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO mallory WITH GRANT OPTION"
            );
            self.observer.client.batch_execute(&format!("{script} {grants}")).unwrap();
        }
        if call.stage == "moved" && self.record.is_none() {
            let record = format!("SELECT quote_nullable(obj_description('{schema}.t_id_seq'::regclass, 'pg_class'))");
            self.record = Some(value(&mut self.observer.client, &record));
        }
        let relations = self.observer.client.query(RELATIONS, &[&schema]).unwrap();
        let relation = |row: &postgres::Row| Relation {
            oid: row.get(0),
            name: row.get(1),
            kind: row.get::<_, String>(2).chars().next().unwrap(),
            parent: row.get(3),
            bounds: row.get(4),
            key: row.get(5),
            is_inner: row.get(6),
        };
        let scene = Scene { schema, ground, relations: relations.iter().map(relation).collect() };
        if is_hers {
            let tables = scene.relations.iter().filter(|relation| ['r', 'p'].contains(&relation.kind));
            let mut more: String =
                tables.map(|table| format!("CALL tools.arm('{}.{}');", scene.schema, table.name)).collect();
            if ground == Ground::Bare {
                more.push_str(&format!("REVOKE ALL ON ALL SEQUENCES IN SCHEMA {} FROM mallory", scene.schema));
            }
            self.mallory.client.batch_execute(&more).unwrap();
        }
        scene
    }

    /// Removes a scene, for calls that look at all tables there are.
    pub fn remove(&mut self, scene: &Scene) {
        let remove = format!(
            "SET LOCAL lock_timeout = 0; DO $$ DECLARE s name; BEGIN
                 FOR s IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^{}(_|$)' LOOP
                     EXECUTE format('DROP SCHEMA %I CASCADE', s);
                 END LOOP;
             END $$",
            scene.schema
        );
        self.observer.client.batch_execute(&remove).unwrap();
    }

    /// What else a call needs.
    pub fn prepare(&mut self, call: &Call) {
        if call.moves_clock {
            // There is something to take back.
            self.cluster.step_clock("+3600s");
            self.observer.client.batch_execute("SELECT public.snowflake_next()").unwrap();
            self.cluster.step_clock("+0s");
        }
    }

    /// The statement of a call.
    pub fn statement(&self, call: &Call, scene: &Scene) -> String {
        let mut text = call.text.replace("{now}", &self.days[&0].to_string());
        for relation in &scene.relations {
            text = text.replace(&format!("{{{}}}", relation.name), &relation.oid.to_string());
        }
        text
    }

    /// Waits until a call has ended, or waits for one of these sessions. Returns what it waits for.
    pub fn until_it_waits(&mut self, pid: i32, holders: &[i32], has_ended: impl Fn() -> bool) -> Option<String> {
        let start = Instant::now();
        let mut sleeps_since: Option<Instant> = None;
        let mut seen = 0;
        loop {
            if has_ended() {
                return None;
            }
            let row = self.observer.client.query_one(&self.waits, &[&pid, &holders]).unwrap();
            if let Some(what) = row.get::<_, Option<String>>(0) {
                return Some(what);
            }
            // It looks again and again, so it does not always sleep.
            if row.get::<_, Option<bool>>(1) == Some(true) {
                let since = *sleeps_since.get_or_insert_with(Instant::now);
                seen += 1;
                if seen > 3 && since.elapsed() > SLEEP {
                    return Some("a sleep".to_owned());
                }
            }
            assert!(start.elapsed() < PATIENCE, "the call neither ends nor waits");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// On which relations of a scene a session has locks.
    pub fn locked(&mut self, pid: i32, scene: &Scene) -> Vec<String> {
        let held = "SELECT DISTINCT relation FROM pg_locks WHERE pid = $1 AND granted AND locktype = 'relation'";
        let held: Vec<u32> = self.observer.client.query(held, &[&pid]).unwrap().iter().map(|row| row.get(0)).collect();
        let is_held = |relation: &&Relation| held.contains(&relation.oid);
        scene.relations.iter().filter(is_held).map(|relation| relation.name.clone()).collect()
    }

    /// Has a call end, of which enough is known.
    pub fn cancel(&mut self, pid: i32) {
        self.observer.client.query_one("SELECT pg_cancel_backend($1)", &[&pid]).unwrap();
    }

    /// Waits until one session waits for another.
    pub fn until_queued(&mut self, pid: i32, has_ended: impl Fn() -> bool) {
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)";
        wait_for("a session queues", || has_ended() || self.observer.client.query_one(waits, &[&pid]).unwrap().get(0));
    }

    /// What ran as whom, since the last look.
    pub fn ran(&mut self) -> BTreeSet<String> {
        let log = self.cluster.log_since(self.read);
        self.read += log.len() as u64;
        let notes = log.lines().filter_map(|line| line.split_once("LOG:  attacker: "));
        notes.map(|(_, what)| what.to_owned()).collect()
    }

    /// The relations of a scene, and what they are.
    pub fn state(&mut self, scene: &Scene) -> BTreeMap<u32, State> {
        self.observer.state(scene).unwrap()
    }

    /// A new session of the caller, where the old one is gone.
    pub fn new_victim(&self) -> Session {
        victim(&self.cluster)
    }

    pub fn major(&self) -> u32 {
        snowflake_test::Installation::under_test().major()
    }
}

fn victim(cluster: &Cluster) -> Session {
    let mut session = Session::new(cluster, "postgres");
    session
        .client
        .batch_execute("SET attacker.gates = 'on'; SET lock_timeout = 0; SET statement_timeout = '30s'")
        .unwrap();
    session
}

/// The extension in SQL, of a superuser.
fn hosted_in(cluster: &Cluster) {
    let file = cluster.new_file("hosted.sql");
    std::fs::write(&file, hosted::script()).unwrap();
    let mut psql = snowflake_test::dump::psql(cluster, "postgres", DATABASE);
    snowflake_test::run(psql.args(["--set=ON_ERROR_STOP=1", "--single-transaction", "--file"]).arg(&file));
    cluster.client_of("postgres", DATABASE).batch_execute("SELECT snowflake_configure(1)").unwrap();
}

/// A foreign server: this one, where PostgreSQL has `postgres_fdw`; else nobody answers.
fn abroad(cluster: &Cluster, client: &mut Client) {
    let has_wrapper: bool =
        value(client, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')");
    let server = if has_wrapper {
        format!(
            "CREATE EXTENSION postgres_fdw; CREATE SERVER abroad FOREIGN DATA WRAPPER postgres_fdw
                 OPTIONS (host '{}', port '{}', dbname '{DATABASE}');
             CREATE USER MAPPING FOR PUBLIC SERVER abroad OPTIONS (user 'mallory', password_required 'false')",
            cluster.socket().display(),
            cluster.port()
        )
    } else {
        "CREATE FOREIGN DATA WRAPPER nobody; CREATE SERVER abroad FOREIGN DATA WRAPPER nobody".to_owned()
    };
    client.batch_execute(&format!("{server}; GRANT USAGE ON FOREIGN SERVER abroad TO mallory")).unwrap();
}
