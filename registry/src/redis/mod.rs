//! A registry in Redis, version 5 or later, or in what speaks its protocol and runs its Lua scripts.
//!
//! # Its URL
//!
//! `redis://host`, or `rediss://` for TLS, with a server that is verified. A port that is not named is 6379. The path is the number of
//! the database, or none for 0. The user may be empty: `redis://:password@host`. `wait_replicas` says how many replicas must have
//! received a change.
//!
//! # What it needs
//!
//! One primary. With access lists, a user that may run `EVAL`, `HGET`, `HGETALL`, `HMGET`, `HSET` on the key
//! `pg_snowflake:<namespace>`, for segments also on
//! `pg_snowflake_segments:{pg_snowflake:<namespace>}` and `pg_snowflake_holders:{pg_snowflake:<namespace>}`, of which the second is also where
//! a registry is known that was restored; and better also `ROLE` and
//! `INFO`, for the [warnings], and `TIME`, by which a server notices at its start that its clock is wrong. `docs/reference/registries.md` has
//! the command. `CONFIG GET` shows `appendfsync`, and the passwords `requirepass` and `masterauth`, too: so the user should not have it.
//! What cannot be looked at is [said](crate::Registry::unseen).
//!
//! [warnings]: crate::Registry::warnings
//!
//! | setting | value | otherwise |
//! |---|---|---|
//! | `appendonly` | `yes` | a crash loses all changes since the last snapshot |
//! | `appendfsync` | `always` | a crash of the machine loses the changes of the last second, and with `no` more |
//! | `maxmemory-policy` | `noeviction`, or one of `volatile-…` | with `allkeys-…` the registry can be evicted as a whole |
//!
//! A registry that loses changes can **grant a worker twice**; so does one that is wiped (`FLUSHALL`, `DEL`, an eviction, a
//! data directory that is lost). Then every worker looks as if it was never used, and servers that go on with their grants
//! run into new owners. After that, start servers only when the grants from before are over.
//!
//! # Replicas, Sentinel, Cluster
//!
//! Replication is asynchronous: **a failover loses changes**, whoever does it. Several hosts can be named, and replicas among
//! them are passed over; that is for a failover by hand, after the old primary is stopped and the replica has caught up. With
//! `wait_replicas=N` a change counts as stored when N replicas have received it (`WAIT`), and as unanswered before; that
//! makes a loss less likely, and does not exclude it: a replica has it in memory only, and Sentinel may choose another one.
//! Sentinel is not asked where the primary is. Redis Cluster works where the URL names the primary that has the key; a
//! `MOVED` is not followed.
//!
//! # What it holds
//!
//! One hash, `pg_snowflake:<namespace>`, without an expiry:
//!
//! | field | value |
//! |---|---|
//! | `namespace` | the record of the namespace, as JSON |
//! | `worker:<number>` | a record, as JSON |
//! | `worker:<number>:version` | its version, a number by chance |
//!
//! And one for segments, `pg_snowflake_segments:{pg_snowflake:<namespace>}`, as versions without segments expect nothing else in the
//! other one. Its fields are the tags, their values a version by chance, a space, and a record as JSON. In
//! `pg_snowflake_holders:{pg_snowflake:<namespace>}`, a field `<number>/<tag>` has what the server of a worker held of a tag at its last
//! grant, as JSON. Its field `registry` is none of these: it has the identity of the registry in which the record of the namespace was
//! confirmed.

#[cfg(feature = "redis")]
mod client;
mod kind;
#[cfg(feature = "redis")]
mod session;
mod url;

pub(crate) use kind::KIND;
