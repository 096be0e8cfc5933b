//! The reference in docs/reference: it has every function, type, setting and error, as the catalogue and the sources have
//! them, and nothing else.

use postgres::Client;
use snowflake_test::{Cluster, check, value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, Token};

/// The functions of the extension, but for parts of others and those that PostgreSQL calls for a type and its casts: where they are described, their signature, and what stands below it.
const FUNCTIONS: &str = r"
    SELECT CASE nspname WHEN '_snowflake' THEN '_snowflake.' ELSE '' END || proname,
           format('%s%s(%s)%s', CASE prokind WHEN 'p' THEN 'PROCEDURE ' END, CASE nspname WHEN '_snowflake' THEN '_snowflake.' ELSE '' END || proname,
                  regexp_replace(pg_get_function_arguments(p.oid), '\mIN ', '', 'g'), ' RETURNS ' || pg_get_function_result(p.oid)),
           format('%s, %s, %s%s',
                  CASE provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
                  CASE WHEN proisstrict THEN 'STRICT' ELSE 'CALLED ON NULL INPUT' END,
                  CASE proparallel WHEN 's' THEN 'PARALLEL SAFE' WHEN 'r' THEN 'PARALLEL RESTRICTED'
                                   ELSE 'PARALLEL UNSAFE' END,
                  ', for ' || CASE WHEN proacl IS NOT NULL THEN coalesce(
                      (SELECT string_agg(grantee::regrole::text, ', ') FROM aclexplode(proacl) WHERE grantee <> proowner), 'superusers') END)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND extname = 'pg_snowflake'
    WHERE p.oid NOT IN (SELECT castfunc FROM pg_cast) AND obj_description(p.oid, 'pg_proc') NOT LIKE 'part of %'
      AND NOT EXISTS (SELECT FROM pg_type WHERE p.oid IN (typinput, typoutput, typreceive, typsend))";

/// The types of the extension that stand in columns and results, with their attributes.
const TYPES: &str = r"
    SELECT typname::text, CASE typtype
        WHEN 'c' THEN format('%s AS (%s)', typname,
            (SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
             FROM pg_attribute WHERE attrelid = typrelid AND attnum > 0))
        ELSE format('%s (LIKE = %s, CATEGORY = ''%s'')', typname,
            (SELECT casttarget::regtype FROM pg_cast WHERE castsource = t.oid AND castmethod = 'b'), typcategory) END
    FROM pg_type t JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND extname = 'pg_snowflake'
    WHERE typcategory <> 'A' AND typnamespace <> '_snowflake'::regnamespace";

/// Those that only carry a privilege.
const PRIVILEGES: &str = r"
    SELECT format('_snowflake.%s', typname)
    FROM pg_type t JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND extname = 'pg_snowflake'
    WHERE typnamespace = '_snowflake'::regnamespace AND typtype = 'd'";

/// The relations of the extension but the composite types.
const RELATIONS: &str = r"
    SELECT format('%s.%s', nspname, relname)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND extname = 'pg_snowflake'
    WHERE relkind <> 'c'";

/// The settings, with the line that says what they are.
const SETTINGS: &str = r"
    SELECT name, format('`%s`, default %s%s%s; context `%s`', vartype,
        CASE boot_val WHEN '' THEN 'empty' ELSE format('`%s%s`', boot_val, ' ' || unit) END,
        CASE WHEN min_val IS NULL THEN ''
             ELSE format(', from `%s%s` to `%s%s`', min_val, ' ' || unit, max_val, ' ' || unit) END,
        CASE WHEN enumvals IS NULL THEN '' ELSE format(', one of `%s`', array_to_string(enumvals, ', ')) END, context)
    FROM pg_settings WHERE name LIKE 'pg\_snowflake.%'";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join("docs/reference").join(name)).unwrap()
}

