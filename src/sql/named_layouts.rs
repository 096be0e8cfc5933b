//! Layouts that queries name. A session parses each text once, and keeps the last few layouts with their texts.

use crate::errors::Error;
use crate::errors::values::ValueError;
use crate::postgres::given::Given;
use snowflake_core::Layout;
use std::cell::RefCell;

/// How many texts are kept, each at most as long as a layout may be. A query names few layouts; one that computes a new text for
/// each row must not fill the memory.
const KEPT: usize = 16;

thread_local! {
    static KNOWN: RefCell<Vec<(Box<[u8]>, Layout)>> = const { RefCell::new(Vec::new()) };
}

/// The layout of this text: a built-in name, or notation. Ends the call where it is neither.
#[inline]
pub fn find(text: Given) -> Layout {
    let is_it = |(name, _): &&(Box<[u8]>, Layout)| **name == *text.bytes();
    let known = KNOWN.with_borrow(|known| known.iter().find(is_it).map(|(_, layout)| *layout));
    known.unwrap_or_else(|| parse(text))
}

#[cold]
fn parse(text: Given) -> Layout {
    let words = text.read();
    let layout = match words.parse() {
        Ok(layout) => layout,
        Err(error) => Error::from(ValueError::NotALayout(words.into_owned(), error)).raise(),
    };
    KNOWN.with_borrow_mut(|known| {
        known.truncate(KEPT - 1);
        known.insert(0, (text.bytes().into(), layout));
    });
    layout
}
