//! The queries of SECURITY.md, by which an administrator finds out whether somebody has used what is mended: they find it where it was
//! done, and nothing where it was not.

use postgres::Client;
use snowflake_test::Cluster;
use snowflake_test::hosted::{create_database, run_script};

const PAGE: &str = include_str!("../../SECURITY.md");
/// The extension in SQL as of 0.2.0.
const HOSTED: &str = include_str!("../../sql/released/hosted/0.2.0.sql");

/// The queries, each with the heading above it.
fn queries() -> Vec<(&'static str, &'static str)> {
    let mut heading = "";
    let mut found = Vec::new();
    for part in PAGE.split("\n### ").skip(1) {
        heading = part.lines().next().unwrap_or(heading);
        found.extend(part.split("```sql\n").skip(1).map(|block| (heading, block.split("```").next().unwrap())));
    }
    found
}

fn rows(client: &mut Client, query: &str) -> usize {
    client.batch_execute("SET search_path = pg_catalog").unwrap();
    client.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).len()
}

/// What mallory could do, in a database of the role `owner`.
const DONE: [&str; 4] = [
    "CREATE FUNCTION public.log(numeric, integer) RETURNS numeric LANGUAGE sql AS 'SELECT $1'; \
     CREATE OPERATOR public.* (FUNCTION = public.log, LEFTARG = numeric, RIGHTARG = integer); \
     CREATE FUNCTION public.log(float8, integer) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT $1'; \
     CREATE OPERATOR public.* (FUNCTION = public.log, LEFTARG = float8, RIGHTARG = integer); \
     CREATE SCHEMA snowflake_registry; CREATE TABLE snowflake_registry.namespaces (namespace text); \
     CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
     CREATE TRIGGER trap BEFORE INSERT ON snowflake_registry.namespaces FOR EACH ROW EXECUTE FUNCTION public.trap(); \
     CREATE FUNCTION public.format(text, regclass, name) RETURNS text LANGUAGE sql AS 'SELECT $1'; \
     CREATE FUNCTION public.snowflake_age(id bigint) RETURNS interval LANGUAGE sql AS 'SELECT NULL::interval'; \
     GRANT EXECUTE ON FUNCTION public.snowflake_age(bigint) TO PUBLIC; \
     CREATE TABLE public.sold (id serial PRIMARY KEY); ALTER SEQUENCE public.sold_id_seq RENAME TO elsewhere; \
     CREATE FUNCTION public.spring() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END'; \
     CREATE VIEW public.sold_id_seq AS SELECT 1::bigint AS last_value, public.spring() AS is_called; \
     CREATE INDEX ON public.sold (id) WHERE public.spring()",
    "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory",
    "CREATE TABLE public.orders (id bigint); ALTER TABLE public.orders ENABLE ROW LEVEL SECURITY",
    "CREATE VIEW public.shown AS SELECT id FROM public.orders",
];

#[test]
fn queries_find_what_was_done() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE ROLE mallory LOGIN").unwrap();
    for name in ["clean", "prey"] {
        create_database(&cluster, name);
    }
    run_script(&cluster, "clean");
    cluster.client().batch_execute("CREATE DATABASE library").unwrap();
    cluster.client_of("postgres", "library").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    cluster.client_of("owner", "prey").batch_execute("GRANT CREATE ON SCHEMA public TO mallory").unwrap();
    cluster.client_of("owner", "prey").batch_execute("GRANT CREATE ON DATABASE prey TO mallory").unwrap();
    cluster.client_of("mallory", "prey").batch_execute(DONE[0]).unwrap();
    let mut owner = cluster.client_of("owner", "prey");
    DONE[1..].iter().for_each(|statements| owner.batch_execute(statements).unwrap());
    // As a superuser did, who took over what was there.
    let mut superuser = cluster.client_of("postgres", "prey");
    superuser.batch_execute("ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory").unwrap();
    superuser.batch_execute("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO mallory").unwrap();
    superuser.batch_execute(&format!("BEGIN; {HOSTED}; COMMIT")).unwrap();
    assert_eq!(queries().len(), 10);
    for (heading, query) in queries() {
        assert!(rows(&mut superuser, query) > 0, "{heading}: {query}");
        for database in ["clean", "library"] {
            let mut client = cluster.client_of("postgres", database);
            assert_eq!(rows(&mut client, query), 0, "{heading}, in {database}: {query}");
        }
    }
}
