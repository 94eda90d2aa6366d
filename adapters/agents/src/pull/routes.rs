//! What workers send: they fetch turns, report, renew their leases and answer.

use std::{convert::Infallible, sync::Arc, task::Poll, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use rejoinder_core::{AgentTurn, TurnId};
use rejoinder_kit::{Peer, Problem, read_body, uncached};
use sha2::{Digest, Sha256};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{
    agent::{Caller, Pull},
    body::{self, Posted},
    caller::wait_of,
    command::{BodyDigest, Command, Done, Refused, Stored},
    desk::{Asking, Offer},
    lease::logged,
    leases::NotHeld,
    purpose::Purpose,
    room::{Room, SMALL},
    schema::{Answer, Events, LeaseOnly, LeasedTurn, Renewed, Reported, WorkerProblem},
    sessions,
};
use crate::{tools::rfc3339, wire::MAX_OBJECT};

/// How long a worker waits until its answer, or that its lease goes on, is stored.
const STORING: Duration = Duration::from_secs(10);

type Shared = State<Arc<Pull>>;

impl Pull {
    /// What workers use, relative to `/agents/<name>`. A request is held for up to a minute, so a time limit around them must be
    /// longer. Bodies are limited here.
    pub fn routes(self: &Arc<Self>) -> Router {
        Router::new()
            .route("/next", get(next))
            .route("/turns/{turn_id}", post(answer))
            .route("/turns/{turn_id}/renew", post(renew))
            .route("/turns/{turn_id}/events", post(report))
            .route("/sessions/next", get(sessions::next))
            .route("/sessions/{id}", post(sessions::done))
            .layer(middleware::from_fn(uncached))
            .with_state(Arc::clone(self))
    }
}

/// Fetch a turn.
///
/// Waits until there is one. The worker has it until the lease ends, and is the only one that has it. A worker that renews
/// the lease or reports events keeps it; after the end of the lease another worker gets the turn.
#[utoipa::path(
    get,
    path = "/agents/{name}/next",
    tag = "workers",
    operation_id = "next_turn",
    params(
        ("name" = String, Path, description = "The agent"),
        ("wait" = Option<u32>, Query, description = "How many seconds to wait for a turn: 30 if left out, and at most 60"),
    ),
    responses(
        (status = 200, description = "A turn", body = LeasedTurn),
        (status = 204, description = "There was none in this time: ask again"),
        (status = 400, description = "`wait` is no number", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("worker_token" = [])),
)]
pub(super) async fn next(State(agent): Shared, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let caller = agent.identify(&parts.headers, Peer::of(&parts.extensions)).await?;
    let deadline = Instant::now() + wait_of(&parts)?;
    let takes = |turn: &AgentTurn| caller.takes(&turn.place.conversation.channel);
    let asking = Asking { worker: &caller.worker, takes: &takes };
    let Some(mut offer) = agent.desk.next(asking, deadline, &agent.stop_waiting).await else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    offer.kept().await;
    let (turn_id, lease, worker) = (offer.work.turn.turn, logged(&offer.lease), &*caller.worker.name);
    tracing::info!(agent = &*agent.name, %turn_id, worker, lease, "a worker has a turn");
    let turn = body::turn(&offer.work.turn, &offer.lease, offer.until, offer.is_first);
    Ok(([(header::CONTENT_TYPE, "application/json")], sending(turn, offer)).into_response())
}

