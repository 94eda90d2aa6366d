use std::collections::BTreeMap;

use rejoinder_config::{ConfigErrors, Environment, Options};
use rejoinder_core::{Cause, ChannelId, Currency, Lifetimes, Price, Rung};
use secrecy::ExposeSecret;

use super::*;

pub(crate) fn load(text: &str, environment: Environment) -> Result<Config, ConfigErrors> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rejoinder.toml");
    std::fs::write(&path, text).unwrap();
    let options = Options { path: Some(path), working_dir: folder.path().to_owned(), environment, remembered: None };
    rejoinder_config::load(&options, &crate::build()).map(|loaded| loaded.config)
}

pub(crate) fn config(text: &str) -> Config {
    load(text, Environment::default()).unwrap()
}

pub(crate) fn parts(text: &str) -> Result<Parts, WiringError> {
    let (config, folder) = (config(text), tempfile::tempdir().unwrap());
    let clock: SharedClock = Arc::new(rejoinder_core::SystemClock);
    super::parts(&Materials::new(&config, folder.path(), TokenMode::Create, &clock, &HashMap::new())?)
}

const CHANNELS: &str = r#"
[channels.webhook.siri]
token = "token-of-these-tests"
agent = "short"
[channels.webhook.door]
token = "token-of-these-tests"
[channels.webchat.main]
[agents.main]
kind = "front-desk"
[agents.short]
kind = "front-desk"
[routing]
default_agent = "main"
"#;

#[test]
fn an_agent_is_given_the_largest_file_that_a_request_may_have() {
    let most = |toml: &str| parts(&format!("{CHANNELS}{toml}")).unwrap().settings.max_attachment;

    assert_eq!((most(""), most("[files]\nmax = \"9 MiB\"\n")), (25 << 20, 9 << 20));
}

#[test]
fn a_key_for_speech_that_can_be_read_on_the_way_is_told() {
    let remarks = |url: &str, key: &str| {
        let server = format!("base_url = \"{url}\", model = \"m\", voice = \"v\"{key}");
        remarks(&config(&format!("[voice]\nspeech = {{ {server} }}\n"))).len()
    };
    let key = ", api_key = \"sk-0123456789\"";

    assert_eq!(remarks("http://speech.example.org/v1", key), 1);
    assert_eq!(remarks("https://speech.example.org/v1", key) + remarks("http://127.0.0.1:8000/v1", key), 0);
    assert_eq!(remarks("http://speech.example.org/v1", ""), 0);
}

#[test]
fn a_ladder_is_the_channels_own_then_its_platforms_then_everyones() {
    let own = "[guard.ladder.\"webhook.siri\".direct]\nerror = [{ react = \"👎\" }]\n";

    let policies = parts(&format!("{CHANNELS}{own}")).unwrap().settings.policies;

    let ladder = |channel: &ChannelId| policies.of(channel, ChatKind::Direct).ladder.clone();
    let (siri, door) = (ChannelId::new("webhook", "siri"), ChannelId::new("webhook", "door"));
    assert_eq!(ladder(&siri).rungs(Cause::Error), [Rung::React("👎".to_owned()), Rung::Say("failed".to_owned())]);
    assert_eq!(ladder(&siri).rungs(Cause::Silent), [Rung::Say("silent".to_owned())]);
    assert_eq!(ladder(&door).rungs(Cause::Error), [Rung::Say("failed".to_owned())]);
    let page = ladder(&ChannelId::new("webchat", "main"));
    assert_eq!(page.rungs(Cause::Silent)[0], Rung::Clarify("what_next".to_owned()));
    let gone = ladder(&ChannelId::new("pager", "gone"));
    assert_eq!(gone.rungs(Cause::Timeout), [Rung::Say("late".to_owned())]);
}

/// A11.
#[test]
fn words_are_the_operators_where_they_are_said() {
    let own = "[guard.templates.\"webhook.siri\"]\nfailed = \"Oh dear.\"\n";

    let templates = parts(&format!("{CHANNELS}{own}")).unwrap().settings.templates;

    assert_eq!(templates.template(&ChannelId::new("webhook", "siri"), None, "failed"), "Oh dear.");
    assert_eq!(
        templates.template(&ChannelId::new("webhook", "door"), None, "failed"),
        "Sorry, that did not work. Please try again."
    );
    assert_eq!(
        templates.template(&ChannelId::new("webchat", "main"), None, "late"),
        "Sorry, that took too long. Please try again."
    );
    assert_eq!(
        templates
            .question(&ChannelId::new("webchat", "main"), None, "what_next")
            .map(|question| question.choices.len()),
        Some(3)
    );
}

#[test]
fn a_channel_has_its_own_agent_or_the_default_one() {
    let parts = parts(CHANNELS).unwrap();

    assert_eq!(&**parts.settings.agent(&ChannelId::new("webhook", "siri")), "short");
    assert_eq!(&**parts.settings.agent(&ChannelId::new("webhook", "door")), "main");
    assert_eq!(parts.agent_infos.iter().filter(|agent| agent.is_default).count(), 1);
    assert_eq!(parts.channels.len(), 3);
}

#[test]
fn how_long_and_in_how_many_parts_is_the_operators() {
    let usual = parts(CHANNELS).unwrap().settings;
    let chosen =
        parts(&format!("{CHANNELS}[outbox]\nlifetime = \"1h\"\nmin_attempts = 3\nmax_parts = 2\n")).unwrap().settings;

    assert_eq!((usual.delivery_lifetime, usual.min_attempts, usual.max_parts), (Duration::from_hours(24), 10, 8));
    assert_eq!((chosen.delivery_lifetime, chosen.min_attempts, chosen.max_parts), (Duration::from_hours(1), 3, 2));
}

