//! The binary's command line: its output and exit codes.

#[cfg(all(feature = "telegram", feature = "discord", feature = "matrix"))]
mod import;

use std::{
    fs::Permissions,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

/// The binary, in a folder of its own and without the developer's environment.
fn rejoinder(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rejoinder"));
    command.args(arguments).current_dir(folder).env_clear().env("HOME", folder).stdin(Stdio::null());
    command
}

fn outcome(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = rejoinder(folder, arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn it_says_its_version() {
    let (code, short, _) = outcome(folder().path(), &["-V"]);
    let (_, long, _) = outcome(folder().path(), &["--version"]);

    let version = format!("rejoinder {}", env!("CARGO_PKG_VERSION"));
    assert_eq!((code, short), (Some(0), format!("{version}\n")));
    let build = long.strip_prefix(&format!("{version} (")).and_then(|build| build.strip_suffix(")\n"));
    let (commit, day) = build.and_then(|build| build.split_once(", ")).unwrap_or_else(|| panic!("{long}"));
    let is_commit = commit.len() == 10 && commit.chars().all(|digit| digit.is_ascii_hexdigit());
    let is_day = day.len() == 10 && day.split('-').all(|number| number.parse::<u32>().is_ok());
    assert!(is_commit || commit == "unknown", "{long}");
    assert!(is_day || day == "unknown", "{long}");
}

#[test]
fn manual_pages_are_for_everybody() {
    let folder = folder();
    let (code, out, err) = outcome(folder.path(), &["man", "share/man1"]);

    let page = folder.path().join("share/man1/rejoinder-turns-explain.1");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().any(|line| line == "share/man1/rejoinder-turns-explain.1"), "{out}");
    assert_eq!((mode(&page), mode(page.parent().unwrap())), (0o644, 0o755));
}

#[test]
fn a_users_service_has_the_configuration_and_the_data_that_are_found() {
    let folder = folder();
    std::fs::write(folder.path().join("rejoinder.toml"), "").unwrap();

    let (code, unit, err) = outcome(folder.path(), &["service", "print", "--user"]);

    assert_eq!(code, Some(0), "{err}");
    let start = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap_or_else(|| panic!("{unit}"));
    let home = folder.path().display();
    let found = format!(" run --config {home}/rejoinder.toml --data {home}/.local/share/rejoinder ");
    assert!(start.contains(&found), "{start}");
}

#[rstest]
#[case(&["fly"])]
#[case(&["run", "--port", "1"])]
#[case(&["turns", "show", "not an id"])]
#[case(&["init"])]
#[case(&["init", "--model", "m"])]
fn a_wrong_call_ends_with_2(#[case] arguments: &[&str]) {
    let (code, out, err) = outcome(folder().path(), arguments);

    // `turns show` first fails because there is no database.
    let expected = if arguments[0] == "turns" { 1 } else { 2 };
    assert_eq!((code, out.as_str()), (Some(expected), ""), "{err}");
    assert!(!err.is_empty());
}

#[rstest]
#[case(&["run"])]
#[case(&["config", "check"])]
#[case(&["config", "show"])]
fn a_wrong_configuration_ends_with_2_and_names_every_key(#[case] arguments: &[&str]) {
    let folder = folder();
    std::fs::write(folder.path().join("rejoinder.toml"), "[server]\nlistn = 1\ndrain = \"soon\"\n").unwrap();

    let (code, out, err) = outcome(folder.path(), arguments);

    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("server.listn") && err.contains("rejoinder.toml:2"), "{err}");
    assert!(err.contains("server.drain") && err.contains("rejoinder.toml:3"), "{err}");
}

#[test]
fn whoever_looks_at_turns_needs_nothing_of_the_configuration_but_where_they_are() {
    let folder = folder();
    let listing = |config: &str| {
        std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();
        outcome(folder.path(), &["turns", "list"])
    };

    let (without_a_secret, _, missing) = listing("[admin]\ntoken = { env = \"NOT_SET\" }\n");
    let (without_a_place, _, wrong) = listing("[store]\nurl = \"redis:6379\"\n");

    assert_eq!((without_a_secret, without_a_place), (Some(1), Some(2)));
    assert!(missing.contains("no database"), "{missing}");
    assert!(wrong.contains("store.url") && wrong.contains("rejoinder.toml:2"), "{wrong}");
}

#[test]
fn a_configuration_that_was_asked_for_must_be_there() {
    let (code, _, err) = outcome(folder().path(), &["--config", "missing.toml", "config", "check"]);

    assert_eq!(code, Some(2));
    assert!(err.contains("missing.toml") && err.contains("--config"), "{err}");
}

#[test]
fn problems_are_listed_for_programs_too() {
    let folder = folder();
    std::fs::write(folder.path().join("rejoinder.toml"), "[server]\nlistn = 1\n").unwrap();

    let (code, out, _) = outcome(folder.path(), &["config", "check", "--json"]);

    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &checked["ok"]), (Some(2), &false.into()));
    assert_eq!(checked["problems"][0]["key"], "server.listn");
}