/// Answer a turn.
///
/// Ends the turn's run. A `defer` has the turn come again when it is due. The response comes once the outcome is stored; the same body
/// may be sent again with the same lease, until it came.
#[utoipa::path(
    post,
    path = "/agents/{name}/turns/{turn_id}",
    tag = "workers",
    operation_id = "answer_turn",
    params(("name" = String, Path, description = "The agent"), ("turn_id" = String, Path, description = "The turn")),
    request_body(content = Answer),
    responses(
        (status = 204, description = "The answer counts, and is stored"),
        (status = 400, description = "The body is not JSON", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such turn", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 408, description = "The body is too slow", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 409, description = "The lease is not, or no longer, the turn's: the answer is not used, and the record of the turn has a note of that without its words", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 415, description = "The body is encoded", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 422, description = "The body is no answer. Nothing of it is used, and the lease goes on", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "Too many large bodies at once, the answer cannot be stored now, the gateway stops or has just begun, or another node has the turn: send it again with the same lease", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("worker_token" = [])),
)]
pub(super) async fn answer(
    State(agent): Shared,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let received = agent.receive(id, request, Some(Purpose::Answer)).await?;
    agent.settle(received).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Renew a lease.
///
/// Its whole length begins again. A 409 means that the worker should stop: the turn was cancelled, is too late, or was given to
/// another worker.
#[utoipa::path(
    post,
    path = "/agents/{name}/turns/{turn_id}/renew",
    tag = "workers",
    operation_id = "renew_lease",
    params(("name" = String, Path, description = "The agent"), ("turn_id" = String, Path, description = "The turn")),
    request_body(content = LeaseOnly),
    responses(
        (status = 200, description = "The lease goes on", body = Renewed),
        (status = 400, description = "The body is not JSON", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such turn", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 409, description = "The lease is not, or no longer, the turn's: stop", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 422, description = "There is no lease in the body", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway stops or has just begun, or another node has the turn: ask again with the same lease", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("worker_token" = [])),
)]
pub(super) async fn renew(
    State(agent): Shared,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Renewed>, Problem> {
    let Received { turn, posted, caller, .. } = agent.receive(id, request, None).await?;
    let (lease, worker) = (&posted.lease, &caller.worker);
    let until = match agent.desk.renew(turn, lease, worker) {
        Ok((work, _)) if timeout(STORING, work.until_kept(lease)).await.is_err() => return Err(not_stored()),
        Ok(_) => agent.desk.renew(turn, lease, worker).map(|(_, until)| until),
        Err(why) => Err(why),
    };
    match until {
        Ok(until) => Ok(Json(Renewed { lease_until: rfc3339(until) })),
        Err(why) => {
            let why = agent.found_out(turn, why).await;
            Err(agent.not_held(turn, Some(lease), &caller, why, "a renewal"))
        }
    }
}

/// Report what happens.
///
/// `{"text"}` and `{"rewrite"}` are shown while the answer grows, `{"tool"}` and `{"usage"}` are for the operator, and `{"send"}`
/// sends a message now, as the turn's answer. The answer must still contain the whole text. The lease begins again, too.
#[utoipa::path(
    post,
    path = "/agents/{name}/turns/{turn_id}/events",
    tag = "workers",
    operation_id = "report_events",
    params(("name" = String, Path, description = "The agent"), ("turn_id" = String, Path, description = "The turn")),
    request_body(content = Events),
    responses(
        (status = 200, description = "The events are reported", body = Reported),
        (status = 400, description = "The body is not JSON", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such turn", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 408, description = "The body is too slow", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 409, description = "The lease is not, or no longer, the turn's: stop", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 415, description = "The body is encoded", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 422, description = "The body has something else than events. None is reported", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "Too many large bodies at once, the gateway stops or has just begun, or another node has the turn: send it again with the same lease", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("worker_token" = [])),
)]
pub(super) async fn report(
    State(agent): Shared,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<Reported>, Problem> {
    let received = agent.receive(id, request, Some(Purpose::Events)).await?;
    let Done { until, is_sent, .. } = agent.tell(received, Purpose::Events).await?;
    Ok(Json(Reported { lease_until: rfc3339(until), sent: is_sent }))
}

/// What a worker posted.
struct Received<'a> {
    turn: TurnId,
    posted: Posted,
    digest: BodyDigest,
    caller: Caller<'a>,
    room: Room<'a>,
}

impl<'a> Received<'a> {
    /// What is left of it once its run has it.
    fn sent(&self, purpose: Purpose) -> Sent<'a> {
        let named = self.posted.outcome.map(|key| format!("`{key}`"));
        let outcome = named.or_else(|| (purpose == Purpose::Answer).then(|| purpose.name().to_owned()));
        Sent { turn: self.turn, lease: self.posted.lease.clone(), caller: self.caller.clone(), purpose, outcome }
    }
}

/// What a worker has sent, for the log and the record of the turn.
struct Sent<'a> {
    turn: TurnId,
    lease: String,
    caller: Caller<'a>,
    purpose: Purpose,
    /// The kind of outcome; `None` if people would see nothing of it.
    outcome: Option<String>,
}

