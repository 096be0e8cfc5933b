//! Roles that insert rows, and own nothing: a default is evaluated as whoever inserts.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};

fn call(client: &mut Client, statements: &str) {
    client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

/// Where a superuser has revoked EXECUTE from PUBLIC, the plan names whom an INSERT would fail for, whichever way they insert.
#[test]
fn who_may_insert_and_not_execute_is_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE ROLE \"By Grant\" LOGIN; CREATE ROLE by_column LOGIN; CREATE ROLE by_view LOGIN; CREATE ROLE by_partition LOGIN; CREATE ROLE by_rule LOGIN;
         CREATE ROLE gathers; CREATE ROLE member LOGIN IN ROLE gathers; CREATE ROLE everything LOGIN IN ROLE pg_write_all_data;
         CREATE ROLE trusted; CREATE ROLE of_trusted LOGIN IN ROLE trusted; CREATE ROLE reader LOGIN; CREATE ROLE boss LOGIN SUPERUSER;
         CREATE ROLE gathers_trusted; GRANT gathers_trusted TO of_trusted; CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner;
         SET ROLE owner;
         CREATE TABLE orders (id bigserial, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
         CREATE TABLE orders_2026 PARTITION OF orders FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
         CREATE TABLE feed (at date); CREATE RULE fed AS ON INSERT TO feed DO ALSO INSERT INTO orders (at) VALUES (new.at);
         CREATE RULE counts AS ON DELETE TO feed DO ALSO SELECT count(*) FROM orders; GRANT INSERT ON feed TO by_rule; GRANT DELETE ON feed TO reader;
         CREATE VIEW open_orders AS SELECT * FROM orders; CREATE VIEW counted AS SELECT count(*) FROM orders;
         GRANT INSERT ON orders TO \"By Grant\", gathers, gathers_trusted, of_trusted, boss; GRANT INSERT (id) ON orders TO by_column;
         GRANT INSERT ON orders_2026 TO by_partition; GRANT INSERT ON open_orders TO by_view; GRANT ALL ON counted TO reader;
         GRANT SELECT, UPDATE, DELETE ON orders TO reader; RESET ROLE;
         CREATE ROLE spy LOGIN; GRANT CREATE ON SCHEMA public TO spy; SET ROLE spy; CREATE VIEW spied AS SELECT * FROM orders; RESET ROLE;
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO PUBLIC",
    );
    let obstacles = "SELECT string_agg(note, ' / ') FROM snowflake_adopt_plan('orders') WHERE kind = 'obstacle'";
    let problems = "SELECT string_agg(finding, ' / ') FROM snowflake_preflight(keys => '{orders}') \
                    WHERE subject = 'key' AND verdict = 'problem'";
    assert_eq!(value::<Option<String>>(&mut client, obstacles), None);
    assert_eq!(value::<Option<String>>(&mut client, problems), None);
    call(
        &mut client,
        "REVOKE EXECUTE ON FUNCTION snowflake_next() FROM PUBLIC; GRANT EXECUTE ON FUNCTION snowflake_next() TO trusted",
    );
    let roles = "\"By Grant\", by_column, by_partition, by_rule, by_view, everything, gathers, gathers_trusted, owner";
    let expected = format!(
        "rows of public.orders may be inserted by {roles}, and EXECUTE on public.snowflake_next() was revoked, which an INSERT needs: \
         GRANT EXECUTE ON FUNCTION public.snowflake_next() TO {roles}"
    );
    assert_eq!(value::<Option<String>>(&mut client, obstacles).as_deref(), Some(&*expected));
    assert_eq!(value::<Option<String>>(&mut client, problems).as_deref(), Some(&*expected));
    for call in ["snowflake_adopt('orders')", "snowflake_adopt_all('{orders}')"] {
        let error = refused(&mut client, &format!("SELECT * FROM {call}"), "55000");
        assert_eq!(error.detail(), Some(&*format!("{expected}.")));
    }
    // What the obstacle says helps, and nothing less would: whoever was named could not insert.
    for (role, insert) in [
        ("\"By Grant\"", "INSERT INTO orders (at) VALUES ('2026-02-01')"),
        ("by_column", "INSERT INTO orders DEFAULT VALUES"),
        ("by_partition", "INSERT INTO orders_2026 (at) VALUES ('2026-02-01')"),
        ("by_view", "INSERT INTO open_orders (at) VALUES ('2026-02-01')"),
        ("by_rule", "INSERT INTO feed VALUES ('2026-02-01')"),
        ("everything", "INSERT INTO orders (at) VALUES ('2026-02-01')"),
        ("gathers_trusted", "INSERT INTO orders (at) VALUES ('2026-02-01')"),
        ("member", "INSERT INTO orders (at) VALUES ('2026-02-01')"),
        ("owner", "INSERT INTO orders (at) VALUES ('2026-02-01')"),
    ] {
        let default = "ALTER TABLE orders ALTER id SET DEFAULT snowflake_next()";
        call(&mut client, &format!("BEGIN; {default}; SET LOCAL ROLE {role}"));
        let error = refused(&mut client, insert, "42501");
        assert_eq!(error.message(), "permission denied for function snowflake_next", "{role}");
        call(&mut client, "ROLLBACK");
    }
    call(&mut client, &format!("GRANT EXECUTE ON FUNCTION public.snowflake_next() TO {roles}"));
    call(&mut client, "SELECT snowflake_adopt('orders')");
    for role in ["\"By Grant\"", "everything", "member", "owner", "of_trusted"] {
        call(&mut client, &format!("SET ROLE {role}; INSERT INTO orders (at) VALUES ('2026-02-01'); RESET ROLE"));
    }
}

