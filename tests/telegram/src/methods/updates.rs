//! Receiving updates, by polling or a webhook.

use std::{sync::Arc, time::Duration};

use super::done;
use crate::{
    error::{Answer, ApiError},
    params::Params,
    world::{
        World,
        update::{Hook, info},
    },
};

/// A `getUpdates` call that may wait.
#[derive(Debug)]
pub(crate) struct Poll {
    number: u64,
    limit: usize,
    /// How long it may wait.
    pub(crate) timeout: Duration,
}

impl Poll {
    /// Begins a poll and ends the previous one.
    ///
    /// # Errors
    /// 409 if there is a webhook.
    pub(crate) fn begin(world: &mut World, params: &Params) -> Result<Self, ApiError> {
        let allowed = allowed(params)?;
        if world.updates.hook.is_some() {
            return Err(ApiError::conflict(
                "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
            ));
        }
        world.updates.polls += 1;
        world.signals.poll.notify_waiters();
        if let Some(allowed) = allowed {
            world.updates.allow(allowed);
        }
        if let Some(offset) = params.integer("offset") {
            world.updates.confirm(offset);
            world.signals.changed.notify_waiters();
        }
        let limit = params.integer("limit").unwrap_or(100).clamp(1, 100);
        let seconds = params.integer("timeout").unwrap_or(0).clamp(0, 50);
        Ok(Self {
            number: world.updates.polls,
            limit: usize::try_from(limit).expect("at most 100"),
            timeout: Duration::from_secs(u64::try_from(seconds).expect("at least 0")),
        })
    }

    /// The waiting updates.
    ///
    /// # Errors
    /// 409 if another poll or a webhook has replaced it.
    pub(crate) fn updates(&self, world: &World) -> Result<Vec<Arc<str>>, ApiError> {
        if world.updates.hook.is_some() {
            return Err(ApiError::conflict("terminated by setWebhook request"));
        }
        if world.updates.polls != self.number {
            return Err(ApiError::conflict(
                "terminated by other getUpdates request; make sure that only one bot instance is running",
            ));
        }
        Ok(world.updates.oldest(self.limit))
    }
}

fn allowed(params: &Params) -> Result<Option<Vec<String>>, ApiError> {
    let Some(kinds) = params.json("allowed_updates", "allowed updates")? else { return Ok(None) };
    let kinds = kinds.as_array().ok_or_else(|| ApiError::bad_request("can't parse allowed updates JSON object"))?;
    Ok(Some(kinds.iter().filter_map(|kind| kind.as_str().map(str::to_owned)).collect()))
}

pub(super) fn set_webhook(world: &mut World, params: &Params) -> Answer {
    let allowed = allowed(params)?;
    let url = params.text("url").unwrap_or_default().into_owned();
    if url.is_empty() {
        return delete_webhook(world, params);
    }
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(ApiError::bad_request("bad webhook: An HTTPS URL must be provided for webhook"));
    }
    let secret = params.text("secret_token").map(std::borrow::Cow::into_owned).filter(|secret| !secret.is_empty());
    if secret.as_ref().is_some_and(|secret| !is_secret(secret)) {
        return Err(ApiError::bad_request("secret token contains unallowed characters"));
    }
    if let Some(allowed) = allowed {
        world.updates.allow(allowed);
    }
    if params.flag("drop_pending_updates") {
        world.updates.forget_all();
    }
    let connections = params.integer("max_connections").unwrap_or(40).clamp(1, 100);
    let connections = usize::try_from(connections).expect("at most 100");
    let number = u64::try_from(world.next_id()).expect("ids grow from 1");
    world.updates.set_hook(Hook::new(url, secret, connections, number));
    changed(world);
    done()
}

fn is_secret(secret: &str) -> bool {
    secret.len() <= 256 && secret.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '-'))
}

pub(super) fn delete_webhook(world: &mut World, params: &Params) -> Answer {
    if params.flag("drop_pending_updates") {
        world.updates.forget_all();
    }
    world.updates.delete_hook();
    changed(world);
    done()
}

fn changed(world: &World) {
    world.signals.poll.notify_waiters();
    world.signals.hook.notify_one();
    world.signals.changed.notify_waiters();
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a method")]
pub(super) fn webhook_info(world: &mut World, _: &Params) -> Answer {
    Ok(info(&world.updates))
}
