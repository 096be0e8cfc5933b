//! What docs/releases.md says to check a release with accepts what `scripts/release-files` has signed, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const ARCHIVE: &str = "pg_snowflake-9.9.9.tar.gz";

/// Debian's package, and its source package.
const PACKAGES: [&str; 5] = [
    "postgresql-15-pg-snowflake_9.9.9-1_amd64.deb",
    "pg-snowflake_9.9.9-1.dsc",
    "pg-snowflake_9.9.9-1.debian.tar.xz",
    "pg-snowflake_9.9.9.orig.tar.gz",
    "pg-snowflake_9.9.9.orig-vendor.tar.xz",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The commands of the first block of the page.
fn commands_of_the_page() -> String {
    let page = fs::read_to_string(root().join("docs/releases.md")).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    assert_eq!(block.lines().count(), 2, "{block}");
    block
}

/// What the description for PGXN names is in the archive of a release.
#[test]
fn the_files_of_the_description_are_there() {
    let description = fs::read_to_string(root().join("packaging/META.json.in")).unwrap();
    let last = fs::read_to_string(root().join("sql/released/SHA256SUMS")).unwrap();
    let last = last.lines().filter_map(|line| line.split_once("hosted/")?.1.strip_suffix(".sql")).next_back().unwrap();
    let description: serde_json::Value = serde_json::from_str(&description.replace("@VERSION@", last)).unwrap();
    let provided = &description["provides"]["pg_snowflake"];
    for file in ["file", "docfile"] {
        assert!(root().join(provided[file].as_str().unwrap()).is_file(), "{provided}");
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A directory with what a release is made from, and a throw-away key.
struct Release(TempDir);

impl Release {
    fn new() -> Self {
        let release = Self(tempfile::tempdir().unwrap());
        for (file, text) in [
            (format!("target/dist/{ARCHIVE}"), "sources"),
            ("target/dist/SHA256SUMS".to_owned(), "those of the archives alone\n"),
        ] {
            release.write(&file, text);
        }
        for file in PACKAGES {
            release.write(&format!("target/deb/{file}"), file);
        }
        release.write("scripts/release-files", &fs::read_to_string(root().join("scripts/release-files")).unwrap());
        release.make_key("key");
        release.trust("key");
        release
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn make_key(&self, name: &str) {
        succeeds(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(self.path(name)));
    }

    /// Makes a key the one that users check with.
    fn trust(&self, key: &str) {
        let public = fs::read_to_string(self.path(&format!("{key}.pub"))).unwrap();
        self.write("packaging/allowed_signers", &format!("pg_snowflake namespaces=\"file,git\" {public}"));
    }

    fn gather(&self, key: Option<&str>) -> Output {
        let mut script = Command::new("bash");
        script.arg(self.path("scripts/release-files")).env_remove("SIGNING_KEY");
        key.map(|key| script.env("SIGNING_KEY", self.path(key)));
        script.output().unwrap()
    }

    /// Whether a user who does what the page says finds that the release is what was signed.
    fn is_accepted(&self) -> bool {
        fs::copy(self.path("packaging/allowed_signers"), self.path("target/release/allowed_signers")).unwrap();
        let mut user = Command::new("bash");
        user.args(["-e", "-c", &commands_of_the_page()]).current_dir(self.path("target/release"));
        let output = user.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            assert!(said.starts_with("Good \"file\" signature for pg_snowflake"), "{said}");
            assert!(said.contains(&format!("{ARCHIVE}: OK")) && said.contains("amd64.deb: OK"), "{said}");
        }
        output.status.success()
    }
}

#[test]
fn a_signed_release_is_accepted_as_the_page_says_and_a_changed_one_is_not() {
    let release = Release::new();
    let gathered = release.gather(Some("key"));
    assert!(gathered.status.success(), "{}", String::from_utf8_lossy(&gathered.stderr));
    assert!(release.is_accepted());

    // A file that was changed.
    let archive = format!("target/release/{ARCHIVE}");
    release.write(&archive, "other sources");
    assert!(!release.is_accepted());

    // Its checksum taken out, too.
    let sums = fs::read_to_string(release.path("target/release/SHA256SUMS")).unwrap();
    let changed: String =
        sums.lines().filter(|line| !line.ends_with(ARCHIVE)).map(|line| format!("{line}\n")).collect();
    release.write("target/release/SHA256SUMS", &changed);
    assert!(!release.is_accepted());

    // Signed by somebody else.
    release.make_key("other");
    let signature = release.path("target/release/SHA256SUMS.sig");
    fs::remove_file(signature).unwrap();
    let sign = ["-q", "-Y", "sign", "-n", "file", "-f"];
    succeeds(
        Command::new("ssh-keygen").args(sign).args([release.path("other"), release.path("target/release/SHA256SUMS")]),
    );
    assert!(!release.is_accepted());
}

#[test]
fn a_release_is_not_signed_with_a_key_that_users_do_not_have() {
    let release = Release::new();
    release.make_key("other");
    let gathered = release.gather(Some("other"));
    let said = String::from_utf8_lossy(&gathered.stderr);
    assert!(!gathered.status.success() && said.contains("does not have the key that has signed"), "{said}");

    fs::remove_file(release.path("packaging/allowed_signers")).unwrap();
    let gathered = release.gather(Some("key"));
    let said = String::from_utf8_lossy(&gathered.stderr);
    assert!(!gathered.status.success() && said.contains("nobody could check the signature"), "{said}");
}

#[test]
fn without_a_key_there_are_checksums_of_all_files_and_no_signature() {
    let release = Release::new();
    let gathered = release.gather(None);
    assert!(gathered.status.success(), "{}", String::from_utf8_lossy(&gathered.stderr));
    let sums = fs::read_to_string(release.path("target/release/SHA256SUMS")).unwrap();
    for file in PACKAGES.iter().chain([&ARCHIVE]) {
        assert!(sums.contains(&format!("  {file}\n")), "{file}: {sums}");
    }
    assert_eq!(sums.lines().count(), PACKAGES.len() + 1, "{sums}");
    assert!(!release.path("target/release/SHA256SUMS.sig").exists());
}

#[test]
fn a_release_has_the_source_package_and_that_of_its_commit_alone() {
    let release = Release::new();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(release.path("")).args(["-c", "user.name=n", "-c", "user.email=e@localhost"]).args(arguments);
        succeeds(&mut git);
    };
    git(&["init", "--quiet"]);
    let origin = format!("target/deb/{}", PACKAGES[3]);
    git(&["add", "scripts"]);
    git(&["commit", "--quiet", "--message", "the release"]);
    git(&["archive", "--format=tar.gz", "--output", &origin, "HEAD"]);
    let gathered = release.gather(None);
    assert!(gathered.status.success(), "{}", String::from_utf8_lossy(&gathered.stderr));

    git(&["commit", "--quiet", "--allow-empty", "--message", "a later one"]);
    let gathered = release.gather(None);
    let said = String::from_utf8_lossy(&gathered.stderr);
    assert!(!gathered.status.success() && said.contains("orig.tar.gz is of another commit"), "{said}");

    fs::remove_file(release.path("target/deb").join(PACKAGES[1])).unwrap();
    let gathered = release.gather(None);
    let said = String::from_utf8_lossy(&gathered.stderr);
    assert!(!gathered.status.success() && said.contains("no package was built"), "{said}");
}
