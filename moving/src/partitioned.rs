//! Tables that are partitioned by their key: where no partition takes new IDs, every INSERT fails.

use crate::{Adoption, Facts, MovePlan, Oid, Waiver, Width};

/// A table that is partitioned by ranges or lists of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionedByKey {
    /// The table.
    pub table: Oid,
    /// The bounds of its partitions, as PostgreSQL writes them.
    pub bounds: Vec<String>,
}

/// Tables without a partition for new IDs are in the way.
pub fn check(plan: &mut MovePlan, facts: &Facts, wish: &Adoption) {
    let first_id = wish.first_id;
    for PartitionedByKey { table, bounds } in &facts.partitioned {
        // One that is narrow is in the way itself.
        let is_wide = facts.columns.iter().all(|it| it.relation != *table || it.width == Some(Width::Eight));
        if is_wide && !bounds.iter().any(|bound| takes(bound, first_id)) {
            let table = facts.name(*table);
            plan.hinder_unless(
                &wish.waived,
                Waiver::Partitions,
                &format!("{table} is partitioned by the key, and has no partition for new IDs such as {first_id}"),
                "Create a partition for them first: a DEFAULT one, or those of the next days by \
                 snowflake_create_partitions(). Where one goes TO (MAXVALUE), snowflake_maintain_partitions() can \
                 make none beside it.",
            );
        }
    }
}

/// Whether a partition takes a value of the first column of its key, where the others say nothing.
fn takes(bound: &str, value: i64) -> bool {
    if bound == "DEFAULT" {
        return true;
    }
    let edges = bound.strip_prefix("FOR VALUES FROM (").and_then(|rest| rest.strip_suffix(')')?.split_once(") TO ("));
    let Some((from, to)) = edges else { return false };
    let has_others = to.contains(',');
    let first = |edge: &str| edge.split(',').next().unwrap_or_default().trim().trim_matches('\'').to_owned();
    let (from, to) = (first(from), first(to));
    let is_above = from == "MINVALUE" || from.parse::<i64>().is_ok_and(|from| from <= value);
    let is_below = to == "MAXVALUE" || to.parse::<i64>().is_ok_and(|to| value < to || has_others && value == to);
    is_above && is_below
}

#[cfg(test)]
mod tests {
    use super::takes;

    #[test]
    fn bounds_are_read_as_postgresql_writes_them() {
        for (bound, expected) in [
            ("DEFAULT", true),
            ("FOR VALUES FROM (MINVALUE) TO ('100')", false),
            ("FOR VALUES FROM ('1') TO (MAXVALUE)", true),
            ("FOR VALUES FROM (1) TO (1000)", true),
            ("FOR VALUES FROM ('500') TO ('501')", true),
            ("FOR VALUES FROM ('500') TO ('500')", false),
            ("FOR VALUES FROM ('1', 'a') TO ('500', 'b')", true),
            ("FOR VALUES FROM ('501') TO (MAXVALUE)", false),
            ("FOR VALUES FROM ('-5') TO ('501')", true),
            ("FOR VALUES IN ('500')", false),
        ] {
            assert_eq!(takes(bound, 500), expected, "{bound}");
        }
    }
}
