//! Request bodies: decompressed, within limits, and in time.
//!
//! A compressed body is decompressed piece by piece, so memory does not depend on the size that a body
//! claims, and other requests run between two pieces, also of bodies that arrive faster than they are
//! read. These limits protect the service:
//!
//! - A body that expands to more than [`MAX_EXPANSION`] times the bytes received is refused, because a small
//!   request must not cost much time.
//! - A body that brings less than 1 KiB in the time given is cut off.
//! - A body is not read any further once the access of its caller has ended.
//! - After a body has been refused, its remaining bytes are read and dropped for a while, because a client
//!   that is still sending may not read the answer yet.

use std::future::pending;
use std::io::{self, BufRead, Read};
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use crate::access::request_access::RequestAccess;
use crate::api::problem::{ApiProblem, ProblemCode};

/// Bytes that are decompressed at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Largest ratio of decompressed to received bytes, checked beyond [`FREE_EXPANSION_BYTES`] bytes.
const MAX_EXPANSION: u64 = 250;
const FREE_EXPANSION_BYTES: u64 = 4 << 20;

/// Lowest average rate, in bytes per second, at which a body must arrive and an answer must be taken, beyond
/// the time that a client may be silent.
pub(crate) const MIN_BYTES_PER_SECOND: u64 = 32 << 10;

/// The UTF-8 byte order mark, with which some programs begin a text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes that count as progress.
const PROGRESS_BYTES: u64 = 1 << 10;

/// Bytes of a refused request that are read and dropped, and the longest time for it. This is enough for most
/// clients that send everything before they read the answer.
pub(crate) const MAX_DROPPED_BYTES: usize = 64 << 20;
pub(crate) const MAX_DROP_TIME: Duration = Duration::from_secs(10);

/// Base-2 logarithm of the largest window of a zstd frame: 8 MiB, as HTTP requires (RFC 9659).
const WINDOW_LOG: u32 = 23;

/// A request body, read piece by piece.
pub(crate) struct BodyReader {
    body: Body,
    decoder: BodyDecoder,
    /// Buffer for decompressed bytes; empty for an uncompressed body.
    buffer: Vec<u8>,
    /// Decompressed bytes that may still come; `most` is the limit.
    left: u64,
    most: u64,
    /// `true` once the limit has been exceeded.
    over: bool,
    /// Bytes received, before decompression.
    received: u64,
    /// Bytes since the task last yielded to other requests.
    unyielded: usize,
    begun: Instant,
    patience: Duration,
    deadline: Option<Instant>,
    /// Bytes received since the deadline was set.
    brought: u64,
    /// A frame that was read in advance by [`wait_for_begin`](Self::wait_for_begin); `Some(None)` at the
    /// end of the body.
    first: Option<Option<Bytes>>,
    /// Ends when the caller may not make the call any more.
    access_end: AccessEnd,
}

/// Wait for the end of an access, which returns the reason.
type AccessEnd = Pin<Box<dyn Future<Output = ApiProblem> + Send>>;

enum BodyDecoder {
    Plain,
    Gzip(Box<MultiGzDecoder<DecoderFeed>>),
    Zstd(Box<zstd::Decoder<'static, DecoderFeed>>),
}

impl BodyReader {
    /// Creates a reader for a body of at most `most` decompressed bytes.
    ///
    /// # Errors
    /// If the `Content-Encoding` is not supported.
    pub(crate) fn new(
        headers: &HeaderMap,
        body: Body,
        most: u64,
        patience: Duration,
    ) -> Result<Self, ApiProblem> {
        let decoder = BodyDecoder::from_headers(headers)?;
        let buffer = match decoder {
            BodyDecoder::Plain => 0,
            BodyDecoder::Gzip(_) | BodyDecoder::Zstd(_) => PIECE_BYTES,
        };
        Ok(Self {
            body,
            decoder,
            buffer: vec![0; buffer],
            left: most,
            most,
            over: false,
            received: 0,
            unyielded: 0,
            begun: Instant::now(),
            patience,
            deadline: None,
            brought: 0,
            first: None,
            access_end: Box::pin(pending()),
        })
    }

    /// Sets the access with whose end reading fails.
    pub(crate) fn with_access(self, access: RequestAccess) -> Self {
        Self {
            access_end: Box::pin(access.wait_until_ended()),
            ..self
        }
    }

    /// Checks the length that the request states.
    ///
    /// # Errors
    /// If it is above the limit.
    pub(crate) fn check_stated_length(&self) -> Result<(), ApiProblem> {
        let stated = self.body.size_hint().lower();
        if !matches!(self.decoder, BodyDecoder::Plain) || stated <= self.most {
            return Ok(());
        }
        let detail = format!(
            "the body has {stated} bytes, more than the limit of {}",
            self.most
        );
        Err(ApiProblem::new(ProblemCode::TooLarge, detail))
    }

