//! `rejoinder import`: real-looking configurations of other gateways, and hostile ones.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rstest::rstest;
use sqlx::{
    ConnectOptions, Connection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};
use tempfile::TempDir;

use super::{folder, outcome, rejoinder};

/// A home directory with these files.
fn home(files: &[(&str, &str)]) -> TempDir {
    let home = folder();
    for (path, content) in files {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    home
}

/// What was written and said. The import succeeded, and what it wrote is valid.
fn imported(home: &Path, from: &str, variables: &[(&str, &str)]) -> (String, String) {
    let (code, said, err) = outcome(home, &["import", from]);
    assert_eq!(code, Some(0), "{said}{err}");
    let checked = rejoinder(home, &["config", "check"]).envs(variables.iter().copied()).output().unwrap();
    let written = fs::read_to_string(home.join("rejoinder.toml")).unwrap();
    assert!(checked.status.success(), "{}\n{written}", String::from_utf8_lossy(&checked.stderr));
    (written, said)
}

fn secrets(home: &Path) -> PathBuf {
    home.join(".local/share/rejoinder")
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// The lines of a section, up to the next one.
fn section<'a>(text: &'a str, header: &str) -> &'a str {
    let start = text.find(&format!("\n{header}\n")).unwrap_or_else(|| panic!("no {header} in:\n{text}"));
    let rest = &text[start + 1..];
    rest.find("\n\n").map_or(rest, |end| &rest[..end])
}

const OPENCLAW: &str = r#"// A household's assistant.
{
  env: { vars: { LITELLM_KEY: "sk-lite-SECRET" } },
  agents: {
    defaults: {
      workspace: "~/.openclaw/workspace",
      userTimezone: "Europe/Vienna",
      model: { primary: "anthropic/claude-sonnet-4-5", fallbacks: ["openai/gpt-5.2"] },
    },
    list: [
      { id: "main", default: true, identity: { name: "Sam" } },
      { id: "Work Desk", model: "house-proxy/llama-3.1-8b" },
    ],
  },
  models: { providers: { "house-proxy": {
    baseUrl: "http://localhost:4000/v1", apiKey: "LITELLM_KEY", api: "openai-completions", models: [{ id: "llama-3.1-8b" }],
  } } },
  bindings: [
    { agentId: "Work Desk", match: { channel: "telegram", peer: { kind: "group", id: "-1001234567890" } } },
    { agentId: "Work Desk", match: { channel: "telegram", peer: { kind: "dm", id: "555" } } },
  ],
  channels: {
    whatsapp: { allowFrom: ["+15555550123"] },
    telegram: {
      botToken: "123456:SECRET-token_1",
      dmPolicy: "allowlist",
      allowFrom: [123456789, "tg:555", "Ada Lovelace"],
      replyToMode: "first",
      groups: {
        "*": { requireMention: true },
        "-1001234567890": { requireMention: false, topics: { "7": { requireMention: true } } },
        "-100999": { enabled: false },
      },
    },
    discord: {
      token: { source: "env", provider: "default", id: "DISCORD_BOT_TOKEN" },
      dm: { allowFrom: ["80351110224678912"] },
      guilds: { "197038439483310086": {
        requireMention: false,
        channels: { "155101607195836416": { allow: true }, help: { allow: true } },
      } },
    },
    matrix: {
      homeserver: "https://matrix.example.org", userId: "@agent:example.org", password: "${MATRIX_PASSWORD}",
      groups: { "!room:example.org": { requireMention: false, users: ["@ada:example.org"] } },
    },
  },
  messages: { queue: { mode: "collect" } },
  session: { reset: { mode: "daily", atHour: 5 } },
  gateway: { auth: { token: "gw-SECRET" } },
}"#;

