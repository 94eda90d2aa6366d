//! The platforms of this build. Each implements [`Platform`] in a file of its own.
//!
//! To add one, write its crate under `adapters/` with its section of the configuration, add the crate to `Cargo.toml`,
//! implement [`Platform`] in a file here, and list it in [`PLATFORMS`]. An optional platform also has a Cargo feature of its
//! name, which only the files here and `lib.rs` mention, and a line in [`LEFT_OUT`]. Everything else (the manual, `init`,
//! `doctor`, the start) uses these lists.

mod api;
#[cfg(any(feature = "discord", feature = "telegram"))]
mod bot;
#[cfg(any(feature = "discord", feature = "matrix", feature = "telegram"))]
mod check;
#[cfg(feature = "discord")]
mod discord;
#[cfg(feature = "example")]
mod example;
#[cfg(feature = "matrix")]
mod matrix;
#[cfg(any(feature = "discord", feature = "example", feature = "matrix", feature = "telegram"))]
mod people;
mod platform;
#[cfg(feature = "telegram")]
mod telegram;
mod webchat;
mod webhook;
mod words;

use rejoinder_config::{IdFormat, PlatformSection};

/// In the order of the manual and of the questions of `rejoinder init`.
static PLATFORMS: &[&dyn Platform] = &[
    &webchat::Webchat,
    &webhook::Webhook,
    &api::Api,
    &words::Words,
    #[cfg(feature = "telegram")]
    &telegram::Telegram,
    #[cfg(feature = "discord")]
    &discord::Discord,
    #[cfg(feature = "matrix")]
    &matrix::Matrix,
    #[cfg(feature = "example")]
    &example::Example,
];

/// Platforms whose feature is off in this build, but for the example. A configuration that names one is rejected.
const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "discord"))]
    "discord",
    #[cfg(not(feature = "matrix"))]
    "matrix",
    #[cfg(not(feature = "telegram"))]
    "telegram",
];

/// All platforms, in the order of the manual.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Platform> {
    PLATFORMS.iter().copied()
}

/// All platforms, sorted by the name of their section.
pub(crate) fn by_name() -> impl Iterator<Item = &'static dyn Platform> {
    let mut platforms: Vec<_> = all().collect();
    platforms.sort_by_key(|platform| platform.section().name);
    platforms.into_iter()
}

/// The names of the platforms that have accounts to connect: "Discord, Matrix and Telegram".
pub(crate) fn names() -> String {
    let names: Vec<_> = by_name().filter(|platform| platform.setup().is_some()).map(Platform::name).collect();
    match &names[..] {
        [] => "no chat platform".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The format of ids on a platform, if it is in this build.
pub(crate) fn id_format(platform: &str) -> Option<&'static IdFormat> {
    all().find(|known| known.section().name == platform)?.id_format()
}

/// The sections of all platforms, including those left out.
pub(crate) fn sections() -> Vec<PlatformSection> {
    all().map(Platform::section).chain(LEFT_OUT.iter().map(|name| PlatformSection::left_out(name))).collect()
}

#[cfg(test)]
mod tests;

pub(crate) use self::platform::{Account, ChannelNotice, CheckContext, Hook, Platform, RouteMaterials, Routes, Setup};
