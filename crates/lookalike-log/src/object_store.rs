//! A log in an object store or a directory: `s3://`, `gs://`, `az://` and `file://`.
//!
//! Credentials, region and endpoint come from the environment, under the names of the stores' own tools (`AWS_…`,
//! `GOOGLE_…`, `AZURE_…`).
//!
//! Every request has a deadline of seconds. The client repeats a refused request twice within it, which may turn the
//! success of a lost attempt into "already exists"; [`SharedLog`](crate::SharedLog) knows its own record by the nonce.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientOptions, Error as ClientError, ObjectStore, ObjectStoreExt,
    ObjectStoreScheme, PutMode, RetryConfig,
};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::log_directory::LogDirectory;
use crate::record::MAX_RECORD_BYTES;
use crate::store::{CreateOutcome, CreatedBetween, ListedObject, LogStore, StoreError};

/// Longest time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Longest pause of an answer.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// Longest time of a request with its repetitions, without what its size adds.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// Slowest transfer that is not given up.
const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// Repetitions of a request that the store refused.
const MAX_REPETITIONS: usize = 2;

/// Most characters of the reason that a store gives.
const MAX_REASON_CHARACTERS: usize = 600;

/// A prefix of an object store, or a directory.
///
/// Its calls block: they must not be made on a thread of an asynchronous runtime.
#[derive(Clone, Debug)]
pub struct ObjectLogStore {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// URL for messages.
    url: String,
    runtime: Handle,
    request_limit: Duration,
    /// The directory of a `file://` log.
    directory: Option<LogDirectory>,
}

/// Builds the client of a store, with the options of the environment over our own.
macro_rules! build_client {
    ($builder:ty, $url:expr, $options:expr) => {{
        let builder = <$builder>::new()
            .with_url($url)
            .with_retry(log_retries())
            .with_client_options(client_options());
        let builder = $options.into_iter().fold(builder, |builder, option| {
            let (name, value) = option;
            match name.to_ascii_lowercase().parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            }
        });
        builder
            .build()
            .map(|client| Arc::new(client) as Arc<dyn ObjectStore>)
    }};
}

impl ObjectLogStore {
    /// Opens the prefix or directory that a URL names: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
    /// `az://CONTAINER/PREFIX` or `file:///DIRECTORY`, which is created if it does not exist and its parent does.
    /// `memory:///` is an empty
    /// store of this process, for tests.
    ///
    /// Makes no request to a store; requests run on `runtime`.
    ///
    /// # Errors
    /// If the URL is not that of a known store, the environment configures the store wrongly, or the directory cannot be
    /// created.
    pub fn open_url(url: &str, runtime: Handle) -> Result<Self, StoreError> {
        Self::open_with(url, std::env::vars(), runtime)
    }

    /// Opens a URL as [`ObjectLogStore::open_url`], but creates no directory.
    ///
    /// # Errors
    /// As [`ObjectLogStore::open_url`]; also if the URL is that of a directory that does not exist.
    pub fn open_existing_url(url: &str, runtime: Handle) -> Result<Self, StoreError> {
        let directory = url.parse().ok().and_then(|parsed: reqwest::Url| {
            let is_directory = parsed.scheme() == "file";
            parsed.to_file_path().ok().filter(|_| is_directory)
        });
        match directory.filter(|directory| !directory.is_dir()) {
            Some(directory) => Err(StoreError::permanent(format!(
                "there is no log below {url}: the directory '{}' does not exist, or is not mounted",
                directory.display()
            ))),
            None => Self::open_url(url, runtime),
        }
    }

