//! The user of a registry who has the rights that docs/reference/registries.md gives him, and what others may do.

use super::{Kind, Server};
use crate::programs::{Output, output, run};
use std::path::Path;
use std::process::Command;

/// The namespace that the page names, and the user.
pub const NAMESPACE: &str = "shop";

/// The password of the page.
pub const PASSWORD: &str = "secret";

/// The commands of the page that a program's name begins, with their lines joined.
fn commands(program: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/registries.md");
    let page = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| line.starts_with(&format!("{program} "))).collect();
    assert!(!lines.is_empty(), "the page has no commands of {program}");
    lines.join("\n")
}

impl Server {
    /// Makes the user of the page, by the commands that stand there, for this namespace as it is written in them; and returns the URL of that
    /// user.
    ///
    /// # Panics
    /// Where it is a PostgreSQL, or a command fails.
    pub fn make_user_of_the_page(&self, namespace: &str) -> String {
        let (program, settings) = match self.kind() {
            Kind::Postgres => panic!("the page has no commands for PostgreSQL"),
            Kind::Etcd => {
                ("etcdctl", format!("export ETCDCTL_API=3 ETCDCTL_ENDPOINTS={} ETCDCTL_USER=root:", self.address()))
            }
            Kind::Redis => {
                let settings = format!("redis-cli() {{ command redis-cli -e -p {} \"$@\"; }}", self.port());
                ("redis-cli", format!("{settings}\nexport REDISCLI_AUTH="))
            }
        };
        let commands = commands(program)
            .replace("pg_snowflake/shop/", &format!("pg_snowflake/{namespace}/"))
            .replace("pg_snowflake:shop", &format!("pg_snowflake:{namespace}"));
        let password = self.setup.password.as_deref().unwrap_or_default();
        run(Command::new("bash").args(["-euc", &format!("{settings}{password}\n{commands}")]));
        self.kind().url(false, &format!("{NAMESPACE}:{PASSWORD}"), &self.address())
    }

    /// What the registry's own program prints when that user calls it.
    ///
    /// # Panics
    /// Where it is a PostgreSQL.
    pub fn as_user_of_the_page(&self, arguments: &[&str]) -> Output {
        let mut command = match self.kind() {
            Kind::Postgres => panic!("it has none"),
            Kind::Etcd => {
                let mut command = Command::new("etcdctl");
                command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", self.address()));
                command.arg(format!("--user={NAMESPACE}:{PASSWORD}"));
                command
            }
            Kind::Redis => {
                let mut command = Command::new("redis-cli");
                command
                    .args(["-e", "-p", &self.port().to_string(), "--user", NAMESPACE])
                    .env("REDISCLI_AUTH", PASSWORD);
                command
            }
        };
        output(command.args(arguments))
    }
}
