//! What is called on tables of others: every function of the extension that touches a table, a
//! sequence, a partition or a schema.

use super::world::Ground;

/// The library, or the extension in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    Library,
    Sql,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub name: &'static str,
    /// The stage of `scenes.sql` that it is made on.
    pub stage: &'static str,
    /// With the OID of a table for its name in braces.
    pub text: &'static str,
    /// A procedure that ends transactions cannot run in one.
    pub is_procedure: bool,
    /// Whether it looks at all tables of the database.
    pub sees_all: bool,
    /// Whether the clock must have been ahead.
    pub moves_clock: bool,
    /// How many attacks are made on her own ground. There is less to gain there, as code of her tables
    /// that runs as her is what she may run anyway.
    pub most_own: usize,
    /// Where it is made. Elsewhere it is refused, whatever anybody does meanwhile.
    pub grounds: &'static [Ground],
}

const PLAIN: Call = Call {
    name: "",
    stage: "",
    text: "",
    is_procedure: false,
    sees_all: false,
    moves_clock: false,
    most_own: 100,
    grounds: &[Ground::Own, Ground::Others],
};

const fn on(stage: &'static str, name: &'static str, text: &'static str) -> Call {
    Call { name, stage, text, ..PLAIN }
}

/// A call that takes long, and does what others do, too.
const fn slow(call: Call) -> Call {
    Call { most_own: 50, ..call }
}

/// Rows of the default partition are moved by their owner only.
const fn by_owner(call: Call) -> Call {
    Call { grounds: &[Ground::Others], ..call }
}

const fn procedure(call: Call) -> Call {
    Call { is_procedure: true, ..call }
}

/// Calls on partitions, of both editions.
const PARTITIONS: [Call; 8] = [
    on(
        "partitioned",
        "create_partitions",
        "SELECT count(*) FROM snowflake_create_partitions({e}, '1 day', now(), now() + interval '1 day')",
    ),
    on("partitioned", "declare_keys", "SELECT count(*) FROM snowflake_declare_keys({e}, now())"),
    on(
        "partitioned",
        "maintain_dry_run",
        "SELECT count(*) FROM snowflake_maintain_partitions({e}, '1 day', '1 day', '30 days', 'drop', dry_run => true)",
    ),
    on(
        "partitioned",
        "maintain_detach",
        "SELECT count(*) FROM snowflake_maintain_partitions({e}, '1 day', '1 day', '30 days')",
    ),
    on(
        "partitioned",
        "maintain_drop",
        "SELECT count(*) FROM snowflake_maintain_partitions({e}, '1 day', '1 day', '30 days', 'drop')",
    ),
    by_owner(procedure(on("partitioned", "default_rows", "CALL snowflake_partition_default_rows({e}, '1 day')"))),
    by_owner(procedure(on(
        "partitioned",
        "default_rows_dry_run",
        "CALL snowflake_partition_default_rows({e}, '1 day', dry_run => true)",
    ))),
    by_owner(procedure(on("default", "default_rows_at_once", "CALL snowflake_partition_default_rows({e}, '1 day')"))),
];

/// Other calls, of the library.
const OF_LIBRARY: [Call; 14] = [
    on("sequence", "adopt_plan", "SELECT count(*) FROM snowflake_adopt_plan({t})"),
    on("sequence", "adopt", "SELECT count(*) FROM snowflake_adopt({t})"),
    slow(on("viewed", "adopt_views", "SELECT count(*) FROM snowflake_adopt({t}, views => 'recreate')")),
    slow(on("numbered", "adopt_partitions", "SELECT count(*) FROM snowflake_adopt({p})")),
    on("sequence", "adopt_all_plan", "SELECT count(*) FROM snowflake_adopt_all_plan('{{t},{r}}')"),
    slow(on("sequence", "adopt_all", "SELECT count(*) FROM snowflake_adopt_all('{{t},{r}}')")),
    on("moved", "release_plan", "SELECT count(*) FROM snowflake_release_plan({t})"),
    on("moved", "release", "SELECT snowflake_release({t})"),
    slow(on(
        "moved",
        "release_identity",
        "SELECT snowflake_release({t}, start => 1000000000000000000, identity => true)",
    )),
    on("sequence", "preflight", "SELECT count(*) FROM snowflake_preflight(keys => '{{t},{r}}')"),
    on("partitioned", "preflight_partitions", "SELECT count(*) FROM snowflake_preflight(keys => '{{e}}')"),
    by_owner(on(
        "partitioned",
        "maintain_move",
        "SELECT count(*) FROM snowflake_maintain_partitions({e}, '1 day', '1 day', default_rows => 'move')",
    )),
    by_owner(on(
        "partitioned",
        "maintain_move_dry_run",
        "SELECT count(*) FROM snowflake_maintain_partitions({e}, '1 day', '1 day', dry_run => true, default_rows => 'move')",
    )),
    Call { sees_all: true, moves_clock: true, ..on("partitioned", "rewind", "SELECT snowflake_rewind({now})") },
];

/// Other calls, of the extension in SQL. It works on tables of the caller's only.
const OF_SQL: [Call; 8] = [
    by_owner(on("wide", "adopt_plan", "SELECT count(*) FROM snowflake_adopt_plan({t})")),
    by_owner(on("wide", "adopt", "SELECT count(*) FROM snowflake_adopt({t})")),
    by_owner(on("numbered", "adopt_partitions", "SELECT count(*) FROM snowflake_adopt({p})")),
    by_owner(on("moved", "release_plan", "SELECT count(*) FROM snowflake_release_plan({t})")),
    by_owner(on("moved", "release", "SELECT snowflake_release({t})")),
    by_owner(on(
        "moved",
        "release_identity",
        "SELECT snowflake_release({t}, start => 1000000000000000000, identity => true)",
    )),
    on("wide", "preflight", "SELECT count(*) FROM snowflake_preflight(keys => '{{t},{r}}')"),
    Call { sees_all: true, ..on("partitioned", "configure", "SELECT snowflake_configure(1)") },
];

/// All calls of an edition.
pub fn of(edition: Edition) -> Vec<Call> {
    match edition {
        Edition::Library => OF_LIBRARY.into_iter().chain(PARTITIONS).collect(),
        Edition::Sql => OF_SQL.into_iter().chain(PARTITIONS.map(by_owner)).collect(),
    }
}
