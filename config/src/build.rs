//! What a build of the gateway can be configured with: its platforms and its kinds of agents.

use std::fmt::Write as _;

use crate::{AgentKind, PlatformSection, channels::sorted_names, names::joined};

/// The manual, where the parts of platforms and kinds of agents go to the lines `#{channels}` and `#{agents}`.
const DEFAULT_TOML: &str = include_str!("../default.toml");

/// What a build of the gateway can be configured with.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The platforms, in the order of the manual; those that were left out may stand among them.
    pub platforms: &'static [PlatformSection],
    /// The kinds of agents, in the order of the manual.
    pub agents: &'static [AgentKind],
}

impl Build {
    /// The manual of `rejoinder.toml`: every key, its default, and a line about it. It is the lowest layer of every
    /// configuration.
    #[must_use]
    pub fn manual(&self) -> String {
        let mut manual = String::new();
        for line in DEFAULT_TOML.lines() {
            match line {
                "#{channels}" => manual.push_str(&parts(self.platforms.iter().map(|platform| platform.manual))),
                "#{agents}" => manual.push_str(&parts(self.agents.iter().map(|kind| kind.manual))),
                line => {
                    let _ = writeln!(manual, "{line}");
                }
            }
        }
        let platforms = joined(&sorted_names(self.platforms), "and");
        let kinds: Vec<_> = self.agents.iter().map(|kind| format!("\"{}\"", kind.name)).collect();
        manual.replace("{platforms}", &platforms).replace("{kinds}", &joined(&kinds, "or"))
    }
}

/// One below the other, with an empty line between.
fn parts<'a>(manuals: impl Iterator<Item = &'a str>) -> String {
    manuals.filter(|manual| !manual.is_empty()).collect::<Vec<_>>().join("\n")
}
