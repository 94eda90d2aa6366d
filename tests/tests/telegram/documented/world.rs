//! What the documents assume: a gateway with people, bots, hooks, and what went wrong there.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
};

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, eventually};
use tempfile::TempDir;
use toml_edit::{DocumentMut, Item, TableLike};

use super::blocks::Documented;

/// The token of every hook and API.
const TOKEN: &str = "token-of-these-tests";

/// The token of the operator, as `Gateway` configures it.
const ADMIN_TOKEN: &str = "admin-token-of-the-tests";

/// Commands whose exit code says what they found, and not whether they work.
const REPORTS: [&str; 2] = ["rejoinder doctor", "rejoinder status"];

pub(super) struct World {
    folder: TempDir,
    gateway: Gateway,
    running: Option<Running>,
    backups: AtomicUsize,
}

struct Running {
    double: TelegramDouble,
    _agent: ScriptedAgent,
    ada: Person,
    dan: Person,
    eve: Person,
}

impl World {
    /// Without a gateway that runs: for commands that are only parsed.
    pub(super) fn prepare() -> Self {
        let gateway = Gateway::builder().prepare();
        Self::with(gateway, None)
    }

    pub(super) async fn start() -> Self {
        let double = TelegramDouble::start().await;
        let agent = ScriptedAgent::start(|call, _| {
            let decided = call.last_message().contains("\"decision\"");
            match &*call.said() {
                "pay the rent" if !decided => Script::asks_approval("Pay 800 € to the landlord", Some("bank.pay")),
                _ => Script::replies("Hello."),
            }
        })
        .await;
        let [ada, bob, dan, eve] = ["Ada Lovelace", "Bob", "Dan", "Eve"].map(|name| double.person(name));
        let channels = format!(
            "[channels.telegram.main]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\npoll_timeout = \"5s\"\n\
             streaming = \"off\"\nallow_from = [\"{}\"]\n\
             [channels.webchat.main]\n[channels.api.main]\ntoken = \"{TOKEN}\"\n\
             [channels.webhook.default]\ntoken = \"{TOKEN}\"\n[channels.webhook.test]\ntoken = \"{TOKEN}\"\n\
             [channels.webhook.siri]\ntoken = \"{TOKEN}\"\nconversation = \"siri\"\n\
             [people.grace]\nrole = \"owner\"\nidentities = [\"telegram.main/{}\"]\n",
            double.token(),
            double.url(),
            dan.id(),
            bob.id(),
        );
        let gateway = Gateway::builder().allow_open_turns().config(&channels).config(&agent.section()).start().await;
        bob.says("hello");
        bob.hears("Hello.").await;
        Self::with(gateway, Some(Running { double, _agent: agent, ada, dan, eve }))
    }

    fn with(gateway: Gateway, running: Option<Running>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (programs, home) = (folder.path().join("bin"), folder.path().join("home"));
        for path in [&programs, &home, &folder.path().join("backups")] {
            fs::create_dir(path).expect("a folder");
        }
        let program = |name: &str, script: &str| {
            let path = programs.join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it is written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is executable");
        };
        program("rejoinder", &format!("exec '{}' \"$@\"", rejoinder_tests::binary().display()));
        // It must end, also where it follows a stream.
        program(
            "curl",
            "exec \"$(PATH=/usr/bin:/bin command -v curl)\" --fail-with-body --no-progress-meter --max-time 30 \"$@\"",
        );
        program("sudo", "exec \"$@\"");
        program("git", "echo '+ a line'");
        fs::write(folder.path().join("report.pdf"), "%PDF-1.4 a report").expect("it is written");
        fs::write(folder.path().join("screenshot.png"), b"\x89PNG\r\n\x1a\n").expect("it is written");
        fs::write(folder.path().join("question.txt"), "Is it done?").expect("it is written");
        Self { folder, gateway, running, backups: AtomicUsize::new(0) }
    }

    /// Runs a line as a person would, with what it assumes.
    pub(super) async fn run(&self, command: &Documented) -> Result<(), String> {
        let line = self.filled_in(command).await;
        let token = match &*command.page {
            "webhooks.md" | "siri.md" | "completions.md" => TOKEN,
            _ => ADMIN_TOKEN,
        };
        let is_stream = line.contains("curl -N");
        // A terminal asks instead.
        let line = line.replace("rejoinder forget", "rejoinder forget --yes");
        let line = if is_stream { line.replacen("curl -N", "curl -N --max-time 2", 1) } else { line };
        let allowed: &[i32] = match () {
            () if is_stream => &[28],
            () if REPORTS.iter().any(|report| line.contains(report)) => &[1],
            () => &[],
        };
        self.with_token(token).shell_with(&line, allowed)
    }

