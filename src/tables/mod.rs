//! What is done to tables: [`moving`] gives existing ones snowflake IDs, and takes them back; [`partitions`] makes and drops partitions by
//! ID time. All of it runs as the owner of the table.

pub mod moving;
pub mod partitions;
