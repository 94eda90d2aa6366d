use futures_util::FutureExt;
use rejoinder_guard::Timestamp;

use super::*;
use crate::{
    conformance::clock::TestClock,
    model::ChannelId,
    ports::{Clock as _, SystemClock},
};

fn main() -> AgentName {
    AgentName::from("main")
}

fn permit() -> Permit {
    Permit { agent: main(), channel: ChannelId::new("test", "main") }
}

/// Slots without waiting rows.
fn slots(total: usize) -> Arc<Slots> {
    slots_on(Arc::new(SystemClock), total)
}

fn slots_on(clock: SharedClock, total: usize) -> Arc<Slots> {
    slots_of(total, [(main(), total)], clock)
}

fn slots_of(total: usize, agents: impl IntoIterator<Item = (AgentName, usize)>, clock: SharedClock) -> Arc<Slots> {
    let slots = Arc::new(Slots::new(total, agents, CancellationToken::new(), clock));
    settle(&slots, &[]);
    slots
}

fn ids() -> (ConversationId, TurnId) {
    let at = Timestamp::from_millis(0);
    (ConversationId::new(at), TurnId::new(at))
}

fn candidate(conversation: ConversationId, turn: TurnId) -> WaitingConversation {
    let (Permit { agent, channel }, owed) = (permit(), true);
    let (agent_of_row, is_alone) = (agent.clone(), true);
    let (version, rank, position) = (1, 1, 1);
    let waiting =
        WaitingTurn { turn, version, conversation, channel, agent: agent_of_row, owed, rank, position, is_alone };
    WaitingConversation { waiting, agent }
}

/// The scheduler has read a row, and a newer turn takes the slot before the scheduler does.
#[test]
fn a_row_whose_slot_was_taken_meanwhile_is_noted_to_its_holder() {
    let slots = slots(2);
    let ((conversation, older), (_, newer)) = (ids(), ids());
    let slot = slots.try_take(conversation, newer, &permit()).expect("it is free");

    assert!(slots.take_next(&mut vec![candidate(conversation, older)]).is_none());

    assert!(slot.take_more(), "the holder does not know of the older row");
}

/// It was stored after the scheduler had read, and had found nothing behind the first one.
#[test]
fn a_row_that_came_before_the_slot_was_given_is_noted_to_its_holder() {
    let slots = slots(1);
    let mut rows = enqueue(&slots, 1);
    slots.enqueue(rows[0].waiting.conversation, &main());

    let (slot, _) = slots.take_next(&mut rows).expect("a permit is free");

    assert!(slot.take_more() && !slot.take_more());
    slot.release();
}

/// The next round may read all rows of the other agent, and not the first one of the conversation, which begins.
#[test]
fn a_row_for_another_agent_that_came_before_the_slot_was_given_is_noted_to_its_holder() {
    let other = AgentName::from("other");
    let slots = slots_of(2, [(main(), 1), (other.clone(), 1)], Arc::new(SystemClock));
    let mut rows = enqueue(&slots, 1);
    slots.enqueue(rows[0].waiting.conversation, &other);

    let (slot, _) = slots.take_next(&mut rows).expect("a permit is free");
    settle(&slots, &[]);

    assert!(slot.take_more());
    slot.release();
    assert!(!wants_a_round(&slots), "its holder has looked");
}

/// A turn that was promised a permit is a row until it begins: each round and each look reads it.
#[test]
fn a_row_that_is_about_to_begin_is_not_noted_to_its_holder() {
    let slots = slots(1);
    let (conversation, turn) = ids();
    let (slot, _) = slots.take_next(&mut vec![candidate(conversation, turn)]).expect("a permit is free");
    let is_noted = |version, is_alone| {
        let mut row = candidate(conversation, turn);
        (row.waiting.version, row.waiting.is_alone) = (version, is_alone);
        slots.note_rows(&slots.marks(), vec![row], 10);
        slot.take_more()
    };

    assert!(!is_noted(1, true));
    assert!(is_noted(1, false), "another one is behind it");
    assert!(is_noted(2, true), "it waits again");
    slot.release();
}