/// The parts of a page that begin with a heading of this depth, by their headings. One ends at the next heading.
fn parts(page: &str, depth: &str) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut heading = None;
    for line in page.lines() {
        if line.starts_with('#') {
            heading = line.strip_prefix(depth).and_then(|rest| rest.strip_prefix(' ')).map(str::to_owned);
            if let Some(heading) = &heading {
                assert!(parts.insert(heading.clone(), String::new()).is_none(), "\"{heading}\" is there twice");
            }
        } else if let Some(heading) = &heading {
            let part: &mut String = parts.get_mut(heading).unwrap();
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
}

/// The block of text at the head of a part.
fn signatures(part: &str) -> &str {
    part.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default()
}

/// Each signature with its properties: the first line of such that follows, as several signatures may have the same.
fn described(signatures: &str) -> Vec<String> {
    let (mut described, mut without) = (Vec::new(), Vec::<String>::new());
    for line in signatures.lines() {
        if line.contains(", PARALLEL ") {
            described.extend(without.drain(..).map(|signature| plain(&format!("{signature} {line}"))));
        } else if line.starts_with([' ', ')']) {
            without.last_mut().unwrap().push_str(&format!("\n{line}"));
        } else {
            without.push(line.to_owned());
        }
    }
    assert!(without.is_empty(), "{without:?} has no properties");
    described
}

/// One line, with one space between words, short names of types, no space beside parentheses, and NULL and text in quotes
/// without their types.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("'::text", "'");
    let mut parts = line.split("NULL::");
    let mut untyped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([',', ')']).unwrap_or(part.len());
        untyped.push_str("NULL");
        untyped.push_str(&part[end..]);
    }
    untyped
        .replace("timestamp with time zone", "timestamptz")
        .replace("timestamp without time zone", "timestamp")
        .replace("( ", "(")
        .replace(" )", ")")
}

fn rows<const COLUMNS: usize>(client: &mut Client, query: &str) -> Vec<[String; COLUMNS]> {
    let rows = client.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.iter().map(|row| std::array::from_fn(|column| row.get(column))).collect()
}

#[test]
fn functions_types_and_settings_are_those_of_the_catalogue() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();

    let functions = parts(&page("functions.md"), "###");
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for [name, signature, properties] in rows(&mut client, FUNCTIONS) {
        expected.entry(name).or_default().push(plain(&format!("{signature} {properties}")));
    }
    check::same_entries(("docs/reference/functions.md", functions.keys()), ("the catalog", expected.keys()));
    for (name, mut expected) in expected {
        let mut found = described(signatures(&functions[&name]));
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "left, what functions.md says of {name}");
    }

    let types = page("types.md");
    let described = parts(&types, "###");
    let expected: BTreeMap<_, _> = rows(&mut client, TYPES).into_iter().map(|[name, text]| (name, text)).collect();
    check::same_entries(("docs/reference", described.keys()), ("the catalog", expected.keys()));
    for (name, expected) in expected {
        assert_eq!(plain(signatures(&described[&name])), plain(&expected), "left, what types.md says of {name}");
    }
    let relations: BTreeSet<_> = rows(&mut client, RELATIONS).into_iter().map(|[name]| name).collect();
    let named = types.lines().filter_map(|line| line.strip_prefix("| `_snowflake.")?.split('`').next());
    let named: BTreeSet<_> = named.map(|name| format!("_snowflake.{name}")).collect();
    assert_eq!(named, relations, "left, the relations that types.md lists");
    for [name] in rows(&mut client, PRIVILEGES) {
        assert!(types.contains(&format!("type `{name}`")), "types.md lacks {name}");
    }

    let settings = parts(&page("settings.md"), "###");
    let settings: BTreeMap<_, _> = settings.into_iter().filter(|(name, _)| name.starts_with("pg_snowflake.")).collect();
    let expected: BTreeMap<_, _> = rows(&mut client, SETTINGS).into_iter().map(|[name, line]| (name, line)).collect();
    check::same_entries(("docs/reference", settings.keys()), ("the catalog", expected.keys()));
    for (name, expected) in expected {
        let line = settings[&name].lines().find(|line| !line.is_empty()).unwrap_or_default();
        assert_eq!(line, expected, "left, what settings.md says of {name}");
    }

    // The names of SQLSTATEs, which the next test relies on.
    for (code, (name, _)) in described_errors() {
        let raised = format!(
            "DO $$ BEGIN RAISE SQLSTATE '{code}'; EXCEPTION WHEN {name} THEN
                 PERFORM set_config('test.caught', '{code}', false); END $$"
        );
        client.batch_execute(&raised).unwrap_or_else(|error| panic!("{code} is not {name}: {error:?}"));
        assert_eq!(value::<String>(&mut client, "SELECT current_setting('test.caught')"), code);
    }
}

