//! What docs/recipes.md and docs/analytics.md say of views that stand for a table.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, Installation, value};
use std::path::Path;

/// The statement of a page that creates a view.
fn creation(page: &str, view: &str) -> String {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page)).unwrap();
    let begins = format!("CREATE VIEW {view} ");
    let line = text.lines().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("{page} has no {view}"));
    line.to_owned()
}

fn call(client: &mut Client, statements: &str) {
    client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

const TABLES: &str = "
    CREATE ROLE ada LOGIN; CREATE ROLE bob LOGIN;
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), owner name DEFAULT current_user);
    CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT snowflake_next());
    CREATE TABLE lines (invoice_id bigint REFERENCES invoices);
    ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON orders USING (owner = current_user);
    ALTER TABLE invoices ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON invoices FOR SELECT USING (id <> 7);
    CREATE POLICY inserts ON invoices FOR INSERT WITH CHECK (true);
    GRANT SELECT, INSERT ON orders, invoices TO ada, bob; INSERT INTO invoices VALUES (7);
    SET ROLE ada; INSERT INTO orders DEFAULT VALUES; SET ROLE bob; INSERT INTO orders DEFAULT VALUES; RESET ROLE";

#[test]
fn policies_hold_for_who_reads_by_a_view() {
    if Installation::under_test().major() < 15 {
        return;
    }
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, TABLES);
    call(&mut client, &creation("analytics.md", "orders_by_time"));
    call(
        &mut client,
        &creation("moving-in.md", "new_sales").replace("FROM sales", "FROM orders").replace(":first_id", "1"),
    );
    call(&mut client, "GRANT SELECT ON orders_by_time, new_sales TO ada");
    let mut ada = cluster.client_of("ada", "postgres");
    for view in ["orders_by_time", "new_sales"] {
        assert_eq!(value::<String>(&mut ada, &format!("SELECT string_agg(owner, ' ') FROM {view}")), "ada");
    }
    // The page says that SELECT on the table is needed, too; and what a view without the option shows.
    call(&mut client, "REVOKE SELECT ON orders FROM ada");
    refused(&mut ada, "SELECT * FROM orders_by_time", "42501");
    call(&mut client, "ALTER VIEW orders_by_time SET (security_invoker = false)");
    assert_eq!(value::<i64>(&mut ada, "SELECT count(*) FROM orders_by_time"), 2);
}

/// A view in the place of a table takes what the recipe says, and nothing else.
#[test]
fn a_view_in_the_place_of_a_table_takes_what_the_page_says() {
    if Installation::under_test().major() < 15 {
        return;
    }
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, TABLES);
    call(
        &mut client,
        "CREATE FUNCTION count_them() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM invoices); END'",
    );
    call(&mut client, "ALTER TABLE invoices RENAME TO invoices_data");
    call(&mut client, &creation("recipes.md", "invoices"));
    let mut ada = cluster.client_of("ada", "postgres");
    refused(&mut ada, "INSERT INTO invoices DEFAULT VALUES", "42501");
    call(&mut client, "GRANT SELECT, INSERT ON invoices TO ada");
    call(&mut ada, "INSERT INTO invoices DEFAULT VALUES");
    assert_eq!(value::<i64>(&mut ada, "SELECT count(*) FROM invoices"), 1);
    assert_eq!(value::<i64>(&mut client, "SELECT count_them()"), 2);
    let now = "INSERT INTO invoices DEFAULT VALUES RETURNING abs(extract(epoch FROM created_at - now())) < 5";
    assert!(value::<bool>(&mut client, now));
    call(
        &mut client,
        "INSERT INTO invoices (id) VALUES (7) ON CONFLICT (id) DO NOTHING; UPDATE invoices SET id = 8 WHERE id = 7",
    );
    call(&mut client, "DELETE FROM invoices WHERE id = 8; INSERT INTO lines SELECT min(id) FROM invoices");
    refused(&mut client, "DELETE FROM invoices WHERE id = (SELECT invoice_id FROM lines)", "23503");
    // No value for created_at, and what needs the name of the table.
    refused(&mut client, "INSERT INTO invoices (created_at) VALUES (now())", "0A000");
    for (statement, code) in [
        ("COPY invoices FROM '/dev/null'", "42809"),
        ("COPY invoices TO STDOUT", "42809"),
        ("TRUNCATE invoices CASCADE", "42809"),
        ("CREATE TABLE more (invoice_id bigint REFERENCES invoices)", "42809"),
        (
            "CREATE TRIGGER t BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "42809",
        ),
    ] {
        let error = client.batch_execute(statement).unwrap_err();
        assert_eq!(error.code().map(|code| code.code()), Some(code), "{statement}: {error:?}");
        let on_table = statement.replace("invoices", "invoices_data");
        if !statement.starts_with("COPY") {
            call(&mut client, &format!("BEGIN; {on_table}; ROLLBACK"));
        }
    }
}
