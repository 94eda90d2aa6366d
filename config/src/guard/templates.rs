//! `[guard.templates]`: the texts that people see.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use rejoinder_core::is_blank;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::check_scope;
use crate::{
    check::Checks,
    names::{hint, unknown},
    text::{NAME_RULE, is_name},
};

/// The templates that the gateway itself uses; `default.toml` says when. Ladders may name others.
pub const TEMPLATES: [&str; 48] = [
    "silent",
    "failed",
    "late",
    "refused",
    "unreadable",
    "accepted",
    "deferral",
    "cancelled",
    "nothing_to_cancel",
    "new_session",
    "start",
    "help",
    "help_command",
    "status_idle",
    "status_running",
    "status_waiting",
    "status_promised",
    "status_sending",
    "status_more",
    "history_empty",
    "export_ready",
    "export_cut",
    "export_unavailable",
    "whoami",
    "whoami_member",
    "whoami_owner",
    "whoami_unnamed",
    "stranger",
    "pairing",
    "paired",
    "approved",
    "declined",
    "code_unknown",
    "code_locked",
    "owners_only",
    "limited",
    "dropped",
    "queue",
    "queue_chosen",
    "queue_unknown",
    "question_expired",
    "resent",
    "replaces",
    "overtaken",
    "cut_off",
    "in_file",
    "cut_long",
    "file_not_sent",
];

/// The texts that people see, with those that a platform or channel replaces.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Templates(BTreeMap<String, Template>);

/// An entry of the table: a text, or a table of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Template {
    /// The text for every channel.
    Text(String),
    /// Texts by template name, for the platform or channel that the key names.
    Scoped(BTreeMap<String, String>),
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = Template;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a table of texts for one platform or channel")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Template, E> {
                Ok(Template::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Template, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(table)).map(Template::Scoped)
            }
        }
        deserializer.deserialize_str(TextOrTable)
    }
}

/// The scopes of `channel`, the narrowest first: `webhook.siri`, `webhook`.
pub(super) fn scopes(channel: &str) -> impl Iterator<Item = &str> {
    [Some(channel), channel.split_once('.').map(|(platform, _)| platform)].into_iter().flatten()
}

impl Templates {
    /// The text of the template `name` on `channel` (`webhook.siri`): the channel's own, else its platform's, else the
    /// general one. `None` if there is no such template.
    #[must_use]
    pub fn text(&self, channel: &str, name: &str) -> Option<&str> {
        let own = scopes(channel).find_map(|scope| match self.0.get(scope)? {
            Template::Scoped(own) => own.get(name),
            Template::Text(_) => None,
        });
        own.map(String::as_str).or_else(|| match self.0.get(name)? {
            Template::Text(text) => Some(text),
            Template::Scoped(_) => None,
        })
    }

    /// The text of every template on `channel`, by name.
    #[must_use]
    pub fn for_channel(&self, channel: &str) -> BTreeMap<&str, &str> {
        let names = self.0.iter().filter(|(_, template)| matches!(template, Template::Text(_)));
        names.filter_map(|(name, _)| Some((name.as_str(), self.text(channel, name)?))).collect()
    }

    /// The names that a ladder may use.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let named = self.0.iter().filter(|(_, template)| matches!(template, Template::Text(_)));
        named.map(|(name, _)| name.clone()).collect()
    }

    /// `used` are the names that ladders use. A template that neither a ladder nor the gateway uses is a mistake.
    pub(super) fn check(&self, used: &BTreeSet<&str>, checks: &mut Checks<'_>) {
        for (name, template) in &self.0 {
            match template {
                Template::Text(text) => {
                    check_not_blank(&["templates", name], text, checks);
                    if !is_name(name) {
                        checks.wrong(checks.key(&["templates", name]), NAME_RULE);
                    } else if !TEMPLATES.contains(&&**name) && !used.contains(&**name) {
                        let hint = hint(name, TEMPLATES.into_iter());
                        let what = format!("is not used by the gateway or a ladder: {hint}");
                        checks.wrong(checks.key(&["templates", name]), what);
                    }
                }
                Template::Scoped(own) => {
                    check_scope("templates", name, checks);
                    for (own_name, text) in own {
                        check_not_blank(&["templates", name, own_name], text, checks);
                        if !matches!(self.0.get(own_name), Some(Template::Text(_))) {
                            let known = self.0.iter().filter(|(_, known)| matches!(known, Template::Text(_)));
                            let what = unknown(own_name, known.map(|(name, _)| name.as_str()));
                            checks.wrong(checks.key(&["templates", name, own_name]), what);
                        }
                    }
                }
            }
        }
    }
}

fn check_not_blank(names: &[&str], text: &str, checks: &mut Checks<'_>) {
    if is_blank(text) {
        checks.wrong(checks.key(names), "is empty: people would see nothing");
    }
}
