//! What a server holds of a tag, as the registry lists it for people. Nothing is decided by it.

use super::held::Held;
use super::record::{Range, TagRecord};
use super::terms::Use;
use crate::lease::Token;
use crate::time::UnixMicros;

/// What a server held when it was granted a range. It is stored with the grant, so it costs no request of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// In which run of the server: [`run_of`] its token. When the worker has another owner, nobody holds this any more.
    pub run: u64,
    /// What was left of the range in use, or the range that was granted, where nothing was.
    pub current: Range,
    /// The range that comes after; empty where there is none.
    pub after: Range,
    /// When it was granted.
    pub granted_at: UnixMicros,
    /// How the tag was used in the last time.
    pub used: Use,
}

impl Holding {
    /// What a server holds once this range is installed.
    pub fn of(token: Token, before: Held, granted: Range, granted_at: UnixMicros, used: Use) -> Self {
        let (current, after) = match before.current.count() {
            0 => (granted, Range::default()),
            _ => (before.current, granted),
        };
        Self { run: run_of(token), current, after, granted_at, used }
    }

    /// Whether a server can hold that.
    pub fn is_sound(&self) -> bool {
        let Self { current, after, .. } = *self;
        let is_range = |range: Range| range.first <= range.end && range.end <= TagRecord::HIGHEST + 1;
        is_range(current) && is_range(after) && (after == Range::default() || current.end <= after.first)
    }

    /// What is held.
    pub fn held(&self) -> Held {
        Held { current: self.current, after: Some(self.after).filter(|after| after.count() > 0) }
    }

    /// The size of the range that was granted last.
    pub const fn size(&self) -> u64 {
        if self.after.count() > 0 { self.after.count() } else { self.current.count() }
    }
}

/// Tells the runs of servers apart, and does not tell the token: half of it stays unknown.
pub const fn run_of(token: Token) -> u64 {
    (token.0 >> 64) as u64 ^ token.0 as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Micros;

    #[test]
    fn a_holding_is_what_is_held_after_the_grant() {
        let granted = Range { first: 100, end: 120 };
        let used = Use { count: 7, length: Micros(9) };
        let of = |before| Holding::of(Token(1 << 64 | 2), before, granted, UnixMicros(5), used);
        let empty = of(Held { current: Range { first: 9, end: 9 }, after: None });
        assert_eq!((empty.run, empty.held()), (3, Held { current: granted, after: None }));
        assert_eq!(empty.size(), 20);
        let current = Range { first: 8, end: 9 };
        let both = of(Held { current, after: None });
        assert_eq!((both.held(), both.size()), (Held { current, after: Some(granted) }, 20));
    }
}
