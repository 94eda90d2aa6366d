//! The spans of a turn, from what is stored about it. They name ids, states and figures, and nothing that anybody wrote.

use std::{borrow::Cow, str::FromStr, time::SystemTime};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use rejoinder_core::{
    DeliveryId, Handler, ObligationState, Settlement, Span, Timestamp, TurnTrace, Via,
    store::{AttemptRecord, Dossier, RunRecord},
};

/// The spans that are to be sent now; none if the caller's trace is not recorded.
pub(super) fn of_turn(dossier: &Dossier, added: &Added) -> Vec<SpanData> {
    let spans = Spans { dossier, trace: TurnTrace::new(dossier.turn.id, dossier.turn.event.trace.clone()) };
    if !spans.trace.is_sampled() {
        return Vec::new();
    }
    let mut all = Vec::new();
    if added.is_ended {
        all.extend([spans.turn(), spans.intake()]);
        all.extend(spans.wait());
        all.extend(dossier.runs.iter().map(|run| spans.run(run)));
    }
    let is_new = |attempt: &&AttemptRecord| added.attempts.contains(&(attempt.delivery, attempt.number.into()));
    all.extend(dossier.attempts.iter().filter(is_new).map(|attempt| spans.attempt(attempt)));
    all
}

struct Spans<'a> {
    dossier: &'a Dossier,
    trace: TurnTrace,
}