/// A channel's turn must not depend on whether the first conversations of its line are busy.
#[test]
fn conversations_that_hold_slots_hide_those_of_their_channel_only() {
    let slots = slots(3);
    let candidates = |channel: &str, count: usize| {
        let of_channel = |_| {
            let (conversation, turn) = ids();
            let mut candidate = candidate(conversation, turn);
            candidate.waiting.channel = ChannelId::new("test", channel);
            candidate
        };
        (0..count).map(of_channel).collect::<Vec<_>>()
    };
    let mut busy = candidates("busy", 2);
    let held: Vec<_> =
        busy.iter().map(|candidate| slots.try_take(candidate.waiting.conversation, ids().1, &permit())).collect();
    let round = slots.begin_round();
    assert_eq!((held.iter().flatten().count(), round.enough, round.few), (2, 2, 3));

    busy.extend(candidates("busy", 1));
    busy.extend(candidates("other", 3));
    assert!(slots.hides_any(&round, round.few, &busy), "of the first channel, one of three holds no slot");

    assert!(!slots.hides_any(&round, round.few, &busy[1..]), "two were read: there are no more");
    assert!(!slots.hides_any(&round, round.few, &candidates("other", 3)));

    // Otherwise rounds would follow each other without a pause when all conversations that wait are busy.
    let few_of_each: Vec<_> = candidates("busy", 2).into_iter().chain(candidates("other", 2)).collect();
    assert_eq!(unread(&few_of_each, round.few), HashSet::new(), "of no channel there can be more");
    assert_eq!(unread(&busy, round.few), HashSet::from([main()]));
}

/// The same when the holder looks no more.
#[test]
fn a_row_that_its_holder_leaves_is_looked_for_again() {
    let slots = slots(2);
    let ((conversation, older), (_, newer)) = (ids(), ids());
    let slot = slots.try_take(conversation, newer, &permit()).expect("it is free");
    assert!(slots.take_next(&mut vec![candidate(conversation, older)]).is_none());

    slot.release();

    assert!(slots.state().permits.is_someone_next());
    let (another, turn) = ids();
    assert!(slots.try_take(another, turn, &permit()).is_none(), "a new turn would overtake it");
    assert!(slots.take_next(&mut vec![candidate(conversation, older)]).is_some());
}

/// Slots of an agent whose runs have been fast.
fn fast_slots(clock: SharedClock, total: usize) -> Arc<Slots> {
    let slots = slots_on(clock, total);
    run_often(&slots, || {});
    slots
}

/// Runs a hundred turns, each for as long as `run` takes.
fn run_often(slots: &Arc<Slots>, run: impl Fn()) {
    for _ in 0..100 {
        let (conversation, turn) = ids();
        let slot = slots.try_take(conversation, turn, &permit()).expect("it is free");
        run();
        slots.release_permit(conversation, turn, 1);
        slot.release();
    }
}

fn promised(slots: &Arc<Slots>) -> Slot {
    promised_by(slots, &permit())
}

fn promised_by(slots: &Arc<Slots>, permit: &Permit) -> Slot {
    let (conversation, turn) = ids();
    let slot = slots.try_take(conversation, turn, permit).expect("it is promised a permit");
    assert!(slot.may_begin() && !slot.has_permit());
    slot
}

#[tokio::test]
async fn permits_that_are_promised_come_in_order() {
    let slots = fast_slots(Arc::new(SystemClock), 1);
    let (conversation, turn) = ids();
    let running = slots.try_take(conversation, turn, &permit()).expect("it is free");
    let (mut first, gone, mut last) = (promised(&slots), promised(&slots), promised(&slots));

    slots.release_permit(conversation, turn, 1);
    running.release();
    assert!(last.gets_permit().now_or_never().is_none(), "it is the first one's");
    assert_eq!(first.gets_permit().now_or_never(), Some(true));

    gone.release();
    first.release();
    assert!(last.has_permit(), "nobody waits for one that has gone");
}

