//! Random schemas: their tables get IDs, are written, and are released, and the schema is what it was.
//!
//! * `SCHEMA_COUNT=5`: how many
//! * `SEED=1`: which is the first

use super::round::{Calls, Round, there_and_back};
use fastrand::Rng;
use snowflake_test::{Cluster, variable};

#[test]
fn random_schemas_move_in_and_out() {
    let (count, first) = (variable("SCHEMA_COUNT").unwrap_or(5), variable("SEED").unwrap_or(1));
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE ROLE reader; CREATE ROLE third").unwrap();
    let mut all = Round::default();
    for seed in first..first + count {
        let database = format!("seed_{seed}");
        cluster.client().batch_execute(&format!("CREATE DATABASE {database}")).unwrap();
        let mut client = cluster.client_of("postgres", &database);
        client.batch_execute("CREATE EXTENSION pg_snowflake; GRANT CREATE ON SCHEMA public TO third").unwrap();
        for statement in Draft::new(seed).statements {
            client.batch_execute(&statement).unwrap_or_else(|error| panic!("SEED={seed}: {statement}: {error:?}"));
        }
        drop(client);
        let calls = if seed % 2 == 0 { Calls::Each } else { Calls::Together };
        let round = there_and_back(&cluster, &database, calls);
        all.moved.extend(round.moved);
        all.hindered.extend(round.hindered);
        all.unfit.extend(round.unfit);
        all.written += round.written;
        cluster.client().batch_execute(&format!("DROP DATABASE {database}")).unwrap();
    }
    let [moved, hindered, unfit] = [&all.moved, &all.hindered, &all.unfit].map(Vec::len);
    println!(
        "{moved} tables moved, {hindered} have something in the way, {unfit} no column for IDs, {} rows",
        all.written
    );
    // Most of them, or the test says little.
    let has_both = hindered > 0 || count < 5;
    assert!(moved > 2 * hindered && moved > 2 * unfit && has_both && all.written > 2 * moved, "{all:#?}");
}

/// A schema that is being made up.
struct Draft {
    random: Rng,
    statements: Vec<String>,
    tables: Vec<Table>,
}

#[derive(Clone)]
struct Table {
    /// As a statement writes it.
    name: String,
    /// Its key, and the key's type.
    key: &'static str,
    kind: &'static str,
    /// Whether others can refer to the key.
    is_unique: bool,
    is_unlogged: bool,
}

const NAMES: [&str; 4] = [
    "orders",
    "\"Its \"\"Name\"\"\"",
    "\"it's\"",
    "a_name_that_is_so_long_that_others_which_are_made_of_it_are_cut_off",
];
const KEYS: [&str; 3] = ["id", "\"Key\"", "\"k'1\""];

