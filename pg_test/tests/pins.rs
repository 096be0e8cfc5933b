//! What a build fetches is what was tested: crates by `Cargo.lock`, actions of CI by their commits, images by their digests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo does by way of `Cargo.lock`, which it would rewrite without `--locked`.
const SUBCOMMANDS: [&str; 14] = [
    "bench", "build", "check", "clippy", "doc", "fetch", "install", "metadata", "package", "publish", "run", "rustc",
    "test", "tree",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The files below these places, which are files or directories.
fn files(places: &[&str]) -> Vec<PathBuf> {
    fn add(path: PathBuf, found: &mut Vec<PathBuf>) {
        if path.is_dir() {
            std::fs::read_dir(path).unwrap().for_each(|entry| add(entry.unwrap().path(), found));
        } else {
            found.push(path);
        }
    }
    let mut found = Vec::new();
    places.iter().for_each(|place| add(root().join(place), &mut found));
    found
}

/// The commands of a script, a Makefile or a Dockerfile: its lines, with those that they go on in, without comments.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    joined.lines().map(str::trim_start).filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Whether a command is cargo's and needs `Cargo.lock`.
fn resolves(command: &str) -> bool {
    let words: Vec<&str> =
        command.split([' ', '\t', '(', ')', '"', '\'', '`', ';']).filter(|word| !word.is_empty()).collect();
    // `$(CARGO)` and `$(BUILD)` of the Makefile, `"${CARGO:-cargo}"` of scripts.
    let is_cargo = |word: &str| matches!(word, "cargo" | "CARGO" | "BUILD" | "${CARGO:-cargo}" | "$CARGO");
    words.windows(2).any(|pair| is_cargo(pair[0]) && SUBCOMMANDS.contains(&pair[1]))
}

/// Whether a command has `--locked`, of its own, of `scripts/cargo-flags tests`, or of the Makefile's `FLAGS`.
fn is_locked(command: &str) -> bool {
    ["--locked", "scripts/cargo-flags tests", "${tests[@]}", "$(FLAGS)"].iter().any(|way| command.contains(way))
}

#[test]
fn cargo_takes_the_crates_of_the_lock_file() {
    let mut found = 0;
    for file in files(&["Makefile", "scripts", "packaging", ".ci", ".github/workflows"]) {
        let text = std::fs::read_to_string(&file).unwrap();
        for command in commands(&text).iter().filter(|command| resolves(command)) {
            assert!(is_locked(command), "{}: without --locked: {command}", file.display());
            found += 1;
        }
    }
    assert!(found > 15, "only {found} were found");

    let flags = Command::new("scripts/cargo-flags").arg("tests").current_dir(root()).output().unwrap();
    let flags = String::from_utf8(flags.stdout).unwrap();
    assert!(flags.split_whitespace().any(|flag| flag == "--locked"), "scripts/cargo-flags tests: {flags}");
    assert!(std::fs::read_to_string(root().join("Makefile")).unwrap().contains("\nFLAGS = --locked "));
}

/// cargo-pgrx hands on what `--cargo` has.
#[test]
fn what_documents_say_to_install_is_locked() {
    let mut found = 0;
    for file in files(&["README.md", "CONTRIBUTING.md", "docs", "packaging/README.md"]) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let starts = ["cargo pgrx install ", "cargo pgrx package ", "cargo install ", "cargo publish "];
        for (start, rest) in starts.iter().flat_map(|start| text.split(start).skip(1).map(move |rest| (start, rest))) {
            let command = rest.split(['\n', '`']).next().unwrap();
            assert!(command.contains("--locked"), "{}: without --locked: {start}{command}", file.display());
            found += 1;
        }
    }
    assert!(found >= 3, "only {found} were found");
}

#[test]
fn the_extension_has_a_lock_file_in_its_archives() {
    let ignored = std::fs::read_to_string(root().join(".gitignore")).unwrap();
    assert!(root().join("Cargo.lock").is_file() && !ignored.contains("Cargo.lock"));
    let attributes = std::fs::read_to_string(root().join(".gitattributes")).unwrap_or_default();
    assert!(!attributes.contains("export-ignore"), "git archive leaves something out: {attributes}");
    let ignored = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    assert!(!ignored.contains("Cargo"), "docker build leaves something out: {ignored}");
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A tag can be moved to another commit; a commit cannot change. The comment beside it says which version it is.
#[test]
fn actions_are_pinned_by_commit() {
    let mut found = 0;
    for file in files(&[".github/workflows"]) {
        let text = std::fs::read_to_string(&file).unwrap();
        let uses = text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("uses:"));
        for action in uses.map(str::trim).filter(|action| !action.starts_with("./")) {
            let (name, version) = action.split_once(" # ").unwrap_or((action, ""));
            let commit = name.trim().rsplit_once('@').map_or("", |(_, commit)| commit);
            assert!(is_hex(commit, 40), "{}: not pinned by a commit: {action}", file.display());
            assert!(!version.is_empty(), "{}: no version in a comment: {action}", file.display());
            found += 1;
        }
    }
    assert!(found > 3, "only {found} were found");
}

/// Where it is an argument, its default.
#[test]
fn images_are_pinned_by_digest() {
    let is_pinned = |image: &str| image.rsplit_once("@sha256:").is_some_and(|(_, digest)| is_hex(digest, 64));
    let workflows = files(&[".github/workflows"]);
    let texts = workflows.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect::<String>();
    let containers = texts.lines().filter_map(|line| line.trim_start().strip_prefix("image:"));
    let mut images: Vec<String> = containers.map(|image| image.trim().to_owned()).collect();

    let commands = commands(&std::fs::read_to_string(root().join("packaging/docker/Dockerfile")).unwrap());
    let default = |image: &str| {
        let name = image.strip_prefix("${")?.strip_suffix('}')?;
        commands.iter().find_map(|command| command.strip_prefix(&format!("ARG {name}="))).map(str::to_owned)
    };
    let bases = commands.iter().filter_map(|command| command.strip_prefix("FROM "));
    images
        .extend(bases.map(|base| base.split(' ').next().unwrap()).map(|base| default(base).unwrap_or(base.to_owned())));

    assert!(images.len() >= 4, "only {images:?} were found");
    for image in images {
        assert!(is_pinned(&image), "not pinned by a digest: {image}");
    }
}

/// What is fetched by curl has a checksum, and nothing is run while it is fetched.
#[test]
fn nothing_is_piped_from_the_network_into_a_shell() {
    for file in files(&["Makefile", "scripts", "packaging", ".ci", ".github/workflows"]) {
        for command in commands(&std::fs::read_to_string(&file).unwrap()) {
            let fetches =
                ["curl ", "wget "].iter().any(|program| command.contains(program)) && command.contains("http");
            assert!(!fetches || command.contains("sha256sum --check"), "{}: {command}", file.display());
        }
    }
}
