//! From keys of uuid or text: `examples/moving-in/from-uuid.sql`.

use super::schema::{difference, schema};
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, Installation, hostile, run, value};
use std::path::Path;
use std::time::{Duration, Instant};

fn server(tables: &str) -> Cluster {
    let cluster = Cluster::options().start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/moving-in/from-uuid.sql");
    let copy = cluster.new_file("from-uuid.sql");
    std::fs::copy(script, &copy).unwrap();
    run(cluster.program("psql").args(["--no-psqlrc", "--quiet", "--file"]).arg(copy));
    call(&mut cluster.client(), tables);
    cluster
}

fn call(client: &mut Client, statements: &str) {
    client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

const TABLES: &str = "
    CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text, invited_by uuid REFERENCES users,
        created_at timestamptz NOT NULL);
    CREATE TABLE profiles (user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE, text text);
    CREATE TABLE notes (id bigserial PRIMARY KEY, user_id uuid NOT NULL CONSTRAINT \"of a user\" REFERENCES users DEFERRABLE,
        about uuid REFERENCES profiles);
    CREATE TABLE tags (name text PRIMARY KEY);
    CREATE TABLE tagged (tag text REFERENCES tags ON UPDATE CASCADE, user_id uuid REFERENCES users, PRIMARY KEY (tag, user_id));
    CREATE INDEX notes_by_user ON notes (user_id, id) WHERE user_id IS NOT NULL;
    COMMENT ON CONSTRAINT \"of a user\" ON notes IS 'it''s one';
    COMMENT ON COLUMN notes.user_id IS 'who wrote it';
    CREATE INDEX by_half ON notes ((left(user_id::text, 4))); ALTER INDEX by_half ALTER COLUMN 1 SET STATISTICS 500;
    CREATE STATISTICS \"with Name\" ON id, name FROM users; ALTER STATISTICS \"with Name\" SET STATISTICS 44;
    CREATE ROLE other; CREATE STATISTICS of_others ON name, created_at FROM users; ALTER STATISTICS of_others SET STATISTICS 5;
    ALTER STATISTICS of_others OWNER TO other; CREATE PUBLICATION emptied FOR TABLE users WITH (publish = 'truncate');
    CREATE TABLE ran (n integer);
    CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO ran VALUES (1); RETURN NEW; END';
    CREATE TRIGGER watch BEFORE UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION watch();
    INSERT INTO users (name, created_at) SELECT 'u' || n, '2026-01-01'::timestamptz - n * interval '1 day' FROM generate_series(1, 50) n;
    UPDATE users u SET invited_by = (SELECT id FROM users v WHERE v.name = 'u7') WHERE name <> 'u7';
    INSERT INTO profiles SELECT id, name FROM users;
    INSERT INTO notes (user_id, about) SELECT u.id, p.user_id FROM users u, profiles p WHERE p.text = 'u9';
    INSERT INTO tags VALUES ('a'), ('b'); INSERT INTO tagged SELECT t.name, id FROM tags t, users";

/// Who knows whom, by what does not change.
const WHAT: &str = "
    SELECT md5(string_agg(concat_ws(' ', u.name, v.name, p.text, about.name, tag), ',' ORDER BY u.name, n.id, tag))
    FROM users u LEFT JOIN users v ON v.id = u.invited_by JOIN profiles p ON p.user_id = u.id JOIN notes n ON n.user_id = u.id
    JOIN users about ON about.id = n.about JOIN tagged t ON t.user_id = u.id";

