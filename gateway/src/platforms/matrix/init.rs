//! How `rejoinder init` asks for a Matrix account, checks it and writes its section.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use async_trait::async_trait;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _};
use rejoinder_matrix::{AccountProfile, ID_FORMAT, Login, MatrixSection};
use url::Url;

use super::profile::{fetch_profile, introduction};
use crate::{
    client,
    console::{
        ask::Ask,
        failure::Failure,
        output::printable,
        secret::{SecretLocation, SecretRead, is_empty},
        toml::{toml_list, toml_text},
    },
    platforms::{
        check::{Decision, ask_people, decide, is_set, unless_rejected},
        platform::{Account, CheckError, Setup},
    },
};

pub(super) struct Accounts;

#[async_trait(?Send)]
impl Setup for Accounts {
    fn options(&self) -> Vec<Arg> {
        AccountOptions::augment_args(Command::new("matrix")).get_arguments().cloned().collect()
    }

    fn example(&self) -> &'static str {
        "rejoinder init --yes --matrix-user @agent:example.org --matrix-password-env MATRIX_PASSWORD --matrix-allow @ada:example.org"
    }

    async fn account_from_options(&self, matches: &ArgMatches) -> Result<Option<Account>, Failure> {
        AccountOptions::of(matches).connect().await?.map(ConnectedAccount::account).transpose()
    }

    async fn interview(
        &self,
        matches: &ArgMatches,
        terminal: &mut dyn Ask,
        data_dir: &Path,
    ) -> Result<Option<Account>, Failure> {
        AccountOptions::of(matches).interview(terminal, data_dir).await?.map(ConnectedAccount::account).transpose()
    }
}

#[derive(Debug, Default, Args)]
pub(super) struct AccountOptions {
    /// Full user id of a Matrix account, such as @agent:example.org
    #[arg(id = "matrix-user", long = "matrix-user", value_name = "ID")]
    pub(super) user: Option<String>,
    /// URL of the account's homeserver, if its server does not announce it
    #[arg(id = "matrix-homeserver", long = "matrix-homeserver", value_name = "URL", requires = "matrix-user")]
    pub(super) homeserver: Option<Url>,
    /// Environment variable that holds the account's password
    #[arg(id = "matrix-password-env", long = "matrix-password-env", value_name = "NAME", requires = "matrix-user",
        conflicts_with_all = ["matrix-password-file", "matrix-token-env", "matrix-token-file"])]
    pub(super) password_env: Option<String>,
    /// File that holds the account's password
    #[arg(id = "matrix-password-file", long = "matrix-password-file", value_name = "FILE", requires = "matrix-user",
        conflicts_with_all = ["matrix-token-env", "matrix-token-file"])]
    pub(super) password_file: Option<PathBuf>,
    /// Environment variable that holds an access token instead of the password; nothing else may use its device
    #[arg(
        id = "matrix-token-env",
        long = "matrix-token-env",
        value_name = "NAME",
        requires = "matrix-user",
        conflicts_with = "matrix-token-file"
    )]
    pub(super) token_env: Option<String>,
    /// File that holds the access token
    #[arg(id = "matrix-token-file", long = "matrix-token-file", value_name = "FILE", requires = "matrix-user")]
    pub(super) token_file: Option<PathBuf>,
    /// Environment variable that holds the account's recovery key or passphrase
    #[arg(
        id = "matrix-recovery-key-env",
        long = "matrix-recovery-key-env",
        value_name = "NAME",
        requires = "matrix-user",
        conflicts_with = "matrix-recovery-key-file"
    )]
    pub(super) recovery_key_env: Option<String>,
    /// File that holds the account's recovery key or passphrase
    #[arg(
        id = "matrix-recovery-key-file",
        long = "matrix-recovery-key-file",
        value_name = "FILE",
        requires = "matrix-user"
    )]
    pub(super) recovery_key_file: Option<PathBuf>,
    /// User id of a person who may write to it; can be repeated
    #[arg(id = "matrix-allow", long = "matrix-allow", value_name = "ID", requires = "matrix-user")]
    pub(super) allow: Vec<String>,
    /// Whether the homeserver is not asked about the account.
    #[arg(skip)]
    pub(super) no_check: bool,
}

/// The credential of the account: a password or an access token.
#[derive(Debug)]
struct Credential {
    location: SecretLocation,
    is_token: bool,
}

impl Credential {
    /// Its name for people.
    const fn name(&self) -> &'static str {
        if self.is_token { "access token" } else { "password" }
    }

    /// Its key in the configuration.
    const fn key(&self) -> &'static str {
        if self.is_token { "access_token" } else { "password" }
    }
}