const OPENCLAW_JOBS: &str = r#"{ "version": 1, "jobs": [
  { "id": "a1", "name": "Morning brief", "enabled": true, "schedule": { "kind": "cron", "expr": "0 7 * * 1-5", "tz": "Europe/Vienna" },
    "payload": { "kind": "agentTurn", "message": "Sum up\nthe night." },
    "delivery": { "mode": "announce", "channel": "telegram", "to": "-1001234567890:topic:7" } },
  { "id": "a2", "name": "Build", "enabled": true, "schedule": { "kind": "every", "everyMs": 3600000 },
    "payload": { "kind": "systemEvent", "text": "Look at the build." } },
  { "id": "a3", "name": "Old", "enabled": true, "schedule": { "kind": "at", "at": "2026-02-01T16:00:00" },
    "payload": { "kind": "agentTurn", "message": "x" },
    "delivery": { "mode": "announce", "channel": "discord", "to": "channel:155101607195836416" } }
] }"#;

#[test]
fn openclaws_configuration_becomes_ours() {
    let home = home(&[(".openclaw/openclaw.json", OPENCLAW), (".openclaw/cron/jobs.json", OPENCLAW_JOBS)]);
    let variables =
        [("DISCORD_BOT_TOKEN", "a.b.c"), ("MATRIX_PASSWORD", "p"), ("ANTHROPIC_API_KEY", "k"), ("LITELLM_KEY", "k")];

    let (written, said) = imported(home.path(), "openclaw", &variables);

    let telegram = section(&written, "[channels.telegram.main]");
    assert_has(
        telegram,
        &[
            "dm_policy = \"allowlist\"",
            "allow_from = [\"123456789\", \"555\"]",
            "group_policy = \"mention\"",
            "token = { file = ",
        ],
    );
    let group = section(&written, "[channels.telegram.main.groups.-1001234567890]");
    assert_has(group, &["group_policy = \"all\"", "agent = \"work-desk\""]);
    assert_has(section(&written, "[channels.telegram.main.groups.-100999]"), &["group_policy = \"disabled\""]);
    // Only the channel that is listed by its id, and everybody there.
    let discord = section(&written, "[channels.discord.main]");
    assert_has(
        discord,
        &["token = { env = \"DISCORD_BOT_TOKEN\" }", "group_policy = \"disabled\"", "\"155101607195836416\"]"],
    );
    assert_has(section(&written, "[channels.discord.main.groups.155101607195836416]"), &["group_policy = \"all\""]);
    let matrix = section(&written, "[channels.matrix.main]");
    assert_has(matrix, &["password = { env = \"MATRIX_PASSWORD\" }", "group_allow_from = [\"@ada:example.org\"]"]);
    assert_has(
        section(&written, "[agents.main]"),
        &[
            "kind = \"anthropic\"",
            "base_url = \"https://api.anthropic.com\"",
            "model = \"claude-sonnet-4-5\"",
            "api_key = { env = \"ANTHROPIC_API_KEY\" }",
        ],
    );
    assert_has(
        section(&written, "[agents.work-desk]"),
        &["base_url = \"http://localhost:4000/v1\"", "agent-work-desk-key"],
    );
    assert_has(
        &written,
        &["default_agent = \"main\"", "time_zone = \"Europe/Vienna\"", "reset_at = \"05:00\"", "mode = \"collect\""],
    );
    let brief = section(&written, "[schedules.morning-brief]");
    assert_has(brief, &["cron = \"0 7 * * 1-5\"", "to = \"telegram.main/-1001234567890/7\"", "the night."]);
    assert_has(&written, &["#[schedules.build]", "#every = \"1h\"", "#[schedules.old]", "its time has passed"]);
    assert_has(
        &said,
        &[
            "channels.whatsapp is no channel of Rejoinder",
            "channels.telegram.replyToMode has no counterpart",
            "lets in `Ada Lovelace`",
            "guilds.197038439483310086.channels.help names a group in another way than by its id",
            "agents.defaults.model.fallbacks belongs to the agent",
            "bindings[1].match could not be taken over",
            "cron/jobs.json.jobs[1] does not run: it does not say which chat it is for",
            "gateway is about OpenClaw's own server",
            "Set DISCORD_BOT_TOKEN to its token for channels.discord.main before you start.",
        ],
    );
}

