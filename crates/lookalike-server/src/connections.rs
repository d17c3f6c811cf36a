//! Connections: limited in number, and each limited in time and memory.
//!
//! The accept loop is written here rather than taken from a library, because every connection needs its own
//! limits: the time and the size of a request head, and the time in which the client takes its answer.
//!
//! One address has at most `--connections-per-address` connections; further ones are closed at once. When
//! `--connections` is reached, [`RESERVED_CONNECTIONS`] more answer probes only, so that a load balancer sees a
//! busy service and not a dead one.
//!
//! A connection whose latest request has lost its access, because its key was removed or has expired, is closed
//! after `--drain`. Until then the client can take its answer.
//!
//! A connection that ends before its request was read completely goes on reading for a while. If a socket is
//! closed with unread bytes in it, the system resets the connection and discards what the client has not read
//! yet, so a client that sends everything first would never see why it was refused.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Polling, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, header};
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::access::request_access::ConnectionAccess;
use crate::api::body::{MAX_DROP_TIME, MAX_DROPPED_BYTES, MIN_BYTES_PER_SECOND};
use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::router::{UnfinishedBody, is_probe_path};
use crate::certificate_expiry::earliest_expiry;
use crate::certificate_handshake::{check_chain, try_handshake};
use crate::condition_log::ConditionLog;
use crate::error::{Result, with_context};
use crate::limits::byte_budget::network_of;
use crate::service::ServiceState;

/// Pause after the system refused to accept a connection, as it does when too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of a head that are read beyond twice the limit, for optional blanks around values, which do not
/// count.
const UNCOUNTED_HEAD_BYTES: usize = 8 << 10;

/// Connections beyond `--connections` that are accepted for probes only.
const RESERVED_CONNECTIONS: usize = 32;

/// Longest time for a head, and longest idle time, of a reserved connection.
const RESERVED_TIMEOUT: Duration = Duration::from_secs(2);

/// Address of the client, as an extension of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Numbers of open connections by address.
#[derive(Default)]
struct AddressCounts(Mutex<HashMap<IpAddr, usize>>);

impl AddressCounts {
    /// Counts a connection of an address, unless it has `most` already; `None` means no limit.
    fn count_connection(
        self: &Arc<Self>,
        address: IpAddr,
        most: Option<usize>,
    ) -> Option<CountedAddress> {
        let network = network_of(address);
        let mut counts = self.lock_counts();
        let count = counts.entry(network).or_default();
        if most.is_some_and(|most| *count >= most) {
            return None;
        }
        *count += 1;
        Some(CountedAddress {
            counts: Arc::clone(self),
            network,
        })
    }

    fn lock_counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // Every change is complete before the lock is released, so a poisoned lock is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counted connection; it no longer counts once this is dropped.
struct CountedAddress {
    counts: Arc<AddressCounts>,
    network: IpAddr,
}

impl Drop for CountedAddress {
    fn drop(&mut self) {
        let mut counts = self.counts.lock_counts();
        if let Some(count) = counts.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.network);
            }
        }
    }
}

/// Waits for a connection slot: a usual one, or a reserved one (`true`) while all usual ones are taken.
async fn find_place(room: &Arc<Semaphore>, reserve: &Arc<Semaphore>) -> (ConnectionPlace, bool) {
    tokio::select! {
        biased;
        place = Arc::clone(room).acquire_owned() => (place.ok(), false),
        place = Arc::clone(reserve).acquire_owned() => (place.ok(), true),
    }
}

/// A connection slot, which is free again when this is dropped.
type ConnectionPlace = Option<OwnedSemaphorePermit>;

