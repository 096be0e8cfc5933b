//! TLS, by rustls with ring.

use super::fault::Fault;
use super::stream::Stream;
use crate::address::{Host, TlsOptions, Verify};
use crate::file::{open_plain, read_to_end, too_long};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::env;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// How many bytes a file of certificates has at most. That of a system has a few hundred thousand.
const LONGEST_FILE: u64 = 16 << 20;

/// TLS as a registry's URL asks for it, ready for use.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Reads the files of certificates.
    ///
    /// # Errors
    /// A text, where a file is missing or has no certificate or key.
    pub fn new(options: &TlsOptions) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier = verifier(options, &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &options.own {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(&content(key)?).map_err(|error| unreadable(key, &error))?;
                let chain = certificates(certificate)?;
                config.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
            }
        };
        Ok(Self(Arc::new(config)))
    }

    /// The same, for a server that is asked for HTTP/2.
    pub fn with_http2(&self) -> Self {
        let mut config = self.config();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self(Arc::new(config))
    }

    /// For clients that encrypt their connections themselves.
    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.0)
    }

    /// Encrypts what is sent to this host from here on.
    ///
    /// # Errors
    /// [`Fault::Tls`], where the host cannot prove its name; those of the connection.
    pub async fn encrypt(&self, stream: Stream, host: &Host) -> Result<TlsStream<Stream>, Fault> {
        let name = ServerName::try_from(host.name.clone()).map_err(|error| Fault::Tls(error.to_string()))?;
        Ok(TlsConnector::from(self.0.clone()).connect(name, stream).await?)
    }
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    let content = open_plain(path).and_then(|file| read_to_end(&file, LONGEST_FILE));
    content.map_err(|error| unreadable(path, &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let content = content(path)?;
    let read = CertificateDer::pem_slice_iter(&content);
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unreadable(path, &error))?;
    match certificates.is_empty() {
        true => Err(unreadable(path, &"no certificate in it")),
        false => Ok(certificates),
    }
}

/// That the files which the environment names can be read in a moment: what reads them has no bound. Of a directory, it takes plain files only.
fn check_system_roots() -> Result<(), String> {
    let is_short = |path: &Path| {
        let length = open_plain(path).and_then(|file| file.metadata()).map(|metadata| metadata.len())?;
        if length > LONGEST_FILE { Err(too_long()) } else { Ok(()) }
    };
    if let Some(file) = env::var_os("SSL_CERT_FILE") {
        let file = Path::new(&file);
        is_short(file).map_err(|error| format!("SSL_CERT_FILE: {}", unreadable(file, &error)))?;
    }
    for folder in env::var_os("SSL_CERT_DIR").iter().flat_map(env::split_paths) {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for file in files.filter(|file| file.is_file()) {
            is_short(&file).map_err(|error| format!("SSL_CERT_DIR: {}", unreadable(&file, &error)))?;
        }
    }
    Ok(())
}

fn roots(options: &TlsOptions) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    match &options.roots {
        Some(path) => {
            for certificate in certificates(path)? {
                store.add(certificate).map_err(|error| unreadable(path, &error))?;
            }
        }
        None => {
            check_system_roots()?;
            // A system may have some that cannot be read.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err("the system has no root certificates; name a file of them with sslrootcert".to_owned());
            }
        }
    }
    Ok(store)
}

fn verifier(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let by_roots = || {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots(options)?), provider.clone())
            .build()
            .map_err(|error| error.to_string())
    };
    let any_name = |chain| Arc::new(AnyName { chain, algorithms: provider.signature_verification_algorithms });
    Ok(match options.verify {
        Verify::Name => by_roots()?,
        Verify::Chain => any_name(Some(by_roots()?)),
        Verify::Nothing => any_name(None),
    })
}

/// A certificate for whatever name, as PostgreSQL's `verify-ca` takes it: of a trusted root. Without roots, any certificate, as `prefer`
/// and `require` take it: this protects against those who only listen.
#[derive(Debug)]
struct AnyName {
    chain: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
