//! The core of Rejoinder: types, ports, and the path of a turn.
//!
//! ```text
//! adapter ─► intake ─► scheduler ─► worker ─► agent
//!                                     │
//! adapter ◄─ dispatcher ◄─ ledger ◄─ guard
//! ```
//!
//! This crate knows no platform, no SQL and no HTTP client. Platforms are reached through
//! [`ChannelAdapter`], agents through [`AgentRuntime`], rows through [`Store`], and time through
//! [`Clock`]. What a person sees is decided only in `rejoinder-guard` and stored only by the `ledger` module.
//!
//! To add a platform or an agent runtime: implement its port in a crate under `adapters/`, run the suite
//! in `conformance` (feature `testing`) on it, and describe it to the gateway
//! (`gateway/src/platforms.rs`, `gateway/src/agents.rs`).

#![warn(missing_docs)]

mod base;
mod commands;
#[cfg(feature = "testing")]
pub mod conformance;
mod conversations;
mod engine;
mod events;
pub mod explain;
mod handles;
mod hearing;
mod initiative;
mod intake;
mod ledger;
mod merges;
mod model;
mod nodes;
mod notices;
mod operations;
mod operator;
mod outbox;
mod people;
mod ports;
mod questions;
mod router;
mod scheduler;
mod schedules;
mod shown;
mod telling;
mod upkeep;
mod worker;

/// The port to the store, and the rows that it writes and reads.
pub mod store {
    /// Rules that a store applies, in its transactions, to rows that it has read. Pure: what they return is written.
    pub mod rules {
        pub use crate::{
            conversations::{
                inheritance::{LeftSession, disown, hand_over},
                session_of_turn::{CurrentSession, SessionOfTurn, session_of_turn},
                succession::{MovedConversation, successors},
            },
            intake::amends::{Amendment, Changes, EarlierTurn, amendment},
            nodes::grants::{Share, grant},
            questions::first_pick::{
                ExpiringQuestion, Expiry, PickResult, PickedQuestion, QuestionState, expiry, pick,
            },
            scheduler::waiting_order::{AMBIENT_LAG, PERSON_STEP, may_change_first, position, rank},
        };
    }

