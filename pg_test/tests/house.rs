//! Which module uses which, read from the sources: each uses only modules that stand below it, and none uses itself by
//! way of others. Whether type names are clear. And whether the files that documents name exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::visit::{self, Visit};

/// The name of a module: `["reservation", "register"]`. The crate itself is `[]`.
type Name = Vec<String>;

/// The modules of a crate that are files, each with those that it uses.
type Uses = BTreeMap<Name, BTreeSet<Name>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The modules below a directory, with their sources.
fn files(directory: &Path, inside: &[String]) -> Vec<(Name, syn::File)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut name = inside.to_vec();
        if stem != "mod" && stem != "lib" {
            name.push(stem);
        }
        if path.is_dir() {
            found.extend(files(&path, &name));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            found.push((name, syn::parse_file(&source).unwrap()));
        }
    }
    found
}

fn uses(source: &Path) -> Uses {
    let files = files(source, &[]);
    let names: BTreeSet<Name> = files.iter().map(|(name, _)| name.clone()).collect();
    let uses_of = |name: &Name, file| {
        let mut reader = Reader { name, names: &names, inside: 0, uses: BTreeSet::new() };
        reader.visit_file(file);
        reader.uses
    };
    files.iter().map(|(name, file)| (name.clone(), uses_of(name, file))).collect()
}

/// Reads one module.
struct Reader<'a> {
    name: &'a Name,
    names: &'a BTreeSet<Name>,
    /// In how many modules of this file, such as `mod tests`, the reader is.
    inside: usize,
    uses: BTreeSet<Name>,
}

impl Reader<'_> {
    /// Notes the module that a path leads to, where it leads to one of this crate's.
    fn note(&mut self, path: &[String]) {
        let mut place = self.name.clone();
        let mut depth = self.inside;
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => (place, depth) = (Vec::new(), 0),
                "self" => {}
                "super" if depth > 0 => depth -= 1,
                "super" => {
                    place.pop();
                }
                _ => break,
            }
            rest = others;
        }
        place.extend(rest.iter().cloned());
        while !self.names.contains(&place) {
            place.pop();
        }
        // What does not begin with one of the three, and leads to no module from here, is a name of another crate.
        if place != *self.name && !(rest.len() == path.len() && self.name.starts_with(&place)) {
            self.uses.insert(place);
        }
    }

    fn note_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.note(&with(&name.ident)),
            syn::UseTree::Rename(rename) => self.note(&with(&rename.ident)),
            syn::UseTree::Glob(_) => self.note(before),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(before, tree)),
        }
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.note_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let path_names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&path_names);
        visit::visit_path(self, path);
    }

    /// `pub(super)` uses nothing.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        self.inside += 1;
        visit::visit_item_mod(self, item);
        self.inside -= 1;
    }
}

/// A way from a module by those that it uses back to itself.
fn circle(uses: &Uses) -> Option<Vec<Name>> {
    fn search(uses: &Uses, way: &mut Vec<Name>, done: &mut BTreeSet<Name>) -> Option<Vec<Name>> {
        let here = way.last().unwrap().clone();
        for next in &uses[&here] {
            if let Some(start) = way.iter().position(|name| name == next) {
                return Some([&way[start..], std::slice::from_ref(next)].concat());
            }
            if !done.contains(next) {
                way.push(next.clone());
                if let Some(found) = search(uses, way, done) {
                    return Some(found);
                }
                way.pop();
            }
        }
        done.insert(here);
        None
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|name| search(uses, &mut vec![name.clone()], &mut done))
}

fn written(name: &[String]) -> String {
    format!("crate{}", name.iter().map(|part| format!("::{part}")).collect::<String>())
}

/// The modules that the documentation of a crate lists, in its order.
fn listed(library: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(library).unwrap();
    let entries = source.lines().filter_map(|line| line.strip_prefix("//! * [`"));
    entries.map(|entry| entry.split('`').next().unwrap().to_owned()).collect()
}

fn check_no_circle(uses: &Uses) {
    assert!(uses.values().any(|uses| !uses.is_empty()), "no module was found to use another");
    if let Some(circle) = circle(uses) {
        let names: Vec<String> = circle.iter().map(|name| written(name)).collect();
        panic!("modules use each other: {}", names.join(" uses "));
    }
}

