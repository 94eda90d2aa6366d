//! Matrix: accounts on homeservers.

mod init;
mod profile;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_config::{Config, IdFormat, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, DirectPolicy};
use rejoinder_matrix::{AutoJoin, ID_FORMAT, MatrixSection};

use self::profile::{introduction, with_timeout};
use super::{
    people::remarks_on_people,
    platform::{Built, ChannelNotice, CheckContext, CheckError, Platform, Setup},
};
use crate::{
    client::is_readable_on_the_way,
    console::finding::Finding,
    materials::{Materials, WiringError},
};

pub(super) struct Matrix;

impl Platform for Matrix {
    fn name(&self) -> &'static str {
        "Matrix"
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<MatrixSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let mut built = Built::default();
        for (name, section) in materials.config.channels.of::<MatrixSection>() {
            let (channel, folder) = (channel(name), folder(materials.config, materials.data_dir, name));
            let (clock, http) = (Arc::clone(materials.clock), materials.http.clone());
            let account = rejoinder_matrix::Matrix::new(channel.clone(), section.clone(), folder, clock, http);
            built.channels.push(Arc::new(account) as Arc<dyn ChannelAdapter>);
            let description = format!("syncs with {}", section.homeserver.host_str().unwrap_or_default());
            built.notices.push(ChannelNotice::Account { channel, description });
        }
        Ok(built)
    }

    fn id_format(&self) -> Option<&'static IdFormat> {
        Some(&ID_FORMAT)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        // The advice differs from a bot's: the account ignores most invitations of strangers, so it cannot tell people their id.
        let mut remarks = remarks_on_people(config, self.section().name, |key| {
            format!("put user ids such as \"@ada:example.org\" into {key}.allow_from")
        });
        for (name, account) in config.channels.of::<MatrixSection>() {
            let gives_codes =
                account.people.dm_policy == DirectPolicy::Pairing && account.auto_join != AutoJoin::Always;
            let names_nobody = account.people.allow_from.is_empty() && account.people.group_allow_from.is_empty();
            if gives_codes && names_nobody && !config.people.has_on(&format!("matrix.{name}")) {
                remarks.push(format!(
                    "channels.matrix.{name} accepts no invitation yet, so nobody is given a code: put user ids such as \
                     \"@ada:example.org\" into allow_from, or set auto_join = \"always\"."
                ));
            }
            if is_readable_on_the_way(&account.homeserver) {
                remarks.push(format!(
                    "channels.matrix.{name}.homeserver begins with http://: the password and all messages can be read \
                     on the way."
                ));
            }
        }
        remarks
    }

    fn setup(&self) -> Option<&dyn Setup> {
        Some(&init::Accounts)
    }

    fn checks<'a>(&self, context: CheckContext<'a>) -> Vec<BoxFuture<'a, Vec<Finding>>> {
        let accounts = context.config.channels.of::<MatrixSection>();
        accounts.map(|(name, account)| check_account(name, account, context).boxed()).collect()
    }
}

fn channel(name: &str) -> ChannelId {
    ChannelId::new("matrix", name)
}

/// Where the device of the account `name` stores its data: beside the database, because each is useless without the other. If the database
/// is a server, it has the device, and what can be made anew is in the data directory.
fn folder(config: &Config, data_dir: &Path, name: &str) -> PathBuf {
    let folder = format!("matrix-{name}");
    match config.store.url.file(data_dir) {
        Some(database) => database.with_file_name(folder),
        None => data_dir.join(folder),
    }
}

async fn check_account(name: &str, account: &MatrixSection, context: CheckContext<'_>) -> Vec<Finding> {
    let (about, folder) = (channel(name).to_string(), folder(context.config, context.data_dir, name));
    let state = match with_timeout(Box::pin(rejoinder_matrix::account_state(context.http, account, &folder))).await {
        Ok(state) => state,
        Err(CheckError::Rejected(why)) => {
            let advice = "See \"When something is wrong\" in docs/matrix.md.";
            return vec![Finding::wrong(about, why).with_advice(advice)];
        }
        Err(CheckError::Unchecked(why)) => {
            let advice = format!("Check this machine's network and channels.{about}.homeserver.");
            return vec![Finding::wrong(about, why).with_advice(advice)];
        }
    };
    let device = match &state.account.device {
        Some(device) => format!("device {device}"),
        None if context.config.store.url.file(context.data_dir).is_none() => "its device is in the database".to_owned(),
        None => "no device yet: the gateway creates it at its first start".to_owned(),
    };
    let mut findings = vec![Finding::ok(&*about, format!("{}, {device}", introduction(&state.account)))];
    findings.extend(state.is_signed.map(|is_signed| signature_finding(&about, is_signed)));
    findings.extend(strangers_finding(&about, account.people.dm_policy, account.auto_join));
    findings
}

/// An account can give a code only to somebody whose chat it has joined.
fn strangers_finding(about: &str, policy: DirectPolicy, auto_join: AutoJoin) -> Option<Finding> {
    if policy != DirectPolicy::Pairing || auto_join == AutoJoin::Always {
        return None;
    }
    let advice = format!(
        "Set channels.{about}.auto_join to \"always\" to have it join their chats and give them codes, or name them in allow_from."
    );
    let what = "strangers who invite the account get no answer: their invitations stay open";
    Some(Finding::ok(about, what).with_advice(advice))
}

fn signature_finding(about: &str, is_signed: bool) -> Finding {
    if is_signed {
        return Finding::ok(about, "the account has signed its device");
    }
    let advice = format!("Set channels.{about}.recovery_key and restart: see \"Encryption\" in docs/matrix.md.");
    Finding::warning(about, "the account has not signed its device: clients show a warning beside its messages")
        .with_advice(advice)
}

#[cfg(test)]
mod tests;
