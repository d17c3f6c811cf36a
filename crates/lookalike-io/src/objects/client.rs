//! Clients of stores: credentials, retries, and the runtime on which requests run.
//!
//! Credentials, region and endpoint come from the environment, under the names that the stores' own tools
//! use (`AWS_…`, `GOOGLE_…`, `AZURE_…`). A missing credential is found out within seconds, because the
//! addresses of cloud machines that would know one are asked twice only, unlike the store itself. The first
//! answer of a store has a deadline, which includes its credentials ([`AnswerDeadline`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientOptions, Error as StoreError, ObjectStore, RetryConfig};
use tokio::runtime::Runtime;

use super::first_answer::AnswerDeadline;
use super::url::{ObjectUrl, StoreKind};
use crate::error::{Error, Result};

/// Pause after which an answer of a server is given up, if nothing of it arrives.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// Repetitions of a request, with random pauses of 0.25 to 10 seconds that grow, together 5 to 40 seconds.
const MOST_REPETITIONS: usize = 8;

/// Time after which a request is not repeated any more.
const LONGEST_REPETITION: Duration = Duration::from_secs(120);

/// Most characters of the reason that a store gives.
const MAX_REASON: usize = 600;

/// The kind and the bucket of a store.
type StoreName = (StoreKind, String);

/// The stores that are open or being opened.
///
/// A store has a lock of its own, which is held until it is open. So one that waits for its credentials keeps others
/// waiting only if they need the same one.
#[derive(Default)]
struct OpenStores(Mutex<HashMap<StoreName, Arc<StorePlace>>>);

/// A store, once it is open.
type StorePlace = Mutex<Option<UploadStore>>;

/// A store to which objects can be uploaded by parts. Both values are the same client.
#[derive(Clone)]
pub(super) struct UploadStore {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) uploads: Arc<dyn MultipartStore>,
}

impl UploadStore {
    pub(super) fn new(client: impl ObjectStore + MultipartStore) -> Self {
        let client = Arc::new(client);
        Self {
            objects: Arc::clone(&client) as Arc<dyn ObjectStore>,
            uploads: client,
        }
    }
}

impl OpenStores {
    /// Returns a store, and opens it if it is not open.
    ///
    /// # Errors
    /// If it cannot be opened. The next call tries again.
    fn find_or_open(
        &self,
        name: StoreName,
        open: impl FnOnce() -> Result<UploadStore>,
    ) -> Result<UploadStore> {
        let place = {
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.entry(name).or_default())
        };
        let mut store = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*store {
            return Ok(store.clone());
        }
        let opened = open()?;
        *store = Some(opened.clone());
        Ok(opened)
    }
}

/// Waits for a request. It must not be called on a thread of an asynchronous runtime.
pub(super) fn wait_for<T>(request: impl Future<Output = T>) -> T {
    runtime().block_on(request)
}

/// Returns the runtime of all requests of this process.
pub(super) fn runtime() -> &'static Runtime {
    static CLIENT_RUNTIME: OnceLock<Runtime> = OnceLock::new();
    CLIENT_RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("objects")
            .enable_all()
            .build()
            .expect("two threads can be started")
    })
}

/// Opens the store of a URL, or returns the one that is open. Returns the key within it too.
///
/// # Errors
/// If the environment configures the store wrongly or has no credentials for it, or if the key is one that
/// no request can name. Also if there are no credentials at the deadline.
pub(super) fn open_store(
    url: &ObjectUrl,
    deadline: &AnswerDeadline,
) -> Result<(Arc<dyn ObjectStore>, Key)> {
    match open_upload_store(url, deadline)? {
        Some((store, key)) => Ok((store.objects, key)),
        None => Ok((open_server(url)?, Key::default())),
    }
}

