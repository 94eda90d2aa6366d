//! Findings about this machine: configuration, data, database, gateway.

use std::{collections::BTreeMap, fs::Permissions, os::unix::fs::PermissionsExt};

use axum::Router;
use rejoinder_core::store::StoreState;
use rejoinder_store::{OpenOptions, SqliteStore};
use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};
use tokio::net::TcpListener;

use super::{DoctorRun, folder, folder_with, run};
use crate::support::{Echo, TestGateway};

#[tokio::test]
async fn before_the_first_start_all_is_well_and_nothing_is_made() {
    let folder = folder("").await;

    let doctor = DoctorRun::in_folder(folder.path()).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("config", "ok", &["rejoinder.toml"]);
    doctor.assert_finding("data", "ok", &[]);
    doctor.assert_finding("database", "ok", &["does not exist yet"]);
    doctor.assert_finding("gateway", "ok", &["not running", "is free"]);
    doctor.assert_finding("agents.front-desk", "ok", &["rejoinder init"]);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}

#[tokio::test]
async fn beside_a_gateway_that_runs_all_is_well() {
    let gateway = TestGateway::start().await;
    gateway.ask_for_answer("test", "hello").await;

    let doctor = DoctorRun::beside(&gateway).await;

    assert_eq!(doctor.code, Some(0), "{:#?}", doctor.findings);
    doctor.assert_finding("config", "ok", &["REJOINDER__SERVER__LISTEN"]);
    doctor.assert_finding("database", "ok", &["a gateway uses it", "no turn is owed"]);
    doctor.assert_finding("gateway", "ok", &[&gateway.address.to_string(), "ready"]);
    gateway.stop().await;
}

#[tokio::test]
async fn what_a_gateway_left_is_read_and_stays_as_it_is() {
    let data = TestGateway::start().await.stop().await;
    let files = || {
        let read = |file: std::fs::DirEntry| (file.file_name(), std::fs::read(file.path()).unwrap());
        data.path().read_dir().unwrap().flatten().map(read).collect::<BTreeMap<_, _>>()
    };
    let before = files();

    let doctor = DoctorRun::with_env(data.path(), &[("REJOINDER__SERVER__LISTEN", "127.0.0.1:0")]).await;

    doctor.assert_finding("database", "ok", &["no gateway uses it"]);
    doctor.assert_finding("gateway", "ok", &["not running"]);
    assert_eq!(files(), before);
}