/// Accepts connections until `stop`, then waits until open requests are answered. `enough` ends that wait.
pub(crate) async fn accept_until_stopped(
    listener: TcpListener,
    router: Router,
    service: &Arc<ServiceState>,
    stop: impl Future<Output = ()>,
    enough: impl Future<Output = &'static str>,
) {
    let graceful = GracefulShutdown::new();
    let limits = service.config.limits;
    let room = Arc::new(Semaphore::new(limits.connections));
    let reserve = Arc::new(Semaphore::new(RESERVED_CONNECTIONS));
    let addresses = Arc::new(AddressCounts::default());
    let mut refusals = ConditionLog::default();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            // A usual slot may become free while nothing arrives, so the kind of slot is decided only after
            // accepting.
            let (waiting, _) = find_place(&room, &reserve).await;
            let accepted = listener.accept().await;
            drop(waiting);
            let place = find_place(&room, &reserve).await;
            (place, accepted)
        };
        let ((place, is_reserved), accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let address = peer.ip().to_canonical();
                let most = service.config.connections_of(address);
                let Some(counted) = addresses.count_connection(address, most) else {
                    service.metrics.refused_connections.fetch_add(1, Relaxed);
                    continue;
                };
                let connection = ClientConnection {
                    address,
                    is_reserved,
                    tls: service.reloaded.tls(),
                    router: router.clone(),
                    service: Arc::clone(service),
                    watcher: graceful.watcher(),
                };
                tokio::spawn(async move {
                    connection.serve_connection(stream).await;
                    drop((place, counted));
                });
            }
            Err(error) => {
                // Clients try again at once, so the refusals would fill the log.
                let now = std::time::Instant::now();
                if let Some(times) = refusals.count_failure("", &error.to_string(), now) {
                    tracing::warn!(error = %error, times, "a connection was not accepted");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tracing::info!("stopping: no new requests are accepted");
    tokio::select! {
        biased;
        () = graceful.shutdown() => tracing::info!("stopped"),
        why = enough => tracing::warn!(why, "stopped before all requests had their answers"),
    }
}

/// Everything that a connection needs.
struct ClientConnection {
    address: IpAddr,
    /// `true` if the connection answers probes only.
    is_reserved: bool,
    tls: Option<TlsAcceptor>,
    router: Router,
    service: Arc<ServiceState>,
    watcher: Watcher,
}

impl ClientConnection {
    async fn serve_connection(self, stream: TcpStream) {
        let service = Arc::clone(&self.service);
        let connections = &service.metrics.connections;
        connections.fetch_add(1, Relaxed);
        if let Err(error) = self.try_serve_connection(stream).await {
            if is_malformed(&error) {
                service.metrics.malformed.fetch_add(1, Relaxed);
            }
            tracing::debug!(error = %error, "a connection ended");
        }
        connections.fetch_sub(1, Relaxed);
    }

    async fn try_serve_connection(self, stream: TcpStream) -> io::Result<()> {
        let limits = self.service.config.limits;
        stream.set_nodelay(true)?;
        let unread = UnreadBody::default();
        let stream = PatientStream::new(stream, limits.body_timeout, unread.clone());
        let Some(tls) = self.tls.clone() else {
            return self.speak_http(stream, unread).await;
        };
        let shaken = timeout(self.header_timeout(), tls.accept(stream)).await;
        self.speak_http(shaken.map_err(io::Error::other)??, unread)
            .await
    }

    fn header_timeout(&self) -> Duration {
        let timeout = self.service.config.limits.header_timeout;
        if self.is_reserved {
            timeout.min(RESERVED_TIMEOUT)
        } else {
            timeout
        }
    }

    async fn speak_http(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        unread: UnreadBody,
    ) -> io::Result<()> {
        let limits = self.service.config.limits;
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout())
            // Twice the limit is read, so that the refusal can name the actual size; see `check_head`.
            .max_buf_size(2 * limits.header + UNCOUNTED_HEAD_BYTES);
        let router = TowerToHyperService::new(self.router);
        let (address, is_reserved) = (self.address, self.is_reserved);
        let access = ConnectionAccess::default();
        let latest_access = access.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let refused = is_reserved && !is_probe_path(request.uri().path());
            request.extensions_mut().insert(PeerAddress(address));
            request.extensions_mut().insert(latest_access.clone());
            let unread = unread.clone();
            let request = request.map(|body| Body::new(WatchedBody::new(body, unread.clone())));
            let answer = router.call(request);
            async move {
                let response = if refused {
                    no_place_left().to_response()
                } else {
                    answer.await?
                };
                Ok::<_, Infallible>(close_if_unread(response, &unread))
            }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let watched = self.watcher.watch(connection);
        tokio::select! {
            served = watched => served.map_err(io::Error::other),
            problem = access.wait_until_cut(limits.drain) => Err(io::Error::other(problem.detail)),
        }
    }
}

/// Returns the answer to everything but probes while every slot is taken.
fn no_place_left() -> ApiProblem {
    let detail = "the service has the maximum number of connections: try again";
    ApiProblem::new(ProblemCode::Busy, detail)
}

