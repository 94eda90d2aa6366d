//! An agent asks before it acts. The approver is on another channel than the person who waits.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Browser, Gateway, Script, ScriptedAgent, eventually};

use crate::telegram;

const TOKEN: &str = "token-of-these-tests";

/// An agent that asks before it pays.
async fn careful() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| {
        let message = call.last_message();
        if message.contains("\"decision\":\"approved\"") {
            Script::replies("It is paid.")
        } else if message.contains("\"decision\":\"declined") {
            Script::replies("It is not paid.")
        } else if call.said() == "pay the rent" {
            Script::asks_approval("Pay 800 € to the landlord", Some("bank.pay"))
        } else {
            Script::replies("Hello.")
        }
    })
    .await
}

/// G3, N2. The gateway is killed while it waits; the button is pressed twice; and a command declines another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_hook_asks_for_is_approved_on_telegram() {
    let (double, agent) = (TelegramDouble::start().await, careful().await);
    let (grace, ada) = (double.person("Grace"), double.person("Ada"));
    let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
    let hook = format!("[channels.webhook.test]\ntoken = \"{TOKEN}\"\n");
    let mut gateway = Gateway::builder()
        .config(&telegram(&double, ""))
        .config(&hook)
        .config(&owner)
        .config(&agent.section())
        .start()
        .await;
    grace.says("hello");
    grace.hears("Hello.").await;
    ada.says("hello");
    ada.hears("Hello.").await;

    let waits = gateway.hook("test", TOKEN).ask("pay the rent").await;
    assert_eq!((waits.state(), waits.text()), ("deferred", "This waits for approval: Pay 800 € to the landlord"));
    let question = grace.finds("the question", |message| message.ours && message.text.contains("Pay 800 €")).await;
    gateway.kill();
    gateway.restart().await;
    grace.presses(question.id, 0);
    grace.presses(question.id, 0);
    let paid = gateway.hook("test", TOKEN).until_settled(&waits.turn()).await;

    assert_eq!(paid.text(), "It is paid.");
    grace.finds("the decision", |message| message.ours && message.text == "Approved: Pay 800 € to the landlord").await;
    let explained = gateway.explain(&waits.turn());
    assert!(explained.contains("Approved by Grace (telegram.test/"), "{explained}");

    let second = gateway.hook("test", TOKEN).ask("pay the rent").await;
    assert_eq!(second.state(), "deferred");
    let listed = gateway.output_of(&["approvals", "list"]);
    assert!(listed.contains("Pay 800 € to the landlord"), "{listed}");
    let waiting = gateway.admin("approvals").await;
    let id = waiting["items"][0]["id"].as_str().expect("one waits").to_owned();
    let declined = gateway.output_of(&["approvals", "decline", &id, "--note", "not this month"]);
    assert!(declined.contains("Declined"), "{declined}");
    let not_paid = gateway.hook("test", TOKEN).until_settled(&second.turn()).await;
    assert_eq!(not_paid.text(), "It is not paid.");
    let told = agent.calls().last().expect("a call").last_message();
    assert!(told.contains("\"note\":\"not this month\""), "{told}");

    let audit = gateway.admin("audit").await;
    let actions: Vec<_> = audit["items"].as_array().expect("a list").iter().map(|it| it["action"].clone()).collect();
    assert_eq!(actions, ["decline_action", "approve_action"], "{audit}");
    assert_eq!(double.bot_texts(ada.chat()), ["Hello."], "nobody else is asked");
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    assert_eq!(agent.calls().len(), 6, "two greetings, and each payment twice");
}

/// The only approver is revoked while an action waits: the overview says so, until an operator decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_action_that_nobody_is_left_to_approve_is_a_problem() {
    let (double, agent) = (TelegramDouble::start().await, careful().await);
    let grace = double.person("Grace");
    let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
    let hook = format!("[channels.webhook.test]\ntoken = \"{TOKEN}\"\n");
    let channel = telegram(&double, "");
    let gateway =
        Gateway::builder().config(&channel).config(&hook).config(&owner).config(&agent.section()).start().await;
    let rent = gateway.hook("test", TOKEN).ask("pay the rent").await;
    let problems = async || gateway.admin("overview").await["problems"].clone();
    assert_eq!(problems().await, serde_json::json!([]), "Grace may decide");

    let _ = gateway.output_of(&["pairing", "revoke", &format!("telegram.test/{}", grace.id())]);
    let problems = problems().await;
    let status = gateway.run(&["status"]);

    let text = problems[0]["text"].as_str().expect("a problem");
    assert!(text.starts_with("One action waits for approval since "), "{text}");
    assert!(!status.status.success(), "{status:?}");
    let waiting = gateway.admin("approvals").await;
    let _ = gateway.output_of(&["approvals", "approve", waiting["items"][0]["id"].as_str().expect("one waits")]);
    assert_eq!(gateway.hook("test", TOKEN).until_settled(&rent.turn()).await.text(), "It is paid.");
}

/// G3. The person who waits is answered after the operator has decided on the page.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_operator_decides_on_the_page() {
    let (double, agent) = (TelegramDouble::start().await, careful().await);
    let grace = double.person("Grace");
    let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
    let hook = format!("[channels.webhook.test]\ntoken = \"{TOKEN}\"\n");
    let channel = telegram(&double, "");
    let gateway =
        Gateway::builder().config(&channel).config(&hook).config(&owner).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let mut browser = Browser::start("operator-approvals", &gateway.url());

    browser.reaches("nothing waits").await;
    let rent = hook.ask("pay the rent").await;
    browser.resume().await;
    browser.reaches("approved").await;
    assert_eq!(hook.until_settled(&rent.turn()).await.text(), "It is paid.");
    let told = agent.calls().last().expect("a call").last_message();
    assert!(told.contains("\"note\":\"From the joint account\""), "{told}");
    let again = hook.ask("pay the rent").await;
    browser.resume().await;
    browser.reaches("declined").await;
    assert_eq!(hook.until_settled(&again.turn()).await.text(), "It is not paid.");
    browser.resume().await;

    browser.succeeds().await;
}
