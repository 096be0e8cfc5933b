//! Directories of throw-away servers, which a watchdog clears when the program that made them is killed.
//!
//! A value's `Drop` ends its server, but not where the whole program gets SIGKILL. The watchdog is a process of its own that reads
//! the directories' names from a pipe. When the pipe ends, whatever ended the program, it ends all processes that work in those
//! directories and removes them. So a server, and what else a test starts, must have its working directory in one of them.

use crate::programs::{run, server_user};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;

/// Looks for processes until there are none, as Patroni may have started another server meanwhile. A look is one process, find(1):
/// on a busy machine, a process for each link would take minutes.
const WATCHDOG: &str = r#"
while read -r directory; do all="$all $directory"; done
for directory in $all; do [ ! -d "$directory" ] || left="$left $directory"; done
[ "$left" ] || exit
found=1
while [ "$found" ]; do
    found=$(
        find /proc/[0-9]*/cwd -maxdepth 0 -printf '%h %l/\n' | while read -r process place; do
            for directory in $left; do
                case $place in "$directory"/*) kill -KILL "${process#/proc/}" && echo killed ;; esac
            done
        done
    )
    [ ! "$found" ] || sleep 0.1
done
rm -rf $left
"#;

/// A new directory in that of SNOWFLAKE_TEST_DIRECTORY, or else in /tmp. Its name begins with `pgsf-` and this.
///
/// # Panics
/// Where it cannot be made.
pub fn directory(name: &str) -> TempDir {
    static PIPE: OnceLock<Mutex<ChildStdin>> = OnceLock::new();
    let place = std::env::var_os("SNOWFLAKE_TEST_DIRECTORY").unwrap_or_else(|| "/tmp".into());
    let directory = tempfile::Builder::new().prefix(&format!("pgsf-{name}")).tempdir_in(place).unwrap();
    let pipe = PIPE.get_or_init(|| {
        let mut watchdog = Command::new("sh");
        // In a group of its own, as the group that the program is in may be killed, too.
        watchdog.args(["-c", WATCHDOG]).current_dir("/").process_group(0);
        watchdog.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Mutex::new(watchdog.spawn().unwrap().stdin.take().unwrap())
    });
    writeln!(pipe.lock().unwrap(), "{}", directory.path().display()).unwrap();
    directory
}

/// A new directory that belongs to the user of the servers.
///
/// # Panics
/// Where it cannot be made.
pub fn server_directory(name: &str) -> TempDir {
    let directory = directory(name);
    if let Some(user) = server_user() {
        run(Command::new("chown").arg(user).arg(directory.path()));
    }
    directory
}
