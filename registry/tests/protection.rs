//! A password is sent only where nobody else can read it, and a connection that somebody could read or take over is known as such.

mod common;

use common::*;
use snowflake_registry::{Error, Protection, open};
use snowflake_test::certificates::Authority;
use snowflake_test::ports::outward;
use snowflake_test::proxy::Proxy;
use snowflake_test::registries::{Kind, Setup};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// A server, or somebody before it, that says that it has no TLS, and asks for the password in some way. Returns where it
/// is, and what it is sent.
fn asking(address: IpAddr, request: &'static [u8]) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let sent: Arc<Mutex<Vec<u8>>> = Arc::default();
    let noted = sent.clone();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = client.read(&mut bytes) {
                noted.lock().unwrap().extend(&bytes[..length]);
                let answer = if bytes[..length].ends_with(&[4, 210, 22, 47]) { b"N" } else { request };
                if client.write_all(answer).is_err() {
                    break;
                }
            }
        }
    });
    (host, sent)
}

const CLEAR_TEXT: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
const MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";

/// The error of a PostgreSQL client when such a server asks, and all that the server was sent.
fn asked(address: IpAddr, request: &'static [u8], mode: &str) -> (Error, String) {
    let (host, sent) = asking(address, request);
    let text = format!("postgres://u:s3cret@{host}/d{mode}");
    let error = connect(&text, &options(PATIENCE / 10)).record(WORKER).unwrap_err();
    hides(&error, "s3cret");
    let sent = String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
    (error, sent)
}

#[test]
fn nobody_on_the_way_gets_the_password_by_asking_for_it() {
    let Some(outward) = outward() else { return };
    for mode in ["", "?sslmode=prefer"] {
        let (error, sent) = asked(outward, CLEAR_TEXT, mode);
        assert!(matches!(error, Error::Tls(_)), "{error:?}");
        for part in ["clear text", "scram-sha-256", "sslmode=verify-full", "sslmode=disable"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(!sent.contains("s3cret"), "{sent:?}");
    }
    // Nor where TLS is needed: it does not go on without.
    let (error, sent) = asked(outward, CLEAR_TEXT, "?sslmode=require");
    assert!(matches!(error, Error::Tls(_)) && error.to_string().contains("does not support TLS"), "{error:?}");
    assert!(!sent.contains("s3cret"), "{sent:?}");
    // A URL that says so has it sent.
    let (_, sent) = asked(outward, CLEAR_TEXT, "?sslmode=disable");
    assert!(sent.contains("s3cret"), "{sent:?}");
    // A challenge is answered; the password is not in it.
    let (error, sent) = asked(outward, MD5, "");
    assert!(sent.contains("md5") && !sent.contains("s3cret"), "{sent:?}");
    assert!(!matches!(error, Error::Tls(_)), "{error:?}");
}

#[test]
fn a_server_on_this_machine_gets_it() {
    let (_, sent) = asked(Ipv4Addr::LOCALHOST.into(), CLEAR_TEXT, "");
    assert!(sent.contains("s3cret"), "{sent:?}");
}

/// A pipe that nobody writes to kept the client waiting for ever, and a device never ended.
#[test]
fn what_is_no_file_of_certificates_keeps_nobody_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let long = directory.path().join("long");
    std::fs::File::create(&long).unwrap().set_len(1 << 30).unwrap();
    for kind in Kind::ALL {
        for (path, what) in [
            (pipe.as_path(), "it is not a regular file"),
            (Path::new("/dev/zero"), "it is not a regular file"),
            (directory.path(), "it is not a regular file"),
            (&long, "it is too long"),
        ] {
            let path = path.display();
            for parameters in [format!("sslrootcert={path}"), format!("sslcert={path}&sslkey={path}")] {
                let asking = asking_for_tls(kind).replace("verify-full", "require");
                let text = format!("{}?{asking}&{parameters}", kind.url(true, "", "localhost:1")).replace("?&", "?");
                let (tell, told) = mpsc::channel();
                thread::spawn(move || tell.send(open(&url(&text), &namespace("default"), &options(PATIENCE)).err()));
                let error = told.recv_timeout(PATIENCE).expect("an answer").expect("an error");
                assert!(matches!(&error, Error::Invalid(text) if text.contains(what)), "{parameters}: {error:?}");
            }
        }
    }
}

#[test]
fn it_is_known_how_connections_are_protected() {
    let authority = Authority::new();
    for kind in Kind::ALL {
        let plain = Setup::of(kind).start();
        let mut registry = client(&plain);
        assert_eq!(registry.protection(), None);
        registry.record(WORKER).unwrap();
        assert_eq!(registry.protection(), Some(Protection::Local));
        let Some(outward) = outward() else { continue };

        let proxy = Proxy::at(outward, plain.port());
        let mut registry = connect(&kind.url(false, "", &format!("{outward}:{}", proxy.port())), &options(PATIENCE));
        registry.record(WORKER).unwrap();
        assert_eq!(registry.protection(), Some(Protection::Nothing), "{kind:?}");

        let certificate = authority.certificate("server", &format!("IP:{outward}"));
        let server = Setup::of(kind).certificate(&certificate).start();
        let proxy = Proxy::at(outward, server.port());
        let text = kind.url(true, "", &format!("{outward}:{}", proxy.port()));
        let text = verified(kind, &text, &authority.root());
        let mut registry = connect(&text, &options(PATIENCE));
        registry.record(WORKER).unwrap();
        assert_eq!(registry.protection(), Some(Protection::Verified), "{kind:?}");
        if kind == Kind::Postgres {
            for mode in ["", "?sslmode=prefer", "?sslmode=require"] {
                let text = kind.url(true, "", &format!("{outward}:{}", proxy.port())) + mode;
                let mut registry = connect(&text, &options(PATIENCE));
                registry.record(WORKER).unwrap();
                assert_eq!(registry.protection(), Some(Protection::Unverified), "{mode}");
            }
        }
    }
}
