//! The deadline for the first answer of a store.
//!
//! A client repeats a request that has no answer, asks the addresses of cloud machines for credentials, and repeats
//! these requests too. Without a network all of that together can take a quarter of an hour. The deadline bounds
//! everything from the first request to the first answer. After it, only the limits of the client apply, because a
//! store that answers may take long for a large object.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::client;

/// Longest time to the first answer of a store or a server.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// The moment at which a store must have answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerDeadline {
    limit: Duration,
    end: Instant,
}

/// A store gave no answer before the deadline.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoAnswer(Duration);

impl fmt::Display for NoAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "there was no answer in {} s, the limit: check the network, the endpoint and where the credentials come \
             from",
            self.0.as_secs_f64()
        )
    }
}

impl AnswerDeadline {
    /// Begins to wait now.
    pub(super) fn begin_wait() -> Self {
        Self::begin_with(FIRST_ANSWER_LIMIT)
    }

    /// Begins to wait now, with another limit.
    pub(super) fn begin_with(limit: Duration) -> Self {
        Self {
            limit,
            end: Instant::now() + limit,
        }
    }

    /// Waits for a request. It must not be called on a thread of an asynchronous runtime.
    ///
    /// # Errors
    /// If the request takes until the deadline.
    pub(super) fn wait_for<T>(&self, request: impl Future<Output = T>) -> Result<T, NoAnswer> {
        self.wait_with_mark(&AtomicBool::new(false), request)
    }

    /// Waits for a request of several answers, which sets `is_answered` with the first one.
    ///
    /// # Errors
    /// If there is no answer until the deadline.
    pub(super) fn wait_with_mark<T>(
        &self,
        is_answered: &AtomicBool,
        request: impl Future<Output = T>,
    ) -> Result<T, NoAnswer> {
        let too_late = async {
            sleep_until(self.end).await;
            if is_answered.load(Ordering::Relaxed) {
                pending().await
            }
        };
        client::wait_for(async {
            tokio::select! {
                biased;
                answered = request => Ok(answered),
                () = too_late => Err(NoAnswer(self.limit)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::objects::ObjectUrl;
    use crate::objects::listing::find_objects_until;

    /// Variable with the URL that [`ask_store_of_environment`] asks for.
    const URL_VARIABLE: &str = "LOOKALIKE_TEST_URL";

    /// Listens at an address, accepts every connection and never answers.
    fn listen_silently() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            // Connections stay open as long as they are kept.
            let _open: Vec<_> = listener.incoming().collect();
        });
        address
    }

    /// Clients read the environment, which only another process can change safely.
    #[test]
    #[ignore = "the test `silent_stores_are_given_up_at_the_deadline` runs it"]
    fn ask_store_of_environment() {
        let Ok(url) = std::env::var(URL_VARIABLE) else {
            return;
        };
        let url = ObjectUrl::from_path(Path::new(&url)).unwrap().unwrap();
        let deadline = AnswerDeadline::begin_with(Duration::from_secs(1));
        let error = find_objects_until(&url, &deadline).err().unwrap();
        println!("error: {error}.");
    }

    #[test]
    fn silent_stores_are_given_up_at_the_deadline() {
        let address = listen_silently();
        let endpoint = format!("http://{address}");
        let server = format!("https://{address}");
        let s3_keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let s3_endpoint = [("AWS_ENDPOINT", &*endpoint), ("AWS_ALLOW_HTTP", "true")];
        let s3 = [s3_keys, s3_endpoint].concat();
        let s3_metadata = vec![("AWS_METADATA_ENDPOINT", &*endpoint)];
        let google_metadata = vec![("GCE_METADATA_HOST", &*address)];
        let google = vec![
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("GOOGLE_BASE_URL", &*endpoint),
            ("GOOGLE_ALLOW_HTTP", "true"),
        ];
        let account = ("AZURE_STORAGE_ACCOUNT_NAME", "a");
        let azure = vec![
            account,
            ("AZURE_SKIP_SIGNATURE", "true"),
            ("AZURE_ENDPOINT", &*endpoint),
            ("AZURE_ALLOW_HTTP", "true"),
        ];
        let azure_metadata = vec![account, ("AZURE_MSI_ENDPOINT", &*endpoint)];
        let calls = [
            ("s3://bucket", "a.jsonl", s3.clone()),
            ("s3://bucket", "folder/", s3.clone()),
            ("s3://bucket", "folder/*.jsonl", s3.clone()),
            ("s3://bucket", "**/*.jsonl", s3),
            ("s3://bucket", "a.jsonl", s3_metadata),
            ("gs://bucket", "a.jsonl", google),
            ("gs://bucket", "a.jsonl", google_metadata),
            ("az://container", "a.jsonl", azure),
            ("az://container", "a.jsonl", azure_metadata),
            (&*server, "a.jsonl", Vec::new()),
        ];
        let program = std::env::current_exe().unwrap();
        let name = "objects::first_answer::tests::ask_store_of_environment";
        let children = calls.map(|(root, key, environment)| {
            let child = Command::new(&program)
                .args(["--exact", name, "--ignored", "--nocapture"])
                .env_clear()
                .env(URL_VARIABLE, format!("{root}/{key}"))
                .envs(environment)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            (root.to_owned(), key, child.unwrap())
        });
        for (root, key, child) in children {
            let said = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            let is_named = said.contains(&root);
            let reason = "there was no answer in 1 s, the limit";
            assert!(is_named && said.contains(reason), "{root}/{key}: {said}");
        }
    }

    /// A listing of several answers may take longer than the deadline once it has begun.
    #[test]
    fn deadline_is_that_of_the_first_answer_alone() {
        let deadline = AnswerDeadline::begin_with(Duration::from_millis(50));
        let mark = AtomicBool::new(false);
        let request = async {
            mark.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(300)).await;
            "complete"
        };
        assert_eq!(deadline.wait_with_mark(&mark, request).unwrap(), "complete");
        let refused = deadline.wait_for(pending::<()>()).unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("there was no answer in 0.05 s")
        );
    }
}
