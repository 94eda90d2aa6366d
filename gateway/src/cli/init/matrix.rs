//! An account on a Matrix homeserver.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::Args;
use rejoinder_config::Matrix;
use url::Url;

use super::{
    Ask, Failure,
    secret::{Read, SecretPlace, is_empty},
    toml_text,
};
use crate::{
    cli::{
        bots,
        output::{capital, printable},
    },
    wiring::{self, BotCheckError, MatrixAccount, MatrixLogin},
};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Matrix")]
pub(super) struct MatrixArgs {
    /// A Matrix account's whole user id, such as @agent:example.org
    #[arg(id = "matrix_user", long = "matrix-user", value_name = "ID")]
    user: Option<String>,
    /// Where the account's homeserver is, when its server does not say
    #[arg(id = "matrix_homeserver", long = "matrix-homeserver", value_name = "URL", requires = "matrix_user")]
    homeserver: Option<Url>,
    /// The environment variable that holds the account's password
    #[arg(
        id = "matrix_password_env",
        long = "matrix-password-env",
        value_name = "NAME",
        requires = "matrix_user",
        conflicts_with_all = ["matrix_password_file", "matrix_token_env", "matrix_token_file"]
    )]
    password_env: Option<String>,
    /// The file that holds the account's password
    #[arg(
        id = "matrix_password_file",
        long = "matrix-password-file",
        value_name = "FILE",
        requires = "matrix_user",
        conflicts_with_all = ["matrix_token_env", "matrix_token_file"]
    )]
    password_file: Option<PathBuf>,
    /// The environment variable that holds the access token of a device of its own, in place of the password
    #[arg(
        id = "matrix_token_env",
        long = "matrix-token-env",
        value_name = "NAME",
        requires = "matrix_user",
        conflicts_with = "matrix_token_file"
    )]
    token_env: Option<String>,
    /// The file that holds the access token
    #[arg(id = "matrix_token_file", long = "matrix-token-file", value_name = "FILE", requires = "matrix_user")]
    token_file: Option<PathBuf>,
    /// The environment variable that holds the key or the passphrase of the account's recovery
    #[arg(
        id = "matrix_recovery_key_env",
        long = "matrix-recovery-key-env",
        value_name = "NAME",
        requires = "matrix_user",
        conflicts_with = "matrix_recovery_key_file"
    )]
    recovery_key_env: Option<String>,
    /// The file that holds the key or the passphrase of the account's recovery
    #[arg(
        id = "matrix_recovery_key_file",
        long = "matrix-recovery-key-file",
        value_name = "FILE",
        requires = "matrix_user"
    )]
    recovery_key_file: Option<PathBuf>,
    /// Who may write to the account, by user id; can be repeated
    #[arg(id = "matrix_allow", long = "matrix-allow", value_name = "ID", requires = "matrix_user")]
    allow: Vec<String>,
}

/// What the account is proved with.
#[derive(Debug)]
struct Proof {
    place: SecretPlace,
    is_token: bool,
}

impl Proof {
    /// As people call it.
    const fn name(&self) -> &'static str {
        if self.is_token { "access token" } else { "password" }
    }

    /// As the configuration calls it.
    const fn key(&self) -> &'static str {
        if self.is_token { "access_token" } else { "password" }
    }
}

/// An account that is to be written into the configuration.
pub(super) struct Connected {
    homeserver: Url,
    user: String,
    proof: Proof,
    recovery_key: Option<SecretPlace>,
    allow: Vec<String>,
    /// Who it is, or why that is not known.
    account: Result<MatrixAccount, String>,
}

/// What came of a proof.
enum Checked {
    Known(MatrixAccount),
    /// It may be right: why nothing is known of it.
    Unsure(String),
    Wrong(String),
}

