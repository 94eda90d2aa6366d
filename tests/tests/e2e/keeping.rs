//! What is kept, moved and erased: backups, and what is stored about a person.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rejoinder_tests::{Gate, Gateway, Script, ScriptedAgent, eventually};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{TOKEN, hook, operate::cookie_of};

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is read").map(|entry| entry.expect("it is read").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The files below a folder that contain these words.
fn with_words(folder: &Path, words: &str) -> Vec<PathBuf> {
    let contains = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(words.len()).any(|window| window.eq_ignore_ascii_case(words.as_bytes()))
    };
    files(folder).into_iter().filter(contains).collect()
}

/// Ten callers ask all the time. What was answered before the backup is in it, and what was open is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_a_running_gateway_is_restored() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = Arc::new(Gateway::builder().config(&hook("")).config(&agent.section()).start().await);
    let made = gateway.output_of(&["tokens", "create", "--role", "viewer", "--json"]);
    let token = serde_json::from_str::<Value>(&made).expect("JSON")["token"].as_str().expect("a token").to_owned();
    let (done, mut callers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for caller in 0..10 {
        let (hook, done) = (gateway.hook("test", TOKEN), Arc::clone(&done));
        callers.spawn(async move {
            while !done.load(Ordering::SeqCst) {
                hook.ask(&format!("caller {caller}")).await;
            }
        });
    }
    let before = gateway.hook("test", TOKEN).ask("kept").await;
    let file = gateway.data().with_file_name("backup.tar.gz");
    let file = file.to_str().expect("a path");

    let said = gateway.output_of(&["backup", file]);
    done.store(true, Ordering::SeqCst);
    callers.join_all().await;

    assert!(said.contains("checked"), "{said}");
    let again = gateway.run(&["backup", file]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("name a new file"), "{again:?}");
    let mut other = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    let said = other.output_of(&["restore", file]);
    assert!(said.contains("Restored"), "{said}");
    assert!(other.output_of(&["restore", file]).contains("Restored"), "it is done, and may be asked for again");
    other.restart().await;
    let again = other.run(&["restore", file]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("something is stored here already"), "{again:?}");
    assert_eq!(other.hook("test", TOKEN).result(&before.turn(), 0).await.text(), "echo kept");
    assert_eq!(other.hook("test", TOKEN).ask("goes on").await.text(), "echo goes on");
    let turns = other.admin_request(Method::GET, "turns", Some(&token)).send().await.expect("it answers");
    assert_eq!(turns.status(), StatusCode::OK, "tokens are restored, too");
    eventually("what was open is answered", async || other.open_turns().is_empty().then_some(())).await;
}

/// Who was signed out since the backup stays so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restore_signs_everybody_out_and_says_whom_it_lets_in() {
    let gateway = Gateway::builder().config(&hook("")).start().await;
    let signed_in = gateway.admin_request(Method::POST, "session", None).send().await.expect("it answers");
    let cookie = cookie_of(&signed_in);
    let _ = gateway.output_of(&["tokens", "create", "--role", "viewer"]);
    let file = gateway.data().with_file_name("backup.tar.gz");
    let file = file.to_str().expect("a path");
    let _ = gateway.output_of(&["backup", file]);

    let mut other = Gateway::builder().config(&hook("")).prepare();
    let said = other.output_of(&["restore", file]);
    other.restart().await;

    let expected = "It lets in one token (rejoinder tokens list) and no people (rejoinder people list)";
    assert!(said.contains(expected), "{said}");
    let with = async |gateway: &Gateway| {
        let url = format!("{}/admin/api/turns", gateway.url());
        gateway.http().get(url).header("cookie", &cookie).send().await.expect("it answers").status()
    };
    assert_eq!((with(&gateway).await, with(&other).await), (StatusCode::OK, StatusCode::UNAUTHORIZED));
}