/// Opens the store of a URL as [`open_store`] does. Returns `None` for the URL of a server, which takes no uploads.
///
/// # Errors
/// As [`open_store`].
pub(super) fn open_upload_store(
    url: &ObjectUrl,
    deadline: &AnswerDeadline,
) -> Result<Option<(UploadStore, Key)>> {
    static OPEN_STORES: OnceLock<OpenStores> = OnceLock::new();
    if url.kind == StoreKind::Https {
        return Ok(None);
    }
    let impossible =
        |why: &str| Error::input_error(format!("the key of {url} cannot be asked for: {why}"));
    if url.key.starts_with('/') {
        return Err(impossible("it begins with /"));
    }
    let key = Key::parse(&url.key).map_err(|cause| impossible(&cause.to_string()))?;
    let name = (url.kind, url.bucket.clone());
    let store = OPEN_STORES
        .get_or_init(OpenStores::default)
        .find_or_open(name, || {
            install_cryptography();
            let opened = deadline.wait_for(async {
                match url.kind {
                    StoreKind::S3 => open_s3(url).await,
                    StoreKind::Google => open_google(url).await,
                    StoreKind::Azure | StoreKind::Https => open_azure(url).await,
                }
            });
            opened
                .map_err(|cause| Error::input_error(format!("cannot open {}: {cause}", url.root)))?
        })?;
    Ok(Some((store, key)))
}

/// Lets the HTTP clients of this process use TLS. A program that has installed another provider keeps it.
pub fn install_cryptography() {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

fn patient() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(250),
            max_backoff: Duration::from_secs(10),
            base: 3.0,
        },
        max_retries: MOST_REPETITIONS,
        retry_timeout: LONGEST_REPETITION,
    }
}

/// Returns the retries of requests for credentials.
fn impatient() -> RetryConfig {
    RetryConfig {
        max_retries: 1,
        retry_timeout: Duration::from_secs(5),
        ..patient()
    }
}

fn is_set(value: Option<String>) -> bool {
    value.is_some_and(|value| {
        matches!(
            value.to_ascii_lowercase().as_str(),
            "1" | "true" | "on" | "yes" | "y"
        )
    })
}

fn misconfigured(url: &ObjectUrl, cause: &StoreError) -> Error {
    Error::input_error(format!("cannot open {}: {}", url.root, reason_of(cause)))
}

fn without_credentials(url: &ObjectUrl, cause: &StoreError, hint: &str) -> Error {
    Error::input_error(format!(
        "cannot open {}: the environment has no credentials for it: {hint} ({})",
        url.root,
        shorten(&without_queries(without_label(&cause.to_string())))
    ))
}

async fn open_s3(url: &ObjectUrl) -> Result<UploadStore> {
    let broken = |cause| misconfigured(url, &cause);
    let builder = AmazonS3Builder::from_env().with_bucket_name(&url.bucket);
    let is_public = is_set(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
    let quick = builder.clone().with_retry(impatient()).build();
    let credentials = Arc::clone(quick.map_err(broken)?.credentials());
    if !is_public {
        credentials.get_credential().await.map_err(|cause| {
            let hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a \
                        public bucket";
            without_credentials(url, &cause, hint)
        })?;
    }
    let builder = builder.with_credentials(credentials).with_retry(patient());
    Ok(UploadStore::new(builder.build().map_err(broken)?))
}

async fn open_google(url: &ObjectUrl) -> Result<UploadStore> {
    let broken = |cause| misconfigured(url, &cause);
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&url.bucket);
    let is_public = is_set(builder.get_config_value(&GoogleConfigKey::SkipSignature));
    let quick = builder.clone().with_retry(impatient()).build();
    let credentials = Arc::clone(quick.map_err(broken)?.credentials());
    if !is_public {
        credentials.get_credential().await.map_err(|cause| {
            let hint = "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, or \
                        GOOGLE_SKIP_SIGNATURE=true for a public bucket";
            without_credentials(url, &cause, hint)
        })?;
    }
    let builder = builder.with_credentials(credentials).with_retry(patient());
    Ok(UploadStore::new(builder.build().map_err(broken)?))
}