/// The errors of errors.md: by SQLSTATE, its name and the messages.
fn described_errors() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let parts = parts(&page("errors.md"), "###");
    let is_code = |code: &str| code.len() == 5 && code.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    let codes = parts.into_iter().filter(|(heading, _)| is_code(heading));
    let described = codes.map(|(code, part)| {
        let name = part.split('`').nth(1).unwrap_or_else(|| panic!("{code} has no name")).to_owned();
        (code, (name, messages(&part)))
    });
    described.collect()
}

/// The first column of the table of a part.
fn messages(part: &str) -> BTreeSet<String> {
    part.lines().filter_map(|line| line.strip_prefix("| `")?.split("` |").next()).map(str::to_owned).collect()
}

/// Whether a message fits a pattern, in which `…` stands for any text, and the message may have `…` there, too.
fn fits(message: &str, pattern: &str) -> bool {
    match pattern.split_once('…') {
        None => message == pattern,
        Some((start, rest)) => message.strip_prefix(start).is_some_and(|message| {
            let ends = message.char_indices().map(|(at, _)| at).chain([message.len()]);
            ends.skip(1).any(|at| fits(&message[at..], rest))
        }),
    }
}

/// A message in the sources, and its code as `ERRCODE_…` names it, where it is written beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Raised {
    code: Option<String>,
    message: String,
    file: PathBuf,
}

/// Collects messages from a file: the second argument of `error()`, `ErrorReport::new()` and `ereport!()`, and the first of
/// the closures that wrap them.
struct Reader {
    file: PathBuf,
    /// The variables of the function that is read, with what they are set to.
    variables: BTreeMap<String, Expr>,
    found: Vec<Raised>,
    unknown: Vec<String>,
}

/// Closures whose first argument is a message.
const WRAPPERS: [&str; 3] = ["warn", "note", "invalid"];

/// Messages that are those of an error of the core. They stand in its source.
const OF_THE_CORE: [(&str, &str); 3] = [
    ("NULL_VALUE_NOT_ALLOWED", "the layout has a {0}, but none is given"),
    ("INVALID_PARAMETER_VALUE", "the layout has no {0}, but one is given"),
    ("NUMERIC_VALUE_OUT_OF_RANGE", "{field} {value} is above the layout's highest, {max}"),
];

/// A format with `…` for what it fills in.
fn pattern(format: &str) -> String {
    let mut pattern = String::new();
    let mut inside = false;
    for c in format.chars() {
        match c {
            '{' => inside = true,
            '}' => {
                inside = false;
                pattern.push('…');
            }
            c if !inside => pattern.push(c),
            _ => {}
        }
    }
    pattern
}

/// The message in a call of `shown(message)`, which leaves ASCII as it is.
fn unwrapped(message: &Expr) -> &Expr {
    match message {
        Expr::Call(call) if call.args.len() == 1 => match &*call.func {
            Expr::Path(path) if path.path.segments.last().is_some_and(|name| name.ident == "shown") => &call.args[0],
            _ => message,
        },
        _ => message,
    }
}

/// What a message is that is no text: the variable, or the method that makes it.
fn named(message: &Expr) -> String {
    match message {
        Expr::Path(path) => path.path.get_ident().map_or_else(String::new, |name| name.to_string()),
        Expr::MethodCall(call) => format!("{}.{}()", named(&call.receiver), call.method),
        Expr::Reference(reference) => named(&reference.expr),
        _ => "an expression".to_owned(),
    }
}