#[tokio::test]
async fn a_turn_whose_permit_does_not_come_in_time_waits_as_a_row() {
    let clock = TestClock::new();
    let slots = fast_slots(clock.clone(), 1);
    let (conversation, turn) = ids();
    let running = slots.try_take(conversation, turn, &permit()).expect("it is free");
    let mut late = promised(&slots);

    let (gets, ()) = tokio::join!(late.gets_permit(), async {
        tokio::task::yield_now().await;
        clock.advance(PATIENCE);
    });
    assert!(!gets);
    running.release();
    assert!(!late.has_permit(), "it waits no more");
    assert!(slots.try_take(ids().0, turn, &permit()).is_some_and(|slot| slot.has_permit()));
}

/// Ends a round that was given all rows, and left these.
fn settle(slots: &Arc<Slots>, left: &[WaitingConversation]) {
    slots.end_round(&slots.begin_round(), left, &HashSet::new());
}

/// Slots with one permit, which is given, of an agent whose runs take this long.
fn busy_slots(takes: Duration) -> (Arc<Slots>, Slot) {
    let clock = TestClock::new();
    let slots = slots_on(clock.clone(), 1);
    run_often(&slots, || clock.advance(takes));
    let (conversation, turn) = ids();
    let running = slots.try_take(conversation, turn, &permit()).expect("it is free");
    (slots, running)
}

fn wants_a_round(slots: &Slots) -> bool {
    slots.state().needs_round()
}

/// Notes rows of new conversations, and returns them as a round reads them.
fn enqueue(slots: &Slots, count: usize) -> Vec<WaitingConversation> {
    let rows: Vec<_> = (0..count).map(|_| ids()).map(|(conversation, turn)| candidate(conversation, turn)).collect();
    for row in &rows {
        slots.enqueue(row.waiting.conversation, &main());
    }
    drop(slots.begin_round());
    rows
}

/// Otherwise each turn of a crowd that waited as rows once would be a row, for ever.
#[test]
fn rows_that_may_all_run_soon_are_promised_permits() {
    let (slots, running) = busy_slots(Duration::from_millis(10));
    let mut rows = enqueue(&slots, 50);
    rows[0].waiting.position = 2;
    let last_row = rows[0].waiting.conversation;
    assert!(wants_a_round(&slots));

    let promised_rows = slots.take_promised(&mut rows, &HashSet::new());
    settle(&slots, &rows);

    assert_eq!((promised_rows.len(), rows.len(), wants_a_round(&slots)), (50, 0, false));
    assert_eq!(promised_rows[49].0.conversation(), last_row);
    let new = promised(&slots);
    running.release();
    for (slot, row) in promised_rows {
        assert!(slot.has_permit() && !new.has_permit());
        assert_eq!((row.waiting.conversation, row.agent), (slot.conversation(), main()));
        slot.release();
    }
    assert!(new.has_permit());
}

/// The round has given out what was free before.
#[test]
fn a_row_is_given_the_permit_that_becomes_free_before_it_is_promised_one() {
    let (slots, running) = busy_slots(Duration::from_millis(10));
    let mut rows = enqueue(&slots, 2);
    running.release();

    let promised_rows = slots.take_promised(&mut rows, &HashSet::new());

    assert!(promised_rows[0].0.has_permit() && !promised_rows[1].0.has_permit());
}

/// They would be promised permits again and again.
#[tokio::test]
async fn rows_are_promised_nothing_after_a_promise_was_broken() {
    let clock = TestClock::new();
    let slots = fast_slots(clock.clone(), 1);
    let (conversation, turn) = ids();
    let _hangs = slots.try_take(conversation, turn, &permit()).expect("it is free");
    let mut rows = enqueue(&slots, 2);
    let mut promised_rows = slots.take_promised(&mut rows, &HashSet::new());
    settle(&slots, &[]);
    let (mut first, row) = promised_rows.remove(0);

    let (gets, ()) = tokio::join!(first.gets_permit(), async {
        tokio::task::yield_now().await;
        clock.advance(PATIENCE);
    });
    first.leave_to(row.agent);

    assert!(!gets && slots.state().permits.is_contended(&main()) && !wants_a_round(&slots));
    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none());
}

