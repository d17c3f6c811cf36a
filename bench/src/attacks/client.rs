//! Connections from a chosen address of this machine, and the clients whose answers are timed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::{Domain, Socket, Type};

use super::{ADMIN_KEY, COLLECTION_PATH, HONEST_ADDRESS, PROBER_ADDRESS};

pub(super) const NDJSON_TYPE: &str = "application/x-ndjson";

/// Longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// Connections of the honest client: one that waits keeps no other request from being sent.
const HONEST_CONNECTIONS: usize = 16;

/// A connection from a chosen address.
pub(super) struct Connection {
    pub(super) stream: BufReader<TcpStream>,
}

/// An answer.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Connection {
    /// # Errors
    /// If the service does not accept.
    pub(super) fn open(from: [u8; 4], to: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((from, 0)).into())?;
        socket.connect_timeout(&to.into(), ANSWER_TIMEOUT)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// # Errors
    /// If the service takes nothing in time, or has closed the connection.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// If there is none in time.
    pub(super) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<HttpAnswer> {
        self.send(head_of(method, path, headers, body.len()).as_bytes())?;
        // A service that refuses a body may close before it has all of it, and has answered then.
        let sent = self.send(body);
        self.answer().map_err(|error| sent.err().unwrap_or(error))
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// If there is none in time.
    pub(super) fn answer(&mut self) -> io::Result<HttpAnswer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let head = head.to_ascii_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let mut body = Vec::new();
        if let Some(length) =
            value("content-length: ").and_then(|length| length.trim().parse().ok())
        {
            (&mut self.stream).take(length).read_to_end(&mut body)?;
        } else if value("transfer-encoding: ").is_some() {
            while self.chunk(&mut body)? {}
        }
        Ok(HttpAnswer {
            status: status.ok_or(io::ErrorKind::InvalidData)?,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }

    /// Reads a chunk of a body; returns whether more may come.
    fn chunk(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        let mut size = String::new();
        self.stream.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        (&mut self.stream).take(size).read_to_end(body)?;
        self.stream.read_line(&mut String::new())?;
        Ok(size > 0)
    }
}

/// The head of a request; the value of `Authorization` is a key.
pub(super) fn head_of(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        let scheme = if *name == "Authorization" {
            "Bearer "
        } else {
            ""
        };
        head.push_str(&format!("{name}: {scheme}{value}\r\n"));
    }
    head + &format!("Content-Length: {length}\r\n\r\n")
}

/// Answers that a client had, or had not.
#[derive(Default)]
pub(super) struct ClientLog {
    /// From the moment a request was due to its answer, of requests before the signal to stop.
    pub(super) times: Vec<Duration>,
    /// Requests among them without the answer that was due.
    pub(super) refused: usize,
    /// Documents as they were sent, and their answers as they came.
    pub(super) acknowledged: Vec<(String, String)>,
}

impl ClientLog {
    /// Counts a request that was due before the signal to stop, if that has come.
    /// One that was refused after it counts only if it had waited so long before.
    fn count(
        &mut self,
        due: Instant,
        stopped: Option<&Instant>,
        is_answered: bool,
        longest_wait: Duration,
    ) {
        let duration = match stopped {
            // It would have waited longer, had the service gone on.
            Some(&stopped) if !is_answered => stopped.saturating_duration_since(due),
            _ => due.elapsed(),
        };
        let counts = stopped.is_none_or(|&stopped| due < stopped);
        let is_late = stopped.is_none() || duration > longest_wait;
        if counts && (is_answered || is_late) {
            self.times.push(duration);
            self.refused += usize::from(!is_answered);
        }
    }

    fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.refused += other.refused;
        self.acknowledged.extend(other.acknowledged);
    }
}

/// A client that inserts and asks at a steady rate.
pub(super) struct HonestClient {
    address: SocketAddr,
    texts: Vec<String>,
    /// Requests a second.
    rate: f64,
    next: AtomicUsize,
    answered: AtomicUsize,
    /// Id of a document that is stored, once there is one.
    stored: OnceLock<usize>,
    longest_wait: Duration,
}

/// A request of the honest client.
enum HonestRequest {
    Insert,
    Query,
    /// Reads a stored document.
    Read(usize),
}

