//! The bytes of files, from before an attempt to deliver them until its end.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::error;

use crate::{
    model::{ChannelId, Delivery, DeliveryRecord, StoredFile, data_url},
    ports::{FileStore, StoreError},
};

pub(crate) struct OutgoingFiles {
    store: Arc<dyn FileStore>,
    /// How many bytes the files that are sent to one channel at one time may have in total. A larger one is sent by itself.
    most: usize,
    /// One permit is one byte. A platform that is slow costs no other one.
    rooms: DashMap<ChannelId, Arc<Semaphore>>,
}

/// The files of a delivery. They take room until this is dropped.
#[derive(Default)]
pub(crate) struct LoadedFiles {
    /// Each reference, and the URL with the bytes.
    urls: Vec<(String, String)>,
    _room: Option<OwnedSemaphorePermit>,
}

impl LoadedFiles {
    /// Puts the bytes into the delivery that the adapter gets.
    pub(crate) fn fill(&mut self, delivery: &mut Delivery) {
        for file in delivery.files_mut() {
            if let Some(index) = self.urls.iter().position(|(reference, _)| *reference == file.url) {
                file.url = self.urls.swap_remove(index).1;
            }
        }
    }
}

impl OutgoingFiles {
    pub(crate) fn new(store: Arc<dyn FileStore>, most: usize) -> Self {
        Self { store, most, rooms: DashMap::new() }
    }

    /// Reads the bytes of the files that a delivery sends, once there is room for them.
    pub(crate) async fn load(&self, delivery: &DeliveryRecord) -> Result<LoadedFiles, StoreError> {
        let files = delivery.action.files().iter();
        let files: Vec<_> = files.filter_map(|file| Some((file, StoredFile::in_url(&file.url)?))).collect();
        if files.is_empty() {
            return Ok(LoadedFiles::default());
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
