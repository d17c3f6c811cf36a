//! Requests to a service. A program without the Cargo feature `object-store`, which brings the HTTP client, has none.

use anyhow::{Result, bail};
use serde_json::Value;

use super::call_watch::CallWatch;
#[cfg(feature = "object-store")]
use super::protocol::show_text;

/// Variable of the environment that has the key. An option would show it to everybody who lists processes.
#[cfg(feature = "object-store")]
const KEY_VARIABLE: &str = "LOOKALIKE_SERVICE_KEY";

/// Largest answer that is read, in bytes.
#[cfg(feature = "object-store")]
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Interval at which a cancelled call is noticed.
#[cfg(feature = "object-store")]
const PULSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A client of one service.
pub(super) struct ServiceClient {
    #[cfg(feature = "object-store")]
    url: reqwest::Url,
    #[cfg(feature = "object-store")]
    client: reqwest::Client,
    #[cfg(feature = "object-store")]
    runtime: tokio::runtime::Runtime,
    #[cfg(feature = "object-store")]
    key: Option<String>,
}

#[cfg(not(feature = "object-store"))]
impl ServiceClient {
    /// Refuses a service, because this program cannot ask one.
    pub(super) fn new(url: &str) -> Result<Self> {
        bail!(
            "cannot ask the service {url}: this program was built without an HTTP client; build it with --features \
             object-store"
        )
    }

    /// Sends a document; there is no client of this kind.
    pub(super) fn post_document(
        &self,
        _: &str,
        _: &str,
        _: &Value,
        _: &CallWatch,
    ) -> Result<Value> {
        bail!("this program was built without an HTTP client")
    }
}

#[cfg(feature = "object-store")]
impl ServiceClient {
    /// Creates the client of a service at a URL. Nothing is sent.
    ///
    /// # Errors
    /// If the URL is not one of `http` or `https`, or the client cannot be made.
    pub(super) fn new(url: &str) -> Result<Self> {
        let parsed = reqwest::Url::parse(url).ok();
        let is_valid = |url: &reqwest::Url| {
            ["http", "https"].contains(&url.scheme())
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
        };
        let Some(url) = parsed.filter(is_valid) else {
            bail!(
                "'{}' is not the address of a service: give one like http://127.0.0.1:7600, and its key in \
                 {KEY_VARIABLE}",
                show_text(url)
            );
        };
        lookalike_io::install_cryptography();
        let client = reqwest::Client::builder()
            // A document is sent to the service that was named and to no other one.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let key = std::env::var(KEY_VARIABLE).ok();
        Ok(Self {
            url,
            client,
            runtime,
            key: key.filter(|key| !key.is_empty()),
        })
    }

    /// Sends a document to a call of a collection and returns the answer.
    ///
    /// # Errors
    /// If the service is not reached in the time of the call, or refuses the document.
    pub(super) fn post_document(
        &self,
        collection: &str,
        call: &str,
        document: &Value,
        watch: &CallWatch,
    ) -> Result<Value> {
        let mut url = self.url.clone();
        let mut parts = url
            .path_segments_mut()
            .map_err(|()| anyhow::anyhow!("the address {} has no path below it", self.url))?;
        parts
            .pop_if_empty()
            .extend(["v1", "collections", collection, call]);
        drop(parts);
        // A name of dots alone would leave the collections.
        if collection.is_empty() || collection.chars().all(|c| c == '.') {
            bail!("'{}' is no name of a collection", show_text(collection));
        }
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .timeout(watch.remaining_time())
            .body(document.to_string());
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let (status, body) = self.runtime.block_on(async {
            tokio::select! {
                answer = read_response(request) => answer,
                () = wait_for_end(watch) => bail!("the call is over"),
            }
        })?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        let detail = answer["detail"].as_str().or(answer["title"].as_str());
        bail!(
            "the service answers {}: {}",
            status.as_u16(),
            show_text(detail.unwrap_or("without a reason"))
        )
    }
}

#[cfg(feature = "object-store")]
async fn read_response(request: reqwest::RequestBuilder) -> Result<(reqwest::StatusCode, Vec<u8>)> {
    let unreachable = |cause: reqwest::Error| anyhow::anyhow!("cannot ask the service: {cause}");
    let mut response = request.send().await.map_err(unreachable)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            bail!("the service answers more than {MAX_RESPONSE_BYTES} bytes");
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status(), body))
}

/// Waits until the call must stop.
#[cfg(feature = "object-store")]
async fn wait_for_end(watch: &CallWatch) {
    while !watch.is_over() {
        tokio::time::sleep(PULSE).await;
    }
}