impl Reader {
    /// The texts that an expression can be. `None` where that is not known here: an argument.
    fn texts(&self, expression: &Expr) -> Option<Vec<String>> {
        let all = |expressions: Vec<&Expr>| {
            expressions.into_iter().map(|one| self.texts(one)).collect::<Option<Vec<_>>>().map(|texts| texts.concat())
        };
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(vec![pattern(&text.value())]),
                _ => None,
            },
            Expr::Reference(reference) => self.texts(&reference.expr),
            Expr::MethodCall(call) if call.method == "to_owned" => self.texts(&call.receiver),
            Expr::Macro(call) if call.mac.path.is_ident("format") => {
                let arguments = call.mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated).ok()?;
                self.texts(arguments.first()?)
            }
            Expr::Match(choice) => all(choice.arms.iter().map(|arm| &*arm.body).collect()),
            Expr::Path(path) => self.texts(self.variables.get(&path.path.get_ident()?.to_string())?),
            _ => None,
        }
    }

    /// The names of the codes that an expression can be.
    fn codes(&self, expression: &Expr) -> Vec<Option<String>> {
        match expression {
            Expr::Match(choice) => choice.arms.iter().flat_map(|arm| self.codes(&arm.body)).collect(),
            Expr::Path(path) => {
                let name = path.path.segments.last().unwrap().ident.to_string();
                match (name.strip_prefix("ERRCODE_"), self.variables.get(&name)) {
                    // Not of an error: the server's log alone has these.
                    (Some("WARNING" | "SUCCESSFUL_COMPLETION"), _) => vec![None],
                    // PostgreSQL's documentation leaves out what the macros have before some names.
                    (Some(code), _) => vec![Some(code.trim_start_matches("T_R_").to_owned())],
                    (None, Some(value)) => self.codes(value),
                    (None, None) => vec![None],
                }
            }
            _ => vec![None],
        }
    }

    fn note(&mut self, codes: &[Option<String>], message: &Expr) {
        let message = unwrapped(message);
        match self.texts(message) {
            Some(texts) => {
                for (code, message) in codes.iter().flat_map(|code| texts.iter().map(move |text| (code, text))) {
                    let raised = Raised { code: code.clone(), message: message.clone(), file: self.file.clone() };
                    self.found.push(raised);
                }
            }
            None => {
                self.unknown.push(named(message));
            }
        }
    }
}

impl Visit<'_> for Reader {
    fn visit_local(&mut self, local: &syn::Local) {
        if let (syn::Pat::Ident(name), Some(init)) = (&local.pat, &local.init) {
            self.variables.insert(name.ident.to_string(), (*init.expr).clone());
        }
        visit::visit_local(self, local);
    }

    fn visit_item_fn(&mut self, function: &syn::ItemFn) {
        self.variables.clear();
        visit::visit_item_fn(self, function);
    }

    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let arguments: Vec<&Expr> = call.args.iter().collect();
            match (names.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), arguments.as_slice()) {
                (["error"], [code, message]) | (["ErrorReport", "new"], [code, message, _]) => {
                    self.note(&self.codes(code), message);
                }
                ([name], [message, ..]) if WRAPPERS.contains(name) => self.note(&[None], message),
                _ => {}
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        if call.path.is_ident("ereport") {
            let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated).unwrap();
            self.note(&self.codes(&arguments[1]), &arguments[2]);
        }
        visit::visit_macro(self, call);
    }
}

fn read(directory: &Path, found: &mut Vec<Raised>, unknown: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, found, unknown);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut reader = Reader { file: path, variables: BTreeMap::new(), found: vec![], unknown: vec![] };
        reader.visit_file(&source);
        found.extend(reader.found);
        unknown.extend(reader.unknown);
    }
}

