//! UNION ALLs of tables, of their views, and of other UNION ALLs. The planner makes one table of those whose members have no
//! conditions and the same types.

use super::tables::{Table, plain_time};
use fastrand::Rng;

/// How many views there are: `union_0` and so on, each with a twin.
pub const VIEWS: usize = 60;

/// What a UNION ALL is made of.
pub struct Unions<'a> {
    pub tables: &'a [Table],
    /// How many views can be members.
    pub views: usize,
    /// Whether there are views that are read with the privileges of who asks.
    pub has_invokers: bool,
}

/// What the members of a UNION ALL have in common.
struct Shape {
    /// The order of the columns.
    columns: [usize; 5],
    /// Whether the ID is among them; else, the column has another number.
    has_id: bool,
    /// Whether some members have other types.
    has_casts: bool,
}

impl Unions<'_> {
    /// A UNION ALL, with IDs and of the twins. The first member is of this table.
    pub fn query(&self, rng: &mut Rng, first: &Table) -> [String; 2] {
        let mut columns = [0, 1, 2, 3, 4];
        if rng.bool() {
            rng.shuffle(&mut columns);
        }
        let shape = Shape { columns, has_id: rng.u8(..10) < 6, has_casts: rng.u8(..10) == 0 };
        self.members(rng, first, &shape, 0)
    }

    fn members(&self, rng: &mut Rng, first: &Table, shape: &Shape, depth: usize) -> [String; 2] {
        // With other layouts, the times have no bounds in common.
        let of_one_layout = rng.u8(..10) < 7;
        let fitting: Vec<&Table> = self
            .tables
            .iter()
            .filter(|table| !of_one_layout || table.layout.name == first.layout.name && table.mixed == first.mixed)
            .collect();
        let mut all: [Vec<String>; 2] = Default::default();
        for at in 0..rng.usize(2..4) {
            // Row-level security is on one of many tables.
            let guarded = fitting.iter().copied().find(|table| table.name == "guarded").filter(|_| rng.u8(..10) == 0);
            let any = fitting[rng.usize(..fitting.len())];
            let table = if at == 0 { first } else { guarded.unwrap_or(any) };
            let member = if depth < 2 && at > 0 && rng.u8(..8) == 0 {
                self.members(rng, table, shape, depth + 1).map(|nested| format!("({nested})"))
            } else {
                self.member(rng, table, shape)
            };
            all.iter_mut().zip(member).for_each(|(all, member)| all.push(member));
        }
        all.map(|members| members.join(" UNION ALL "))
    }

    fn member(&self, rng: &mut Rng, table: &Table, shape: &Shape) -> [String; 2] {
        let name = table.name;
        let views: &[&str] = if self.has_invokers { &["v", "d", "i"] } else { &["v", "d"] };
        let (from, times) = match rng.u8(..20) {
            0..3 => {
                let view = views[rng.usize(..views.len())];
                (["", "_twin"].map(|twin| format!("{name}{twin}_{view}")), ["created_at"; 2].map(str::to_owned))
            }
            3..5 if self.views > 0 => {
                let view = rng.usize(..self.views);
                (["", "_twin"].map(|twin| format!("union_{view}{twin}")), ["created_at"; 2].map(str::to_owned))
            }
            5 => (["", "_twin"].map(|twin| format!("ONLY {name}{twin}")), self.times(rng, table)),
            _ => (["", "_twin"].map(|twin| format!("{name}{twin}")), self.times(rng, table)),
        };
        let id = if shape.has_id { "id::bigint" } else { "n::bigint" };
        let (tenant, n, due) = match rng.u8(..20) {
            0 => ("3", "n", "due"),
            1 => ("tenant", "NULL::integer", "due"),
            2 => ("tenant", "n", "'2024-03-10 00:00:01+00'::timestamptz"),
            3 => ("tenant::bigint::integer", "n + 0", "NULL::timestamptz"),
            4.. if shape.has_casts && rng.bool() => ("tenant::bigint", "n::numeric", "due"),
            _ => ("tenant", "n", "due"),
        };
        // With something of its own, it is a query among the members.
        let (own, is_nested) = match rng.u8(..20) {
            0 => (" WHERE n > 2", false),
            1 => (" WHERE tenant <> 1", false),
            2 => (" OFFSET 0", true),
            _ => ("", false),
        };
        let mut way = 0;
        from.map(|from| {
            let all = [
                format!("{id} AS id"),
                format!("{tenant} AS tenant"),
                format!("{n} AS n"),
                format!("{due} AS due"),
                format!("{} AS created_at", times[way]),
            ];
            way += 1;
            let columns = shape.columns.map(|at| all[at].as_str()).join(", ");
            let member = format!("SELECT {columns} FROM {from}{own}");
            if is_nested { format!("({member})") } else { member }
        })
    }

    /// The time of a member's IDs, or what stands in its place.
    fn times(&self, rng: &mut Rng, table: &Table) -> [String; 2] {
        let times = [plain_time(table, "id"), "created_at".to_owned()];
        match rng.u8(..40) {
            0 => [(); 2].map(|()| "NULL::timestamptz".to_owned()),
            // No time is infinite.
            1 => [(); 2].map(|()| "least(due, '2090-01-01+00')".to_owned()),
            2 => [(); 2].map(|()| "'2024-03-10 00:00:02+00'::timestamptz".to_owned()),
            3 => times.map(|time| format!("{time}::timestamp::timestamptz")),
            4 => times.map(|time| format!("{time}::timestamptz(0)")),
            5 => times.map(|time| format!("coalesce({time}, '2090-01-01+00')")),
            6 if !table.mixed => [plain_time(table, "id + 0"), times[1].clone()],
            7..10 if !table.mixed => {
                let decoded = times[0].replace("_timestamp(", "_decode(");
                [format!("({decoded}).timestamp"), times[1].clone()]
            }
            _ => times,
        }
    }

    /// The definition of a view of this number, with IDs and of the twins.
    pub fn view(&self, rng: &mut Rng, first: &Table, number: usize) -> [String; 2] {
        let option = match rng.u8(..6) {
            0 => "WITH (security_barrier) ",
            1 if self.has_invokers => "WITH (security_invoker) ",
            2 if self.has_invokers => "WITH (security_invoker, security_barrier) ",
            _ => "",
        };
        let [ours, twin] = self.query(rng, first);
        [("", ours), ("_twin", twin)].map(|(twin, text)| format!("CREATE VIEW union_{number}{twin} {option}AS {text}"))
    }
}
