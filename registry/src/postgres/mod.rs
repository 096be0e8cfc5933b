//! A registry in any PostgreSQL database, in tables that it makes if they are missing.
//!
//! # Its URL
//!
//! `postgres://user@host1,host2:5433/database`; the scheme can be `postgresql`, too. A port that is not named is 5432. The user is
//! needed; the database has the user's name where none is named. `sslmode` says how TLS is used, as in libpq:
//!
//! | `sslmode` | TLS | the server's certificate |
//! |---|---|---|
//! | `disable` | never; a password is sent in clear text, if the server asks for that | |
//! | `prefer`, the default | if the server has it; otherwise no password is sent in clear text, but on the same machine | is not verified |
//! | `require` | always | is not verified; with `sslrootcert`, as with `verify-ca` |
//! | `verify-ca` | always | must be trusted |
//! | `verify-full` | always | must be trusted, and be for the host's name |
//!
//! libpq's `allow` is refused.
//!
//! # What it needs
//!
//! A role that may create the schema `snowflake_registry` in the database; or, where the owner of the database has made the tables (with
//! [`TABLES`], and [`SEGMENTS_TABLES`] for segments), one with USAGE on the schema, and SELECT, INSERT and UPDATE on the tables. PostgreSQL 10 or
//! later. PgBouncer may stand between, also with `pool_mode = transaction`: no statement is prepared, and settings are those
//! of one transaction.
//!
//! # Whose code runs
//!
//! Nobody's but PostgreSQL's own, as the role that connects:
//!
//! * Each message sets `search_path` before anything of it is parsed that has a name, and every name has its schema: of functions, operators,
//!   types and collations.
//! * At each connection, and again after it has made something, in the transaction that made it, the client looks at the schema and its
//!   tables. It uses them only where their owner may act as the role anyway, or owns the database, and where they have nothing that runs code
//!   ([`Error::Untrusted`](crate::Error::Untrusted)). Each message looks first whether they are still the same tables, as far as one row of the
//!   catalog tells for each; if not, the client connects again.
//!
//! A table may have more columns than ours, if they stay empty: a later version may add some.
//!
//! # What it keeps, and what not
//!
//! * Durable: each change is committed with `synchronous_commit = on` before it counts as stored, which needs `fsync = on`.
//! * Where the primary fails over to an asynchronous standby, the registry is rolled back, and **workers can be granted
//!   twice**. So a registry with failover needs `synchronous_standby_names`, and a failover to synchronous standbys only.
//!   Then each change waits for one. If that wait is ended by hand, the change counts as unanswered, not as stored.
//! * A restored backup of the registry is an older registry.
//! * Standbys, and other servers that are read-only, are not used: the next host is tried.
//! * `statement_timeout` and `lock_timeout` are those of the call's deadline, so a change that was given up ends in the
//!   server, too; but one that waits for a synchronous standby goes on waiting there.
//!
//! # Privileges
//!
//! Nobody but the owner may read the tables that the client makes, whatever default privileges say: a token lets its reader renew the lease
//! of another server. To show them to
//! others, grant the other columns: `GRANT SELECT (namespace, worker, granted_from, granted_until, host, data_directory,
//! port, cluster_name, written_at) ON snowflake_registry.workers TO …`. Members of `pg_read_all_data` read all.
//!
//! # TLS and authentication
//!
//! TLS as `sslmode` says, where `prefer` uses it if the server has it, and does not go on without if it fails. Passwords by
//! SCRAM, bound to the TLS connection where there is one; by MD5; or in clear text. As with libpq, the server chooses, but that
//! without TLS it gets no clear text: somebody in between could say that it has no TLS, and ask for the password. Two
//! exceptions: a server on the same machine, and `sslmode=disable`. With TLS the server gets it; with `sslmode=verify-full` it is
//! the right one.
//!
//! # Why the client is not libpq
//!
//! libpq can be used in a process of the server: `libpqwalreceiver`, `postgres_fdw` and `dblink` do. They connect by
//! `PQconnectStart` and `PQconnectPoll`, wait for the socket and the latch together, and process interrupts meanwhile. Signals are
//! no obstacle either: libpq keeps SIGPIPE away from its caller. It has GSSAPI, which this client lacks. Against it:
//!
//! * **One way to wait.** etcd and Redis need deadlines, hosts in turn, [`Stop`](crate::Stop), and TLS, and cannot have those of libpq.
//!   The module `net` has them once for all three. With libpq, they would be written a second time, by hand: `connect_timeout` does not
//!   hold for `PQconnectPoll`, and of PostgreSQL's own helpers, `libpq/libpq-be-fe-helpers.h`, a comment says that they can block.
//! * **How much is read.** libpq takes a row, an error or a notice of any length into memory, and any number of them. Here the
//!   client gets no message above 64 KB, and no answer above 1 MB for one record.
//! * **The password.** A server that asks for it in clear text gets it from libpq, also where somebody in between says that the
//!   server has no TLS. `require_auth`, by which that is refused, came with PostgreSQL 16.
//! * **Sources that nobody named.** Parameters that are not given come from the environment of the postmaster (`PGSSLMODE`,
//!   `PGOPTIONS`, `PGSERVICE`), from service files, and from `~/.pgpass` and `~/.postgresql` of the server's user.
//! * **TLS twice.** libpq comes with OpenSSL, and etcd and Redis would need rustls all the same. The library would depend on
//!   libpq's package; and a server that was not built with the same OpenSSL would have two of them in one process.
//! * **Unsafe code.** This crate has none; bindings of libpq are nothing else.
//!
//! Of tokio-postgres, little is used: a connection, SCRAM, and the simple query protocol. Each wait is a future, which is
//! dropped when the deadline is over.

#[cfg(feature = "postgres")]
mod client;
#[cfg(feature = "postgres")]
mod frames;
#[cfg(feature = "postgres")]
mod identity;
mod kind;
#[cfg(all(test, feature = "postgres"))]
mod qualified;
#[cfg(feature = "postgres")]
mod schema;
#[cfg(feature = "postgres")]
mod session;
#[cfg(feature = "postgres")]
mod statements;

pub(crate) use kind::KIND;
#[cfg(feature = "postgres")]
pub use statements::{SEGMENTS_TABLES, TABLES};