#[test]
fn a_token_that_is_written_there_goes_into_a_file_of_its_own() {
    let home = home(&[(".openclaw/openclaw.json", OPENCLAW)]);
    let (_, shown, notes) = outcome(home.path(), &["import", "openclaw", "--dry-run"]);
    let is_untouched = !home.path().join("rejoinder.toml").exists() && !secrets(home.path()).exists();

    let variables = [("DISCORD_BOT_TOKEN", "a.b.c"), ("MATRIX_PASSWORD", "p"), ("ANTHROPIC_API_KEY", "k")];
    let (written, said) = imported(home.path(), "openclaw", &variables);

    assert!(is_untouched);
    assert_eq!(shown.trim_end(), written.trim_end());
    for text in [&written, &said, &shown, &notes] {
        assert!(!text.contains("SECRET"), "{text}");
    }
    let file = secrets(home.path()).join("telegram-main-token");
    assert_eq!(fs::read_to_string(&file).unwrap(), "123456:SECRET-token_1\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn accounts_of_one_name_have_names_and_secrets_of_their_own() {
    let config = r#"{
      agents: { list: [{ id: "main", model: "openai/gpt-5.2" }, { id: "desk", model: "openai/gpt-5.2" }] },
      bindings: [{ agentId: "desk", match: { channel: "telegram", accountId: "Bot" } }],
      channels: { telegram: { accounts: {
        Main: { botToken: "1:OTHER" }, default: { botToken: "2:DEFAULT" }, Bot: { botToken: "3:UPPER" }, bot: { botToken: "4:LOWER" },
      } } },
    }"#;
    let home = home(&[(".openclaw/openclaw.json", config)]);

    let (written, _) = imported(home.path(), "openclaw", &[("OPENAI_API_KEY", "k")]);

    let token = |name: &str| fs::read_to_string(secrets(home.path()).join(format!("telegram-{name}-token"))).unwrap();
    let tokens = ["main", "main-2", "bot", "bot-2"].map(token);
    assert_eq!(tokens.each_ref().map(|token| token.trim()), ["2:DEFAULT", "1:OTHER", "3:UPPER", "4:LOWER"]);
    assert_has(section(&written, "[channels.telegram.bot]"), &["telegram-bot-token", "agent = \"desk\""]);
    assert_has(section(&written, "[channels.telegram.bot-2]"), &["telegram-bot-2-token"]);
}

#[test]
fn a_secret_inside_a_text_is_left_out() {
    let config = r#"{
      env: { vars: { SERVER_KEY: "sk-SECRET" } },
      agents: { list: [{ id: "main", model: "house/llama" }] },
      models: { providers: { house: { baseUrl: "http://localhost:4000/${SERVER_KEY}/v1", apiKey: "${SERVER_KEY}" } } },
    }"#;
    let home = home(&[(".openclaw/openclaw.json", config)]);

    let (code, said, err) = outcome(home.path(), &["import", "openclaw"]);

    assert_eq!(code, Some(0), "{said}{err}");
    let written = fs::read_to_string(home.path().join("rejoinder.toml")).unwrap();
    assert!(!written.contains("SECRET") && !said.contains("SECRET"), "{written}{said}");
    assert_has(&said, &["models.providers.house.baseUrl names a variable with a secret"]);
}

#[test]
fn a_model_keeps_the_api_of_its_server() {
    let config = r#"{
      agents: { list: [{ id: "main", model: "mine/gpt" }, { id: "house", model: "proxy/claude" }, { id: "odd", model: "other/x" }] },
      models: { providers: {
        mine: { baseUrl: "http://localhost:4000/v1", api: "openai-responses" },
        proxy: { baseUrl: "http://localhost:4001/v1", api: "anthropic-messages" },
        other: { baseUrl: "http://localhost:4002", api: "bedrock-converse-stream" },
      } },
    }"#;
    let openclaw = home(&[(".openclaw/openclaw.json", config)]);
    let (written, said) = imported(openclaw.path(), "openclaw", &[]);
    assert_has(section(&written, "[agents.main]"), &["kind = \"openai\"", "api = \"responses\""]);
    let house = section(&written, "[agents.house]");
    assert_has(house, &["kind = \"anthropic\"", "base_url = \"http://localhost:4001\""]);
    assert_has(&said, &["its server speaks bedrock-converse-stream"]);

    let model = "model:\n  default: gpt-5\n  base_url: http://localhost:4000/v1\n  api_mode: codex_responses\n";
    let hermes = home(&[(".hermes/config.yaml", model)]);
    let (written, _) = imported(hermes.path(), "hermes", &[]);
    assert_has(section(&written, "[agents.main]"), &["kind = \"openai\"", "api = \"responses\""]);
}

