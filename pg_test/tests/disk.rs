//! The disk of the write-ahead log fills up under load.

use snowflake_test::load::{self, TABLE};
use snowflake_test::{Cluster, millis, run, seconds};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// A small file system for a directory. It is unmounted when this is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Puts the directory, with what is in it, on a disk of so many megabytes.
    fn under(directory: &Path, megabytes: u32) -> Self {
        let aside = directory.with_extension("aside");
        std::fs::rename(directory, &aside).unwrap();
        std::fs::create_dir(directory).unwrap();
        let size = format!("size={megabytes}m");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory));
        // PostgreSQL insists on its owner and mode.
        run(Command::new("cp").args(["-a", "-T"]).arg(&aside).arg(directory));
        Self(directory.to_owned())
    }

    /// Leaves so many megabytes free, or all of them.
    fn leave(&self, megabytes: Option<u64>) {
        let ballast = self.0.join("ballast");
        std::fs::remove_file(&ballast).ok();
        let Some(megabytes) = megabytes else { return };
        let free = run(Command::new("df").args(["-B1M", "--output=avail"]).arg(&self.0));
        let free: u64 = free.lines().nth(1).unwrap().trim().parse().unwrap();
        let length = format!("{}M", free.saturating_sub(megabytes).max(1));
        run(Command::new("fallocate").args(["-l", &length]).arg(ballast));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

/// PostgreSQL stops when it cannot write its log, and starts again when it can. Needs root, to mount the small disk.
#[test]
fn the_disk_of_the_log_fills_up() {
    if run(Command::new("id").arg("-u")).trim() != "0" {
        eprintln!("not run: only root can mount a small file system");
        return;
    }
    let cluster = Cluster::options()
        .with_clock()
        .set("pg_snowflake.max_wait = 0")
        .set("wal_keep_size = 0")
        .set("min_wal_size = 32MB")
        .set("max_wal_size = 48MB")
        .create();
    let disk = SmallDisk::under(&cluster.data().join("pg_wal"), 128);
    cluster.start();
    cluster.client().batch_execute("CREATE EXTENSION pg_snowflake; CREATE TABLE filler (text text)").unwrap();
    cluster.client().batch_execute(TABLE).unwrap();
    let ((), record) = load::run_during(
        8,
        || &cluster,
        || {
            cluster.client().batch_execute("CHECKPOINT").unwrap();
            cluster.step_clock("-10s");
            disk.leave(Some(4));
            let fill = "INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 200000)";
            assert!(cluster.client().batch_execute(fill).is_err(), "the disk is not full");
            thread::sleep(seconds(2));
            disk.leave(None);
            // It may have stopped for good, or start again by itself.
            let _ = cluster.try_start();
            cluster.step_clock("-20s");
            cluster.next_once_up();
            thread::sleep(millis(500));
        },
    );
    assert!(cluster.log().contains("No space left on device"), "{}", cluster.log());
    assert!(record.check(&[&cluster]) > 1_000);
    let code = |code: &String| ["57P01", "57P02", "57P03", "53100", "53300"].contains(&code.as_str());
    assert!(record.refused.iter().all(code), "{:?}", record.refused);
}
