//! TLS between the store and a host. Its certificates are made by `openssl`: without it, the tests say so, and pass.

use std::{error::Error, fs, path::PathBuf, process::Command, sync::Arc};

use rejoinder_core::{
    SystemClock,
    store::{InboxStore, StoreState},
};
use rejoinder_store::PostgresOptions;
use tempfile::TempDir;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};

use crate::{
    common::{Database, open},
    hosts::{Host, url},
};

/// The certificates of an authority, of a server with the name `localhost`, and of a client.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn new() -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("not run: there is no openssl");
            return None;
        }
        let certificates = Self { folder: tempfile::tempdir().expect("a directory is made") };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        certificates.openssl(&format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.crt"));
        fs::write(certificates.file("names"), "subjectAltName=DNS:localhost").expect("it is written");
        for name in ["server", "client"] {
            certificates.openssl(&format!("req {key} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            certificates.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out {name}.crt"
            ));
        }
        Some(certificates)
    }

    fn openssl(&self, arguments: &str) {
        let ended = Command::new("openssl").args(arguments.split(' ')).current_dir(self.folder.path()).output();
        assert!(ended.as_ref().is_ok_and(|ended| ended.status.success()), "{arguments}: {ended:?}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a server does with them. It also takes clients without a certificate.
    fn acceptor(&self) -> TlsAcceptor {
        let certificate = |name: &str| CertificateDer::from_pem_file(self.file(name)).expect("it is a certificate");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate("ca.crt")).expect("it is an authority");
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let clients = clients.allow_unauthenticated().build().expect("clients are verified");
        let key = PrivateKeyDer::from_pem_file(self.file("server.key")).expect("it is a key");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate("server.crt")], key)
            .expect("the key is that of the certificate");
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A database, a host with TLS that leads to it, and its certificates. `None` without a server, or `openssl`.
async fn host() -> Option<(Database, Host, Certificates)> {
    let (database, certificates) = (Database::new().await?, Certificates::new()?);
    let host = Host::start(&database.url, Some(certificates.acceptor())).await;
    Some((database, host, certificates))
}

/// Opens the store, and writes.
async fn is_used(url: &str) {
    let store = open(url).await;
    store.probe().await.expect("it writes");
    store.close().await;
}

/// Why a database is not opened, in the words of the last error.
async fn reason(url: &str) -> String {
    let error = PostgresOptions::new(url, Arc::new(SystemClock)).open().await.expect_err("it is not opened");
    let mut error: &dyn Error = &error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_the_right_name_is_used() {
    let Some((database, host, certificates)) = host().await else { return };
    let authority = certificates.file("ca.crt");
    let parameters = format!("sslmode=verify-full&sslrootcert={}", authority.display());

    is_used(&url(&database, &[("localhost", &host)], &parameters)).await;

    assert!(host.connections() > 2);
    assert_eq!(host.connections_with_tls(), host.connections());
    assert_eq!(host.connections_with_certificate(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_another_name_is_used_only_if_the_url_does_not_insist_on_it() {
    let Some((database, host, certificates)) = host().await else { return };
    let authority = certificates.file("ca.crt");
    let url = |mode| {
        let parameters = format!("sslmode={mode}&sslrootcert={}", authority.display());
        url(&database, &[("127.0.0.1", &host)], &parameters)
    };

    let reason = reason(&url("verify-full")).await;
    assert!(reason.contains("not valid for name"), "{reason}");
    is_used(&url("verify-ca")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_authority_is_used_only_if_the_url_names_none() {
    let Some((database, host, _certificates)) = host().await else { return };
    let Some(others) = Certificates::new() else { return };
    let authority = others.file("ca.crt");
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let parameters = format!("sslmode={mode}&sslrootcert={}", authority.display());
        let reason = reason(&url(&database, &[("localhost", &host)], &parameters)).await;
        assert!(reason.contains("invalid peer certificate"), "{mode}: {reason}");
    }

    is_used(&url(&database, &[("localhost", &host)], "sslmode=require")).await;

    assert!(host.connections_with_tls() > 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_shows_its_certificate() {
    let Some((database, host, certificates)) = host().await else { return };
    let [certificate, key] = ["client.crt", "client.key"].map(|name| certificates.file(name));
    let parameters = format!("sslcert={}&sslkey={}", certificate.display(), key.display());

    is_used(&url(&database, &[("localhost", &host)], &parameters)).await;

    assert!(host.connections() > 2);
    assert_eq!(host.connections_with_certificate(), host.connections());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_used_if_the_url_only_prefers_it() {
    let Some(database) = Database::new().await else { return };
    let host = Host::start(&database.url, None).await;

    is_used(&url(&database, &[("localhost", &host)], "sslmode=prefer")).await;

    let reason = reason(&url(&database, &[("localhost", &host)], "sslmode=require")).await;
    assert!(reason.contains("the server has no TLS"), "{reason}");
}
