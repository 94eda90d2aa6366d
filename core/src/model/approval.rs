//! Approvals: what agents want to do, and what was decided about it.

use rejoinder_guard::{ApprovalRequest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::{
    agent::AgentName,
    conversation::ChannelId,
    event::InboundEvent,
    ids::{ApprovalId, PersonId, TurnId},
    people::{Identity, KnownPeople, PersonRole},
    routing::Condition,
};

/// What became of an approval that an agent asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided it yet.
    Waiting,
    /// The answer was yes.
    Approved,
    /// The answer was no.
    Declined,
    /// Nobody decided it in time.
    Expired,
    /// The turn was cancelled, or ended in another way.
    Dropped,
}

impl ApprovalState {
    /// The name in records and interfaces.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Expired => "expired",
            Self::Dropped => "dropped",
        }
    }

    pub(crate) const fn of_decision(approves: bool) -> Self {
        if approves { Self::Approved } else { Self::Declined }
    }
}

/// An approval that an agent asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The turn that waits for it.
    pub turn: TurnId,
    /// The channel of the turn.
    pub channel: ChannelId,
    /// The agent that asks.
    pub agent: AgentName,
    /// For whom: the name of who wrote the turn, or their id.
    pub person: String,
    /// What it wants to do.
    pub request: ApprovalRequest,
    /// When it asked.
    pub asked_at: Timestamp,
    /// Until when it can be decided; `None` if a rule has decided it.
    pub expires_at: Option<Timestamp>,
    /// What became of it.
    pub state: ApprovalState,
    /// When it was decided, or closed.
    pub decided_at: Option<Timestamp>,
    /// Who decided: the name of a person or a token, or the rule.
    pub decided_by: Option<String>,
    /// What they say to the agent about it.
    pub note: Option<String>,
    /// Who was told of it, to decide it.
    pub told: Vec<PersonId>,
}

impl Approval {
    /// Whether it can be decided.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.state == ApprovalState::Waiting && self.expires_at.is_none_or(|at| at > now)
    }
}

/// A change of what is stored of approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalChange {
    /// An agent asks for it, or has asked, and a rule has decided.
    Asked(Approval),
    /// Somebody decided one that waits.
    Decided {
        /// Which.
        id: ApprovalId,
        /// What they decided.
        state: ApprovalState,
        /// When.
        at: Timestamp,
        /// Who.
        by: String,
        /// What they say about it.
        note: Option<String>,
    },
    /// The one that a turn waits for is closed: nobody decided it in time, or it is not waited for any more.
    Closed {
        /// The turn.
        turn: TurnId,
        /// `Expired` or `Dropped`.
        state: ApprovalState,
        /// When.
        at: Timestamp,
    },
}

/// Which approvals are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalFilter {
    /// The one with this id.
    Is(ApprovalId),
    /// Those of a turn, in the order in which its agent asked.
    Of(TurnId),
    /// Those that wait, oldest first.
    Waiting,
    /// All, newest first.
    Latest,
}

/// Who may decide, and what is decided by rules.
#[derive(Clone, Debug, Default)]
pub struct ApprovalSettings {
    /// Whether owners may decide.
    pub owners: bool,
    /// Who else may: whoever is known by one of these.
    pub people: Vec<Identity>,
    /// The first that fits decides.
    pub rules: Vec<ApprovalRule>,
}

/// A rule that decides without asking anybody. It fits if all that it names does.
#[derive(Clone, Debug)]
pub struct ApprovalRule {
    /// The kind of action; with `*` at its end, every kind that begins so.
    pub kind: Option<String>,
    /// The agents that ask; none for all.
    pub agents: Vec<AgentName>,
    /// Who wrote the turn: whoever is known by one of these; none for everybody.
    pub people: Vec<Identity>,
    /// What else must hold for the event of the turn.
    pub conditions: Vec<Condition>,
    /// The decision.
    pub approves: bool,
}

impl ApprovalSettings {
    /// Whether a person with this role, and known by these, may decide.
    pub(crate) fn may_decide(&self, role: PersonRole, identities: &[Identity]) -> bool {
        self.owners && role == PersonRole::Owner || identities.iter().any(|known| self.people.contains(known))
    }

