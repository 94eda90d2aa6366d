//! The `rejoinder` binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A turn makes many small allocations on several threads, which mimalloc handles well.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // On huge pages, the allocator would hold 18 MiB of which it uses 6. It goes without where the kernel refuses this.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    rejoinder::cli::main()
}