#[test]
fn no_module_of_the_extension_uses_itself_by_way_of_others() {
    check_no_circle(&uses(&root().join("src")));
}

#[test]
fn no_module_of_the_core_uses_itself_by_way_of_others() {
    let mut uses = uses(&root().join("core/src"));
    // The crate's root offers the modules' types under shorter names; that is no use of them.
    uses.insert(Vec::new(), BTreeSet::new());
    check_no_circle(&uses);
}

#[test]
fn no_module_of_the_registries_uses_itself_by_way_of_others() {
    let mut uses = uses(&root().join("registry/src"));
    // As with the core.
    uses.insert(Vec::new(), BTreeSet::new());
    check_no_circle(&uses);
}

#[test]
fn no_module_of_the_plans_for_moving_uses_itself_by_way_of_others() {
    let mut uses = uses(&root().join("moving/src"));
    // As with the core.
    uses.insert(Vec::new(), BTreeSet::new());
    check_no_circle(&uses);
}

/// The sources of crates in which the name of a type says which one it is, wherever it stands.
const CRATES_OF_CLEAR_NAMES: [&str; 4] = ["core/src", "moving/src", "registry/src", "src"];

/// The types that a module defines, each with whether it is private to that module, but for associated types, which have the name of
/// their trait's. Within one file, a name may come again, for another platform or in its tests.
struct Types<'a>(&'a mut BTreeMap<String, bool>);

impl Types<'_> {
    fn note(&mut self, ident: &syn::Ident, visibility: &syn::Visibility) {
        let is_private = matches!(visibility, syn::Visibility::Inherited);
        let all_private = self.0.entry(ident.to_string()).or_insert(true);
        *all_private &= is_private;
    }
}

impl Visit<'_> for Types<'_> {
    fn visit_item_struct(&mut self, item: &syn::ItemStruct) {
        self.note(&item.ident, &item.vis);
    }

    fn visit_item_enum(&mut self, item: &syn::ItemEnum) {
        self.note(&item.ident, &item.vis);
    }

    fn visit_item_union(&mut self, item: &syn::ItemUnion) {
        self.note(&item.ident, &item.vis);
    }

    fn visit_item_trait(&mut self, item: &syn::ItemTrait) {
        self.note(&item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &syn::ItemType) {
        self.note(&item.ident, &item.vis);
    }
}

/// The names that a module imports, each with the path before it.
struct Imports<'a>(&'a mut Vec<(Name, String)>);

impl Imports<'_> {
    fn note(&mut self, before: &[String], tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.note(&[before, &[path.ident.to_string()]].concat(), &path.tree),
            syn::UseTree::Name(name) => self.0.push((before.to_vec(), name.ident.to_string())),
            // By another name, or all: what a glob brings in is used beside it.
            syn::UseTree::Rename(_) | syn::UseTree::Glob(_) => {}
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.note(before, tree)),
        }
    }
}

impl Visit<'_> for Imports<'_> {
    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        self.note(&[], &item.tree);
    }
}

/// What makes names unclear that several of these files give to types. A name may come again where no reader sees both without more:
/// in another room, a module of the crate's root, if outside of its room each is written with its module, as in `segment::Range`; or in
/// the same room, if both are private to their modules.
fn unclear_names(files: &[(Name, syn::File)]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<(&Name, bool)>> = BTreeMap::new();
    for (module, file) in files {
        let mut types = BTreeMap::new();
        Types(&mut types).visit_file(file);
        types.into_iter().for_each(|(name, is_private)| places.entry(name).or_default().push((module, is_private)));
    }
    places.retain(|_, modules| modules.len() > 1);

    let mut found = Vec::new();
    for (name, modules) in &places {
        for (at, (module, is_private)) in modules.iter().enumerate() {
            for (other, is_other_private) in &modules[at + 1..] {
                if module.first() == other.first() && !(*is_private && *is_other_private) {
                    found.push(format!("{name} in {} and {}", written(module), written(other)));
                }
            }
        }
    }
    for (module, file) in files {
        let mut imports = Vec::new();
        Imports(&mut imports).visit_file(file);
        for (path, name) in imports {
            let Some(modules) = places.get(&name) else { continue };
            let is_home = modules.iter().any(|(home, _)| home.first() == module.first());
            let is_of_crate = path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "super" | "self"))
                || files.iter().any(|(other, _)| other.first() == path.first());
            let leads_out = path.first().is_some_and(|first| first == "crate") && path.get(1) != module.first();
            if is_of_crate && (!is_home || leads_out) {
                found.push(format!("{name} without its module in {}", written(module)));
            }
        }
    }
    found
}

