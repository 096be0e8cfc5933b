//! Whose the keys of a partition are, on record: in the last line of the partition's comment, which
//! dumps carry, and which goes with the partition whatever it is renamed to or attached to. A key
//! has an age only where it is known that it is an ID of a layout.
//!
//! ```
//! use snowflake_core::pieces::mark::Mark;
//!
//! let mark = Mark { comment: None, from: 7, layout: "default".parse()? };
//! assert!(mark.write().starts_with("[pg_snowflake: keys from 7 on are IDs of timestamp=41 "));
//! assert_eq!(Mark::read(&mark.write()), Some(mark));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{Edge, suffix};
use crate::layout::Layout;
use crate::time::UnixMicros;
use std::ops::Range;

const OPENING: &str = "[pg_snowflake: keys from ";
const MIDDLE: &str = " on are IDs of ";
const CLOSING: &str = "]";

/// A comment with such a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The lines before it, which are the user's.
    pub comment: Option<String>,
    /// The first key that is known to be an ID. Of lower ones, nothing is known.
    pub from: i64,
    /// The layout that says its time.
    pub layout: Layout,
}

impl Mark {
    /// The mark at the end of a comment, if there is one.
    pub fn read(text: &str) -> Option<Self> {
        let inner = text.strip_suffix(CLOSING)?;
        let at = inner.rfind(OPENING)?;
        let comment = match inner[..at].strip_suffix('\n') {
            Some(comment) => Some(comment.to_owned()),
            None if at == 0 => None,
            None => return None,
        };
        let (from, layout) = inner[at + OPENING.len()..].split_once(MIDDLE)?;
        Some(Self { comment, from: from.parse().ok()?, layout: layout.parse().ok()? })
    }

    /// The comment with the mark.
    pub fn write(&self) -> String {
        let Self { comment, from, layout } = self;
        let comment = comment.as_ref().map(|comment| format!("{comment}\n")).unwrap_or_default();
        format!("{comment}{OPENING}{from}{MIDDLE}{layout}{CLOSING}")
    }

    /// A comment without its mark, if it has one.
    pub fn users_own(comment: Option<&str>) -> Option<String> {
        comment.and_then(|text| Self::read(text).map_or_else(|| Some(text.to_owned()), |mark| mark.comment))
    }
}

/// What the catalogue says of a partition without a mark, in a table whose keys
/// [come](Proof::is_original) from us.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// Whether the table has had its default from the beginning: both were made in one transaction.
    pub is_original: bool,
    /// Whether it was made as a partition, and its rows were not put there by the transaction that
    /// made the table. A restore attaches partitions, or does all in one transaction.
    pub was_made_here: bool,
    /// Whether the next partition was made later: so partitions were made as time went by, not all
    /// at once for rows to be imported.
    pub is_followed: bool,
    /// Whether its name is that which a job gives.
    pub has_jobs_name: bool,
}

/// Why keys have no age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Nothing says whose they are.
    Unmarked,
    /// They are IDs of this layout.
    OfLayout(Layout),
}

/// From which key on those of a partition are known to be IDs of the layout. `since`: when the
/// database began to make IDs; `None` where it did before that was on record.
///
/// # Errors
/// Where that is not known of any.
pub fn known_from(
    layout: &Layout,
    ids: &Range<Edge>,
    mark: Option<&Mark>,
    proof: Option<Proof>,
    since: Option<UnixMicros>,
) -> Result<i64, Unknown> {
    if let Some(mark) = mark {
        return if mark.layout == *layout { Ok(mark.from) } else { Err(Unknown::OfLayout(mark.layout)) };
    }
    let proof = proof.filter(|proof| proof.is_original && proof.was_made_here).ok_or(Unknown::Unmarked)?;
    let first = match (since, ids.start) {
        (Some(since), Edge::Id(start)) => layout.lowest_id_from(since).map(|first| first.max(start)),
        (Some(since), _) => layout.lowest_id_from(since),
        (None, Edge::Id(start)) => Some(start).filter(|_| proof.is_followed && proof.has_jobs_name),
        (None, _) => None,
    };
    first.ok_or(Unknown::Unmarked)
}