impl Draft {
    fn new(seed: u64) -> Self {
        let mut draft = Self { random: Rng::with_seed(seed), statements: Vec::new(), tables: Vec::new() };
        draft.add(
            "CREATE SEQUENCE shared START 5 CACHE 2; CREATE SEQUENCE falling INCREMENT -2;
             CREATE DOMAIN wide AS bigint CHECK (VALUE <> 0); CREATE DOMAIN little AS wide CHECK (VALUE < 1000000);
             CREATE FUNCTION made(text) RETURNS bigint LANGUAGE sql AS 'SELECT nextval(''shared'') * 100 + length($1)';
             CREATE FUNCTION half(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 2';
             CREATE FUNCTION half_of_four(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 2';
             CREATE TABLE narrow (key integer);
             CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        );
        for number in 0..draft.random.usize(6..12) {
            draft.table(number, seed % 2 == 1);
        }
        for number in 0..draft.random.usize(2..5) {
            draft.view(number);
        }
        // Newer than all of them.
        let defaults = [
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO reader",
            "ALTER DEFAULT PRIVILEGES REVOKE USAGE ON SEQUENCES FROM CURRENT_USER",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SEQUENCES TO PUBLIC",
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader",
            "ALTER DEFAULT PRIVILEGES FOR ROLE third GRANT UPDATE ON SEQUENCES TO reader WITH GRANT OPTION",
        ];
        for default in defaults {
            if draft.once_in(3) {
                draft.add(default);
            }
        }
        draft
    }

    fn add(&mut self, statement: impl Into<String>) {
        self.statements.push(statement.into());
    }

    fn once_in(&mut self, count: usize) -> bool {
        self.random.usize(0..count) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.usize(0..all.len())]
    }

    /// A name of its own.
    fn name(&mut self, number: usize) -> String {
        let name = self.one_of(&NAMES);
        let number = format!("{number}_");
        name.strip_prefix('"').map_or_else(
            || format!("t{number}{name}")[..].chars().take(63).collect(),
            |rest| format!("\"{number}{rest}"),
        )
    }

    fn table(&mut self, number: usize, is_one_owner: bool) {
        let name = self.name(number);
        let key = self.one_of(&KEYS);
        let mut kind = self.one_of(&["integer", "integer", "bigint", "bigint", "smallint", "wide"]);
        if self.once_in(25) {
            kind = "little";
        }
        let width = if kind == "wide" || kind == "little" { "bigint" } else { kind };
        let is_partitioned = self.once_in(5);
        let is_by_key = is_partitioned && self.once_in(3);
        let is_unlogged = !is_partitioned && self.once_in(6);
        let source = self.random.usize(0..9);
        let mut sequence = None;
        let options = self.options(width);
        let of_key = match source {
            0..=2 => {
                let own = format!("numbers_{number}");
                let options = if self.once_in(2) { options } else { String::new() };
                self.add(format!("CREATE SEQUENCE {own} AS {width} {options}"));
                sequence = Some(own.clone());
                format!("{kind} DEFAULT nextval('{own}')")
            }
            3..=4 if width == kind && !is_partitioned => {
                let ways = self.one_of(&["ALWAYS", "BY DEFAULT"]);
                let own = format!("identity_{number}");
                sequence = Some(own.clone());
                format!("{kind} GENERATED {ways} AS IDENTITY (SEQUENCE NAME {own} {options})")
            }
            5 => format!("{kind} DEFAULT nextval('{}')", self.one_of(&["shared", "falling"])),
            6 => format!("{kind} DEFAULT made(E'a]\\n[b''')"),
            7 => format!("{kind} DEFAULT 1 + nextval('shared') % 30000"),
            _ => kind.to_owned(),
        };
        let is_identity = of_key.contains("IDENTITY");
        let has_default = of_key.contains("DEFAULT ");
        let is_unique = (is_by_key || !is_partitioned) && !self.once_in(6);
        let third = !is_one_owner && self.once_in(5);
        let mut columns = vec![
            format!("{key} {of_key}{}", if is_unique { " PRIMARY KEY" } else { " NOT NULL" }),
            "note text".to_owned(),
        ];
        if is_partitioned && !is_by_key {
            columns.push("at date NOT NULL".to_owned());
        }
        // Not where the table is, and not of what others made it.
        let parents: Vec<Table> = self
            .tables
            .iter()
            .filter(|table| table.is_unique && (is_unlogged || !table.is_unlogged))
            .cloned()
            .collect();
        let mut references = Vec::new();
        for place in 0..self.random.usize(0..3) {
            if parents.is_empty() {
                break;
            }
            let parent = self.one_of(&(0..parents.len()).collect::<Vec<_>>());
            let parent = &parents[parent];
            let column = format!("ref_{place}");
            columns.push(format!("{column} {}", if self.once_in(12) { "integer" } else { parent.kind }));
            let action = self.one_of(&[
                "",
                "ON DELETE CASCADE",
                "ON UPDATE SET NULL",
                "MATCH FULL",
                "DEFERRABLE INITIALLY DEFERRED",
            ]);
            let late = if !is_partitioned && self.once_in(4) { " NOT VALID" } else { "" };
            references.push((column, format!("REFERENCES {} {action}{late}", parent.name)));
        }
        let what = if is_unlogged { "UNLOGGED TABLE" } else { "TABLE" };
        let by = match (is_partitioned, is_by_key) {
            (true, true) => format!(" PARTITION BY RANGE ({key})"),
            (true, false) => " PARTITION BY RANGE (at)".to_owned(),
            (false, _) => String::new(),
        };
        self.add(format!("CREATE {what} {name} ({}){by}", columns.join(", ")));
        for (place, (column, reference)) in references.iter().enumerate() {
            self.add(format!("ALTER TABLE {name} ADD CONSTRAINT fk_{place} FOREIGN KEY ({column}) {reference}"));
            if self.once_in(4) {
                self.add(format!("COMMENT ON CONSTRAINT fk_{place} ON {name} IS 'it''s {place}'"));
            }
            if self.once_in(3) {
                self.add(format!("CREATE INDEX ON {name} ({column}, {key})"));
            }
            if !is_partitioned && self.once_in(30) {
                self.add(format!("ALTER TABLE {name} DISABLE TRIGGER ALL"));
            }
        }
        if is_by_key {
            self.partitions_by_key(number, &name);
        } else if is_partitioned {
            self.partitions(number, &name, key, &of_key);
        } else if self.once_in(5) && !is_identity {
            self.heirs(number, &name, key, has_default);
        }
        if third {
            self.add(format!("ALTER TABLE {name} OWNER TO third"));
        }
        self.of_sequence(sequence.as_deref(), &name, key, is_identity, third);
        self.around(number, &name, key, is_partitioned, is_unique);
        self.tables.push(Table { name, key, kind, is_unique, is_unlogged });
    }

    /// Options of a sequence.
    fn options(&mut self, width: &str) -> String {
        let top = if width == "smallint" { 30_000 } else { 2_000_000 };
        let all = [
            "INCREMENT 3".to_owned(),
            format!("MAXVALUE {top}"),
            "CACHE 7".to_owned(),
            "MINVALUE -20".to_owned(),
            "START 12".to_owned(),
            "CYCLE".to_owned(),
        ];
        let chosen: Vec<String> = all.into_iter().filter(|_| self.random.usize(0..3) == 0).collect();
        chosen.join(" ")
    }

    fn partitions(&mut self, number: usize, name: &str, key: &str, of_key: &str) {
        for (month, next) in [("01", "02"), ("02", "03")] {
            let part = format!("part_{number}_{month}");
            let bounds = format!("FOR VALUES FROM ('2026-{month}-01') TO ('2026-{next}-01')");
            self.add(format!("CREATE TABLE {part} PARTITION OF {name} {bounds}"));
            match self.random.usize(0..4) {
                0 => self.add(format!("ALTER TABLE {part} ALTER {key} SET DEFAULT nextval('shared')")),
                1 if of_key.contains("DEFAULT") => self.add(format!("ALTER TABLE {part} ALTER {key} DROP DEFAULT")),
                _ => {}
            }
        }
    }

    /// By the old key: some have no partition for new IDs.
    fn partitions_by_key(&mut self, number: usize, name: &str) {
        let first = self.one_of(&["MINVALUE", "-30000"]);
        let last = self.one_of(&[
            "FOR VALUES FROM (10000) TO (30000)",
            "FOR VALUES FROM (10000) TO (30000)",
            "FOR VALUES FROM (10000) TO (MAXVALUE)",
            "DEFAULT",
        ]);
        for (place, bounds) in [&format!("FOR VALUES FROM ({first}) TO (10000)"), last].into_iter().enumerate() {
            self.add(format!("CREATE TABLE of_key_{number}_{place} PARTITION OF {name} {bounds}"));
        }
    }

    fn heirs(&mut self, number: usize, name: &str, key: &str, has_default: bool) {
        for place in 0..self.random.usize(1..3) {
            let heir = format!("heir_{number}_{place}");
            self.add(format!("CREATE TABLE {heir} (more text) INHERITS ({name})"));
            match self.random.usize(0..4) {
                0 => self.add(format!("ALTER TABLE {heir} ALTER {key} SET DEFAULT 7")),
                1 if has_default => self.add(format!("ALTER TABLE {heir} ALTER {key} DROP DEFAULT")),
                2 => self.add(format!("CREATE TABLE {heir}_below () INHERITS ({heir})")),
                _ => {}
            }
        }
    }

    /// What a sequence can carry.
    fn of_sequence(&mut self, sequence: Option<&str>, table: &str, key: &str, is_identity: bool, third: bool) {
        let Some(sequence) = sequence else { return };
        if third && !is_identity {
            self.add(format!("ALTER SEQUENCE {sequence} OWNER TO third"));
        }
        if !is_identity && !self.once_in(5) {
            self.add(format!("ALTER SEQUENCE {sequence} OWNED BY {table}.{key}"));
        }
        let more = [
            format!("COMMENT ON SEQUENCE {sequence} IS E'it''s\\n[snowflake_adopt: of \\\\ two] lines'"),
            format!("GRANT USAGE ON SEQUENCE {sequence} TO reader"),
            format!("GRANT SELECT, UPDATE ON SEQUENCE {sequence} TO PUBLIC"),
            format!("GRANT ALL ON SEQUENCE {sequence} TO reader WITH GRANT OPTION"),
            format!("REVOKE ALL ON SEQUENCE {sequence} FROM {}", if third { "third" } else { "CURRENT_USER" }),
            format!("CREATE TABLE user_of_{sequence} (n bigint DEFAULT nextval('{sequence}'))"),
            format!("CREATE FUNCTION ask_{sequence}() RETURNS bigint LANGUAGE sql AS 'SELECT nextval(''{sequence}'')'"),
        ];
        for statement in more {
            // One that is made again must not be in use.
            let is_rare = statement.starts_with("CREATE TABLE") && is_identity;
            if self.once_in(if is_rare { 20 } else { 5 }) {
                self.add(statement);
            }
        }
    }

    /// What stands around a table.
    fn around(&mut self, number: usize, name: &str, key: &str, is_partitioned: bool, is_unique: bool) {
        let anywhere = [
            format!("COMMENT ON COLUMN {name}.{key} IS 'the key'"),
            format!("COMMENT ON TABLE {name} IS 'a table'"),
            format!("GRANT SELECT ({key}), INSERT (note) ON {name} TO reader"),
            format!("ALTER TABLE {name} ADD CONSTRAINT odd CHECK ({key} <> -7)"),
            format!("CREATE INDEX by_parity_{number} ON {name} (({key} % 2), note)"),
            format!("CREATE INDEX some_{number} ON {name} (note) WHERE {key} > 5"),
            format!("CREATE STATISTICS of_{number} ON {key}, note FROM {name}"),
            format!("ALTER TABLE {name} ALTER {key} SET STATISTICS 77"),
            format!("CREATE TRIGGER watch BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION watch()"),
            format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"),
        ];
        for statement in anywhere {
            if self.once_in(5) {
                self.add(statement);
            }
        }
        // Some cannot take an ID: in a variable, in an argument, in a column.
        let takes = [
            format!("DECLARE k integer; BEGIN k := NEW.{key}; RETURN NEW; END"),
            format!("DECLARE k bigint := NEW.{key}; BEGIN RETURN NEW; END"),
            format!("BEGIN PERFORM half_of_four(NEW.{key}); RETURN NEW; END"),
            format!("BEGIN PERFORM half(NEW.{key}); RETURN NEW; END"),
            format!("DECLARE r record; BEGIN r := NEW; INSERT INTO narrow VALUES (r.{key}); RETURN NEW; END"),
        ];
        if self.once_in(8) {
            let body = takes[self.random.usize(0..takes.len())].replace('\'', "''");
            self.add(format!(
                "CREATE FUNCTION takes_{number}() RETURNS trigger LANGUAGE plpgsql AS '{body}'; \
                 CREATE TRIGGER takes BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION takes_{number}()"
            ));
        }
        if is_unique && self.once_in(4) {
            self.add(format!("CREATE UNIQUE INDEX with_note_{number} ON {name} ({key}) INCLUDE (note)"));
        }
        if !is_partitioned && self.once_in(4) {
            self.add(format!("CREATE INDEX clustered_{number} ON {name} ({key} DESC); ALTER TABLE {name} CLUSTER ON clustered_{number}"));
        }
        // These are in the way of another type.
        let hindrances = [
            format!("CREATE TRIGGER of_key BEFORE UPDATE OF {key} ON {name} FOR EACH ROW EXECUTE FUNCTION watch()"),
            format!("CREATE POLICY by_key ON {name} USING ({key} > 0)"),
            format!("ALTER TABLE {name} ADD half bigint GENERATED ALWAYS AS ({key} / 2) STORED"),
            format!("CREATE RULE by_key AS ON UPDATE TO {name} WHERE OLD.{key} = 1 DO INSTEAD NOTHING"),
        ];
        for statement in hindrances {
            if self.once_in(30) {
                self.add(statement);
            }
        }
    }

    fn view(&mut self, number: usize) {
        let count = self.tables.len();
        let [one, other] = [0, 1].map(|_| self.random.usize(0..count)).map(|place| self.tables[place].clone());
        let (a, b) = (&one.key, &other.key);
        let query = match self.random.usize(0..6) {
            0 => format!(
                "SELECT x.{a}, x.note, y.{b} AS other FROM {} x LEFT JOIN {} y ON x.{a} = y.{b}",
                one.name, other.name
            ),
            1 => format!("SELECT {a} % 10 AS digit, count(*), max({a}) FROM {} GROUP BY 1", one.name),
            2 => format!("SELECT half({a}) AS half, {a}::text AS t FROM {}", one.name),
            3 if number > 0 => format!("SELECT * FROM view_{} WHERE true", number - 1),
            4 => format!("SELECT {a} AS k FROM {} UNION ALL SELECT {b} FROM {}", one.name, other.name),
            _ => format!("SELECT row_number() OVER (ORDER BY {a}) AS n, note FROM {}", one.name),
        };
        let kind = self.one_of(&["VIEW", "VIEW", "MATERIALIZED VIEW"]);
        self.add(format!("CREATE {kind} view_{number} AS {query}"));
        let mut more = vec![
            format!("GRANT SELECT ON view_{number} TO reader"),
            format!("COMMENT ON {kind} view_{number} IS 'seen'"),
        ];
        if kind == "VIEW" {
            more.push(format!("ALTER VIEW view_{number} SET (security_barrier)"));
        } else {
            more.push(format!("CREATE INDEX ON view_{number} ((1))"));
            more.push(format!(
                "ALTER MATERIALIZED VIEW view_{number} SET (fillfactor = 60, toast.autovacuum_enabled = off)"
            ));
        }
        for statement in more {
            if self.once_in(3) {
                self.add(statement);
            }
        }
    }
}