impl Pull {
    /// Checks the token of a request, and reads its body: a large one only of a turn that a worker has. Without a purpose it renews a
    /// lease.
    async fn receive(
        &self,
        id: Result<Path<String>, PathRejection>,
        request: Request,
        purpose: Option<Purpose>,
    ) -> Result<Received<'_>, Problem> {
        let (parts, body) = request.into_parts();
        let caller = self.identify(&parts.headers, Peer::of(&parts.extensions)).await?;
        let turn = id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(unknown_turn)?;
        let (mut room, mut size, mut unknown) = (Room::of(&self.room), 0, None);
        let limit = if purpose.is_some() { MAX_OBJECT } else { SMALL };
        let see = |piece: &[u8]| {
            let was_small = size <= SMALL;
            size += piece.len();
            if was_small && size > SMALL && !self.desk.is_known(turn) {
                unknown = Some(self.desk.unknown(turn));
                // Only ends the reading. The response is made below, where the store can be asked.
                return Err(unknown_turn());
            }
            room.grow_to(size)
        };
        let body = read_body(&parts.headers, body, limit, self.body_timeout, see).await;
        if let Some(why) = unknown {
            let why = self.found_out(turn, why).await;
            if purpose == Some(Purpose::Answer) {
                self.record_unread(turn, &caller, why);
            }
            return Err(self.not_held(turn, None, &caller, why, "a large body"));
        }
        let body = body?;
        Ok(Received { turn, posted: Posted::read(&body)?, digest: Sha256::digest(&body).into(), caller, room })
    }

    /// Tells a run what its worker posted.
    async fn tell(&self, received: Received<'_>, purpose: Purpose) -> Result<Done, Problem> {
        let sent = received.sent(purpose);
        match self.pass_on(received, purpose).await {
            Ok(done) => Ok(done),
            Err(refused) => Err(self.problem(&sent, refused).await),
        }
    }

    /// The same for an answer. Returns once it is stored, also if it was posted before.
    async fn settle(&self, received: Received<'_>) -> Result<(), Problem> {
        let (sent, digest) = (received.sent(Purpose::Answer), received.digest);
        let stored = match self.pass_on(received, Purpose::Answer).await {
            Ok(done) => Ok(done.stored),
            Err(refused @ Refused::NotHeld(_)) => match self.desk.answered(sent.turn, &sent.lease) {
                Some(answered) if answered.digest == digest => Ok(answered.stored),
                Some(_) => Err(Refused::NotHeld(NotHeld::Answered)),
                None => Err(refused),
            },
            Err(refused) => Err(refused),
        };
        let settled = match stored {
            Ok(Some(stored)) => until_stored(stored).await,
            Ok(None) => Ok(()),
            Err(refused) => Err(refused),
        };
        match settled {
            Ok(()) => Ok(()),
            Err(refused) => Err(self.problem(&sent, refused).await),
        }
    }

    async fn pass_on(&self, received: Received<'_>, purpose: Purpose) -> Result<Done, Refused> {
        let Received { turn, posted: Posted { lease, objects, .. }, digest, caller, room: _room } = received;
        let work = self.desk.holder(turn, &lease, &caller.worker).map_err(Refused::NotHeld)?;
        let (done, heard) = oneshot::channel();
        let (worker, held) = (caller.worker.clone(), lease.clone());
        let command = Command { lease, worker: caller.worker, objects, digest, purpose, done };
        // Both fail if the run ends meanwhile.
        let sent = work.commands.send(command).await.is_ok();
        let heard = if sent { heard.await.ok() } else { None };
        if matches!(heard, Some(Ok(_))) {
            // It may end before.
            let _ = timeout(STORING, work.until_kept(&held)).await;
        }
        // The gateway may be about to stop, and the lease goes on.
        let why = || self.desk.holder(turn, &held, &worker).err().unwrap_or(NotHeld::NotYet);
        heard.unwrap_or_else(|| Err(Refused::NotHeld(why())))
    }

    async fn problem(&self, sent: &Sent<'_>, refused: Refused) -> Problem {
        let Sent { turn, lease, caller, purpose, outcome } = sent;
        match refused {
            Refused::NotHeld(why) => {
                let why = self.found_out(*turn, why).await;
                if let Some(outcome) = outcome {
                    self.record(*turn, lease, caller, why, outcome);
                }
                self.not_held(*turn, Some(lease), caller, why, purpose.name())
            }
            Refused::NotStored => not_stored(),
            Refused::Wrong(problem) => problem,
        }
    }

    /// Notes that a worker sent something with a lease that is not good.
    fn not_held(
        &self,
        turn: TurnId,
        lease: Option<&str>,
        caller: &Caller<'_>,
        why: NotHeld,
        what: &'static str,
    ) -> Problem {
        let (agent, worker, lease) = (&*self.name, &*caller.worker.name, lease.map(logged));
        if matches!(why, NotHeld::NotYet | NotHeld::Elsewhere) {
            tracing::debug!(agent, turn_id = %turn, worker, lease, what, "a worker is to send this again");
        } else {
            tracing::warn!(agent, turn_id = %turn, worker, lease, what, %why, "what a worker sent with this lease is not used");
        }
        let (name, title, detail) = match why {
            NotHeld::NotYet | NotHeld::Elsewhere => {
                return later(
                    "the gateway stops or has just begun, or another node has the turn; send it again with the same lease",
                );
            }
            NotHeld::Ended => (
                "lease-ended",
                "Conflict: the lease is over",
                "this lease is not, or no longer, the turn's: it ended, or the turn is over; stop, and fetch the next turn",
            ),
            NotHeld::Old => (
                "lease-ended",
                "Conflict: the lease is over",
                "a later lease or run of the turn has taken the place of this lease; stop, and fetch the next turn",
            ),
            NotHeld::Answered => (
                "already-answered",
                "Conflict: the lease is over",
                "the turn was answered with this lease; fetch the next turn",
            ),
            NotHeld::OfAnother => (
                "lease-of-another-worker",
                "Conflict: the lease is that of another worker",
                "this turn was fetched with another token; send that token, or fetch the next turn",
            ),
        };
        Problem::new(StatusCode::CONFLICT, name, title, detail)
    }
}