/// As the start does.
#[test]
fn the_url_of_a_database_is_checked_as_it_will_be_read() {
    let folder = folder();
    for (parameters, about) in [
        ("hostaddr=10.0.0.1", "`hostaddr` is not known"),
        ("sslmode=allow", "`sslmode=allow` is not supported"),
        ("sslmode=sometimes", "sometimes"),
        ("target_session_attrs=standby", "`target_session_attrs`"),
        ("sslrootcert=/nowhere/ca.pem", "`sslrootcert` cannot be read"),
    ] {
        let config = format!("[store]\nurl = \"postgres://ann:secret@db/chats?{parameters}\"\n");
        std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();

        let (code, _, err) = outcome(folder.path(), &["config", "check"]);

        assert_eq!(code, Some(2), "{err}");
        assert!(
            err.contains("`store.url` cannot be used: ") && err.contains(about) && !err.contains("secret"),
            "{err}"
        );
    }
}

/// All settings of TLS stand in the URL.
#[test]
fn variables_of_other_programs_change_no_tls_of_the_database() {
    let folder = folder();
    let config = "[store]\nurl = \"postgres://ann@db/chats\"\n";
    std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();

    let mut check = rejoinder(folder.path(), &["config", "check"]);
    let checked = check.env("PGSSLMODE", "allow").env("PGSSLROOTCERT", "/nowhere/ca.pem").output().unwrap();

    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn the_configuration_is_shown_without_its_secrets() {
    let folder = folder();
    let config = "[admin]\ntoken = \"a-very-secret-admin-token\"\n[channels.webhook.x]\n\
                  token = [\"also-secret-new-token\", \"also-secret-old-token\"]\n";
    std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();

    for arguments in [&["config", "show"][..], &["config", "show", "--json"]] {
        let (code, out, _) = outcome(folder.path(), arguments);
        assert_eq!(code, Some(0));
        assert!(out.contains("***") && !out.contains("very-secret") && !out.contains("also-secret"), "{out}");
    }
}

#[test]
fn the_manual_can_be_used_as_the_configuration() {
    let folder = folder();
    let (code, manual, _) = outcome(folder.path(), &["config", "default"]);
    std::fs::write(folder.path().join("rejoinder.toml"), manual).unwrap();

    let (checked, _, err) = outcome(folder.path(), &["config", "check"]);

    assert_eq!((code, checked), (Some(0), Some(0)), "{err}");
}

#[test]
fn what_is_open_to_this_machine_only_is_said() {
    let folder = folder();
    let mut command = rejoinder(folder.path(), &["config", "check"]);

    let output = command.env("REJOINDER__SERVER__LISTEN", "0.0.0.0:7420").output().unwrap();

    assert!(output.status.success());
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("channels.webchat.main") && out.contains("access = \"token\""), "{out}");
}

#[test]
fn without_a_database_there_is_no_turn() {
    let folder = folder();

    let (code, out, err) = outcome(folder.path(), &["turns", "list"]);

    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("no database") && err.contains(".local/share/rejoinder"), "{err}");
}

