//! `[guard.templates]`: the words that people see.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

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

/// The templates that the gateway itself uses; `default.toml` says when. A ladder may name others.
pub const TEMPLATES: [&str; 17] = [
    "silent",
    "failed",
    "late",
    "refused",
    "unreadable",
    "deferral",
    "cancelled",
    "nothing_to_cancel",
    "new_session",
    "start",
    "help",
    "status_idle",
    "status_busy",
    "stranger",
    "resent",
    "cut_off",
    "file_not_sent",
];

/// The words that people see: for everyone, and where a platform or channel has its own.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Templates(BTreeMap<String, Template>);

/// A template, or those of a platform or channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Template {
    /// Words.
    Words(String),
    /// Words by name, for the platform or channel of that key.
    Own(BTreeMap<String, String>),
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordsOrTable;
        impl<'de> Visitor<'de> for WordsOrTable {
            type Value = Template;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a table of texts for one platform or channel")
            }

            fn visit_str<E: Error>(self, words: &str) -> Result<Template, E> {
                Ok(Template::Words(words.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Template, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(table)).map(Template::Own)
            }
        }
        deserializer.deserialize_str(WordsOrTable)
    }
}

/// Where settings for `channel` are looked for, the narrowest first: `webhook.siri`, `webhook`.
pub(super) fn scopes(channel: &str) -> impl Iterator<Item = &str> {
    [Some(channel), channel.split_once('.').map(|(platform, _)| platform)].into_iter().flatten()
}

impl Templates {
    /// The words of the template `name` on `channel` (`webhook.siri`): the channel's own, or else its
    /// platform's, or else everyone's. `None` when there is no such template.
    #[must_use]
    pub fn words(&self, channel: &str, name: &str) -> Option<&str> {
        let own = scopes(channel).find_map(|scope| match self.0.get(scope)? {
            Template::Own(own) => own.get(name),
            Template::Words(_) => None,
        });
        own.map(String::as_str).or_else(|| match self.0.get(name)? {
            Template::Words(words) => Some(words),
            Template::Own(_) => None,
        })
    }

    /// Every template by its name, as it reads on `channel`.
    #[must_use]
    pub fn for_channel(&self, channel: &str) -> BTreeMap<&str, &str> {
        let names = self.0.iter().filter(|(_, template)| matches!(template, Template::Words(_)));
        names.filter_map(|(name, _)| Some((name.as_str(), self.words(channel, name)?))).collect()
    }

    /// The names that a ladder may say.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let named = self.0.iter().filter(|(_, template)| matches!(template, Template::Words(_)));
        named.map(|(name, _)| name.clone()).collect()
    }

    /// `said` are the names that some ladder says: a template that neither a ladder nor the gateway uses is
    /// a slip.
    pub(super) fn check(&self, said: &BTreeSet<&str>, checks: &mut Checks<'_>) {
        for (name, template) in &self.0 {
            match template {
                Template::Words(words) => {
                    check_words(&["templates", name], words, checks);
                    if !is_name(name) {
                        checks.wrong(checks.key(&["templates", name]), NAME_RULE);
                    } else if !TEMPLATES.contains(&&**name) && !said.contains(&**name) {
                        let hint = hint(name, TEMPLATES.into_iter());
                        let what = format!("is not said by the gateway nor by any ladder: {hint}");
                        checks.wrong(checks.key(&["templates", name]), what);
                    }
                }
                Template::Own(own) => {
                    check_scope("templates", name, checks);
                    for (own_name, words) in own {
                        check_words(&["templates", name, own_name], words, checks);
                        if !matches!(self.0.get(own_name), Some(Template::Words(_))) {
                            let known = self.0.iter().filter(|(_, known)| matches!(known, Template::Words(_)));
                            let what = unknown(own_name, known.map(|(name, _)| name.as_str()));
                            checks.wrong(checks.key(&["templates", name, own_name]), what);
                        }
                    }
                }
            }
        }
    }
}

fn check_words(names: &[&str], words: &str, checks: &mut Checks<'_>) {
    if words.trim().is_empty() {
        checks.wrong(checks.key(names), "is empty: a person would be shown nothing");
    }
}
