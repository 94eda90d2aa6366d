//! The people of the configuration, and their records.

use rejoinder_guard::Timestamp;

use crate::model::{Identity, KnownIdentity, PeopleChange, PersonId, PersonRecord, SeedPerson};

/// The name under which the configuration's people are let in.
const CONFIGURATION: &str = "configuration";

/// What has to be stored so that the people of the configuration are known. Of those in `seeds`, only those that differ from
/// `before` are planted.
pub(super) fn planted(
    seeds: &[SeedPerson],
    before: &[SeedPerson],
    people: &[PersonRecord],
    now: Timestamp,
) -> Vec<PeopleChange> {
    let records = records(seeds, people);
    let mut changes = Vec::new();
    for (seed, known) in seeds.iter().zip(records) {
        if before.iter().any(|old| old.is_same_person(seed)) {
            continue;
        }
        let has = |identity: &Identity| known.as_ref().is_some_and(|known| known.identity(identity).is_some());
        let is_same = known.as_ref().is_some_and(|known| known.role == seed.role && known.name == seed.name);
        if is_same && seed.identities.iter().all(has) {
            continue;
        }
        let added = |identity: &Identity| KnownIdentity {
            identity: identity.clone(),
            added_at: now,
            added_by: CONFIGURATION.to_owned(),
        };
        changes.push(PeopleChange::PersonSaved(PersonRecord {
            id: known.as_ref().map_or_else(|| PersonId::new(now), |known| known.id),
            name: seed.name.clone(),
            role: seed.role,
            created_at: known.as_ref().map_or(now, |known| known.created_at),
            identities: seed.identities.iter().filter(|identity| !has(identity)).map(added).collect(),
        }));
    }
    changes
}

/// The record of each of the configuration's people; `None`: they need a new one. All are decided before any changes, so that a
/// record with somebody's sessions is never left over for somebody else.
fn records(seeds: &[SeedPerson], people: &[PersonRecord]) -> Vec<Option<PersonRecord>> {
    let mut records: Vec<Option<&PersonRecord>> = vec![None; seeds.len()];
    // Of several, the one with the same name, and of these one with an identity that nobody linked.
    let fits = |seed: &SeedPerson, record: &PersonRecord| {
        let is_own = |it: &&KnownIdentity| !record.has_linked(it) && seed.identities.contains(&it.identity);
        (seed.name == record.name, record.identities.iter().any(|it| is_own(&it)))
    };
    for record in people {
        let Some(at) = claimant(seeds, record) else { continue };
        let seed = &seeds[at];
        if records[at].is_none_or(|other| fits(seed, record) > fits(seed, other)) {
            records[at] = Some(record);
        }
    }
    records.into_iter().map(Option::<&PersonRecord>::cloned).collect()
}

/// Which of the configuration's people a record is of. A name alone proves nothing: a stranger may have been let in under any.
fn claimant(seeds: &[SeedPerson], record: &PersonRecord) -> Option<usize> {
    let those = |is_meant: &dyn Fn(&SeedPerson) -> bool| -> Vec<usize> {
        (0..seeds.len()).filter(|at| is_meant(&seeds[*at])).collect()
    };
    let has = |seed: &SeedPerson, known: &KnownIdentity| seed.identities.contains(&known.identity);
    let own: Vec<_> = record.identities.iter().filter(|known| !record.has_linked(known)).collect();
    let mut claims = those(&|seed| own.iter().any(|known| has(seed, known)));
    if claims.is_empty() {
        let all = &record.identities;
        let is_namesake = |seed: &SeedPerson| seed.name == record.name && all.iter().any(|known| has(seed, known));
        claims = those(&|seed| is_namesake(seed) || all.iter().all(|known| has(seed, known)));
    }
    let namesake = claims.iter().copied().find(|at| seeds[*at].name == record.name);
    // Of several with other names, nobody knows whose sessions these are.
    namesake.or_else(|| claims.first().copied().filter(|_| claims.len() == 1))
}

impl PersonRecord {
    /// Whether the person added an identity from another of their identities, with `/link`.
    fn has_linked(&self, known: &KnownIdentity) -> bool {
        let is_by = |from: &KnownIdentity| known.added_by.ends_with(&format!(" ({})", from.identity));
        self.identities.iter().any(is_by)
    }
}

impl KnownIdentity {
    /// Whether the configuration names it: the next start adds it again.
    pub(crate) fn is_configured(&self) -> bool {
        self.added_by == CONFIGURATION
    }
}

