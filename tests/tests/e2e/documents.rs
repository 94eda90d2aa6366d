//! Documents for agents that read only texts.

use std::fmt::Write as _;

use rejoinder_tests::{Gateway, Reply, ScriptedAgent};
use serde_json::{Value, json};

use crate::{TOKEN, hook};

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

fn pdf(text: &str) -> Vec<u8> {
    let contents = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{contents}\nendstream", contents.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), "xref\n0 6\n0000000000 65535 f \n".to_owned());
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).expect("a text");
        write!(file, "{} 0 obj\n{object}\nendobj\n", index + 1).expect("a text");
    }
    let begin = file.len();
    format!("{file}{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n").into_bytes()
}

/// A document with a paragraph, in an archive that is not packed.
fn docx(text: &str) -> Vec<u8> {
    let name = b"word/document.xml";
    let content = format!("<w:document><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>");
    let little = |number: usize| u32::try_from(number).expect("a small number").to_le_bytes();
    let (size, length) = (little(content.len()), little(name.len()));
    let header = [&[20_u8][..], &[0; 13], &size, &size, &length].concat();
    let part = [&b"PK\x03\x04"[..], &header, name, content.as_bytes()].concat();
    let directory = [&b"PK\x01\x02\x14\0"[..], &header, &[0; 14], name].concat();
    let end = [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &little(directory.len()), &little(part.len()), &[0; 2]].concat();
    [part, directory, end].concat()
}

fn form(files: &[(&str, &str, Vec<u8>)]) -> Vec<u8> {
    let mut form = b"--b\r\nContent-Disposition: form-data; name=message\r\n\r\nread these\r\n".to_vec();
    for (name, media_type, bytes) in files {
        let head = format!(
            "--b\r\nContent-Disposition: form-data; name=f; filename={name}\r\nContent-Type: {media_type}\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--b--\r\n");
    form
}

/// K3: the real binary reads each of them in a process of its own, with its own allocator under the limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_texts_of_documents_reach_the_model() {
    let agent = ScriptedAgent::echoing().await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let form = form(&[
        ("letter.pdf", "application/pdf", pdf("The meeting is on Tuesday.")),
        ("letter.docx", DOCX, docx("Bring the &lt;blue&gt; folder.")),
        ("page.html", "text/html", b"<title>Menu</title><p>Tea &amp; <b>cof</b>fee</p>".to_vec()),
        ("torn.pdf", "application/pdf", b"%PDF-1.4\n1 0 obj\n<<".to_vec()),
    ]);
    let call = gateway.hook("test", TOKEN).call().header("Content-Type", "multipart/form-data; boundary=b").body(form);

    let reply = Reply::of(call).await;

    assert_eq!(reply.text(), "echo read these");
    let frame: Value = serde_json::from_str(&agent.calls()[0].last_message()).expect("a message with files");
    assert_eq!(
        frame["files"],
        json!([
            { "name": "letter.pdf", "type": "application/pdf", "text": "The meeting is on Tuesday." },
            { "name": "letter.docx", "type": DOCX, "text": "Bring the <blue> folder." },
            { "name": "page.html", "type": "text/html", "text": "Menu\nTea & coffee" },
            { "name": "torn.pdf", "type": "application/pdf", "unread": "damaged, or of another type" },
        ])
    );
}