#[test]
fn nothing_is_written_over_unless_forced() {
    let home = home(&[(".clawdbot/clawdbot.json", "{ channels: { telegram: { botToken: '1:new' } } }")]);
    let token = secrets(home.path()).join("telegram-main-token");
    fs::create_dir_all(secrets(home.path())).unwrap();
    fs::write(&token, "1:mine\n").unwrap();

    let (kept, _, other) = outcome(home.path(), &["import", "openclaw", "--output", "new.toml"]);
    let is_kept = fs::read_to_string(&token).unwrap() == "1:mine\n" && !home.path().join("new.toml").exists();
    fs::write(home.path().join("rejoinder.toml"), "# mine\n").unwrap();
    let (refused, _, err) = outcome(home.path(), &["import", "openclaw"]);
    let (forced, _, _) = outcome(home.path(), &["import", "openclaw", "--force"]);

    assert_eq!((kept, refused, forced), (Some(1), Some(1), Some(0)), "{other}{err}");
    assert!(is_kept);
    assert_has(&other, &["already has another secret", "nothing was written"]);
    assert_has(&err, &["rejoinder.toml already exists", "--force"]);
    assert_eq!(fs::read_to_string(&token).unwrap(), "1:new\n");
    assert_has(&fs::read_to_string(home.path().join("rejoinder.toml")).unwrap(), &["[channels.telegram.main]"]);
}

const HERMES: &str = "
_config_version: 50
model:
  default: anthropic/claude-opus-4.6
  provider: auto
  base_url: https://openrouter.ai/api/v1
timezone: Europe/Vienna
telegram:
  allowed_chats: [-1001234567890]
  free_response_chats: '-1001234567890'
discord:
  require_mention: false
  ignored_channels:
    - 155101607195836416
  reactions: true
platforms:
  telegram:
    extra: { status_indicator: true }
session_reset: { mode: both, at_hour: 3 }
terminal: { backend: docker }
";

const HERMES_ENV: &str = "
# keys
OPENROUTER_API_KEY=sk-or-SECRET
TELEGRAM_BOT_TOKEN=\"123456:SECRET_two\"
TELEGRAM_ALLOWED_USERS=123456789, 555  # people
TELEGRAM_HOME_CHANNEL=123456789
export DISCORD_BOT_TOKEN='aaa.bbb.SECRET'
SLACK_BOT_TOKEN=xoxb-SECRET
MATRIX_HOMESERVER=https://matrix.example.org
MATRIX_ACCESS_TOKEN=syt_SECRET
";

const HERMES_JOBS: &str = r#"{ "jobs": [
  { "id": "a1b2", "name": "Daily briefing", "prompt": "Sum up the news.", "schedule": { "kind": "cron", "expr": "0 9 * * *" },
    "skills": ["news"], "deliver": "telegram", "repeat": { "times": null, "completed": 42 }, "state": "scheduled", "enabled": true },
  { "id": "c3", "name": "Disk", "prompt": "", "schedule": { "kind": "interval", "minutes": 30 }, "deliver": "local",
    "no_agent": true, "script": "disk.sh", "state": "scheduled", "enabled": true },
  { "id": "d4", "name": "Plants", "prompt": "Ask.", "schedule": { "kind": "interval", "minutes": 2880 }, "deliver": "origin",
    "origin": { "platform": "telegram", "chat_id": "-1001234567890", "thread_id": "7" }, "state": "scheduled", "enabled": true }
] }"#;

