//! The approvers, and the rules that decide without one.

use rejoinder_guard::ApprovalRequest;

use crate::model::{
    agent::AgentName,
    event::InboundEvent,
    people::{Identity, KnownPeople, PersonRole},
    routing::Condition,
};

/// The approvers and the rules.
#[derive(Clone, Debug, Default)]
pub struct ApprovalSettings {
    pub owners: bool,
    /// The other people who may, each by one of their identities.
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
    /// The people who wrote the turn, each by one of their identities; none for everybody.
    pub people: Vec<Identity>,
    /// What else must hold for the event of the turn.
    pub conditions: Vec<Condition>,
    pub approves: bool,
}

impl ApprovalSettings {
    pub(crate) fn may_decide(&self, role: PersonRole, identities: &[Identity]) -> bool {
        self.owners && role == PersonRole::Owner || identities.iter().any(|known| self.people.contains(known))
    }

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
            && (self.people.is_empty() || self.is_theirs(event, known))
            && (!self.approves || !self.conditions.iter().any(is_of_person) || event.sender.kind.is_person())
            && self.conditions.iter().all(|condition| condition.holds(event, known))
    }

    /// Whether the rule applies to the writer of an event. A rule that approves applies to no mere key holder of a
    /// conversation.
    fn is_theirs(&self, event: &InboundEvent, known: &KnownPeople) -> bool {
        if self.approves && !event.sender.kind.is_person() {
            return false;
        }
        let person = known.person(&event.conversation.channel, event.person());
        let identities = person.map_or(&[][..], |person| known.identities(person));
        identities.iter().any(|one| self.people.contains(one))
    }
}

/// Whether a condition is about the writer.
const fn is_of_person(condition: &Condition) -> bool {
    matches!(condition, Condition::Role(_) | Condition::Person(_))
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;
    use crate::model::{
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Sender, SenderKind},
        ids::PersonId,
        people::{KnownIdentity, PersonRecord},
    };

    fn request(kind: Option<&str>) -> ApprovalRequest {
        ApprovalRequest { kind: kind.map(str::to_owned), ..ApprovalRequest::action("pay") }
    }

    fn event() -> InboundEvent {
        let sender = Sender { id: "ada".to_owned(), name: None, username: None, kind: SenderKind::Person };
        let address = ConversationRef::new(ChannelId::new("test", "main"), "ada");
        InboundEvent::new(address, ChatKind::Direct, "1".to_owned(), sender, Timestamp::from_millis(0))
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

    /// N2. The key holder of a linked conversation may be somebody else.
    #[test]
    fn what_approves_for_a_person_is_not_for_a_key_holder() {
        let at = Timestamp::from_millis(0);
        let identity = Identity { channel: ChannelId::new("test", "main"), id: "ada".to_owned() };
        let known = KnownIdentity { identity: identity.clone(), added_at: at, added_by: "ada".to_owned() };
        let (id, name, role) = (PersonId::new(at), "ada".to_owned(), PersonRole::Owner);
        let known = KnownPeople::of(&[PersonRecord { id, name, role, created_at: at, identities: vec![known] }]);
        let event = |kind| InboundEvent { sender: Sender { kind, ..event().sender }, ..event() };
        let decided = |approves, kind| {
            let rules = vec![ApprovalRule { people: vec![identity.clone()], ..rule(None, approves) }];
            let settings = ApprovalSettings { rules, ..ApprovalSettings::default() };
            settings.decide(&request(None), "main", &event(kind), &known)
        };

        assert_eq!(decided(true, SenderKind::Person), Some((1, true)));
        assert_eq!(decided(true, SenderKind::KeyHolder), None);
        assert_eq!(decided(false, SenderKind::KeyHolder), Some((1, false)));
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