impl MatrixArgs {
    /// The account that the command line names.
    ///
    /// # Errors
    /// When the homeserver does not accept it.
    pub(super) async fn connect(&self) -> Result<Option<Connected>, Failure> {
        let Some(user) = &self.user else { return Ok(None) };
        if !wiring::HAS_MATRIX {
            return Err(Failure::Usage("this build cannot talk to Matrix".to_owned()));
        }
        if !Matrix::is_user(user) {
            return Err(Failure::Usage(format!("{user:?} {IS_NO_USER}")));
        }
        if let Some(wrong) = self.allow.iter().find(|entry| !Matrix::may_be_person(entry)) {
            return Err(Failure::Usage(format!("{wrong:?} {IS_NO_USER}")));
        }
        let password = SecretPlace::given(self.password_env.as_deref(), self.password_file.as_deref())?;
        let token = SecretPlace::given(self.token_env.as_deref(), self.token_file.as_deref())?;
        let proof = match (password, token) {
            (Some(place), _) => Proof { place, is_token: false },
            (None, Some(place)) => Proof { place, is_token: true },
            (None, None) => {
                let what = "how is the account proved? Say --matrix-password-env, or one of the others of its kind";
                return Err(Failure::Usage(what.to_owned()));
            }
        };
        let recovery_key = SecretPlace::given(self.recovery_key_env.as_deref(), self.recovery_key_file.as_deref())?;
        let homeserver = match &self.homeserver {
            Some(url) => url.clone(),
            None => homeserver_of(user).await?,
        };
        let account = match check(&homeserver, user, &proof).await? {
            Checked::Known(account) => Ok(account),
            Checked::Unsure(why) => Err(why),
            Checked::Wrong(why) => return Err(anyhow!("the Matrix account cannot be used: {why}").into()),
        };
        let (user, allow) = (user.clone(), self.allow.clone());
        Ok(Some(Connected { homeserver, user, proof, recovery_key, allow, account }))
    }

    /// Asks for an account. What is typed in will be kept in `data_dir`.
    pub(super) async fn interview(&self, asked: &mut impl Ask, data_dir: &Path) -> Result<Option<Connected>, Failure> {
        let Some(user) = ask_user(asked)? else { return Ok(None) };
        let homeserver = match &self.homeserver {
            Some(url) => url.clone(),
            None => ask_homeserver(asked, homeserver_of(&user).await?)?,
        };
        let (proof, account) = loop {
            let Some(proof) = ask_proof(asked, data_dir)? else { return Ok(None) };
            match check(&homeserver, &user, &proof).await? {
                Checked::Known(account) => break (proof, Ok(account)),
                Checked::Wrong(why) => asked.say(&format!("{}. Nothing was written yet.", capital(&why)))?,
                Checked::Unsure(why) => {
                    let options = ["try again", "write it all the same", "leave Matrix out"].map(str::to_owned);
                    match asked.pick(&format!("{}, so the account was not checked.", capital(&why)), &options)? {
                        0 => {}
                        1 => break (proof, Err(why)),
                        _ => return Ok(None),
                    }
                }
            }
        };
        if let Ok(account) = &account {
            asked.say(&format!("This is {}.", bots::matrix(account)))?;
        }
        let question = "The key or the passphrase of its recovery, with which it reads what was encrypted before \
                        (not shown; empty: none):";
        let key = asked.secret_or_nothing(question)?;
        let recovery_key =
            (!is_empty(&key)).then(|| SecretPlace::Typed(key, data_dir.join("matrix-main-recovery-key")));
        let allow = ask_people(asked)?;
        Ok(Some(Connected { homeserver, user, proof, recovery_key, allow, account }))
    }
}

/// What is said of a user id that is none.
const IS_NO_USER: &str = "is no user id such as @ada:example.org";

/// `None`: no account.
fn ask_user(asked: &mut impl Ask) -> Result<Option<String>, Failure> {
    loop {
        let answer = asked.line_or_nothing("A Matrix account for the agent (@name:server; empty: none):")?;
        if answer.is_empty() {
            return Ok(None);
        }
        if Matrix::is_user(&answer) {
            return Ok(Some(answer));
        }
        asked.say(&format!("{} {IS_NO_USER}.", printable(&answer)))?;
    }
}

fn ask_homeserver(asked: &mut impl Ask, usual: Url) -> Result<Url, Failure> {
    loop {
        let question = format!("Where is its homeserver? (empty: {})", printable(usual.as_str()));
        let answer = asked.line_or_nothing(&question)?;
        if answer.is_empty() {
            return Ok(usual);
        }
        match answer.parse::<Url>() {
            Ok(url) if matches!(url.scheme(), "http" | "https") => return Ok(url),
            _ => asked.say("That is no address that begins with http:// or https://.")?,
        }
    }
}