#[test]
fn how_long_rows_are_kept_is_the_operators() {
    let days = |days: u64| Some(Duration::from_hours(24 * days));
    let usual = parts(CHANNELS).unwrap().settings.lifetimes;
    let toml = "[retention]\nturns = \"1d12h\"\ndead_letters = \"30d\"\npayloads = \"forever\"\nvoice = \"off\"\n[log]\nkeep = \"1d\"\n";
    let chosen = parts(&format!("{CHANNELS}{toml}")).unwrap().settings.lifetimes;

    let week = days(7);
    assert_eq!(usual, Lifetimes { turns: days(90), dead_letters: None, payloads: week, lines: week, voice: week });
    let turns = Some(Duration::from_hours(36));
    let voice = Some(Duration::ZERO);
    assert_eq!(chosen, Lifetimes { turns, dead_letters: days(30), payloads: None, lines: days(1), voice });
}

#[test]
fn configured_secrets_and_generated_tokens_are_masked() {
    let agent = "[agents.far]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\napi_key = \"sk-12345678\"\n";
    let parts = parts(&format!("{CHANNELS}{agent}")).unwrap();
    let Some(TokenSource::Generated(made)) = &parts.admin_token_source else { panic!("it is generated") };
    let text = format!("sk-12345678 token-of-these-tests {}", made.token.expose_secret());

    assert_eq!(parts.settings.masker.text(text), "•••• •••• ••••");
}

/// What differs between two nodes of one gateway is no other configuration.
#[test]
fn nodes_agree_on_all_but_secrets_and_what_each_has_of_its_own() {
    let digest = |text: &str| super::digest(&config(&format!("{CHANNELS}{text}")));
    let own = "[server]\nlisten = \"127.0.0.1:7421\"\n\
               [admin]\nlisten = \"127.0.0.1:7422\"\ntoken = \"another-token-of-these-tests\"\n\
               [log]\nlevel = \"debug\"\n\
               [store]\nurl = \"sqlite:other.db\"\n";
    let key = |key: &str| {
        format!("[agents.far]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\napi_key = \"{key}\"\n")
    };
    let with_token = "[admin]\ntoken = \"yet-another-token-of-tests\"\n";

    assert_eq!(digest(own), digest(with_token));
    assert_eq!(digest(&key("sk-12345678")), digest(&key("sk-87654321")));
    assert_ne!(digest(""), digest("[limits]\nturns_per_minute = 7\n"));
    assert_ne!(digest(""), digest("[retention]\nturns = \"1d12h\"\n"));
    let proxied = CHANNELS.replace("[channels.webchat.main]\n", "[server]\npublic_url = \"https://example.org\"\n");
    let [one, two] = ["one", "two"].map(|name| {
        let server = format!("[server]\nnode_url = \"http://{name}.internal:7420\"\n");
        super::digest(&config(&proxied.replace("[server]\n", &server)))
    });
    assert_eq!(one, two);
}

#[test]
fn a_price_is_that_of_its_agent() {
    let agent = "[agents.far]\nkind = \"openai\"\nbase_url = \"http://x\"\nmodel = \"m\"\n[agents.far.price]\ninput = 1\noutput = 2\n";

    let prices = parts(&format!("{CHANNELS}{agent}")).unwrap().settings.prices;

    let price = Price { input: 1.0, output: 2.0, currency: Currency::USD };
    assert_eq!(prices, BTreeMap::from([(AgentName::from("far"), price)]));
}

#[cfg(feature = "telegram")]
#[test]
fn people_whom_the_configuration_names_are_known() {
    use rejoinder_core::{Identity, PersonRole, SeedPerson};

    let bot = "[channels.telegram.main]\ntoken = \"123456:abc\"\n";
    let ada = "[people.ada]\nrole = \"owner\"\nidentities = [\"telegram.main/42\"]\n";

    let people = parts(&format!("{bot}{ada}")).unwrap().settings.people;

    let identities = vec![Identity { channel: ChannelId::new("telegram", "main"), id: "42".to_owned() }];
    assert_eq!(
        people,
        [SeedPerson { name: "ada".to_owned(), role: PersonRole::Owner, identities, home: None, language: None }]
    );
}

/// The rules of groups come before the others, and their policies are in the access rules.
#[cfg(feature = "telegram")]
#[test]
fn groups_are_rules_before_the_others() {
    use rejoinder_core::GroupPolicy;

    let bot = "[channels.telegram.main]\ntoken = \"123456:abc\"\n";
    let group = "[channels.telegram.main.groups.\"-5\"]\nlanguage = \"de\"\ngroup_policy = \"all\"\n";
    let rule = "[[routing.rules]]\nname = \"all\"\nlanguage = \"en\"\n";

    let settings = parts(&format!("{bot}{group}{rule}")).unwrap().settings;

    let names: Vec<_> = settings.rules.iter().map(|rule| &*rule.name).collect();
    assert_eq!(names, ["channels.telegram.main.groups.-5", "all"]);
    let access = &settings.access[&ChannelId::new("telegram", "main")];
    assert_eq!(access.groups.get("-5"), Some(&GroupPolicy::All));
}