/// Waits until an outcome is stored.
async fn until_stored(stored: Stored) -> Result<(), Refused> {
    match timeout(STORING, stored).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Refused::NotHeld(NotHeld::Ended)),
        // The process ends before.
        Ok(Err(_)) => Err(Refused::NotHeld(NotHeld::NotYet)),
        Err(_) => Err(Refused::NotStored),
    }
}

fn not_stored() -> Problem {
    later("the gateway cannot store it now; send it again with the same lease")
}

/// What the worker should send again.
fn later(detail: &'static str) -> Problem {
    let title = "Service unavailable: not now";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-now", title, detail);
    problem.with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

fn unknown_turn() -> Problem {
    let detail = "the path has no id of a turn: use `turn_id` as it was fetched";
    Problem::new(StatusCode::NOT_FOUND, "unknown-turn", "Not found: there is no such turn", detail)
}

/// A body that gives the offer back unless it was written to the connection.
fn sending(turn: Bytes, offer: Offer) -> Body {
    let (mut turn, mut offer, mut has_yielded) = (Some(turn), Some(offer), false);
    Body::from_stream(stream::poll_fn(move |context| {
        if let Some(turn) = turn.take() {
            return Poll::Ready(Some(Ok::<_, Infallible>(turn)));
        }
        // Lets the server write what it has: a connection that is closed shows then.
        if !std::mem::replace(&mut has_yielded, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(offer) = offer.take() {
            offer.sent();
        }
        Poll::Ready(None)
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use futures_util::StreamExt;
    use rejoinder_core::{
        AgentName, AgentRuntime, HandedOut, RunEvent, RunEvents, StoreError, Timestamp, conformance::runtime,
    };
    use rejoinder_kit::Tokens;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::{
        super::{agent::PullSettings, desk::Desk, leases::Worker, room::ROOM, section::PullSection},
        *,
    };

    async fn offer(desk: &Arc<Desk>) -> Option<Offer> {
        let (worker, takes) = (Worker { name: "w".into(), has_own_token: false }, |_: &AgentTurn| true);
        desk.next(Asking { worker: &worker, takes: &takes }, Instant::now(), &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn a_turn_that_could_not_be_written_is_offered_again_at_once() {
        let desk = Arc::new(Desk::new(&PullSection::default(), false));
        let (commands, _arriving) = mpsc::channel(1);
        let _entry = desk.enter(runtime::turn("Hi"), commands, None);

        drop(offer(&desk).await.expect("the turn"));
        drop(sending(Bytes::from_static(b"{}"), offer(&desk).await.expect("after the worker was gone")));
        let mut half =
            sending(Bytes::from_static(b"{}"), offer(&desk).await.expect("before it was written")).into_data_stream();
        assert!(half.next().await.is_some());
        drop(half);
        let whole = sending(Bytes::from_static(b"{}"), offer(&desk).await.expect("before its end")).into_data_stream();
        assert_eq!(whole.count().await, 1);

        assert!(offer(&desk).await.is_none(), "it was sent");
    }

    const TOKEN: &str = "token-of-these-tests";

    fn agent() -> Arc<Pull> {
        beside(None)
    }

    fn beside(handed_out: Option<Arc<dyn HandedOut>>) -> Arc<Pull> {
        Arc::new(Pull::new(PullSettings {
            name: "fleet".into(),
            section: PullSection::default(),
            token: Some(Tokens::from(TOKEN)),
            workers: Vec::new(),
            guesses: Arc::default(),
            body_timeout: Duration::from_secs(10),
            stop_waiting: CancellationToken::new(),
            refusals: Arc::default(),
            handed_out,
        }))
    }

    /// Posts as much as a body may have. Returns the status, and how many bytes of it were read.
    async fn post_all(agent: &Arc<Pull>, turn: TurnId) -> (StatusCode, usize) {
        let read = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        let pieces = stream::iter(std::iter::repeat_n(vec![b' '; 1024], MAX_OBJECT / 1024));
        let body = Body::from_stream(pieces.map(move |piece| {
            counted.fetch_add(piece.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(piece)
        }));
        let request = Request::builder().header(header::AUTHORIZATION, format!("Bearer {TOKEN}")).body(body).unwrap();
        let problem = answer(State(Arc::clone(agent)), Ok(Path(turn.to_string())), request).await.unwrap_err();
        (problem.status(), read.load(Ordering::Relaxed))
    }

    /// Other nodes, of which none has a turn.
    struct Idle;

    #[async_trait]
    impl HandedOut for Idle {
        async fn may_go_on(&self, _: &AgentName, _: TurnId) -> Result<bool, StoreError> {
            Ok(false)
        }
    }

    #[tokio::test]
    async fn a_large_body_of_a_turn_that_no_node_has_is_not_to_be_sent_again() {
        let agent = beside(Some(Arc::new(Idle)));

        let (status, _) = post_all(&agent, TurnId::new(Timestamp::from_millis(1))).await;

        assert_eq!(status, StatusCode::CONFLICT);
    }

    /// The next note that a run has stored.
    async fn noted(reported: &mut mpsc::Receiver<RunEvent>) -> (String, oneshot::Sender<Result<(), String>>) {
        loop {
            if let RunEvent::HandOut(note, stored) = reported.recv().await.expect("a note") {
                return (note, stored);
            }
        }
    }

    /// Otherwise a stop in that moment would end its lease.
    #[tokio::test]
    async fn a_worker_of_before_the_start_hears_that_its_lease_goes_on_once_that_is_stored() {
        let (before, given, cancel) = (agent(), runtime::turn("Hi"), CancellationToken::new());
        let (events, mut reported) = RunEvents::channel();
        let run = tokio::spawn({
            let (agent, turn, cancel) = (Arc::clone(&before), given.clone(), cancel.clone());
            async move { agent.run(turn, events, cancel).await }
        });
        let (worker, takes) = (Worker { name: "w".into(), has_own_token: false }, |_: &AgentTurn| true);
        let asking = Asking { worker: &worker, takes: &takes };
        let deadline = Instant::now() + Duration::from_secs(10);
        let offer = before.desk.next(asking, deadline, &CancellationToken::new()).await.expect("the turn");
        let (note, _) = noted(&mut reported).await;
        cancel.cancel();
        run.await.expect("it ends").expect_err("it was cancelled");

        let (agent, turn) = (
            agent(),
            given.with(|turn| {
                turn.past.holder = Some(note);
                turn.attempt = 2;
            }),
        );
        let (id, body) = (turn.turn.to_string(), format!("{{\"lease\":\"{}\"}}", offer.lease));
        let (events, mut reported) = RunEvents::channel();
        let _run = tokio::spawn({
            let agent = Arc::clone(&agent);
            async move { agent.run(turn, events, CancellationToken::new()).await }
        });
        noted(&mut reported).await.1.send(Ok(())).expect("it waits");
        let request =
            Request::builder().header(header::AUTHORIZATION, format!("Bearer {TOKEN}")).body(body.into()).unwrap();
        let renewed = tokio::spawn(renew(State(agent), Ok(Path(id)), request));
        let (_, stored) = noted(&mut reported).await;
        tokio::time::sleep(Duration::from_millis(20)).await;

        assert!(!renewed.is_finished());
        stored.send(Ok(())).expect("it waits");
        assert!(renewed.await.expect("it answers").is_ok());
    }

    #[tokio::test]
    async fn a_large_body_is_kept_only_of_a_turn_that_a_worker_has_and_while_there_is_room() {
        let agent = agent();
        let (commands, _arriving) = mpsc::channel(1);
        let given = runtime::turn("Hi");
        let turn = given.turn;
        let _entry = agent.desk.enter(given, commands, None);

        // The agent has just begun: a worker may have had the turn before.
        assert_eq!(post_all(&agent, turn).await.0, StatusCode::SERVICE_UNAVAILABLE);

        let _offer = offer(&agent.desk).await.expect("the turn");
        assert_eq!(post_all(&agent, turn).await, (StatusCode::BAD_REQUEST, MAX_OBJECT));

        let taken = agent.room.try_acquire_many(u32::try_from(ROOM - 100).unwrap()).unwrap();
        assert_eq!(post_all(&agent, turn).await.0, StatusCode::SERVICE_UNAVAILABLE);
        drop(taken);
        assert_eq!(agent.room.available_permits(), ROOM, "all of it is given back");
    }
}
