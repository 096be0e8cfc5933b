//! A registry in etcd, version 3.4 or later, by gRPC.
//!
//! # Its URL
//!
//! `etcd://host1,host2:2380`, or `etcds://` for TLS, with a server that is verified. A port that is not named is 2379. There is no path.
//! A user is named where the server asks for one.
//!
//! # What it needs
//!
//! With authentication, a user whose role may read and write the prefix `/pg_snowflake/<namespace>/`, and nothing else (the commands
//! stand in `docs/reference/registries.md`); or, with
//! `--client-cert-auth` and no user in the URL, a certificate whose common name etcd takes for the user.
//!
//! # What it keeps, and what not
//!
//! * Each change is one transaction that compares the key's `mod_revision`, agreed on by a majority and synced to disk before
//!   it is answered. All reads are linearizable. A cluster of three members or more goes on when one fails.
//! * `--unsafe-no-fsync` breaks the promise. A member restored from a snapshot is an older registry, and **workers can be
//!   granted twice**: so is a cluster made anew from one member.
//! * The keys have no lease of etcd's and never expire.
//!
//! # Keys
//!
//! | key | value |
//! |---|---|
//! | `/pg_snowflake/<namespace>/namespace` | the record of the namespace, as JSON |
//! | `/pg_snowflake/<namespace>/registry` | the identity of the registry in which the record of the namespace was confirmed |
//! | `/pg_snowflake/<namespace>/workers/<number>` | a record, as JSON |
//! | `/pg_snowflake/<namespace>/segments/<tag>` | the record of a tag, as JSON |
//! | `/pg_snowflake/<namespace>/holders/<number>/<tag>` | what the server of a worker held of a tag at its last grant, as JSON |
//!
//! In namespaces and tags, `/` is written as `%2F`, and `%` as `%25`: so no namespace lies inside another one.

#[cfg(feature = "etcd")]
mod client;
mod kind;
#[cfg(feature = "etcd")]
mod member;

pub(crate) use kind::KIND;
