//! The text of a function in PL/pgSQL: which of its lines put a column into a variable that is too small, as far as the text shows it.

/// Types that an ID does not fit into.
const SMALL: [&str; 7] = ["integer", "int", "int4", "smallint", "int2", "serial", "smallserial"];

/// A word, or one character of anything else but `:=` and `::`, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
    is_name: bool,
}

impl Token {
    fn is(&self, text: &str) -> bool {
        self.text == text
    }

    fn is_small_type(&self) -> bool {
        self.is_name && SMALL.contains(&&*self.text)
    }
}

/// A name without its quotes.
pub fn unquoted(name: &str) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

/// The lines, with their numbers, in which one of these columns gets into a variable of type integer or smallint, or is cast to it. What NEW and
/// OLD have of them is `of_rows`.
pub fn narrowing(source: &str, columns: &[String], of_rows: &[String]) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let variables: Vec<&str> = tokens.windows(3).filter_map(small_variable).collect();
    let is_small = |token: &Token| token.is_name && variables.contains(&&*token.text);
    let mut numbers = Vec::new();
    for statement in tokens.split(ends_statement) {
        let is_key = |&(place, token): &(usize, &Token)| {
            let is_of_row = matches!(&statement[place.saturating_sub(2)..place], [row, dot] if dot.is(".") && (row.is("new") || row.is("old")));
            token.is_name && if is_of_row { of_rows } else { columns }.contains(&token.text)
        };
        let mut keys = statement.iter().enumerate().filter(is_key);
        let is_cast = |&(place, _): &(usize, &Token)| matches!(&statement[place + 1..], [colons, of_type, ..] if colons.is("::") && of_type.is_small_type());
        // What an assignment has on its right.
        let assigned = statement.iter().position(|token| token.is(":=") || token.is("=") || token.is("default"));
        let is_assigned = |&(place, _): &(usize, &Token)| {
            assigned.is_some_and(|sign| sign < place && statement[..sign].first().is_some_and(is_small))
        };
        let gets_into = statement
            .windows(3)
            .any(|words| words[0].is("into") && (is_small(&words[1]) || words[1].is("strict") && is_small(&words[2])))
            || matches!(statement, [.., into, variable] if into.is("into") && is_small(variable));
        let found = keys.find(|key| gets_into || is_cast(key) || is_assigned(key));
        numbers.extend(found.map(|(_, token)| token.line));
    }
    numbers.dedup();
    let lines: Vec<&str> = source.lines().collect();
    numbers.into_iter().filter_map(|number| Some((number, lines.get(number - 1)?.trim().to_owned()))).collect()
}

/// A call to which a column is given as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of its line.
    pub line: usize,
    /// The text of this.
    pub text: String,
    /// The name of what is called, without a schema.
    pub name: String,
    /// Which of the arguments it is, from 1 on.
    pub place: usize,
}

