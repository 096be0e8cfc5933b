//! The extension in SQL and PL/pgSQL, on servers without the library.

mod differences;
mod dumps;
mod generator;
mod plans;
mod rights;
mod roles;
mod tables;
mod taken;
mod versions;
mod world;