    /// Replaces what stands for something.
    async fn filled_in(&self, command: &Documented) -> String {
        let running = self.running.as_ref().expect("the gateway runs");
        let folder = self.folder.path();
        let backups = folder.join("backups").join(self.backups.fetch_add(1, Ordering::Relaxed).to_string());
        let (url, config) = (self.gateway.url(), self.gateway.data().with_file_name("rejoinder.toml"));
        let mut line = command.text.clone();
        let mut replace = |from: &str, to: &str| line = line.replace(from, to);
        replace("https://rejoinder.example.org", &url);
        replace("http://127.0.0.1:7420", &url);
        replace("telegram.main/42", &format!("telegram.main/{}", running.ada.chat()));
        replace("telegram.main/123456789", &format!("telegram.main/{}", running.eve.chat()));
        replace("forget telegram.main/7", &format!("forget telegram.main/{}", running.eve.chat()));
        replace("/etc/rejoinder/rejoinder.toml", &config.display().to_string());
        if command.page == "backup.md" {
            replace("/var/lib/rejoinder", &folder.join("restored").display().to_string());
        }
        replace("/var/lib/rejoinder", &self.gateway.data().display().to_string());
        fs::create_dir_all(&backups).expect("a folder");
        if command.text.contains("rejoinder restore") {
            let newest = backups.join("rejoinder-2026-11-23.tar.gz");
            let made = self.shell(&format!("rejoinder backup {}", newest.display()), &[]);
            made.expect("there is a backup");
        }
        replace("/var/backups", &backups.display().to_string());
        replace("\"$BACKUP\"", &backups.join("before.tar.gz").display().to_string());
        if line.contains("KWRT-7HMA") {
            let code = self.code().await;
            line = line.replace("KWRT-7HMA", &code);
        }
        for stand_in in [" ID", " 019c…"] {
            if line.contains(stand_in) {
                let id = self.id(&line).await;
                line = line.replace(stand_in, &format!(" {id}"));
            }
        }
        line
    }

    /// The code of somebody who asks to be let in: first Ada, then Eve.
    async fn code(&self) -> String {
        let running = self.running.as_ref().expect("the gateway runs");
        let asking = if running.double.bot_texts(running.ada.chat()).is_empty() { &running.ada } else { &running.eve };
        asking.says("let me in");
        eventually("a code", async || {
            let pairings = self.gateway.admin("pairings").await;
            pairings["items"].as_array()?.first()?["code"].as_str().map(ToOwned::to_owned)
        })
        .await
    }

    /// The id of what a command works on.
    async fn id(&self, line: &str) -> String {
        let running = self.running.as_ref().expect("the gateway runs");
        let kind = ["dead-letters", "approvals"].into_iter().find(|kind| line.contains(kind));
        let known = self.ids(kind.unwrap_or("turns")).await;
        if kind == Some("dead-letters") {
            running.dan.says("are you there?");
            running.dan.blocks();
        } else {
            let question = if kind.is_some() { "pay the rent" } else { "hello" };
            self.gateway.hook("test", TOKEN).ask(question).await;
        }
        let new = async || self.ids(kind.unwrap_or("turns")).await.into_iter().find(|id| !known.contains(id));
        let id = eventually("it is there", new).await;
        running.dan.unblocks();
        id
    }

    async fn ids(&self, kind: &str) -> Vec<String> {
        let list = self.gateway.admin(kind).await;
        let id = |item: &serde_json::Value| item["id"].as_str().or(item["turn_id"].as_str()).map(ToOwned::to_owned);
        list["items"].as_array().expect("a list").iter().filter_map(id).collect()
    }

    fn with_token<'a>(&'a self, token: &'a str) -> Shell<'a> {
        Shell { world: self, token }
    }

    /// Runs a line in a shell. `allowed` are the exit codes that are as good as 0.
    pub(super) fn shell(&self, line: &str, allowed: &[i32]) -> Result<(), String> {
        self.with_token(ADMIN_TOKEN).shell_with(line, allowed)
    }

    /// Ends what the commands have begun.
    pub(super) fn end(self) {
        drop(self.running);
    }
}

struct Shell<'a> {
    world: &'a World,
    token: &'a str,
}

