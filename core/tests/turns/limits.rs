//! Rate limits of platforms.

use std::time::Duration;

use rejoinder_core::{
    Action, AgentTurn, Rate, Scope, Support,
    conformance::scripted::{Fault, Script, ScriptedChannel},
    store::TurnStatus,
};

use crate::gateway::{GatewaySetup, TestGateway, chat, said, secs};

fn limit(seconds: u64, scope: Scope) -> Fault {
    Fault::Limit { retry_after: secs(seconds), scope }
}

/// H4.
#[tokio::test]
async fn a_limit_on_one_chat_blocks_that_chat_alone_and_costs_no_attempt() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(limit(30, Scope::Conversation));
    let limited = gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.receives(said(&chat("bob"), "hello")).await;
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    gateway.advance(secs(29)).await;
    assert!(gateway.visible(&chat("ada")).is_empty());
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let dossier = gateway.dossier(limited).await;
    assert_eq!(dossier.deliveries[0].attempts, 1);
    assert_eq!(dossier.attempts.len(), 2, "the limited attempt is a row as well");
    gateway.at_rest().await;
}

/// A platform that only ever limits makes a dead letter in the end. The waits it asks for are obeyed for an hour at most.
#[tokio::test]
async fn a_limit_without_an_end_makes_a_dead_letter() {
    for scope in [Scope::Conversation, Scope::Account] {
        let gateway = TestGateway::with(Script::replies("done")).await;
        let endless = limit(1_000_000_000, scope.clone());
        gateway.platform.choose_faults(move |_| Some(endless.clone()));

        let turn = gateway.receives(said(&chat("ada"), "hello")).await;
        assert_eq!(gateway.is_limited(), scope == Scope::Account);
        gateway.advance(secs(23 * 3600)).await;
        assert_eq!(gateway.status(turn).await, TurnStatus::Accepted);
        assert!(gateway.platform.calls() >= 23);
        gateway.advance(secs(2 * 3600)).await;

        assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
        gateway.at_rest().await;
    }
}

/// H4.
#[tokio::test]
async fn a_limit_on_the_account_blocks_every_chat_of_it() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(limit(30, Scope::Account));
    gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.receives(said(&chat("bob"), "hello")).await;
    assert!(gateway.visible(&chat("bob")).is_empty());
    assert_eq!(gateway.platform.calls(), 1);
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    gateway.at_rest().await;
}

/// H5. No burst after a restart.
#[tokio::test]
async fn a_restart_does_not_forget_a_limit() {
    let mut gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(limit(60, Scope::Account));
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("bob"), "hello")).await;

    gateway.restart().await;
    gateway.receives(said(&chat("eve"), "hello")).await;
    gateway.advance(secs(59)).await;
    assert_eq!(gateway.platform.calls(), 1);
    gateway.advance(secs(1)).await;

    for name in ["ada", "bob", "eve"] {
        assert_eq!(gateway.visible(&chat(name)), ["done"]);
    }
    gateway.at_rest().await;
}

/// Repeated limits are waited out, and every attempt has its own number.
#[tokio::test]
async fn limits_in_a_row_are_all_waited_out() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    for _ in 0..3 {
        gateway.platform.queue_fault(limit(5, Scope::Conversation));
    }
    gateway.platform.queue_fault(Fault::NotSent);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let numbers: Vec<u32> = gateway.dossier(turn).await.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn refused_credentials_pause_the_channel() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    gateway.platform.queue_fault(Fault::Unauthorized);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("bob"), "hello")).await;
    assert_eq!(gateway.platform.calls(), 1);
    gateway.advance(secs(120)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(gateway.visible(&chat("bob")), ["done"]);
    gateway.at_rest().await;
}

/// The conversations share the account's rate; answers are sent as it refills.
#[tokio::test]
async fn a_burst_of_answers_goes_out_at_the_accounts_rate() {
    let gateway = GatewaySetup::new()
        .capable(|it| it.account_rate = Some(Rate { per: secs(1), burst: 2 }))
        .always(Script::replies("done"))
        .start()
        .await;
    for number in 0..6 {
        gateway.receives(said(&chat(&format!("c{number}")), "hello")).await;
    }

    assert_eq!(gateway.platform.seen().len(), 2);
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.platform.seen().len(), 3);
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.platform.seen().len(), 6);
    gateway.at_rest().await;
}

