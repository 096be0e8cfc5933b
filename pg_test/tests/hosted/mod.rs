//! The extension in SQL and PL/pgSQL, on servers without the library.

mod configure;
mod differences;
mod dumps;
mod generator;
mod grounds;
mod moving;
mod plans;
mod recorded;
mod restores;
mod rights;
mod roles;
mod set_back;
mod tables;
mod taken;
mod versions;
mod world;