#[test]
fn uuids_become_ids_with_all_that_refers_to_them() {
    let cluster = server(TABLES);
    let mut client = cluster.client();
    let (before, what): (_, String) = (schema(&cluster, "postgres"), value(&mut client, WHAT));
    call(&mut client, "CREATE TABLE old AS SELECT id, name FROM users");
    call(&mut client, "CALL from_uuid.move('users', keep_as => 'uuid', order_by => 'created_at')");
    assert_eq!(value::<String>(&mut client, WHAT), what);
    assert!(value::<bool>(
        &mut client,
        "SELECT bool_and(u.uuid = o.id) AND count(*) = 50 FROM users u JOIN old o USING (name)"
    ));
    let order = "SELECT array_agg(name ORDER BY id) = array_agg(name ORDER BY created_at) FROM users";
    assert!(value::<bool>(&mut client, order));
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM ran"), 0);
    // In the same session, a key of text.
    call(&mut client, "CALL from_uuid.move('tags', keep_as => 'tag_name')");
    call(&mut client, "DROP TABLE old; DROP SCHEMA from_uuid CASCADE");
    let names = "SELECT string_agg(DISTINCT tag_name, '' ORDER BY tag_name) FROM tags JOIN tagged ON tag = tags.name";
    assert_eq!(value::<String>(&mut client, names), "ab");
    let (gone, new) = difference(&before, &schema(&cluster, "postgres"));
    // Types, the new defaults, and the old keys, each with its constraint.
    let [gone, new] =
        [gone, new].map(|lines| lines.into_iter().filter(|line| !line.starts_with("--")).collect::<Vec<_>>());
    assert_eq!(
        gone,
        [
            "about uuid",
            "created_at timestamp with time zone NOT NULL",
            "id uuid DEFAULT gen_random_uuid() NOT NULL,",
            "invited_by uuid,",
            "name text NOT NULL",
            "tag text NOT NULL,",
            "user_id uuid NOT NULL",
            "user_id uuid NOT NULL,",
            "user_id uuid NOT NULL,"
        ]
    );
    assert_eq!(
        new,
        [
            "ADD CONSTRAINT tags_tag_name_key UNIQUE (tag_name);",
            "ADD CONSTRAINT users_uuid_key UNIQUE (uuid);",
            "ALTER TABLE ONLY public.tags",
            "ALTER TABLE ONLY public.users",
            "about bigint",
            "created_at timestamp with time zone NOT NULL,",
            "id bigint DEFAULT public.snowflake_next() NOT NULL,",
            "invited_by bigint,",
            "name bigint DEFAULT public.snowflake_next() NOT NULL,",
            "tag bigint NOT NULL,",
            "tag_name text NOT NULL",
            "user_id bigint NOT NULL",
            "user_id bigint NOT NULL,",
            "user_id bigint NOT NULL,",
            "uuid uuid DEFAULT gen_random_uuid() NOT NULL",
        ]
    );
    // New rows, and what clients know of the old ones.
    call(&mut client, "INSERT INTO users (name, created_at) VALUES ('new', now())");
    let both = "SELECT count(*) FROM users WHERE id > 1000000000000 AND uuid IS NOT NULL";
    assert_eq!(value::<i64>(&mut client, both), 51);
    refused(&mut client, "INSERT INTO notes (user_id) VALUES (1)", "23503");
}

