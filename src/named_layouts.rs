//! Layouts that queries name. A session parses each text once, and keeps the last few layouts with their texts.

use crate::errors::Error;
use snowflake_core::Layout;
use std::cell::RefCell;

/// How many texts are kept. A query names few layouts; one that computes a new text for each row must not fill the
/// memory.
const KEPT: usize = 16;

thread_local! {
    static KNOWN: RefCell<Vec<(String, Layout)>> = const { RefCell::new(Vec::new()) };
}

/// The layout of this text: a built-in name, or notation. Ends the call where it is neither.
#[inline]
pub fn find(text: &str) -> Layout {
    let known = KNOWN.with_borrow(|known| known.iter().find(|(name, _)| name == text).map(|(_, layout)| *layout));
    known.unwrap_or_else(|| parse(text))
}

#[cold]
fn parse(text: &str) -> Layout {
    let layout = match text.parse() {
        Ok(layout) => layout,
        Err(error) => Error::NotALayout(text.to_owned(), error).raise(),
    };
    KNOWN.with_borrow_mut(|known| {
        known.truncate(KEPT - 1);
        known.insert(0, (text.to_owned(), layout));
    });
    layout
}
