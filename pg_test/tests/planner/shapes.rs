//! The kinds of queries.

use super::conditions::{Kind, Subject, columns_of_moments};
use super::generator::{Generator, Order, Query};
use super::sources::time_of;

/// The other columns of every item.
const COLUMNS: [&str; 4] = ["id", "tenant", "n", "due"];

/// Makes a query of one kind.
type Shape<'a> = fn(Generator<'a>) -> Query<'a>;

impl<'a> Generator<'a> {
    /// Makes the query.
    pub fn query(mut self) -> Query<'a> {
        let shapes: [(u8, Shape<'a>); 17] = [
            (20, Self::rows),
            (8, Self::aggregate),
            (8, Self::group),
            (6, Self::distinct),
            (6, Self::window),
            (14, Self::join),
            (8, Self::semi_join),
            (6, Self::lateral),
            (8, Self::change),
            (6, Self::cursor),
            (4, Self::set_operation),
            (4, Self::scalar),
            (4, Self::paging),
            (4, Self::calendar),
            (4, Self::using),
            (5, Self::whole_rows),
            (3, Self::locked),
        ];
        let all: u8 = shapes.iter().map(|(weight, _)| weight).sum();
        let mut draw = self.rng.u8(..all);
        for (weight, shape) in shapes {
            if draw < weight {
                return shape(self);
            }
            draw -= weight;
        }
        unreachable!()
    }

    /// What conditions on an item's time may use: its columns alone.
    pub fn subject(&mut self, alias: &'static str) -> Subject<'a> {
        let table = self.sources.iter().find(|source| source.alias == alias).unwrap().table;
        let others = if self.chance(10) { vec![(format!("{alias}.due"), Kind::Timestamptz)] } else { Vec::new() };
        Subject { time: time_of(alias), alias, table, others }
    }

    /// `WHERE ...`, or nothing.
    fn filter(&mut self, subject: &Subject) -> String {
        if self.chance(80) { format!(" WHERE {}", self.condition(subject)) } else { String::new() }
    }

    fn direction(&mut self) -> &'static str {
        self.one_of(&["", "", " ASC", " DESC", " DESC", " DESC NULLS LAST", " NULLS FIRST", " DESC NULLS FIRST"])
    }

    /// `LIMIT ...`, `OFFSET ...`, both or `FETCH FIRST`.
    fn limit(&mut self) -> String {
        let (count, skip) = (self.rng.u8(..60), self.rng.u8(..40));
        match self.rng.u8(..6) {
            0 => format!(" OFFSET {skip}"),
            1 => format!(" LIMIT {count} OFFSET {skip}"),
            2 => format!(" FETCH FIRST {} ROWS WITH TIES", count + 1),
            _ => format!(" LIMIT {count}"),
        }
    }

    /// Columns to order by that make the order total, with the time first.
    fn total_order(&mut self, alias: &str) -> (String, String) {
        let time = time_of(alias);
        let mut columns = COLUMNS.map(|column| format!("{alias}.{column}"));
        self.rng.shuffle(&mut columns[..3]);
        let keys: Vec<_> = columns.iter().map(|column| format!("{column}{}", self.direction())).collect();
        (
            format!("{time}, {}", columns.join(", ")),
            format!(" ORDER BY {time}{}, {}", self.direction(), keys.join(", ")),
        )
    }