/// Such calls, with what NEW and OLD have of the columns.
pub fn calls(source: &str, of_rows: &[String]) -> Vec<Call> {
    let tokens = tokens(source);
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (start, pair) in tokens.windows(2).enumerate() {
        let [name, opening] = pair else { continue };
        if !name.is_name || !opening.is("(") {
            continue;
        }
        let (mut depth, mut place, mut first) = (0, 1, start + 2);
        for (at, token) in tokens.iter().enumerate().skip(start + 1) {
            depth += i32::from(token.is("(") || token.is("[")) - i32::from(token.is(")") || token.is("]"));
            if depth == 0 || depth == 1 && token.is(",") {
                if let Some([row, dot, column]) = tokens.get(first..at) {
                    let is_row = row.is("new") || row.is("old");
                    if is_row && dot.is(".") && column.is_name && of_rows.contains(&column.text) {
                        let text = lines.get(name.line - 1).unwrap_or(&"").trim().to_owned();
                        found.push(Call { line: name.line, text, name: name.text.clone(), place });
                    }
                }
                (place, first) = (place + 1, at + 1);
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// A declaration: a name, CONSTANT, and one of the types.
fn small_variable(tokens: &[Token]) -> Option<&str> {
    let [name, next, last] = tokens else { return None };
    let is_declared = next.is_small_type() || next.is("constant") && last.is_small_type();
    (is_declared && name.is_name && !name.is("as") && !name.is("returns") && !name.is("constant")).then_some(&name.text)
}

fn ends_statement(token: &Token) -> bool {
    token.is(";") || token.is_name && ["declare", "begin", "then", "else", "loop"].contains(&&*token.text)
}

/// The words of a text and what is between them, without comments and literals.
fn tokens(source: &str) -> Vec<Token> {
    let characters: Vec<char> = source.chars().collect();
    let (mut tokens, mut place, mut line) = (Vec::new(), 0, 1);
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    while let Some(&character) = characters.get(place) {
        let rest = &characters[place..];
        let length = match rest {
            ['-', '-', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => rest.windows(2).position(|pair| pair == ['*', '/']).map_or(rest.len(), |end| end + 2),
            [quote @ ('\'' | '"'), inner @ ..] => {
                let inner = inner.iter().position(|c| c == quote).unwrap_or(inner.len());
                let length = (inner + 2).min(rest.len());
                if *quote == '"' {
                    let text = rest[1..=inner].iter().collect();
                    tokens.push(Token { line, text, is_name: true });
                }
                length
            }
            [':', '=' | ':', ..] => {
                tokens.push(Token { line, text: rest[..2].iter().collect(), is_name: false });
                2
            }
            _ if is_of_name(character) => {
                let length = rest.iter().position(|&c| !is_of_name(c)).unwrap_or(rest.len());
                let text: String = rest[..length].iter().collect();
                tokens.push(Token { line, text: text.to_lowercase(), is_name: true });
                length
            }
            _ => {
                if !character.is_whitespace() {
                    tokens.push(Token { line, text: character.to_string(), is_name: false });
                }
                1
            }
        };
        line += rest[..length].iter().filter(|&&c| c == '\n').count();
        place += length;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::{calls, narrowing};

    fn lines(source: &str) -> Vec<usize> {
        let columns = ["id", "Ord Id", "other_id"].map(str::to_owned);
        narrowing(source, &columns, &columns[..2]).into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn what_puts_a_key_into_an_integer_is_found() {
        let body =
            |text: &str| format!("\nDECLARE\n  v integer;\n  w bigint;\n  c CONSTANT int4 := 5;\nBEGIN\n{text}\nEND");
        for found in [
            "v := NEW.id;",
            "v = 1 + NEW.ID;",
            "SELECT id INTO v FROM orders;",
            "SELECT max(\"Ord Id\") FROM orders INTO v;",
            "SELECT id INTO STRICT v FROM orders;",
            "PERFORM f(NEW.id::integer);",
            "IF true THEN v := NEW.\"Ord Id\"; END IF;",
            "SELECT other_id INTO v FROM others;",
            "v := 1 + /* of the row */ NEW.id;",
        ] {
            assert_eq!(lines(&body(found)), [7], "{found}");
        }
        for other in [
            "w := NEW.id;",
            "v := NEW.n;",
            "v := NEW.other_id;",
            "v := OLD . other_id;",
            "-- v := NEW.id;",
            "/* v := NEW.id; */ NULL;",
            "w := NEW.id; v := 3;",
            "RAISE 'v := NEW.id';",
            "-- x; v := NEW.id;",
            "/* x; v := NEW.id; */ NULL;",
            "RAISE 'x; v := NEW.id;';",
            "SELECT id FROM orders WHERE n > v;",
            "MERGE INTO orders v USING others ON id > n;",
        ] {
            assert_eq!(lines(&body(other)), [0usize; 0], "{other}");
        }
        assert_eq!(lines("DECLARE v int := NEW.id; BEGIN END"), [1]);
        assert_eq!(lines("DECLARE c CONSTANT bigint := 5; BEGIN c := NEW.id; END"), [0usize; 0]);
    }

    #[test]
    fn calls_with_a_key_are_found() {
        let found = |source: &str| -> Vec<(usize, String, usize)> {
            let columns = ["id", "Ord Id"].map(str::to_owned);
            calls(source, &columns).into_iter().map(|call| (call.line, call.name, call.place)).collect()
        };
        let one = |line, name: &str, place| vec![(line, name.to_owned(), place)];
        assert_eq!(found("BEGIN\n PERFORM touch(NEW.id); END"), one(2, "touch", 1));
        assert_eq!(found("x := shop.f(g(1, 2), a[1, 2], old.\"Ord Id\");"), one(1, "f", 3));
        assert_eq!(found("f(1, g(NEW.id))"), one(1, "g", 1));
        for other in
            ["f(NEW.id + 1)", "f(NEW.n)", "f(id)", "-- f(NEW.id)", "(NEW.id)", "f(NEW.id::bigint)", "f(", "f(NEW.id"]
        {
            assert_eq!(found(other), [], "{other}");
        }
    }

    /// Whatever it is given: it ends, and does not panic.
    #[test]
    fn any_text_can_be_read() {
        let mut random = 7_u64;
        for _ in 0..20_000 {
            let text: String = (0..12)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    ["'", "\"", "id", "v integer", ":", "=", ";", "\n", "--", "/*", "*/", "é", "into", " "]
                        [(random >> 33) as usize % 14]
                })
                .collect();
            lines(&text);
            calls(&text, &["id".to_owned()]);
        }
    }
}
