//! `check-history DIRECTORY`: checks the record of a soak, and prints what is in it.

use snowflake_test::history::check::check;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("check-history DIRECTORY");
        return ExitCode::FAILURE;
    };
    match check(Path::new(&directory)) {
        Ok(report) => {
            println!("{report}");
            if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