#[test]
fn type_names_of_one_crate_mean_one_thing() {
    for source in CRATES_OF_CLEAR_NAMES {
        let files = files(&root().join(source), &[]);
        assert!(files.len() > 1, "{source}");
        let found = unclear_names(&files);
        assert!(found.is_empty(), "{source}: {}", found.join(", "));
    }
}

#[test]
fn unclear_type_names_are_found() {
    let module = |name: &str, text: &str| {
        (name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(), syn::parse_file(text).unwrap())
    };
    let files = [
        module("", "pub use a::Six; pub use a::Five;"),
        module("a", "pub enum Five {} pub struct Six; pub struct Seven; impl T for Six { type Item = u8; }"),
        module("a::x", "struct One; #[cfg(x)] enum Two {} #[cfg(not(x))] enum Two {} struct Three;"),
        module(
            "a::y",
            "mod inner { type One = u8; } trait Four { type Item; } fn f() { pub struct Two; } struct Three;",
        ),
        module(
            "b",
            "enum Four { One } pub(crate) struct Six; use crate::a::{self, Seven}; use a::Three; use other::Six;",
        ),
        module("c", "pub struct Seven; use crate::a::Five; use crate::b::Six; use crate::a::Seven as S;"),
    ];
    assert_eq!(
        unclear_names(&files),
        [
            "Two in crate::a::x and crate::a::y",
            "Six without its module in crate",
            "Seven without its module in crate::b",
            "Three without its module in crate::b",
            "Six without its module in crate::c",
        ]
    );
}

/// The order is that of the list in `src/lib.rs`.
#[test]
fn modules_of_the_extension_use_only_those_below_them() {
    let listed = listed(&root().join("src/lib.rs"));
    let uses = uses(&root().join("src"));
    let rooms: BTreeSet<&String> = uses.keys().filter_map(|name| name.first()).collect();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>(), rooms, "src/lib.rs lists each module");
    let floor = |name: &Name| name.first().map(|room| listed.iter().position(|other| other == room).unwrap());
    for (name, used) in uses.iter().filter(|(name, _)| !name.is_empty()) {
        for other in used {
            let is_below = other.first() == name.first() || floor(other) > floor(name);
            assert!(is_below, "{} uses {}, which is not below it", written(name), written(other));
        }
    }
}

/// A newcomer holds twelve rooms in the head.
#[test]
fn the_extension_has_twelve_rooms_and_nothing_beside_them() {
    let mut rooms = 0;
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.is_dir() || path.ends_with("lib.rs"), "{} is in no room", path.display());
        rooms += usize::from(path.is_dir());
    }
    assert!(rooms <= 12, "{rooms} rooms");
}

/// How often `unsafe` stands in the extension, at most. Safe functions take its place: see `src/postgres` and `src/planner/nodes.rs`.
const UNSAFE: usize = 264;

/// Unsafe code stands in few places, and each says why it is sound, for itself.
#[test]
fn unsafe_code_is_little_and_each_has_its_reason() {
    let mut count = 0;
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            count += source.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| *word == "unsafe").count();
            for reason in source.lines().filter_map(|line| line.split_once("SAFETY:")) {
                let refers = ["as above", "as before", "likewise"].iter().any(|words| reason.1.contains(words));
                assert!(!refers, "{}: {}", path.display(), reason.1);
            }
        }
    }
    assert!(count <= UNSAFE, "{count}");
}

/// The SQL that a method executes or a function hands on: as it is written, where it is a constant or a literal.
struct Executed<'a> {
    inside: String,
    found: &'a mut Vec<String>,
}

impl Executed<'_> {
    fn note(&mut self, sql: &syn::Expr) {
        let is_constant = |path: &syn::ExprPath| {
            path.path
                .segments
                .last()
                .is_some_and(|last| last.ident.to_string().chars().all(|c| c.is_uppercase() || c == '_'))
        };
        let is_fixed = match sql {
            syn::Expr::Lit(_) => true,
            syn::Expr::Path(path) => is_constant(path),
            syn::Expr::Reference(of) => matches!(&*of.expr, syn::Expr::Call(call) if is_named(&call.func, "composed")),
            _ => false,
        };
        if !is_fixed {
            self.found.push(self.inside.clone());
        }
    }
}

