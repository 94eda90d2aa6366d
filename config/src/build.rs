//! What a build of the gateway can be configured with: its platforms and its kinds of agents.

use std::fmt::Write as _;

use crate::{
    AgentKind, PlatformSection,
    channels::sorted_names,
    names::joined,
    node::{DEFAULT_TOML, Node, parse_default},
};

/// The built-in texts in other languages than English.
const WORDS: [&str; 2] = [include_str!("../words/de.toml"), include_str!("../words/es.toml")];

#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// In the order of the manual. May include platforms that were left out of the build.
    pub platforms: &'static [PlatformSection],
    /// In the order of the manual.
    pub agents: &'static [AgentKind],
    /// Checks the URL of a PostgreSQL database, with its password. The error is a sentence without any secret.
    pub postgres: fn(&str) -> Result<(), String>,
}

impl Build {
    /// The manual of `rejoinder.toml`: every key with its default and a comment. It is also the lowest layer of every
    /// configuration.
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

    /// Every default: those of the manual, and the texts in other languages.
    pub(crate) fn defaults(&self) -> Node {
        let mut tree = parse_default(&self.manual());
        for words in WORDS {
            tree.overlay(parse_default(words));
        }
        tree
    }
}

/// Joins the parts, separated by empty lines.
fn parts<'a>(manuals: impl Iterator<Item = &'a str>) -> String {
    manuals.filter(|manual| !manual.is_empty()).collect::<Vec<_>>().join("\n")
}