#[test]
fn hermes_configuration_becomes_ours() {
    let home =
        home(&[(".hermes/config.yaml", HERMES), (".hermes/.env", HERMES_ENV), (".hermes/cron/jobs.json", HERMES_JOBS)]);

    let (written, said) = imported(home.path(), "hermes", &[]);

    let telegram = section(&written, "[channels.telegram.main]");
    assert_has(
        telegram,
        &[
            "dm_policy = \"allowlist\"",
            "allow_from = [\"123456789\", \"555\"]",
            "group_policy = \"disabled\"",
            "telegram-main-token",
        ],
    );
    assert_has(section(&written, "[channels.telegram.main.groups.-1001234567890]"), &["group_policy = \"all\""]);
    let discord = section(&written, "[channels.discord.main]");
    assert_has(discord, &["dm_policy = \"pairing\"", "group_policy = \"all\"", "auto_thread = true"]);
    assert_has(
        section(&written, "[channels.discord.main.groups.155101607195836416]"),
        &["group_policy = \"disabled\""],
    );
    assert_has(&written, &["#[channels.matrix.main]", "the account's user id is not written there"]);
    let agent = section(&written, "[agents.main]");
    assert_has(
        agent,
        &["base_url = \"https://openrouter.ai/api/v1\"", "model = \"anthropic/claude-opus-4.6\"", "agent-main-key"],
    );
    assert_has(
        section(&written, "[schedules.daily-briefing]"),
        &["to = \"telegram.main/123456789\"", "cron = \"0 9 * * *\""],
    );
    assert_has(section(&written, "[schedules.plants]"), &["every = \"2d\"", "to = \"telegram.main/-1001234567890/7\""]);
    assert_has(&written, &["#[schedules.disk]", "it runs a script", "reset_at = \"03:00\""]);
    assert!(!written.contains("SECRET") && !said.contains("SECRET"), "{written}{said}");
    assert_has(
        &said,
        &[
            ".env[SLACK_BOT_TOKEN] is not used by Rejoinder",
            "cron/jobs.json.jobs[0] loads skills",
            "discord.reactions has no counterpart",
            "platforms.telegram.extra.status_indicator has no counterpart",
            "terminal belongs to the agent",
        ],
    );
}

#[test]
fn jobs_from_before_openclaws_database_do_not_run() {
    let home = home(&[
        (".openclaw/openclaw.json", "{ channels: { telegram: { botToken: '1:a' } } }"),
        (".openclaw/cron/jobs.json", OPENCLAW_JOBS),
        (".openclaw/state/openclaw.sqlite", ""),
    ]);

    let (written, said) = imported(home.path(), "openclaw", &[]);

    assert!(!written.contains("\n[schedules."), "{written}");
    assert_has(
        &said,
        &[
            "state/openclaw.sqlite could not be read: its tables are not as expected",
            "openclaw cron list",
            "is left over",
        ],
    );
}

const WITH_TELEGRAM: &str = "{ channels: { telegram: { botToken: '1:a' } } }";

const STATE: &str = ".openclaw/state";

/// Makes OpenClaw's database, and keeps it open as OpenClaw does: what it wrote is in its log.
async fn openclaws_database(home: &Path) -> SqliteConnection {
    fs::create_dir_all(home.join(STATE)).unwrap();
    let options = SqliteConnectOptions::new().filename(home.join(STATE).join("openclaw.sqlite"));
    let options = options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(include_str!("openclaw.sql")).execute(&mut connection).await.unwrap();
    connection
}

