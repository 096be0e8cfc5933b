//! Texts that callers give: in every encoding a database can have, and of any length. The functions and their arguments
//! are those of the catalogue, so a new one is tested as soon as it is there.

use postgres::Client;
use snowflake_test::programs::cpu_micros;
use snowflake_test::{Cluster, value};
use std::fs;
use std::time::{Duration, Instant};

/// The functions with arguments that are texts: their names, and the names and types of their arguments. But for the input of a type, which is
/// bigint's, and for those that the planner calls with texts of its own, which take "any": another text bounds nothing.
const FUNCTIONS: &str = "
    SELECT p.oid::regproc::text, proargnames[:pronargs],
        ARRAY(SELECT format_type(type, NULL) FROM unnest(proargtypes) WITH ORDINALITY a (type, place) ORDER BY place)
    FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
    JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    WHERE extname = 'pg_snowflake' AND NOT EXISTS (SELECT FROM pg_type WHERE typinput = p.oid)
        AND obj_description(p.oid, 'pg_proc') NOT LIKE 'part of %' AND 'pg_catalog.\"any\"'::regtype <> ALL (proargtypes) AND EXISTS (
        SELECT FROM unnest(proargtypes) type JOIN pg_type t ON t.oid = type LEFT JOIN pg_type element ON element.oid = t.typelem
        WHERE p.prokind = 'f' AND ('S' IN (t.typcategory, element.typcategory) OR 'cstring'::regtype IN (t.oid, element.oid)))
    ORDER BY p.oid";

/// Encodings, each with an expression for a character that is not ASCII, and its number of bytes.
const ENCODINGS: [(&str, &str, usize); 5] = [
    ("UTF8", "chr(252)", 2),
    ("LATIN1", "chr(252)", 1),
    ("WIN1252", "chr(252)", 1),
    ("EUC_JP", "convert_from('\\xc3ed', 'EUC_JP')", 2),
    ("SQL_ASCII", "E'\\xff'", 1),
];

/// A function of the extension. Procedures pass their texts on to functions.
struct Function {
    name: String,
    arguments: Vec<(String, String)>,
}

impl Function {
    /// All those that have arguments which are texts.
    fn all(client: &mut Client) -> Vec<Self> {
        let functions: Vec<Self> = client
            .query(FUNCTIONS, &[])
            .unwrap()
            .iter()
            .map(|row| {
                let (names, types): (Vec<String>, Vec<String>) = (row.get(1), row.get(2));
                Self { name: row.get(0), arguments: names.into_iter().zip(types).collect() }
            })
            .collect();
        assert!(functions.len() > 20, "the extension has fewer functions than it had");
        functions
    }

    /// The numbers of its arguments that are texts, or arrays of texts.
    fn texts(&self) -> Vec<usize> {
        let is_text = |of_type: &str| {
            ["text", "name", "character varying", "character", "cstring"].contains(&of_type.trim_end_matches("[]"))
        };
        let texts: Vec<usize> = (0..self.arguments.len()).filter(|&place| is_text(&self.arguments[place].1)).collect();
        assert!(!texts.is_empty(), "{}: this test does not know the type of its text", self.name);
        texts
    }

    /// Those of them that can be of any length.
    fn long_texts(&self) -> Vec<usize> {
        self.texts().into_iter().filter(|&place| !self.arguments[place].1.starts_with("name")).collect()
    }

    /// A call with this expression in place of one of the arguments. The others have values that are right.
    fn call(&self, place: usize, expression: &str) -> String {
        let values: Vec<String> = (0..self.arguments.len())
            .map(|other| {
                let of_type = &self.arguments[other].1;
                let value = match other == place {
                    false => self.right_value(other).to_owned(),
                    true if of_type.ends_with("[]") => format!("ARRAY[({expression})]"),
                    true if of_type == "cstring" => format!("textout({expression})"),
                    true => expression.to_owned(),
                };
                format!("({value})::{of_type}")
            })
            .collect();
        format!("SELECT * FROM {}({})", self.name, values.join(", "))
    }

    fn right_value(&self, place: usize) -> &'static str {
        let (name, of_type) = &self.arguments[place];
        match (&**of_type, &**name) {
            ("bigint" | "integer" | "double precision", _) => "1",
            ("boolean", _) => "false",
            ("interval", _) => "'1 day'",
            ("timestamp with time zone" | "timestamp without time zone" | "date", _) => "'2026-01-01'",
            ("regclass", _) => "'kept'",
            ("regclass[]", _) => "'{kept}'",
            ("name", "col" | "key_column") => "'id'",
            ("text", "layout") => "'twitter'",
            ("text", "form") => "'hex'",
            ("text", "text") => "'0000000000000001'",
            ("text", "views") => "'refuse'",
            ("text", "expired") => "'detach'",
            ("text", "default_rows") => "'refuse'",
            _ => panic!("{}: give a value that is right for the argument {name} of type {of_type}", self.name),
        }
    }
}

