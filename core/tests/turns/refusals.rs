//! Outcomes that a runtime refuses are in the records of their turns.

use rejoinder_core::{Clock, Refusal, TurnId, conformance::scripted::Script};

use crate::gateway::{TestGateway, chat, said};

#[tokio::test]
async fn refused_outcomes_are_in_the_record_of_their_turn_up_to_a_number() {
    let gateway = TestGateway::with(Script::replies("done")).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let refusals = gateway.engine().runtimes().refusals();

    let nobodys = TurnId::new(gateway.clock.now());
    refusals.note(Refusal { turn: nobodys, detail: "`reply` for no turn".to_owned() });
    for number in 0..30 {
        refusals.note(Refusal { turn, detail: format!("`reply` {number}") });
    }
    gateway.settle().await;

    let dossier = gateway.dossier(turn).await;
    let refused = dossier.remarks.iter().filter(|remark| remark.kind == "refused");
    let refused: Vec<_> = refused.map(|remark| remark.detail.clone()).collect();
    assert_eq!(refused, (0..20).map(|number| format!("`reply` {number}")).collect::<Vec<_>>());
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}