async fn open_azure(url: &ObjectUrl) -> Result<UploadStore> {
    let hint = "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or \
                AZURE_SKIP_SIGNATURE=true for a public container";
    let broken = |cause| without_credentials(url, &cause, hint);
    let builder = MicrosoftAzureBuilder::from_env();
    let builder = if url.bucket.contains('@') {
        builder.with_url(&url.root)
    } else {
        builder.with_container_name(&url.bucket)
    };
    let is_public = is_set(builder.get_config_value(&AzureConfigKey::SkipSignature));
    let quick = builder.clone().with_retry(impatient()).build();
    let credentials = Arc::clone(quick.map_err(broken)?.credentials());
    if !is_public {
        credentials.get_credential().await.map_err(broken)?;
    }
    let builder = builder.with_credentials(credentials).with_retry(patient());
    Ok(UploadStore::new(builder.build().map_err(broken)?))
}

/// Opens the server of a URL. The store is that of the one object, so that its URL is sent as given, with its
/// query.
fn open_server(url: &ObjectUrl) -> Result<Arc<dyn ObjectStore>> {
    install_cryptography();
    let query = url.query.iter().map(|query| format!("?{query}"));
    let address = query.fold(url.to_string(), |address, query| address + &query);
    // The time of a whole answer is not limited, because a server without ranges sends all in one.
    let options = ClientOptions::new()
        .with_timeout_disabled()
        .with_read_timeout(LONGEST_SILENCE);
    let builder = HttpBuilder::new()
        .with_url(address)
        .with_client_options(options)
        .with_retry(patient());
    let store = builder
        .build()
        .map_err(|cause| misconfigured(url, &cause))?;
    Ok(Arc::new(store))
}

/// Repeats a request whose answer was cut. Other failures the client has repeated already.
pub(super) async fn repeat_if_cut<T, F>(mut request: impl FnMut() -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let started = Instant::now();
    let mut repetitions = 0;
    loop {
        match request().await {
            Err(cause)
                if !is_answered(&cause)
                    && repetitions < MOST_REPETITIONS
                    && started.elapsed() < LONGEST_REPETITION / 8 =>
            {
                repetitions += 1;
                pause_before(repetitions).await;
            }
            result => return result,
        }
    }
}

/// Waits before a repetition, counted from 1.
pub(super) async fn pause_before(repetition: usize) {
    let pause = Duration::from_millis(100) * (1 << repetition.min(6)) as u32;
    tokio::time::sleep(pause).await;
}

/// Returns the largest number of repetitions of a range.
pub(super) fn max_repetitions() -> usize {
    MOST_REPETITIONS
}

/// Describes a failure in one line, without the queries of URLs, because they may hold signatures.
pub(super) fn reason_of(cause: &StoreError) -> String {
    let said = cause.to_string();
    let code = answer_code(&said).unwrap_or_default();
    if matches!(code, "NoSuchBucket" | "ContainerNotFound") {
        return "there is no such bucket".to_owned();
    }
    if is_denial(cause, &said) {
        let named = match code {
            "" => String::new(),
            code => format!(" ({code})"),
        };
        return format!("access is denied{named}: check the credentials and what they permit");
    }
    if matches!(cause, StoreError::NotFound { .. }) {
        return "there is no such object".to_owned();
    }
    let deepest = without_queries(&deepest_cause(cause));
    if deepest.contains("URL scheme is not allowed") {
        return "its endpoint has no TLS: give the endpoint as https://, or permit it with \
                AWS_ALLOW_HTTP=true (GOOGLE_ALLOW_HTTP, AZURE_ALLOW_HTTP)"
            .to_owned();
    }
    let plain = without_settings(without_label(&said));
    let mut reason = without_queries(&without_document(&plain, code));
    // Clients of HTTP keep to themselves why a request could not be sent.
    if !reason.contains(&deepest) && code.is_empty() {
        reason = format!("{reason}: {deepest}");
    }
    shorten(&reason)
}

