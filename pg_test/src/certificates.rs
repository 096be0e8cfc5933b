//! Certificates of an authority that was made for one test.

use crate::directories::directory;
use crate::programs::run;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// An authority that nobody trusts who is not told to.
pub struct Authority {
    directory: TempDir,
}

/// A certificate and its key, as PEM files that everybody may read.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The certificate of the authority.
    pub root: PathBuf,
}

impl Authority {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "it runs a program")]
    pub fn new() -> Self {
        let directory = directory("tls-");
        run(Command::new("chmod").arg("755").arg(directory.path()));
        let authority = Self { directory };
        // Two of them are not to be taken for each other by their names.
        let name = authority.directory().file_name().unwrap().to_string_lossy().into_owned();
        let subject = format!("/CN={name}");
        run(authority.request("root").args(["-subj", &subject, "-addext", "basicConstraints=critical,CA:TRUE"]));
        authority
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.{extension}"))
    }

    fn request(&self, name: &str) -> Command {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
        command.arg("-keyout").arg(self.file(name, "key")).arg("-out").arg(self.file(name, "crt"));
        command
    }

    /// The file of its own certificate.
    pub fn root(&self) -> PathBuf {
        self.file("root", "crt")
    }

    /// A certificate for servers and clients with these names, such as `IP:127.0.0.1,DNS:localhost`.
    pub fn certificate(&self, file: &str, names: &str) -> Certificate {
        let mut request = self.request(file);
        request.args(["-subj", "/CN=pg_snowflake", "-addext", &format!("subjectAltName={names}")]);
        request.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        request.args(["-addext", "extendedKeyUsage=serverAuth,clientAuth"]);
        run(request.arg("-CA").arg(self.root()).arg("-CAkey").arg(self.file("root", "key")));
        let key = self.file(file, "key");
        run(Command::new("chmod").arg("644").arg(&key));
        Certificate { certificate: self.file(file, "crt"), key, root: self.root() }
    }

    /// A directory for further files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}