    /// Opens a URL with the options of the store instead of the environment.
    fn open_with(
        url: &str,
        options: impl IntoIterator<Item = (String, String)>,
        runtime: Handle,
    ) -> Result<Self, StoreError> {
        // Without an installed provider the client cannot use TLS. A program that has installed another one keeps it.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let parsed = url.parse().map_err(|cause| not_a_store(url, cause))?;
        let scheme = ObjectStoreScheme::parse(&parsed);
        let (scheme, prefix) = scheme.map_err(|cause| not_a_store(url, cause))?;
        let _entered = runtime.enter();
        let client = match scheme {
            ObjectStoreScheme::AmazonS3 => build_client!(AmazonS3Builder, url, options),
            ObjectStoreScheme::GoogleCloudStorage => {
                build_client!(GoogleCloudStorageBuilder, url, options)
            }
            ObjectStoreScheme::MicrosoftAzure => build_client!(MicrosoftAzureBuilder, url, options),
            ObjectStoreScheme::Memory => Ok(Arc::new(InMemory::new()) as Arc<dyn ObjectStore>),
            ObjectStoreScheme::Local => {
                let path = parsed.to_file_path();
                let path = path.map_err(|()| not_a_store(url, "it has no path"))?;
                return Self::open_directory(url, &path, runtime.clone());
            }
            _ => return Err(not_a_store(url, "it is not of s3, gs, az or file")),
        };
        let store = client.map_err(|cause| {
            StoreError::permanent(format!("cannot open '{url}': {}", describe_cause(&cause)))
        })?;
        Ok(Self {
            store,
            prefix,
            url: url.to_owned(),
            runtime: runtime.clone(),
            request_limit: REQUEST_LIMIT,
            directory: None,
        })
    }

    fn open_directory(url: &str, path: &Path, runtime: Handle) -> Result<Self, StoreError> {
        let refused = |cause: &dyn Display| {
            let shown = path.display();
            StoreError::permanent(format!("the directory '{shown}' cannot be opened: {cause}"))
        };
        match fs::create_dir(path) {
            // Parents are not created, because they may be a directory that is not mounted.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let shown = path.parent().unwrap_or(path).display();
                return Err(StoreError::permanent(format!(
                    "the directory '{}' of the shared log cannot be created, because '{shown}' does not exist: mount or \
                     create that",
                    path.display()
                )));
            }
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refused(&cause));
            }
            _ => {}
        }
        let store = LocalFileSystem::new_with_prefix(path).map_err(|cause| refused(&cause))?;
        let directory = LogDirectory::open(path).map_err(|cause| refused(&cause))?;
        Ok(Self {
            // A record that was acknowledged must survive a power failure.
            store: Arc::new(store.with_fsync(true)),
            prefix: Key::default(),
            url: url.to_owned(),
            runtime,
            request_limit: REQUEST_LIMIT,
            directory: Some(directory),
        })
    }

    /// Checks that the directory of the log is there. Without it, records would seem to be lost, and others would be written in
    /// their place.
    fn check_directory(&self) -> Result<(), StoreError> {
        self.directory
            .as_ref()
            .map_or(Ok(()), LogDirectory::check_present)
    }

    fn note_created(&self, key: &str, outcome: CreateOutcome, content: &[u8]) {
        self.note_read(key, (outcome == CreateOutcome::Created).then_some(content));
    }

    fn note_read(&self, key: &str, content: Option<&[u8]>) {
        if let (Some(directory), Some(content)) = (&self.directory, content) {
            directory.note_object(key, content);
        }
    }

    fn object_key(&self, key: &str) -> Key {
        let parts = key.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), Key::join)
    }

    /// Returns the relative key of an object; `None` if it is not below the prefix.
    fn relative_key(&self, location: &Key) -> Option<String> {
        let parts: Vec<String> = location
            .prefix_match(&self.prefix)?
            .map(|part| part.as_ref().to_owned())
            .collect();
        Some(parts.join("/"))
    }

    /// Waits for requests that concern an object.
    fn wait_for<T>(
        &self,
        key: &str,
        requests: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, StoreError> {
        let answered = self.runtime.block_on(requests);
        answered.map_err(|cause| {
            let url = &self.url;
            StoreError {
                message: format!("object '{key}' of '{url}': {cause}"),
                is_retryable: cause.is_retryable(),
            }
        })
    }

    /// Gives a request up after the limit, and a second more for each MiB that it transfers.
    async fn limit_time<T>(
        &self,
        bytes: u64,
        request: impl Future<Output = T>,
    ) -> Result<T, RequestError> {
        let limit = self.request_limit + Duration::from_secs(bytes / LEAST_BYTES_PER_SECOND);
        let answered = timeout(limit, request).await;
        answered.map_err(|_| RequestError::NoAnswer { limit })
    }

    async fn request_create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, RequestError> {
        let payload = bytes.to_vec().into();
        let location = self.object_key(key);
        let put = self
            .store
            .put_opts(&location, payload, PutMode::Create.into());
        match self.limit_time(bytes.len() as u64, put).await? {
            Ok(_) => Ok(CreateOutcome::Created),
            Err(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. }) => {
                Ok(CreateOutcome::AlreadyExists)
            }
            Err(cause) => Err(cause.into()),
        }
    }

    async fn request_read(&self, key: &str) -> Result<Option<Vec<u8>>, RequestError> {
        let location = self.object_key(key);
        let found = match self.limit_time(0, self.store.get(&location)).await? {
            Err(cause @ ClientError::NotFound { .. }) if !is_without_bucket(&cause) => {
                return Ok(None);
            }
            found => found?,
        };
        let bytes = found.meta.size;
        if bytes > MAX_RECORD_BYTES as u64 {
            return Err(RequestError::TooLarge { bytes });
        }
        let content = self.limit_time(bytes, found.bytes()).await??;
        Ok(Some(content.to_vec()))
    }
}