/// What a statement ends with, in a transaction that is rolled back: SQLSTATE, message, detail and hint; or `None`.
fn outcome(client: &mut Client, statement: &str) -> Option<(String, String)> {
    client.batch_execute("BEGIN").unwrap();
    let result = client.simple_query(statement);
    client.batch_execute("ROLLBACK").unwrap();
    let error = result.err()?;
    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
    let words = [Some(error.message()), error.detail(), error.hint()];
    Some((error.code().code().to_owned(), words.into_iter().flatten().collect::<Vec<_>>().join("\n")))
}

/// A database of this encoding, with the extension and a table.
fn database(cluster: &Cluster, encoding: &str) -> Client {
    let name = format!("texts_{}", encoding.to_lowercase());
    let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'");
    cluster.client().batch_execute(&create).unwrap();
    let mut client = cluster.client_of("postgres", &name);
    client.batch_execute("CREATE EXTENSION pg_snowflake; CREATE TABLE kept (id serial PRIMARY KEY, v text)").unwrap();
    client
}

#[test]
fn what_is_not_ascii_is_refused_in_every_encoding_as_in_utf_8() {
    let cluster = Cluster::options().start();
    let mut expected = Vec::new();
    for (encoding, character, bytes) in ENCODINGS {
        let client = &mut database(&cluster, encoding);
        let mut outcomes = Vec::new();
        for function in Function::all(client) {
            for place in function.texts() {
                for text in
                    ["<c>", "'twitter' || <c>", "'timestamp=41 ' || <c> || '=12'", "'0000000000' || <c> || '01'"]
                {
                    let call = function.call(place, &text.replace("<c>", character));
                    let outcome = outcome(client, &call);
                    let code = outcome.as_ref().map_or("", |(code, _)| code);
                    assert!(!code.starts_with("XX"), "{encoding}: {call}: {outcome:?}");
                    outcomes.push((function.call(place, text), outcome));
                }
            }
        }
        assert!(outcomes.iter().filter(|(_, outcome)| outcome.is_some()).count() > 100, "{outcomes:?}");
        if encoding == "UTF8" {
            expected = outcomes;
            continue;
        }
        // The words are the same. Where the text stands, there is a `?` for each byte that is not ASCII; where one character
        // stands, there is one, as the bytes are not known to belong together.
        assert_eq!(outcomes.len(), expected.len());
        for ((call, outcome), (_, in_utf_8)) in outcomes.into_iter().zip(&expected) {
            let wanted = in_utf_8.clone().map(|(code, words)| (code, words.replace('ü', "?")));
            let found = outcome.map(|(code, words)| (code, words.replace(&"?".repeat(bytes), "?")));
            assert_eq!(found, wanted, "{encoding}: {call}");
        }
    }
}

#[test]
fn a_long_text_is_refused_at_once() {
    let cluster = Cluster::options().start();
    for encoding in ["UTF8", "LATIN1"] {
        let client = &mut database(&cluster, encoding);
        let session = value::<i32>(client, "SELECT pg_backend_pid()") as u32;
        client
            .batch_execute(
                "CREATE TABLE long (kind text, v text);
                 INSERT INTO long VALUES ('compressed', repeat('timestamp=41 ', 8000000));
                 ALTER TABLE long ALTER v SET STORAGE EXTERNAL;
                 INSERT INTO long VALUES ('external', repeat('0', 20000000)), ('short', repeat('x', 1000))",
            )
            .unwrap();
        for function in Function::all(client) {
            for place in function.long_texts() {
                for expression in [
                    "SELECT v FROM long WHERE kind = 'compressed'",
                    "SELECT v FROM long WHERE kind = 'external'",
                    "SELECT v FROM long WHERE kind = 'short'",
                    "repeat('0', 20000000)",
                    "repeat(chr(252), 10000000)",
                ] {
                    let call = function.call(place, expression);
                    // Not by the clock, as other work on the machine would count.
                    let before = cpu_micros(session);
                    let outcome = outcome(client, &call);
                    let took = cpu_micros(session) - before;
                    let (code, words) = outcome.unwrap_or_else(|| panic!("{encoding}: {call} is not refused"));
                    assert!(["22023", "22P02"].contains(&&*code), "{encoding}: {call}: {code}: {words}");
                    assert!(words.len() < 2000, "{encoding}: {call}: {} bytes of words", words.len());
                    assert!(words.contains("...\""), "{encoding}: {call}: {words}");
                    assert!(took < 2e6, "{encoding}: {call} took {took} µs");
                }
            }
        }
    }
}