/// A restored copy beside the real gateway must not read its configuration.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_path_of_the_configuration_is_no_part_of_a_backup() {
    let gateway = Gateway::builder().config(&hook("")).start().await;
    let file = gateway.data().with_file_name("backup.tar.gz");
    let file = file.to_str().expect("a path");
    let _ = gateway.output_of(&["backup", file]);
    let other = Gateway::builder().config(&hook("")).prepare();
    fs::create_dir_all(other.data()).expect("it is made");
    let own = other.data().join("config-path");
    fs::write(&own, "/elsewhere/rejoinder.toml").expect("it is written");

    let said = other.output_of(&["restore", file]);

    assert!(said.contains("Restored"), "{said}");
    assert!(gateway.data().join("config-path").exists());
    assert_eq!(fs::read_to_string(&own).expect("it is read"), "/elsewhere/rejoinder.toml");
}

/// Turns are removed while backups are made. Each backup has whole turns, and no more than there were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_and_removal_do_not_disturb_each_other() {
    let agent = ScriptedAgent::echoing().await;
    let short = "[retention]\nturns = \"1s\"\npayloads = \"1s\"\n";
    let config = [hook(""), agent.section(), short.to_owned()].concat();
    let gateway = Gateway::builder().config(&config).start().await;
    let (hook, mut found) = (gateway.hook("test", TOKEN), 0);
    for round in 1..=4 {
        for turn in 0..40 {
            hook.ask(&format!("{round} {turn}")).await;
        }
        let file = gateway.data().with_file_name(format!("backup-{round}.tar.gz"));
        let file = file.to_str().expect("a path").to_owned();
        assert!(gateway.output_of(&["backup", &file]).contains("checked"));

        let other = Gateway::builder().config(&config).prepare();
        assert!(other.output_of(&["restore", &file]).contains("Restored"));
        let stats: Value = serde_json::from_str(&other.output_of(&["store", "stats", "--json"])).expect("JSON");
        let rows = |table: &str| stats["rows"][table].as_u64().expect("a number");
        assert!(rows("turns") <= 40 * round, "{stats}");
        assert_eq!(rows("turns"), rows("deliveries"), "{stats}");
        found += rows("turns");
    }
    assert!(found > 0, "all turns were removed before each backup");
    let removed = async || gateway.turns("settled").is_empty().then_some(());
    eventually("all turns are removed", removed).await;
}

/// A backup with flipped bits, a cut one and something else are refused, and nothing is changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_damaged_backup_is_refused() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    gateway.hook("test", TOKEN).ask("hello").await;
    let file = gateway.data().with_file_name("backup.tar.gz");
    let said = gateway.output_of(&["backup", file.to_str().expect("a path")]);
    assert!(said.contains("checked"), "{said}");
    let whole = fs::read(&file).expect("it is read");
    let mut flipped = whole.clone();
    // A single bit may be one of those that say where the same zeros were before.
    let middle = whole.len() / 2;
    flipped[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0xff);

    let other = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    for (bytes, why) in [
        (flipped.as_slice(), "damaged"),
        (&whole[..whole.len() / 2], "damaged or incomplete"),
        (b"something else", "it is no backup of Rejoinder"),
    ] {
        fs::write(&file, bytes).expect("it is written");
        let refused = other.run(&["restore", file.to_str().expect("a path")]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(why), "{why}: {said}");
        assert_eq!(files(&other.data()), Vec::<PathBuf>::new(), "{why}");
    }
}

/// What [`killed_gateway`] was asked before its backup.
const KEPT: &str = "kept";

/// A gateway whose log holds turns after its backup, and the backup.
async fn killed_gateway(agent: &ScriptedAgent) -> (Gateway, String) {
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).allow_open_turns().start().await;
    gateway.hook("test", TOKEN).ask(KEPT).await;
    let file = gateway.data().with_file_name("backup.tar.gz").to_str().expect("a path").to_owned();
    let _ = gateway.output_of(&["backup", &file]);
    for turn in 0..5 {
        gateway.hook("test", TOKEN).ask(&format!("later {turn}")).await;
    }
    gateway.kill();
    (gateway, file)
}

fn said_by(gateway: &Gateway) -> Vec<String> {
    let turns = gateway.turns("settled");
    turns.iter().map(|turn| turn["text"].as_str().expect("a text").to_owned()).collect()
}

