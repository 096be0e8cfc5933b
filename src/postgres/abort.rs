//! What is left to PostgreSQL when an error ends a transaction.

/// Whether an error is on its way to PostgreSQL. What holds a lock, a pin or a relation of PostgreSQL's asks this when it is dropped, and
/// then releases nothing.
///
/// pgrx carries an error through the frames of Rust as a panic, and hands it to PostgreSQL behind the last of them; that aborts the
/// transaction or the subtransaction, which releases the LWLocks, and what the resource owner has on record. Until then PostgreSQL is not
/// to be called: an error of its own has already reset the count by which it holds off interrupts, and another error in a `drop` would be
/// a panic within a panic, which ends the process and so restarts the server.
pub fn is_under_way() -> bool {
    std::thread::panicking()
}