/// Announces that the connection closes, if the request body was not read completely: a client that sent its
/// next request on the connection would get no answer.
fn close_if_unread(mut response: Response<Body>, unread: &UnreadBody) -> Response<Body> {
    let is_read_later = response.extensions().get::<UnfinishedBody>().is_some();
    if unread.0.load(Relaxed) && !is_read_later {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns `true` if a connection ended because a request head could not be parsed.
fn is_malformed(error: &io::Error) -> bool {
    let source = error.get_ref().and_then(|source| source.downcast_ref());
    source.is_some_and(hyper::Error::is_parse)
}

/// `true` while part of the last request of a connection has not been read.
#[derive(Clone, Default)]
struct UnreadBody(Arc<AtomicBool>);

/// A request body that records whether it has been read to its end.
struct WatchedBody {
    body: Incoming,
    unread: UnreadBody,
}

impl WatchedBody {
    fn new(body: Incoming, unread: UnreadBody) -> Self {
        unread.0.store(!body.is_end_stream(), Relaxed);
        Self { body, unread }
    }
}

impl hyper::body::Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Polling<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.unread.0.store(false, Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose writes fail if the client takes nothing for too long, and which drops the rest of a request
/// before it closes.
struct PatientStream<S> {
    stream: S,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    /// Start and longest duration of the current wait. Bytes taken extend the next wait, up to `patience`, so
    /// a client that takes a little at a time cannot hold its answer for ever.
    waiting_since: Instant,
    allowance: Duration,
    unread: UnreadBody,
    /// Bytes that were dropped, and the deadline for dropping.
    dropped: usize,
    dropping: Option<Pin<Box<Sleep>>>,
}

impl<S> PatientStream<S> {
    fn new(stream: S, patience: Duration, unread: UnreadBody) -> Self {
        Self {
            stream,
            patience,
            waiting: None,
            waiting_since: Instant::now(),
            allowance: patience,
            unread,
            dropped: 0,
            dropping: None,
        }
    }

    /// Returns the result of a write, or a timeout error if it has been pending for too long.
    fn fail_if_late<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Polling<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.waiting.take().is_some() {
                let waited = self.waiting_since.elapsed();
                self.allowance = self.allowance.saturating_sub(waited);
            }
            return written;
        }
        let allowance = self.allowance;
        if self.waiting.is_none() {
            self.waiting_since = Instant::now();
        }
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(allowance)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S> PatientStream<S> {
    /// Extends the allowed wait in proportion to the bytes taken.
    fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            let earned = Duration::from_secs_f64(*bytes as f64 / MIN_BYTES_PER_SECOND as f64);
            self.allowance = (self.allowance + earned).min(self.patience);
        }
    }
}

impl<S: AsyncRead + Unpin> PatientStream<S> {
    /// Reads and drops input until the client closes its side, or the limit of bytes or time is reached.
    fn drop_remaining(&mut self, context: &mut Polling<'_>) -> Poll<()> {
        let patience = MAX_DROP_TIME.min(self.patience);
        let enough = self
            .dropping
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        let mut bytes = [const { MaybeUninit::uninit() }; 16 << 10];
        while self.dropped < MAX_DROPPED_BYTES && enough.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::uninit(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            self.dropped += buffer.filled().len();
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Polling<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Polling<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        let written = self.fail_if_late(written, context);
        self.count_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Polling<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        let written = self.fail_if_late(written, context);
        self.count_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Polling<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.fail_if_late(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Polling<'_>) -> Poll<io::Result<()>> {
        if self.dropping.is_none() {
            let shut = Pin::new(&mut self.stream).poll_shutdown(context);
            ready!(self.fail_if_late(shut, context))?;
        }
        if self.unread.0.load(Relaxed) {
            ready!(self.drop_remaining(context));
        }
        Poll::Ready(Ok(()))
    }
}

/// A certificate in use.
pub(crate) struct ServedCertificate {
    pub(crate) acceptor: TlsAcceptor,
    /// The earliest expiry of the chain, in seconds since 1970; `None` if that cannot be read.
    pub(crate) expiry: Option<i64>,
}

/// Reads a certificate and its key, and makes a handshake with them.
///
/// # Errors
/// If a file cannot be read, the two do not belong together, or a client could not connect with them, for example
/// because a further certificate of the chain is damaged.
pub(crate) fn load_tls(
    (certificate, key): &(impl AsRef<Path>, impl AsRef<Path>),
) -> Result<ServedCertificate> {
    let (certificate, key) = (certificate.as_ref(), key.as_ref());
    let of_certificate = format!("the certificate {}", certificate.display());
    let of_key = format!("the key {}", key.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .map_err(with_context(&of_certificate))?
        .collect();
    let chain = chain.map_err(with_context(&of_certificate))?;
    check_chain(&chain).map_err(with_context(&of_certificate))?;
    let expiry = earliest_expiry(&chain);
    let key = PrivateKeyDer::from_pem_file(key).map_err(with_context(of_key))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(with_context(&of_certificate))?;
    let config = Arc::new(config);
    try_handshake(&config).map_err(with_context(&of_certificate))?;
    Ok(ServedCertificate {
        acceptor: TlsAcceptor::from(config),
        expiry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// Writes 64 KiB to a client that takes so many bytes every 20 ms, of which the system keeps as many.
    async fn write_to_client(bytes: usize) -> io::Result<()> {
        let (ours, mut theirs) = tokio::io::duplex(bytes);
        let client = tokio::spawn(async move {
            let mut taken = vec![0; bytes];
            while theirs.read_exact(&mut taken).await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
        });
        let patience = Duration::from_millis(500);
        let mut stream = PatientStream::new(ours, patience, UnreadBody::default());
        let written = stream.write_all(&[b'a'; 64 << 10]).await;
        drop(stream);
        let _ = client.await;
        written
    }

    /// A client that always takes a little, and never is silent for long, is given up below the least rate.
    #[tokio::test]
    async fn responses_need_a_minimum_rate() {
        let begun = Instant::now();
        let slow = write_to_client(256).await;
        assert_eq!(slow.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // All of it would take more than four seconds.
        assert!(begun.elapsed() < Duration::from_secs(4));
        assert!(write_to_client(4 << 10).await.is_ok());
    }
}