/// Of an answer that waits for the account's rate, the attempt is stored by itself. The wait costs no write, and its rows are not read
/// again and again.
#[tokio::test]
async fn a_wait_for_the_accounts_rate_costs_no_write() {
    let work = async |account: Option<Rate>, each: Option<Rate>| {
        let gateway = GatewaySetup::new()
            .capable(|it| (it.account_rate, it.conversation_rate) = (account, each))
            .slots(512)
            .always(Script::replies("done"))
            .start()
            .await;
        for number in 0..400 {
            gateway.accepts(said(&chat(&format!("c{number}")), "hello")).await;
        }
        gateway.advance(secs(20)).await;
        assert_eq!(gateway.platform.seen().len(), 400);
        let work = (gateway.life.writes(), gateway.life.done());
        gateway.at_rest().await;
        work
    };

    let rates = (Rate { per: Duration::from_millis(40), burst: 10 }, Rate { per: secs(1), burst: 1 });
    let (writes, calls) = work(Some(rates.0), Some(rates.1)).await;

    let (fewest, free) = work(None, None).await;
    assert!(writes < fewest + 400, "{writes} writes, and {fewest} without a rate");
    assert!(calls < free * 2, "{calls} calls of the store, and {free} without a rate");
}

/// Nor do the parts of a long answer that wait for their chat's rate.
#[tokio::test]
async fn a_wait_for_a_chats_rate_costs_no_write() {
    let writes = async |rate: Option<Rate>| {
        let text = ["a", "b", "c", "d"].join(ScriptedChannel::CUT);
        let gateway =
            GatewaySetup::new().capable(|it| it.conversation_rate = rate).always(Script::replies(&text)).start().await;
        gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.advance(secs(20)).await;
        assert_eq!(gateway.visible(&chat("ada")).len(), 4);
        let writes = gateway.life.writes();
        gateway.at_rest().await;
        writes
    };
    let mut least = [u64::MAX; 2];

    // Two steps that meet cost one of them a second write, with and without a wait.
    for _ in 0..5 {
        let limited = writes(Some(Rate { per: secs(3), burst: 1 })).await;
        least = [least[0].min(limited), least[1].min(writes(None).await)];
    }

    assert_eq!(least[0], least[1]);
}

/// Answers come before deferrals when both wait for the account's rate.
#[tokio::test]
async fn an_answer_overtakes_the_deferrals_that_wait() {
    let gateway = GatewaySetup::new()
        .capable(|it| it.account_rate = Some(Rate { per: secs(2), burst: 2 }))
        .agent("main", |turn: &AgentTurn| {
            let script = Script::replies("done");
            if turn.message.text == "slow" { script.taking(secs(100)) } else { script }
        })
        .start()
        .await;
    for number in 0..10 {
        gateway.accepts(said(&chat(&format!("c{number}")), "slow")).await;
    }
    gateway.advance(secs(22)).await;

    gateway.receives(said(&chat("ada"), "quick")).await;
    gateway.advance(secs(4)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.advance(secs(200)).await;
    gateway.at_rest().await;
}

/// P0, P3: drafts take all that refills, the answer still goes at once, and so does the first draft of the next one.
#[tokio::test]
async fn an_answer_grows_as_fast_as_its_chat_allows() {
    let gateway = GatewaySetup::new()
        .capable(|it| {
            it.conversation_rate = Some(Rate { per: secs(1), burst: 5 });
            (it.drafts, it.drafts_are_messages, it.draft_interval) = (Support::Full, true, secs(1));
            (it.typing, it.typing_interval) = (Support::Full, secs(4));
        })
        .agent("main", |turn: &AgentTurn| {
            let script = Script::replies(&turn.message.text);
            (0..20).fold(script, |script, _| script.streaming("more ").taking(Duration::from_millis(500)))
        })
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(11)).await;
    let updates = gateway.platform.seen().iter().filter(|seen| matches!(seen.action, Action::Draft { .. })).count();
    assert!(updates >= 8, "{updates} updates in ten seconds");
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.advance(Duration::from_millis(700)).await;
    assert_eq!(gateway.visible(&chat("ada")).len(), 2, "the next answer has not begun to grow");
    gateway.advance(secs(11)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// P0: half of a burst is left for final signals.
#[tokio::test]
async fn drafts_and_typing_leave_half_of_the_budget_to_answers() {
    let gateway = GatewaySetup::new()
        .capable(|it| {
            it.account_rate = Some(Rate { per: secs(3600), burst: 4 });
            (it.drafts, it.draft_interval) = (Support::Full, Duration::from_millis(100));
        })
        .agent("main", |turn: &AgentTurn| {
            let script = Script::replies(&turn.message.text);
            (0..8).fold(script, |script, _| script.streaming("more ").taking(secs(1)))
        })
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(10)).await;
    gateway.receives(said(&chat("bob"), "two")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    assert_eq!(gateway.visible(&chat("bob")), ["two"]);
    assert_eq!(gateway.platform.seen().len(), 4, "two drafts, two answers");
    gateway.at_rest().await;
}