impl LogStore for ObjectLogStore {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<CreateOutcome, StoreError> {
        self.check_directory()?;
        let outcome = self.wait_for(key, self.request_create(key, bytes))?;
        self.note_created(key, outcome, bytes);
        Ok(outcome)
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_directory()?;
        let content = self.wait_for(key, self.request_read(key))?;
        self.note_read(key, content.as_deref());
        Ok(content)
    }

    fn written_at(&self, key: &str) -> Result<Option<SystemTime>, StoreError> {
        let request = async {
            let location = self.object_key(key);
            match self.limit_time(0, self.store.head(&location)).await? {
                Err(ClientError::NotFound { .. }) => Ok(None),
                found => Ok(Some(SystemTime::from(found?.last_modified))),
            }
        };
        self.wait_for(key, request)
    }

    fn create_between(
        &self,
        key: &str,
        bytes: &[u8],
        previous: Option<&str>,
        next: &str,
    ) -> Result<CreatedBetween, StoreError> {
        self.check_directory()?;
        let requests = async {
            let read_previous = async {
                match previous {
                    Some(previous) => self.request_read(previous).await,
                    None => Ok(None),
                }
            };
            // A failed reading does not cancel the creation.
            let (outcome, previous, next) = tokio::join!(
                self.request_create(key, bytes),
                read_previous,
                self.request_read(next)
            );
            Ok(CreatedBetween {
                outcome: outcome?,
                previous: previous?,
                next: next?,
            })
        };
        let created = self.wait_for(key, requests)?;
        self.note_created(key, created.outcome, bytes);
        Ok(created)
    }

    fn read_several(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let Some(first) = keys.first() else {
            return Ok(Vec::new());
        };
        self.check_directory()?;
        let requests = try_join_all(keys.iter().map(|key| self.request_read(key)));
        let contents = self.wait_for(first, requests)?;
        for (key, content) in keys.iter().zip(&contents) {
            self.note_read(key, content.as_deref());
        }
        Ok(contents)
    }

    fn replace(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.check_directory()?;
        let location = self.object_key(key);
        let request = async {
            let put = self.store.put(&location, bytes.to_vec().into());
            self.limit_time(bytes.len() as u64, put).await??;
            Ok(())
        };
        self.wait_for(key, request)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.check_directory()?;
        let folder = self.object_key(prefix);
        let request = async {
            let mut listed = Vec::new();
            let mut stream = self.store.list(Some(&folder));
            while let Some(object) = self.limit_time(0, stream.try_next()).await?? {
                listed.push(object);
            }
            Ok(listed)
        };
        let listed = self.wait_for(prefix, request)?;
        let objects = listed.iter().filter_map(|object| {
            let key = self.relative_key(&object.location)?;
            Some(ListedObject {
                key,
                bytes: object.size,
                modified_us: Some(object.last_modified.timestamp_micros()),
            })
        });
        let mut objects: Vec<ListedObject> = objects.collect();
        objects.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(objects)
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        let location = self.object_key(key);
        let request = async {
            match self.limit_time(0, self.store.delete(&location)).await? {
                Err(cause @ ClientError::NotFound { .. }) if !is_without_bucket(&cause) => Ok(()),
                removed => Ok(removed?),
            }
        };
        self.wait_for(key, request)
    }
}

/// Reason why a request failed.
enum RequestError {
    Client(ClientError),
    NoAnswer { limit: Duration },
    TooLarge { bytes: u64 },
}