fn is_named(function: &syn::Expr, name: &str) -> bool {
    matches!(function, syn::Expr::Path(path) if path.path.is_ident(name))
}

impl Visit<'_> for Executed<'_> {
    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.inside = item.sig.ident.to_string();
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.inside = item.sig.ident.to_string();
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let is_of_client = matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("client"));
        if is_of_client
            && ["select", "update", "prepare", "prepare_mut", "open_cursor"].contains(&&*call.method.to_string())
        {
            self.note(&call.args[0]);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        if is_named(&call.func, "rows") {
            self.note(&call.args[1]);
        }
        visit::visit_expr_call(self, call);
    }
}

/// A name that was looked up may stand for something else once it is used. So SQL that is no constant is executed by one type, whose names
/// are of what is held. Each exception has its reason.
#[test]
fn sql_that_is_made_has_names_only_of_what_is_held() {
    const EXCEPTIONS: [(&str, &str, &str); 7] = [
        ("postgres::held", "update", "the type itself"),
        ("postgres::held", "select", "the type itself"),
        ("record::rights", "set", "one constant of the module after the other"),
        ("tables::moving::rows", "rows", "hands on what its callers give, each of which is looked at"),
        (
            "tables::moving::catalogue",
            "refused_by_checks",
            "of PostgreSQL's own functions alone, over a row of its own",
        ),
        ("tables::partitions::privileges", "pass_on", "a part of the install script"),
        ("tables::replicated", "read", "a function of the extension in SQL"),
    ];
    let mut found = Vec::new();
    for (module, file) in files(&root().join("src"), &[]) {
        let mut here = Vec::new();
        Executed { inside: String::new(), found: &mut here }.visit_file(&file);
        found.extend(here.into_iter().map(|function| (module.join("::"), function)));
    }
    found.sort();
    found.dedup();
    let known: Vec<(String, String)> =
        EXCEPTIONS.iter().map(|(module, function, _)| ((*module).into(), (*function).into())).collect();
    let others: Vec<_> = found.iter().filter(|found| !known.contains(found)).collect();
    assert!(others.is_empty(), "{others:?}");
    let gone: Vec<_> = known.iter().filter(|known| !found.contains(known)).collect();
    assert!(gone.is_empty(), "exceptions that are none: {gone:?}");
}

/// The same in PL/pgSQL: whatever executes a text holds what it names, or is called by what does, or has a reason.
#[test]
fn pl_pgsql_that_executes_a_text_holds_what_it_names() {
    const HOLDS: [&str; 4] = ["_snowflake.hold(", "_snowflake.held(", "moving.lock(", "LOCK TABLE"];
    const EXCEPTIONS: [(&str, &str); 17] = [
        ("begin.sql", "names of the extension's own objects, which the caller owns"),
        ("end.sql", "names of the extension's own objects, which the caller owns"),
        ("_snowflake.begin_with", "names of the extension's own objects, which the caller owns"),
        ("_snowflake.refusing", "PostgreSQL's own functions alone, over a row of its own"),
        ("_snowflake.place_of", "locks the sequence by its OID"),
        ("_snowflake.adopt", "_snowflake.check_moving() holds the tables"),
        ("_snowflake.release", "_snowflake.check_moving() holds the tables"),
        ("_snowflake.make_partitions", "_snowflake.lock() holds the table"),
        ("_snowflake.maintain_partitions", "_snowflake.lock() holds the table and the partitions"),
        ("moving.copy_privileges", "of a table of its own"),
        ("moving.make_for_copy", "of a table of its own"),
        ("moving.obstacles", "calls a function of the extension, found by its library"),
        ("moving.index_statements", "of a table of its own"),
        ("moving.make_identity", "moving.swap() holds the tables"),
        ("moving.change_places", "moving.swap() holds the tables"),
        ("moving.tried", "moving.swap() holds the tables"),
        ("from_uuid.line_up", "from_uuid.move() holds the tables"),
    ];
    // EXECUTE as a word of other statements.
    let is_other =
        |line: &str| ["GRANT", "REVOKE", "EXECUTE FUNCTION moving", "'EXECUTE'"].iter().any(|word| line.contains(word));
    let (mut used, mut others) = (BTreeSet::new(), Vec::new());
    for folder in ["sql/parts", "sql/hosted", "examples/moving-in"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "sql") {
                continue;
            }
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            let source = std::fs::read_to_string(&path).unwrap();
            let mut bodies = vec![(file, String::new())];
            for line in source.lines() {
                let begins =
                    ["CREATE FUNCTION ", "CREATE PROCEDURE ", "--- "].iter().find_map(|word| line.strip_prefix(word));
                if let Some(name) = begins {
                    let name = name.split(['(', ' ']).next().unwrap().to_owned();
                    bodies.push((name, String::new()));
                }
                let body = &mut bodies.last_mut().unwrap().1;
                body.push_str(line);
                body.push('\n');
            }
            for (name, body) in bodies {
                if !body
                    .lines()
                    .any(|line| line.contains("EXECUTE ") && !line.trim_start().starts_with("--") && !is_other(line))
                {
                    continue;
                }
                match EXCEPTIONS.iter().find(|(exception, _)| *exception == name) {
                    Some((exception, _)) => drop(used.insert(*exception)),
                    None if HOLDS.iter().any(|word| body.contains(word)) => {}
                    None => others.push(name),
                }
            }
        }
    }
    assert!(others.is_empty(), "{others:?}");
    let gone: Vec<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).filter(|name| !used.contains(name)).collect();
    assert!(gone.is_empty(), "exceptions that are none: {gone:?}");
}

