//! Queries that once did much more work with `pg_snowflake.plan_by_time` than without, or than with a column for the time.

use super::cluster;
use super::measure::Work;
use postgres::Client;
use snowflake_test::Cluster;

/// 100,000 rows of 30 days, of 10 tenants, in the order in which they came; and 20 instants of rows.
const ROWS: &str = "
    CREATE TABLE made AS SELECT snowflake_encode('2026-01-01'::timestamptz + n * interval '25.92 s', 1) AS id, n % 10 AS tenant, n
        FROM generate_series(0, 99999) n;
    CREATE TABLE few AS SELECT snowflake_timestamp(id) AS at, tenant, n FROM made WHERE n % 5000 = 7;
    CREATE TABLE newest AS SELECT snowflake_timestamp(id) AS at, tenant, n FROM made WHERE n >= 99980";

const TABLE: &str = "
    CREATE TABLE r (id bigint NOT NULL, tenant integer, n integer); INSERT INTO r TABLE made;
    CREATE TABLE r_column (id bigint NOT NULL, tenant integer, n integer, created_at timestamptz NOT NULL);
    INSERT INTO r_column SELECT id, tenant, n, snowflake_timestamp(id) FROM made";

/// A server with tables `r` and `r_column`, which these statements make.
struct Case {
    _cluster: Cluster,
    client: Client,
}

