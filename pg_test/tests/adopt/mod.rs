//! Moving in and out, where that takes several sessions, a crash, or schemas that were made elsewhere.

mod back;
mod encodings;
mod foreign;
mod functions;
mod homemade;
mod kept;
mod others;
mod pgedge;
mod probe;
mod races;
mod random;
mod random_stages;
mod referring;
mod round;
mod schema;
mod scripts;
mod sessions;
mod staged;
mod staged_kept;
mod stay;
mod together;
mod uuid;
mod waiting;
mod widths;
mod writers;

/// The tables of the schema public that a transaction has locked in `ACCESS EXCLUSIVE` mode, as plans name them.
fn locked(transaction: &mut postgres::Transaction) -> String {
    let query = "SELECT string_agg(DISTINCT 'public.' || relname, ' ' ORDER BY 'public.' || relname) FROM pg_locks \
                 JOIN pg_class c ON c.oid = relation WHERE pid = pg_backend_pid() AND relkind IN ('r', 'p') \
                 AND relnamespace = 'public'::regnamespace AND mode = 'AccessExclusiveLock'";
    transaction.query_one(query, &[]).unwrap().get(0)
}