impl SeedPerson {
    /// Whether both name the same person, in the same role and with the same identities.
    fn is_same_person(&self, other: &Self) -> bool {
        (&self.name, self.role, &self.identities) == (&other.name, other.role, &other.identities)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::model::{ChannelId, PersonRole};

    /// The same as the function, and changes `people` as a store does.
    fn planted(
        seeds: &[SeedPerson],
        before: &[SeedPerson],
        people: &mut Vec<PersonRecord>,
        now: Timestamp,
    ) -> Vec<PeopleChange> {
        let changes = super::planted(seeds, before, people, now);
        for change in &changes {
            let PeopleChange::PersonSaved(new) = change else { panic!("{change:?}") };
            for person in people.iter_mut() {
                person.identities.retain(|one| new.identity(&one.identity).is_none());
            }
            people.retain(|person| !person.identities.is_empty() || person.id == new.id);
            match people.iter_mut().find(|person| person.id == new.id) {
                Some(person) => {
                    (person.name, person.role) = (new.name.clone(), new.role);
                    person.identities.extend(new.identities.iter().cloned());
                }
                None => people.push(new.clone()),
            }
        }
        changes
    }

    fn identity(id: &str) -> Identity {
        Identity { channel: ChannelId::new("test", "main"), id: id.to_owned() }
    }

    fn seed(name: &str, role: PersonRole, ids: &[&str]) -> SeedPerson {
        SeedPerson {
            name: name.to_owned(),
            role,
            identities: ids.iter().map(|id| identity(id)).collect(),
            home: None,
            language: None,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// Who is known: the name, the role, and the ids.
    fn told(people: &[PersonRecord]) -> Vec<(&str, PersonRole, Vec<&str>)> {
        people
            .iter()
            .map(|it| (&*it.name, it.role, it.identities.iter().map(|one| &*one.identity.id).collect()))
            .collect()
    }

    #[test]
    fn the_configurations_people_are_added_once() {
        let (mut people, seeds) = (Vec::new(), [seed("ada", PersonRole::Owner, &["1", "2"])]);

        assert_eq!(planted(&seeds, &[], &mut people, at(1)).len(), 1);
        assert_eq!(told(&people), [("ada", PersonRole::Owner, vec!["1", "2"])]);
        assert!(planted(&seeds, &[], &mut people, at(2)).is_empty());
    }

    /// Nobody becomes an owner because somebody else who shared their entry is one.
    #[test]
    fn an_entry_that_is_split_makes_two_people() {
        let mut people = Vec::new();
        planted(&[seed("ada", PersonRole::Member, &["1", "2"])], &[], &mut people, at(1));
        let ada = people[0].id;

        let split = [seed("ada", PersonRole::Member, &["1"]), seed("bob", PersonRole::Owner, &["2"])];
        planted(&split, &[], &mut people, at(2));

        let mut found = told(&people);
        found.sort_by_key(|(name, ..)| *name);
        assert_eq!(found, [("ada", PersonRole::Member, vec!["1"]), ("bob", PersonRole::Owner, vec!["2"])]);
        assert!(planted(&split, &[], &mut people, at(3)).is_empty(), "it stays so");
        let ids: Vec<_> = people.iter().map(|it| (&*it.name, it.id == ada)).collect();
        assert!(ids.contains(&("ada", true)) && ids.contains(&("bob", false)), "{ids:?}");
    }

    /// A record of `identities`, each with who added it.
    fn record(name: &str, identities: &[(&str, &str)]) -> PersonRecord {
        let known = |(id, by): &(&str, &str)| KnownIdentity {
            identity: identity(id),
            added_at: at(1),
            added_by: (*by).to_owned(),
        };
        PersonRecord {
            id: PersonId::new(at(1)),
            name: name.to_owned(),
            role: PersonRole::Member,
            created_at: at(1),
            identities: identities.iter().map(known).collect(),
        }
    }

    /// The person of a record sees its private sessions.
    #[test]
    fn a_linked_account_that_becomes_a_person_of_its_own_takes_nothing_along() {
        let mem = record("mem", &[("8", CONFIGURATION), ("90", "mem (test.main/8)")]);
        let (mut people, id) = (vec![mem.clone()], mem.id);
        let seeds = [seed("mem", PersonRole::Member, &["8"]), seed("zulu", PersonRole::Guest, &["90"])];

        planted(&seeds, &[], &mut people, at(2));

        let found: Vec<_> = people.iter().map(|it| (&*it.name, it.id == id)).collect();
        assert_eq!(found, [("mem", true), ("zulu", false)]);
    }

    #[test]
    fn an_entry_that_did_not_change_lets_nobody_in_again() {
        let seeds = [seed("boss", PersonRole::Owner, &["7"])];

        assert!(planted(&seeds, &seeds, &mut Vec::new(), at(2)).is_empty());
        let changed = [seed("boss", PersonRole::Owner, &["7", "8"])];
        assert_eq!(planted(&changed, &seeds, &mut Vec::new(), at(2)).len(), 1);
    }

    const NAMES: [&str; 4] = ["ada", "bob", "eve", "mem"];

    /// People with identities from 0 to 7, of which nobody shares any: each has a name, and says of how many.
    fn shares() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
        let owners = vec(0..5_usize, 8);
        (owners, vec(select(&NAMES), 5)).prop_map(|(owners, names)| {
            let of = |person: usize| (0..8_u8).filter(|id| owners[usize::from(*id)] == person).collect();
            // The fifth is nobody: these ids are not named.
            (0..4).map(|person| (names[person], of(person))).filter(|(_, ids): &(_, Vec<u8>)| !ids.is_empty()).collect()
        })
    }

    proptest! {
        /// The person of a record sees its private sessions.
        #[test]
        fn a_record_never_goes_to_an_entry_that_has_nothing_of_its_person(
            stored in shares(), configured in shares(), origins in vec(0..3_u8, 8), unchanged in vec(any::<bool>(), 4),
        ) {
            let mut people: Vec<_> = stored.iter().map(|(name, ids)| {
                let by = |id: &u8| match origins[usize::from(*id)] {
                    0 => CONFIGURATION.to_owned(),
                    1 => "admin".to_owned(),
                    _ => format!("{name} (test.main/{})", ids[0]),
                };
                let identities: Vec<_> = ids.iter().map(|id| (id.to_string(), by(id))).collect();
                let identities: Vec<_> = identities.iter().map(|(id, by)| (&**id, &**by)).collect();
                record(name, &identities)
            }).collect();
            let mut names = BTreeMap::new();
            let seeds: Vec<_> = configured.iter().map(|(name, ids)| {
                // Names of entries are keys of a table.
                let number = names.entry(*name).and_modify(|number| *number += 1).or_insert(1);
                let name = if *number == 1 { (*name).to_owned() } else { format!("{name}{number}") };
                let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
                seed(&name, PersonRole::Guest, &ids.iter().map(String::as_str).collect::<Vec<_>>())
            }).collect();
            let before: Vec<_> = seeds.iter().zip(unchanged).filter(|(_, is)| *is).map(|(seed, _)| seed.clone()).collect();
            let were = people.clone();

            planted(&seeds, &before, &mut people, at(2));

            for seed in seeds.iter().filter(|seed| !before.contains(seed)) {
                let now = people.iter().find(|it| it.identity(&seed.identities[0]).is_some()).expect("is known");
                prop_assert_eq!((&now.name, now.role), (&seed.name, seed.role));
                prop_assert!(seed.identities.iter().all(|identity| now.identity(identity).is_some()));
                let is_kept = |was: &&PersonRecord| {
                    let own = was.identities.iter().filter(|it| !was.has_linked(it));
                    was.name == seed.name && own.clone().any(|it| seed.identities.contains(&it.identity))
                };
                let kept: Vec<_> = were.iter().filter(is_kept).map(|it| it.id).collect();
                prop_assert!(kept.is_empty() || kept.contains(&now.id), "{seed:?} lost its record");
                let Some(was) = were.iter().find(|it| it.id == now.id) else { continue };
                let shared: Vec<_> = was.identities.iter().filter(|it| seed.identities.contains(&it.identity)).collect();
                prop_assert!(!shared.is_empty(), "{was:?} became {seed:?}");
                let is_theirs = was.name == seed.name
                    || shared.len() == was.identities.len()
                    || shared.iter().any(|it| !was.has_linked(it));
                prop_assert!(is_theirs, "{was:?} became {seed:?}");
            }
            prop_assert!(planted(&seeds, &before, &mut people, at(3)).is_empty(), "it stays so");
        }
    }

    /// A stranger chooses their name.
    #[test]
    fn a_name_alone_makes_nobody_an_owner() {
        let mut people = Vec::new();
        planted(&[seed("ada", PersonRole::Member, &["stranger"])], &[], &mut people, at(1));

        planted(&[seed("ada", PersonRole::Owner, &["1"])], &[], &mut people, at(2));

        assert_eq!(
            told(&people),
            [("ada", PersonRole::Member, vec!["stranger"]), ("ada", PersonRole::Owner, vec!["1"])]
        );
    }
}