/// The way back makes a sequence, or takes the one that was kept: those who insert may use it, also who came after the move.
#[test]
fn who_inserts_may_use_the_sequence_that_comes_back() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE ROLE \"Early Bird\" LOGIN; CREATE ROLE late LOGIN;
         CREATE TABLE kept (id bigserial PRIMARY KEY, n integer); GRANT INSERT ON kept TO \"Early Bird\"; GRANT USAGE ON kept_id_seq TO \"Early Bird\";
         CREATE TABLE made (id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer); GRANT INSERT ON made TO \"Early Bird\";
         CREATE TABLE identified (id bigint GENERATED ALWAYS AS IDENTITY, n integer); GRANT INSERT ON identified TO \"Early Bird\";
         CREATE VIEW seen AS SELECT * FROM kept; SELECT snowflake_adopt('kept'); SELECT snowflake_adopt('identified');
         GRANT INSERT (n) ON made, identified TO late; GRANT INSERT ON seen TO late",
    );
    let insert = |client: &mut Client, table: &str, role: &str| {
        call(client, &format!("SET ROLE {role}; INSERT INTO {table} (n) VALUES (1); RESET ROLE"));
    };
    let all = [
        ("kept", "\"Early Bird\""),
        ("seen", "late"),
        ("made", "\"Early Bird\""),
        ("made", "late"),
        ("identified", "late"),
    ];
    all.iter().for_each(|(table, role)| insert(&mut client, table, role));
    let grants = "SELECT string_agg(statement, ' ') FROM snowflake_release_plan('TABLE') WHERE statement LIKE 'GRANT%'";
    let granted = |client: &mut Client, table: &str| value::<Option<String>>(client, &grants.replace("TABLE", table));
    assert_eq!(granted(&mut client, "kept").unwrap(), "GRANT USAGE ON SEQUENCE public.kept_id_seq TO late;");
    assert_eq!(
        granted(&mut client, "made").unwrap(),
        "GRANT USAGE ON SEQUENCE public.made_id_seq TO \"Early Bird\", late;"
    );
    assert_eq!(granted(&mut client, "identified"), None);
    for table in ["kept", "made", "identified"] {
        call(&mut client, &format!("SELECT snowflake_release('{table}')"));
    }
    all.iter().for_each(|(table, role)| insert(&mut client, table, role));
}

/// A plan tells nothing of the rows of a table to whoever does not own it; nor is a role whose name needs quotes taken for another.
#[test]
fn plans_of_others_tell_no_values() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE ROLE \"Curious\" LOGIN; CREATE TABLE made (id bigint PRIMARY KEY DEFAULT snowflake_next()); INSERT INTO made VALUES (42);
         GRANT CREATE ON SCHEMA public TO \"Curious\"; SET ROLE \"Curious\"",
    );
    for start in [41, 42] {
        let plan = format!("SELECT string_agg(note, ' ') FROM snowflake_release_plan('made', start => {start})");
        let notes: String = value(&mut client, &plan);
        assert!(notes.contains("must be owner of table public.made") && !notes.contains("42"), "{notes}");
    }
    call(
        &mut client,
        "CREATE TABLE own (id serial PRIMARY KEY); SELECT snowflake_adopt('own'); INSERT INTO own DEFAULT VALUES",
    );
}