/// `None`: no account.
fn ask_proof(asked: &mut impl Ask, data_dir: &Path) -> Result<Option<Proof>, Failure> {
    let typed = |secret, is_token: bool| {
        let file = if is_token { "matrix-main-access-token" } else { "matrix-main-password" };
        Proof { place: SecretPlace::Typed(secret, data_dir.join(file)), is_token }
    };
    let password = asked.secret_or_nothing("Its password (not shown; empty: it has an access token):")?;
    if !is_empty(&password) {
        return Ok(Some(typed(password, false)));
    }
    let token = asked.secret_or_nothing(
        "The access token of a device that nothing else uses (not shown; empty: no Matrix after all):",
    )?;
    Ok((!is_empty(&token)).then(|| typed(token, true)))
}

fn ask_people(asked: &mut impl Ask) -> Result<Vec<String>, Failure> {
    loop {
        let question = "Who may write to it, and invite it? User ids, with blanks between (empty: nobody yet):";
        let answer = asked.line_or_nothing(question)?;
        let people: Vec<String> =
            answer.split([' ', ',']).filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
        match people.iter().find(|entry| !Matrix::may_be_person(entry)) {
            None => return Ok(people),
            Some(wrong) => asked.say(&format!("{} {IS_NO_USER}.", printable(wrong)))?,
        }
    }
}

/// Where the homeserver of an account is: where its server says, or at the server itself.
async fn homeserver_of(user: &str) -> Result<Url, Failure> {
    let server = user.split_once(':').map_or(user, |(_, server)| server);
    let http = wiring::http_client().context("cannot ask for the homeserver")?;
    if let Some(url) = wiring::discover_matrix(&http, server).await {
        return Ok(url);
    }
    format!("https://{server}").parse().map_err(|_| Failure::Usage(format!("{user:?} {IS_NO_USER}")))
}

async fn check(homeserver: &Url, user: &str, proof: &Proof) -> Result<Checked, Failure> {
    let secret = match proof.place.read(proof.name())? {
        Read::Secret(secret) => secret,
        Read::Missing(why) => return Ok(Checked::Unsure(why)),
    };
    let login = if proof.is_token { MatrixLogin::AccessToken(secret) } else { MatrixLogin::Password(secret) };
    let http = wiring::http_client().context("cannot ask the homeserver")?;
    Ok(match wiring::check_matrix(&http, homeserver, user, &login).await {
        Ok(account) if account.user != user => {
            Checked::Wrong(format!("the {} is that of {}", proof.name(), printable(&account.user)))
        }
        Ok(account) => Checked::Known(account),
        Err(BotCheckError::Wrong(why)) => Checked::Wrong(why),
        Err(BotCheckError::Unreachable(why)) => Checked::Unsure(why),
    })
}

impl Connected {
    /// Writes secrets that were typed in to their files, which only their owner can read.
    pub(super) fn keep_secrets(&self) -> Result<(), Failure> {
        self.proof.place.keep()?;
        self.recovery_key.as_ref().map_or(Ok(()), SecretPlace::keep)
    }