/// An account to write into the configuration.
pub(super) struct ConnectedAccount {
    homeserver: Url,
    user: String,
    credential: Credential,
    recovery_key: Option<SecretLocation>,
    allow: Vec<String>,
    /// Its profile, or why it was not checked.
    account: Result<AccountProfile, String>,
}

impl AccountOptions {
    fn of(matches: &ArgMatches) -> Self {
        let options = Self::from_arg_matches(matches).expect("the command has these options");
        Self { no_check: is_set(matches, "no_check"), ..options }
    }

    /// The account that the command line names, if any.
    pub(super) async fn connect(&self) -> Result<Option<ConnectedAccount>, Failure> {
        let Some(user) = &self.user else { return Ok(None) };
        if !MatrixSection::is_user(user) {
            return Err(Failure::Usage(format!("{user:?} {IS_NO_USER}")));
        }
        if let Some(wrong) = self.allow.iter().find(|entry| !ID_FORMAT.may_be_person(entry)) {
            return Err(Failure::Usage(format!("{wrong:?} {IS_NO_USER}")));
        }
        let password = SecretLocation::from_options(self.password_env.as_deref(), self.password_file.as_deref())?;
        let token = SecretLocation::from_options(self.token_env.as_deref(), self.token_file.as_deref())?;
        let credential = match (password, token) {
            (Some(location), _) => Credential { location, is_token: false },
            (None, Some(location)) => Credential { location, is_token: true },
            (None, None) => {
                let what = "the account's password is missing: pass --matrix-password-env, --matrix-password-file or a --matrix-token option";
                return Err(Failure::Usage(what.to_owned()));
            }
        };
        let recovery_key =
            SecretLocation::from_options(self.recovery_key_env.as_deref(), self.recovery_key_file.as_deref())?;
        let homeserver = match &self.homeserver {
            Some(url) => url.clone(),
            None => homeserver_of(user).await?,
        };
        let checked = if self.no_check {
            Err(CheckError::Unchecked("--no-check was given".to_owned()))
        } else {
            check_credential(&homeserver, user, &credential).await?
        };
        let account = unless_rejected(checked, "the Matrix account cannot be used")?;
        let (user, allow) = (user.clone(), self.allow.clone());
        Ok(Some(ConnectedAccount { homeserver, user, credential, recovery_key, allow, account }))
    }

    /// Asks for an account. Typed secrets will be kept in `data_dir`.
    pub(super) async fn interview(
        &self,
        terminal: &mut dyn Ask,
        data_dir: &Path,
    ) -> Result<Option<ConnectedAccount>, Failure> {
        let Some(user) = ask_user(terminal)? else { return Ok(None) };
        let homeserver = match &self.homeserver {
            Some(url) => url.clone(),
            None => ask_homeserver(terminal, homeserver_of(&user).await?)?,
        };
        let (credential, account) = loop {
            let Some(credential) = ask_credential(terminal, data_dir)? else { return Ok(None) };
            let check = async || check_credential(&homeserver, &user, &credential).await;
            match decide(terminal, "Matrix", credential.name(), check).await? {
                Decision::Write(account) => break (credential, account),
                Decision::Change => {}
                Decision::Skip => return Ok(None),
            }
        };
        if let Ok(account) = &account {
            terminal.say(&format!("This is {}.", introduction(account)))?;
        }
        let question = "Its recovery key or passphrase, which lets it read older encrypted messages \
                        (not shown; empty: none):";
        let key = terminal.secret_or_nothing(question)?;
        let recovery_key =
            (!is_empty(&key)).then(|| SecretLocation::Typed(key, data_dir.join("matrix-main-recovery-key")));
        let question = "Who may write to it and invite it? User ids, separated by spaces (empty: nobody yet):";
        let allow = ask_people(terminal, question, &ID_FORMAT, IS_NO_USER)?;
        Ok(Some(ConnectedAccount { homeserver, user, credential, recovery_key, allow, account }))
    }
}

/// The rest of an error that begins with an invalid user id.
const IS_NO_USER: &str = "is not a user id such as @ada:example.org";

/// `None` if the operator wants no account.
fn ask_user(terminal: &mut dyn Ask) -> Result<Option<String>, Failure> {
    loop {
        let answer =
            terminal.line_or_nothing("User id of a Matrix account for the agent (@name:server; empty: none):")?;
        if answer.is_empty() {
            return Ok(None);
        }
        if MatrixSection::is_user(&answer) {
            return Ok(Some(answer));
        }
        terminal.say(&format!("{} {IS_NO_USER}.", printable(&answer)))?;
    }
}