fn is_denial(cause: &StoreError, said: &str) -> bool {
    let is_status = ["403 Forbidden", "401 Unauthorized"];
    matches!(
        cause,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. }
    ) || is_status.iter().any(|status| said.contains(status))
}

fn deepest_cause(cause: &StoreError) -> String {
    let mut deepest: &dyn std::error::Error = cause;
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    deepest.to_string()
}

/// Removes the label that the client puts before every failure, such as `Generic S3 error: `.
fn without_label(said: &str) -> &str {
    let labelled = said.strip_prefix("Generic ");
    labelled
        .and_then(|rest| rest.split_once(" error: "))
        .map_or(said, |(_, rest)| rest)
}

/// Removes the settings of the retries, which say nothing about the failure.
fn without_settings(said: &str) -> String {
    let parts = said.split_once(", max_retries: ");
    match parts.and_then(|(before, rest)| Some((before, rest.split_once(" - ")?.1))) {
        Some((before, after)) => format!("{before} - {after}"),
        None => said.to_owned(),
    }
}

/// Returns `true` if a server has answered a request and refused it.
pub(super) fn is_answered(cause: &StoreError) -> bool {
    !matches!(cause, StoreError::Generic { .. }) || cause.to_string().contains("status code: ")
}

/// Puts the code of an error document in its place.
fn without_document(said: &str, code: &str) -> String {
    match said.split_once('<') {
        Some((before, _)) if !code.is_empty() => format!("{before}{code}"),
        _ => said.to_owned(),
    }
}

/// Returns the code of an error document of S3, Google or Azure.
fn answer_code(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code)
}

fn without_queries(said: &str) -> String {
    let words = said.split_whitespace().map(|word| {
        if word.contains("://") {
            word.split('?').next().unwrap_or_default()
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn shorten(said: &str) -> String {
    match said.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use object_store::memory::InMemory;

    use super::*;

    /// A store opens while another one waits for its credentials, and threads that need the same one open it once.
    #[test]
    fn store_that_waits_keeps_no_other_waiting() {
        let stores = &OpenStores::default();
        let name = |bucket: &str| (StoreKind::S3, bucket.to_owned());
        let new_store = || Ok(UploadStore::new(InMemory::new()));
        let (begun, has_begun) = mpsc::channel();
        let (opened, is_opened) = mpsc::channel();
        thread::scope(|scope| {
            let slow = scope.spawn(move || {
                stores.find_or_open(name("slow"), || {
                    begun.send(()).unwrap();
                    is_opened
                        .recv_timeout(Duration::from_secs(20))
                        .map_err(|_| Error::input_error("the other store was not opened"))?;
                    new_store()
                })
            });
            has_begun.recv().unwrap();
            let other = scope.spawn(move || {
                stores.find_or_open(name("other"), new_store).unwrap();
                let _ = opened.send(());
            });
            let same = scope.spawn(move || {
                stores.find_or_open(name("slow"), || panic!("it is being opened already"))
            });
            let slow = slow.join().unwrap().unwrap();
            let same = same.join().unwrap().unwrap();
            assert!(Arc::ptr_eq(&slow.objects, &same.objects));
            other.join().unwrap();
        });
        // A store that failed to open is opened again.
        let failed = stores.find_or_open(name("new"), || Err(Error::input_error("none")));
        assert!(failed.is_err());
        stores.find_or_open(name("new"), new_store).unwrap();
    }

    #[test]
    fn reasons_are_short_and_without_signatures() {
        let said =
            "Error performing GET https://h/a?sig=secret in 1s - \n Server said <Code>Slow</Code>";
        assert_eq!(answer_code(said), Some("Slow"));
        assert_eq!(
            without_queries(&without_document(&without_settings(said), "Slow")),
            "Error performing GET https://h/a in 1s - Server said Slow"
        );
        assert_eq!(shorten(&"é".repeat(MAX_REASON)), "é".repeat(MAX_REASON));
        assert!(shorten(&"é".repeat(MAX_REASON + 1)).ends_with('…'));
    }
}