#[test]
fn nothing_is_promised_while_rows_wait_that_may_not_all_run_soon() {
    let (slots, _running) = busy_slots(Duration::from_millis(95));
    let few = enqueue(&slots, 8);
    let ninth = promised(&slots);
    let tenth = promised(&slots);
    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none(), "eleven runs take longer than a second");
    [ninth, tenth].into_iter().for_each(Slot::release);

    let mut rows: Vec<_> = few.into_iter().chain(enqueue(&slots, 3)).collect();

    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none() && !wants_a_round(&slots));
    assert!(slots.take_promised(&mut rows, &HashSet::new()).is_empty());
    assert_eq!(rows.len(), 11);
}

#[test]
fn rows_of_an_agent_that_were_not_all_read_are_promised_nothing() {
    let (slots, _running) = busy_slots(Duration::from_millis(10));
    let (mut rows, unread) = (enqueue(&slots, 2), HashSet::from([main()]));

    assert!(slots.take_promised(&mut rows, &unread).is_empty());

    rows.push(candidate(ids().0, ids().1));
    slots.end_round(&slots.begin_round(), &rows, &unread);
    assert!(!wants_a_round(&slots), "nobody knows how many there are");
    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none());
    assert!(slots.state().permits.is_contended(&main()));
}

#[test]
fn a_turn_does_not_overtake_one_of_its_own_conversation() {
    let (slots, _running) = busy_slots(Duration::from_millis(10));
    let rows = enqueue(&slots, 1);
    let conversation = rows[0].waiting.conversation;
    assert!(slots.try_take(conversation, ids().1, &permit()).is_none());

    settle(&slots, &rows);

    assert!(slots.try_take(conversation, ids().1, &permit()).is_none(), "it was read, and waits still");
    promised(&slots).release();
}

#[test]
fn a_turn_does_not_overtake_one_of_its_own_conversation_for_another_agent() {
    let other = AgentName::from("other");
    let slots = slots_of(3, [(main(), 1), (other.clone(), 2)], Arc::new(SystemClock));
    let _running = slots.try_take(ids().0, ids().1, &permit()).expect("it is free");
    let (conversation, turn) = ids();
    slots.enqueue(conversation, &main());
    let permit = Permit { agent: other.clone(), ..permit() };

    assert!(slots.try_take(conversation, turn, &permit).is_none());
    assert!(slots.try_reserve(conversation, turn, &other).is_none());
    assert!(slots.try_take(ids().0, turn, &permit).is_some(), "the turns of other conversations do not wait for it");
}

#[test]
fn nothing_is_promised_past_rows_that_nobody_has_counted() {
    let (slots, _running) = busy_slots(Duration::from_millis(10));
    slots.fall_behind();
    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none());

    settle(&slots, &[]);

    promised(&slots).release();
}

/// Otherwise its new turns would be rows as well, of which it would tell the others.
#[test]
fn a_node_goes_on_giving_its_permits_while_another_one_tells_of_rows() {
    let (slots, running) = busy_slots(Duration::from_millis(10));
    let first = promised(&slots);
    slots.hear_of(ids().0, &main());
    let second = promised(&slots);

    running.release();
    assert!(first.has_permit() && !slots.state().permits.is_contended(&main()));
    first.release();
    assert!(second.has_permit() && !wants_a_round(&slots));
    second.release();
    assert!(wants_a_round(&slots), "the permit is free for the row");
    assert!(slots.try_take(ids().0, ids().1, &permit()).is_some_and(|slot| slot.has_permit()), "it was not read yet");
}

#[test]
fn a_row_of_which_another_node_has_told_is_promised_a_permit_once_it_was_read() {
    let (slots, running) = busy_slots(Duration::from_millis(10));
    let (conversation, turn) = ids();
    let row = || vec![candidate(conversation, turn)];
    slots.hear_of(conversation, &main());
    let before = promised(&slots);

    slots.note_rows(&slots.marks(), row(), 10);
    assert!(wants_a_round(&slots));
    let mut rows = row();
    let promised_rows = slots.take_promised(&mut rows, &HashSet::new());
    settle(&slots, &rows);
    let after = promised(&slots);

    running.release();
    before.release();
    assert!(promised_rows[0].0.has_permit() && !after.has_permit() && !wants_a_round(&slots));
}