#[test]
fn init_writes_what_can_be_loaded_and_does_not_write_over_it() {
    let folder = folder();
    let named =
        ["init", "--agent", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--api-key-env", "KEY"];
    let init = [&named[..], &["--no-check"]].concat();

    let tried = rejoinder(folder.path(), &named).env("KEY", "k").output().unwrap();
    let is_written = folder.path().join("rejoinder.toml").exists();
    let (code, out, err) = outcome(folder.path(), &init);
    let (again, _, refused) = outcome(folder.path(), &init);
    let (forced, _, _) = outcome(folder.path(), &[&init[..], &["--force"]].concat());
    let checked = rejoinder(folder.path(), &["config", "check"]).env("KEY", "k").output().unwrap();

    assert_eq!((tried.status.code(), is_written), (Some(1), false));
    let why = String::from_utf8(tried.stderr).unwrap();
    assert!(why.contains("cannot be reached") && why.contains("--no-check"), "{why}");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("m at http://127.0.0.1:1/v1") && out.contains("Set KEY"), "{out}");
    assert!(out.contains("It was not checked: --no-check was given."), "{out}");
    assert_eq!((again, forced), (Some(1), Some(0)));
    assert!(refused.contains("--force"), "{refused}");
    assert!(checked.status.success());
}

#[cfg(all(feature = "telegram", feature = "discord"))]
#[test]
fn init_adds_a_bot_to_the_file_of_another() {
    let folder = folder();
    let file = || std::fs::read_to_string(folder.path().join("rejoinder.toml")).unwrap();
    let telegram = ["init", "--yes", "--telegram-token-env", "T_TOKEN"];
    let discord = ["init", "--add", "--discord-token-env", "D_TOKEN", "--discord-allow", "@ada_l"];

    let (without_a_file, ..) = outcome(folder.path(), &discord);
    outcome(folder.path(), &telegram);
    let before = file();
    let (unasked, _, refused) = outcome(folder.path(), &["init", "--yes", "--discord-token-env", "D_TOKEN"]);
    let (code, out, err) = outcome(folder.path(), &discord);
    let after = file();
    let (again, _, twice) = outcome(folder.path(), &discord);
    let (nothing, ..) = outcome(folder.path(), &["init", "--add"]);
    let mut check = rejoinder(folder.path(), &["config", "check"]);
    let checked = check.env("T_TOKEN", "1:a").env("D_TOKEN", "MTIz.abc.def").output().unwrap();

    assert_eq!((without_a_file, unasked, code, again, nothing), (Some(2), Some(1), Some(0), Some(1), Some(2)), "{err}");
    assert!(refused.contains("--add") && refused.contains("--force"), "{refused}");
    assert!(out.contains("Added to rejoinder.toml") && out.contains("restart the gateway"), "{out}");
    assert!(after.starts_with(before.trim_end()) && after.contains("[channels.discord.main]"), "{after}");
    assert!(twice.contains("already has [channels.discord.main]") && file() == after, "{twice}");
    assert!(checked.status.success(), "{checked:?}");
}

#[cfg(feature = "telegram")]
#[test]
fn init_connects_a_bot_and_says_when_its_token_could_not_be_checked() {
    let folder = folder();
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let api = format!("http://{nowhere}");
    let init = [
        "init",
        "--agent",
        "front-desk",
        "--telegram-token-env",
        "BOT_TOKEN",
        "--telegram-allow",
        "@ada_l",
        "--telegram-api-url",
        &api,
    ];
    let with_token = |arguments: &[&str], token: &str| {
        let Output { status, stdout, stderr } =
            rejoinder(folder.path(), arguments).env("BOT_TOKEN", token).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };

    let (refused, _, err) = with_token(&init, "not a token");
    let is_written = folder.path().join("rejoinder.toml").exists();
    let (code, out, _) = with_token(&init, "123456:abc_DEF");
    let (checked, shown, _) = with_token(&["config", "show"], "123456:abc_DEF");

    assert_eq!((refused, is_written), (Some(1), false));
    assert!(err.contains("does not look like a token") && !err.contains("not a token"), "{err}");
    assert_eq!(code, Some(0));
    assert!(out.contains("was not checked") && out.contains("cannot be reached") && !out.contains("abc_DEF"), "{out}");
    assert_eq!(checked, Some(0));
    assert!(shown.contains("@ada_l") && !shown.contains("abc_DEF"), "{shown}");
}