impl Case {
    fn new(statements: &[&str]) -> Self {
        let cluster = cluster();
        let mut client = cluster.client();
        for statement in [ROWS].iter().chain(statements).flat_map(|text| text.split(';')) {
            client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
        client.batch_execute("VACUUM ANALYZE").unwrap();
        client.batch_execute("SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC'").unwrap();
        Self { _cluster: cluster, client }
    }

    /// `‹r›` is the table, and `‹t›` its time. Returns the rows as text, what was done, and how.
    fn run(&mut self, query: &str, column: bool, state: &str) -> (String, Work, String) {
        let query = if column {
            query.replace("‹r›", "r_column AS r").replace("‹t›", "r.created_at")
        } else {
            query.replace("‹r›", "r AS r").replace("‹t›", "snowflake_timestamp(r.id)")
        };
        let mut text = |query: &str| -> String {
            let messages = self.client.simple_query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
            let row = |message| match message {
                postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            };
            messages.into_iter().filter_map(row).collect::<Vec<_>>().join("\n")
        };
        text(&format!("SET pg_snowflake.plan_by_time = {state}"));
        let work = Work::of(&text(&format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {query}")));
        let plan = text(&format!("EXPLAIN {query}"));
        (text(&format!("SELECT coalesce(string_agg(q::text, ' ' ORDER BY q::text), '') FROM ({query}) q")), work, plan)
    }

    /// With the parameter on, it does no more than with it off, and than with the column.
    #[track_caller]
    fn does_no_more(&mut self, query: &str) {
        let [on, off, column] =
            [(false, "on"), (false, "off"), (true, "off")].map(|(column, state)| self.run(query, column, state));
        assert_eq!(on.0, off.0, "{query}");
        assert_eq!(on.0, column.0, "{query}");
        let report = [("on", &on), ("off", &off), ("a column", &column)]
            .map(|(title, (_, work, plan))| format!("{title}: {work:?}\n{plan}\n\n"))
            .concat();
        assert!(!on.1.exceeds(&off.1) && !on.1.exceeds(&column.1), "{query}\n\n{report}");
    }
}

const KEY: &str = "ALTER TABLE r ADD PRIMARY KEY (id); ALTER TABLE r_column ADD PRIMARY KEY (id)";
const COLUMN_INDEX: &str = "CREATE INDEX ON r_column (created_at, id)";
const TIME_INDEX: &str = "CREATE INDEX ON r (snowflake_timestamp(id))";

/// A: the subquery is made unique, and the index asked for each of its rows.
#[test]
fn in_with_a_subquery_asks_the_key() {
    let mut case = Case::new(&[TABLE, KEY, COLUMN_INDEX]);
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE ‹t› IN (SELECT at FROM few)");
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE EXISTS (SELECT FROM few WHERE at = ‹t›)");
}

/// A, with the subquery in an array, whose elements are known when the query runs.
#[test]
fn an_array_of_a_subquery_asks_the_key() {
    let mut case = Case::new(&[TABLE, KEY, COLUMN_INDEX]);
    for query in [
        "SELECT count(*) FROM ‹r› WHERE ‹t› = ANY (ARRAY(SELECT at FROM few))",
        "SELECT count(*) FROM ‹r› WHERE ‹t› = ANY ((SELECT array_agg(at) FROM few)::timestamptz[])",
    ] {
        case.does_no_more(query);
    }
}

/// A, with an index on the key and one on the time.
#[test]
fn in_with_a_subquery_asks_the_index_on_the_time() {
    let mut case = Case::new(&[TABLE, KEY, TIME_INDEX, COLUMN_INDEX]);
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE ‹t› IN (SELECT at FROM few)");
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE ‹t› IN (SELECT at FROM few WHERE few.tenant = r.tenant)");
}

/// A, with an index on something else and the time, and a condition that no index serves. It is the ID that has few rows for each time.
#[test]
fn in_with_a_subquery_asks_the_key_and_not_a_rival() {
    const WANTED: &str = "CREATE TABLE wanted AS SELECT snowflake_timestamp(id) AS at FROM made WHERE n % 833 = 7";
    let rival = "CREATE INDEX ON r (n, snowflake_timestamp(id)); CREATE INDEX ON r_column (n, created_at)";
    let mut case = Case::new(&[WANTED, TABLE, KEY, rival, COLUMN_INDEX]);
    for condition in ["‹t›::date = '2026-01-13'", "r.tenant = 7", "abs(r.tenant) < 9"] {
        for from in ["‹r› WHERE ‹t› IN (SELECT at FROM wanted)", "wanted JOIN ‹r› ON ‹t› = wanted.at WHERE true"]
        {
            case.does_no_more(&format!("SELECT count(*), sum(r.n) FROM {from} AND {condition}"));
        }
    }
}

/// A, with values in place of a subquery.
#[test]
fn in_with_a_list_asks_the_key() {
    let mut case = Case::new(&[TABLE, KEY, COLUMN_INDEX]);
    for list in ["'2026-01-05', '2026-01-10 12:00:00', '2026-01-20'", "'2026-01-05 01:12:00'"] {
        case.does_no_more(&format!("SELECT count(*) FROM ‹r› WHERE ‹t› IN ({list})"));
    }
    let list: Vec<_> = (1..=20).map(|day| format!("'2026-01-{day:02}'")).collect();
    case.does_no_more(&format!("SELECT count(*) FROM ‹r› WHERE ‹t› IN ({})", list.join(", ")));
    case.does_no_more(&format!(
        "SELECT count(*) FROM ‹r› WHERE ‹t› = ANY ('{{{}}}')",
        list.join(", ").replace('\'', "")
    ));
    // Beside a condition that the index reads too much for, and one that takes long for each row.
    case.does_no_more(&format!(
        "SELECT count(*) FROM ‹r› WHERE ‹t› IN ({}) AND (‹t›, r.id) > ('2026-01-02', 7) \
         AND r.n NOT IN (SELECT count(*) FROM few WHERE few.tenant = r.tenant)",
        list.join(", ")
    ));
}

/// A list within an OR becomes alternatives of that, which indexes serve. A small table is read as a whole still, where that is less work.
#[test]
fn small_tables_are_not_asked_for_each_value() {
    let parts: String = ["r", "r_column"]
        .iter()
        .flat_map(|table| (0..8).map(move |part| (table, part)))
        .map(|(table, part)| {
            let values = format!("FOR VALUES WITH (MODULUS 8, REMAINDER {part})");
            format!("CREATE TABLE {table}_{part} PARTITION OF {table} {values};")
        })
        .collect();
    let tables = format!(
        "CREATE TABLE r (id bigint NOT NULL, tenant integer, n integer) PARTITION BY HASH (n); \
         CREATE TABLE r_column (id bigint NOT NULL, tenant integer, n integer, created_at timestamptz NOT NULL) \
         PARTITION BY HASH (n); {parts} \
         INSERT INTO r TABLE made LIMIT 6000; \
         INSERT INTO r_column SELECT id, tenant, n, snowflake_timestamp(id) FROM r; \
         CREATE INDEX ON r (snowflake_timestamp(id)); CREATE INDEX ON r (n, id); \
         CREATE INDEX ON r_column (created_at); CREATE INDEX ON r_column (n, id)"
    );
    let mut case = Case::new(&[&tables]);
    case.client.batch_execute("SET random_page_cost = 1.1").unwrap();
    let times: Vec<_> = (0..21).map(|hour| format!("'2026-01-01 {hour:02}:00:09'")).collect();
    let list = times.join(", ");
    let newest = "r.id >= snowflake_min_id('2026-01-02 19:11')";
    for condition in [
        format!("‹t› IN ({list}) OR {newest}"),
        format!("{newest} OR ‹t› IN ({list})"),
        format!("r.tenant = 3 AND ‹t› IN ({list}) OR {newest}"),
        format!("(‹t› IN ({list}) OR {newest}) AND r.tenant < 9"),
    ] {
        case.does_no_more(&format!("SELECT r.n FROM ‹r› WHERE {condition}"));
        case.does_no_more(&format!("SELECT r.n, r.tenant FROM ‹r› WHERE {condition}"));
        case.does_no_more(&format!("SELECT r.n FROM ‹r› WHERE {condition} FOR UPDATE"));
    }
}

/// B: what an equality returns is few rows, however many a range would.
#[test]
fn a_join_by_equal_times_asks_the_key_for_each_row() {
    let mut case = Case::new(&[TABLE, KEY, COLUMN_INDEX]);
    case.does_no_more("SELECT count(*), sum(r.n) FROM newest JOIN ‹r› ON ‹t› = newest.at");
    case.does_no_more(
        "SELECT count(*), sum(r.n) FROM newest LEFT JOIN ‹r› ON ‹t› = newest.at AND r.tenant = newest.tenant",
    );
    case.does_no_more(
        "SELECT count(*), sum(r.n) FROM (SELECT * FROM newest ORDER BY at DESC LIMIT 5) AS newest JOIN ‹r› ON newest.at = ‹t›",
    );
}

/// C: the index on tenant and time, not the key, has each tenant's rows side by side.
#[test]
fn the_last_row_before_is_looked_up_by_tenant_and_time() {
    let mut case = Case::new(&[
        TABLE,
        KEY,
        COLUMN_INDEX,
        "CREATE INDEX ON r (tenant, snowflake_timestamp(id)); CREATE INDEX ON r_column (tenant, created_at)",
        "CREATE TABLE nothing AS SELECT at, CASE WHEN n % 2 = 0 THEN tenant ELSE 77 END AS tenant, n FROM few",
    ]);
    for table in ["few", "newest", "nothing"] {
        case.does_no_more(&format!(
            "SELECT p.n, l.at FROM {table} AS p LEFT JOIN LATERAL (SELECT ‹t› AS at FROM ‹r› WHERE r.tenant = p.tenant AND \
             ‹t› <= p.at ORDER BY ‹t› DESC LIMIT 1) AS l ON true"
        ));
    }
}

/// C, with the key's column in the place of the time.
#[test]
fn the_last_row_before_is_looked_up_by_tenant_and_id() {
    let mut case = Case::new(&[
        TABLE,
        KEY,
        COLUMN_INDEX,
        "CREATE INDEX ON r (tenant, id); CREATE INDEX ON r_column (tenant, created_at, id)",
        "CREATE TABLE nothing AS SELECT at, CASE WHEN n % 2 = 0 THEN tenant ELSE 77 END AS tenant, n FROM few",
    ]);
    for table in ["few", "nothing"] {
        case.does_no_more(&format!(
            "SELECT p.n, l.at FROM {table} AS p LEFT JOIN LATERAL (SELECT ‹t› AS at FROM ‹r› WHERE r.tenant = p.tenant AND \
             ‹t› <= p.at ORDER BY ‹t› DESC LIMIT 1) AS l ON true"
        ));
    }
}

const NEWEST_AND_RANGES: [&str; 5] = [
    "SELECT ‹t› FROM ‹r› ORDER BY ‹t› DESC LIMIT 10",
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= '2026-01-10' AND ‹t› < '2026-01-10 01:00:00'",
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› = '2026-01-10'",
    "SELECT max(‹t›) FROM ‹r›",
    "SELECT count(*) FROM few JOIN ‹r› ON ‹t› = few.at",
];

/// D: an index on the ID that cannot serve ranges says nothing of them.
#[test]
fn a_hash_index_on_the_id_does_not_hide_the_one_on_the_time() {
    let mut case = Case::new(&[TABLE, "CREATE INDEX ON r USING hash (id)", TIME_INDEX, COLUMN_INDEX]);
    NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
}

/// D, with an index on the ID that serves ranges coarsely.
#[test]
fn a_brin_index_on_the_id_does_not_hide_the_one_on_the_time() {
    let brin = "CREATE INDEX ON r USING brin (id); CREATE INDEX ON r_column USING brin (created_at)";
    let mut case = Case::new(&[TABLE, brin, TIME_INDEX, COLUMN_INDEX]);
    NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
}

/// D, with an index on the ID that has another column first, or has some of the rows.
#[test]
fn no_index_on_the_id_hides_the_one_on_the_time() {
    for index in ["CREATE INDEX ON r (n, id)", "CREATE INDEX ON r (id) WHERE n < 5", "CREATE INDEX ON r (tenant, id)"] {
        let mut case = Case::new(&[TABLE, index, TIME_INDEX, COLUMN_INDEX]);
        NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
    }
}

/// Statements that divide both tables by the ID, or the time of the column, into four.
fn partitions(key: &str, column: &str) -> String {
    let mut text = format!(
        "CREATE TABLE r (id bigint NOT NULL, tenant integer, n integer) PARTITION BY RANGE ({key}); \
         CREATE TABLE r_column (id bigint NOT NULL, tenant integer, n integer, created_at timestamptz NOT NULL) \
         PARTITION BY RANGE ({column})"
    );
    text += &(bounds("r", key == "id") + &bounds("r_column", false));
    text + "; INSERT INTO r TABLE made; INSERT INTO r_column SELECT id, tenant, n, snowflake_timestamp(id) FROM made"
}

fn bounds(table: &str, by_id: bool) -> String {
    let ends =
        [1, 8, 15, 23, 32].map(|day| if day > 31 { "'2026-02-01'".to_owned() } else { format!("'2026-01-{day:02}'") });
    let ends = ends.map(|end| if by_id { format!("snowflake_min_id({end})") } else { end });
    let range = |(number, pair): (usize, &[String])| {
        format!("; CREATE TABLE {table}_{number} PARTITION OF {table} FOR VALUES FROM ({}) TO ({})", pair[0], pair[1])
    };
    ends.windows(2).enumerate().map(range).collect()
}

/// E: on partitions only.
#[test]
fn an_index_on_the_time_of_partitions_is_used() {
    let indexes: String = (0..4)
        .map(|n| {
            format!("; CREATE INDEX ON r_{n} (snowflake_timestamp(id)); CREATE INDEX ON r_column_{n} (created_at)")
        })
        .collect();
    let mut case = Case::new(&[&(partitions("id", "created_at") + &indexes)]);
    NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE ‹t› IN ('2026-01-05 03:00:00', '2026-01-10')");
}

/// E: by tenant, so that no partition is pruned by the time.
#[test]
fn an_index_on_the_time_of_partitions_by_tenant_is_used() {
    let mut text = String::new();
    for (table, column, time) in
        [("r", "", "(snowflake_timestamp(id))"), ("r_column", ", created_at timestamptz NOT NULL", "created_at")]
    {
        text += &format!(
            "CREATE TABLE {table} (id bigint NOT NULL, tenant integer, n integer{column}) PARTITION BY HASH (tenant);"
        );
        for n in 0..4 {
            text += &format!(
                "CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES WITH (MODULUS 4, REMAINDER {n}); \
                 CREATE INDEX ON {table}_{n} ({time});"
            );
        }
    }
    text += "INSERT INTO r TABLE made; INSERT INTO r_column SELECT id, tenant, n, snowflake_timestamp(id) FROM made";
    let mut case = Case::new(&[&text]);
    NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
}

/// E: on children by inheritance, whose parent has none.
#[test]
fn an_index_on_the_time_of_children_is_used() {
    let mut text = TABLE.replace("TABLE made", "TABLE made LIMIT 0").replace("FROM made", "FROM made LIMIT 0");
    for n in 0..4 {
        text += &format!(
            "; CREATE TABLE r_{n} () INHERITS (r); INSERT INTO r_{n} SELECT * FROM made WHERE n % 4 = {n}; \
             CREATE INDEX ON r_{n} (snowflake_timestamp(id)); \
             CREATE TABLE r_column_{n} () INHERITS (r_column); \
             INSERT INTO r_column_{n} SELECT id, tenant, n, snowflake_timestamp(id) FROM made WHERE n % 4 = {n}; \
             CREATE INDEX ON r_column_{n} (created_at)"
        );
    }
    let mut case = Case::new(&[&text]);
    NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
}

/// E: on members of a UNION ALL, some of which have one on the ID instead.
#[test]
fn an_index_on_the_time_of_members_is_used() {
    let mut text = String::new();
    for n in 0..3 {
        let on = if n == 1 { "id" } else { "snowflake_timestamp(id)" };
        text += &format!(
            "CREATE TABLE r_{n} AS SELECT * FROM made WHERE n % 3 = {n}; CREATE INDEX ON r_{n} ({on}); \
             CREATE TABLE r_column_{n} AS SELECT *, snowflake_timestamp(id) AS created_at FROM made WHERE n % 3 = {n}; \
             CREATE INDEX ON r_column_{n} (created_at, id);"
        );
    }
    let all = |table: &str, time: &str| {
        let member = |n| format!("SELECT id, tenant, n, {time} AS created_at FROM {table}_{n}");
        format!("CREATE VIEW {table} AS {}", [0, 1, 2].map(member).join(" UNION ALL "))
    };
    text += &(all("r", "snowflake_timestamp(id)") + ";" + &all("r_column", "created_at"));
    let mut case = Case::new(&[&text]);
    for query in NEWEST_AND_RANGES {
        case.does_no_more(&query.replace("‹t›", "r.created_at"));
    }
}

const PRUNED: [&str; 6] = [
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= '2026-01-10' AND ‹t› < '2026-01-10 01:00:00'",
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= '2026-01-29'::timestamp",
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= (SELECT min(at) FROM newest)",
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› = '2026-01-10'",
    "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› < '2026-01-05' AND tenant = 3",
    "SELECT ‹t› FROM ‹r› WHERE ‹t› > '2026-01-28' ORDER BY ‹t› DESC LIMIT 10",
];

/// F: by what an ID decodes to.
#[test]
fn partitions_by_the_decoded_time_are_pruned() {
    for key in ["((snowflake_decode(id)).timestamp)", "(snowflake_timestamp(id))"] {
        let mut case = Case::new(&[&partitions(key, "created_at")]);
        PRUNED.iter().for_each(|query| case.does_no_more(query));
    }
}

/// F: by tenant, and then by time.
#[test]
fn partitions_of_tenants_by_the_time_are_pruned() {
    for key in ["(snowflake_timestamp(id))", "((snowflake_decode(id)).timestamp)", "id"] {
        let mut text = String::new();
        for (table, column, key) in [("r", "", key), ("r_column", ", created_at timestamptz NOT NULL", "created_at")] {
            text += &format!(
                "CREATE TABLE {table} (id bigint NOT NULL, tenant integer, n integer{column}) PARTITION BY LIST (tenant)"
            );
            for (number, tenants) in ["0, 1, 2", "3, 4, 5, 6, 7, 8, 9"].into_iter().enumerate() {
                text += &format!(
                    "; CREATE TABLE {table}_t{number} PARTITION OF {table} FOR VALUES IN ({tenants}) PARTITION BY RANGE ({key})"
                );
                text += &bounds(&format!("{table}_t{number}"), key == "id");
            }
            text += ";";
        }
        text +=
            "INSERT INTO r TABLE made; INSERT INTO r_column SELECT id, tenant, n, snowflake_timestamp(id) FROM made";
        let mut case = Case::new(&[&text]);
        PRUNED.iter().for_each(|query| case.does_no_more(query));
    }
}

/// Two tables that are divided by the ID, `r0` and `r1`, and two by a column, `c0` and `c1`; and of each two, a view of these members.
fn union_of_partitions(members: &str) -> String {
    let mut text = String::new();
    for number in 0..2 {
        let parts = partitions("id", "created_at").replace("r_column", &format!("c{number}"));
        let parts =
            parts.replace("INTO r ", &format!("INTO r{number} ")).replace("TABLE r ", &format!("TABLE r{number} "));
        text += &(parts.replace("r_", &format!("r{number}_")).replace("OF r ", &format!("OF r{number} ")) + ";");
    }
    let all = |name: &str, table: &str, time: &str| {
        let members = members.replace('*', "id, tenant, n, ‹t› AS created_at").replace("‹t›", time);
        format!("CREATE VIEW {name} AS {}", members.replace('‹', table).replace('›', ""))
    };
    text + &all("r", "r", "snowflake_timestamp(id)") + ";" + &all("r_column", "c", "created_at")
}

/// Below a UNION ALL, what is known when the query is planned prunes partitions by the ID.
#[test]
fn partitions_of_members_are_pruned() {
    for members in [
        "SELECT * FROM ‹0› UNION ALL SELECT * FROM ‹1›",
        // Members with something of their own are queries.
        "SELECT * FROM ‹0› UNION ALL SELECT * FROM ‹1› WHERE n > 3",
        "SELECT * FROM ‹1› WHERE n > 3 UNION ALL SELECT * FROM ‹0›",
        "SELECT * FROM ‹0› UNION ALL (SELECT * FROM ‹1› ORDER BY n LIMIT 100) UNION ALL SELECT DISTINCT * FROM ‹1_2› UNION ALL SELECT * FROM ‹1›",
        "SELECT * FROM ‹0› UNION ALL (SELECT * FROM ‹1› UNION ALL SELECT * FROM ‹0› OFFSET 0)",
    ] {
        let mut case = Case::new(&[&union_of_partitions(members)]);
        let more = ["SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› IS NULL AND n > 0"];
        for query in PRUNED.iter().filter(|query| !query.contains("SELECT min")).chain(&more) {
            case.does_no_more(&query.replace("‹t›", "r.created_at"));
        }
    }
}

/// A page is as far as the one before, however deep it is.
#[test]
fn a_deep_page_reads_few_rows() {
    let mut case = Case::new(&[TABLE, KEY, COLUMN_INDEX]);
    for (comparison, down) in [("<", " DESC"), (">", "")] {
        for at in ["2026-01-03", "2026-01-15 12:00:00", "2026-01-29"] {
            for id in ["0", "snowflake_min_id('2026-01-15 12:00:00')"] {
                let query = format!(
                    "SELECT ‹t›, r.id FROM ‹r› WHERE (‹t›, r.id) {comparison} ('{at}', {id}) ORDER BY ‹t›{down}, r.id{down} LIMIT 10"
                );
                case.does_no_more(&query);
                let (_, work, plan) = case.run(&query, false, "on");
                assert!(work.rows <= 100.0 && work.pages <= 30.0, "{query}\n{work:?}\n{plan}");
            }
        }
    }
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE (‹t›, r.id) >= ('2026-01-29', 0)");
}

/// Any index on the ID serves ranges of its time, if it serves those of numbers.
#[test]
fn indexes_of_all_kinds_on_the_id_serve_ranges() {
    for (index, image) in [
        ("USING brin (id)", "USING brin (created_at)"),
        ("(id) WHERE id >= snowflake_min_id('2026-01-09')", "(created_at, id) WHERE created_at >= '2026-01-09'"),
        ("(n, id)", "(n, created_at, id)"),
        ("(id DESC NULLS LAST) INCLUDE (n)", "(created_at DESC NULLS LAST, id DESC NULLS LAST) INCLUDE (n)"),
    ] {
        let mut case = Case::new(&[TABLE, &format!("CREATE INDEX ON r {index}; CREATE INDEX ON r_column {image}")]);
        for query in [
            "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= '2026-01-10' AND ‹t› < '2026-01-10 01:00:00'",
            "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› = '2026-01-10'",
            "SELECT count(*), sum(n) FROM ‹r› WHERE n < 90000 AND ‹t› > '2026-01-29 22:00:00'",
        ] {
            case.does_no_more(query);
        }
    }
}

/// Partitions by the ID, for what is known only when the query runs.
#[test]
fn partitions_by_the_id_are_pruned_for_each_row() {
    for index in ["", "; CREATE INDEX ON r (snowflake_timestamp(id)); CREATE INDEX ON r_column (created_at)"] {
        let mut case = Case::new(&[&(partitions("id", "created_at") + index)]);
        for query in [
            "SELECT p.n, (SELECT count(*) FROM ‹r› WHERE ‹t› = p.at) FROM few AS p",
            "SELECT p.n, (SELECT count(*) FROM ‹r› WHERE ‹t› >= p.at AND ‹t› < p.at + interval '1 hour') FROM few AS p",
            "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= (SELECT min(at) FROM newest)",
            "SELECT count(*), sum(n) FROM ‹r› WHERE ‹t› >= '2026-01-29'::timestamp",
        ] {
            case.does_no_more(query);
        }
    }
}

/// What is looked up again and again is kept: PostgreSQL's Memoize asks how each condition of the join is hashed.
#[test]
fn rows_for_equal_values_are_read_once() {
    const AGAIN: &str = "CREATE TABLE again AS SELECT few.at, g AS n FROM (SELECT * FROM few ORDER BY at LIMIT 4) AS few, generate_series(1, 25) AS g";
    for tables in [TABLE, &partitions("id", "created_at"), &partitions("(snowflake_timestamp(id))", "created_at")] {
        for (index, image) in [("snowflake_timestamp(id)", "created_at"), ("id", "created_at, id")] {
            let indexes = format!("CREATE INDEX ON r ({index}); CREATE INDEX ON r_column ({image})");
            let mut case = Case::new(&[AGAIN, tables, &indexes]);
            for query in [
                "SELECT p.n, count(*), sum(r.n) FROM again AS p JOIN ‹r› ON ‹t› >= p.at AND ‹t› < p.at + interval '1 hour' GROUP BY p.n",
                "SELECT p.n, count(*), sum(r.n) FROM again AS p JOIN ‹r› ON ‹t› > p.at - interval '1 hour' AND ‹t› <= p.at GROUP BY p.n",
                "SELECT p.n, count(*), sum(r.n) FROM again AS p JOIN ‹r› ON ‹t› = p.at GROUP BY p.n",
            ] {
                case.does_no_more(query);
                let (_, _, plan) = case.run(query, false, "on");
                assert!(plan.contains("Memoize"), "{tables}\n{indexes}\n{query}\n{plan}");
            }
        }
    }
}

/// A BRIN index asks for statistics of an expression in a way of its own.
#[test]
fn a_brin_index_on_an_expression_is_planned() {
    let brin = "CREATE INDEX ON r USING brin (snowflake_timestamp(id)); CREATE INDEX ON r USING brin ((n + 1)); \
                CREATE INDEX ON r_column USING brin (created_at); CREATE INDEX ON r_column USING brin ((n + 1))";
    let mut case = Case::new(&[TABLE, brin]);
    NEWEST_AND_RANGES.iter().for_each(|query| case.does_no_more(query));
    case.does_no_more("SELECT count(*) FROM ‹r› WHERE n + 1 = 7");
    case.does_no_more("SELECT p.n, (SELECT min(‹t›) FROM ‹r› WHERE r.tenant = p.tenant AND ‹t› < p.at) FROM few AS p");
}

/// 100,000 rows in no order.
const SHUFFLED: &str = "
    CREATE TABLE r (id bigint NOT NULL, tenant integer, n integer, pad text);
    INSERT INTO r SELECT id, tenant, n, repeat('x', 60) FROM made ORDER BY hashint4(n);
    CREATE TABLE r_column (id bigint NOT NULL, tenant integer, n integer, pad text, created_at timestamptz NOT NULL);
    INSERT INTO r_column SELECT id, tenant, n, pad, snowflake_timestamp(id) FROM r";

/// Where the index reads too much, the condition is evaluated for each row that it reads, and that has its price.
#[test]
fn an_index_is_not_read_for_nearly_all_rows() {
    let mut case = Case::new(&[SHUFFLED, KEY, COLUMN_INDEX, "SET random_page_cost = 1.1"]);
    for condition in [
        "‹t›::timestamp - interval '1 day 3 hours' > '2026-01-02'::timestamptz::timestamp - interval '1 day 3 hours'",
        "date_trunc('day', ‹t›) >= date_trunc('day', '2026-01-03'::timestamptz)",
        "‹t›::date <> '2026-01-03' AND ‹t›::date > '2026-01-02'::timestamptz::date",
        "extract(epoch FROM ‹t›) > extract(epoch FROM '2026-01-02'::timestamptz)",
    ] {
        case.does_no_more(&format!("SELECT count(*), sum(r.n) FROM ‹r› WHERE {condition}"));
    }
}

/// Months are taken away by the calendar: what is equal to one value is not looked for in the days around.
#[test]
fn an_index_is_read_for_the_days_that_become_one_by_months() {
    let mut case = Case::new(&[SHUFFLED, KEY, COLUMN_INDEX]);
    let local = "(‹t›::timestamp + interval '13 months')";
    for condition in [
        format!("{local} = ANY (ARRAY['2027-02-10 01:12:00.64'::timestamp, '2027-02-20 10:48:00', NULL])"),
        format!("{local} = '2027-02-10 01:12:00.64'::timestamp"),
        "‹t› - interval '2 months' = '2025-11-10 01:12:00.64'".to_owned(),
        "‹t› + interval '1 month' = ANY (ARRAY['2026-02-10 01:12:00.64', '2026-02-20 10:48:00']::timestamptz[])"
            .to_owned(),
    ] {
        for more in ["true", "‹t› IN (SELECT at FROM few WHERE few.tenant = r.tenant)"] {
            let query = format!("SELECT count(*), sum(r.n) FROM ‹r› WHERE {condition} AND {more}");
            case.does_no_more(&query);
            let (_, work, plan) = case.run(&query, false, "on");
            assert!(work.pages < 20.0, "{query}: {work:?}\n{plan}");
        }
    }
    // Three more days of January become the last of February, and their rows are on nearly as many pages as all.
    for condition in [
        format!("{local} = ANY (ARRAY['2027-02-28 01:12:00.64'::timestamp, '2027-02-20 10:48:00', NULL])"),
        format!("{local} = '2027-02-28 01:12:00.64'::timestamp"),
        "‹t› + interval '1 month' = '2026-02-28 01:12:00.64'".to_owned(),
        "‹t› + interval '1 month' = $$2026-02-28 01:12:00.64$$::text::timestamptz".to_owned(),
    ] {
        for more in ["true", "r.n <> 7", "‹t› IN (SELECT at FROM few WHERE few.tenant = r.tenant)"] {
            case.does_no_more(&format!("SELECT count(*), sum(r.n) FROM ‹r› WHERE {condition} AND {more}"));
        }
    }
}
