//! The scopes of deadlines, ladders and templates: platforms and channels.

use crate::check::Checks;

/// The scopes of `channel`, the narrowest first: `webhook.siri`, `webhook`.
pub(super) fn scopes(channel: &str) -> impl Iterator<Item = &str> {
    [Some(channel), channel.split_once('.').map(|(platform, _)| platform)].into_iter().flatten()
}

/// Reports `name`, the key of a table under `section`, if it is neither a platform nor a configured channel.
pub(super) fn check_scope(section: &str, name: &str, checks: &mut Checks<'_>) {
    checks.refers_to_scope(&checks.key(&[section, name]), [name]);
}