/// Of rows that it did not know, there may be more than it can promise permits.
#[test]
fn a_round_reads_all_rows_of_which_other_nodes_have_told() {
    let slots = fast_slots(Arc::new(SystemClock), 1);
    assert_eq!(slots.begin_round().few, 3);

    (0..5).for_each(|_| slots.hear_of(ids().0, &main()));

    assert_eq!(slots.begin_round().few, 11);
}

/// The store says whether the other node has run it.
#[test]
fn whether_a_row_of_another_node_still_waits_is_not_known_for_sure() {
    let slots = slots(1);
    let (conversation, turn) = ids();
    slots.hear_of(conversation, &main());
    let other = AgentName::from("other");
    assert!(slots.hide_row(conversation, &main()) && slots.hide_row(conversation, &other));
    assert!(!slots.hide_row(ids().0, &main()));

    slots.note_rows(&slots.marks(), Vec::new(), 10);
    assert!(!slots.hide_row(conversation, &main()));

    let slot = slots.try_take(conversation, turn, &permit()).expect("it is free");
    slots.hear_of(conversation, &main());
    assert!(slot.take_more() && !slots.hide_row(conversation, &main()), "its holder looks");
}

/// An approval may take hours.
#[test]
fn a_run_that_waits_for_an_approval_keeps_nobody_from_being_promised_a_permit() {
    let (slots, mut running) = busy_slots(Duration::from_millis(10));
    let (conversation, turn) = (running.conversation(), slots.holder(running.conversation()).expect("it runs"));
    slots.suspend_run(conversation, turn, 1);
    let _late = running.leave_run();
    let (another, next) = ids();
    let _other = slots.try_take(another, next, &permit()).expect("its permit is free");

    promised(&slots).release();
}

/// A turn that is promised a permit would wait for it, and one that waits as a row takes it from a run past its deadline.
#[test]
fn nothing_is_promised_where_a_late_run_ends_for_a_row() {
    let (slots, mut running) = busy_slots(Duration::from_millis(10));
    let (conversation, turn) = (running.conversation(), slots.holder(running.conversation()).expect("it runs"));
    let _late = running.leave_run();
    slots.let_go_on(conversation, turn, 1);

    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none());
}

#[test]
fn a_late_run_ends_for_a_turn_that_was_promised_a_permit() {
    let (slots, mut running) = busy_slots(Duration::from_millis(10));
    let (conversation, turn) = (running.conversation(), slots.holder(running.conversation()).expect("it runs"));
    let waits = promised(&slots);
    let _late = running.leave_run();
    assert!(!wants_a_round(&slots));
    slots.let_go_on(conversation, turn, 1);

    assert!(wants_a_round(&slots));
    assert_eq!(slots.late_run_before(&mut Vec::new()), Some(turn));

    slots.end_late_run(turn);
    assert!(waits.has_permit());
}

/// Their runs may take longer than those of the agent.
#[test]
fn nothing_is_promised_where_rows_of_another_agent_wait_for_the_permits() {
    let other = AgentName::from("other");
    let limits = [(main(), 1), (other.clone(), 1)];
    let clock = TestClock::new();
    let slots = Arc::new(Slots::new(1, limits, CancellationToken::new(), clock));
    settle(&slots, &[]);
    run_often(&slots, || {});
    let (conversation, turn) = ids();
    let _running = slots.try_take(conversation, turn, &permit()).expect("it is free");
    let mut rows = enqueue(&slots, 1);
    promised(&slots).release();
    settle(&slots, &rows);

    slots.enqueue(ids().0, &other);

    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none());
    assert!(slots.take_promised(&mut rows, &HashSet::new()).is_empty());
}

/// Two agents share the permits of the gateway.
#[test]
fn promises_of_several_agents_are_kept_in_the_order_in_which_they_were_made() {
    let agents = [permit(), Permit { agent: AgentName::from("other"), ..permit() }];
    let limits = agents.clone().map(|permit| (permit.agent, 2));
    let slots = Arc::new(Slots::new(2, limits, CancellationToken::new(), Arc::new(SystemClock)));
    settle(&slots, &[]);
    for permit in agents.iter().cycle().take(200) {
        let (conversation, turn) = ids();
        let slot = slots.try_take(conversation, turn, permit).expect("it is free");
        slots.release_permit(conversation, turn, 1);
        slot.release();
    }
    for order in [[0, 1], [1, 0]] {
        let [running, other] = [0, 1].map(|agent| {
            let (conversation, turn) = ids();
            slots.try_take(conversation, turn, &agents[agent]).expect("it is free")
        });
        let [first, second] = order.map(|agent| promised_by(&slots, &agents[agent]));

        running.release();

        assert!(first.has_permit() && !second.has_permit());
        for slot in [first, second, other] {
            slot.release();
        }
    }
}