#[cfg(feature = "discord")]
#[tokio::test]
async fn init_connects_an_application_and_says_where_it_is_invited() {
    let server = rejoinder_discord_server::DiscordServer::start().await;
    let init = [
        "init",
        "--agent",
        "front-desk",
        "--discord-token-env",
        "BOT_TOKEN",
        "--discord-allow",
        "@ada_l",
        "--discord-api-url",
        server.api_url(),
        "--force",
    ];
    let folder = folder();
    let with_token = async |arguments: &[&str], token: &str| {
        let mut command = rejoinder(folder.path(), arguments);
        command.env("BOT_TOKEN", token);
        let Output { status, stdout, stderr } =
            tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };

    let (refused, _, err) = with_token(&init, "no.such.token").await;
    let is_written = folder.path().join("rejoinder.toml").exists();
    let (code, out, _) = with_token(&init, server.token()).await;
    server.set(serde_json::json!({ "message_content": false })).await;
    let (_, without, _) = with_token(&init, server.token()).await;
    let (checked, shown, _) = with_token(&["config", "show"], server.token()).await;

    assert_eq!((refused, is_written), (Some(1), false));
    assert!(err.contains("Discord does not know this token") && !err.contains("no.such.token"), "{err}");
    assert_eq!(code, Some(0));
    assert!(out.contains(&format!("client_id={}&scope=bot+applications.commands", server.application_id())), "{out}");
    assert!(out.contains("intent is on") && !out.contains(server.token()), "{out}");
    assert!(without.contains("intent is off"), "{without}");
    assert_eq!(checked, Some(0));
    assert!(shown.contains("ada_l") && !shown.contains(server.token()), "{shown}");
}

#[cfg(feature = "matrix")]
#[tokio::test]
async fn init_connects_an_account_and_keeps_its_password_to_itself() {
    let homeserver = rejoinder_matrix_server::Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let init = [
        "init",
        "--agent",
        "front-desk",
        "--matrix-user",
        &account.user,
        "--matrix-homeserver",
        homeserver.url(),
        "--matrix-password-env",
        "ITS_PASSWORD",
        "--matrix-allow",
        "@ada:example.org",
    ];
    let folder = folder();
    let with_password = async |arguments: &[&str], password: &str| {
        let mut command = rejoinder(folder.path(), arguments);
        command.env("ITS_PASSWORD", password);
        let Output { status, stdout, stderr } =
            tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };

    let (refused, _, err) = with_password(&init, "sesame").await;
    let is_written = folder.path().join("rejoinder.toml").exists();
    let (code, out, _) = with_password(&init, &account.password).await;
    let (checked, shown, _) = with_password(&["config", "show"], &account.password).await;

    assert_eq!((refused, is_written), (Some(1), false));
    assert!(err.contains("the homeserver refused") && !err.contains("sesame"), "{err}");
    assert_eq!(code, Some(0));
    assert!(out.contains(&account.user) && out.contains("invite it"), "{out}");
    assert_eq!(checked, Some(0));
    assert!(shown.contains("@ada:example.org") && shown.contains("password = \"***\""), "{shown}");
}

#[test]
fn init_says_who_answers_when_there_is_no_agent() {
    let folder = folder();

    let (code, out, _) = outcome(folder.path(), &["init", "--agent", "front-desk"]);

    assert_eq!(code, Some(0));
    assert!(out.contains("front desk"), "{out}");
    assert!(folder.path().join("rejoinder.toml").exists());
}

/// The data directory is the same in all folders, so the configuration is, too.
#[test]
fn a_start_in_another_folder_finds_the_configuration_of_the_last_one() {
    let (home, other) = (folder(), folder());
    let data = home.path().join("data");
    outcome(home.path(), &["init", "--agent", "front-desk", "--data", "data"]);
    let elsewhere = |arguments: &[&str]| {
        let mut command = rejoinder(other.path(), arguments);
        let Output { stdout, stderr, .. } = command.arg("--data").arg(&data).output().unwrap();
        String::from_utf8([stdout, stderr].concat()).unwrap()
    };

    let printed = first_start(other.path(), &data);
    let checked = elsewhere(&["doctor"]);
    std::fs::write(other.path().join("rejoinder.toml"), "[log]\nlevel = \"warn\"\n").unwrap();
    let warned = elsewhere(&["doctor"]);

    let file = home.path().join("rejoinder.toml");
    let found = format!("{}, as at the last start", file.display());
    assert!(printed.contains(&found), "{printed}");
    assert!(checked.contains(&found), "{checked}");
    assert!(warned.contains(&format!("last used with another configuration, {}", file.display())), "{warned}");
}

