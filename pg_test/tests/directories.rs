//! A test program that is killed leaves no server behind.

use snowflake_test::Cluster;
use snowflake_test::check::wait_for;
use snowflake_test::programs::runs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// In its environment, this program starts a server, and waits to be killed.
const IS_VICTIM: &str = "SNOWFLAKE_TEST_VICTIM";

#[test]
fn a_program_that_is_killed_leaves_no_server_behind() {
    if std::env::var_os(IS_VICTIM).is_some() {
        let cluster = Cluster::options().start();
        println!("\nserver {} {}", cluster.postmaster(), cluster.socket().display());
        thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "directories::a_program_that_is_killed_leaves_no_server_behind", "--nocapture"]);
    let mut victim = victim.env(IS_VICTIM, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("server ")).expect("the server has started");
    let words: Vec<&str> = line.split(' ').collect();
    let (postmaster, directory) = (words[1].parse().unwrap(), Path::new(words[2]));
    assert!(runs(postmaster) && directory.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_for("the server and its directory are gone", || !runs(postmaster) && !directory.exists());
}