impl Shell<'_> {
    fn shell_with(&self, line: &str, allowed: &[i32]) -> Result<(), String> {
        let folder = self.world.folder.path();
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let Output { status, stdout, stderr } = Command::new("timeout")
            .args(["120", "bash", "-o", "pipefail", "-c", line])
            .current_dir(folder)
            .env("PATH", path)
            .env("HOME", folder.join("home"))
            .env("REJOINDER_CONFIG", self.world.gateway.data().with_file_name("rejoinder.toml"))
            .env("REJOINDER_DATA", self.world.gateway.data())
            .env("BACKUP", "before.tar.gz")
            .envs(["TOKEN", "SIRI_TOKEN", "ADMIN_TOKEN"].map(|name| (name, self.token)))
            .stdin(std::process::Stdio::null())
            .output()
            .expect("a shell");
        let code = status.code().unwrap_or(-1);
        if code == 0 || allowed.contains(&code) {
            return Ok(());
        }
        let text = [stdout, stderr].concat();
        Err(format!("{line}\n    exit code {code}: {}", String::from_utf8_lossy(&text).trim().replace('\n', "\n    ")))
    }
}

/// What excerpts of a configuration leave out.
const AROUND: &str = r#"
[people.ada]
identities = ["telegram.main/42"]
[people.bob]
identities = ["telegram.main/43"]
[channels.telegram.main]
token = "1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
[channels.discord.main]
token = "MTIz.abc.def"
[channels.matrix.main]
homeserver = "https://matrix.example.org"
user = "@agent:example.org"
password = "secret-of-these-tests"
[channels.webhook.siri]
token = "token-of-these-tests"
[channels.webhook.test]
token = "token-of-these-tests"
[channels.webhook.github]
hub_secret = "secret-of-these-tests"
deliver_to = "ada"
[channels.webchat.main]
access = "token"
token = "token-of-these-tests"
[routing]
default_agent = "main"
"#;

/// The agents that the documents name.
const AGENTS: [&str; 7] = ["main", "big", "cheap", "coder", "cook", "short-answers", "orchestrator"];

/// Keys without the head of their table, and that head.
const HEADLESS: [(&str, &str); 2] =
    [("recovery_key =", "[channels.matrix.main]"), ("template = \"\"\"", "[channels.webhook.github]")];

/// Excerpts that are no configuration by themselves, by a part of them: a language needs all texts.
const INCOMPLETE: [&str; 2] = ["# … and all the others", "[guard.clarify.what_next.languages.pt]"];

/// Checks a configuration alone, or else within what it leaves out.
pub(super) fn check_config(text: &str) -> Result<(), String> {
    if INCOMPLETE.iter().any(|part| text.contains(part)) {
        return text.parse::<DocumentMut>().map(drop).map_err(|error| error.to_string());
    }
    let head = HEADLESS.iter().find(|(key, _)| text.starts_with(key)).map_or("", |(_, head)| head);
    let text = format!("{head}\n{text}").replace("/run/secrets/", "");
    let Err(alone) = checked(&text) else { return Ok(()) };
    let agent = |name: &&str| {
        format!("[agents.{name}]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n")
    };
    let around = format!("{AROUND}{}", AGENTS.iter().map(agent).collect::<String>());
    let mut whole: DocumentMut = around.parse().expect("TOML");
    let excerpt: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    merge(whole.as_table_mut(), excerpt.as_table());
    checked(&whole.to_string()).map_err(|within| format!("alone: {alone}\n  within what it leaves out: {within}"))
}

fn checked(text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rejoinder.toml");
    // The prompts that the documents read from files.
    for name in ["soul.md", "user.md"] {
        fs::write(folder.path().join(name), "Be kind.").expect("it is written");
    }
    fs::write(&path, text).expect("it is written");
    fs::write(folder.path().join("telegram-token"), "1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").expect("it is written");
    let variables = text.split("env = \"").skip(1).filter_map(|rest| rest.split('"').next());
    let value = |name: &str| match name {
        "TICKETS_SIGNING_SECRET" | "TICKETS_CALLBACK_SECRET" | "SERVICE_SECRET" => {
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
        }
        "TELEGRAM_BOT_TOKEN" => "1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "DISCORD_BOT_TOKEN" => "MTIz.abc.def",
        _ => "secret-of-these-tests",
    };
    let output = Command::new(rejoinder_tests::binary())
        .args(["config", "check", "--config"])
        .arg(&path)
        .arg("--data")
        .arg(data_in(folder.path()))
        .envs(variables.map(|name| (name, value(name))))
        .output()
        .expect("it runs");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn data_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// Adds the keys of `excerpt`, in place of those that are there.
fn merge(whole: &mut dyn TableLike, excerpt: &dyn TableLike) {
    for (key, item) in excerpt.iter() {
        match (whole.get_mut(key).and_then(Item::as_table_like_mut), item.as_table_like()) {
            (Some(inner), Some(table)) => merge(inner, table),
            _ => drop(whole.insert(key, item.clone())),
        }
    }
}
