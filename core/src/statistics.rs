//! How many different values there are, from a sample: what a query planner asks of a column, for what is computed from IDs.
//!
//! ```
//! use snowflake_core::statistics::distinct;
//!
//! // Four workers in a sample of eight of a million IDs.
//! assert_eq!(distinct(&[1, 2, 3, 4, 1, 2, 3, 4], 1e6), 4.0);
//! // Each value is there once: probably most are in all of them.
//! assert!(distinct(&[1, 2, 3, 4, 5, 6, 7, 8], 1e6) > 100_000.0);
//! ```

use std::collections::HashMap;

/// How many different values a column of so many rows has, by a random sample of its values. At least as many as the sample has, at
/// most as many as there are rows.
///
/// The estimator is that of PostgreSQL's ANALYZE: "Duj1" of Haas and Stokes, *Estimating the number of classes in a finite
/// population*, IBM Research Report RJ 10025, 1996.
pub fn distinct(sample: &[u64], rows: f64) -> f64 {
    let mut counts = HashMap::<u64, usize>::new();
    for &value in sample {
        *counts.entry(value).or_default() += 1;
    }
    let size = sample.len() as f64;
    let found = counts.len() as f64;
    let once = counts.values().filter(|&&count| count == 1).count() as f64;
    if size == 0.0 || rows <= size {
        return found.min(rows.max(0.0));
    }
    let estimate = size * found / (size - once + once * size / rows);
    estimate.clamp(found, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_values_are_counted_and_many_are_extrapolated() {
        assert_eq!(distinct(&[], 1000.0), 0.0);
        assert_eq!(distinct(&[7; 100], 1e9), 1.0);
        let all_different: Vec<u64> = (0..100).collect();
        assert_eq!(distinct(&all_different, 100.0), 100.0);
        assert_eq!(distinct(&all_different, 5e6), 5e6);
        let mostly_different: Vec<u64> = (0..100).map(|value| value % 90).collect();
        let estimate = distinct(&mostly_different, 5e6);
        assert!((90.0..1000.0).contains(&estimate), "{estimate}");
        // 4 * 3 / (4 - 2 + 2 * 4 / 100)
        let estimate = distinct(&[1, 1, 2, 3], 100.0);
        assert!((estimate - 12.0 / 2.08).abs() < 1e-9, "{estimate}");
    }

    proptest! {
        #[test]
        fn it_is_never_out_of_bounds(sample in prop::collection::vec(0_u64..50, 0..200), rows in 0.0..1e12_f64) {
            let different = sample.iter().collect::<std::collections::HashSet<_>>().len() as f64;
            let estimate = distinct(&sample, rows);
            prop_assert!(estimate <= rows.max(0.0) && estimate >= different.min(rows), "{}", estimate);
        }
    }
}