/// The files of OpenClaw's state, and what they hold.
fn state(home: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(home.join(STATE)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    files.sort();
    files
}

#[tokio::test]
async fn jobs_in_openclaws_database_become_schedules() {
    let left_over = r#"{ "version": 1, "jobs": [
      { "id": "9677e10f-2578-45a1-b10d-5a808da91974", "name": "Morning brief" },
      { "id": "a2", "name": "Build", "schedule": { "kind": "every", "everyMs": 3600000 }, "payload": { "message": "Look." },
        "delivery": { "channel": "telegram", "to": "42" } }
    ] }"#;
    let home = home(&[(".openclaw/openclaw.json", WITH_TELEGRAM), (".openclaw/cron/jobs.json", left_over)]);
    let running = openclaws_database(home.path()).await;
    let before = state(home.path());

    let (written, said) = imported(home.path(), "openclaw", &[]);

    assert_eq!(before.len(), 3, "there is a log with its index");
    assert!(state(home.path()) == before, "the files are not as they were");
    running.close().await.unwrap();
    let brief = section(&written, "[schedules.morning-brief]");
    assert_has(
        brief,
        &[
            "cron = \"0 7 * * 1-5\"",
            "time_zone = \"Europe/Vienna\"",
            "to = \"telegram.main/-1001234567890/7\"",
            "prompt = \"Sum up the night.\"",
        ],
    );
    let evening = section(&written, "[schedules.evening]");
    assert_has(evening, &["every = \"6h\"", "to = \"telegram.main/-1001234567890/7\""]);
    let off = ["later", "quiet", "watch", "disk", "build"].map(|name| format!("#[schedules.{name}]"));
    assert_has(&written, &off.each_ref().map(String::as_str));
    assert!(!written.contains("dream") && !written.contains("morning-brief-2"), "{written}");
    assert_has(
        &said,
        &[
            "cron has jobs of OpenClaw itself",
            "state/openclaw.sqlite.cron_jobs[2] does not run: it does not say which chat it is for",
            "state/openclaw.sqlite.cron_jobs[3] does not run: it is switched off there",
            "state/openclaw.sqlite.cron_jobs[7] does not run: it runs a program, not an agent",
            "cron/jobs.json is left over: since 2026.6.1 OpenClaw keeps its jobs in state/openclaw.sqlite",
            "cron/jobs.json.jobs[1] does not run: it is from before OpenClaw kept jobs in a database",
        ],
    );
}

#[rstest]
#[case::newer("pragma user_version = 99", "is from a newer OpenClaw", true)]
#[case::unknown_schedule(
    "update cron_jobs set job_json = json_set(job_json, '$.schedule.kind', 'moon')",
    "its time cannot be read",
    false
)]
#[case::no_json(
    "update cron_jobs set job_json = 'x' where name = 'Evening'",
    "cron_jobs[5] is no job that can be read",
    true
)]
#[case::large(
    "update cron_jobs set job_json = printf('%.*c', 300000, '[') where name = 'Evening'",
    "cron_jobs[5] is no job",
    true
)]
#[case::other_stores(
    "update cron_jobs set store_key = '/x' where name = 'Evening'",
    "has jobs of several stores",
    true
)]
#[case::other_columns("alter table cron_jobs rename job_json to job", "its tables are not as expected", false)]
#[case::endless(
    "drop table cron_jobs; create view cron_jobs as with recursive n (i) as (select 1 union all select i + 1 from n)
    select i as store_key, i as sort_order, i as job_json from n",
    "it holds more than 4194304 bytes",
    false
)]
#[tokio::test]
async fn what_is_odd_in_openclaws_database_is_said(
    #[case] change: &'static str,
    #[case] why: &str,
    #[case] is_brief_there: bool,
) {
    let home = home(&[(".openclaw/openclaw.json", WITH_TELEGRAM)]);
    let mut connection = openclaws_database(home.path()).await;
    sqlx::raw_sql(change).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let before = state(home.path());

    let (written, said) = imported(home.path(), "openclaw", &[]);

    assert_has(&said, &[why]);
    assert_eq!(written.contains("\n[schedules.morning-brief]"), is_brief_there, "{written}");
    assert!(state(home.path()) == before, "the files are not as they were");
}

#[test]
fn a_damaged_database_of_openclaw_is_said() {
    let files = [(".openclaw/openclaw.json", WITH_TELEGRAM), (".openclaw/state/openclaw.sqlite", "no database at all")];
    let home = home(&files);

    let (_, said) = imported(home.path(), "openclaw", &[]);

    assert_has(&said, &["state/openclaw.sqlite could not be read: it is damaged, or no database"]);
}

