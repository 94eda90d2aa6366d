//! A Telegram bot: whose token it is, what it sees in groups, and where its updates go.

use reqwest::Client;
use url::Url;

use super::Finding;
use crate::{
    cli::bots,
    time::rfc3339,
    wiring::{BotCheckError, TelegramContact, TelegramPosting},
};

/// `is_running`: a gateway works with the database.
pub(super) async fn look(bot: TelegramContact<'_>, is_running: bool, http: &Client) -> Vec<Finding> {
    let about = bot.channel.to_string();
    let (known, posting) = match bot.ask(http).await {
        Ok(known) => known,
        Err(BotCheckError::Wrong(why)) => {
            let advice = "Get the token from BotFather with /token, set it, and restart.";
            return vec![Finding::wrong(about, why).so(advice)];
        }
        Err(BotCheckError::Unreachable(why)) => {
            let advice = format!("Is this machine online, and channels.{about}.api_url right?");
            return vec![Finding::wrong(about, why).so(advice)];
        }
    };
    let mut findings = vec![Finding::ok(&*about, bots::telegram(&known))];
    if bot.is_for_all && !known.reads_groups {
        let what = format!("channels.{about}.group_policy is \"all\", and privacy mode is on");
        findings.push(Finding::warning(&*about, what).so(bots::telegram_in_groups(&known)));
    } else {
        findings.push(Finding::ok(&*about, bots::telegram_in_groups(&known)));
    }
    match bot.posted_to {
        Some(url) => findings.push(posted(&about, url, &posting, is_running)),
        None => findings.extend(polled(&about, &posting)),
    }
    findings
}

/// Where updates are asked for.
fn polled(about: &str, posting: &TelegramPosting) -> Option<Finding> {
    let url = posting.url.as_ref()?;
    let what = format!("a webhook is set, {url}, though channels.{about}.mode is \"polling\"");
    let advice =
        "The gateway takes it back when it starts. If it is there again, another program uses this token: stop it.";
    Some(Finding::warning(about, what).so(advice))
}

/// Where updates are posted.
fn posted(about: &str, ours: &Url, posting: &TelegramPosting, is_running: bool) -> Finding {
    let waiting = match posting.pending {
        0 => "no update waits".to_owned(),
        1 => "one update waits".to_owned(),
        pending => format!("{pending} updates wait"),
    };
    match (&posting.url, &posting.last_error) {
        (None, _) if is_running => Finding::warning(about, "no webhook is set, though a gateway runs")
            .so("Its log says why; it tries again and again."),
        (None, _) => Finding::ok(about, "no webhook is set yet: the gateway sets it when it starts"),
        (Some(url), _) if url != ours.as_str() => {
            let advice = "The gateway sets it anew. If it changes back, another program uses this token: stop it.";
            Finding::warning(about, format!("Telegram posts updates to {url}, and not to {ours}")).so(advice)
        }
        (Some(url), Some((why, at))) if posting.pending > 0 => {
            let what = format!("Telegram cannot reach {url}: {why} (at {}; {waiting})", rfc3339(*at));
            let advice = if is_running {
                "Look at what stands before the gateway: the name, the certificate, the port, the path."
            } else {
                "No gateway runs: start it. Telegram keeps what it could not post for a day."
            };
            Finding::wrong(about, what).so(advice)
        }
        (Some(url), Some((why, at))) => {
            let what = format!("Telegram posts updates to {url}; {waiting}. It last failed at {}: {why}", rfc3339(*at));
            Finding::ok(about, what)
        }
        (Some(url), None) => Finding::ok(about, format!("Telegram posts updates to {url}; {waiting}")),
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::{super::Verdict, *};

    const OURS: &str = "https://x.example/telegram/main";

    fn looked(url: Option<&str>, pending: u64, has_failed: bool, is_running: bool) -> Verdict {
        let last_error = has_failed.then(|| ("Connection refused".to_owned(), Timestamp::from_millis(0)));
        let posting = TelegramPosting { url: url.map(str::to_owned), pending, last_error };
        posted("telegram.main", &OURS.parse().unwrap(), &posting, is_running).verdict
    }

    #[test]
    fn a_webhook_is_well_while_its_posts_arrive() {
        assert_eq!(looked(Some(OURS), 0, false, true), Verdict::Ok);
        assert_eq!(looked(Some(OURS), 0, true, true), Verdict::Ok);
        assert_eq!(looked(Some(OURS), 3, true, true), Verdict::Wrong);
        assert_eq!(looked(Some(OURS), 3, true, false), Verdict::Wrong);
        assert_eq!(looked(Some("https://other.example/"), 0, false, true), Verdict::Warning);
    }

    #[test]
    fn a_webhook_that_is_not_set_is_missed_only_while_a_gateway_runs() {
        assert_eq!(looked(None, 0, false, false), Verdict::Ok);
        assert_eq!(looked(None, 0, false, true), Verdict::Warning);
    }

    #[test]
    fn a_webhook_that_nobody_asked_for_is_named() {
        let set = TelegramPosting { url: Some(OURS.to_owned()), ..TelegramPosting::default() };

        assert!(polled("telegram.main", &set).unwrap().line().contains(OURS));
        assert_eq!(polled("telegram.main", &TelegramPosting::default()), None);
    }
}