#[tokio::test]
async fn a_promise_that_is_over_gives_its_permit_to_nobody() {
    let slots = fast_slots(Arc::new(SystemClock), 1);
    let (conversation, turn) = ids();
    let running = slots.try_take(conversation, turn, &permit()).expect("it is free");
    let (left, next) = ids();
    slots.try_take(left, next, &permit()).expect("it is promised one").release();
    let (before, again) = (promised(&slots), slots.try_take(left, next, &permit()).expect("it is promised one"));

    running.release();

    assert!(before.has_permit() && !again.has_permit(), "the conversation has a new place");
}

#[test]
fn nothing_is_promised_while_a_permit_is_free() {
    let slots = fast_slots(Arc::new(SystemClock), 2);
    let (conversation, turn) = ids();
    let _running = slots.try_take(conversation, turn, &permit()).expect("it is free");
    slots.enqueue(ids().0, &main());

    let (another, next) = ids();
    assert!(slots.try_take(another, next, &permit()).is_none(), "nobody would wake it");
}

/// The agent is free while the end of its run is stored.
#[test]
fn a_run_that_ended_leaves_its_permit_to_others() {
    let slots = slots(1);
    let ((conversation, turn), (another, next)) = (ids(), ids());
    let slot = slots.try_take(conversation, turn, &permit()).expect("it is free");

    slots.release_permit(conversation, next, 1);
    assert!(slots.try_take(another, next, &permit()).is_none(), "the turn that ended is not the one that runs");
    slots.release_permit(conversation, turn, 1);
    assert!(slots.try_take(conversation, next, &permit()).is_none(), "the conversation has its slot still");
    let other = slots.try_take(another, next, &permit()).expect("the permit is free");

    slot.release();
    assert!(slots.try_take(conversation, turn, &permit()).is_none(), "no permit was given back twice");
    other.release();
    assert!(slots.try_take(conversation, turn, &permit()).is_some());
}

/// A turn that is given back by a panic is looked for, whatever agent it was for.
#[test]
fn a_slot_that_is_dropped_leaves_rows() {
    let slots = slots(1);
    let (conversation, turn) = ids();

    drop(slots.try_take(conversation, turn, &permit()));

    assert!(slots.state().permits.is_someone_next());
}

/// A late run of another agent is in nobody's way while the gateway has permits.
#[test]
fn the_oldest_late_run_of_the_agent_gives_its_permit() {
    let other = AgentName::from("other");
    let agents = [(main(), 1), (other.clone(), 1)];
    let slots = Arc::new(Slots::new(3, agents, CancellationToken::new(), Arc::new(SystemClock)));
    settle(&slots, &[]);
    let permit_of_other = Permit { agent: other, ..permit() };
    let ((one, its_turn), (another, its_other_turn)) = (ids(), ids());
    let mut slot_of_other = slots.try_take(another, its_other_turn, &permit_of_other).expect("it is free");
    let _late_of_other = slot_of_other.leave_run();
    let mut slot = slots.try_take(one, its_turn, &permit()).expect("it is free");
    let _late = slot.leave_run();
    let (conversation, turn) = ids();
    slots.enqueue(conversation, &main());
    let mut candidates = vec![candidate(conversation, turn)];
    assert_eq!(slots.late_run_before(&mut candidates), None, "neither is past its deadline");
    slots.let_go_on(another, its_other_turn, 1);
    slots.let_go_on(one, its_turn, 1);

    let mut candidates = vec![candidate(one, turn), candidate(conversation, turn)];
    assert_eq!(slots.late_run_before(&mut candidates), Some(its_turn));
    assert_eq!(candidates.len(), 1, "the conversation of the late run has its slot");
    assert!(slots.take_next(&mut candidates).is_none());

    slots.end_late_run(its_turn);
    assert!(slots.take_next(&mut candidates).is_some());
    assert_eq!(slots.late_run_before(&mut vec![candidate(ids().0, turn)]), None, "the other one helps nobody");
}