/// Nothing lets in more people than the other gateway does.
#[rstest]
#[case::nobody_by_name("{ groupAllowFrom: ['Ada'] }", &["group_policy = \"disabled\""], &[])]
#[case::open_without_everyone("{ dmPolicy: 'open', allowFrom: ['5'] }", &["dm_policy = \"allowlist\""], &[])]
#[case::unknown_policy("{ dmPolicy: 'friends', groupPolicy: 'friends' }", &["dm_policy = \"disabled\"", "group_policy = \"disabled\""], &[])]
#[case::listed_groups("{ allowFrom: ['5'], groups: { '-1': {} } }", &["group_policy = \"disabled\"", "[channels.telegram.main.groups.-1]\ngroup_policy = \"mention\""], &["group_allow_from"])]
#[case::a_list_of_its_own("{ allowFrom: ['5', '6'], groups: { '*': {}, '-1': { allowFrom: ['5'] } } }", &["[channels.telegram.main.groups.-1]\ngroup_policy = \"disabled\""], &[])]
#[case::one_open_group("{ allowFrom: ['5'], groups: { '*': {}, '-1': { groupPolicy: 'open' } } }", &["group_allow_from = [\"5\", \"-1\"]"], &[])]
#[case::direct_chats_off("{ dmPolicy: 'disabled' }", &["dm_policy = \"disabled\"", "group_policy = \"disabled\""], &[])]
fn nobody_else_is_let_in(#[case] telegram: &str, #[case] has: &[&str], #[case] lacks: &[&str]) {
    let account = telegram.replacen('{', "{ botToken: '1:a', ", 1);
    let home = home(&[(".openclaw/openclaw.json", &format!("{{ channels: {{ telegram: {account} }} }}"))]);

    let (written, _) = imported(home.path(), "openclaw", &[]);

    assert_has(&written, has);
    assert!(lacks.iter().all(|part| !written.contains(part)), "{written}");
}

/// What cannot be used is a comment, and the file is valid.
#[rstest]
#[case::empty_table("{}", &[])]
#[case::wrong_types("{ channels: { telegram: { botToken: '1:a', allowFrom: 'x', groups: [], dmPolicy: 3 } }, agents: 5, bindings: {} }", &["agents belongs to the agent", "dmPolicy"])]
#[case::token_is_a_table("{ channels: { telegram: { botToken: { a: 1 } } } }", &["channels.telegram.botToken is a table without `source` and `id`"])]
#[case::token_is_a_program("{ channels: { telegram: { botToken: { source: 'exec', provider: 'vault', id: 'x' } } } }", &["none is run here"])]
#[case::token_is_no_token("{ channels: { telegram: { botToken: 'YOUR_TOKEN' } } }", &["channels.telegram.main is not complete", "must be the token from BotFather"])]
#[case::the_same_bot_twice("{ channels: { telegram: { accounts: { a: { botToken: '1:a' }, b: { botToken: '1:a' } } } } }", &["a bot can be used by one channel only"])]
#[case::unknown_server("{ agents: { defaults: { model: 'nowhere/m' } } }", &["the address of the model's server is not known"])]
#[case::control_characters("{ channels: { telegram: { botToken: '1:a', '\\u001b[2J\\n[x]': 1 } } }", &["has no counterpart"])]
fn what_cannot_be_used_is_a_comment(#[case] config: &str, #[case] said_parts: &[&str]) {
    let home = home(&[(".moltbot/moltbot.json", config)]);

    let (_, said) = imported(home.path(), "openclaw", &[]);

    assert_has(&said, said_parts);
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[rstest]
#[case::empty(".openclaw/openclaw.json", "", "openclaw.json is not JSON5: EOF parsing value")]
#[case::broken(".openclaw/openclaw.json", "{\n  a: 1\n  b: SECRET\n}", "openclaw.json:3:3 is not JSON5")]
#[case::no_table(".openclaw/openclaw.json", "[1]", "the file is not a table")]
#[case::includes_itself(".openclaw/openclaw.json", "{ $include: './openclaw.json' }", "break the circle")]
#[case::includes_a_stranger(".openclaw/openclaw.json", "{ $include: '/etc/hostname' }", "which is not in")]
#[case::includes_nothing(".openclaw/openclaw.json", "{ $include: './gone.json5' }", "includes ./gone.json5")]
#[case::broken_yaml(".hermes/config.yaml", "a: [1\nb: SECRET", "config.yaml:")]
#[case::yaml_list(".hermes/config.yaml", "- 1", "the file is not a table")]
fn a_file_that_cannot_be_read_is_named_with_the_place(#[case] file: &str, #[case] content: &str, #[case] why: &str) {
    let home = home(&[(file, content)]);

    let from = if file.contains("hermes") { "hermes" } else { "openclaw" };
    let (code, out, err) = outcome(home.path(), &["import", from]);

    assert_eq!((code, &*out), (Some(1), ""), "{err}");
    assert!(err.contains(why) && !err.contains("SECRET"), "{err}");
    assert!(!home.path().join("rejoinder.toml").exists());
}

#[test]
fn hostile_sizes_end_in_an_error() {
    let deep_json = "[".repeat(200_000);
    let deep_yaml = format!("a: {}", "[".repeat(200_000));
    let aliases = (1..40).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let previous = level - 1;
        format!("{text}a{level}: &a{level} [{}]\n", vec![format!("*a{previous}"); 9].join(", "))
    });
    let home = home(&[
        (".openclaw/openclaw.json", &deep_json),
        ("deep/config.yaml", &deep_yaml),
        ("aliases/config.yaml", &aliases),
        ("env/.env", "no assignment SECRET"),
    ]);
    let large = home.path().join("large.json");
    fs::File::create(&large).unwrap().set_len(100 * 1024 * 1024).unwrap();

    for (from, path, why) in [
        ("openclaw", ".openclaw", "nested too deep"),
        ("openclaw", "large.json", "is larger than 4 MiB"),
        ("openclaw", "/dev/zero", "is not a file"),
        ("hermes", "deep", "is not YAML"),
        ("hermes", "aliases", "is not YAML"),
        ("hermes", "env", ".env:1 is not NAME=value"),
        ("hermes", "nowhere/config.yaml", "there is no"),
    ] {
        let (code, _, err) = outcome(home.path(), &["import", from, path]);
        assert_eq!(code, Some(1), "{path}: {err}");
        assert!(err.contains(why) && !err.contains("SECRET"), "{path}: {err}");
    }
    let (code, _, err) = outcome(folder().path(), &["import", "hermes"]);
    assert_eq!(code, Some(1));
    assert_has(&err, &["no configuration of Hermes Agent is in", "name its file or folder"]);
}

