//! Finds people by a name or an identity.

use unicode_normalization::UnicodeNormalization;

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    people::{DirectChat, Identity, PersonRecord},
};

/// `name` as names are compared: without regard to case, blanks around it and an `@` before it.
pub fn folded(name: &str) -> String {
    let name = name.trim();
    let name: String = name.strip_prefix('@').unwrap_or(name).nfkc().collect();
    // ß and ẞ have only their upper case in common with ss.
    name.to_lowercase().to_uppercase().to_lowercase()
}

impl Identity {
    /// Reads `CHANNEL/ID`.
    pub fn parse(text: &str) -> Option<Self> {
        let (channel, id) = text.trim().split_once('/')?;
        let is_identity = channel.contains('.') && !id.is_empty();
        is_identity.then(|| Self { channel: ChannelId::from_stored(channel), id: id.to_owned() })
    }
}

impl PersonRecord {
    /// Whether a channel knows them by this text as [`folded`]: `CHANNEL/ID`, or the id alone.
    fn has_id(&self, text: &str) -> bool {
        let mut identities = self.identities.iter().map(|known| &known.identity);
        identities.any(|identity| folded(&identity.id) == text || folded(&identity.to_string()) == text)
    }
}

/// The people whom `text` means: by their name, else by their name in another case, else by an identity.
pub fn meant<'a>(people: &'a [PersonRecord], text: &str) -> Vec<&'a PersonRecord> {
    let (name, folded_name) = (text.trim(), folded(text));
    let ways: [&dyn Fn(&PersonRecord) -> bool; 3] =
        [&|person| person.name == name, &|person| folded(&person.name) == folded_name, &|person| {
            person.has_id(&folded_name)
        }];
    let mut found = ways.iter().map(|is_meant| people.iter().filter(|person| is_meant(person)).collect::<Vec<_>>());
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

/// The name of a known person that `text` may misspell.
pub(crate) fn nearest<'a>(people: impl IntoIterator<Item = &'a PersonRecord>, text: &str) -> Option<&'a str> {
    let name = folded(text);
    let slips = (name.chars().count() / 3).clamp(1, 3);
    let distance = |person: &PersonRecord| strsim::damerau_levenshtein(&name, &folded(&person.name));
    let near = people.into_iter().map(|person| (distance(person), person.name.as_str()));
    near.filter(|(distance, _)| *distance <= slips).min().map(|(_, name)| name)
}

/// Whom a list is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonFilter {
    /// The identities of the people.
    pub identities: Vec<Identity>,
    /// Their direct chats: messages of others there are for them.
    pub chats: Vec<ConversationRef>,
    /// An id, or a part of a name that a platform gave.
    pub name: Option<String>,
    /// Whether messages of others in a direct chat are found by the name that a platform gave its person.
    pub with_received: bool,
}

impl PersonFilter {
    /// Reads `CHANNEL/ID`, an id, or a part of a name, of `people` and of others; `chats`: where people are reached.
    pub fn new(text: &str, people: &[PersonRecord], chats: &[DirectChat]) -> Self {
        let (identity, name) = (Identity::parse(text), folded(text));
        let is_named = |person: &PersonRecord| identity.is_none() && folded(&person.name).contains(&name);
        let meant: Vec<_> = people.iter().filter(|person| is_named(person) || person.has_id(&name)).collect();
        let known = || meant.iter().flat_map(|person| &person.identities).map(|known| &known.identity);
        let of_them = chats.iter().filter(|chat| known().any(|identity| *identity == chat.identity));
        let at = |identity: &Identity| ConversationRef::new(identity.channel.clone(), &identity.id);
        Self {
            identities: known().chain(&identity).cloned().collect(),
            chats: of_them.map(|chat| chat.conversation.clone()).chain(identity.as_ref().map(at)).collect(),
            name: identity.is_none().then(|| text.trim().trim_start_matches('@').to_owned()),
            with_received: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;
    use crate::model::{
        ids::PersonId,
        people::{KnownIdentity, PersonRole},
    };

    fn person(name: &str, identities: &[&str]) -> PersonRecord {
        let at = Timestamp::from_millis(0);
        let known = |text: &&str| {
            let identity = Identity::parse(text).expect("an identity");
            KnownIdentity { identity, added_at: at, added_by: "a test".to_owned() }
        };
        PersonRecord {
            id: PersonId::new(at),
            name: name.to_owned(),
            role: PersonRole::Member,
            created_at: at,
            identities: identities.iter().map(known).collect(),
        }
    }

    fn names<'a>(people: &'a [PersonRecord], text: &str) -> Vec<&'a str> {
        meant(people, text).into_iter().map(|person| person.name.as_str()).collect()
    }

    #[test]
    fn somebody_is_found_by_all_their_names() {
        let ada = ["telegram.main/42", "matrix.main/@ada:example.org", "discord.main/Ada_L"];
        let people = [person("Ada", &ada), person("Straße", &[]), person("Ömer", &[])];

        for text in ["Ada", " ada ", "ADA", "42", "telegram.main/42", "@ada:example.org", "@ada_l"] {
            assert_eq!(names(&people, text), ["Ada"], "{text}");
        }
        for (text, name) in [("STRASSE", "Straße"), ("STRAẞE", "Straße"), ("ömer", "Ömer"), ("O\u{308}MER", "Ömer")]
        {
            assert_eq!(names(&people, text), [name], "{text}");
        }
        assert_eq!(names(&people, "Eve"), [""; 0]);
        assert_eq!(nearest(&people, "adda"), Some("Ada"));
        assert_eq!(nearest(&people, "grace"), None);
    }

    #[test]
    fn an_exact_name_comes_before_another_case_and_before_an_id() {
        let people = [person("ada", &["telegram.main/7"]), person("Ada", &["telegram.main/42"]), person("7", &[])];

        assert_eq!(names(&people, "Ada"), ["Ada"]);
        assert_eq!(names(&people, "ADA"), ["ada", "Ada"]);
        assert_eq!(names(&people, "7"), ["7"]);
    }

    #[test]
    fn a_list_is_about_all_identities_and_direct_chats_of_somebody() {
        let people = [person("Ada", &["telegram.main/42", "discord.main/7"])];
        let identity = |text| Identity::parse(text).expect("an identity");
        let chat = DirectChat {
            identity: identity("discord.main/7"),
            conversation: ConversationRef::parse("discord.main/900").expect("an address"),
            since: Timestamp::from_millis(0),
            is_home: false,
            language: None,
        };
        let chats = [chat];
        let of = |text| PersonFilter::new(text, &people, &chats);

        let ada = of("ad");
        assert_eq!(ada.identities, [identity("telegram.main/42"), identity("discord.main/7")]);
        assert_eq!((&*ada.chats, ada.name.as_deref()), (&[chats[0].conversation.clone()][..], Some("ad")));
        assert_eq!(of("@ADA").identities, ada.identities);
        assert_eq!(of("7").identities, ada.identities);
        let stranger = of("telegram.main/99");
        assert_eq!((stranger.identities, stranger.name), (vec![identity("telegram.main/99")], None));
        assert_eq!(stranger.chats.len(), 1);
    }
}
