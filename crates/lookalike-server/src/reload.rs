//! Files that the service reads again on SIGHUP: the keys, and the certificate with its key.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::access::AccessKeys;
use crate::connections::{self, ServedCertificate};
use crate::error::{Result, bail};

/// Keys and certificate in use, and the files that they come from. A reload replaces each as a whole. Connections
/// keep the certificate that they began with. Requests that have begun end if the new keys do not permit them
/// ([`RequestAccess`](crate::access::request_access::RequestAccess)).
pub(crate) struct ReloadedFiles {
    key_file: Option<PathBuf>,
    tls_files: Option<(PathBuf, PathBuf)>,
    keys: watch::Sender<Arc<AccessKeys>>,
    certificate: RwLock<Option<ServedCertificate>>,
}

impl ReloadedFiles {
    /// Reads the certificate. The keys have been read before, because options are checked by them.
    ///
    /// # Errors
    /// If the certificate cannot be used.
    pub(crate) fn new(
        keys: AccessKeys,
        key_file: Option<PathBuf>,
        tls_files: Option<(PathBuf, PathBuf)>,
    ) -> Result<Self> {
        let certificate = tls_files.as_ref().map(load_certificate).transpose()?;
        Ok(Self {
            key_file,
            tls_files,
            keys: watch::Sender::new(Arc::new(keys)),
            certificate: RwLock::new(certificate),
        })
    }

    /// Returns the accepted keys.
    pub(crate) fn keys(&self) -> Arc<AccessKeys> {
        Arc::clone(&self.keys.borrow())
    }

    /// Returns the accepted keys for requests that wait for their replacement.
    pub(crate) fn subscribe_keys(&self) -> watch::Receiver<Arc<AccessKeys>> {
        self.keys.subscribe()
    }

    /// Returns the certificate for new connections, if they are encrypted.
    pub(crate) fn tls(&self) -> Option<TlsAcceptor> {
        self.of_certificate(|certificate| certificate.acceptor.clone())
    }

    /// Returns the earliest expiry of the chain in use, in seconds since 1970, if connections are
    /// encrypted and that is known.
    pub(crate) fn certificate_expiry(&self) -> Option<i64> {
        self.of_certificate(|certificate| certificate.expiry)
            .flatten()
    }

    fn of_certificate<T>(&self, value: impl FnOnce(&ServedCertificate) -> T) -> Option<T> {
        // A value is replaced in one step, so a poisoned lock is still consistent.
        let certificate = self.certificate.read();
        let certificate = certificate.unwrap_or_else(PoisonError::into_inner);
        certificate.as_ref().map(value)
    }

    /// Reads the files again, and logs the result. Contents of a file that cannot be read stay as they were.
    pub(crate) fn reload_files(&self) {
        if self.key_file.is_none() && self.tls_files.is_none() {
            tracing::warn!("SIGHUP has no effect: the service has neither --keys nor --tls-cert");
        }
        match self.reload_keys() {
            Ok(Some(keys)) => tracing::info!(keys, "the keys were read again"),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, "the keys were not read again: those of before stay accepted");
            }
        }
        match self.reload_certificate() {
            Ok(true) => tracing::info!("the certificate was read again"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "the certificate was not read again: that of before stays in use");
            }
        }
    }

    /// Returns the number of keys, if there is a file of keys.
    fn reload_keys(&self) -> Result<Option<usize>> {
        let Some(file) = &self.key_file else {
            return Ok(None);
        };
        let keys = AccessKeys::load_keys(Some(file))?;
        if keys.is_empty() {
            // Without keys, every client could do everything.
            bail!("there are no keys");
        }
        let count = keys.key_count();
        self.keys.send_replace(Arc::new(keys));
        Ok(Some(count))
    }

    fn reload_certificate(&self) -> Result<bool> {
        let Some(files) = &self.tls_files else {
            return Ok(false);
        };
        let loaded = load_certificate(files)?;
        let certificate = self.certificate.write();
        *certificate.unwrap_or_else(PoisonError::into_inner) = Some(loaded);
        Ok(true)
    }
}

/// Reads a certificate and its key. Warns if the metrics cannot say when it expires.
fn load_certificate(files: &(PathBuf, PathBuf)) -> Result<ServedCertificate> {
    let loaded = connections::load_tls(files)?;
    if loaded.expiry.is_none() {
        tracing::warn!(
            "the certificate {} has no readable time of expiry: no alert can warn of it",
            files.0.display()
        );
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "read sha256:";

    #[test]
    fn damaged_key_file_keeps_the_keys() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        let line = |digit: &str| format!("{READ}{}\n", digit.repeat(64));
        std::fs::write(&file, line("1")).unwrap();
        let keys = AccessKeys::load_keys(Some(&file)).unwrap();
        let reloaded = ReloadedFiles::new(keys, Some(file.clone()), None).unwrap();
        std::fs::write(&file, [line("1"), line("2")].concat()).unwrap();
        reloaded.reload_files();
        assert_eq!(reloaded.keys().key_count(), 2);
        for damaged in [
            "",
            "# no key\n",
            "read sha256:12\n",
            &format!("{}read", line("3")),
        ] {
            std::fs::write(&file, damaged).unwrap();
            reloaded.reload_files();
            assert_eq!(reloaded.keys().key_count(), 2, "{damaged}");
        }
        std::fs::remove_file(&file).unwrap();
        reloaded.reload_files();
        assert_eq!(reloaded.keys().key_count(), 2);
    }
}