impl RequestError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Client(cause) => is_retryable(cause),
            Self::NoAnswer { .. } => true,
            Self::TooLarge { .. } => false,
        }
    }
}

impl From<ClientError> for RequestError {
    fn from(cause: ClientError) -> Self {
        Self::Client(cause)
    }
}

impl Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(cause) => formatter.write_str(&describe_cause(cause)),
            Self::NoAnswer { limit } => write!(
                formatter,
                "the store gave no answer in {} s, the limit: check the network, the endpoint and where the \
                 credentials come from",
                limit.as_secs_f64()
            ),
            Self::TooLarge { bytes } => write!(
                formatter,
                "it has {bytes} bytes, and the largest record has {MAX_RECORD_BYTES}"
            ),
        }
    }
}

fn log_retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 3.0,
        },
        max_retries: MAX_REPETITIONS,
        retry_timeout: REQUEST_LIMIT / 2,
    }
}

fn client_options() -> ClientOptions {
    // The time of a whole request depends on its size, and has a limit of ours.
    ClientOptions::new()
        .with_connect_timeout(CONNECT_LIMIT)
        .with_read_timeout(SILENCE_LIMIT)
        .with_timeout_disabled()
}

fn not_a_store(url: &str, cause: impl Display) -> StoreError {
    StoreError::permanent(format!(
        "'{url}' is not a URL of a shared log: {cause}; give s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, \
         az://CONTAINER/PREFIX or file:///DIRECTORY"
    ))
}

/// Returns `true` if the store says that there is no such bucket, and not only no such object.
fn is_without_bucket(cause: &ClientError) -> bool {
    let said = cause.to_string();
    [
        "NoSuchBucket",
        "ContainerNotFound",
        "specified bucket does not exist",
    ]
    .iter()
    .any(|code| said.contains(code))
}

/// Returns `true` if the same request may succeed later: no answer, a server error, or a throttled client.
fn is_retryable(cause: &ClientError) -> bool {
    let ClientError::Generic { .. } = cause else {
        return matches!(cause, ClientError::JoinError { .. });
    };
    // The client names the status in words alone.
    let said = cause.to_string();
    // A request that cannot be built never reaches a store.
    if said.contains("builder error") {
        return false;
    }
    let status = said.split_once("status code: ").map(|(_, status)| status);
    status.is_none_or(|status| {
        !status.starts_with('4') || status.starts_with("408") || status.starts_with("429")
    })
}

