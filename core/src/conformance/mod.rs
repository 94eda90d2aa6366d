//! Checks for implementations of the ports, run by the implementation's own crate, and doubles for tests.
//!
//! Behind the feature `testing`: nothing here is part of the running gateway. To add a port, add a module here.

pub mod channel;
pub mod clock;
pub mod growth;
pub mod leases;
pub mod markdown;
pub mod rejecting;
pub mod runtime;
pub mod scripted;
pub mod store;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use jiff::tz::TimeZone;
use rejoinder_guard::{SignalKind, Timestamp, Via};

pub use crate::ports::store::layered;
use crate::{
    engine::Parts,
    model::{
        agent::AgentName,
        approvers::ApprovalSettings,
        conversation::ConversationRef,
        delivery::{Action, Class, Content},
        file_budget::FileLimits,
        file_links::FileLinks,
        ids::{ConversationId, DeliveryId, NodeId, TurnId},
        masker::Masker,
        queue::Queues,
        schedule::ScheduleSettings,
        session::SessionSettings,
        settings::{Lifetimes, PersonLimits, Policies, Settings, SpecialLimits, Templates},
        stored_delivery::{DeliveryRecord, DeliveryState},
    },
    ports::{
        channel::ChannelAdapter,
        clock::{Clock as _, SystemClock},
        speech::Speech,
        store::{Store, transition::NewDelivery},
    },
};

/// The parts of a gateway that has channels but no agents, for checks of inbound events.
#[must_use]
pub fn parts_without_agents(store: Arc<dyn Store>, channels: Vec<Arc<dyn ChannelAdapter>>) -> Parts {
    let settings = Settings {
        default_agent: AgentName::from("nobody"),
        channel_agents: HashMap::new(),
        rules: Vec::new(),
        access: HashMap::new(),
        reaction_channels: HashSet::new(),
        max_attachment: 1 << 20,
        files: FileLimits::default(),
        policies: Policies::default(),
        templates: Templates::default(),
        max_concurrent_turns: 1,
        agent_turns: HashMap::new(),
        prices: BTreeMap::new(),
        budgets: BTreeMap::new(),
        masker: Masker::default(),
        commands: BTreeMap::new(),
        people: Vec::new(),
        elsewhere: true,
        notify_owners: true,
        approvals: ApprovalSettings::default(),
        queues: Queues::default(),
        voices: HashMap::new(),
        sessions: SessionSettings::default(),
        schedules: ScheduleSettings::default(),
        agent_schedules: HashMap::new(),
        shown_activities: HashSet::new(),
        triggers: Vec::new(),
        quiet_hours: BTreeMap::new(),
        time_zone: TimeZone::UTC,
        limits: PersonLimits::default(),
        special_limits: SpecialLimits::default(),
        delivery_lifetime: Duration::from_hours(1),
        min_attempts: 1,
        max_parts: 8,
        lifetimes: Lifetimes::default(),
        is_traced: false,
    };
    Parts {
        store,
        clock: Arc::new(SystemClock),
        channels,
        agents: Arc::default(),
        speech: Speech::default(),
        reader: None,
        settings,
        file_links: FileLinks::new("a secret of tests", Duration::from_hours(1)),
        node: NodeId::new(SystemClock.now()),
        node_name: String::new(),
        version: String::new(),
        configuration: None,
    }
}

/// A pending delivery that answers a turn with `text`: the first claim, in one part. To build others on.
#[must_use]
pub fn answer(
    turn: TurnId,
    conversation_id: ConversationId,
    conversation: ConversationRef,
    text: &str,
    at: Timestamp,
) -> DeliveryRecord {
    DeliveryRecord {
        id: DeliveryId::new(at),
        turn,
        claim: 1,
        part: 1,
        parts: 1,
        conversation_id,
        conversation,
        class: Class::Final,
        signal: SignalKind::Reply,
        via: Via::Answer,
        is_copy: false,
        action: Action::Send { content: Content { text: text.to_owned(), ..Content::default() }, reply_to: None },
        state: DeliveryState::Pending,
        attempts: 0,
        next_attempt_at: at,
        label: None,
        parked: false,
        copies: 0,
        resend_from: None,
        message_ids: Vec::new(),
        error: None,
        created_at: at,
        retried_at: None,
        delivered_at: None,
        fetched_at: None,
    }
}

/// Makes a delivery that a store can insert, without a decision of the guard. For checks of stores.
#[must_use]
pub const fn new_delivery(record: DeliveryRecord) -> NewDelivery {
    NewDelivery::new(record)
}