    /// Its section of the configuration.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let mut text = "# A Matrix account: docs/matrix.md.\n[channels.matrix.main]\n".to_owned();
        let _ = writeln!(text, "homeserver = {}", toml_text(self.homeserver.as_str().trim_end_matches('/'))?);
        let _ = writeln!(text, "user = {}", toml_text(&self.user)?);
        let _ = writeln!(text, "{} = {}", self.proof.key(), self.proof.place.reference()?);
        if let Some(key) = &self.recovery_key {
            let _ = writeln!(text, "recovery_key = {}", key.reference()?);
        }
        let people = self.allow.iter().map(|entry| toml_text(entry)).collect::<Result<Vec<_>, _>>()?;
        let _ = writeln!(
            text,
            "# Who may write to it, and invite it, by user id; \"*:example.org\" is all of a server.\n\
             allow_from = [{}]\n",
            people.join(", ")
        );
        Ok(text)
    }

    /// What whoever wrote it should know.
    pub(super) fn farewell(&self) -> String {
        let mut text = String::new();
        match &self.account {
            Ok(account) => {
                let _ = writeln!(text, "The Matrix account is {}.", bots::matrix(account));
                if let Some(device) = &account.device {
                    let device = printable(device);
                    let _ = writeln!(text, "It will be device {device}: nothing else may use its access token.");
                }
            }
            Err(why) => {
                let _ = writeln!(text, "The Matrix account was not checked: {why}.");
            }
        }
        text.push_str(&self.proof.place.advice(self.proof.name()));
        if let Some(key) = &self.recovery_key {
            text.push_str(&key.advice("recovery key"));
        }
        text.push_str(if self.allow.is_empty() {
            "Nobody may write to it or invite it yet: put user ids into allow_from.\n"
        } else {
            "Start a chat with it, or invite it into a room: it comes in by itself.\n"
        });
        text
    }
}

#[cfg(all(test, feature = "matrix"))]
mod tests {
    use axum::{
        Json, Router,
        http::{HeaderMap, StatusCode, Uri},
        response::IntoResponse,
    };
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;
    use crate::cli::init::script::{Script, nowhere, read};

    const USER: &str = "@agent:example.org";
    const PASSWORD: &str = "correct horse";
    const TOKEN: &str = "syt_sesame";