    /// Rows of one item, in some order or none.
    fn rows(mut self) -> Query<'a> {
        self.source("a");
        let subject = self.subject("a");
        let (filter, time) = (self.filter(&subject), time_of("a"));
        let all = format!("{time}, a.id, a.tenant, a.n, a.due");
        match self.rng.u8(..10) {
            0..3 => {
                let list = self.one_of(&[all.as_str(), "a.id", "a.*", "a.n, a.id"]);
                let list = if list == "a.*" { "a.id, a.n, a.tenant, a.due" } else { list };
                self.finish("rows", format!("SELECT {list} FROM ‹a›{filter}"), Vec::new(), Order::Any)
            }
            3..7 => {
                let then: &[&str] = self.one_of(&[&[], &[], &["a.id"], &["a.n"], &["a.n", "a.id"], &["a.tenant"]]);
                let mut keys = vec![time];
                keys.extend(then.iter().map(|&key| key.to_owned()));
                if keys.len() > 1 && self.chance(20) {
                    keys.swap(0, 1);
                } else if keys.len() > 1 && self.chance(30) {
                    keys.remove(0);
                }
                let order: Vec<_> = keys.iter().map(|key| format!("{key}{}", self.direction())).collect();
                let (order, count) = (order.join(", "), keys.len());
                // Which rows of equal keys a limit keeps is open, so then there is nothing but the keys.
                let (list, limit) = if self.chance(60) {
                    (keys.join(", "), self.limit())
                } else {
                    (format!("{}, a.id, a.tenant, a.n, a.due", keys.join(", ")), String::new())
                };
                let text = format!("SELECT {list} FROM ‹a›{filter} ORDER BY {order}{limit}");
                self.finish("order", text, Vec::new(), Order::Keys(count))
            }
            _ => {
                let (list, order) = self.total_order("a");
                let limit = if self.chance(70) { self.limit() } else { String::new() };
                let lock = self.sources[0].is_table && !limit.contains("TIES") && self.chance(10);
                let lock = if lock { " FOR UPDATE OF a" } else { "" };
                let text = format!("SELECT {list} FROM ‹a›{filter}{order}{limit}{lock}");
                self.finish("order", text, Vec::new(), Order::Total)
            }
        }
    }

    /// Aggregates without groups.
    fn aggregate(mut self) -> Query<'a> {
        self.source("a");
        let subject = self.subject("a");
        let (filter, time) = (self.filter(&subject), time_of("a"));
        let list = if self.chance(50) {
            self.some_of(&["min(‹a.t›)", "max(‹a.t›)", "max(a.id)"]).join(", ")
        } else {
            let part = self.condition(&subject);
            let order = self.direction();
            let aggregates = [
                "count(*)".to_owned(),
                format!("min({time})"),
                format!("max({time})"),
                "sum(a.n)".to_owned(),
                "max(a.id)".to_owned(),
                format!("count({time})"),
                format!("count(DISTINCT {time})"),
                format!("max({time}) FILTER (WHERE a.n > 3)"),
                format!("count(*) FILTER (WHERE {part})"),
                format!("max({time}) - min({time})"),
                format!("array_agg(a.n ORDER BY {time}{order}, a.id, a.n)"),
                format!("percentile_disc(0.5) WITHIN GROUP (ORDER BY {time})"),
                format!("md5(string_agg(DISTINCT {time}::text, ','))"),
            ];
            let all: Vec<&str> = aggregates.iter().map(String::as_str).collect();
            let mut some = self.some_of(&all);
            self.rng.shuffle(&mut some);
            some.truncate(4);
            some.join(", ")
        };
        self.finish("aggregate", format!("SELECT {list} FROM ‹a›{filter}"), Vec::new(), Order::Total)
    }

    /// What rows are grouped by.
    fn group_key(&mut self) -> String {
        let zone = self.zone;
        let minutes = self.one_of(&[1, 15, 90]);
        match self.rng.u8(..14) {
            0..3 => "‹a.t›".to_owned(),
            3 => "date_trunc('minute', ‹a.t›)".to_owned(),
            4..6 => "date_trunc('day', ‹a.t›)".to_owned(),
            6 => format!("date_trunc('day', ‹a.t›, '{zone}')"),
            7 => "date_trunc('month', ‹a.t›)".to_owned(),
            8..10 => format!("date_bin('{minutes} minutes', ‹a.t›, '2024-01-01 00:07+00')"),
            10 => "‹a.t›::date".to_owned(),
            11 => format!("(‹a.t› AT TIME ZONE '{zone}')"),
            12 => "extract(hour FROM ‹a.t›)".to_owned(),
            _ => "to_char(‹a.t›, 'YYYY-MM')".to_owned(),
        }
    }

    fn group(mut self) -> Query<'a> {
        self.source("a");
        let subject = self.subject("a");
        let filter = self.filter(&subject);
        let mut keys = vec![self.group_key()];
        if self.chance(30) {
            let second = self.one_of(&["a.tenant", "a.n", "‹a.t›"]).to_owned();
            if second != keys[0] {
                keys.insert(self.rng.usize(..2), second);
            }
        }
        let aggregates = [
            "count(*)",
            "sum(a.n)",
            "min(‹a.t›)",
            "max(a.id)",
            "array_agg(a.n ORDER BY ‹a.t›, a.id, a.n)",
            "bool_and(‹a.t› > now())",
        ];
        let aggregates = self.some_of(&aggregates);
        let by = keys.join(", ");
        let grouped = match self.rng.u8(..20) {
            0 => format!("ROLLUP ({by})"),
            1 => format!("CUBE ({by})"),
            2 => format!("GROUPING SETS (({by}), ({}))", keys[0]),
            _ => by.clone(),
        };
        let kind = self.one_of(&[Kind::Timestamptz, Kind::Timestamp, Kind::Date]);
        let having = match self.rng.u8(..10) {
            0..2 => " HAVING count(*) > 2".to_owned(),
            2..4 => {
                let of = if keys.iter().any(|key| key == "‹a.t›") { "‹a.t›" } else { "max(‹a.t›)" };
                format!(" HAVING {of} {} {}", self.operator(), self.operand_of(subject.table, kind))
            }
            _ => String::new(),
        };
        let list = format!("SELECT {by}, {} FROM ‹a›{filter} GROUP BY {grouped}{having}", aggregates.join(", "));
        // With grouping sets, a key can be NULL in several rows.
        if grouped != by {
            return self.finish("group", list, Vec::new(), Order::Any);
        }
        let (order, limit) = if self.chance(60) {
            let order: Vec<_> = keys.iter().map(|key| format!("{key}{}", self.direction())).collect();
            let limit = if self.chance(50) { self.limit() } else { String::new() };
            (format!(" ORDER BY {}", order.join(", ")), limit)
        } else {
            (String::new(), String::new())
        };
        let kind = if order.is_empty() { Order::Any } else { Order::Total };
        self.finish("group", format!("{list}{order}{limit}"), Vec::new(), kind)
    }

    fn distinct(mut self) -> Query<'a> {
        self.source("a");
        let subject = self.subject("a");
        let filter = self.filter(&subject);
        if self.chance(50) {
            let key = self.group_key();
            let list = if self.chance(30) { format!("{key}, a.tenant") } else { key };
            let ordered = self.chance(60);
            let (order, kind) = if ordered {
                let keys: Vec<_> =
                    (1..=list.matches("a.tenant").count() + 1).map(|at| format!("{at}{}", self.direction())).collect();
                let limit = if self.chance(50) { self.limit() } else { String::new() };
                (format!(" ORDER BY {}{limit}", keys.join(", ")), Order::Total)
            } else {
                (String::new(), Order::Any)
            };
            return self.finish(
                "distinct",
                format!("SELECT DISTINCT {list} FROM ‹a›{filter}{order}"),
                Vec::new(),
                kind,
            );
        }
        let (list, order) = self.total_order("a");
        let limit = if self.chance(40) { self.limit() } else { String::new() };
        let text = format!("SELECT DISTINCT ON (‹a.t›) {list} FROM ‹a›{filter}{order}{limit}");
        self.finish("distinct", text, Vec::new(), Order::Total)
    }

    fn window(mut self) -> Query<'a> {
        self.source("a");
        let subject = self.subject("a");
        let filter = self.filter(&subject);
        let (down, partition) = (self.direction(), self.one_of(&["", "", "PARTITION BY a.tenant "]));
        let total = format!("({partition}ORDER BY ‹a.t›{down}, a.id, a.tenant, a.n, a.due)");
        let peers = format!("({partition}ORDER BY ‹a.t›{down})");
        let hour = format!("({partition}ORDER BY ‹a.t› RANGE BETWEEN interval '1 hour' PRECEDING AND CURRENT ROW)");
        let functions = [
            format!("row_number() OVER {total}"),
            format!("lag(‹a.t›) OVER {total}"),
            format!("sum(a.n) OVER {total}"),
            format!("first_value(a.id) OVER {total}"),
            format!("rank() OVER {peers}"),
            format!("dense_rank() OVER {peers}"),
            format!("count(*) OVER {peers}"),
            format!("sum(a.n) OVER {hour}"),
            format!("max(‹a.t›) OVER ({partition})"),
        ];
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        let mut functions = self.some_of(&functions);
        functions.truncate(3);
        let list =
            format!("SELECT ‹a.t› AS t, a.id, a.tenant, a.n, a.due, {} AS w FROM ‹a›{filter}", functions.join(", "));
        match self.rng.u8(..10) {
            0..3 => {
                let text = format!(
                    "SELECT * FROM (SELECT ‹a.t› AS t, a.id, a.tenant, row_number() OVER {total} AS w FROM ‹a›{filter}) \
                     AS numbered WHERE w <= 5"
                );
                self.finish("window", text, Vec::new(), Order::Any)
            }
            3..6 => {
                let text = format!("{list} ORDER BY ‹a.t›{down}");
                self.finish("window", text, Vec::new(), Order::Keys(1))
            }
            _ => self.finish("window", list, Vec::new(), Order::Any),
        }
    }

    /// Adds a second item: `moments`, or another one with IDs. Returns it as an item of FROM, the columns that a time
    /// can be compared with, and a list of its columns.
    fn partner(&mut self, alias: &'static str) -> (String, Vec<(String, Kind)>, String) {
        if self.chance(60) {
            return (
                format!("moments AS {alias}"),
                columns_of_moments(alias),
                format!("{alias}.k, {alias}.at, {alias}.d"),
            );
        }
        self.source(alias);
        let time = time_of(alias);
        let columns = vec![
            (time.clone(), Kind::Timestamptz),
            (format!("{alias}.due"), Kind::Timestamptz),
            (time.clone(), Kind::Timestamptz),
        ];
        (format!("‹{alias}›"), columns, format!("{alias}.id, {alias}.n, {time}"))
    }

    /// A query whose rows are many is reduced to their number and a hash.
    fn reduced(&mut self, text: String) -> String {
        format!("SELECT count(*), sum(hashtextextended(joined::text, 0)) FROM ({text}) AS joined")
    }

    fn join(mut self) -> Query<'a> {
        self.source("a");
        let (partner, others, list) = self.partner("b");
        let mut subject = self.subject("a");
        let alone = subject.clone();
        subject.others = others;
        let kind = self.one_of(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let time = time_of("a");
        let columns = format!("a.id, {time} AS t, a.n, {list}");
        let equal = subject.others[0].0.clone();
        let on = match kind {
            // Of its conditions, one must be fit for merging or hashing.
            "FULL JOIN" if self.chance(50) => format!("{time} = {equal}"),
            _ if !partner.starts_with("moments") && self.chance(20) => {
                format!("a.id = b.id AND {}", self.condition(&subject))
            }
            "FULL JOIN" => format!("a.tenant = b.tenant AND {}", self.condition(&subject)),
            _ if self.chance(25) => format!("{time} = {equal}"),
            _ if self.chance(30) => format!("{time} >= {equal} AND {time} < {equal} + interval '1 hour'"),
            _ if self.chance(30) => format!("a.tenant = b.tenant AND {}", self.condition(&subject)),
            // Two tables have too many pairs.
            _ if !partner.starts_with("moments") => format!("a.n = b.n AND {}", self.condition(&subject)),
            _ => self.condition(&subject),
        };
        let mut from = format!("‹a› {kind} {partner} ON {on}");
        if self.chance(15) {
            let (third, others) = ("moments AS c", columns_of_moments("c"));
            let kind = self.one_of(&["JOIN", "LEFT JOIN"]);
            let condition = self.condition(&Subject { others, ..alone.clone() });
            from = format!("{from} {kind} {third} ON a.tenant = c.tenant AND c.k < 8 AND {condition}");
        }
        let filter = match self.rng.u8(..10) {
            0..3 => String::new(),
            3 => " WHERE b.tenant IS NULL".to_owned(),
            4 => format!(" WHERE {time} IS NULL"),
            5 => format!(" WHERE coalesce({time}, '-infinity') < {}", self.operand(&alone).0),
            6..8 => format!(" WHERE {}", self.condition(&subject)),
            _ => format!(" WHERE {}", self.condition(&alone)),
        };
        if self.chance(25) {
            let direction = self.direction();
            let (keys, count) = match self.rng.u8(..4) {
                0 => (format!("{time} AS t, a.id"), 2),
                1 => (format!("a.id, {time} AS t"), 2),
                2 => (format!("{time} AS t, {equal}"), 2),
                _ => (format!("{time} AS t"), 1),
            };
            let order: Vec<_> = (1..=count).map(|key| format!("{key}{direction}")).collect();
            let (order, limit) = (order.join(", "), self.rng.u8(1..80));
            let text = format!("SELECT {keys} FROM {from}{filter} ORDER BY {order} LIMIT {limit}");
            return self.finish("join", text, Vec::new(), Order::Keys(count));
        }
        if self.chance(15) {
            let text =
                format!("SELECT date_trunc('day', {time}) AS t, count(*) FROM {from}{filter} GROUP BY 1 ORDER BY 1");
            return self.finish("join", text, Vec::new(), Order::Total);
        }
        let text = self.reduced(format!("SELECT {columns} FROM {from}{filter}"));
        self.finish("join", text, Vec::new(), Order::Total)
    }

    /// EXISTS, IN and their negations.
    fn semi_join(mut self) -> Query<'a> {
        let not = self.one_of(&["", "", "NOT "]);
        let inside = self.chance(50);
        if inside {
            // The IDs are in the subquery.
            self.source("a");
            let mut subject = self.subject("a");
            subject.others = columns_of_moments("b");
            let condition = self.condition(&subject);
            let test = match self.rng.u8(..4) {
                0 => format!(
                    "{not}b.at IN (SELECT ‹a.t› FROM ‹a›{})",
                    if not.is_empty() { "" } else { " WHERE ‹a.t› IS NOT NULL" }
                ),
                1 => format!("b.at {} ALL (SELECT ‹a.t› FROM ‹a› WHERE {condition})", self.one_of(&["<", ">=", "<>"])),
                _ => format!("{not}EXISTS (SELECT FROM ‹a› WHERE {condition})"),
            };
            let text = format!("SELECT b.k, b.at FROM moments AS b WHERE {test}");
            return self.finish("semi join", text, Vec::new(), Order::Any);
        }
        self.source("a");
        let (partner, others, _) = self.partner("b");
        let equal = others[0].0.clone();
        let mut subject = self.subject("a");
        let alone = subject.clone();
        subject.others = others;
        let (inner, outer) = (self.condition(&subject), self.condition(&alone));
        let test = match self.rng.u8(..4) {
            0 => format!("‹a.t› {not}IN (SELECT {equal} FROM {partner} WHERE {equal} IS NOT NULL)"),
            1 => format!(
                "‹a.t› {} ANY (SELECT {equal} FROM {partner} WHERE b.tenant = 2)",
                self.one_of(&["=", ">", "<="])
            ),
            _ if !partner.starts_with("moments") => {
                format!("{not}EXISTS (SELECT FROM {partner} WHERE a.n = b.n AND {inner})")
            }
            _ => format!("{not}EXISTS (SELECT FROM {partner} WHERE {inner})"),
        };
        let joined = self.one_of(&["AND", "AND", "OR"]);
        let text = format!("SELECT a.id, ‹a.t› AS t, a.n FROM ‹a› WHERE {test} {joined} {outer}");
        self.finish("semi join", text, Vec::new(), Order::Any)
    }

    /// Subqueries that run for each row of `moments`, such as the last row before it.
    fn lateral(mut self) -> Query<'a> {
        self.source("a");
        let mut subject = self.subject("a");
        subject.others = columns_of_moments("b");
        let condition = self.condition(&subject);
        let (direction, count) = (self.direction(), self.rng.u8(1..5));
        let inner = match self.rng.u8(..4) {
            0 => format!("SELECT count(*) AS c, max(‹a.t›) AS t FROM ‹a› WHERE {condition}"),
            1 => format!("SELECT ‹a.t› AS t FROM ‹a› WHERE ‹a.t› <= b.at ORDER BY ‹a.t› DESC LIMIT {count}"),
            _ => format!("SELECT ‹a.t› AS t FROM ‹a› WHERE {condition} ORDER BY ‹a.t›{direction} LIMIT {count}"),
        };
        let join = self.one_of(&["LEFT JOIN LATERAL", "CROSS JOIN LATERAL"]);
        let on = if join == "LEFT JOIN LATERAL" { " ON true" } else { "" };
        let text = format!("SELECT b.k, b.at, found.* FROM moments AS b {join} ({inner}) AS found{on}");
        self.finish("lateral", text, Vec::new(), Order::Any)
    }

    /// UPDATE, DELETE and MERGE.
    fn change(mut self) -> Query<'a> {
        self.target("a");
        let mut subject = self.subject("a");
        let alone = subject.clone();
        let check = "SELECT count(*), sum(hashtextextended(ROW(id, tenant, n, due)::text, 0)) FROM ‹a.base›".to_owned();
        let joined = self.chance(30);
        if joined {
            subject.others = columns_of_moments("b");
        }
        let major = self.schema.major;
        let merges = if self.sources[0].is_table { major >= 15 } else { major >= 17 };
        let returning = "RETURNING a.id, ‹a.t› AS t, a.n";
        let text = match self.rng.u8(..14) {
            12 | 13 => {
                self.union_source("b");
                let (inner, outer) = (self.subject("b"), alone);
                let (inner, outer) = (self.condition(&inner), self.condition(&outer));
                let on = self.one_of(&["a.n = b.n", "a.tenant = b.tenant AND a.n = b.n", "‹a.t› = ‹b.t›"]);
                if self.chance(50) {
                    format!("DELETE FROM ‹a› USING ‹b› WHERE {on} AND {inner} AND {outer} {returning}")
                } else {
                    format!("UPDATE ‹a› SET n = -7 FROM ‹b› WHERE {on} AND {inner} AND {outer} {returning}")
                }
            }
            10 => {
                let condition = self.condition(&subject);
                let from = if joined { ", moments AS b" } else { "" };
                format!("INSERT INTO sink SELECT a.id, ‹a.t› FROM ‹a›{from} WHERE {condition} RETURNING *")
            }
            11 => {
                let condition = self.condition(&alone);
                format!(
                    "WITH gone AS (DELETE FROM ‹a› WHERE {condition} {returning}) SELECT * FROM gone WHERE t IS NOT NULL"
                )
            }
            0..3 if merges => {
                subject.others = columns_of_moments("b");
                let (on, when, k) =
                    (self.condition(&subject), self.condition(&alone), self.rng.i64(1..=self.schema.moments));
                let rest = if major >= 17 && self.chance(40) {
                    " WHEN NOT MATCHED BY SOURCE AND a.n = 2 THEN UPDATE SET n = -1".to_owned()
                } else {
                    String::new()
                };
                let returning = if major >= 17 { returning } else { "" };
                format!(
                    "MERGE INTO ‹a› USING (SELECT * FROM moments WHERE k = {k}) AS b ON {on} \
                     WHEN MATCHED AND {when} THEN UPDATE SET n = coalesce(a.n, 0) + 10 \
                     WHEN MATCHED AND a.n > 4 THEN DELETE{rest} {returning}"
                )
            }
            3..7 => {
                let from = if joined { " FROM moments AS b" } else { "" };
                format!("UPDATE ‹a› SET n = coalesce(a.n, 0) + 10{from} WHERE {} {returning}", self.condition(&subject))
            }
            _ => {
                let using = if joined { " USING moments AS b" } else { "" };
                format!("DELETE FROM ‹a›{using} WHERE {} {returning}", self.condition(&subject))
            }
        };
        self.finish("change", text, vec![check], Order::Any)
    }

    /// A cursor that goes back and forth.
    fn cursor(mut self) -> Query<'a> {
        self.prepared = false;
        self.source("a");
        let subject = self.subject("a");
        let filter = self.filter(&subject);
        let (list, order) = self.total_order("a");
        let limit = if self.chance(30) { self.limit() } else { String::new() };
        let moves: Vec<_> = (0..self.rng.u8(2..8))
            .map(|_| {
                let way = self.one_of(&[
                    "FORWARD",
                    "BACKWARD",
                    "BACKWARD",
                    "ABSOLUTE",
                    "RELATIVE",
                    "LAST",
                    "FIRST",
                    "BACKWARD ALL",
                    "FORWARD ALL",
                ]);
                let count = if way.ends_with("RD") || way.ends_with("TE") || way.ends_with("VE") {
                    self.rng.u8(1..60).to_string()
                } else {
                    String::new()
                };
                format!("FETCH {way} {count} FROM cursor")
            })
            .collect();
        let text = format!("DECLARE cursor SCROLL CURSOR FOR SELECT {list} FROM ‹a›{filter}{order}{limit}");
        self.finish("cursor", text, moves, Order::Total)
    }

    fn set_operation(mut self) -> Query<'a> {
        self.source("a");
        self.source("b");
        let (first, second) = (self.subject("a"), self.subject("b"));
        let (one, other) = (self.filter(&first), self.filter(&second));
        let operation = self.one_of(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
        let text = format!("SELECT ‹a.t› AS t FROM ‹a›{one} {operation} SELECT ‹b.t› FROM ‹b›{other}");
        if self.chance(60) {
            let (direction, limit) = (self.direction(), self.limit());
            return self.finish("set", format!("{text} ORDER BY t{direction}{limit}"), Vec::new(), Order::Total);
        }
        self.finish("set", text, Vec::new(), Order::Any)
    }

    /// Subqueries that give one value.
    fn scalar(mut self) -> Query<'a> {
        self.source("a");
        let mut subject = self.subject("a");
        subject.others = columns_of_moments("b");
        let condition = self.condition(&subject);
        let inner = self.one_of(&[
            "SELECT count(*) FROM ‹a› WHERE",
            "SELECT max(‹a.t›) FROM ‹a› WHERE",
            "SELECT min(‹a.t›) FROM ‹a› WHERE",
            "SELECT sum(a.n) FROM ‹a› WHERE",
            "SELECT bool_or(a.n > 7) FROM ‹a› WHERE",
        ]);
        let text = format!("SELECT b.k, ({inner} {condition}) AS found FROM moments AS b WHERE b.k <= 20 ORDER BY b.k");
        self.finish("scalar", text, Vec::new(), Order::Total)
    }

    /// A count for each day, also for those without rows.
    fn calendar(mut self) -> Query<'a> {
        self.source("a");
        let alone = self.subject("a");
        let (step, days) = self.one_of(&[("1 day", 20), ("6 hours", 5), ("1 month", 300), ("1 second", 0)]);
        let since = ["2024-02-20", "2024-03-09 12:00", "2024-03-10"][self.rng.usize(..3)];
        let kind = self.one_of(&["timestamptz", "timestamptz", "timestamp"]);
        let day = self.one_of(&["d", "d", "d::date"]);
        let day = if step == "1 day" { day } else { "d" };
        let and = if self.chance(40) { format!(" AND {}", self.condition(&alone)) } else { String::new() };
        let join = self.one_of(&["LEFT JOIN", "JOIN"]);
        let text = format!(
            "SELECT {day}, count(‹a.t›), sum(a.n), max(‹a.t›) FROM generate_series('{since}'::{kind}, \
             '{since}'::{kind} + interval '{days} days 10 seconds', interval '{step}') AS d \
             {join} ‹a› ON ‹a.t› >= {day} AND ‹a.t› < {day} + interval '{step}'{and} GROUP BY {day} ORDER BY {day}"
        );
        self.finish("calendar", text, Vec::new(), Order::Total)
    }

    /// Tables that are joined by a common column of the time.
    fn using(mut self) -> Query<'a> {
        self.column_source("a");
        self.column_source("b");
        let subject = self.subject("a");
        let subject = Subject { time: "created_at".to_owned(), others: Vec::new(), ..subject };
        let filter = self.filter(&subject);
        let join = self.one_of(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let (direction, limit) = (self.direction(), self.limit());
        let from = format!("‹a› {join} ‹b› USING (created_at){filter}");
        match self.rng.u8(..3) {
            0 => {
                let text = format!("SELECT created_at FROM {from} ORDER BY created_at{direction}{limit}");
                self.finish("using", text, Vec::new(), Order::Total)
            }
            1 => {
                let text = format!(
                    "SELECT created_at, count(*) FROM {from} GROUP BY created_at ORDER BY created_at{direction}{limit}"
                );
                self.finish("using", text, Vec::new(), Order::Total)
            }
            _ => {
                let text = self.reduced(format!("SELECT created_at, a.id AS a, b.id AS b FROM {from}"));
                self.finish("using", text, Vec::new(), Order::Total)
            }
        }
    }

    /// The page after a row.
    fn paging(mut self) -> Query<'a> {
        self.source("a");
        let subject = self.subject("a");
        let bound = self.operand_of(subject.table, Kind::Timestamptz);
        let down = self.chance(70);
        let (operator, direction) = if down { ("<", " DESC") } else { (">", "") };
        let id = self.rng.i64(..);
        let and = if self.chance(40) { format!(" AND {}", self.condition(&subject)) } else { String::new() };
        let test = match self.rng.u8(..3) {
            0 => format!("(‹a.t›, a.id) {operator} ({bound}, {id})"),
            1 => format!("‹a.t› {operator}= {bound} AND (‹a.t› {operator} {bound} OR a.id {operator} {id})"),
            _ => format!("‹a.t› {operator} {bound}"),
        };
        let text = format!(
            "SELECT ‹a.t› AS t, a.id, a.tenant, a.n, a.due FROM ‹a› WHERE {test}{and} \
             ORDER BY ‹a.t›{direction}, a.id{direction}, a.tenant, a.n, a.due LIMIT {}",
            self.rng.u8(1..60)
        );
        self.finish("paging", text, Vec::new(), Order::Total)
    }

    /// Rows as a value, which have the columns of the item and no more.
    fn whole_rows(mut self) -> Query<'a> {
        self.column_source("a");
        let subject = self.subject("a");
        let filter = self.filter(&subject);
        let text = match self.rng.u8(..6) {
            0 => format!("SELECT row_to_json(a)::text FROM ‹a›{filter}"),
            1 => format!("SELECT a FROM ‹a›{filter} ORDER BY a::text LIMIT 20"),
            2 => format!("SELECT count(a), md5(string_agg(a::text, ',' ORDER BY a::text)) FROM ‹a›{filter}"),
            3 => {
                let and = if filter.is_empty() { "WHERE" } else { "AND" };
                let filter = filter.replacen(" WHERE ", " WHERE (", 1) + if filter.is_empty() { "" } else { ")" };
                format!("SELECT a.id FROM ‹a›{filter} {and} length(a::text) % 2 = 0")
            }
            4 => {
                let on = self.condition(&subject);
                format!(
                    "SELECT m.k, count(r), md5(string_agg(r, ',' ORDER BY r)) FROM moments AS m LEFT JOIN \
                     (SELECT a.tenant, coalesce(a::text, '') AS r FROM ‹a› WHERE {on}) AS s ON m.tenant = s.tenant \
                     GROUP BY 1"
                )
            }
            _ => format!("SELECT a FROM ‹a›{filter}"),
        };
        self.finish("whole rows", text, Vec::new(), Order::Any)
    }

    /// Rows that are locked, found by a UNION ALL.
    fn locked(mut self) -> Query<'a> {
        self.target("a");
        self.union_source("b");
        let (first, second) = (self.subject("a"), self.subject("b"));
        let (one, other) = (self.condition(&first), self.condition(&second));
        let on = self.one_of(&["a.n = b.n AND a.tenant = b.tenant", "‹a.t› = ‹b.t›"]);
        let text = format!(
            "SELECT a.id, a.n, b.tenant, b.due FROM ‹a› JOIN ‹b› ON {on} WHERE {one} AND {other} FOR UPDATE OF a"
        );
        self.finish("locked", text, Vec::new(), Order::Any)
    }
}
