//! Tests of reading whole configurations.

mod approvals;
mod bad_input;
mod defaults;
mod environment;
mod languages;
mod lookup;
mod routing;
mod secrets;
mod sections;
mod words;

use rejoinder_config::{AgentKind, Build, PlatformSection, testing};

use crate::sections::{Hook, Page, Robot};

/// Two platforms, one that was left out, and two kinds of agents.
const BUILD: Build = Build {
    platforms: &[PlatformSection::of::<Page>(), PlatformSection::of::<Hook>(), PlatformSection::left_out("smoke")],
    agents: &[AgentKind::of::<testing::FrontDesk>(), AgentKind::of::<Robot>()],
    postgres: |_| Ok(()),
};

struct Machine;

impl Machine {
    #[expect(clippy::new_ret_no_self, reason = "it wraps `testing::Machine` with the build of these tests")]
    fn new() -> testing::Machine {
        testing::Machine::of(BUILD)
    }

    /// A machine with this `./rejoinder.toml`.
    fn with_toml(toml: &str) -> testing::Machine {
        Self::new().with_file("rejoinder.toml", toml)
    }
}