    /// A homeserver with this one account; its address.
    async fn homeserver() -> Url {
        let answer = async |uri: Uri, headers: HeaderMap, body: String| {
            let refused = |code: &str| {
                let body = json!({ "errcode": code, "error": "no" });
                (StatusCode::FORBIDDEN, Json(body)).into_response()
            };
            let has_token = headers.get("authorization").is_some_and(|token| token == &format!("Bearer {TOKEN}"));
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            match uri.path() {
                "/_matrix/client/versions" => Json(json!({ "versions": ["v1.11"] })).into_response(),
                "/_matrix/client/v3/login" if body["password"] == PASSWORD => {
                    Json(json!({ "user_id": USER, "device_id": "TRIED", "access_token": TOKEN })).into_response()
                }
                "/_matrix/client/v3/login" => refused("M_FORBIDDEN"),
                "/_matrix/client/v3/account/whoami" if has_token => {
                    Json(json!({ "user_id": USER, "device_id": "OWN" })).into_response()
                }
                "/_matrix/client/v3/account/whoami" => refused("M_UNKNOWN_TOKEN"),
                "/_matrix/client/v3/logout" => Json(json!({})).into_response(),
                path if path.contains("/profile/") => Json(json!({ "displayname": "Agent" })).into_response(),
                _ => {
                    (StatusCode::NOT_FOUND, Json(json!({ "errcode": "M_UNRECOGNIZED", "error": "no" }))).into_response()
                }
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        format!("http://{address}").parse().unwrap()
    }

    fn at(homeserver: Url) -> MatrixArgs {
        MatrixArgs { homeserver: Some(homeserver), ..MatrixArgs::default() }
    }

    #[tokio::test]
    async fn a_password_that_is_typed_in_is_checked_and_kept_to_its_owner() {
        let (arguments, data) = (at(homeserver().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[
            "agent",
            USER,
            "wrong",
            PASSWORD,
            "EsTj 3yST",
            "@ada:example.org, nobody",
            "@ada:example.org",
        ]);

        let account = arguments.interview(&mut script, &data.path().join("new")).await.unwrap().unwrap();
        account.keep_secrets().unwrap();

        assert!(
            script.told.contains("agent is no user id") && script.told.contains("nobody is no user id"),
            "{}",
            script.told
        );
        assert!(script.told.contains("The homeserver refused"), "{}", script.told);
        assert!(script.told.contains("This is Agent (@agent:example.org)."), "{}", script.told);
        let section = account.section().unwrap();
        let config = read(&section, "");
        let written = &config.channels.matrix["main"];
        assert_eq!(written.password.as_ref().unwrap().get().expose_secret(), PASSWORD);
        assert_eq!(written.recovery_key.as_ref().unwrap().get().expose_secret(), "EsTj 3yST");
        assert_eq!((&*written.user, written.allow_from.iter().collect::<Vec<_>>()), (USER, vec!["@ada:example.org"]));
        for said in [&section, &account.farewell()] {
            assert!(!said.contains(PASSWORD) && !said.contains("3yST"), "{said}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = data.path().join("new/matrix-main-password");
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn an_access_token_is_a_proof_too() {
        let (arguments, data) = (at(homeserver().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[USER, "", TOKEN, "", ""]);

        let account = arguments.interview(&mut script, data.path()).await.unwrap().unwrap();
        account.keep_secrets().unwrap();

        let config = read(&account.section().unwrap(), "");
        let written = &config.channels.matrix["main"];
        assert_eq!(written.access_token.as_ref().unwrap().get().expose_secret(), TOKEN);
        let farewell = account.farewell();
        assert!(farewell.contains("It will be device OWN") && farewell.contains("Nobody may write"), "{farewell}");
    }

    #[tokio::test]
    async fn without_a_homeserver_it_can_be_written_all_the_same() {
        let (arguments, data) = (at(nowhere().await), tempfile::tempdir().unwrap());
        let mut script = Script::of(&[USER, PASSWORD, "1", PASSWORD, "2", "", "*"]);

        let account = arguments.interview(&mut script, data.path()).await.unwrap().unwrap();

        assert!(script.told.contains("The homeserver cannot be reached"), "{}", script.told);
        assert!(account.farewell().contains("was not checked"), "{}", account.farewell());
        assert!(arguments.interview(&mut Script::of(&[USER, PASSWORD, "3"]), data.path()).await.unwrap().is_none());
        assert!(arguments.interview(&mut Script::of(&[USER, "", ""]), data.path()).await.unwrap().is_none());
        assert!(arguments.interview(&mut Script::of(&[""]), data.path()).await.unwrap().is_none());
        assert!(std::fs::read_dir(data.path()).unwrap().next().is_none());
    }

    #[tokio::test]
    async fn a_script_names_where_the_secrets_are() {
        let (url, data) = (homeserver().await, tempfile::tempdir().unwrap());
        let file = data.path().join("password");
        let given = async |password: &str| {
            std::fs::write(&file, format!("{password}\n")).unwrap();
            let arguments = MatrixArgs {
                user: Some(USER.to_owned()),
                password_file: Some(file.clone()),
                recovery_key_env: Some("SOME_TOKEN".to_owned()),
                allow: vec!["@ada:example.org".to_owned()],
                ..at(url.clone())
            };
            arguments.connect().await
        };

        let refused = given("wrong").await.err().unwrap().to_string();
        let account = given(PASSWORD).await.unwrap().unwrap();

        assert!(refused.contains("the homeserver refused") && !refused.contains("wrong"), "{refused}");
        let config = read(&account.section().unwrap(), "key");
        let written = &config.channels.matrix["main"];
        assert_eq!(written.password.as_ref().unwrap().get().expose_secret(), PASSWORD);
        assert_eq!(written.recovery_key.as_ref().unwrap().get().expose_secret(), "key");
        assert!(account.farewell().contains("Set SOME_TOKEN to its recovery key before you start."));
    }

    #[tokio::test]
    async fn what_belongs_to_no_account_or_to_nobody_is_a_wrong_call() {
        let with = |change: fn(&mut MatrixArgs)| {
            let mut arguments = MatrixArgs {
                user: Some(USER.to_owned()),
                password_env: Some("SOME_TOKEN".to_owned()),
                homeserver: Some("http://127.0.0.1:1".parse().unwrap()),
                ..MatrixArgs::default()
            };
            change(&mut arguments);
            arguments
        };

        let calls = [
            with(|it| it.user = Some("agent".to_owned())),
            with(|it| it.password_env = None),
            with(|it| it.allow = vec!["Ada".to_owned()]),
        ];
        for arguments in calls {
            assert!(matches!(arguments.connect().await, Err(Failure::Usage(_))));
        }
        assert!(MatrixArgs::default().connect().await.unwrap().is_none());
    }
}
