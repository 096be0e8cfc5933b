//! What else makes IDs in PostgreSQL.

use postgres::Client;

/// A way to make IDs: the expression that gives one, and the column that has it as its default.
#[derive(Clone)]
pub struct Contender {
    /// Its name in tables.
    pub name: String,
    /// Gives an ID.
    pub expression: String,
    /// The type of a column of such IDs.
    pub column: &'static str,
}

impl Contender {
    fn new(name: &str, expression: &str, column: &'static str) -> Self {
        Self { name: name.to_owned(), expression: expression.to_owned(), column }
    }
}

/// pg_snowflake.
pub const OURS: &str = "snowflake_next()";
/// Only the time, and no ID: what an ID with a time costs at least, one would think.
pub const CLOCK: &str = "clock_timestamp()";
/// The sequence of `bigserial`.
pub const SEQUENCE: &str = "nextval";
/// A sequence of which each session takes 1,000 numbers at once.
pub const CACHED_SEQUENCE: &str = "nextval, CACHE 1000";
/// The random UUID.
pub const UUID_V4: &str = "gen_random_uuid()";
/// Instagram's function, which repeats IDs where more than 1,024 are made in a millisecond or the clock goes back.
pub const INSTAGRAM: &str = "Instagram's, in PL/pgSQL";
/// The time-ordered UUID of PostgreSQL 18.
pub const UUID_V7: &str = "uuidv7()";
/// A time-ordered UUID, as people write it in SQL before PostgreSQL 18.
pub const UUID_V7_IN_SQL: &str = "UUIDv7 in SQL";

/// Creates what the expressions need. The two functions are as published: Instagram's of 2012 (41 bits of milliseconds,
/// 13 of shard, 10 of a sequence), and a random UUID into which the time and the version are put (RFC 9562).
pub const SETUP: &str = "
CREATE SEQUENCE plain;
CREATE SEQUENCE cached CACHE 1000;
CREATE SEQUENCE instagram_sequence;
CREATE FUNCTION instagram_next(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    epoch bigint := 1314220021721;
    shard integer := 5;
    sequence bigint;
    millis bigint;
BEGIN
    SELECT nextval('instagram_sequence') % 1024 INTO sequence;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO millis;
    result := (millis - epoch) << 23;
    result := result | (shard << 10);
    result := result | sequence;
END $$;
CREATE FUNCTION uuidv7_in_sql() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT encode(set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
                placing substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6),
        52, 1), 53, 1), 'hex')::uuid
$$;";

/// Extensions that make IDs: by whom, the extension's name, the expression, its type.
const EXTENSIONS: [(&str, &str, &str, &str); 4] = [
    ("pgEdge", "snowflake", "snowflake.nextval()", "bigint"),
    ("pg_uuidv7", "pg_uuidv7", "uuid_generate_v7()", "uuid"),
    ("uuid-ossp", "uuid-ossp", "uuid_generate_v1()", "uuid"),
    ("pgx_ulid", "pgx_ulid", "gen_monotonic_ulid()", "ulid"),
];

/// What these extensions need in `postgresql.conf`.
pub const SETTINGS: &str = "snowflake.node = 1";

/// Creates all contenders that the server has, pg_snowflake first. Adds the others to `skipped`.
pub fn create(client: &mut Client, skipped: &mut Vec<String>) -> Vec<Contender> {
    client.batch_execute(SETUP).unwrap();
    let mut all = vec![
        Contender::new(OURS, "snowflake_next()", "bigint"),
        Contender::new(CLOCK, "clock_timestamp()", "timestamptz"),
        Contender::new(SEQUENCE, "nextval('plain')", "bigint"),
        Contender::new(CACHED_SEQUENCE, "nextval('cached')", "bigint"),
        Contender::new(UUID_V4, "gen_random_uuid()", "uuid"),
        Contender::new(INSTAGRAM, "instagram_next()", "bigint"),
        Contender::new(UUID_V7_IN_SQL, "uuidv7_in_sql()", "uuid"),
    ];
    let version: i32 = client.query_one("SELECT current_setting('server_version_num')::int", &[]).unwrap().get(0);
    if version >= 180_000 {
        all.push(Contender::new(UUID_V7, "uuidv7()", "uuid"));
    } else {
        skipped.push(format!("{UUID_V7}: comes with PostgreSQL 18"));
    }
    for (name, extension, expression, column) in EXTENSIONS {
        let available = "SELECT 1 FROM pg_available_extensions WHERE name = $1";
        if client.query_opt(available, &[&extension]).unwrap().is_none() {
            skipped.push(format!("{expression} of {name}: the extension is not installed on this server"));
            continue;
        }
        let created = client
            .batch_execute(&format!("CREATE EXTENSION \"{extension}\""))
            .and_then(|()| client.batch_execute(&format!("SELECT {expression}")));
        match created {
            Ok(()) => all.push(Contender::new(&format!("{expression} of {name}"), expression, column)),
            Err(error) => skipped.push(format!("{expression} of {name}: {error}")),
        }
    }
    all
}
