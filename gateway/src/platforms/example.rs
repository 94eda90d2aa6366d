//! The example channel, which is not in the default build.

use std::sync::Arc;

use rejoinder_config::{Config, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId};
use rejoinder_example::ExampleSection;

use super::{
    people::remarks_on_people,
    platform::{Built, ChannelNotice, Platform},
};
use crate::materials::{Materials, WiringError};

const NAME: &str = "example";

pub(super) struct Example;

impl Platform for Example {
    fn name(&self) -> &'static str {
        "Example"
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<ExampleSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let mut built = Built::default();
        for (name, section) in materials.config.channels.of::<ExampleSection>() {
            let channel = ChannelId::new(NAME, name);
            let adapter = rejoinder_example::Example::new(channel.clone(), section, Arc::clone(materials.clock));
            built.channels.push(Arc::new(adapter) as Arc<dyn ChannelAdapter>);
            built
                .notices
                .push(ChannelNotice::Account { channel, description: format!("connects to {}", section.address) });
        }
        Ok(built)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        remarks_on_people(config, NAME, |key| format!("add a person's name to {key}.allow_from"))
    }
}
