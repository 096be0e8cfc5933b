//! The sequence that an integer key keeps: clients set it to the highest ID.

use super::staged::{call, load_staged, make_indexes};
use snowflake_test::hosted::{DATABASE, create_database, run_script};
use snowflake_test::{Cluster, value};

const TABLES: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY); COMMENT ON SEQUENCE orders_id_seq IS 'of orders';
    CREATE TABLE small (id smallserial PRIMARY KEY); CREATE TABLE always (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
    CREATE TABLE other (id integer PRIMARY KEY DEFAULT 7); CREATE SEQUENCE of_other AS integer OWNED BY other.id;
    INSERT INTO orders DEFAULT VALUES; INSERT INTO small DEFAULT VALUES; INSERT INTO always DEFAULT VALUES; INSERT INTO other DEFAULT VALUES";

/// As Rails, Django and a well-known script do it.
const SET: &str = "SELECT setval(pg_get_serial_sequence('TABLE_', 'id'), max(id)) FROM TABLE_";

const SEQUENCES: &str = "SELECT string_agg(concat_ws(' ', seqrelid::regclass, seqtypid::regtype, seqmin, seqmax, seqstart, \
    obj_description(seqrelid, 'pg_class')), ', ' ORDER BY seqrelid::regclass::text) FROM pg_sequence JOIN pg_class ON oid = seqrelid \
    WHERE relnamespace = 'public'::regnamespace AND relname !~ '^always'";

#[test]
fn the_sequence_that_stays_can_be_set_to_an_id() {
    let cluster = Cluster::options().start();
    create_database(&cluster, DATABASE);
    run_script(&cluster, DATABASE);
    let owner = "ALTER DATABASE postgres OWNER TO owner; GRANT ALL ON SCHEMA public TO owner";
    cluster.client().batch_execute(owner).unwrap();
    let mut sql = cluster.client_of("owner", DATABASE);
    sql.batch_execute("SELECT snowflake_configure(1)").unwrap();
    for (client, is_sql) in [(&mut cluster.client_of("owner", "postgres"), false), (&mut sql, true)] {
        call(client, TABLES);
        let before: String = value(client, SEQUENCES);
        for table in ["orders", "small", "always", "other"] {
            if is_sql {
                call(client, &format!("ALTER TABLE {table} ALTER id TYPE bigint"));
            }
            call(client, &format!("SELECT * FROM snowflake_adopt('{table}'); INSERT INTO {table} DEFAULT VALUES"));
            // That of another default stays as it is where the extension in SQL keeps it.
            if !(is_sql && table == "other") {
                call(client, &SET.replace("TABLE_", table));
            }
        }
        // What was written is gone: all is as it was. Else it goes on after the highest.
        for table in ["orders", "small", "always", "other"] {
            call(client, &format!("BEGIN; SELECT snowflake_release('{table}', start => NULL)"));
            call(client, "ROLLBACK");
            call(
                client,
                &format!(
                    "DELETE FROM {table} WHERE id > 100; SELECT setval(pg_get_serial_sequence('{table}', 'id'), 1)"
                ),
            );
            call(client, &format!("SELECT snowflake_release('{table}')"));
        }
        assert_eq!(value::<String>(client, SEQUENCES), before, "{is_sql}");
    }
}

#[test]
fn in_stages_too() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, TABLES);
    load_staged(&cluster);
    for table in ["orders", "always"] {
        call(&mut client, &format!("CALL moving.prepare('{table}', 'id')"));
        call(&mut client, "CALL moving.backfill()");
        make_indexes(&cluster);
        call(&mut client, "CALL moving.check()");
        call(&mut client, &format!("CALL moving.swap('{table}', 'id')"));
        call(&mut client, "CALL moving.validate()");
        call(&mut client, "CALL moving.finish()");
        call(&mut client, &format!("INSERT INTO {table} DEFAULT VALUES"));
        call(&mut client, &SET.replace("TABLE_", table));
    }
}