#[tokio::test]
async fn a_turn_that_is_owed_is_counted() {
    let (agent, release, started) = Echo::waiting();
    let gateway = TestGateway::start_with(agent, "").await;
    let asked = tokio::spawn(gateway.ask("test", "hello").send());
    started.notified().await;

    let doctor = DoctorRun::beside(&gateway).await;
    release.notify_one();
    asked.await.unwrap().unwrap();

    doctor.assert_finding("database", "ok", &["one turn is owed"]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_wrong_in_its_own_words() {
    let folder = folder_with("[server]\nlistn = 1\ndrain = \"soon\"\n");

    let doctor = DoctorRun::in_folder(folder.path()).await;
    let (code, out, err) = run(folder.path(), &[], &[]).await;

    assert_eq!((doctor.code, code), (Some(1), Some(1)));
    doctor.assert_finding("config", "wrong", &["`server.listn`", "did you mean `listen`", "rejoinder.toml:2"]);
    doctor.assert_finding("config", "wrong", &["`server.drain`", "rejoinder.toml:3"]);
    doctor.assert_finding("data", "ok", &[]);
    assert_eq!(out.lines().filter(|line| line.starts_with("wrong    config ")).count(), 2, "{out}");
    assert!(err.contains("2 things are wrong"), "{err}");
}

#[tokio::test]
async fn what_no_gateway_can_be_made_of_is_wrong_and_the_others_are_looked_at() {
    let folder = folder("[agents.main]\nkind = \"front-desk\"\n[admin]\ntoken = { generate = true }\n").await;
    std::fs::create_dir(folder.path().join("admin-token")).unwrap();

    let doctor = DoctorRun::in_folder(folder.path()).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("config", "wrong", &["admin-token"]);
    doctor.assert_finding("agents.main", "ok", &["front desk"]);
}

#[tokio::test]
async fn a_cascade_names_its_members_and_each_is_looked_at() {
    let agents = "[agents.one]\nkind = \"front-desk\"\n[agents.two]\nkind = \"front-desk\"\n\
                  [agents.both]\nkind = \"cascade\"\nmembers = [\"one\", \"two\"]\n[routing]\ndefault_agent = \"both\"\n";

    let doctor = DoctorRun::in_folder(folder(agents).await.path()).await;

    doctor.assert_finding("agents.both", "ok", &["a cascade of one, two, the default"]);
    doctor.assert_finding("agents.two", "ok", &["front desk"]);
}

#[tokio::test]
async fn what_run_remarks_is_a_warning_and_nothing_more() {
    let folder = folder("[channels.webchat.main]\n").await;
    let elsewhere = [("REJOINDER__SERVER__LISTEN", "0.0.0.0:0")];

    let doctor = DoctorRun::with_env(folder.path(), &elsewhere).await;
    let (_, out, _) = run(folder.path(), &[], &elsewhere).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("config", "warning", &["channels.webchat.main", "access = \"token\""]);
    doctor.assert_finding("config", "warning", &["server.listen", "TLS"]);
    assert!(out.ends_with("Nothing is wrong; there are 2 warnings.\n"), "{out}");
}

#[tokio::test]
async fn a_secret_that_every_user_can_read_is_a_warning() {
    let folder = folder("[channels.webhook.siri]\ntoken = { file = \"readable/siri-token\" }\n").await;
    let (way, file) = (folder.path().join("readable"), folder.path().join("readable/siri-token"));
    std::fs::create_dir(&way).unwrap();
    std::fs::write(&file, "a-long-enough-token-of-a-hook").unwrap();
    for (path, mode) in [(folder.path(), 0o711), (&*way, 0o755), (&*file, 0o644)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    let doctor = DoctorRun::in_folder(folder.path()).await;

    doctor.assert_finding("config", "warning", &["every user", "readable/siri-token", "chmod o="]);
}

#[tokio::test]
async fn a_data_directory_that_others_can_change_is_wrong_and_one_that_they_can_read_a_warning() {
    for (mode, verdict, words) in [(0o777, "wrong", "can write"), (0o755, "warning", "is open to other users")] {
        let folder = folder("").await;
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();

        let doctor = DoctorRun::in_folder(folder.path()).await;

        doctor.assert_finding("data", verdict, &[words, "chmod 700"]);
    }
}

#[tokio::test]
async fn a_data_directory_that_is_none_is_wrong() {
    let folder = folder("").await;
    std::fs::write(folder.path().join("file"), "").unwrap();

    let file = DoctorRun::with_env(folder.path(), &[("REJOINDER_DATA", "file")]).await;
    let below = DoctorRun::with_env(folder.path(), &[("REJOINDER_DATA", "file/data")]).await;

    assert_eq!((file.code, below.code), (Some(1), Some(1)));
    file.assert_finding("data", "wrong", &["is not a directory", "--data"]);
    below.assert_finding("data", "wrong", &["file/data", "--data"]);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_wrong_and_a_broken_one_too() {
    let folder = folder("").await;
    let path = folder.path().join("rejoinder.db");
    SqliteStore::open(OpenOptions::new(&path)).await.unwrap().close().await;
    let newer = rejoinder_store::schema_version() + 1;
    let mut connection = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let migration = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values (?, 'later', true, x'00', 0)";
    sqlx::query(migration).bind(newer).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    let of_newer = DoctorRun::in_folder(folder.path()).await;
    std::fs::write(&path, "this is not a database, and it is too long to be taken for an empty database file").unwrap();
    let broken = DoctorRun::in_folder(folder.path()).await;

    assert_eq!((of_newer.code, broken.code), (Some(1), Some(1)));
    of_newer.assert_finding("database", "wrong", &[&format!("schema version {newer}"), "use a newer version"]);
    broken.assert_finding("database", "wrong", &["not a readable SQLite database", "backup"]);
}

#[tokio::test]
async fn something_else_at_the_address_is_wrong() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let page = Router::new().fallback(async || "<html>hello</html>");
    tokio::spawn(async move { axum::serve(listener, page).await });
    let folder = folder("").await;

    let doctor = DoctorRun::with_env(folder.path(), &[("REJOINDER__SERVER__LISTEN", &address)]).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("gateway", "wrong", &["something other", &address, "server.listen"]);
}

/// All checks run at once.
#[cfg(all(feature = "discord", feature = "telegram"))]
#[tokio::test]
async fn who_does_not_answer_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let folder = folder(&format!(
        "[agents.main]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\nmodel = \"m\"\n\
         [channels.discord.main]\ntoken = \"MTIz.abc.def\"\napi_url = \"{url}\"\n\
         [channels.telegram.main]\ntoken = \"123456:abc\"\napi_url = \"{url}\"\n"
    ))
    .await;
    let listen = silent.local_addr().unwrap().to_string();

    let variables = [("REJOINDER__SERVER__LISTEN", listen.as_str())];
    let doctor = DoctorRun::with_env(folder.path(), &variables);
    let doctor = tokio::time::timeout(crate::support::PATIENCE, doctor).await.expect("the checks run at once");

    for about in ["agents.main", "discord.main", "telegram.main"] {
        doctor.assert_finding(about, "wrong", &["cannot be reached", "does not answer"]);
    }
    doctor.assert_finding("gateway", "wrong", &["something other", &listen]);
}

#[tokio::test]
async fn an_address_that_is_not_this_machines_is_wrong() {
    let folder = folder("").await;

    let doctor = DoctorRun::with_env(folder.path(), &[("REJOINDER__SERVER__LISTEN", "192.0.2.1:7420")]).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("gateway", "wrong", &["not running", "192.0.2.1:7420", "no such address"]);
}

#[tokio::test]
async fn a_gateway_that_is_not_where_it_should_be_is_wrong() {
    let gateway = TestGateway::start().await;
    // Otherwise it is found where it has written that it is.
    std::fs::remove_file(gateway.data.path().join("address")).expect("it wrote its address down");
    let elsewhere = super::unused_address().await.to_string();

    let doctor = DoctorRun::with_env(gateway.data.path(), &[("REJOINDER__SERVER__LISTEN", &elsewhere)]).await;

    assert_eq!(doctor.code, Some(1));
    doctor.assert_finding("gateway", "wrong", &["uses the database", &elsewhere]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_gateway_with_other_data_is_a_warning() {
    let gateway = TestGateway::start().await;
    let folder = folder("").await;

    let doctor =
        DoctorRun::with_env(folder.path(), &[("REJOINDER__SERVER__LISTEN", &gateway.address.to_string())]).await;

    assert_eq!(doctor.code, Some(0));
    doctor.assert_finding("gateway", "warning", &["does not use this database", "--data"]);
    gateway.stop().await;
}
