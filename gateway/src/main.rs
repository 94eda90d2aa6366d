//! The `rejoinder` binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A turn makes many small allocations on several threads, which mimalloc handles well.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    rejoinder::cli::main()
}
