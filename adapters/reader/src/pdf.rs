//! PDF.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use pdf_extract::{Document, Object, PlainTextOutput, Stream, output_doc_page};
use rejoinder_core::Unread;

use crate::output::Output;

pub(crate) fn read(bytes: &[u8], output: &mut Output) -> Result<(), Unread> {
    let mut document = Document::load_mem(bytes).map_err(|_| Unread::Broken)?;
    // What has no password to open it is decrypted by now.
    if document.is_encrypted() {
        document.decrypt("").map_err(|_| Unread::Protected)?;
    }
    for object in document.objects.values_mut() {
        if let Object::Stream(stream) = object
            && is_picture(stream)
        {
            // It would be read as if it drew text.
            stream.set_plain_content(b" ".to_vec());
        }
    }
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(Unread::Broken);
    }
    for page in pages.into_keys() {
        if output.is_full() {
            break;
        }
        // Of a page that the library cannot read there is its beginning, and the others are read.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let writer: &mut dyn io::Write = output;
            output_doc_page(&document, &mut PlainTextOutput::new(writer), page)
        }));
        output.end_line();
    }
    Ok(())
}

fn is_picture(stream: &Stream) -> bool {
    stream.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|subtype| subtype == b"Image")
}