/// The memory of a session, in bytes.
fn memory(client: &mut Client) -> u64 {
    let pid: i32 = value(client, "SELECT pg_backend_pid()");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_long_layout_stays_in_no_memory() {
    let cluster = Cluster::options().start();
    let client = &mut cluster.client();
    let layout = |spaces: usize| format!("'timestamp=41 sequence=12' || repeat(' ', {spaces})");
    let call = |spaces: usize| format!("SELECT snowflake_timestamp(1, {})", layout(spaces));
    // What is short may have spaces.
    assert!(outcome(client, &call(100)).is_none());
    let before = memory(client);
    for spaces in 0..20 {
        assert!(outcome(client, &call(50_000_000 + spaces)).is_some());
        assert!(outcome(client, &call(50 + spaces)).is_none());
    }
    let after = memory(client);
    assert!(after < before + 40_000_000, "{before} bytes, and then {after}");
}

#[test]
fn layouts_and_ids_in_other_storage_are_read() {
    let cluster = Cluster::options().start();
    let client = &mut cluster.client();
    client
        .batch_execute(
            "CREATE TABLE stored (layout text, form text, id text, filler text) WITH (toast_tuple_target = 128);
             ALTER TABLE stored ALTER filler SET STORAGE PLAIN;
             INSERT INTO stored VALUES ('twitter', 'hex', '0000000000400000', '');
             INSERT INTO stored SELECT 'timestamp=41 datacenter=5 worker=5' || repeat(' ', 150) || 'sequence=12', form, id, repeat('x', 4000)
             FROM stored;
             ALTER TABLE stored ALTER layout SET STORAGE EXTERNAL;
             INSERT INTO stored SELECT layout || '', form, id, filler || '' FROM stored",
        )
        .unwrap();
    let compressed = "SELECT count(*) FROM stored WHERE pg_column_compression(layout) IS NOT NULL";
    assert_eq!(value::<i64>(client, compressed), 1);
    let outside = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'stored'::regclass";
    assert!(value::<i64>(client, outside) > 0);
    let times = "SELECT count(DISTINCT snowflake_timestamp(snowflake_from_text(id, form), layout)) FROM stored";
    assert_eq!(value::<i64>(client, times), 2);
    // A datum of its own with a long header, and a short one.
    let forms = "SELECT snowflake_from_text(id, form || '') = snowflake_from_text(id || '', form) FROM stored LIMIT 1";
    assert!(value::<bool>(client, forms));
}

#[test]
fn values_of_parameters_that_are_not_ascii_are_refused_in_every_encoding() {
    let cluster = Cluster::options().start();
    for (encoding, character) in [("UTF8", "ü"), ("LATIN1", "ü"), ("EUC_JP", "注")] {
        let client = &mut database(&cluster, encoding);
        for parameter in ["layout", "epoch", "registry", "registry_namespace"] {
            let text = if parameter == "registry_namespace" { "\n" } else { "" };
            for length in [1, 10_000] {
                let text = character.repeat(length) + text;
                let error =
                    client.batch_execute(&format!("ALTER SYSTEM SET pg_snowflake.{parameter} = '{text}'")).unwrap_err();
                let error = error.as_db_error().unwrap_or_else(|| panic!("{encoding} {parameter}: {error:?}"));
                assert_eq!(error.code().code(), "22023", "{encoding} {parameter}: {error:?}");
                let detail = error.detail().unwrap_or_default();
                assert!(!detail.is_empty() && detail.len() < 500, "{encoding} {parameter}: {error:?}");
                let shown =
                    if encoding == "UTF8" { detail.to_owned() } else { detail.replace(|c: char| !c.is_ascii(), "!") };
                assert_eq!(detail, shown, "{encoding} {parameter}");
            }
        }
    }
}

#[test]
fn the_planner_reads_texts_of_every_encoding() {
    let cluster = Cluster::options().start();
    for (encoding, character, _) in ENCODINGS {
        let client = &mut database(&cluster, encoding);
        client.batch_execute("CREATE TABLE times (id bigint PRIMARY KEY)").unwrap();
        let expressions = [
            "date_trunc(<c>, snowflake_timestamp(id))",
            "date_part(<c>, snowflake_timestamp(id))",
            "date_trunc('day', snowflake_timestamp(id), <c>)",
            "snowflake_timestamp(id, <c>)",
        ];
        let expressions = expressions.map(|expression| expression.replace("<c>", &format!("({character})::text")));
        for expression in &expressions {
            let at = "'2026-01-01 00:00+00'::timestamptz";
            for query in [
                format!("SELECT {expression}, count(*) FROM times GROUP BY 1"),
                format!("SELECT FROM times ORDER BY {expression}"),
                format!("SELECT FROM times WHERE snowflake_timestamp(id, {character}) > {at}"),
            ] {
                // There are no rows, so only the planner reads the text.
                let code = outcome(client, &query).map_or_else(String::new, |(code, _)| code);
                assert!(!code.starts_with("XX"), "{encoding}: {query}: {code}");
            }
        }
    }
}

#[test]
fn the_planner_reads_expressions_of_every_encoding() {
    let cluster = Cluster::options().start();
    for (encoding, character, _) in ENCODINGS {
        let client = &mut database(&cluster, encoding);
        // The name stands in the expression as PostgreSQL stores it.
        let statement = "
            CREATE FUNCTION doubled(%1$I bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
            CREATE TABLE parts (id bigint) PARTITION BY RANGE (doubled(%1$I => id));
            CREATE TABLE part PARTITION OF parts DEFAULT;
            CREATE INDEX ON part (doubled(%1$I => id))";
        let statement = statement.replace('\'', "''");
        client.batch_execute(&format!("DO $do$ BEGIN EXECUTE format('{statement}', {character}); END $do$")).unwrap();
        let query = "SELECT FROM parts WHERE snowflake_timestamp(id) > '2026-01-01' ORDER BY snowflake_timestamp(id)";
        assert_eq!(outcome(client, query), None, "{encoding}");
    }
}

#[test]
fn names_of_tables_are_read_in_every_encoding_by_rewind() {
    let cluster = Cluster::options().start();
    for (encoding, character, bytes) in ENCODINGS {
        let client = &mut database(&cluster, encoding);
        let create = "CREATE TABLE %I (id bigint PRIMARY KEY DEFAULT snowflake_next())";
        client.batch_execute(&format!("DO $$ BEGIN EXECUTE format('{create}', {character}); END $$")).unwrap();
        let insert = "INSERT INTO %I DEFAULT VALUES";
        client.batch_execute(&format!("DO $$ BEGIN EXECUTE format('{insert}', {character}); END $$")).unwrap();
        let (code, words) = outcome(client, "SELECT snowflake_rewind(1)").unwrap();
        assert_eq!(code, "55000", "{encoding}: {words}");
        let shown = if encoding == "UTF8" { "ü".to_owned() } else { "?".repeat(bytes) };
        assert!(words.contains(&shown), "{encoding}: {words}");
    }
}

#[test]
fn great_numbers_heed_timeouts() {
    let cluster = Cluster::options().start();
    let client = &mut database(&cluster, "UTF8");
    client.batch_execute("CREATE TABLE parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id)").unwrap();
    client.batch_execute("SET statement_timeout = '300ms'").unwrap();
    for statement in [
        "SELECT count(*) FROM snowflake_next(2147483647)",
        "SELECT snowflake_next(2147483647) LIMIT 1 OFFSET 2147483646",
        "SELECT count(*) FROM snowflake_preflight(keys => array_fill('kept'::regclass, ARRAY[10000]))",
        "SELECT count(*) FROM snowflake_preflight(keys => array_fill('kept'::regclass, ARRAY[10001]))",
        "SELECT count(*) FROM snowflake_preflight(keys => array_fill(1::regclass, ARRAY[20000000]))",
        "SELECT count(*) FROM snowflake_create_partitions('parts', '1 second', now(), now() + '1000 seconds')",
        "SELECT count(*) FROM snowflake_create_partitions('parts', '1 second', '2024-01-01', '2093-01-01')",
        "SELECT count(*) FROM snowflake_create_partitions('parts', '1 microsecond', '2024-01-01', '2093-01-01')",
    ] {
        let start = Instant::now();
        let (code, words) = outcome(client, statement).unwrap_or_else(|| panic!("{statement} succeeded"));
        assert!(["57014", "54000", "22023"].contains(&&*code), "{statement}: {code}: {words}");
        assert!(start.elapsed() < Duration::from_secs(5), "{statement} took {:?}", start.elapsed());
    }
}

#[test]
fn parameters_of_the_registry_are_shown_in_every_encoding() {
    let url = "postgres://ids@localhost:1/ids?sslrootcert=/etc/ü.pem";
    let cluster = Cluster::options().set(&format!("pg_snowflake.registry = '{url}'")).start();
    for (encoding, ..) in ENCODINGS {
        let client = &mut database(&cluster, encoding);
        for query in ["SHOW pg_snowflake.registry", "SELECT registry FROM snowflake_status()"] {
            let shown = if encoding == "UTF8" { url.to_owned() } else { url.replace('ü', "?") };
            assert_eq!(value::<String>(client, query), shown, "{encoding}: {query}");
        }
    }
}
