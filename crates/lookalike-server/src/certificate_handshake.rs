//! A TLS handshake of a certificate chain with itself, in memory, before the chain is used.
//!
//! The TLS library checks only the first certificate of a chain against the key when it loads them. A client reads
//! all of them, so a chain whose second certificate is damaged loads without an error, and then nobody can connect.
//!
//! The client of this handshake reads every certificate and checks the signature that the server makes with its key.
//! It does not check issuers, names and times, because clients decide by their own roots whom they trust. Cost: less
//! than a millisecond, at the start and for every reload.

use std::fmt::Display;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error as TlsError,
    ServerConfig, ServerConnection, SignatureScheme,
};

use crate::error::{Error, Result, with_context};

/// Checks that every certificate of a chain can be read.
///
/// # Errors
/// If one cannot, with its place in the file.
pub(crate) fn check_chain(chain: &[CertificateDer<'_>]) -> Result<()> {
    for (at, certificate) in chain.iter().enumerate() {
        let at = format!("certificate {} of {} in the file", at + 1, chain.len());
        ParsedCertificate::try_from(certificate).map_err(with_context(at))?;
    }
    Ok(())
}

/// Makes a handshake of a client with a server of this configuration.
///
/// # Errors
/// If the handshake fails.
pub(crate) fn try_handshake(server: &Arc<ServerConfig>) -> Result<()> {
    let failed = |error: TlsError| failed_handshake(&error);
    let provider = Arc::clone(server.crypto_provider());
    let verifier = Arc::new(SignatureVerifier(
        provider.signature_verification_algorithms,
    ));
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // The server has one certificate for all names.
    let name = ServerName::try_from("localhost").expect("it is a valid name");
    let client = ClientConnection::new(Arc::new(client), name).map_err(failed)?;
    let server = ServerConnection::new(Arc::clone(server)).map_err(failed)?;
    let (mut client, mut server) = (Connection::from(client), Connection::from(server));
    while client.is_handshaking() || server.is_handshaking() {
        let sent = pass_messages(&mut client, &mut server)?;
        let answered = pass_messages(&mut server, &mut client)?;
        if sent + answered == 0 {
            return Err(failed_handshake(&"neither side sends anything"));
        }
    }
    Ok(())
}

/// Passes everything that one side has to send to the other side. Returns the number of bytes.
fn pass_messages(from: &mut Connection, to: &mut Connection) -> Result<usize> {
    let mut sent = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut sent)
            .map_err(|error| failed_handshake(&error))?;
    }
    let mut unread = &sent[..];
    while !unread.is_empty() {
        to.read_tls(&mut unread)
            .map_err(|error| failed_handshake(&error))?;
        to.process_new_packets()
            .map_err(|error| failed_handshake(&error))?;
    }
    Ok(sent.len())
}

fn failed_handshake(error: &impl Display) -> Error {
    Error::new(format!("no client could connect with it: {error}"))
}

/// Verifies the signatures of a handshake, and trusts every chain that can be read.
#[derive(Debug)]
struct SignatureVerifier(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for SignatureVerifier {
    fn verify_server_cert(
        &self,
        first: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        for certificate in std::iter::once(first).chain(others) {
            ParsedCertificate::try_from(certificate)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::connections::load_tls;

    /// Writes a chain of these certificates and the key of the first one, and returns the error of loading them.
    fn load_chain(folder: &Path, others: &[&str]) -> Option<String> {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let first = parameters.self_signed(&key).unwrap().pem();
        let files = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&files.0, [&[first.as_str()], others].concat().concat()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        load_tls(&files).err().map(|error| error.to_string())
    }

    fn another_certificate() -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(["issuer".to_owned()]).unwrap();
        parameters.self_signed(&key).unwrap().pem()
    }

    #[test]
    fn every_certificate_of_a_chain_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let good = another_certificate();
        assert_eq!(load_chain(folder.path(), &[]), None);
        assert_eq!(load_chain(folder.path(), &[&good, &good]), None);
        let garbage = |bytes: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{bytes}\n-----END CERTIFICATE-----\n")
        };
        // The last is a certificate without its last line.
        let mut lines: Vec<_> = good.lines().collect();
        lines.remove(lines.len() - 2);
        for damaged in [
            garbage("AAAA"),
            garbage("MAA="),
            garbage("bm90IGEgY2VydGlmaWNhdGUgYXQgYWxs"),
            lines.join("\n") + "\n",
        ] {
            for (others, place) in [
                ([&*damaged, &*good], "certificate 2 of 3"),
                ([&*good, &*damaged], "certificate 3 of 3"),
            ] {
                let error = load_chain(folder.path(), &others).unwrap();
                assert!(error.contains(place), "{damaged}: {error}");
                assert!(error.contains("cert.pem"), "{error}");
            }
        }
    }
}
