//! TLS of connections to the database, as other programs begin it: <https://www.postgresql.org/docs/15/libpq-ssl.html>.
//!
//! SQLx can do that, but trusts all authorities of the web besides those of `sslrootcert`, without a look at the name with `verify-ca`.

use std::{io, sync::Arc};

use rustls_native_certs::load_native_certs;
use sqlx::postgres::PgSslMode;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
        client::{
            WebPkiServerVerifier,
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        },
        crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    },
};

/// A connection to a server, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Files with certificates, as the URL of the database names them.
#[derive(Default)]
pub(super) struct TlsFiles {
    /// `sslrootcert`: the only authorities to trust, or `system`.
    pub(super) roots: Option<String>,
    /// `sslcert`: the certificate of this client, and those between it and its authority.
    pub(super) certificate: Option<String>,
    /// `sslkey`: the key of that certificate.
    pub(super) key: Option<String>,
}

/// How TLS is begun.
pub(super) struct Tls {
    connector: TlsConnector,
    is_required: bool,
}

/// Asks a server for TLS. It answers with a byte.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

impl Tls {
    /// `None` if no TLS is wanted. The error is a sentence.
    pub(super) fn new(mode: PgSslMode, files: &TlsFiles) -> Result<Option<Self>, String> {
        let is_required = match mode {
            PgSslMode::Disable => return Ok(None),
            PgSslMode::Allow => return Err("`sslmode=allow` is not supported: use `prefer`".to_owned()),
            PgSslMode::Prefer => false,
            PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => true,
        };
        let config = config(mode, files)?;
        Ok(Some(Self { connector: TlsConnector::from(Arc::new(config)), is_required }))
    }

    /// Begins TLS, unless the server has none and the URL does not insist on it. `host` is the name that its certificate is for.
    pub(super) async fn begin(&self, mut stream: TcpStream, host: &str) -> io::Result<Box<dyn Stream>> {
        stream.write_all(&REQUEST).await?;
        match stream.read_u8().await? {
            b'S' => {}
            b'N' if !self.is_required => return Ok(Box::new(stream)),
            b'N' => return Err(io::Error::other("the server has no TLS, which `sslmode` asks for")),
            _ => return Err(io::Error::other("this is no server of PostgreSQL, or a very old one")),
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(self.connector.connect(name, stream).await?))
    }
}

fn config(mode: PgSslMode, files: &TlsFiles) -> Result<ClientConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let certificates = verifier(mode, files, &provider)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let builder = match certificates {
        Some(certificates) if matches!(mode, PgSslMode::VerifyFull) => builder.with_webpki_verifier(certificates),
        certificates => {
            let verifier = WithoutName { certificates, provider };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let (certificate, key) = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(builder.with_no_client_auth()),
        _ => return Err("`sslcert` and `sslkey` are given together".to_owned()),
    };
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| format!("`sslkey` cannot be read: {error}"))?;
    let configured = builder.with_client_auth_cert(read(certificate, "sslcert")?, key);
    configured.map_err(|error| format!("`sslcert` and `sslkey` cannot be used: {error}"))
}

/// What checks the server's certificate; `None` if nothing does. As for other programs, a file of authorities has it checked in each mode.
fn verifier(
    mode: PgSslMode,
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, String> {
    let file = files.roots.as_deref().filter(|file| *file != "system");
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in read(file, "sslrootcert")? {
                roots.add(certificate).map_err(|error| format!("`sslrootcert` cannot be used: {error}"))?;
            }
        }
        None if matches!(mode, PgSslMode::VerifyFull) => {
            let found = load_native_certs();
            if found.certs.is_empty() {
                return Err("the system has no certificates of authorities: name a file with `sslrootcert`".to_owned());
            }
            roots.add_parsable_certificates(found.certs);
        }
        None if matches!(mode, PgSslMode::VerifyCa) || files.roots.is_some() => {
            let rule = "without a file as `sslrootcert`, `sslmode` is `verify-full`: the system trusts too many";
            return Err(rule.to_owned());
        }
        None => return Ok(None),
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map(Some).map_err(|error| format!("`sslrootcert` cannot be used: {error}"))
}

fn read(file: &str, parameter: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| format!("`{parameter}` cannot be read: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("`{parameter}` names a file without a certificate"));
    }
    Ok(certificates)
}

/// Checks by which authority a certificate was issued, or nothing, and not the name in it. That somebody in between has no such certificate
/// is up to the operator, who has chosen the mode.
#[derive(Debug)]
struct WithoutName {
    certificates: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for WithoutName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(certificates) = &self.certificates else { return Ok(ServerCertVerified::assertion()) };
        // It looks at the name last.
        match certificates.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
