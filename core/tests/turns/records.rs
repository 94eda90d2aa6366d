//! What is kept of a run: what the model was shown, its tool calls, its tokens and their cost.

use rejoinder_core::{
    AgentName, AgentTurn, Cost, Currency, Masker, ModelInput, Price, ToolUse, Usage,
    conformance::scripted::{Gate, Script},
    store::RunContent,
};

use crate::gateway::{GatewaySetup, HARD_DEADLINE, chat, said, secs};

const USAGE: Usage = Usage { input_tokens: 1000, output_tokens: 100 };

/// A run that shows its model one message and calls a tool.
fn seeing(script: Script, message: &str) -> Script {
    script
        .showing(r#"{"model":"m"}"#, &format!("[\"{message}\"]"))
        .calling("search", r#"{"q":"cats"}"#, "two cats")
        .consuming(USAGE)
}

fn seen(message: &str) -> RunContent {
    let (name, arguments, result) = ("search".to_owned(), r#"{"q":"cats"}"#.to_owned(), "two cats".to_owned());
    let (settings, messages) = (r#"{"model":"m"}"#.to_owned(), format!("[\"{message}\"]"));
    RunContent {
        input: Some(ModelInput { settings, messages, left_out: 0 }),
        tools: vec![ToolUse { name, arguments, result, duration_ms: Some(12) }],
        tools_left_out: 0,
    }
}

/// I3.
#[tokio::test]
async fn a_run_keeps_what_the_model_was_shown_and_did() {
    let gateway = GatewaySetup::new().always(seeing(Script::replies("done"), "hello")).start().await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.contents.into_iter().collect::<Vec<_>>(), [(1, seen("hello"))]);
    assert_eq!((dossier.runs[0].usage, dossier.runs[0].cost), (Some(USAGE), None), "the agent has no price");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_run_costs_what_its_tokens_cost() {
    let mut setup = GatewaySetup::new().always(seeing(Script::replies("done"), "hello"));
    let price = Price { input: 2.5, output: 10.0, currency: Currency::USD };
    setup.prices.insert(AgentName::from("main"), price);
    let gateway = setup.start().await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let cost = gateway.dossier(turn).await.runs[0].cost.map(|cost| cost.to_string());
    assert_eq!(cost.as_deref(), Some("0.0035 USD"));
    gateway.at_rest().await;
}

/// What the agent says that it cost comes before what its tokens cost, unless it is in another currency than its price.
#[tokio::test]
async fn a_run_costs_what_its_agent_says() {
    for (price, currency, recorded) in [
        (Some("USD"), "USD", "0.25 USD"),
        (Some("EUR"), "USD", "0.0035 EUR"),
        (None, "USD", "0.25 USD"),
        (None, "EUR", "0.25 EUR"),
    ] {
        let cost = Cost::reported(0.25, currency).expect("a cost");
        let script = Script::replies("done").consuming(USAGE).costing(Cost { micros: 7, ..cost }).costing(cost);
        let mut setup = GatewaySetup::new().always(script);
        if let Some(of_price) = price {
            let currency = of_price.parse().expect("a currency");
            setup.prices.insert(AgentName::from("main"), Price { input: 2.5, output: 10.0, currency });
        }
        let gateway = setup.start().await;

        let turn = gateway.receives(said(&chat("ada"), "hello")).await;

        let cost = gateway.dossier(turn).await.runs[0].cost.map(|cost| cost.to_string());
        assert_eq!(cost.as_deref(), Some(recorded), "{price:?}, {currency}");
        gateway.at_rest().await;
    }
}

/// A crash takes what the run has reported with it; the next run has its own.
#[tokio::test]
async fn a_run_that_a_crash_ended_has_no_content_and_the_next_one_has() {
    let script = |turn: &AgentTurn| match turn.attempt {
        1 => seeing(Script::hangs(), "first"),
        _ => seeing(Script::replies("done"), "second"),
    };
    let mut gateway = GatewaySetup::new().agent("main", script).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    gateway.restart().await;

    let dossier = gateway.dossier(turn).await;
    let ends: Vec<_> = dossier.runs.iter().map(|run| run.end.as_deref()).collect();
    assert_eq!(ends, [Some("crashed"), Some("reply")]);
    assert_eq!(dossier.contents.into_iter().collect::<Vec<_>>(), [(2, seen("second"))]);
    gateway.at_rest().await;
}

/// What failed, and what was stopped, is what the operator wants to look into.
#[tokio::test]
async fn a_run_without_an_answer_has_a_content() {
    let gate = Gate::default();
    let script = {
        let gate = gate.clone();
        move |turn: &AgentTurn| match &*turn.message.text {
            "fail" => seeing(Script::fails("no"), "fails"),
            // The tool call is reported while the run is being stopped.
            _ => seeing(Script::hangs().waiting(&gate), "stops").ignoring_cancel(),
        }
    };
    let gateway = GatewaySetup::new().agent("main", script).start().await;
    let failed = gateway.receives(said(&chat("ada"), "fail")).await;
    let stopped = gateway.receives(said(&chat("bob"), "hang")).await;

    gateway.advance(HARD_DEADLINE).await;
    gate.open();
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.dossier(failed).await.contents[&1], seen("fails"));
    assert_eq!(gateway.dossier(stopped).await.contents[&1], seen("stops"));
    gateway.at_rest().await;
}

#[tokio::test]
async fn no_secret_of_the_operator_is_kept() {
    let script = Script::replies("done").showing(r#"{"key":"sk-12345678"}"#, r#"["it is sk-12345678"]"#).calling(
        "fetch",
        r#"{"auth":"sk-12345678"}"#,
        "sk-12345678 is wrong",
    );
    let mut setup = GatewaySetup::new().always(script);
    setup.masker = Masker::new(["sk-12345678"]);
    let gateway = setup.start().await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    let kept = format!("{:?}", gateway.dossier(turn).await.contents[&1]);
    assert!(!kept.contains("12345678") && kept.matches("••••").count() == 4, "{kept}");
    gateway.at_rest().await;
}