/// So the core can be tested without a server, and used without one.
#[test]
fn the_core_depends_on_nothing_of_postgresql() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let tree = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "--package", "snowflake_core", "--edges", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.starts_with("snowflake_core"), "{tree}");
    for name in ["pgrx", "postgres", "pg_"] {
        assert!(!tree.lines().any(|line| line.starts_with(name)), "{tree}");
    }
}

/// The files of Markdown below a directory, without those of packages.
fn markdown(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}

/// A file of tests that no program has is one that nobody runs.
#[test]
fn each_file_of_tests_belongs_to_a_program() {
    let tests = root().join("pg_test/tests");
    let main = std::fs::read_to_string(tests.join("main.rs")).unwrap();
    let programs = std::fs::read_to_string(root().join("pg_test/Cargo.toml")).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_module = main.lines().any(|line| line == format!("mod {name};"));
        let is_program =
            [format!("tests/{name}.rs"), format!("tests/{name}/main.rs")].iter().any(|file| programs.contains(file));
        assert!(is_module || is_program, "no program has {}", path.display());
        count += 1;
    }
    assert!(count > 40, "only {count} files of tests");
}

/// Every document: those at the top, the book, the READMEs of the core, of the packages for clients and of the examples.
fn documents() -> Vec<PathBuf> {
    let at_top = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut documents: Vec<_> = at_top.filter(|path| path.extension().is_some_and(|name| name == "md")).collect();
    documents.push(root().join("core/README.md"));
    documents.extend(
        ["docs", "clients", "examples", "packaging", ".github"]
            .iter()
            .flat_map(|directory| markdown(&root().join(directory))),
    );
    documents
}

/// The text of a document without its blocks of code.
fn prose(document: &Path) -> String {
    let text = std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()));
    let mut in_block = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(document: &Path) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for heading in prose(document).lines().filter(|line| line.starts_with('#')) {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        assert!(anchors.insert(anchor), "{} has two headings \"{words}\"", document.display());
    }
    anchors
}

/// The targets of a document's links, in order.
fn links(document: &Path) -> Vec<String> {
    let text = prose(document);
    let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    links.map(str::to_owned).collect()
}

#[test]
fn files_that_documents_name_exist() {
    let mut found = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        // The steps of a release name files that it makes.
        if document.ends_with("docs/releasing.md") {
            continue;
        }
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = [
                "src/",
                "core/",
                "registry/",
                "moving/",
                "clients/",
                "examples/",
                "sql/",
                "pg_test/",
                "scripts/",
                "docs/",
            ]
            .iter()
            .any(|start| name.starts_with(start));
            // Not a command, nor a pattern.
            if is_path && !name.contains([' ', '*', '\n']) && !name.contains("OLD") && !name.contains("TOPIC") {
                assert!(root().join(name).exists(), "{} names {name}", document.display());
                found += 1;
            }
        }
    }
    assert!(found > 10, "only {found} were found");
}

