//! What is done to tables: [`moving`] gives existing ones snowflake IDs, and takes them back; [`partitions`] makes and drops partitions by
//! ID time. All of it runs as the owner of the table. [`replicated`] looks at what others are told of partitions.

pub mod moving;
pub mod partitions;
pub mod replicated;
