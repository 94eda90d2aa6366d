//! Files by the digest of their bytes.

use super::error::StoreError;
use crate::model::FileDigest;

store_trait! {
    /// The bytes of files, each stored once. They are written with the rows that refer to them, and removed with the last turn of
    /// these rows. [Sounds of spoken words](crate::store::NewFile::spoken_at) may go before.
    pub trait FileStore {
        /// The bytes of a file; `None` if no turn refers to it any more.
        read fn file(digest: FileDigest) -> Option<Vec<u8>>;

        /// The bytes of a file from an offset on, at most `most` of them, and none beyond its end. No more than these are read into
        /// memory. `None` if no turn refers to the file any more.
        read fn file_part(digest: FileDigest, from: usize, most: usize) -> Option<Vec<u8>>;
    }
}
