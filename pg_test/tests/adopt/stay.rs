//! Sessions that stay connected from before the first step of a move in stages to after the last: they write through triggers, prepared
//! statements, cursors, a view and COPY, and by Django and SQLAlchemy. Nothing fails but what the page announces.

use super::staged::{call, load_staged, make_indexes};
use crate::tools::python;
use postgres::Client;
use snowflake_test::packages::connected;
use snowflake_test::{Cluster, value};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

const TABLES: &str = "
    CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL);
    CREATE TABLE bills (id bigserial PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers ON DELETE CASCADE, note text);
    CREATE INDEX ON bills (customer_id);
    CREATE TABLE audit (of_table name, key bigint);
    CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN
        r := NEW; INSERT INTO audit SELECT TG_TABLE_NAME, r.id WHERE NEW.id IS NOT NULL; RETURN NEW; END $$;
    CREATE TRIGGER watch AFTER INSERT OR UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION watch();
    CREATE TRIGGER watch BEFORE INSERT ON bills FOR EACH ROW EXECUTE FUNCTION watch();
    CREATE VIEW names AS SELECT name FROM customers;
    INSERT INTO customers (name) SELECT 'c' || n FROM generate_series(1, 500) n; INSERT INTO bills (customer_id) SELECT n FROM generate_series(1, 500) n";

const STEPS: [&str; 11] = [
    "nothing",
    "prepare('bills', 'customer_id')",
    "prepare('customers', 'id')",
    "backfill(1, '0')",
    "indexes",
    "check()",
    "swap('customers', 'id')",
    "validate()",
    "finish()",
    "remove()",
    "nothing",
];

/// The ORMs, in a process of their own.
struct Orms {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Orms {
    fn start(cluster: &Cluster) -> Self {
        let folder = python();
        let mut command = connected(&folder.join("venv/bin/python"), folder, cluster);
        command.arg("stay_connected.py").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers }
    }

    fn work(&mut self) -> String {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Orms {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// What one session does again and again; the statements that the page says may fail come last.
fn work(session: usize, client: &mut Client) -> Result<(), postgres::Error> {
    match session {
        0 => client.batch_execute("INSERT INTO customers (name) VALUES ('a'); UPDATE customers SET name = 'b' WHERE id = 3; DELETE FROM customers WHERE id = (SELECT max(id) FROM customers)"),
        1 => client.batch_execute("EXECUTE one; EXECUTE other (5); EXECUTE sums"),
        2 => client.batch_execute(
            "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT name, id FROM customers WHERE id > 4 ORDER BY id; COMMIT; FETCH 3 FROM c;
             BEGIN; DECLARE d CURSOR FOR SELECT name FROM customers WHERE id = 7 FOR UPDATE; FETCH d;
             UPDATE customers SET name = 'd' WHERE CURRENT OF d; COMMIT; FETCH 3 FROM c; CLOSE c",
        ),
        3 => client.batch_execute("INSERT INTO names VALUES ('v'); UPDATE names SET name = 'w' WHERE name = 'v'"),
        _ => {
            let mut copy = client.copy_in("COPY bills (customer_id, note) FROM STDIN")?;
            copy.write_all(b"1\tx\n2\ty\n").unwrap();
            copy.finish().map(drop)
        }
    }
}

#[test]
fn sessions_stay_connected_through_all_stages() {
    let cluster = Cluster::options().start();
    call(&mut cluster.client(), TABLES);
    load_staged(&cluster);
    let mut sessions: Vec<Client> = (0..5).map(|_| cluster.client()).collect();
    call(
        &mut sessions[1],
        "PREPARE one AS INSERT INTO bills (customer_id) VALUES (1); PREPARE other AS UPDATE bills SET note = 'p' WHERE customer_id = $1;
         PREPARE sums AS SELECT count(*), sum(length(name)) FROM customers JOIN bills ON customer_id = customers.id",
    );
    // Those that the page says may have to be prepared again.
    let mut old = cluster.client();
    call(
        &mut old,
        "PREPARE key AS SELECT id FROM customers WHERE name = 'c1'; EXECUTE key; PREPARE all_of AS SELECT * FROM bills; EXECUTE all_of",
    );
    let mut orms = Orms::start(&cluster);
    let mut failed = Vec::new();
    for step in STEPS {
        match step {
            "nothing" => {}
            "indexes" => make_indexes(&cluster),
            step => call(&mut cluster.client(), &format!("CALL moving.{step}")),
        }
        // More than the five calls after which PostgreSQL may keep one plan for all.
        for _ in 0..7 {
            for (number, client) in sessions.iter_mut().enumerate() {
                work(number, client).unwrap_or_else(|error| panic!("{step}: session {number}: {error:?}"));
            }
        }
        let of_orms = orms.work();
        for problem in of_orms.split("; ").filter(|problem| *problem != "ok") {
            assert!(problem.contains("0A000: cached plan must not change result type"), "{step}: {of_orms}");
        }
        if of_orms != "ok" {
            failed.push(step);
        }
        for statement in ["EXECUTE key", "EXECUTE all_of"] {
            if let Err(error) = old.batch_execute(statement) {
                assert_eq!(error.code().unwrap().code(), "0A000", "{step}: {error:?}");
            }
        }
    }
    println!("statements of ORMs had to be prepared again after {failed:?}");
    // Never before the swap, as they name their columns.
    assert!(failed.iter().all(|step| STEPS.iter().position(|it| it == step) >= Some(6)), "{failed:?}");
    let ids = "SELECT count(*) FROM customers WHERE id > 1000000000000";
    assert!(value::<i64>(&mut cluster.client(), ids) > 100);
    // All of both ways are whole.
    let whole =
        "SELECT count(*) FROM bills LEFT JOIN customers ON customers.id = customer_id WHERE customers.id IS NULL";
    assert_eq!(value::<i64>(&mut cluster.client(), whole), 0);
}
