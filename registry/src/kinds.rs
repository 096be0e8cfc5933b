//! The table of kinds.

use crate::kind::RegistryKind;
use crate::{etcd, postgres, redis};

/// Every kind of registry, also those whose client this build does not have.
pub static KINDS: [&RegistryKind; 3] = [&postgres::KIND, &etcd::KIND, &redis::KIND];

/// The kind whose URLs have this scheme.
pub(crate) fn of_scheme(scheme: &str) -> Option<&'static RegistryKind> {
    KINDS.into_iter().find(|kind| kind.has_scheme(scheme))
}

/// All schemes, for people: `postgres://, etcd://, etcds://, redis:// or rediss://`.
pub(crate) fn schemes() -> String {
    listed(KINDS.into_iter().flat_map(RegistryKind::schemes).map(|scheme| format!("{scheme}://")).collect())
}

/// A URL of each kind, for people: `"postgres://…", "etcd://…" or "redis://…"`.
pub fn example_urls() -> String {
    listed(KINDS.into_iter().map(|kind| format!("\"{}\"", kind.example())).collect())
}

/// With commas, and "or" before the last one.
fn listed(mut texts: Vec<String>) -> String {
    let last = texts.pop().unwrap_or_default();
    match texts.is_empty() {
        true => last,
        false => format!("{} or {last}", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Url;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_has_its_own_schemes_and_an_example() {
        let schemes: Vec<_> = KINDS.into_iter().flat_map(RegistryKind::schemes).collect();
        assert_eq!(schemes.iter().collect::<BTreeSet<_>>().len(), schemes.len(), "{schemes:?}");
        for kind in KINDS {
            let url: Url = kind.example().parse().unwrap();
            assert_eq!(url.kind(), kind);
        }
    }

    #[test]
    fn people_read_them_as_a_sentence() {
        assert_eq!(schemes(), "postgres://, etcd://, etcds://, redis:// or rediss://");
        assert_eq!(
            example_urls(),
            "\"postgres://snowflake@db.example/registry\", \"etcd://etcd1:2379,etcd2:2379\" or \"redis://redis.example\""
        );
        assert_eq!(listed(vec!["a".to_owned()]), "a");
    }
}
