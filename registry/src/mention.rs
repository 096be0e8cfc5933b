//! Where a text names a parameter of PostgreSQL's.

/// Whether a text names this parameter: in SQL, in a file of settings, or in a message. SQL can write the name in upper case, in
/// quotes, and with white space around its dot. A longer name that begins with this one is another one.
///
/// ```
/// use snowflake_registry::mentions;
///
/// assert!(mentions(b"ALTER SYSTEM SET pg_snowflake.registry = ''", "pg_snowflake", "registry"));
/// assert!(mentions(b"SET \"pg_snowflake\" . Registry TO x", "pg_snowflake", "registry"));
/// assert!(!mentions(b"SHOW pg_snowflake.registry_window", "pg_snowflake", "registry"));
/// ```
pub fn mentions(text: &[u8], prefix: &str, name: &str) -> bool {
    text.windows(prefix.len())
        .enumerate()
        .filter(|(_, window)| window.eq_ignore_ascii_case(prefix.as_bytes()))
        .any(|(at, _)| is_followed_by(&text[at + prefix.len()..], name.as_bytes()))
}

/// Whether a dot comes, and then this name.
fn is_followed_by(text: &[u8], name: &[u8]) -> bool {
    let Some(rest) = without_quotes(text).strip_prefix(b".") else { return false };
    let rest = without_quotes(rest);
    let is_longer = rest.get(name.len()).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(byte));
    rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) && !is_longer
}

fn without_quotes(text: &[u8]) -> &[u8] {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'"';
    let start = text.iter().position(|byte| !is_between(byte)).unwrap_or(text.len());
    &text[start..]
}

#[cfg(test)]
mod tests {
    fn mentions(text: &str) -> bool {
        super::mentions(text.as_bytes(), "pg_snowflake", "registry")
    }

    #[test]
    fn every_spelling_is_found() {
        for text in [
            "pg_snowflake.registry",
            "SELECT 1; SET pg_snowflake.registry='redis://:pw@h'",
            "SELECT set_config('pg_snowflake.registry', 'x', false)",
            "invalid value for parameter \"pg_snowflake.registry\": \"x\"",
            "alter system set PG_Snowflake.\"Registry\" = 'x'",
            "SET \"pg_snowflake\"\n.\t\"registry\"= x",
            "pg_snowflake.worker_id pg_snowflake.registry_window pg_snowflake.registry",
            "pg_snowflakepg_snowflake.registry",
            "„pg_snowflake.registry“",
        ] {
            assert!(mentions(text), "{text}");
        }
        for text in [
            "",
            "pg_snowflake",
            "pg_snowflake.",
            "pg_snowflake.regist",
            "pg_snowflake.registry_password_file",
            "pg_snowflake.registry2",
            "pg_snowflake registry",
            "snowflake_registry.workers",
        ] {
            assert!(!mentions(text), "{text}");
        }
    }
}