/// A run that goes on before its slot was left keeps its permit, and one that waits for one goes on when another ends.
#[tokio::test]
async fn a_run_that_goes_on_has_a_permit() {
    let slots = slots(1);
    let ((first, asks), (second, runs)) = (ids(), ids());
    let mut slot = slots.try_take(first, asks, &permit()).expect("it is free");
    let go_on = Arc::clone(&slot.tokens().go_on);
    slots.suspend_run(first, asks, 1);
    slots.continue_run(first, asks, 1);
    go_on.notified().await;
    let late = slot.leave_run();
    assert!(slots.try_take(second, runs, &permit()).is_none(), "it has the permit");
    slots.suspend_run(first, asks, 1);
    let other = slots.try_take(second, runs, &permit()).expect("it waits again");
    slots.continue_run(first, asks, 1);
    assert!(go_on.notified().now_or_never().is_none(), "the other has the permit");
    assert!(slots.try_take(ids().0, ids().1, &permit()).is_none());
    other.release();
    go_on.notified().await;

    drop(late);
    slots.suspend_run(first, asks, 1);
    slot.release();
    assert!(slots.try_take(second, runs, &permit()).is_some(), "nothing of it is left");
}

/// Another node has decided, and this one finds out twice.
#[test]
fn a_run_goes_on_once_with_a_decision() {
    let slots = slots(1);
    let (conversation, asks) = ids();
    let slot = slots.try_take(conversation, asks, &permit()).expect("it is free");
    slot.run_begins();
    slots.suspend_run(conversation, asks, 1);
    let [found]: [RunInFlight; 1] = slots.runs().try_into().expect("one is in flight");
    slots.continue_suspended(conversation, &found);
    assert!(slot.tokens().go_on.notified().now_or_never().is_some());

    slots.continue_suspended(conversation, &found);
    slots.suspend_run(conversation, asks, 1);
    slots.continue_suspended(conversation, &found);
    assert!(slot.tokens().go_on.notified().now_or_never().is_none(), "it asks for something else");
    assert!(slots.runs()[0].suspension.is_some());
    slot.release();
}

#[test]
fn the_time_of_a_run_goes_on_with_its_permit() {
    const SECOND: Duration = Duration::from_secs(1);
    let clock = TestClock::new();
    let slots = slots_on(Arc::clone(&clock) as SharedClock, 1);
    let ((first, asks), (second, runs)) = (ids(), ids());
    let mut slot = slots.try_take(first, asks, &permit()).expect("it is free");
    clock.advance(SECOND * 2);
    slots.suspend_run(first, asks, 1);
    let _late = slot.leave_run();
    let other = slots.try_take(second, runs, &permit()).expect("the other waits");
    clock.advance(SECOND * 10);
    slots.continue_run(first, asks, 1);
    clock.advance(SECOND * 100);
    assert_eq!(slots.ran(first, asks), Some(SECOND * 2), "the other has the permit");

    other.release();
    clock.advance(SECOND * 3);

    assert_eq!(slots.ran(first, asks), Some(SECOND * 5));
}

/// Of the three permits, other nodes have a share for a while. What runs already goes on.
#[test]
fn as_many_turns_run_as_the_share_of_this_node_allows() {
    let slots = slots(3);
    let [first, second] =
        [ids(), ids()].map(|(conversation, turn)| slots.try_take(conversation, turn, &permit()).expect("it is free"));
    slots.set_limit(&main(), 1);
    assert!(!slots.has_all_permits());

    let mut rows = enqueue(&slots, 2);
    assert!(slots.take_next(&mut rows).is_none());
    assert_eq!(slots.demand(&main()), Demand { held: 2, wanted: 3 }, "one permit of the gateway is free");
    assert!(slots.lack_permits().now_or_never().is_some(), "they wait for permits of other nodes");

    first.release();
    assert!(slots.take_next(&mut rows).is_none(), "one is left of two");
    assert_eq!(slots.demand(&main()), Demand { held: 1, wanted: 3 });
    second.release();
    let next = slots.take_next(&mut rows).expect("a permit is free");
    assert!(slots.take_next(&mut rows).is_none());

    slots.set_limit(&main(), 3);
    assert!(slots.has_all_permits() && slots.take_next(&mut rows).is_some());
    next.0.release();
}