    pub use crate::{
        model::{
            agent_session::{AgentNotice, AgentSession, AgentSessionChange, SessionNotice, SessionNoticeChange},
            approval::{Approval, ApprovalChange, ApprovalFilter, ApprovalState},
            line::{
                ErrorFilter, ErrorMark, ErrorRecord, LineId, LineLevel, LogLine, LogLineFilter, LogLineRecord,
                STORED_LINES,
            },
            log::{AuditEntry, LogEntry, LogEvent, LogFilter, LogSeq, NewLogEntry, Subject},
            people::{DirectChat, Guess, KnownIdentity, Pairing, PairingState, PeopleChange, PersonRecord},
            push::PushSubscription,
            question::{AskedQuestion, QuestionFilter, QuestionRecord},
            run::RunContent,
            schedule::{Schedule, ScheduleChange, ScheduleOrigin, ScheduleRun, ScheduleState},
            search::{SearchQuery, SearchTerm, folded_words, is_word_alone},
            session::{AnsweredTurn, SessionChange, SessionChoice, SessionRecord, SessionUse},
            stored_delivery::{DeliveryRecord, DeliveryState, Label},
            stored_file::{NewFile, TurnFile},
            tokens::{LinkRecord, Role, SignInChange, SignInRecord, TokenChange, TokenRecord},
            turn::{EventSeq, Handler, TurnRecord, TurnSeq, Version},
            view::{FallbackView, Shown, TurnStatus, TurnView},
            visitors::{Invitation, Passkey, ThreadSummary, Visit, VisitorChange},
        },
        ports::store::{
            Store,
            accept::{
                Beside, CursorMove, EarlierMessage, InboxStore, NewEvent, NewTurn, Repeated, Stored, TransitionOf,
            },
            agent_sessions::AgentSessionStore,
            agreements::{AgreementStore, AnswerUnderWay, Configuration},
            channels::ChannelStore,
            day_use::DayUse,
            error::StoreError,
            files::FileStore,
            hints::{Hint, HintStore, RunText},
            housekeeping::{Cutoffs, ExpiredRows, HousekeepingStore, Removal, StoreStats},
            keyring::{KeyChanges, KeyName, KeyRange, KeyringStore, KeyringUse},
            list::{
                AgentFigures, AgentSessionFilter, AgentSessionSummary, AuditFilter, AuditRecord, ConversationFilter,
                ConversationSummary, DeadLetter, DeadLetterFilter, DeliveryFilter, DeliveryListState, FoundLine,
                ListedDelivery, OperatorStore, Origin, SearchFilter, SessionSummary, TokenStore, TurnFilter,
                TurnListState, TurnSummary,
            },
            log::{LineStore, LogStore, SearchStore},
            nodes::{
                Fence, Granted, Lease, LeaseName, LostNode, NodeReport, NodeStore, NodeSummary, Pulse, WantedPermits,
            },
            outbox::OutboxStore,
            people::PeopleStore,
            pushes::{PushStore, SUBSCRIPTIONS_KEPT},
            questions::QuestionStore,
            record::{
                AbsentChannel, AttemptRecord, Backlog, BlockedScope, DeadTurn, Dossier, KnownConversation, LeftRun,
                NextDeliveries, OverdueTurn, ParkedDelivery, Pause, Remark, RunRecord, SentText, Stuck, WaitingTurn,
            },
            schedules::ScheduleStore,
            sessions::SessionStore,
            state::StoreState,
            transition::{
                AgentUse, AttemptEnd, AttemptStart, BoundedRemark, ClosedQuestion, Commit, DeliveryChange,
                IdempotentAnswer, LineChange, NewDelivery, Noun, Operation, RunEnd, RunHolder, RunStart, Seen,
                TranscriptLine, Transition, Transitions, TurnChange, Withdrawal,
            },
            turns::{DeadlineStore, QueueStore, TurnStore, ViewStore},
            visitors::VisitorStore,
        },
    };
}

