//! The `rejoinder` binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A turn is many small allocations on several threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    rejoinder::cli::main()
}