/// Relative links lead to files, and to headings where they name one.
#[test]
fn what_documents_link_to_exists() {
    let mut found = 0;
    for document in documents() {
        for link in links(&document).iter().filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                _ => document.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{} links to {link}", document.display());
            let is_there = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(is_there, "{} links to {link}, and there is no such heading", document.display());
            found += 1;
        }
    }
    assert!(found > 100, "only {found} were found");
}

/// Each alert of the examples names the part of the book that says what to do.
#[test]
fn alerts_lead_to_parts_of_the_book() {
    let alerts = std::fs::read_to_string(root().join("examples/monitoring/alerts.yaml")).unwrap();
    let places = alerts.lines().filter_map(|line| line.trim().strip_prefix("runbook: \"")?.strip_suffix('"'));
    let mut found = 0;
    for place in places {
        let (page, anchor) = place.split_once('#').unwrap_or((place, ""));
        let page = root().join(page);
        assert!(page.exists(), "an alert names {place}");
        assert!(anchor.is_empty() || anchors(&page).contains(anchor), "an alert names {place}: no such heading");
        found += 1;
    }
    assert_eq!(found, alerts.matches("- alert: ").count(), "alerts, and those with a runbook");
}

/// The most words, as `wc -w` counts them, that the pages of Use and Run may have together. What users must read stays short.
const WORDS: usize = 18_000;

/// The pages that the table of contents lists below a heading.
fn pages_of(part: &str) -> Vec<PathBuf> {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let below = summary.split(&format!("\n# {part}\n")).nth(1).unwrap_or_else(|| panic!("there is no part {part}"));
    let below = below.split("\n# ").next().unwrap();
    below.split("](").skip(1).map(|rest| docs.join(rest.split(')').next().unwrap())).collect()
}

#[test]
fn what_users_read_is_short() {
    let words = |page: &PathBuf| std::fs::read_to_string(page).unwrap().split_whitespace().count();
    let parts = ["Use", "Run"].map(|part| (part, pages_of(part)));
    for (part, pages) in &parts {
        assert!(pages.len() > 5, "{part} has {} pages", pages.len());
    }
    let counts = parts.map(|(part, pages)| (part, pages.iter().map(words).sum::<usize>()));
    let count: usize = counts.iter().map(|(_, count)| count).sum();
    println!("{counts:?}, together {count}");
    assert!(count <= WORDS, "{counts:?}, together {count}: more than {WORDS} words");
}

/// Those that were released, and perhaps the one that is to be.
#[test]
fn the_page_on_upgrades_has_each_version() {
    let page = std::fs::read_to_string(root().join("docs/upgrades.md")).unwrap();
    let is_version = |name: &str| name.split('.').filter(|part| part.parse::<u32>().is_ok()).count() == 3;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let listed: BTreeSet<_> = rows.filter(|name| is_version(name)).map(str::to_owned).collect();
    let scripts = std::fs::read_dir(root().join("sql/released")).unwrap().map(|entry| entry.unwrap().file_name());
    let scripts = scripts.map(|name| name.into_string().unwrap());
    let released = scripts.filter_map(|name| {
        let name = name.strip_prefix("pg_snowflake--")?.strip_suffix(".sql")?;
        Some(name.rsplit("--").next()?.to_owned())
    });
    let mut versions: BTreeSet<_> = released.collect();
    if listed.contains(env!("CARGO_PKG_VERSION")) {
        versions.insert(env!("CARGO_PKG_VERSION").to_owned());
    }
    assert_eq!(listed, versions, "left, what docs/upgrades.md lists");
}

/// The table of contents of the book has each page once, and nothing else.
#[test]
fn the_book_has_each_page_once() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let mut listed = links(&summary);
    listed.sort_unstable();
    let pages = markdown(&docs).into_iter().filter(|page| *page != summary);
    let mut pages: Vec<_> = pages.map(|page| page.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned()).collect();
    pages.sort_unstable();
    assert_eq!(listed, pages, "left, what docs/SUMMARY.md lists; right, the files of docs/");
}