/// A4.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_does_what_a_refused_restore_says_gets_the_backup() {
    let agent = ScriptedAgent::echoing().await;
    let (mut gateway, file) = killed_gateway(&agent).await;
    fs::remove_file(gateway.data().join("rejoinder.db")).expect("it is removed");

    let refused = gateway.run(&["restore", &file]);

    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let advice = said.lines().find(|line| line.contains("mkdir ")).unwrap_or_else(|| panic!("no advice: {refused:?}"));
    let followed = std::process::Command::new("sh").args(["-c", advice]).status().expect("it runs");
    assert!(!refused.status.success() && followed.success(), "{said}");
    assert!(gateway.output_of(&["restore", &file]).contains("Restored"));
    gateway.restart().await;
    assert_eq!(said_by(&gateway), [KEPT]);
}

/// A4.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_makes_no_empty_database_beside_the_log_of_one_that_is_gone() {
    let agent = ScriptedAgent::echoing().await;
    let (mut gateway, _) = killed_gateway(&agent).await;
    let (database, moved) = (gateway.data().join("rejoinder.db"), gateway.data().join("moved"));
    fs::rename(&database, &moved).expect("it is moved");

    let started = gateway.run(&["run"]);
    let doctor = gateway.run(&["doctor"]);

    for said in [String::from_utf8_lossy(&started.stderr), String::from_utf8_lossy(&doctor.stdout)] {
        assert!(said.contains("its log"), "{said}");
    }
    assert!(!started.status.success() && !doctor.status.success() && !database.exists());
    fs::rename(&moved, &database).expect("it is moved back");
    gateway.restart().await;
    assert_eq!(said_by(&gateway).len(), 6);
}

/// The hidden folders that backups and restores leave.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("it is read").path());
    entries
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".rejoinder-")))
        .collect()
}

/// A4: whatever step of a restore it is killed at, the next start finds nothing or all of it, and so does a second restore.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_restore_that_is_killed_has_changed_nothing_or_is_completed() {
    let agent = ScriptedAgent::echoing().await;
    let (gateway, file) = killed_gateway(&agent).await;
    let key = fs::read(gateway.data().join("hook-result-key")).expect("it is read");
    let (mut crashes, mut outcomes) = (0, [0, 0]);
    loop {
        let killed = |step: u32| {
            let other = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
            let restore =
                other.command(&["restore", &file]).env("REJOINDER_CRASH_AT", format!("restoring:{step}")).output();
            (other, restore.expect("it runs").status.success())
        };
        let ((mut started, is_whole), (mut restored, _)) = (killed(crashes + 1), killed(crashes + 1));
        if is_whole {
            break;
        }
        crashes += 1;

        started.restart().await;
        let is_restored = fs::read(started.data().join("hook-result-key")).expect("it is read") == key;
        assert_eq!(said_by(&started), if is_restored { vec![KEPT] } else { vec![] }, "step {crashes}");
        assert_eq!(unfinished(&started.data()), Vec::<PathBuf>::new(), "step {crashes}");
        outcomes[usize::from(is_restored)] += 1;

        let again = restored.run(&["restore", &file]);
        let said = String::from_utf8_lossy(if again.status.success() { &again.stdout } else { &again.stderr });
        assert!(said.contains("Restored"), "step {crashes}: {said}");
        restored.restart().await;
        assert_eq!(said_by(&restored), [KEPT], "step {crashes}");
    }
    assert!(outcomes[0] >= 3 && outcomes[1] >= 3, "{outcomes:?}");
}

/// A9: in a folder of its own and in the data directory; swept by the next start, and by the next backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_backup_leaves_no_copy_behind() {
    let agent = ScriptedAgent::echoing().await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    gateway.hook("test", TOKEN).ask("xylophone").await;
    let elsewhere = gateway.data().with_file_name("elsewhere");
    fs::create_dir_all(elsewhere.join(".rejoinder-backup-notes")).expect("it is made");
    let kill = |gateway: &Gateway, folder: &Path| {
        let file = folder.join("backup.tar.gz");
        let mut backup = gateway.command(&["backup", file.to_str().expect("a path")]);
        let killed = backup.env("REJOINDER_CRASH_AT", "backed_up:1").output().expect("it runs");
        assert!(!killed.status.success());
        assert!(!with_words(&elsewhere, "xylophone").is_empty() || folder != elsewhere);
    };

    for folder in [&elsewhere, &gateway.data()] {
        kill(&gateway, folder);
        gateway.kill();
        gateway.restart().await;
        assert_eq!((unfinished(&elsewhere).len(), unfinished(&gateway.data()).len()), (1, 0), "after a start");

        kill(&gateway, folder);
        let _ = gateway.output_of(&["backup", elsewhere.join("next.tar.gz").to_str().expect("a path")]);
        assert_eq!((unfinished(&elsewhere).len(), unfinished(&gateway.data()).len()), (1, 0), "after a backup");
        fs::remove_file(elsewhere.join("next.tar.gz")).expect("it is removed");
    }
}

