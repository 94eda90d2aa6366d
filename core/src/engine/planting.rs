//! Stores the people and schedules of a configuration.

use std::sync::Arc;

use crate::{
    base::conflicts::decide_anew,
    model::{KnownAs, SeedPerson, Settings},
    people::People,
    ports::{AgreementStore, Configuration, StoreError, Transition},
    schedules::Calendar,
};

/// What a configuration that was read again has changed beside its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replanted {
    /// Who was let in.
    pub let_in: Vec<KnownAs>,
    /// Who stays known, although the configuration before named them and this one does not.
    pub still_known: Vec<KnownAs>,
    /// The schedules of operators and agents that gave way to a configured one of their name.
    pub replaced: Vec<String>,
}

/// Stores the people of a configuration that differ from those of `before`, and its schedules, in one transaction: a person who was revoked
/// since stays revoked. `None`, and nothing was changed, if another configuration has replaced it.
pub(super) async fn plant(
    people: &Arc<People>,
    calendar: &Calendar,
    agreements: &dyn AgreementStore,
    settings: &Settings,
    before: &[SeedPerson],
    configuration: Option<Configuration>,
) -> Result<Option<Replanted>, StoreError> {
    decide_anew!({
        let (seen_people, known, changes) = people.to_plant(&settings.people, before);
        let (seen_schedules, schedules, replaced) = calendar.to_plant(&settings.schedules.seeds);
        let transition = Transition { people: changes.clone(), schedules, configuration, ..Transition::default() };
        let is_stored = transition.is_empty() || {
            let transition = Transition { seen: vec![seen_people], ..transition };
            calendar.change(seen_schedules, transition).await?
        };
        if is_stored {
            people.take_over(seen_people, &changes).await;
            let (let_in, still_known) = people.planted(&settings.people, before, &known);
            Some(Some(Replanted { let_in, still_known, replaced }))
        } else {
            people.refresh(seen_people).await?;
            is_replaced(agreements, configuration).await?.then_some(None)
        }
    })
}

/// Whether the latest configuration is another one, which `own` does not follow.
async fn is_replaced(agreements: &dyn AgreementStore, own: Option<Configuration>) -> Result<bool, StoreError> {
    let Some(own) = own else { return Ok(false) };
    let latest = agreements.latest_configuration().await?;
    Ok(latest.is_some_and(|latest| latest != own && latest.revision >= own.revision))
}