fn ask_homeserver(terminal: &mut dyn Ask, usual: Url) -> Result<Url, Failure> {
    loop {
        let question = format!("Where is its homeserver? (empty: {})", printable(usual.as_str()));
        let answer = terminal.line_or_nothing(&question)?;
        if answer.is_empty() {
            return Ok(usual);
        }
        match answer.parse::<Url>() {
            Ok(url) if matches!(url.scheme(), "http" | "https") => return Ok(url),
            _ => terminal.say("That is not a URL that begins with http:// or https://.")?,
        }
    }
}

/// `None` if the operator wants no account.
fn ask_credential(terminal: &mut dyn Ask, data_dir: &Path) -> Result<Option<Credential>, Failure> {
    let typed = |secret, is_token: bool| {
        let file = if is_token { "matrix-main-access-token" } else { "matrix-main-password" };
        Credential { location: SecretLocation::Typed(secret, data_dir.join(file)), is_token }
    };
    let password = terminal.secret_or_nothing("Its password (not shown; empty: use an access token):")?;
    if !is_empty(&password) {
        return Ok(Some(typed(password, false)));
    }
    let token = terminal.secret_or_nothing(
        "The access token of a device that nothing else uses (not shown; empty: no Matrix account):",
    )?;
    Ok((!is_empty(&token)).then(|| typed(token, true)))
}

/// The homeserver of an account: the one that its server announces, else the server itself.
async fn homeserver_of(user: &str) -> Result<Url, Failure> {
    let server = user.split_once(':').map_or(user, |(_, server)| server);
    let http = client::http_client().context("cannot look up the homeserver")?;
    if let Some(url) = rejoinder_matrix::discover(&http, server).await {
        return Ok(url);
    }
    format!("https://{server}").parse().map_err(|_| Failure::Usage(format!("{user:?} {IS_NO_USER}")))
}

async fn check_credential(
    homeserver: &Url,
    user: &str,
    credential: &Credential,
) -> Result<Result<AccountProfile, CheckError>, Failure> {
    let secret = match credential.location.read(credential.name())? {
        SecretRead::Secret(secret) => secret,
        SecretRead::Missing(why) => return Ok(Err(CheckError::Unchecked(why))),
    };
    let login = if credential.is_token { Login::AccessToken(secret) } else { Login::Password(secret) };
    let http = client::http_client().context("cannot ask the homeserver")?;
    Ok(match fetch_profile(&http, homeserver, user, &login).await {
        Ok(account) if account.user != user => {
            let owner = printable(&account.user);
            Err(CheckError::Rejected(format!("the {} belongs to {owner}", credential.name())))
        }
        checked => checked,
    })
}

impl ConnectedAccount {
    pub(super) fn account(self) -> Result<Account, Failure> {
        let (section, closing_text) = (self.section()?, self.closing_text());
        Ok(Account {
            section,
            closing_text,
            secrets: std::iter::once(self.credential.location).chain(self.recovery_key).collect(),
        })
    }

    /// Its configuration section, as TOML.
    pub(super) fn section(&self) -> Result<String, Failure> {
        let mut text = "# A Matrix account: docs/matrix.md.\n[channels.matrix.main]\n".to_owned();
        let _ = writeln!(text, "homeserver = {}", toml_text(self.homeserver.as_str().trim_end_matches('/'))?);
        let _ = writeln!(text, "user = {}", toml_text(&self.user)?);
        let _ = writeln!(text, "{} = {}", self.credential.key(), self.credential.location.reference()?);
        if let Some(key) = &self.recovery_key {
            let _ = writeln!(text, "recovery_key = {}", key.reference()?);
        }
        text.push_str(
            "# Who may write to it and invite it, by user id; \"*:example.org\" means everyone on a server.\n",
        );
        let _ = writeln!(text, "allow_from = {}\n", toml_list(&self.allow)?);
        Ok(text)
    }

    /// What `init` prints about it at the end.
    pub(super) fn closing_text(&self) -> String {
        let mut text = String::new();
        match &self.account {
            Ok(account) => {
                let _ = writeln!(text, "The Matrix account is {}.", introduction(account));
                if let Some(device) = &account.device {
                    let device = printable(device);
                    let _ = writeln!(text, "It will use device {device}: nothing else may use its access token.");
                }
            }
            Err(why) => {
                let _ = writeln!(text, "The Matrix account was not checked: {why}.");
            }
        }
        text.push_str(&self.credential.location.advice(self.credential.name()));
        if let Some(key) = &self.recovery_key {
            text.push_str(&key.advice("recovery key"));
        }
        text.push_str(if self.allow.is_empty() {
            "Nobody may write to it or invite it yet: put user ids into allow_from, or set auto_join = \"always\", and it gives \
             people a code to be let in with.\n"
        } else {
            "Start a chat with it, or invite it into a room: it joins by itself.\n"
        });
        text
    }
}
