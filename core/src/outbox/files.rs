//! The bytes of files, from before an attempt to deliver them until its end.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::error;

use crate::{
    model::{ChannelId, Delivery, DeliveryRecord, FileLinks, StoredFile, Support, data_url},
    ports::{ChannelAdapter, FileStore, SharedClock, StoreError},
};

pub(crate) struct OutgoingFiles {
    store: Arc<dyn FileStore>,
    links: FileLinks,
    clock: SharedClock,
    /// How many bytes the files that are sent to one channel at one time may have in total. A larger one is sent by itself.
    most: usize,
    /// One permit is one byte. A platform that is slow costs no other one.
    rooms: DashMap<ChannelId, Arc<Semaphore>>,
}

/// The files of a delivery. Their bytes take room until this is dropped.
#[derive(Default)]
pub(crate) struct LoadedFiles {
    /// Each reference, and the URL that the adapter gets: one with the bytes, or a link.
    urls: Vec<(String, String)>,
    _room: Option<OwnedSemaphorePermit>,
}

impl LoadedFiles {
    /// Puts the URLs into the delivery that the adapter gets.
    pub(crate) fn fill(&mut self, delivery: &mut Delivery) {
        for file in delivery.files_mut() {
            if let Some(index) = self.urls.iter().position(|(reference, _)| *reference == file.url) {
                file.url = self.urls.swap_remove(index).1;
            }
        }
    }
}

impl OutgoingFiles {
    pub(crate) fn new(store: Arc<dyn FileStore>, links: FileLinks, clock: SharedClock, most: usize) -> Self {
        Self { store, links, clock, most, rooms: DashMap::new() }
    }

    /// Reads the bytes of the files that a delivery sends, once there is room for them. A channel that shows files as links gets links,
    /// if everybody can open these.
    pub(crate) async fn load(
        &self,
        delivery: &DeliveryRecord,
        channel: &dyn ChannelAdapter,
    ) -> Result<LoadedFiles, StoreError> {
        let files = delivery.action.files().iter();
        let files: Vec<_> = files.filter_map(|file| Some((file, StoredFile::in_url(&file.url)?))).collect();
        if files.is_empty() {
            return Ok(LoadedFiles::default());
        }
        if channel.capabilities(&delivery.conversation).attachments != Support::Full {
            let now = self.clock.now();
            let link = |url: &String| Some((url.clone(), self.links.url_to(delivery.turn, url, now)?));
            if let Some(urls) = files.iter().map(|(file, _)| link(&file.url)).collect::<Option<_>>() {
                return Ok(LoadedFiles { urls, _room: None });
            }
        }
        let size = files.iter().fold(0, |all: usize, (_, stored)| all.saturating_add(stored.size));
        let new = || Arc::new(Semaphore::new(self.most));
        let room = Arc::clone(&self.rooms.entry(delivery.conversation.channel.clone()).or_insert_with(new));
        // Never closed.
        let room = room.acquire_many_owned(u32::try_from(size.min(self.most)).unwrap_or(u32::MAX)).await.ok();
        let mut urls = Vec::with_capacity(files.len());
        for (file, StoredFile { digest, .. }) in files {
            // Without bytes the adapter refuses it.
            let Some(bytes) = self.store.file(digest).await? else {
                error!(delivery = %delivery.id, %digest, "the bytes of a file are not stored");
                continue;
            };
            urls.push((file.url.clone(), data_url(&file.media_type, &bytes)));
        }
        Ok(LoadedFiles { urls, _room: room })
    }
}
