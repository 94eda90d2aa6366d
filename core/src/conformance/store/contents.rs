//! Checks of what is kept of runs: what the model was shown, its tool calls, the cost.

use std::{sync::Arc, time::Duration};

use super::{
    subject::Subject,
    turn::{NEVER, Turn, at, chat, done, said},
};
use crate::{
    model::{
        ids::TurnId,
        run::{Cost, Currency, ModelInput, RunContent, ToolUse, Usage},
        settings::Lifetimes,
    },
    ports::store::{
        Store,
        housekeeping::{Cutoffs, Removal},
        record::{Dossier, Remark},
        transition::{RunEnd, Transition},
    },
};

fn content(settings: &str, message: &str) -> RunContent {
    let call = ToolUse {
        name: "search".to_owned(),
        arguments: "{}".to_owned(),
        result: "\"nothing\"".to_owned(),
        duration_ms: Some(3),
    };
    let input = ModelInput { settings: settings.to_owned(), messages: format!("[\"{message}\"]"), left_out: 2 };
    RunContent { input: Some(input), tools: vec![call], tools_left_out: 1 }
}

/// A run that ended, `seconds` after the start.
fn ended(turn: &Turn, number: u32, content: Option<RunContent>, seconds: u64) -> Transition {
    let usage = content.as_ref().map(|_| Usage { input_tokens: 12, output_tokens: 3 });
    let cost = content.as_ref().map(|_| Cost { micros: 1_234_567, currency: Currency::USD });
    let (end, content) = ("reply".to_owned(), content.map(Arc::new));
    let run_end = RunEnd { usage, cost, content, ..RunEnd::new(turn.id, number, at(seconds), end, None) };
    Transition { runs_ended: vec![run_end], ..Transition::default() }
}

async fn run(store: &dyn Store, turn: &Turn, number: u32, content: Option<RunContent>, seconds: u64) {
    done(store, Transition { runs_started: vec![turn.run(number)], ..Transition::default() }).await;
    done(store, ended(turn, number, content, seconds)).await;
}

async fn dossier(store: &dyn Store, turn: TurnId) -> Dossier {
    store.dossier(turn).await.expect("dossiers are read").expect("the turn is there")
}

async fn rows(store: &dyn Store, table: &str) -> u64 {
    store.stats(&NEVER).await.expect("stats are read").rows[table]
}

/// I3. What the model of each run was shown is read back with the turn, and equal settings are stored once.
pub async fn what_a_run_was_shown_is_recorded(subject: &mut impl Subject) {
    let store = subject.store();
    let first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let second = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let contents =
        [content("{\"model\":\"m\"}", "one"), content("{\"model\":\"m\"}", "two"), content("{\"model\":\"n\"}", "é")];
    let only_tools = RunContent { input: None, ..content("", "") };
    run(&*store, &first, 1, Some(contents[0].clone()), 3).await;
    run(&*store, &first, 2, None, 4).await;
    run(&*store, &first, 3, Some(only_tools.clone()), 4).await;
    run(&*store, &second, 1, Some(contents[1].clone()), 5).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    run(&*store, &second, 2, Some(contents[2].clone()), 6).await;
    run(&*store, &second, 3, Some(contents[0].clone()), 6).await;

    let found = dossier(&*store, first.id).await;
    assert_eq!(found.contents.into_iter().collect::<Vec<_>>(), [(1, contents[0].clone()), (3, only_tools)]);
    let costs: Vec<_> = found.runs.iter().map(|run| run.cost.map(|cost| cost.micros)).collect();
    assert_eq!(costs, [Some(1_234_567), None, Some(1_234_567)]);
    let found = dossier(&*store, second.id).await;
    let [one, two, three] = contents;
    assert_eq!(found.contents.into_iter().collect::<Vec<_>>(), [(1, two), (2, three), (3, one)]);
    assert_eq!((rows(&*store, "run_contents").await, rows(&*store, "run_settings").await), (5, 2));
    let unknown = TurnId::new(at(9));
    let tools = store.used_tools(&[second.id, unknown, first.id]).await.expect("tools are read");
    let of_turns = [first.id, first.id, second.id, second.id, second.id];
    assert_eq!(tools, of_turns.map(|turn| (turn, "search".to_owned())));
}

/// The settings of a transition that failed are stored with the next one.
pub async fn what_failed_to_be_stored_is_not_taken_for_known(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    done(&*store, Transition { runs_started: vec![turn.run(1)], ..Transition::default() }).await;
    let shown = content("{\"a\":1}", "one");
    let good = ended(&turn, 1, Some(shown.clone()), 3);
    let nobody = Remark { turn: TurnId::new(at(1)), at: at(2), kind: "x".to_owned(), detail: String::new() };
    let bad = Transition { remarks: vec![nobody], ..good.clone() };

    store.commit(bad).await.expect_err("there is no such turn");
    done(&*store, good).await;

    assert_eq!(dossier(&*store, turn.id).await.contents[&1], shown);
}

/// What a run was shown is removed with the payloads, a while after the run; the run, its tokens and its cost stay.
pub async fn what_a_run_was_shown_goes_with_the_payloads(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let later = Turn::accept(&*store, said(&chat("a"), "2")).await;
    run(&*store, &turn, 1, Some(content("{\"a\":1}", "one")), 3).await;
    run(&*store, &later, 1, Some(content("{\"b\":1}", "two")), 5).await;
    // An early turn that runs again much later.
    run(&*store, &turn, 2, Some(content("{\"c\":1}", "three")), 50).await;
    let cutoffs = Cutoffs { payloads: at(50), ..NEVER };
    let hour = Duration::from_hours(1);
    assert_eq!(store.stats(&cutoffs).await.expect("stats are read").expired.contents, 2);

    let mut steps = Vec::new();
    while let Some(removal) = store.expired(&cutoffs, 10).await.expect("expired rows are read") {
        steps.push(removal.clone());
        store.remove(removal).await.expect("rows are removed");
    }

    let expected = Removal::Contents(vec![(turn.id, 1), (later.id, 1)]);
    assert!(steps.contains(&expected), "{steps:?}");
    let found = dossier(&*store, turn.id).await;
    assert_eq!(found.contents.into_keys().collect::<Vec<_>>(), [2]);
    assert!(found.runs[0].usage.is_some() && found.runs[0].cost.is_some());
    assert_eq!(rows(&*store, "run_contents").await, 1);
    let lifetimes = Lifetimes { payloads: Some(hour), ..Lifetimes::default() };
    assert_eq!(store.next_expiry(&lifetimes).await.expect("rows are read"), Some(at(50) + hour));
}

/// Settings stay as long as a run refers to them, and are written again when they are used after that.
pub async fn settings_go_with_the_last_run_that_used_them(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let shown = content("{\"a\":1}", "one");
    run(&*store, &turn, 1, Some(shown.clone()), 3).await;
    run(&*store, &turn, 2, Some(shown.clone()), 4).await;

    store.remove(Removal::Contents(vec![(turn.id, 1)])).await.expect("rows are removed");
    assert_eq!(dossier(&*store, turn.id).await.contents[&2], shown);
    store.remove(Removal::Contents(vec![(turn.id, 2)])).await.expect("rows are removed");
    assert_eq!(rows(&*store, "run_settings").await, 0);
    run(&*store, &turn, 3, Some(shown.clone()), 5).await;

    assert_eq!(dossier(&*store, turn.id).await.contents[&3], shown);
}
