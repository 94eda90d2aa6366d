//! What `rejoinder doctor --fix` fixes, and what it leaves as it is.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use rejoinder_tests::{Gateway, eventually, free_port};
use serde_json::Value;

use crate::{TOKEN, hook};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode is set");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Lets every user look into the folder that holds the data directory.
fn let_others_in(gateway: &Gateway) {
    set_mode(gateway.data().parent().expect("the gateway's folder"), 0o755);
}

/// A gateway that has never run, with an empty data directory of this mode.
fn prepared(config: &str, data_mode: u32) -> Gateway {
    let gateway = Gateway::builder().config(config).prepare();
    fs::create_dir(gateway.data()).expect("the data directory is created");
    set_mode(&gateway.data(), data_mode);
    let_others_in(&gateway);
    gateway
}

/// The exit code of `rejoinder doctor`, and its findings that are not ok or that it has fixed.
fn doctor(gateway: &Gateway, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = gateway.run(&[["doctor", "--json"].as_slice(), arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let code = output.status.code();
    assert_eq!(report["ok"], code == Some(0), "{report:#}");
    let findings = report["findings"].as_array().expect("it has findings");
    let told = findings.iter().filter(|finding| finding["verdict"] != "ok" || finding["fixed"] == true);
    (code, told.cloned().collect())
}

/// Whether one of the findings has this verdict, was fixed or not, and holds these words.
fn has(findings: &[Value], verdict: &str, fixed: bool, words: &[&str]) -> bool {
    findings.iter().any(|finding| {
        let text = format!("{} {}", finding["what"], finding["advice"]);
        finding["verdict"] == verdict && finding["fixed"] == fixed && words.iter().all(|word| text.contains(word))
    })
}

#[test]
fn a_data_directory_that_others_can_change_is_closed_with_fix_and_not_without() {
    let gateway = prepared("", 0o777);

    let (code, found) = doctor(&gateway, &[]);
    let left = mode(&gateway.data());
    let (code_then, fixed) = doctor(&gateway, &["--fix"]);

    assert_eq!((code, left), (Some(1), 0o777), "{found:#?}");
    assert!(has(&found, "wrong", false, &["can write", "chmod 700", "rejoinder doctor --fix"]), "{found:#?}");
    assert_eq!((code_then, mode(&gateway.data())), (Some(0), 0o700), "{fixed:#?}");
    assert!(has(&fixed, "ok", true, &["can write", "was 777 and is 700"]), "{fixed:#?}");
}

#[test]
fn what_was_fixed_is_said_once() {
    let gateway = prepared("", 0o755);

    let first = gateway.output_of(&["doctor", "--fix"]);
    let second = gateway.output_of(&["doctor", "--fix"]);

    assert_eq!(first.lines().filter(|line| line.starts_with("fixed    data ")).count(), 1, "{first}");
    assert_eq!(second, gateway.output_of(&["doctor"]));
}

#[test]
fn a_secret_that_every_user_can_read_is_closed_with_fix_and_not_without() {
    let gateway = prepared("[channels.webhook.test]\ntoken = { file = \"secret\" }", 0o700);
    let secret = gateway.data().with_file_name("secret");
    fs::write(&secret, TOKEN).expect("the secret is written");
    set_mode(&secret, 0o644);

    let (_, found) = doctor(&gateway, &[]);
    let left = mode(&secret);
    let (_, fixed) = doctor(&gateway, &["--fix"]);

    assert!(left == 0o644 && has(&found, "warning", false, &["chmod o=", "rejoinder doctor --fix"]), "{found:#?}");
    assert!(mode(&secret) == 0o640 && has(&fixed, "ok", true, &["was 644 and is 640"]), "{fixed:#?}");
}

#[test]
fn what_is_not_fixed_says_why_and_remains_a_failure() {
    let gateway = prepared("", 0o777);
    fs::create_dir(gateway.data().join("photos")).expect("a folder is created");

    let (code, found) = doctor(&gateway, &["--fix"]);

    assert_eq!((code, mode(&gateway.data())), (Some(1), 0o777), "{found:#?}");
    assert!(has(&found, "wrong", false, &["chmod 700", "It was not fixed", "photos"]), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_a_folder_that_stays_open_the_gateways_files_are_closed() {
    let mut gateway = Gateway::builder().config(&hook("")).start().await;
    assert!(gateway.stop().await.success());
    let (data, database) = (gateway.data(), gateway.data().join("rejoinder.db"));
    let (token, other) = (data.join("hook-other-token"), data.join("photos"));
    fs::create_dir(&other).expect("a folder is created");
    fs::write(&token, TOKEN).expect("a token is written");
    let_others_in(&gateway);
    for (path, mode) in [(&data, 0o755), (&database, 0o644), (&token, 0o666)] {
        set_mode(path, mode);
    }

    let (code, found) = doctor(&gateway, &[]);
    let (code_then, fixed) = doctor(&gateway, &["--fix"]);

    assert_eq!((code, code_then), (Some(1), Some(0)), "{found:#?} {fixed:#?}");
    assert!(has(&found, "wrong", false, &["hook-other-token", "chmod 600", "rejoinder doctor --fix"]), "{found:#?}");
    assert_eq!([mode(&data), mode(&database), mode(&token)], [0o755, 0o600, 0o600], "{fixed:#?}");
    assert!(has(&fixed, "ok", true, &["rejoinder.db", "was 644 and is 600"]), "{fixed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_address_of_a_killed_gateway_is_removed_and_that_of_a_running_one_stays() {
    let mut gateway = Gateway::builder().config(&hook("")).start().await;
    let address = gateway.data().join("address");

    let (_, running) = doctor(&gateway, &["--fix"]);
    gateway.kill();
    let (_, found) = doctor(&gateway, &[]);
    let was_left = address.exists();
    let (code, fixed) = doctor(&gateway, &["--fix"]);

    assert!(!running.iter().any(|finding| finding["fixed"] == true), "{running:#?}");
    assert!(was_left && has(&found, "warning", false, &["no gateway runs", "rejoinder doctor --fix"]), "{found:#?}");
    assert_eq!((code, address.exists()), (Some(0), false), "{fixed:#?}");
    assert!(has(&fixed, "ok", true, &["no gateway runs", "It is removed"]), "{fixed:#?}");
}

/// The commands are run from another shell, which does not have its variables.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_gateway_that_its_environment_told_to_listen_elsewhere_is_found() {
    let mut gateway = Gateway::builder().config(&hook("")).prepare();
    let listen = format!("127.0.0.1:{}", free_port());
    gateway.spawn(&[("REJOINDER__SERVER__LISTEN", &listen)]);

    let running = format!("running at http://{listen}: ready");
    let findings = eventually("it is found", async || {
        let output = gateway.run(&["doctor"]);
        Some(String::from_utf8(output.stdout).expect("text")).filter(|found| found.contains(&running))
    })
    .await;

    assert!(!findings.contains("nothing answers"), "{findings}");
}
