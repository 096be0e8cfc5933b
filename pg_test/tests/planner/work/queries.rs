//! The kinds of queries.

use super::super::generator::Order;
use super::draft::{Draft, Query};
use super::tables::TENANTS;

/// Makes a query of one kind.
type Shape<'a> = fn(Draft<'a>) -> Query;

impl<'a> Draft<'a> {
    /// Makes the query.
    pub fn query(mut self) -> Query {
        let shapes: [(u8, Shape<'a>); 18] = [
            (14, Self::rows),
            (14, Self::newest),
            (8, Self::keyset),
            (5, Self::ends),
            (4, Self::sample),
            (8, Self::semi_join),
            (5, Self::not_there),
            (8, Self::last_before),
            (9, Self::equal_times),
            (7, Self::ranges),
            (5, Self::groups),
            (5, Self::distinct),
            (4, Self::window),
            (5, Self::with_query),
            (5, Self::union_all),
            (5, Self::change),
            (4, Self::scalar),
            (8, Self::by_id),
        ];
        let all: u8 = shapes.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.rng.u8(..all);
        for (weight, shape) in shapes {
            if drawn < weight {
                return shape(self);
            }
            drawn -= weight;
        }
        unreachable!()
    }

    /// Rows, reduced to their number and sums, or a few of their columns.
    fn rows(mut self) -> Query {
        self.item("a");
        let (condition, list) = (self.condition("a"), self.one_of(&["count(*), sum(a.n)", "a.id, ‹a.t›", "a.n"]));
        self.finish("rows", &format!("SELECT {list} FROM ‹a› WHERE {condition}"), Order::Any)
    }

    /// The order by time, in one direction, and the number of its keys.
    fn by_time(&mut self) -> (&'static str, usize) {
        self.one_of(&[
            ("‹a.t›", 1),
            ("‹a.t› DESC", 1),
            ("‹a.t› DESC", 1),
            ("‹a.t›, a.id", 2),
            ("‹a.t› DESC, a.id DESC", 2),
            ("‹a.t› DESC NULLS LAST", 1),
            ("‹a.t› NULLS FIRST", 1),
            ("‹a.t› DESC, a.id", 2),
        ])
    }

    fn limit(&mut self) -> String {
        let limit = self.one_of(&[1, 3, 10, 50, 300]);
        if self.chance(15) {
            format!("LIMIT {limit} OFFSET {}", self.one_of(&[5, 100]))
        } else {
            format!("LIMIT {limit}")
        }
    }

    fn newest(mut self) -> Query {
        self.item("a");
        let tenant = self.rng.u8(..TENANTS);
        let filter = match self.rng.u8(..10) {
            0..4 => String::new(),
            4..7 => format!(" WHERE a.tenant = {tenant}"),
            7..9 => format!(" WHERE {}", self.range("a")),
            _ => format!(" WHERE a.tenant = {tenant} AND {}", self.range("a")),
        };
        let ((order, keys), limit) = (self.by_time(), self.limit());
        let (list, keys) = if keys == 2 { ("‹a.t›, a.id", Order::Total) } else { ("‹a.t›", Order::Total) };
        self.finish("newest", &format!("SELECT {list} FROM ‹a›{filter} ORDER BY {order} {limit}"), keys)
    }

    /// Paging by the last row of the page before.
    fn keyset(mut self) -> Query {
        self.item("a");
        let forward = self.rng.bool();
        let mut filter = self.after("a", forward);
        if self.chance(30) {
            filter = format!("a.tenant = {} AND {filter}", self.rng.u8(..TENANTS));
        }
        if self.chance(20) {
            filter = format!("{filter} AND {}", self.after("a", !forward));
        }
        let down = if forward { "" } else { " DESC" };
        let text = if self.chance(80) {
            let limit = self.one_of(&[1, 10, 50]);
            format!("SELECT ‹a.t›, a.id FROM ‹a› WHERE {filter} ORDER BY ‹a.t›{down}, a.id{down} LIMIT {limit}")
        } else {
            format!("SELECT count(*), max(a.n) FROM ‹a› WHERE {filter}")
        };
        self.finish("keyset", &text, Order::Total)
    }

    /// By the time, in the order of the ID.
    fn by_id(mut self) -> Query {
        self.item("a");
        let (range, limit) = (self.range("a"), self.limit());
        let filter = if self.chance(30) { format!("a.tenant = {} AND {range}", self.rng.u8(..TENANTS)) } else { range };
        let down = self.one_of(&["", "", " DESC", " DESC", " DESC NULLS LAST", " NULLS FIRST"]);
        let text = match self.rng.u8(..8) {
            0 => format!("SELECT max(a.id), min(a.id) FROM ‹a› WHERE {filter}"),
            1 => format!("SELECT a.tenant, a.id FROM ‹a› WHERE {filter} ORDER BY a.tenant, a.id{down} {limit}"),
            _ => format!("SELECT a.id FROM ‹a› WHERE {filter} ORDER BY a.id{down} {limit}"),
        };
        self.finish("by ID", &text, Order::Total)
    }

    fn ends(mut self) -> Query {
        self.item("a");
        let filter = match self.rng.u8(..4) {
            0 => format!(" WHERE a.tenant = {}", self.rng.u8(..TENANTS)),
            1 => format!(" WHERE {}", self.range("a")),
            _ => String::new(),
        };
        let list = self.one_of(&["min(‹a.t›), max(‹a.t›)", "max(‹a.t›)", "min(‹a.t›)", "max(a.id), min(‹a.t›)"]);
        self.finish("ends", &format!("SELECT {list} FROM ‹a›{filter}"), Order::Total)
    }

    fn sample(mut self) -> Query {
        self.sample_item("a");
        let filter = self.filter("a");
        let (text, order) = match self.rng.u8(..4) {
            0 => (format!("SELECT count(*), sum(a.n) FROM ‹a›{filter}"), Order::Total),
            1 => (format!("SELECT max(‹a.t›) FROM ‹a›{filter}"), Order::Total),
            2 => (format!("SELECT ‹a.t›, a.id FROM ‹a›{filter} ORDER BY ‹a.t›, a.id LIMIT 100"), Order::Total),
            _ => (
                format!(
                    "SELECT date_bin('1 day', ‹a.t›, '2026-01-01+00') AS day, count(*) FROM ‹a›{filter} GROUP BY 1"
                ),
                Order::Any,
            ),
        };
        self.finish("sample", &text, order)
    }

    /// A relation of instants, under an alias.
    fn probes(&mut self, alias: &str) -> String {
        format!("{} AS {alias}", self.one_of(&["few", "few", "few", "many"]))
    }

    fn semi_join(mut self) -> Query {
        self.item("a");
        let probes = self.probes("p");
        let also = if self.chance(30) { format!(" AND {}", self.condition("a")) } else { String::new() };
        let test = match self.rng.u8(..7) {
            0..2 => format!("‹a.t› IN (SELECT p.at FROM {probes})"),
            2 => format!("‹a.t› IN (SELECT p.at FROM {probes} WHERE p.tenant = a.tenant)"),
            3 => format!("EXISTS (SELECT FROM {probes} WHERE p.at = ‹a.t›)"),
            4 => format!("EXISTS (SELECT FROM {probes} WHERE ‹a.t› >= p.at AND ‹a.t› < p.until AND p.k < 10)"),
            5 => format!("‹a.t› = ANY (ARRAY(SELECT p.at FROM {probes} WHERE p.k < 20))"),
            _ => {
                self.item("b");
                format!("‹a.t› IN (SELECT ‹b.t› FROM ‹b› WHERE {})", self.range("b"))
            }
        };
        self.finish("semi-join", &format!("SELECT count(*), sum(a.n) FROM ‹a› WHERE {test}{also}"), Order::Total)
    }

    /// Instants at which there are rows, or none.
    fn not_there(mut self) -> Query {
        self.item("a");
        let (probes, not) = (self.probes("p"), self.one_of(&["", "NOT ", "NOT "]));
        let tenant = self.one_of(&["", " AND a.tenant = p.tenant"]);
        let test = match self.rng.u8(..4) {
            0..2 => format!("‹a.t› = p.at{tenant}"),
            2 => format!("‹a.t› >= p.at AND ‹a.t› < p.until{tenant}"),
            _ => format!("‹a.t› = p.at AND {}", self.condition("a")),
        };
        let test = if not.is_empty() && self.chance(40) {
            "p.at IN (SELECT ‹a.t› FROM ‹a›)".to_owned()
        } else {
            format!("{not}EXISTS (SELECT FROM ‹a› WHERE {test})")
        };
        let text = format!("SELECT count(*), sum(p.k) FROM {probes} WHERE {test}");
        self.finish("exists", &text, Order::Total)
    }

    /// For each instant, the last row before it.
    fn last_before(mut self) -> Query {
        self.item("a");
        let (tenant, join) =
            (self.one_of(&["", "a.tenant = p.tenant AND "]), self.one_of(&["CROSS JOIN LATERAL", "LEFT JOIN LATERAL"]));
        let on = if join.starts_with("LEFT") { " ON true" } else { "" };
        let (comparison, down) = self.one_of(&[("<=", " DESC"), ("<", " DESC"), (">=", ""), (">", "")]);
        let (order, list) = self.one_of(&[("", "‹a.t› AS t, 0 AS i"), (", a.id{down}", "‹a.t› AS t, a.id AS i")]);
        let order = order.replace("{down}", down);
        let not_null = if down.is_empty() { "" } else { " AND ‹a.t› IS NOT NULL" };
        let not_null = if self.chance(20) { not_null } else { "" };
        let text = format!(
            "SELECT p.k, l.t, l.i FROM few AS p {join} (SELECT {list} FROM ‹a› WHERE {tenant}‹a.t› {comparison} p.at{not_null} \
             ORDER BY ‹a.t›{down}{order} LIMIT 1) AS l{on}"
        );
        self.finish("last before", &text, Order::Any)
    }

    fn equal_times(mut self) -> Query {
        self.item("a");
        let join = self.one_of(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let also = self.one_of(&["", "", " AND a.tenant = {}.tenant"]);
        if self.chance(60) {
            let probes = self.probes("p");
            let filter = match self.rng.u8(..4) {
                0 => " WHERE p.k < 5".to_owned(),
                1 if join == "JOIN" => format!(" WHERE {}", self.condition("a")),
                _ => String::new(),
            };
            let on = format!("‹a.t› = p.at{}", also.replace("{}", "p"));
            let from = if self.rng.bool() {
                format!("‹a› {join} {probes} ON {on}")
            } else {
                format!("{probes} {join} ‹a› ON {on}")
            };
            let text = format!("SELECT count(*), sum(a.n), sum(p.k), count(p.k) FROM {from}{filter}");
            return self.finish("equal times", &text, Order::Total);
        }
        self.item("b");
        let filter = if self.chance(70) { format!(" WHERE {}", self.range("b")) } else { String::new() };
        let on = format!("‹a.t› = ‹b.t›{}", also.replace("{}", "b"));
        let text = format!("SELECT count(*), sum(a.n), count(b.id) FROM ‹a› {join} ‹b› ON {on}{filter}");
        self.finish("equal times", &text, Order::Total)
    }

    fn ranges(mut self) -> Query {
        self.item("a");
        let join = self.one_of(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let mut on = self
            .one_of(&[
                "‹a.t› >= p.at AND ‹a.t› < p.until",
                "‹a.t› BETWEEN p.at AND p.until",
                "‹a.t› >= p.at - interval '1 hour' AND ‹a.t› <= p.at",
                "‹a.t› >= p.d AND ‹a.t› < p.d + 1",
                "‹a.t› >= p.ts AND ‹a.t› < p.ts + interval '10 minutes'",
            ])
            .to_owned();
        if self.chance(40) {
            on += " AND a.tenant = p.tenant";
        }
        let text = format!("SELECT p.k, count(*), sum(a.n) FROM few AS p {join} ‹a› ON {on} GROUP BY p.k");
        self.finish("ranges", &text, Order::Any)
    }

    fn groups(mut self) -> Query {
        self.item("a");
        let filter = self.filter("a");
        let key = self.one_of(&[
            "date_bin('1 hour', ‹a.t›, '2026-01-01+00')",
            "date_bin('1 day', ‹a.t›, '2026-01-01+00')",
            "date_trunc('day', ‹a.t›)",
            "date_trunc('hour', ‹a.t›, 'UTC')",
            "‹a.t›",
        ]);
        let order = self.one_of(&["", " ORDER BY 1 LIMIT 5", " ORDER BY 1 DESC LIMIT 7", " ORDER BY 1 DESC"]);
        let text = format!("SELECT {key}, count(*), sum(a.n) FROM ‹a›{filter} GROUP BY 1{order}");
        let kind = if order.is_empty() { Order::Any } else { Order::Total };
        self.finish("groups", &text, kind)
    }

    fn distinct(mut self) -> Query {
        self.item("a");
        let filter = self.filter("a");
        let down = self.one_of(&["", " DESC"]);
        let text = match self.rng.u8(..4) {
            0 => format!("SELECT DISTINCT ‹a.t› FROM ‹a›{filter} ORDER BY 1{down} LIMIT 20"),
            1 => format!("SELECT DISTINCT ON (‹a.t›) ‹a.t›, a.id FROM ‹a›{filter} ORDER BY ‹a.t›{down}, a.id LIMIT 20"),
            2 => format!("SELECT count(DISTINCT ‹a.t›) FROM ‹a›{filter}"),
            _ => {
                format!("SELECT DISTINCT ON (a.tenant) a.tenant, ‹a.t› FROM ‹a›{filter} ORDER BY a.tenant, ‹a.t›{down}")
            }
        };
        self.finish("distinct", &text, Order::Total)
    }

    fn window(mut self) -> Query {
        self.item("a");
        let filter = self.filter("a");
        let list = self.one_of(&[
            "‹a.t› AS t, a.id, row_number() OVER (ORDER BY ‹a.t›, a.id) AS w",
            "‹a.t› AS t, a.id, lag(‹a.t›) OVER (ORDER BY ‹a.t›, a.id) AS w",
            "‹a.t› AS t, a.id, rank() OVER (PARTITION BY a.tenant ORDER BY ‹a.t› DESC) AS w",
            "‹a.t› AS t, a.id, row_number() OVER (PARTITION BY a.tenant ORDER BY ‹a.t› DESC, a.id) AS w",
        ]);
        let text = match self.rng.u8(..3) {
            0 if list.contains("row_number") || list.contains("rank") => {
                format!(
                    "SELECT t, id, w FROM (SELECT {list} FROM ‹a›{filter}) AS numbered WHERE w <= 3 AND id IS NOT NULL"
                )
            }
            1 => format!("SELECT count(*), count(w) FROM (SELECT {list} FROM ‹a›{filter}) AS numbered"),
            _ => format!("SELECT count(*), max(w) FROM (SELECT {list} FROM ‹a›{filter}) AS numbered"),
        };
        self.finish("window", &text, Order::Any)
    }

    fn with_query(mut self) -> Query {
        self.item("a");
        let (inner, outer) = (self.filter("a"), self.condition("a"));
        let outer = outer.replace("‹a.t›", "c.t").replace("a.", "c.");
        let kept = self.one_of(&["", "MATERIALIZED ", "NOT MATERIALIZED "]);
        let then = match self.rng.u8(..3) {
            0 => "SELECT t, id FROM c ORDER BY t DESC, id DESC LIMIT 5".to_owned(),
            1 => "SELECT min(t), max(t), count(*) FROM c".to_owned(),
            _ => format!("SELECT count(*), sum(c.n) FROM c WHERE {outer}"),
        };
        let text = format!("WITH c AS {kept}(SELECT ‹a.t› AS t, a.id, a.tenant, a.n FROM ‹a›{inner}) {then}");
        self.finish("CTE", &text, Order::Total)
    }

    /// A UNION ALL in the query, with conditions on the whole and on members.
    fn union_all(mut self) -> Query {
        self.item("a");
        self.item("b");
        let whole = self.condition("a").replace("‹a.t›", "u.t").replace("a.", "u.");
        let [first, second] = ["a", "b"].map(|alias| {
            let filter = if self.chance(25) { self.filter(alias) } else { String::new() };
            format!("SELECT ‹{alias}.t› AS t, {alias}.id, {alias}.tenant, {alias}.n FROM ‹{alias}›{filter}")
        });
        let text = match self.rng.u8(..4) {
            0 => format!("SELECT u.t FROM ({first} UNION ALL {second}) AS u ORDER BY u.t DESC LIMIT 10"),
            1 => format!("SELECT max(u.t), min(u.t) FROM ({first} UNION ALL {second}) AS u"),
            2 => format!(
                "SELECT u.t, u.id FROM ({first} UNION ALL {second}) AS u WHERE {whole} ORDER BY u.t, u.id LIMIT 10"
            ),
            _ => format!("SELECT count(*), sum(u.n) FROM ({first} UNION ALL {second}) AS u WHERE {whole}"),
        };
        self.finish("UNION ALL", &text, Order::Total)
    }

    fn change(mut self) -> Query {
        self.target_item("a");
        let condition = self.condition("a");
        let text = match self.rng.u8(..4) {
            0 => format!("UPDATE ‹a› SET n = n + 1 WHERE {condition} RETURNING a.id"),
            1 => format!("DELETE FROM ‹a› WHERE {condition} RETURNING a.id"),
            2 => "DELETE FROM ‹a› USING few AS p WHERE ‹a.t› = p.at RETURNING a.id".to_owned(),
            _ => "UPDATE ‹a› SET n = p.k FROM few AS p WHERE ‹a.t› >= p.at AND ‹a.t› < p.at + interval '1 minute' \
                 AND a.tenant = p.tenant RETURNING a.id"
                .to_owned(),
        };
        self.finish("change", &text, Order::Any)
    }

    /// A subquery for each row.
    fn scalar(mut self) -> Query {
        self.item("a");
        let (tenant, function) =
            (self.one_of(&["", "a.tenant = p.tenant AND "]), self.one_of(&["max", "min", "count"]));
        let comparison = self.one_of(&["<", ">=", "="]);
        let text = format!(
            "SELECT p.k, (SELECT {function}(‹a.t›) FROM ‹a› WHERE {tenant}‹a.t› {comparison} p.at) FROM few AS p"
        );
        self.finish("scalar", &text, Order::Any)
    }
}
