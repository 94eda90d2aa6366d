//! One homeserver for many test processes: prints its URL, and ends with its standard input.

use std::io::{Read as _, Write as _};

use rejoinder_matrix_server::{Homeserver, Settings};

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let homeserver = runtime.block_on(Homeserver::start(Settings::default()));
    println!("{}", homeserver.url());
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
