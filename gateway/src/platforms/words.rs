//! Places for words that are for nobody's chat.

use std::sync::Arc;

use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId};
use rejoinder_words::{WordsAdapter, WordsSection, WordsSettings};

use super::platform::{Built, ChannelNotice, Platform};
use crate::{
    client::is_readable_on_the_way,
    materials::{Materials, WiringError},
};

pub(super) struct Words;

impl Platform for Words {
    fn name(&self) -> &'static str {
        "Words"
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<WordsSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let mut built = Built::default();
        for (name, section) in materials.config.channels.of::<WordsSection>() {
            let channel = ChannelId::new(self.section().name, name);
            let description = match (&section.file, &section.url) {
                (Some(pattern), _) => {
                    format!("writes {}", WordsAdapter::folder(materials.data_dir).join(pattern.as_str()).display())
                }
                (None, Some(url)) => format!("posts to {}", url.origin().ascii_serialization()),
                (None, None) => "records only".to_owned(),
            };
            let settings = WordsSettings {
                name: name.to_owned(),
                section: section.clone(),
                data_dir: materials.data_dir.to_owned(),
                zone: materials.config.routing.time_zone.zone.clone(),
                clock: Arc::clone(materials.clock),
                http: materials.http.clone(),
            };
            let place = WordsAdapter::new(settings).map_err(|_| WiringError::Channel {
                channel: channel.clone(),
                reason: "its secret is no key of Standard Webhooks".to_owned(),
            })?;
            built.channels.push(Arc::new(place) as Arc<dyn ChannelAdapter>);
            built.notices.push(ChannelNotice::Account { channel, description });
        }
        Ok(built)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        let places = config.channels.of::<WordsSection>();
        let plain = places.filter(|(_, place)| place.url.as_ref().is_some_and(is_readable_on_the_way));
        let remark =
            |(name, _)| format!("channels.words.{name}.url begins with http://: the words can be read on the way.");
        plain.map(remark).collect()
    }
}