#[cfg(feature = "crash-points")]
pub use base::crash::crash_point_is_reached;
pub use base::json::json_error;
pub use base::pauses::Backoff;
pub use commands::is_command;
pub use conversations::loops::{LoopKind, OpenLoop, open_loops};
pub use engine::{Engine, Parts, planting::Replanted};
pub use initiative::{Initiative, NewMessage, schedules::Schedules};
pub use model::{
    access::{Access, AllowList, DirectPolicy, GroupPolicy},
    agent::{
        AgentApproval, AgentFile, AgentMessage, AgentName, AgentPast, AgentPerson, AgentPlace, AgentQuote, AgentRights,
        AgentTurn, BudgetLeft, DeferralLimits, Deferred, Handoff, HistoryLine, LastAnswer, LineState, PersonAnswer,
        Reaction, Speaker, Surface, ToolAccess, ToolTokens, TriedRun,
    },
    agent_session::{SessionNotice, SessionNoticeChange},
    approval::{ApprovalDecision, ApprovalState},
    approvers::{ApprovalRule, ApprovalSettings},
    brief::{Brief, EarlierLine},
    capabilities::{Capabilities, Rate, Receipts, Resend, Support, TextLimit, TextUnit},
    command::{ArgumentHelp, CommandAnswer, CommandHelp, OwnCommand},
    conversation::{ChannelId, ChatKind, ConversationRef},
    conversation_trigger::ConversationTrigger,
    delivery::{Action, Class, Content, Delivery, DeliveryError, MAX_RETRY_AFTER, Receipt, Scope},
    down::{Down, Part},
    event::{Amends, Author, Directed, EventKind, InboundEvent, Quote, Sender, SenderKind},
    file_budget::{FileBudget, FileLimits, FileShare, NoRoom},
    file_bytes::FileBytes,
    file_links::FileLinks,
    finding::{PersonFilter, folded, meant},
    ids::{ApprovalId, ConversationId, DeliveryId, EventId, NodeId, PersonId, ScheduleId, SessionId, TurnId},
    language::Language,
    masker::Masker,
    name::is_hidden,
    nul::without_nul,
    people::{Identity, KnownAs, KnownPeople, PersonRole, SeedPerson},
    queue::{Backlog, NotAQueueMode, Overflow, QueueMode, Queues},
    routing::{Condition, Hours, PolicyChange, Rule, day_name},
    run::{
        Activity, ActivityState, Cost, Currency, ModelInput, NotACost, NotACurrency, Price, ToolUse, Usage, Used,
        WorkStep,
    },
    schedule::{
        Missed, NewSchedule, NotASchedule, ScheduleCall, ScheduleLimits, ScheduleSettings, ScheduledAction, When,
        read_time, zone,
    },
    session::{NewInGroups, SessionReset, SessionSettings},
    settings::{Budget, Lifetimes, PersonLimits, Policies, Question, Settings, SpecialLimits, Templates},
    stored_file::{FileDigest, StoredFile, data_url, file_size, stored_url},
    target::{Addressees, BegunTurn, NotATarget, NotReached, Reached, Target},
    trace::{CallerTrace, Span, TraceHeaders, TurnTrace},
    turn::Handler,
    unread::Unread,
    view::{FallbackView, Shown, TurnStatus, TurnView, agent_of},
    voice::{Heard, NotAVoiceMode, SpeechOfToday, SpeechUse, Unheard, Voice, VoiceMode},
    words::{NotAPlaceForWords, PromptSession, Words, WordsTo},
};
pub use operations::{
    Farewell, Operations,
    administration::Administration,
    forget::{Erasure, Forgotten},
    people::NewPerson,
    visitors::NewInvitation,
};
pub use operator::{
    actor::{Actor, Answer, Done},
    error::OperationError,
};
pub use outbox::health::Outbound;
pub use people::People;
pub use ports::hub::Watch;
pub use ports::{
    agent::{AgentError, AgentRuntime, MemberHealth, MemberReport, RunEvent, RunEvents, SendResult},
    channel::{ChannelAdapter, ChannelError, ChannelHealth, FetchError},
    clock::{Clock, SharedClock, StoreClock, SystemClock},
    handed_out::HandedOut,
    intake::{Accepted, Intake, IntakeError, News, NewsError, Task},
    keyring::{Keyring, OpenKeyring},
    reader::TextReader,
    refusals::{Refusal, Refusals},
    speech::{Sound, SoundFormat, Speech, SpeechError, Synthesizer, Transcriber, Transcript},
    store::{Store, accept::EarlierMessage, error::StoreError},
    visitors::Visitors,
};
pub use questions::request::{FOR_EVER, as_stored, is_shortened, shown_option};
pub use schedules::Calendar;
pub use shown::{
    in_words::in_words,
    markdown::{
        EmbeddedFiles, read_markdown, read_markdown_with_notes, row_cells, shows_anything, split_markdown, spoken,
    },
};

pub use base::words::{age, excerpt};
pub use router::explain::{ExplainedRule, RouteAccess, RouteExplanation, RuleVerdict};
pub use worker::{agents::AgentHealth, budgets::UsedBudget, holder::StoredRuns, runtimes::Runtimes};

pub use rejoinder_guard::{
    ApprovalOption, ApprovalRequest, Attachment, CancelledBy, Cause, Choices, End, Expectation, Ladder, LateAnswer,
    Obligation, ObligationState, OnUnknown, Outcome, Policy, Reply, Rung, SEALED, Settlement, Shim, SignalKind,
    Timestamp, Via, is_blank,
};
