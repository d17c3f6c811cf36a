//! Configuration of a service, as validated settings.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use lookalike_documents::PdfReader;

use crate::access::AccessKeys;
use crate::api::request_log::RequestLogSettings;
use crate::document_passages::FindDocumentPassages;
use crate::limits::byte_budget::ByteBudget;
use crate::replication::ReplicaSettings;
use crate::snapshots::SnapshotPlace;
use crate::snapshots::schedule::SnapshotSchedule;

/// A call with the address on which the service listens.
pub type ListeningCall = Box<dyn FnOnce(SocketAddr) + Send + Sync>;

/// Configuration of a service.
pub struct ServiceConfig {
    /// Directory of the collections.
    pub data: PathBuf,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Called once, as soon as the service listens. The port is then known, also if [`listen`](Self::listen) leaves it to the
    /// system.
    pub when_listening: Option<ListeningCall>,
    /// Place of the snapshots; `None` if the service makes none.
    pub snapshots: Option<SnapshotPlace>,
    /// When snapshots are made without a request; needs a place.
    pub snapshot_schedule: Option<SnapshotSchedule>,
    /// The shared log that the service follows; `None` if it is alone.
    pub replica: Option<ReplicaSettings>,
    /// Number of threads that prepare documents, from 1.
    pub threads: usize,
    /// The accepted keys.
    pub keys: AccessKeys,
    /// File of the keys, which is read again on SIGHUP.
    pub key_file: Option<PathBuf>,
    /// `true` if requests must name the service by a loopback address.
    pub only_loopback: bool,
    /// `true` if browsers get the console at `/`.
    pub serves_console: bool,
    /// Reader of PDF files that clients send; `None` refuses them.
    pub pdf: Option<PdfReader>,
    /// Returns free memory of the calling thread to the system, after work that takes much of it.
    pub release_memory: fn(),
    /// Returns memory to the system that the process has not used for some seconds. It is called before each
    /// round of maintenance, at most once a second.
    pub release_unused_memory: fn(),
    /// Search for passages among the documents of a request.
    pub find_document_passages: FindDocumentPassages,
    /// Addresses of proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// Files of the certificate and its key, which are read again on SIGHUP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// URL of the collector of traces; `None` if requests are not traced.
    pub traces: Option<String>,
    /// Which requests are logged.
    pub request_log: RequestLogSettings,
    /// Limits on what clients may use.
    pub limits: ClientLimits,
}

/// Limits on what clients may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClientLimits {
    /// Open connections.
    pub connections: usize,
    /// Open connections per address; `None` means no limit.
    pub per_address: Option<usize>,
    /// Requests per second per client; `None` means no limit.
    pub rate: Option<u32>,
    /// Bytes of a request head.
    pub header: usize,
    /// Bytes of a document; less than [`client_share`](Self::client_share), so that a client can queue it.
    pub document: u64,
    /// Bytes of a request body after decompression.
    pub body: u64,
    /// Bytes of documents that wait for their answers.
    pub queue: usize,
    /// Longest time for the head of a request, and for an idle connection.
    pub header_timeout: Duration,
    /// Longest time in which a body brings nothing, or a client reads nothing of its answer.
    pub body_timeout: Duration,
    /// Longest time for open requests after a signal to stop, and after the end of the access of their callers.
    pub drain: Duration,
    /// Bytes of disk space that stay free.
    pub headroom: u64,
    /// Steps of verification that a document may take.
    pub verification_steps: u64,
    /// Steps that a search for passages may take.
    pub passage_steps: u64,
    /// Bytes of memory of the indexes of passages, of all collections together.
    pub passage_memory: u64,
}

impl ServiceConfig {
    /// Returns `true` if the address is that of a trusted proxy.
    pub(crate) fn trusts_proxy(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.contains(&peer)
    }

    /// Returns how many connections an address may have. A trusted proxy is not limited, because all of its
    /// clients share its address.
    pub(crate) fn connections_of(&self, peer: IpAddr) -> Option<usize> {
        self.limits.per_address.filter(|_| !self.trusts_proxy(peer))
    }
}

impl ClientLimits {
    /// Returns the bytes of the queue that one client can hold.
    pub fn client_share(&self) -> u64 {
        ByteBudget::client_share(self.queue) as u64
    }
}
