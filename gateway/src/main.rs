//! The `rejoinder` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rejoinder::cli::main()
}