#[test]
fn health_without_a_gateway_is_one_sentence() {
    let folder = folder();
    let output =
        rejoinder(folder.path(), &["health"]).env("REJOINDER__SERVER__LISTEN", "127.0.0.1:1").output().unwrap();

    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*err), (Some(1), "error: no gateway answers at http://127.0.0.1:1\n"));
}

#[test]
fn an_address_that_is_in_use_is_said() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let output = rejoinder(folder.path(), &["run"]).env("REJOINDER__SERVER__LISTEN", &address).output().unwrap();

    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains(&address) && err.contains("in use"), "{err}");
}

#[test]
fn a_data_directory_that_cannot_be_made_is_said() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").unwrap();

    let mut command = rejoinder(folder.path(), &["run", "--data", "file/data"]);
    let output = command.env("REJOINDER__SERVER__LISTEN", "127.0.0.1:0").output().unwrap();

    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("file/data"), "{err}");
}

/// The lines that a start prints to a pipe.
fn first_start(folder: &Path, data: &Path) -> String {
    first_start_with(folder, data, &[])
}

fn first_start_with(folder: &Path, data: &Path, environment: &[(&str, &str)]) -> String {
    let mut command = rejoinder(folder, &["run", "--log-format", "text", "--data"]);
    let command = command.arg(data).env("REJOINDER__SERVER__LISTEN", "127.0.0.1:0").envs(environment.iter().copied());
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut printed = String::new();
    for line in lines {
        printed += &line;
        printed.push('\n');
        if line.trim_start().starts_with("data ") {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    printed
}

#[test]
fn a_start_without_a_terminal_prints_where_the_tokens_are_and_not_the_tokens() {
    let folder = folder();
    let data = folder.path().join("data");

    let printed = first_start(folder.path(), &data);

    for file in ["admin-token", "hook-default-token"] {
        let path = data.join(file);
        let token = std::fs::read_to_string(&path).unwrap();
        assert!(printed.contains(path.to_str().unwrap()), "{printed}");
        assert!(!printed.contains(token.trim()), "{printed}");
    }
}

#[rstest]
#[case::by_its_path(&[], concat!("Run `", env!("CARGO_BIN_EXE_rejoinder"), " init"))]
#[case::by_cargo_run(&[("CARGO_PKG_NAME", "rejoinder")], "Run `cargo run")]
fn a_start_names_the_command_as_it_was_started(#[case] environment: &[(&str, &str)], #[case] words: &str) {
    let folder = folder();

    let printed = first_start_with(folder.path(), &folder.path().join("data"), environment);

    assert!(printed.contains(words), "{printed}");
}

#[test]
fn what_a_start_creates_is_its_users_alone() {
    let folder = folder();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();

    first_start(folder.path(), &data);

    let files: Vec<_> = data.read_dir().unwrap().map(Result::unwrap).collect();
    assert!(files.iter().any(|file| file.file_name() == "rejoinder.db"), "{files:?}");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
}

#[test]
fn what_a_command_creates_is_its_users_alone() {
    let folder = folder();

    let (code, _, err) = outcome(folder.path(), &["init", "--agent", "front-desk"]);

    assert_eq!(code, Some(0), "{err}");
    let mode = folder.path().join("rejoinder.toml").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_data_directory_that_others_can_change_is_refused() {
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();

    let mut command = rejoinder(folder.path(), &["run", "--data", "data"]);
    let output = command.env("REJOINDER__SERVER__LISTEN", "127.0.0.1:0").output().unwrap();

    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains(&format!("chmod 700 {}", data.display())), "{err}");
    assert_eq!(data.read_dir().unwrap().count(), 0);
}