#[test]
fn what_a_file_includes_belongs_to_it() {
    let config = "{ channels: { $include: ['./parts/channels.json5'], telegram: { allowFrom: ['6'] } } }";
    let part = "{ telegram: { botToken: '1:a', dmPolicy: 'allowlist', allowFrom: ['5'] } }";
    let home = home(&[(".openclaw/openclaw.json", config), (".openclaw/parts/channels.json5", part)]);

    let (written, _) = imported(home.path(), "openclaw", &[]);

    assert_has(section(&written, "[channels.telegram.main]"), &["allow_from = [\"5\", \"6\"]"]);
}

#[test]
fn a_job_of_openclaw_keeps_its_topic_and_runs_no_program() {
    let jobs = r#"{ "jobs": [
      { "name": "Topic", "schedule": { "kind": "every", "everyMs": 60000 }, "payload": { "kind": "agentTurn", "message": "x" },
        "delivery": { "mode": "announce", "channel": "telegram", "to": "-100", "threadId": 7 } },
      { "name": "Watch", "schedule": { "kind": "every", "everyMs": 60000 }, "payload": { "kind": "agentTurn", "message": "x" },
        "trigger": { "script": "y" }, "delivery": { "mode": "announce", "channel": "telegram", "to": "42" } },
      { "name": "Disk", "schedule": { "kind": "every", "everyMs": 60000 }, "payload": { "kind": "command", "argv": ["df"] },
        "delivery": { "mode": "announce", "channel": "telegram", "to": "42" } }
    ] }"#;
    let config = "{ channels: { telegram: { botToken: '1:a' } } }";
    let home = home(&[(".openclaw/openclaw.json", config), (".openclaw/cron/jobs.json", jobs)]);

    let (written, said) = imported(home.path(), "openclaw", &[]);

    assert_has(section(&written, "[schedules.topic]"), &["to = \"telegram.main/-100/7\""]);
    assert_has(&written, &["#[schedules.watch]", "#[schedules.disk]"]);
    assert_has(&said, &["it runs only when a script there says so", "it runs a program, not an agent"]);
}
