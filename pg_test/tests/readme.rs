//! The ```` ```sql ```` blocks of README.md and docs/ print what they show. In a block marked `sql shape`, numbers may
//! differ. What the pages say to leave out on PostgreSQL 14 is left out there.

use snowflake_test::{Cluster, Installation};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// More rows for the table of the examples, so that the planner uses its index.
const ROWS: [&str; 2] =
    ["INSERT INTO orders (item) SELECT 'x' FROM generate_series(1, 50000)", "VACUUM ANALYZE orders"];

struct Block {
    line: usize,
    shape: bool,
    statements: String,
    output: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```sql") else {
            continue;
        };
        let mut block =
            Block { line: number + 1, shape: info == " shape", statements: String::new(), output: String::new() };
        // A statement ends with a semicolon at the end of a line; output begins where no statement does.
        let mut in_statement = false;
        for (_, line) in lines.by_ref().take_while(|(_, line)| *line != "```") {
            let begins = ["SELECT", "CREATE", "INSERT", "EXPLAIN", "ALTER", "SET", "WITH", "CALL", "BEGIN", "COMMIT"]
                .iter()
                .any(|word| {
                    line.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ';']))
                });
            in_statement |= begins;
            let text = if in_statement { &mut block.statements } else { &mut block.output };
            text.push_str(line);
            text.push('\n');
            in_statement &= !line.ends_with(';');
        }
        blocks.push(block);
    }
    blocks
}

fn comparable(text: &str, shape: bool) -> Vec<String> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    if !shape {
        return lines.map(str::to_owned).collect();
    }
    // `12.5` and `7` both become 9. Spaces and dashes are reduced to one, as the width of a column depends on its
    // numbers.
    lines
        .map(|line| {
            let mut plain = String::new();
            for c in line.chars().map(|c| if c.is_ascii_digit() || c == '.' { '9' } else { c }) {
                if !(plain.ends_with(c) && matches!(c, '9' | ' ' | '-')) {
                    plain.push(c);
                }
            }
            plain.trim().to_owned()
        })
        .collect()
}

/// The files of Markdown below a directory, in the order of their names.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort_unstable();
    let below = |path: PathBuf| if path.is_dir() { pages(&path) } else { vec![path] };
    entries.into_iter().flat_map(below).filter(|path| path.extension().is_some_and(|name| name == "md")).collect()
}

#[test]
fn examples_print_what_they_say() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = vec![root.join("README.md")];
    files.extend(pages(&root.join("docs")));
    let mut count = 0;
    for file in files {
        for block in blocks(&std::fs::read_to_string(&file).unwrap()) {
            let mut psql = cluster.program("psql");
            psql.args(["--no-psqlrc", "--quiet", "--pset=pager=off", "--set=ON_ERROR_STOP=1"]);
            let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let statements = match Installation::under_test().major() {
                14 => block.statements.replace(" WITH (security_invoker = true)", ""),
                _ => block.statements,
            };
            psql.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
            let done = psql.wait_with_output().unwrap();
            let printed = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
            assert_eq!(
                comparable(&printed, block.shape),
                comparable(&block.output, block.shape),
                "{}:{} prints:\n{printed}",
                file.display(),
                block.line
            );
            if count == 0 {
                ROWS.into_iter().for_each(|sql| client.batch_execute(sql).unwrap());
            }
            count += 1;
        }
    }
    assert!(count >= 50, "only {count} examples");
}