#[test]
fn errors_and_log_messages_are_those_of_the_sources() {
    let (mut raised, mut unknown) = (Vec::new(), BTreeSet::new());
    read(&root().join("src"), &mut raised, &mut unknown);
    // The arguments of the functions and closures that wrap a report, the errors of the core, and what `note()` of
    // src/server/believed.rs takes, which is no message.
    let wrapped = ["message", "message.to_owned()", "part.to_string()", "change"];
    let unknown: Vec<_> = unknown.iter().filter(|text| !wrapped.contains(&text.as_str())).collect();
    assert!(unknown.is_empty(), "not understood: {unknown:?}");
    let core = std::fs::read_to_string(root().join("core/src/layout.rs")).unwrap();
    for (code, message) in OF_THE_CORE {
        assert!(core.contains(&format!("#[error(\"{message}\")]")), "{message}");
        let code = Some(code.to_owned());
        raised.push(Raised { code, message: pattern(message), file: "core/src/layout.rs".into() });
    }
    assert!(raised.len() > 80, "only {} were found", raised.len());

    let described = described_errors();
    let log: BTreeSet<String> = {
        let parts = parts(&page("errors.md"), "###");
        ["Warnings", "LOG lines"].iter().flat_map(|heading| messages(&parts[*heading])).collect()
    };
    let mut missing = Vec::new();
    for Raised { code, message, file } in &raised {
        let of_code = code.as_ref().map(|code| {
            let with_code = described.values().find(|(name, _)| name.to_uppercase() == *code);
            with_code.map(|(_, messages)| messages.clone()).unwrap_or_default()
        });
        // A warning may have the code of an error; and where the code is not known, the message may be anywhere.
        let everywhere = || described.values().flat_map(|(_, messages)| messages.clone());
        let there: BTreeSet<String> = of_code.unwrap_or_else(|| everywhere().collect());
        if !there.iter().chain(&log).any(|described| fits(described, message)) {
            missing.push(format!("{}: {code:?}: {message}", file.display()));
        }
    }
    assert!(missing.is_empty(), "docs/reference/errors.md lacks:\n{}", missing.join("\n"));

    let mut invented = Vec::new();
    for (code, (name, messages)) in &described {
        for message in messages {
            let is_raised = |raised: &&Raised| {
                raised.code.as_ref().is_none_or(|code| *code == name.to_uppercase()) && fits(message, &raised.message)
            };
            if raised.iter().find(is_raised).is_none() {
                invented.push(format!("{code}: {message}"));
            }
        }
    }
    let in_log = log.iter().filter(|message| !raised.iter().any(|raised| fits(message, &raised.message)));
    invented.extend(in_log.cloned());
    assert!(invented.is_empty(), "docs/reference/errors.md has what no source raises:\n{}", invented.join("\n"));
}

/// docs/security.md says of each function who may call it.
#[test]
fn the_page_on_security_has_every_function_with_who_may_call_it() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let mut described = BTreeMap::new();
    assert!(page.contains("| those that are not listed here | everybody | no code of other roles |"));
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        for name in cells[1].split(", ") {
            let who = cells[2].replace('`', "");
            assert!(cells[3].len() > 5, "as whom does {name} run what?");
            assert!(described.insert(name.trim_matches('`').to_owned(), who).is_none(), "{name} is there twice");
        }
    }
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_snowflake").unwrap();
    let mut callable: BTreeMap<String, String> = BTreeMap::new();
    for [name, _, properties] in rows(&mut client, FUNCTIONS) {
        let who = properties.rsplit_once(", for ").map_or("everybody", |(_, who)| who).to_owned();
        let known = callable.entry(name.clone()).or_insert_with(|| who.clone());
        assert_eq!(*known, who, "of {name}, the forms differ");
    }
    let unknown: Vec<_> = described.keys().filter(|name| !callable.contains_key(*name)).collect();
    assert_eq!(unknown, [""; 0]);
    for (name, who) in callable {
        // Those that are not listed.
        let described = described.get(&name).map_or("everybody", String::as_str);
        assert!(described.starts_with(&who), "{name} is for {who}, and the page says: {described}");
    }
}