    /// Returns the largest length that the body can have: that which the request states, or the limit.
    pub(crate) fn longest_length(&self) -> usize {
        let stated = match self.decoder {
            BodyDecoder::Plain => self.body.size_hint().upper(),
            BodyDecoder::Gzip(_) | BodyDecoder::Zstd(_) => None,
        };
        let unread = stated.map(|unread| unread.saturating_add(self.received));
        let longest = unread.unwrap_or(self.most).min(self.most);
        usize::try_from(longest).unwrap_or(usize::MAX)
    }

    /// Waits until the body has begun. A client that sent `Expect: 100-continue` is told to send its body by
    /// this first read, and only if it has no answer by then.
    ///
    /// # Errors
    /// If nothing arrives in time, the body breaks off, or the access of the caller ends.
    pub(crate) async fn wait_for_begin(&mut self) -> Result<(), ApiProblem> {
        self.first = Some(self.next_frame().await?);
        self.stop_waiting();
        Ok(())
    }

    /// Reads and drops the rest, until it ends, is too long or takes too long.
    pub(crate) async fn discard_rest(mut self) {
        let rest = async {
            let mut dropped = 0;
            while let Some(Ok(frame)) = self.body.frame().await
                && dropped < MAX_DROPPED_BYTES
            {
                dropped += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        let _ = timeout(MAX_DROP_TIME.min(self.patience), rest).await;
    }

    /// Returns the next piece, or `None` at the end. Cancel safe: the future may be dropped, and this called
    /// again.
    ///
    /// # Errors
    /// If the body is too large, too slow, or does not have its stated encoding, or if the access of the caller ends.
    pub(crate) async fn next_piece(&mut self) -> Result<Option<Bytes>, ApiProblem> {
        loop {
            if self.over {
                return Err(body_too_large("the body", self.most));
            }
            if !matches!(self.decoder, BodyDecoder::Plain) || self.unyielded >= PIECE_BYTES {
                // Neither decompression nor a body that arrives fast ever waits by itself; without this, one
                // body would occupy a thread.
                self.unyielded = 0;
                yield_now().await;
            }
            let piece = self
                .decoder
                .decode_piece(&mut self.buffer)
                .map_err(malformed_encoding)?;
            if let Some(piece) = piece {
                let piece = self.within_limit(piece);
                self.check_expansion()?;
                return Ok(Some(piece));
            }
            let Some(bytes) = self.next_frame().await? else {
                let last = self
                    .decoder
                    .finish_piece(&mut self.buffer)
                    .map_err(malformed_encoding)?;
                return Ok(last.map(|piece| self.within_limit(piece)));
            };
            match self.decoder.decoder_feed() {
                None => return Ok(Some(self.within_limit(bytes))),
                Some(feed) => feed.waiting = bytes,
            }
        }
    }

    /// Refuses a body that expands to far more than was sent.
    fn check_expansion(&self) -> Result<(), ApiProblem> {
        let expanded = self.most - self.left;
        if expanded <= FREE_EXPANSION_BYTES.max(MAX_EXPANSION * self.received) {
            return Ok(());
        }
        let detail = format!(
            "the body expands to more than {MAX_EXPANSION} times the {} bytes that were sent: send \
             it uncompressed",
            self.received
        );
        Err(ApiProblem::new(ProblemCode::TooLarge, detail))
    }

    /// Checks that a body has arrived at [`MIN_BYTES_PER_SECOND`] or faster since it was first read.
    ///
    /// # Errors
    /// If it was slower.
    pub(crate) fn check_rate(&self, bytes: usize) -> Result<(), ApiProblem> {
        check_rate(self.begun, self.patience, bytes)
    }

    /// Suspends the deadline until the next piece is requested.
    pub(crate) fn stop_waiting(&mut self) {
        self.deadline = None;
    }

    /// Cuts a piece at the limit. The next call reports that there was more.
    fn within_limit(&mut self, mut piece: Bytes) -> Bytes {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        self.over = piece.len() > left;
        piece.truncate(left);
        self.left -= piece.len() as u64;
        piece
    }

    async fn next_frame(&mut self) -> Result<Option<Bytes>, ApiProblem> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        loop {
            if self.deadline.is_none() || self.brought >= PROGRESS_BYTES {
                self.deadline = Some(Instant::now() + self.patience);
                self.brought = 0;
            }
            let deadline = self.deadline.unwrap_or_else(Instant::now);
            let frame = tokio::select! {
                biased;
                problem = &mut self.access_end => {
                    // A completed future must not be polled again.
                    self.access_end = Box::pin(std::future::ready(problem.clone()));
                    return Err(problem);
                }
                frame = timeout_at(deadline, self.body.frame()) => frame,
            };
            let frame = frame.map_err(|_| body_too_slow(self.patience))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| {
                ApiProblem::new(ProblemCode::BadBody, format!("the body broke off: {error}"))
            })?;
            // Trailers have no meaning here.
            if let Ok(bytes) = frame.into_data()
                && !bytes.is_empty()
            {
                self.brought += bytes.len() as u64;
                self.received += bytes.len() as u64;
                self.unyielded += bytes.len();
                return Ok(Some(bytes));
            }
        }
    }
}

/// Checks that at least [`MIN_BYTES_PER_SECOND`] have arrived, beyond the time that a client may be silent.
///
/// # Errors
/// If the rate was lower.
pub(crate) fn check_rate(
    begun: Instant,
    patience: Duration,
    bytes: usize,
) -> Result<(), ApiProblem> {
    let allowed = patience + Duration::from_secs_f64(bytes as f64 / MIN_BYTES_PER_SECOND as f64);
    let elapsed = begun.elapsed();
    if elapsed <= allowed {
        return Ok(());
    }
    let detail = format!(
        "{bytes} bytes took {:.0} s: at least {MIN_BYTES_PER_SECOND} bytes a second are expected",
        elapsed.as_secs_f64()
    );
    Err(ApiProblem::new(ProblemCode::TooSlow, detail))
}

pub(crate) fn body_too_large(what: &str, most: u64) -> ApiProblem {
    let detail = format!("{what} has more than {most} bytes, the limit");
    ApiProblem::new(ProblemCode::TooLarge, detail)
}

fn body_too_slow(patience: Duration) -> ApiProblem {
    let seconds = patience.as_secs_f64();
    let detail = format!("the body brought less than {PROGRESS_BYTES} bytes in {seconds} s");
    ApiProblem::new(ProblemCode::TooSlow, detail)
}

fn malformed_encoding(error: io::Error) -> ApiProblem {
    let detail = format!("the body does not match its Content-Encoding: {error}");
    ApiProblem::new(ProblemCode::BadBody, detail)
}

impl BodyDecoder {
    fn from_headers(headers: &HeaderMap) -> Result<Self, ApiProblem> {
        let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
        let encoding = encodings
            .next()
            .map(|encoding| encoding.to_str().unwrap_or("?"));
        if encodings.next().is_some() {
            let detail = "the request has several Content-Encoding headers: give one of gzip, \
                zstd, identity";
            return Err(ApiProblem::new(ProblemCode::UnsupportedEncoding, detail));
        }
        match encoding.map(str::to_ascii_lowercase).as_deref() {
            None | Some("identity") => Ok(Self::Plain),
            Some("gzip" | "x-gzip") => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(
                DecoderFeed::default(),
            )))),
            Some("zstd") => {
                let decoder =
                    zstd::Decoder::with_buffer(DecoderFeed::default()).and_then(|mut it| {
                        it.window_log_max(WINDOW_LOG)?;
                        Ok(it)
                    });
                Ok(Self::Zstd(Box::new(decoder.map_err(malformed_encoding)?)))
            }
            Some(other) => {
                let shown: String = other.chars().take(40).collect();
                let detail =
                    format!("the Content-Encoding '{shown}' is not one of gzip, zstd, identity");
                Err(ApiProblem::new(ProblemCode::UnsupportedEncoding, detail))
            }
        }
    }

    fn decoder_feed(&mut self) -> Option<&mut DecoderFeed> {
        match self {
            Self::Plain => None,
            Self::Gzip(decoder) => Some(decoder.get_mut()),
            Self::Zstd(decoder) => Some(decoder.get_mut()),
        }
    }

    /// Returns a decompressed piece, or `None` if all input so far is used up.
    fn decode_piece(&mut self, buffer: &mut [u8]) -> io::Result<Option<Bytes>> {
        let read = match self {
            Self::Plain => return Ok(None),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        };
        match read {
            Ok(0) => Ok(None),
            Ok(read) => Ok(Some(Bytes::copy_from_slice(&buffer[..read]))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a piece after all input was fed, or `None` at the end.
    fn finish_piece(&mut self, buffer: &mut [u8]) -> io::Result<Option<Bytes>> {
        if let Some(feed) = self.decoder_feed() {
            feed.ended = true;
        }
        self.decode_piece(buffer)
    }
}

/// Input of a decoder: the bytes received and not yet decompressed.
#[derive(Default)]
struct DecoderFeed {
    waiting: Bytes,
    ended: bool,
}

impl BufRead for DecoderFeed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.waiting.is_empty() && !self.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(&self.waiting)
    }

    fn consume(&mut self, count: usize) {
        let _ = self.waiting.split_to(count);
    }
}

impl Read for DecoderFeed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        self.consume(count);
        Ok(count)
    }
}