impl HonestClient {
    /// Every text is sent once; then the client begins anew with a number before it.
    pub(super) fn new(
        address: SocketAddr,
        texts: Vec<String>,
        rate: f64,
        longest_wait: Duration,
    ) -> Self {
        Self {
            address,
            texts,
            rate,
            next: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            stored: OnceLock::new(),
            longest_wait,
        }
    }

    /// Sends until the service has ended; only what is due before the signal to stop counts.
    pub(super) fn run(&self, stopped: &OnceLock<Instant>, ended: &AtomicBool) -> ClientLog {
        let started = Instant::now();
        let mut log = ClientLog::default();
        std::thread::scope(|scope| {
            let work = || self.send_documents(started, stopped, ended);
            let threads: Vec<_> = (0..HONEST_CONNECTIONS).map(|_| scope.spawn(work)).collect();
            let logs = threads.into_iter().filter_map(|thread| thread.join().ok());
            logs.for_each(|one| log.add(one));
        });
        log
    }

    fn send_documents(
        &self,
        started: Instant,
        stopped: &OnceLock<Instant>,
        ended: &AtomicBool,
    ) -> ClientLog {
        let mut log = ClientLog::default();
        let mut connection = None;
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let due = started + Duration::from_secs_f64(at as f64 / self.rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let counts = stopped.get().is_none_or(|&stopped| due < stopped);
            if ended.load(Ordering::Relaxed) && !counts {
                return log;
            }
            let request = match (at % 4, self.stored.get()) {
                (1 | 3, _) => HonestRequest::Insert,
                (2, Some(&stored)) => HonestRequest::Read(stored),
                _ => HonestRequest::Query,
            };
            let is_insert = matches!(request, HonestRequest::Insert);
            let sent = self.document(at);
            let answer = self.ask(&mut connection, &request, &sent);
            log.count(due, stopped.get(), answer.is_some(), self.longest_wait);
            if let Some(answer) = answer.filter(|_| is_insert) {
                log.acknowledged.push((sent, answer));
                self.answered.fetch_add(1, Ordering::Relaxed);
                self.stored.get_or_init(|| at);
            }
        }
    }

    /// Inserts that were answered so far.
    pub(super) fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    fn document(&self, at: usize) -> String {
        let (round, place) = (at / self.texts.len(), at % self.texts.len());
        let text = match round {
            0 => self.texts[place].clone(),
            _ => format!("{round} {}", self.texts[place]),
        };
        json!({ "id": at.to_string(), "text": text }).to_string()
    }

    /// Returns the answer if it is the one that is due.
    fn ask(
        &self,
        connection: &mut Option<Connection>,
        request: &HonestRequest,
        sent: &str,
    ) -> Option<String> {
        let (method, call, body) = match request {
            HonestRequest::Insert => ("POST", "documents".to_owned(), sent),
            HonestRequest::Query => ("POST", "query".to_owned(), sent),
            HonestRequest::Read(id) => ("GET", format!("documents/{id}"), ""),
        };
        let headers = [
            ("Authorization", ADMIN_KEY),
            ("Content-Type", "application/json"),
        ];
        if connection.is_none() {
            *connection = Connection::open(HONEST_ADDRESS, self.address).ok();
        }
        let open = connection.as_mut()?;
        let path = format!("{COLLECTION_PATH}/{call}");
        let answer = open.ask(method, &path, &headers, body.as_bytes());
        match answer {
            Ok(answer) if answer.status == 200 && answer.body.contains("\"verdict\"") => {
                Some(answer.body)
            }
            _ => {
                *connection = None;
                None
            }
        }
    }
}

/// Asks `/livez` over new connections until the service is told to stop, and counts its answers.
pub(super) fn probe_liveness(
    address: SocketAddr,
    stopped: &OnceLock<Instant>,
    longest_wait: Duration,
    answered: &AtomicUsize,
) -> ClientLog {
    let (mut due, mut log) = (Instant::now(), ClientLog::default());
    while stopped.get().is_none() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let probed = Connection::open(PROBER_ADDRESS, address)
            .and_then(|mut connection| connection.ask("GET", "/livez", &[], b""));
        let is_live = probed.is_ok_and(|answer| answer.status == 200);
        log.count(due, stopped.get(), is_live, longest_wait);
        answered.fetch_add(usize::from(is_live), Ordering::Relaxed);
        due += PROBE_INTERVAL;
    }
    log
}