/// A9.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_backup_in_the_data_directory_is_not_part_of_the_next() {
    let gateway = Gateway::builder().config(&hook("")).start().await;
    let count = |name: &str| {
        let file = gateway.data().join("backups").join(name);
        let made = gateway.output_of(&["backup", file.to_str().expect("a path"), "--json"]);
        serde_json::from_str::<Value>(&made).expect("JSON")["files"].as_object().expect("files").len()
    };
    fs::create_dir(gateway.data().join("backups")).expect("it is made");

    let (first, second) = (count("monday.tar.gz"), count("tuesday"));

    assert_eq!(first, second);
}

/// No byte of their words is left in any file: of messages, answers, what models were shown, and what was never answered.
/// Others keep theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_is_forgotten() {
    let hold = Gate::default();
    let agent = {
        let hold = hold.clone();
        ScriptedAgent::start(move |call, _| {
            let said = call.said();
            let script = Script::replies(&format!("you said {said}"));
            if said.contains("unanswered") { script.waiting(&hold) } else { script }
        })
        .await
    };
    let gateway = Gateway::builder().config(&hook("wait = \"20s\"")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let says = async |who: &str, place: &str, words: &str, wait: &str| {
        let message = json!({ "message": words, "conversation": place, "sender": who });
        let reply = rejoinder_tests::Reply::of(hook.call().json(&message).header("Prefer", wait)).await;
        assert!(reply.status.is_success(), "{reply:?}");
        reply.turn()
    };
    let long = "xylophone ".repeat(3000);
    let mut theirs = Vec::new();
    for number in 0..20 {
        theirs.push(says("ada", "ada", &format!("xylophone {number}"), "wait=20").await);
        says("bob", "bob", &format!("kazoo {number}"), "wait=20").await;
    }
    theirs.push(says("ada", "ada", &long, "wait=20").await);
    theirs.push(says("ada", "all", "the xylophone in the hall", "wait=20").await);
    let shared = says("bob", "all", "a kazoo", "wait=20").await;
    theirs.push(says("ada", "ada", "the unanswered xylophone", "wait=0").await);
    let found = async || gateway.admin("search?q=xylophone").await["items"].as_array().map_or(0, Vec::len);
    eventually("it is indexed", async || (found().await > 20).then_some(())).await;
    assert!(!with_words(&gateway.data(), "xylophone").is_empty());

    let refused = gateway.run(&["forget", "webhook.test/ada"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"), "{refused:?}");
    let said = gateway.output_of(&["forget", "webhook.test/ada", "--yes", "--reason", "asked for it"]);

    assert!(said.contains(&format!("{} turns were erased", theirs.len())), "{said}");
    assert_eq!(with_words(&gateway.data(), "xylophone"), Vec::<PathBuf>::new());
    assert!(!with_words(&gateway.data(), "kazoo").is_empty());
    assert_eq!(found().await, 0);
    for turn in &theirs {
        let gone = gateway.admin_request(Method::GET, &format!("turns/{turn}"), None).send().await.expect("it answers");
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(gateway.admin(&format!("turns/{shared}")).await["event"]["text"], "a kazoo");
    let audit = gateway.admin("audit").await;
    assert_eq!(
        (&audit["items"][0]["action"], &audit["items"][0]["target"]),
        (&json!("forget"), &json!("webhook.test/ada"))
    );
    hold.open();
    let said = gateway.output_of(&["forget", "webhook.test/ada", "--yes"]);
    assert!(said.contains("Nothing is stored"), "{said}");
    says("ada", "ada", "hello again", "wait=20").await;
    tokio::time::timeout(Duration::from_secs(20), async { hook.ask("still there?").await }).await.expect("it answers");
}