/// Whether a job names a partition so that begins with this ID: after the table, with the time.
pub fn is_jobs_suffix(layout: &Layout, start: i64, name: &str) -> bool {
    let Ok(begins) = layout.timestamp(start) else { return false };
    [true, false].iter().any(|&at_midnight| suffix(begins.0.into(), at_midnight) == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::BUILT_IN;

    fn default() -> Layout {
        "default".parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        for built_in in BUILT_IN {
            for comment in [None, Some("of the user"), Some("two\nlines"), Some(""), Some("[x]")] {
                for from in [i64::MIN, -1, 0, i64::MAX] {
                    let layout = built_in.name.parse().unwrap();
                    let mark = Mark { comment: comment.map(str::to_owned), from, layout };
                    assert_eq!(Mark::read(&mark.write()), Some(mark.clone()), "{}", mark.write());
                    assert_eq!(Mark::users_own(Some(&mark.write())), mark.comment);
                }
            }
        }
    }

    #[test]
    fn other_comments_have_no_mark() {
        let whole = Mark { comment: None, from: 0, layout: default() }.write();
        for comment in
            ["", "of the user", "]", "[pg_snowflake: keys from 0 on]", &format!("x{whole}"), &format!("{whole} ")]
        {
            assert_eq!(Mark::read(comment), None, "{comment}");
            assert_eq!(Mark::users_own(Some(comment)).as_deref(), Some(comment));
        }
        assert_eq!(Mark::users_own(None), None);
    }

    #[test]
    fn a_mark_counts_for_its_layout_alone() {
        let (layout, other) = (default(), "twitter".parse().unwrap());
        let mark = Mark { comment: None, from: 5, layout };
        let known = |layout: &Layout| known_from(layout, &(Edge::Lowest..Edge::Highest), Some(&mark), None, None);
        assert_eq!(known(&layout), Ok(5));
        assert_eq!(known(&other), Err(Unknown::OfLayout(layout)));
    }

    #[test]
    fn without_a_mark_the_table_and_the_record_say_it() {
        let layout = default();
        let at = |text: &str| UnixMicros::parse(text).unwrap();
        let id = |text: &str| layout.lowest_id_from(at(text)).unwrap();
        let whole = Proof { is_original: true, was_made_here: true, is_followed: true, has_jobs_name: true };
        let march = Edge::Id(id("2026-03-01T00:00:00Z"))..Edge::Id(id("2026-04-01T00:00:00Z"));
        let known =
            |ids: &Range<Edge>, proof, since: Option<&str>| known_from(&layout, ids, None, proof, since.map(at));
        let first = Edge::Lowest..march.end;
        assert_eq!(known(&march, None, None), Err(Unknown::Unmarked));
        assert_eq!(known(&march, Some(whole), Some("2026-01-01T00:00:00Z")), Ok(id("2026-03-01T00:00:00Z")));
        // The database made none before that: whoever has inserted lower keys has had them from
        // elsewhere.
        assert_eq!(known(&march, Some(whole), Some("2026-03-08T00:00:00Z")), Ok(id("2026-03-08T00:00:00Z")));
        assert_eq!(known(&first, Some(whole), Some("2026-01-01T00:00:00Z")), Ok(id("2026-01-01T00:00:00Z")));
        // Before the record said since when.
        assert_eq!(known(&march, Some(whole), None), Ok(id("2026-03-01T00:00:00Z")));
        assert_eq!(known(&first, Some(whole), None), Err(Unknown::Unmarked));
        for (lacking, since) in [
            (Proof { is_original: false, ..whole }, Some("2026-01-01T00:00:00Z")),
            (Proof { was_made_here: false, ..whole }, Some("2026-01-01T00:00:00Z")),
            (Proof { is_followed: false, ..whole }, None),
            (Proof { has_jobs_name: false, ..whole }, None),
        ] {
            assert_eq!(known(&march, Some(lacking), since), Err(Unknown::Unmarked), "{lacking:?}");
        }
    }

    #[test]
    fn names_of_jobs() {
        let layout = default();
        let start = layout.lowest_id_from(UnixMicros::parse("2026-03-01T06:00:00Z").unwrap()).unwrap();
        assert!(is_jobs_suffix(&layout, start, "_20260301_060000") && is_jobs_suffix(&layout, start, "_20260301"));
        assert!(!is_jobs_suffix(&layout, start, "_2026_03") && !is_jobs_suffix(&layout, -1, "_20260301"));
    }
}