    /// Whether the person who is known by an identity may decide.
    pub(crate) fn is_approver(&self, identity: &Identity, known: &KnownPeople) -> bool {
        let role = known.get(&identity.channel, &identity.id).map(|(role, _)| role);
        let person = known.person(&identity.channel, &identity.id);
        role.zip(person).is_some_and(|(role, person)| self.may_decide(role, known.identities(person)))
    }

    /// The first rule that decides a request, counted from 1, and its decision.
    pub(crate) fn decide(
        &self,
        request: &ApprovalRequest,
        agent: &str,
        event: &InboundEvent,
        known: &KnownPeople,
    ) -> Option<(usize, bool)> {
        let index = self.rules.iter().position(|rule| rule.fits(request, agent, event, known))?;
        Some((index + 1, self.rules[index].approves))
    }
}

impl ApprovalRule {
    fn fits(&self, request: &ApprovalRequest, agent: &str, event: &InboundEvent, known: &KnownPeople) -> bool {
        let is_kind = |kind: &String| {
            let asked = request.kind.as_deref().unwrap_or_default();
            kind.strip_suffix('*').map_or(asked == kind, |begins| !asked.is_empty() && asked.starts_with(begins))
        };
        self.kind.as_ref().is_none_or(is_kind)
            && (self.agents.is_empty() || self.agents.iter().any(|one| **one == *agent))
            && (self.people.is_empty() || self.is_theirs(&event.identity(), known))
            && self.conditions.iter().all(|condition| condition.holds(event, known))
    }

    fn is_theirs(&self, identity: &Identity, known: &KnownPeople) -> bool {
        let person = known.person(&identity.channel, &identity.id);
        let identities = person.map_or(&[][..], |person| known.identities(person));
        identities.iter().any(|one| self.people.contains(one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        conversation::{ChatKind, ConversationRef},
        event::{Sender, SenderKind},
    };

    fn request(kind: Option<&str>) -> ApprovalRequest {
        ApprovalRequest { action: "pay".to_owned(), details: None, kind: kind.map(str::to_owned) }
    }

    fn event() -> InboundEvent {
        let sender = Sender { id: "ada".to_owned(), name: None, username: None, kind: SenderKind::Person };
        let place = ConversationRef::new(ChannelId::new("test", "main"), "ada");
        InboundEvent::new(place, ChatKind::Direct, "1".to_owned(), sender, Timestamp::from_millis(0))
    }

    fn rule(kind: Option<&str>, approves: bool) -> ApprovalRule {
        let kind = kind.map(str::to_owned);
        ApprovalRule { kind, agents: Vec::new(), people: Vec::new(), conditions: Vec::new(), approves }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = vec![rule(Some("mail.read"), true), rule(Some("mail.*"), false), rule(None, true)];
        let settings = ApprovalSettings { rules, ..ApprovalSettings::default() };
        let decided =
            |kind| settings.decide(&request(kind), "main", &event(), &KnownPeople::default()).expect("one fits");

        assert_eq!(decided(Some("mail.read")), (1, true));
        assert_eq!(decided(Some("mail.send")), (2, false));
        assert_eq!(decided(Some("mailing")), (3, true));
        assert_eq!(decided(None), (3, true));
    }

    /// A rule about a kind says nothing of a request that names none.
    #[test]
    fn a_request_without_a_kind_is_of_no_kind() {
        let all = ApprovalSettings { rules: vec![rule(Some("*"), true)], ..ApprovalSettings::default() };

        assert_eq!(all.decide(&request(None), "main", &event(), &KnownPeople::default()), None);
        assert_eq!(all.decide(&request(Some("x")), "main", &event(), &KnownPeople::default()), Some((1, true)));
    }

    /// N2.
    #[test]
    fn a_rule_for_a_person_or_an_agent_is_for_nobody_else() {
        let ada = Identity { channel: ChannelId::new("test", "main"), id: "ada".to_owned() };
        let of_ada = ApprovalRule { people: vec![ada], ..rule(None, true) };
        let of_boss = ApprovalRule { agents: vec!["boss".into()], ..rule(None, true) };
        let settings = ApprovalSettings { rules: vec![of_ada, of_boss], ..ApprovalSettings::default() };

        assert_eq!(settings.decide(&request(None), "main", &event(), &KnownPeople::default()), None);
        assert_eq!(settings.decide(&request(None), "boss", &event(), &KnownPeople::default()), Some((2, true)));
    }
}
