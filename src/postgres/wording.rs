//! Words for people, which more than one message needs: lengths of time, lists of choices, lines for `postgresql.conf`.

use crate::postgres::process;
use snowflake_core::Micros;
use snowflake_core::notation::BUILT_IN;

/// A length of time: `250 ms`, `5 s`, `3600.250 s`.
pub fn duration(length: Micros) -> String {
    let (seconds, millis) = (length.0 / 1_000_000, length.0 / 1000 % 1000);
    match (seconds, millis) {
        (0, _) => format!("{millis} ms"),
        (_, 0) => format!("{seconds} s"),
        _ => format!("{seconds}.{millis:03} s"),
    }
}

/// A message of the core as a sentence: `no built-in …` becomes `No built-in ….` The name of a parameter stays as it is.
pub fn sentence(message: &str) -> String {
    if message.starts_with("pg_snowflake") {
        return format!("{message}.");
    }
    let mut chars = message.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

/// A sentence that says which layouts can be given.
pub fn layout_hint() -> String {
    let names: Vec<&str> = BUILT_IN.iter().map(|built_in| built_in.name).collect();
    format!(
        "Use a built-in layout ({}), or fields from high to low such as \"timestamp=41 worker=9 sequence=13\".",
        names.join(", ")
    )
}

/// The line for `postgresql.conf` that adds this library to those that are preloaded now.
pub fn preload_line() -> String {
    let now = process::preload_libraries();
    let comma = if now.is_empty() { "" } else { ", " };
    format!("shared_preload_libraries = '{now}{comma}pg_snowflake'")
}
