//! Backups of registries.

use super::{Engine, Server};
use crate::directories::directory;
use crate::programs::run;
use std::process::Command;
use tempfile::TempDir;

/// What [`Server::back_up`] has made.
pub enum Backup {
    /// A script.
    Dump(String),
    /// A copy of the data directory.
    Files(TempDir),
}

impl Server {
    /// A backup of all that it stores.
    pub fn back_up(&mut self) -> Backup {
        if let Engine::Cluster(cluster) = &self.engine {
            let mut dump = cluster.program("pg_dump");
            return Backup::Dump(run(dump.args(["--schema=snowflake_registry", "--clean", "--if-exists"])));
        }
        let copy = directory("backup-");
        self.kill();
        run(Command::new("cp").arg("-a").arg(self.directory().join(".")).arg(copy.path()));
        self.start();
        Backup::Files(copy)
    }

    /// Goes back to a backup.
    pub fn restore(&mut self, backup: &Backup) {
        match backup {
            Backup::Dump(dump) => {
                let cluster = self.cluster();
                let file = cluster.new_file("dump.sql");
                std::fs::write(&file, dump).unwrap();
                run(cluster.program("psql").args(["--quiet", "--set=ON_ERROR_STOP=1", "--file"]).arg(file));
            }
            Backup::Files(copy) => {
                self.kill();
                self.remove_files();
                run(Command::new("cp").arg("-a").arg(copy.path().join(".")).arg(self.directory()));
                self.start();
            }
        }
    }
}