/// Other nodes may have been granted them. It does not matter whether the machine slept.
#[test]
fn permits_are_over_when_nothing_was_granted_for_long() {
    const SECOND: Duration = Duration::from_secs(1);
    let clock = TestClock::new();
    let slots = slots_on(Arc::clone(&clock) as SharedClock, 2);
    let take = || {
        let (conversation, turn) = ids();
        slots.try_take(conversation, turn, &permit())
    };
    slots.granted_until(clock.boottime() + SECOND);
    slots.set_limit(&main(), 2);
    let first = take().expect("it is free");

    clock.set_ahead(SECOND);
    assert!(take().is_none());
    first.release();
    assert!(take().is_none(), "its permit is over, too");
    assert_eq!(slots.demand(&main()), Demand { held: 0, wanted: 0 });

    slots.granted_until(clock.boottime() + SECOND);
    slots.set_limit(&main(), 1);
    take().expect("it was granted anew").release();
}

/// Of rows of which another node has told, one waits at least.
#[test]
fn permits_are_wanted_for_rows_that_are_there() {
    let slots = slots(4);
    slots.set_limit(&main(), 0);
    slots.hear_of(ids().0, &main());
    assert_eq!(slots.demand(&main()).wanted, 1);

    let marks = slots.marks();
    let rows = [ids(), ids()].map(|(conversation, turn)| candidate(conversation, turn));
    slots.note_rows(&marks, rows.into(), 10);
    assert_eq!(slots.demand(&main()).wanted, 2);

    slots.note_rows(&slots.marks(), Vec::new(), 10);
    assert_eq!(slots.demand(&main()).wanted, 0, "other nodes have run them");
}

#[test]
fn a_node_that_stops_keeps_what_its_runs_use() {
    let slots = slots(3);
    let (conversation, turn) = ids();
    let slot = slots.try_take(conversation, turn, &permit()).expect("it is free");

    slots.keep_used(&main());
    assert_eq!(slots.demand(&main()), Demand { held: 1, wanted: 1 });
    slot.release();
    slots.keep_used(&main());
    assert_eq!(slots.demand(&main()), Demand { held: 0, wanted: 0 });
}

/// The run may end before this node learns of it.
#[test]
fn a_turn_has_its_slot_in_the_store_until_that_is_noted() {
    let slots = slots(1);
    let (conversation, turn) = ids();
    let slot = slots.try_take(conversation, turn, &permit()).expect("it is free");
    assert_eq!(slot.stored(), None);
    slot.run_begins();
    assert_eq!(slot.stored(), Some(turn));
    slots.note_freed(conversation, ids().1);
    assert_eq!(slot.stored(), Some(turn));

    slots.note_freed(conversation, turn);
    assert_eq!(slot.stored(), None);
    slot.release();
}

/// No end of a run would give one of them to the turn that waits.
#[test]
fn no_late_run_ends_while_more_run_than_may() {
    let slots = slots(2);
    let [mut first, second] =
        [ids(), ids()].map(|(conversation, turn)| slots.try_take(conversation, turn, &permit()).expect("it is free"));
    let holder = slots.holder(first.conversation()).expect("it is held");
    slots.let_go_on(first.conversation(), holder, 1);
    let late = first.leave_run();
    let mut rows = enqueue(&slots, 1);
    assert_eq!(slots.late_run_before(&mut rows), Some(holder));

    slots.set_limit(&main(), 1);
    assert_eq!(slots.late_run_before(&mut rows), None);

    second.release();
    assert_eq!(slots.late_run_before(&mut rows), Some(holder));
    drop(late);
}

#[test]
fn a_conversation_of_another_node_is_told_of_once() {
    let slots = slots(1);
    assert!(!slots.take_elsewhere());
    slots.note_elsewhere();
    assert!(slots.take_elsewhere() && !slots.take_elsewhere());
}
