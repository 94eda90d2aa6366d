//! `[people.<name>]`: people whom the operator names.
//!
//! They are known on several channels. Who may write on one channel is in that channel's section: see [`People`](crate::People).

use std::collections::BTreeMap;

use rejoinder_core::{ChannelId, Hours, Identity, Language, PersonLimits, PersonRole, SeedPerson, is_blank};
use serde::{Deserialize, Serialize};

use crate::{
    Channels, Limits, SomeLimits,
    check::{Checks, Section},
    key::Key,
    span::Span,
    text,
};

/// People, by the operator's names for them. They are known from the start on.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Persons(BTreeMap<String, Person>);

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Person {
    #[serde(default)]
    role: PersonRole,
    /// At least one.
    identities: Vec<Written>,
    /// The channel on which they are reached unless they choose another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    /// The language in which they are told something if they chose none and the platform tells none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text::language_option")]
    language: Option<Language>,
    /// Their quiet hours: messages that the gateway begins on its own wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quiet_hours: Option<Span>,
    /// What differs from the limits of her role.
    #[serde(default, skip_serializing_if = "SomeLimits::is_empty")]
    limits: SomeLimits,
}

impl Persons {
    /// The people in the form that the core uses.
    pub fn seeds(&self) -> Vec<SeedPerson> {
        let seed = |(name, person): (&String, &Person)| SeedPerson {
            name: name.clone(),
            role: person.role,
            identities: person.identities.iter().map(|Written(identity)| identity.clone()).collect(),
            home: person.home.as_deref().map(ChannelId::from_stored),
            language: person.language,
        };
        self.0.iter().map(seed).collect()
    }

    /// Who somebody is on channels; `None` if nobody has this name.
    pub(crate) fn identities(&self, name: &str) -> Option<Vec<Identity>> {
        let person = self.0.get(name)?;
        Some(person.identities.iter().map(|Written(identity)| identity.clone()).collect())
    }

    /// The quiet hours of people who have some, by name.
    pub fn quiet_hours(&self) -> BTreeMap<String, Hours> {
        let quiet = |(name, person): (&String, &Person)| Some((name.clone(), person.quiet_hours?.0));
        self.0.iter().filter_map(quiet).collect()
    }

    /// The limits of people who have some of their own, by name.
    pub fn limits(&self, general: &Limits) -> BTreeMap<String, PersonLimits> {
        let own = self.0.iter().filter(|(_, person)| !person.limits.is_empty());
        own.map(|(name, person)| (name.clone(), person.limits.or(general.of_role(person.role)))).collect()
    }

    /// Those limits as they are written.
    pub(crate) fn own_limits(&self) -> impl Iterator<Item = SomeLimits> {
        self.0.values().map(|person| person.limits)
    }

    /// Reports identities on channels that have no rules about people. The senders that callers name there prove nothing.
    pub(crate) fn check_channels(&self, channels: &Channels, checks: &mut Checks<'_>) {
        for (name, person) in &self.0 {
            for (index, Written(identity)) in person.identities.iter().enumerate() {
                let channel = channels.iter().find(|(id, _)| *id == identity.channel);
                if channel.is_some_and(|(_, channel)| channel.common.people.is_none()) {
                    let what = format!(
                        "names {identity}, but callers of {} have a token instead: remove it",
                        identity.channel
                    );
                    checks.wrong(checks.key(&[name, "identities"]).index(index), what);
                }
            }
        }
    }
}

impl Persons {
    /// Whether it names somebody on a channel.
    pub fn has_on(&self, channel: &str) -> bool {
        let mut identities = self.0.values().flat_map(|person| &person.identities);
        identities.any(|Written(identity)| identity.channel.as_str() == channel)
    }
}

impl Section for Persons {
    fn check(&self, checks: &mut Checks<'_>) {
        let mut seen: BTreeMap<&Identity, Key> = BTreeMap::new();
        for (name, person) in &self.0 {
            let name = name.as_str();
            if !is_shown_as_written(name) {
                let what = "has an invalid name: use at most 100 characters, without control characters";
                checks.wrong(checks.key(&[name]), what);
            }
            if person.identities.is_empty() {
                let what = "is empty: name at least one identity, such as \"telegram.main/123456789\"";
                checks.wrong(checks.key(&[name, "identities"]), what);
            }
            if let Some(home) = &person.home
                && !person.identities.iter().any(|Written(identity)| identity.channel.as_str() == home)
            {
                let what = format!("is {home}, but identities name nobody there: use the channel of one of them");
                checks.wrong(checks.key(&[name, "home"]), what);
            }
            checks.knows_language(checks.key(&[name, "language"]), person.language.as_ref().map(Language::as_str));
            for (index, Written(identity)) in person.identities.iter().enumerate() {
                let key = checks.key(&[name, "identities"]).index(index);
                if let Some(first) = seen.get(identity) {
                    checks.wrong(key, format!("names {identity}, as {first} does: remove one of the two"));
                    continue;
                }
                seen.insert(identity, key.clone());
                if let Some(what) = why_nobody_has(&identity.id) {
                    checks.wrong(key.clone(), what);
                }
                checks.refers_to_channel(&key, [&identity.channel]);
            }
        }
    }
}

/// Whether people can read and write a name.
fn is_shown_as_written(name: &str) -> bool {
    const MAX_CHARACTERS: usize = 100;
    !is_blank(name) && name.chars().count() <= MAX_CHARACTERS && !name.chars().any(char::is_control)
}

/// What is wrong with an id that no person has. `@name` and `*` mean in an [`AllowList`](crate::AllowList) what is no id.
fn why_nobody_has(id: &str) -> Option<&'static str> {
    match id {
        "*" => Some("names everyone, but an identity is one person's: use allow_from of the channel"),
        id if id.starts_with("*:") => {
            Some("names a whole server, but an identity is one person's: use allow_from of the channel")
        }
        id if id.starts_with('@') && !id.contains(':') => {
            Some("names a username, which can be given to somebody else: write the person's id")
        }
        _ => None,
    }
}

/// An identity as the operator writes it: `telegram.main/42`.
#[derive(Clone, Debug)]
struct Written(Identity);

/// Reads `telegram.main/42`.
pub(crate) fn parse_identity(text: &str) -> Option<Identity> {
    let (channel, id) = text.trim().split_once('/')?;
    let is_identity = channel.contains('.') && !is_blank(id) && id.trim_start() == id;
    is_identity.then(|| Identity { channel: ChannelId::from_stored(channel), id: id.to_owned() })
}

text::as_text!(Written, "a channel and a person's id there, such as \"telegram.main/123456789\"", parse_identity);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_a_channel_and_an_id() {
        let read = |text| parse_identity(text).map(|identity| (identity.channel.to_string(), identity.id));

        let ada = ("matrix.main".to_owned(), "@ada/l:example.org".to_owned());
        assert_eq!(read(" matrix.main/@ada/l:example.org "), Some(ada));
        for wrong in ["", "42", "telegram.main", "telegram.main/", "telegram.main/ ", "telegram/42", "/42"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