/// Describes a failure in one line, without the queries of URLs, because they may hold signatures.
fn describe_cause(cause: &ClientError) -> String {
    let mut deepest: &dyn std::error::Error = cause;
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    let mut said = cause.to_string();
    let deepest = deepest.to_string();
    if !said.contains(&deepest) {
        said = format!("{said}: {deepest}");
    }
    if said.contains("URL scheme is not allowed") {
        said += " (an endpoint without TLS needs AWS_ALLOW_HTTP=true or AZURE_ALLOW_HTTP=true)";
    }
    let words = said.split_whitespace().map(|word| {
        if word.contains("://") {
            word.split('?').next().unwrap_or_default()
        } else {
            word
        }
    });
    let words: Vec<&str> = words.collect();
    words
        .join(" ")
        .chars()
        .take(MAX_REASON_CHARACTERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::runtime::Runtime;

    use super::*;
    use crate::entry::{EntryKind, LogEntry};
    use crate::maintenance::{log_status, verify_log};
    use crate::record::LogTail;
    use crate::shared_log::{AppendOutcome, SharedLog};
    use crate::store::check_exclusive_creation;

    /// Every call behaves in the same way in a directory and in a store with a prefix.
    fn check_store(store: &ObjectLogStore) {
        assert_eq!(store.list("log/"), Ok(Vec::new()));
        assert_eq!(store.read("log/1"), Ok(None));
        assert_eq!(store.create("log/1", b"one"), Ok(CreateOutcome::Created));
        let again = store.create("log/1", b"other");
        assert_eq!(again, Ok(CreateOutcome::AlreadyExists));
        assert_eq!(store.read("log/1"), Ok(Some(b"one".to_vec())));
        let created = store.create_between("log/2", b"", Some("log/1"), "log/3");
        let expected = CreatedBetween {
            outcome: CreateOutcome::Created,
            previous: Some(b"one".to_vec()),
            next: None,
        };
        assert_eq!(created, Ok(expected));
        store.replace("log/1", b"replaced").unwrap();
        store.replace("snapshots/a/b", b"c").unwrap();
        let snapshots = store.list("snapshots/").unwrap();
        assert!(snapshots[0].modified_us.is_some_and(|time| time > 0));
        let keys = ["log/2", "log/3", "log/1"].map(str::to_owned);
        let read = store.read_several(&keys).unwrap();
        assert_eq!(read, [Some(Vec::new()), None, Some(b"replaced".to_vec())]);
        assert_eq!(store.read_several(&[]), Ok(Vec::new()));
        let listed = store.list("log/").unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|object| (&*object.key, object.bytes))
            .collect();
        assert_eq!(listed, [("log/1", 8), ("log/2", 0)]);
        for key in ["log/1", "log/2", "log/2", "snapshots/a/b"] {
            store.remove(key).unwrap();
        }
        assert_eq!(store.list("log/"), Ok(Vec::new()));
        check_exclusive_creation(store, "replica").unwrap();
    }

    #[test]
    fn directories_and_stores_behave_alike() {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log of replicas");
        let directory = format!("file://{}", path.display()).replace(' ', "%20");
        for url in ["memory:///", "memory:///a/b", &directory] {
            check_store(&ObjectLogStore::open_url(url, runtime.handle().clone()).unwrap());
        }
        assert!(path.is_dir());
    }

    /// A directory is not created where its parent is missing, nor again after it has gone, because the log would begin anew
    /// while the file system with it is not mounted.
    #[test]
    fn missing_directories_are_not_replaced() {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mounted/log");
        let url = format!("file://{}", path.display());
        let open = || ObjectLogStore::open_url(&url, runtime.handle().clone());
        let error = open().unwrap_err();
        assert!(!error.is_retryable, "{error}");
        assert!(
            error.to_string().contains("mounted' does not exist"),
            "{error}"
        );
        fs::create_dir(folder.path().join("mounted")).unwrap();
        let store = open().unwrap();
        store.create("log/1", b"one").unwrap();
        let hidden = folder.path().join("hidden");
        fs::rename(&path, &hidden).unwrap();
        let writes = || {
            [
                store.create("log/2", b"two").map(drop),
                store
                    .create_between("log/2", b"two", None, "log/3")
                    .map(drop),
                store.replace("replicas/a", b"mark"),
                store.read("log/1").map(drop),
                store.read_several(&["log/1".to_owned()]).map(drop),
                store.list("log/").map(drop),
            ]
        };
        for written in writes() {
            let error = written.unwrap_err();
            assert!(
                error.is_retryable && error.to_string().contains("is gone"),
                "{error}"
            );
        }
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        for written in writes() {
            let error = written.unwrap_err();
            assert!(error.to_string().contains("is another one"), "{error}");
        }
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir(&path).unwrap();
        fs::rename(&hidden, &path).unwrap();
        for written in writes() {
            written.unwrap();
        }
        // A file system that is mounted again may have another number: the newest record tells that it is the same log.
        let newest = fs::read(path.join("log/2")).unwrap();
        fs::rename(&path, &hidden).unwrap();
        fs::create_dir_all(path.join("log")).unwrap();
        fs::write(path.join("log/1"), b"one").unwrap();
        fs::write(path.join("log/2"), b"other").unwrap();
        for written in writes() {
            let error = written.unwrap_err();
            assert!(error.to_string().contains("is another one"), "{error}");
        }
        fs::write(path.join("log/1"), b"one").unwrap();
        fs::write(path.join("log/2"), newest).unwrap();
        for written in writes() {
            written.unwrap();
        }
    }

    /// Threads with clients of their own append to one directory.
    #[test]
    fn replicas_share_a_directory() {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().display());
        std::thread::scope(|scope| {
            for name in ["a", "b"] {
                let (url, handle) = (&url, runtime.handle().clone());
                scope.spawn(move || {
                    let store = Arc::new(ObjectLogStore::open_url(url, handle).unwrap());
                    let mut log = SharedLog::open(store, name, LogTail::default());
                    let mut appended = 0;
                    while appended < 10 {
                        let entry = LogEntry {
                            kind: EntryKind::Insert,
                            subject: name.to_owned(),
                            body: vec![appended],
                        };
                        let outcome = log.append(vec![entry], 0).unwrap();
                        appended += u8::from(matches!(outcome, AppendOutcome::Appended(_)));
                    }
                });
            }
        });
        let store = ObjectLogStore::open_url(&url, runtime.handle().clone()).unwrap();
        let report = verify_log(&store, 1).unwrap();
        assert_eq!((report.records, report.damages), (20, Vec::new()));
        let status = log_status(&store).unwrap();
        let records: Vec<_> = status.writers.iter().map(|writer| writer.records).collect();
        assert_eq!(records, [10, 10]);
    }

    #[test]
    fn other_urls_are_refused() {
        let runtime = Runtime::new().unwrap();
        for url in ["", "log", "/tmp/log", "http://host/log", "ftp://host/log"] {
            let refused = ObjectLogStore::open_url(url, runtime.handle().clone());
            let error = refused.unwrap_err();
            assert!(error.message.contains("s3://BUCKET/PREFIX"), "{error}");
            assert!(!error.is_retryable);
        }
    }

    /// A log that is only looked at gets no directory.
    #[test]
    fn missing_directories_are_created_for_replicas_alone() {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let url = format!("file://{}", path.display());
        let refused = ObjectLogStore::open_existing_url(&url, runtime.handle().clone());
        let error = refused.unwrap_err();
        let expected = format!("there is no log below {url}");
        assert!(error.message.starts_with(&expected), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        ObjectLogStore::open_url(&url, runtime.handle().clone()).unwrap();
        ObjectLogStore::open_existing_url(&url, runtime.handle().clone()).unwrap();
    }

    /// A server that answers every request with a status.
    fn answer_with(status: &'static str) -> String {
        use std::io::{Read, Write};

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let answer =
                    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        format!("http://{address}")
    }

    fn open_endpoint(endpoint: &str, runtime: &Runtime) -> ObjectLogStore {
        let options = [
            ("aws_access_key_id", "a"),
            ("aws_secret_access_key", "b"),
            ("aws_allow_http", "true"),
            ("aws_endpoint", endpoint),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let handle = runtime.handle().clone();
        ObjectLogStore::open_with("s3://bucket/prefix", options, handle).unwrap()
    }

    #[test]
    fn silent_store_is_given_up_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            // Connections stay open as long as they are kept.
            let _open: Vec<_> = listener.incoming().collect();
        });
        let runtime = Runtime::new().unwrap();
        let store = ObjectLogStore {
            request_limit: Duration::from_millis(200),
            ..open_endpoint(&endpoint, &runtime)
        };
        for error in [
            store.create("log/1", b"x").unwrap_err(),
            store.read("log/1").unwrap_err(),
            store.list("log/").unwrap_err(),
            store.remove("log/1").unwrap_err(),
        ] {
            assert!(error.is_retryable, "{error}");
            assert!(error.message.contains("no answer in 0.2 s"), "{error}");
        }
    }

    #[test]
    fn answers_of_a_server_are_told_apart() {
        let runtime = Runtime::new().unwrap();
        let open = |status| open_endpoint(&answer_with(status), &runtime);
        for (status, is_retryable) in [
            ("503 Slow Down", true),
            ("500 Internal Server Error", true),
            ("429 Too Many Requests", true),
            ("403 Forbidden", false),
            ("401 Unauthorized", false),
            ("400 Bad Request", false),
        ] {
            let store = open(status);
            for error in [
                store.create("log/1", b"x").unwrap_err(),
                store.read("log/1").unwrap_err(),
                store.replace("log/1", b"x").unwrap_err(),
                store.list("log/").unwrap_err(),
            ] {
                assert_eq!(error.is_retryable, is_retryable, "{status}: {error}");
                assert!(error.message.contains("'s3://bucket/prefix'"), "{error}");
            }
        }
        assert_eq!(open("404 Not Found").read("log/1"), Ok(None));
        assert!(
            !open("404 Not Found")
                .create("log/1", b"x")
                .unwrap_err()
                .is_retryable
        );
        let exists = open("412 Precondition Failed").create("log/1", b"x");
        assert_eq!(exists, Ok(CreateOutcome::AlreadyExists));
    }
}
