//! What an operator writes, and what becomes of it.

mod bad_input;
mod defaults;
mod environment;
mod lookup;
mod secrets;
mod sections;

use rejoinder_config::{AgentKind, Build, PlatformSection, testing};

use crate::sections::{Hook, Page, Robot};

/// Two platforms, one that was left out, and two kinds of agents.
const BUILD: Build = Build {
    platforms: &[PlatformSection::of::<Page>(), PlatformSection::of::<Hook>(), PlatformSection::left_out("smoke")],
    agents: &[AgentKind::of::<testing::FrontDesk>(), AgentKind::of::<Robot>()],
};

/// An operator's machine.
struct Machine;

impl Machine {
    #[expect(clippy::new_ret_no_self, reason = "it stands for that of `testing`, with the build of these tests")]
    fn new() -> testing::Machine {
        testing::Machine::of(BUILD)
    }

    /// One with this in `./rejoinder.toml`.
    fn with_toml(toml: &str) -> testing::Machine {
        Self::new().with_file("rejoinder.toml", toml)
    }
}
