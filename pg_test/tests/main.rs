//! Tests against real servers of the extension, and of what stands in this repository. One program, since most of its tests wait most
//! of the time: several run at once. `cargo test -p snowflake_test --test main crash::` runs those of one file.

mod adopt;
mod backup;
mod check_plan;
mod clock;
mod concurrency;
mod copies;
mod crash;
mod damage;
mod decode;
mod directories;
mod disk;
mod dumps;
mod estimates;
mod failover;
mod hostile;
mod house;
mod javascript;
mod leap;
mod origin;
mod pins;
mod planner;
mod readme;
mod recovery;
mod reference;
mod releases;
mod reservations;
mod server;
mod settings;
mod soak;
mod standbys;
mod synchronous;
mod tools;
mod upgrade;
mod waits;
mod worker;