impl Spans<'_> {
    fn turn(&self) -> SpanData {
        let turn = &self.dossier.turn;
        let mut attributes = vec![
            KeyValue::new("rejoinder.turn.id", turn.id.to_string()),
            KeyValue::new("rejoinder.conversation.id", turn.conversation.to_string()),
            KeyValue::new("rejoinder.channel", turn.event.conversation.channel.to_string()),
            KeyValue::new("rejoinder.handler", turn.handler.to_string()),
            KeyValue::new("session.id", turn.session.to_string()),
        ];
        let (end, status) = match turn.obligation.state() {
            ObligationState::Settled(
                Settlement::Cancelled { .. } | Settlement::Signal { via: Via::GivenUp { .. }, .. },
            ) => ("cancelled", Status::Unset),
            ObligationState::Settled(Settlement::Signal { signal, .. }) => (signal.as_str(), Status::Ok),
            ObligationState::Settled(Settlement::Silence { .. }) => ("silence", Status::Unset),
            ObligationState::Settled(Settlement::Merged { .. }) => ("merged", Status::Unset),
            ObligationState::Undeliverable { .. } => ("undeliverable", Status::error("undeliverable")),
            // An operator has it sent again.
            _ => ("open", Status::Unset),
        };
        attributes.push(KeyValue::new("rejoinder.end", end));
        if let Some((cause, _)) = turn.obligation.fallback() {
            attributes.push(KeyValue::new("rejoinder.fallback.cause", cause.as_str()));
        }
        let started = turn.event.received_at.min(self.dossier.accepted_at);
        let data = self.span(Span::Turn, "turn", started, self.dossier.ended_at);
        SpanData {
            parent_span_id: self.trace.parent().map_or(SpanId::INVALID, SpanId::from),
            parent_span_is_remote: self.trace.parent().is_some(),
            span_kind: SpanKind::Server,
            attributes,
            status,
            ..data
        }
    }

    /// From the event to the moment when it was stored.
    fn intake(&self) -> SpanData {
        let (received, accepted) = (self.dossier.turn.event.received_at, self.dossier.accepted_at);
        self.span(Span::Intake, "intake", received.min(accepted), Some(accepted))
    }

    /// The wait for the first run, if there was one.
    fn wait(&self) -> Option<SpanData> {
        let started = self.dossier.runs.first()?.started_at;
        let accepted = self.dossier.accepted_at;
        (started > accepted).then(|| self.span(Span::Wait, "wait", accepted, Some(started)))
    }

    fn run(&self, run: &RunRecord) -> SpanData {
        let RunRecord { number, handler, started_at, ended_at, end, usage, cost, member, .. } = run;
        let end = end.as_deref().unwrap_or("running");
        let mut attributes = vec![
            KeyValue::new("rejoinder.run.number", i64::from(*number)),
            KeyValue::new("rejoinder.run.end", end.to_owned()),
        ];
        let (name, kind) = match handler {
            Handler::Agent(agent) => {
                attributes.push(KeyValue::new("gen_ai.operation.name", "invoke_agent"));
                attributes.push(KeyValue::new("gen_ai.agent.name", agent.to_string()));
                (format!("invoke_agent {agent}"), SpanKind::Client)
            }
            Handler::Gateway(_) => (format!("command {handler}"), SpanKind::Internal),
        };
        if let Some(member) = member {
            attributes.push(KeyValue::new("rejoinder.run.member", member.to_string()));
        }
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        if let Some(usage) = usage {
            attributes.push(KeyValue::new("gen_ai.usage.input_tokens", count(usage.input_tokens)));
            attributes.push(KeyValue::new("gen_ai.usage.output_tokens", count(usage.output_tokens)));
        }
        if let Some(cost) = cost {
            attributes.push(KeyValue::new("rejoinder.run.cost", cost.to_string()));
        }
        let has_failed = matches!(end, "failed" | "crashed");
        // One that goes on for a late answer.
        let ended_at = ended_at.or(self.dossier.ended_at);
        let status = if has_failed { Status::error(end.to_owned()) } else { Status::Unset };
        if has_failed {
            attributes.push(KeyValue::new("error.type", end.to_owned()));
        }
        let data = self.span(Span::Run(*number), name, *started_at, ended_at);
        SpanData { span_kind: kind, attributes, status, ..data }
    }

    fn attempt(&self, attempt: &AttemptRecord) -> SpanData {
        let AttemptRecord { delivery: id, number, started_at, ended_at, result, .. } = attempt;
        let delivery = self.dossier.deliveries.iter().find(|delivery| delivery.id == *id);
        let channel = delivery.map_or(&self.dossier.turn.event.conversation.channel, |it| &it.conversation.channel);
        let result = result.as_deref().unwrap_or("unfinished");
        let mut attributes = vec![
            KeyValue::new("rejoinder.delivery.id", id.to_string()),
            KeyValue::new("rejoinder.channel", channel.to_string()),
            KeyValue::new("rejoinder.attempt.number", i64::from(*number)),
            KeyValue::new("rejoinder.attempt.result", result.to_owned()),
        ];
        if let Some(delivery) = delivery {
            attributes.push(KeyValue::new("rejoinder.delivery.signal", delivery.signal.as_str()));
            attributes.push(KeyValue::new("rejoinder.delivery.part", i64::from(delivery.part)));
        }
        let is_delivered = result == "delivered";
        if !is_delivered {
            attributes.push(KeyValue::new("error.type", result.to_owned()));
        }
        let status = if is_delivered { Status::Ok } else { Status::error(result.to_owned()) };
        let data = self.span(Span::Attempt(*id, *number), format!("send {channel}"), *started_at, *ended_at);
        SpanData { span_kind: SpanKind::Client, attributes, status, ..data }
    }

    /// A span within the turn.
    fn span(
        &self,
        span: Span,
        name: impl Into<Cow<'static, str>>,
        started: Timestamp,
        ended: Option<Timestamp>,
    ) -> SpanData {
        let id = |span| SpanId::from(self.trace.span(span));
        let context = SpanContext::new(
            TraceId::from(self.trace.id()),
            id(span),
            TraceFlags::SAMPLED,
            false,
            TraceState::from_str(self.trace.state()).unwrap_or_default(),
        );
        SpanData {
            span_context: context,
            parent_span_id: id(Span::Turn),
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: time(started),
            end_time: time(ended.unwrap_or(started).max(started)),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder("rejoinder").build(),
        }
    }
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or_default())
}

/// What entries of the log add to the trace of their turn.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// The turn has ended.
    pub(super) is_ended: bool,
    /// These attempts have.
    pub(super) attempts: Vec<(DeliveryId, u64)>,
}
