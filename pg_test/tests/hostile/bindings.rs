//! A definition is text that is read again, and a name in it may mean something else then: a function that somebody has created
//! meanwhile for a `bigint`.

use super::{obstacle, server, sprung};
use snowflake_test::Cluster;
use snowflake_test::check::refused;
use snowflake_test::query::value;

/// A schema of tools in which everybody may create functions, and a table of the landlord's.
fn tools(more: &str) -> Cluster {
    let cluster = server();
    cluster
        .client_of("landlord", "prey")
        .batch_execute(
            "CREATE SCHEMA tools; GRANT USAGE, CREATE ON SCHEMA tools TO PUBLIC; \
             CREATE FUNCTION tools.label(integer) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT 'right' $$; \
             CREATE FUNCTION tools.same(integer, integer) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$ SELECT $1 = $2 $$; \
             CREATE OPERATOR tools.== (LEFTARG = integer, RIGHTARG = integer, FUNCTION = tools.same); \
             CREATE SCHEMA app; CREATE TABLE app.goods (id serial PRIMARY KEY, n integer); \
             INSERT INTO app.goods (n) VALUES (1)",
        )
        .unwrap();
    cluster.client_of("landlord", "prey").batch_execute(more).unwrap();
    let traps = "CREATE FUNCTION tools.label(bigint) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ \
                 BEGIN RAISE LOG 'sprung: label as %', current_user; RETURN 'wrong'; END $$; \
                 CREATE FUNCTION tools.same(bigint, integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ \
                 BEGIN RAISE LOG 'sprung: same as %', current_user; RETURN true; END $$; \
                 CREATE OPERATOR tools.== (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = tools.same)";
    cluster.client_of("mallory", "prey").batch_execute(traps).unwrap();
    cluster
}

fn adopt_is_refused(more: &str, part: &str) {
    let cluster = tools(more);
    for caller in ["postgres", "landlord"] {
        let mut client = cluster.client_of(caller, "prey");
        obstacle(&mut client, "SELECT snowflake_adopt('app.goods', views => 'recreate')", part);
        let unchanged = "SELECT atttypid = 'integer'::regtype FROM pg_attribute WHERE attrelid = 'app.goods'::regclass AND attname = 'id'";
        assert!(value::<bool>(&mut client, unchanged));
    }
    assert_eq!(sprung(&cluster), [""; 0]);
}

#[test]
fn a_view_that_would_call_another_function_is_not_created_again() {
    let depends = "It would depend on function tools.label(bigint) (OID ";
    adopt_is_refused("CREATE VIEW app.v AS SELECT id, tools.label(id + 0) FROM app.goods", depends);
}

#[test]
fn a_materialized_view_that_would_call_another_function_is_not_filled() {
    let depends = "It would depend on function tools.label(bigint) (OID ";
    adopt_is_refused("CREATE MATERIALIZED VIEW app.v AS SELECT id, tools.label(id + 0) FROM app.goods", depends);
}

#[test]
fn a_view_with_another_operator_is_not_created_again() {
    let depends = "It would depend on operator tools.==(bigint,integer) (OID ";
    adopt_is_refused("CREATE VIEW app.v AS SELECT n FROM app.goods WHERE id OPERATOR(tools.==) n", depends);
}

/// PostgreSQL reads and runs these when it changes the type: there is no moment at which to compare.
#[test]
fn expressions_of_the_table_with_a_choice_of_functions_are_in_the_way() {
    for expression in [
        "ALTER TABLE app.goods ADD CONSTRAINT labelled CHECK (tools.label(id) <> '')",
        "CREATE INDEX labelled ON app.goods (tools.label(id))",
        "CREATE INDEX labelled ON app.goods (n) WHERE tools.label(id) <> ''",
        "CREATE STATISTICS app.labelled ON (tools.label(id)), n FROM app.goods",
    ] {
        adopt_is_refused(expression, "labelled");
    }
    adopt_is_refused("CREATE INDEX same ON app.goods (n) WHERE id OPERATOR(tools.==) n", "app.same");
}

/// What does not depend on the choice goes on.
#[test]
fn views_that_call_the_same_functions_as_before_are_created_again() {
    let cluster = tools(
        "CREATE VIEW app.a AS SELECT id, tools.label(n) FROM app.goods; CREATE VIEW app.b AS SELECT * FROM app.a; \
         CREATE MATERIALIZED VIEW app.c AS SELECT b.*, n OPERATOR(tools.==) 1 FROM app.b JOIN app.goods USING (id)",
    );
    let mut client = cluster.client_of("postgres", "prey");
    client.batch_execute("SELECT snowflake_adopt('app.goods', views => 'recreate')").unwrap();
    assert_eq!(value::<String>(&mut client, "SELECT string_agg(label, '') FROM app.c"), "right");
    assert_eq!(sprung(&cluster), [""; 0]);
    refused(&mut client, "SELECT snowflake_adopt('app.goods')", "55000");
}