#[test]
fn what_would_be_lost_is_in_the_way() {
    let cluster = server(TABLES);
    let mut client = cluster.client();
    let refusal = |client: &mut Client, change: &str, detail: &str| {
        call(client, &format!("BEGIN; {change}"));
        let error = refused(client, "CALL from_uuid.move('users', keep_as => 'uuid')", "P0001");
        assert!(error.detail().is_some_and(|text| text.contains(detail)), "{change}: {error:?}");
        call(client, "ROLLBACK");
    };
    refusal(&mut client, "CREATE VIEW v AS SELECT user_id FROM notes", "view public.v depends on public.notes.user_id");
    refusal(&mut client, "CREATE VIEW v AS SELECT id FROM users", "view public.v depends on public.users.id");
    refusal(&mut client, "CREATE POLICY p ON users USING (id IS NOT NULL)", "policy p on table public.users");
    refusal(
        &mut client,
        "ALTER TABLE notes ALTER about SET DEFAULT gen_random_uuid()",
        "public.notes.about has a default",
    );
    refusal(
        &mut client,
        "ALTER TABLE users ADD CHECK (id::text <> '')",
        "CHECK constraint users_id_check of public.users depends on id",
    );
    refusal(
        &mut client,
        "ALTER TABLE users ADD UNIQUE (id, name); CREATE TABLE pairs (a uuid, b text, FOREIGN KEY (a, b) REFERENCES users (id, name))",
        "foreign key pairs_a_b_fkey of public.pairs has several columns",
    );
    refusal(&mut client, "CREATE TABLE heirs () INHERITS (users)", "part of an inheritance tree");
    for published in ["TABLE notes", "ALL TABLES", "TABLE users (id, name)"] {
        if published.contains('(') && Installation::under_test().major() < 15 {
            continue;
        }
        let make = format!("CREATE PUBLICATION \"to others\" FOR {published}");
        refusal(&mut client, &make, "publication \"to others\" has public.");
    }
    let disabled = "foreign key \"of a user\" of public.notes has triggers that are disabled";
    refusal(&mut client, "ALTER TABLE notes DISABLE TRIGGER ALL", disabled);
    refusal(
        &mut client,
        "CREATE ROLE maker; CREATE STATISTICS pairs ON id, name FROM users; ALTER STATISTICS pairs SET STATISTICS 44; \
         ALTER STATISTICS pairs OWNER TO maker",
        "statistics object public.pairs belongs to maker",
    );
    refused(&mut client, "CALL from_uuid.move('notes', keep_as => 'uuid')", "P0001");
    refused(&mut client, "CALL from_uuid.move('tagged', keep_as => 'uuid')", "P0001");
    refusal(
        &mut client,
        "CREATE ROLE clerk; GRANT INSERT (name) ON users TO clerk; REVOKE EXECUTE ON FUNCTION snowflake_next() FROM PUBLIC",
        "clerk may insert into public.users, and not execute public.snowflake_next()",
    );
    // A row that refers to none, by a foreign key that has not been checked.
    refusal_of_a_lost_row(&mut client);
}

fn refusal_of_a_lost_row(client: &mut Client) {
    call(client, "CREATE TABLE late (user_id uuid); INSERT INTO late VALUES (gen_random_uuid())");
    call(client, "ALTER TABLE late ADD FOREIGN KEY (user_id) REFERENCES users NOT VALID");
    let error = refused(client, "CALL from_uuid.move('users', keep_as => 'uuid')", "P0001");
    assert!(error.message().starts_with("no row has the key "), "{error:?}");
    let kind =
        "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'users'::regclass AND attname = 'id'";
    assert_eq!(value::<String>(client, kind), "uuid");
}

/// Whoever may read or write the key may do so with the old one.
#[test]
fn privileges_of_the_key_hold_for_the_old_one() {
    let cluster = server(TABLES);
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE ROLE \"The Clerk\"; CREATE ROLE reader; GRANT SELECT (id), INSERT (id, name, created_at) ON users TO \"The Clerk\";
         GRANT SELECT (id) ON users TO reader WITH GRANT OPTION; GRANT REFERENCES (id) ON users TO PUBLIC",
    );
    let privileges = |client: &mut Client, column: &str| -> String {
        let query = "SELECT string_agg(item::text, ' ' ORDER BY item::text) FROM pg_attribute, unnest(attacl) AS item \
                     WHERE attrelid = 'users'::regclass AND attname = ";
        value(client, &format!("{query}'{column}'"))
    };
    let before = privileges(&mut client, "id");
    call(&mut client, "CALL from_uuid.move('users', keep_as => 'uuid')");
    assert_eq!(privileges(&mut client, "uuid"), before);
    assert_eq!(privileges(&mut client, "id"), before);
    let insert = "INSERT INTO users (uuid, name, created_at) VALUES (gen_random_uuid(), 'new', now())";
    call(&mut client, &format!("SET ROLE \"The Clerk\"; {insert}"));
    assert_eq!(value::<i64>(&mut client, "SELECT count(uuid) FROM users"), 51);
}

