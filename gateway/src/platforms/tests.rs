use rejoinder_config::testing::every_key_has_a_comment;

use super::*;
use crate::wiring::{
    remarks,
    tests::{config, load, parts},
};

/// The manual's lines without `#` are a valid configuration, equal to the defaults.
#[test]
fn the_whole_manual_is_the_configuration_without_a_file() {
    let manual = crate::build().manual();

    every_key_has_a_comment(&manual);
    assert_eq!(config(&manual).to_toml_redacted(), config("").to_toml_redacted());
    for platform in all() {
        assert!(manual.contains(&format!("[channels.{}.", platform.section().name)), "{}", platform.name());
    }
}

#[test]
fn without_a_file_there_are_a_chat_page_a_hook_an_api_and_the_front_desk() {
    let parts = parts("").unwrap();

    let channels: Vec<_> = parts.channels.iter().map(|channel| channel.channel().to_string()).collect();
    assert_eq!(channels, ["webchat.main", "webhook.default", "api.main"]);
    assert_eq!((parts.front_page, parts.agent_infos[0].kind), (Some("/chat"), "front-desk"));
}

/// Covers each platform that is left out of this build; the default build leaves out none.
#[test]
fn a_platform_that_was_left_out_is_named() {
    for name in LEFT_OUT {
        let text = format!("[channels.{name}.main]\ntoken = \"token-of-these-tests\"\n");
        let error = load(&text, rejoinder_config::Environment::default()).unwrap_err().to_string();

        assert!(error.contains(&format!("`channels.{name}`")), "{error}");
        assert!(error.contains(&format!("the feature `{name}`")), "{error}");
    }
}

#[test]
fn a_platform_is_here_or_left_out() {
    let mut names: Vec<_> = sections().iter().map(|section| section.name).collect();
    names.sort_unstable();
    // Nobody is told of the one for developers where it is not built.
    names.retain(|name| *name != "example");

    assert_eq!(names, ["api", "discord", "matrix", "telegram", "webchat", "webhook", "words"]);
}

/// Every account option begins with the platform's name, so that two platforms never share an option.
#[test]
fn options_are_named_after_their_platform() {
    for platform in all() {
        for option in platform.setup().map(Setup::options).into_iter().flatten() {
            let name = option.get_long().unwrap_or_default();
            assert!(name.starts_with(&format!("{}-", platform.section().name)), "{name}");
            assert_eq!(name, option.get_id().as_str());
        }
    }
}

#[test]
fn what_others_cannot_reach_is_remarked_on() {
    let chat = |server: &str, chat: &str| config(&format!("[server]\n{server}\n[channels.webchat.main]\n{chat}\n"));
    let (everywhere, token) = ("listen = \"0.0.0.0:7420\"", "access = \"token\"\ntoken = { generate = true }");
    let open = remarks(&chat(everywhere, ""));
    let without_tls = remarks(&chat(everywhere, token));
    let public = format!("{everywhere}\npublic_url = \"https://example.org\"");
    let behind_tls = remarks(&chat(&format!("{public}\ntrusted_proxies = [\"127.0.0.1\"]"), token));
    let behind_somebody = remarks(&chat(&public, token));
    let closed = remarks(&chat("", ""));

    assert_eq!((open.len(), without_tls.len(), behind_tls.len(), closed.len()), (2, 1, 0, 0));
    let admin = remarks(&config("[admin]\nlisten = \"0.0.0.0:7421\"\n"));
    assert!(admin.len() == 1 && admin[0].contains("admin.listen"), "{admin:?}");
    assert!(open[0].contains("TLS") && open[1].contains("access = \"token\""), "{open:?}");
    assert!(matches!(&*behind_somebody, [remark] if remark.contains("trusted_proxies")), "{behind_somebody:?}");
}

#[cfg(all(feature = "discord", feature = "telegram"))]
#[test]
fn what_can_be_read_on_the_way_is_remarked_on() {
    let remarks_on = |host: &str| {
        remarks(&config(&format!(
            "[agents.main]\nkind = \"openai\"\nbase_url = \"http://{host}/v1\"\nmodel = \"m\"\napi_key = \"k\"\n\
             [agents.main.mcp.far]\nurl = \"http://{host}/mcp\"\nheaders = {{ Authorization = \"Bearer k\" }}\n\
             [channels.webhook.siri]\ntoken = \"a-long-enough-token-of-a-hook\"\ncallback_url = \"http://{host}/back\"\n\
             callback_secret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n\
             [channels.telegram.main]\ntoken = \"123456:abc\"\napi_url = \"http://{host}\"\nallow_from = [1]\n\
             [channels.discord.main]\ntoken = \"MTIz.abc.def\"\napi_url = \"http://{host}\"\nallow_from = [1]\n"
        )))
    };
    let (near, far) = (remarks_on("127.0.0.1:1"), remarks_on("10.0.0.1:1"));

    assert_eq!(near, [] as [String; 0]);
    assert_eq!(far.len(), 5, "{far:?}");
    for key in [
        "agents.main.base_url",
        "agents.main.mcp.far.url",
        "channels.webhook.siri.callback_url",
        "channels.telegram.main.api_url",
        "channels.discord.main.api_url",
    ] {
        assert!(far.iter().any(|remark| remark.starts_with(key) && remark.contains("on the way")), "{far:?}");
    }
}

#[test]
fn an_agent_without_a_key_may_be_anywhere() {
    let plain = config("[agents.main]\nkind = \"openai\"\nbase_url = \"http://ollama:11434/v1\"\nmodel = \"m\"\n");

    assert_eq!(remarks(&plain), [] as [String; 0]);
}

#[cfg(feature = "telegram")]
#[test]
fn a_list_that_lets_everyone_in_is_remarked_on() {
    for policy in ["pairing", "allowlist"] {
        let bot = format!("token = \"123456:abc\"\nallow_from = [\"*\"]\ndm_policy = \"{policy}\"\n");

        let remarks = remarks(&config(&format!("[channels.telegram.main]\n{bot}")));

        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].starts_with("channels.telegram.main.allow_from has \"*\""), "{remarks:?}");
    }
}

#[cfg(all(feature = "discord", feature = "matrix", feature = "telegram"))]
#[test]
fn platforms_stand_beside_each_other() {
    let bots = "[channels.telegram.main]\ntoken = \"123456:abc\"\nmax_attachment = \"64 MiB\"\n\
                [channels.discord.main]\ntoken = \"MTIz.abc.def\"\n\
                [channels.matrix.main]\nhomeserver = \"http://127.0.0.1:1\"\nuser = \"@agent:example.org\"\npassword = \"p\"\n";
    let parts =
        parts(&format!("{bots}[channels.webhook.siri]\ntoken = \"token-of-these-tests\"\n[channels.webchat.main]\n"))
            .unwrap();

    let channels: Vec<_> = parts.channels.iter().map(|channel| channel.channel().platform().to_owned()).collect();
    assert_eq!(channels, ["webchat", "webhook", "telegram", "discord", "matrix"]);
    let accounts: Vec<_> = parts.notices.iter().map(|notice| notice.account().map(ToString::to_string)).collect();
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(accounts, [None, None, some("discord.main"), some("matrix.main"), some("telegram.main")]);
    assert_eq!((parts.settings.access.len(), parts.settings.max_attachment), (3, 64 << 20));
}