/// A function of the name that another role has made is not called, and becomes no default.
#[test]
fn it_calls_no_function_of_others() {
    let cluster = server(TABLES);
    let mut superuser = cluster.client();
    call(
        &mut superuser,
        "DROP EXTENSION pg_snowflake; CREATE ROLE mallory LOGIN; GRANT CREATE ON DATABASE postgres TO mallory",
    );
    let make = "CREATE SCHEMA _snowflake; CREATE FUNCTION _snowflake.snowflake_next() RETURNS bigint LANGUAGE plpgsql AS \
                'BEGIN RAISE LOG ''sprung: as %'', current_user; RETURN 1 + (random() * 1e15)::bigint; END'";
    call(&mut cluster.client_of("mallory", "postgres"), make);
    let step = "CALL from_uuid.move('users', keep_as => 'uuid')";
    assert_eq!(refused(&mut superuser, step, "P0001").message(), "there is no function snowflake_next()");
    assert!(hostile::sprung(&cluster).is_empty(), "{:?}", hostile::sprung(&cluster));
    // That of the caller is called: so it is with the extension in SQL, which the database's owner has installed.
    call(&mut superuser, "ALTER SCHEMA _snowflake OWNER TO postgres");
    refused(&mut superuser, step, "P0001");
    call(&mut superuser, "ALTER FUNCTION _snowflake.snowflake_next() OWNER TO postgres");
    call(&mut superuser, step);
}

/// The old key compares as it did, also while rows get their new ones.
#[test]
fn the_collation_of_the_old_key_is_kept() {
    // Where PostgreSQL is built without ICU, all collations tell the cases apart.
    let probe = "CREATE COLLATION probe (provider = icu, locale = 'und')";
    let has_icu = server("").client().batch_execute(probe).is_ok();
    let (collation, [a, c, b], in_order) = match has_icu {
        true => ("provider = icu, locale = 'und-u-ks-level2', deterministic = false", ["A", "c", "B"], "aC"),
        false => ("locale = 'C'", ["a", "C", "b"], "Ca"),
    };
    let cluster = server(&format!(
        "CREATE COLLATION \"any Case\" ({collation});
         CREATE TABLE tags (name varchar(20) COLLATE \"any Case\" PRIMARY KEY, n integer);
         CREATE TABLE tagged (tag varchar(20) COLLATE \"any Case\" REFERENCES tags);
         INSERT INTO tags VALUES ('b'), ('a'), ('C'); INSERT INTO tagged VALUES ('{a}'), ('{c}')",
    ));
    let mut client = cluster.client();
    call(&mut client, "CALL from_uuid.move('tags', keep_as => 'tag_name')");
    let kept = "SELECT format_type(atttypid, atttypmod) || ' ' || collname FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation \
                WHERE attrelid = 'tags'::regclass AND attname = 'tag_name'";
    assert_eq!(value::<String>(&mut client, kept), "character varying(20) any Case");
    refused(&mut client, &format!("INSERT INTO tags (tag_name) VALUES ('{b}')"), "23505");
    let names = "SELECT string_agg(tag_name, '' ORDER BY tags.name) FROM tags JOIN tagged ON tag = tags.name";
    assert_eq!(value::<String>(&mut client, names), in_order);
}

/// Whoever comes later waits behind it: so it does not wait for long.
#[test]
fn it_does_not_keep_others_waiting() {
    let cluster = server(TABLES);
    let (mut reader, mut client) = (cluster.client(), cluster.client());
    call(&mut reader, "BEGIN; SELECT count(*) FROM notes");
    let step = "CALL from_uuid.move('users', keep_as => 'uuid')";
    call(&mut client, "SET statement_timeout = '1min'; SET lock_timeout = '100ms'");
    refused(&mut client, step, "55P03");
    call(&mut client, "RESET lock_timeout");
    let begun = Instant::now();
    refused(&mut client, step, "55P03");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    call(&mut reader, "COMMIT");
    call(&mut client, step);
}
