//! A running service, and a client that speaks HTTP over a socket, so that a test controls every byte.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{self, Place};

/// Options of a service with the certificate of [`write_certificate`].
pub(crate) const TLS_OPTIONS: &str = "--tls-cert cert.pem --tls-key key.pem";

/// Writes a new certificate for `localhost` that expires at the beginning of a year, and its key.
pub(crate) fn write_certificate(place: &Place, expires_in_year: i32) -> CertificateDer<'static> {
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    parameters.not_after = rcgen::date_time_ymd(expires_in_year, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    place.write("cert.pem", certificate.pem());
    place.write("key.pem", key.serialize_pem());
    certificate.der().clone()
}

/// Longest time that a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats a check until it holds, because much of what a service does takes effect a moment later.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A service of a test; killed on drop.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Option<JoinHandle<String>>,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Service {
    /// Starts a service with its data in `data`, and waits until it is ready.
    pub(crate) fn start(place: &Place, options: &str) -> Self {
        let service = Self::launch(place, options);
        let begun = Instant::now();
        while service.get("/readyz").status != 200 {
            assert!(begun.elapsed() < PATIENCE, "the service is not ready");
            std::thread::sleep(Duration::from_millis(2));
        }
        service
    }

    /// Starts a service and waits until it listens.
    pub(crate) fn launch(place: &Place, options: &str) -> Self {
        Self::launch_with(place, options, &[])
    }

    /// Starts a service with environment variables, and waits until it listens.
    pub(crate) fn launch_with(place: &Place, options: &str, environment: &[(&str, &str)]) -> Self {
        let line = format!("serve --data data --listen 127.0.0.1:0 {options}");
        let mut command = place.command(&line);
        command.envs(environment.iter().copied());
        Self::of(command)
    }

    /// Starts a service in which a write that the system refuses is an error, instead of ending the process.
    pub(crate) fn launch_to_fail(place: &Place) -> Self {
        let program = place.command("serve --data data --listen 127.0.0.1:0");
        let script = "trap '' XFSZ; exec \"$0\" \"$@\"";
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", script])
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(place.path(""))
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        Self::of(shell)
    }

    /// Makes every further write to a file fail.
    pub(crate) fn refuse_writes(&self) {
        let id = self.child.id().to_string();
        let set = std::process::Command::new("prlimit")
            .args(["--fsize=0:0", "--pid", &id])
            .status();
        assert!(set.unwrap().success());
    }

    fn of(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "{said}");
            said.push_str(&line);
            let listening = line.split_once("listening on ");
            if let Some((_, address)) = listening.and_then(|(_, url)| url.split_once("://")) {
                let end = address.find(['"', '\n']).unwrap();
                break address[..end].parse().unwrap();
            }
        };
        // The log is read to its end, so that the service never waits for it.
        let log = std::thread::spawn(move || {
            let _ = log.read_to_string(&mut said);
            said
        });
        Self {
            child,
            address,
            log: Some(log),
        }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.connect().request("GET", path, &[], b"")
    }

    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.connect().request("DELETE", path, &[], b"")
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Reply {
        self.connect().json("PUT", path, body)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.connect().json("POST", path, body)
    }

    /// Connects over TLS. The client trusts one certificate alone.
    fn connect_encrypted(
        &self,
        trusted: &CertificateDer<'static>,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(client, TcpStream::connect(self.address).unwrap())
    }

    /// Fetches a path over TLS and returns head and body of the response.
    ///
    /// # Errors
    /// If the client does not trust the certificate of the service.
    pub(crate) fn try_get_encrypted(
        &self,
        trusted: &CertificateDer<'static>,
        path: &str,
    ) -> io::Result<String> {
        let mut stream = self.connect_encrypted(trusted);
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Sends documents, one per line; returns the lines of the response.
    pub(crate) fn post_lines(&self, path: &str, lines: &[u8]) -> Vec<Value> {
        let reply = self
            .connect()
            .request("POST", path, &[("Content-Type", NDJSON)], lines);
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.lines()
    }

    /// Creates a collection.
    pub(crate) fn make(&self, name: &str, settings: Value) {
        let reply = self.put(&format!("/v1/collections/{name}"), &settings);
        assert_eq!(reply.status, 201, "{}", reply.text());
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Returns the peak memory so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        support::peak_memory(self.child.id()).unwrap()
    }

    /// Kills the service at once, as the system would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the service to stop; returns its exit code and its log.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        self.signal("-TERM");
        self.wait()
    }

    /// Waits until the service has ended.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "the service does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let log = self.log.take().unwrap().join().unwrap();
        (status.code(), log)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const NDJSON: &str = "application/x-ndjson";

/// A connection that stays open between requests.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::try_to(address).unwrap()
    }

    /// Connects to a service.
    ///
    /// # Errors
    /// If the service is gone.
    pub(crate) fn try_to(address: SocketAddr) -> io::Result<Self> {
        Self::from_stream(TcpStream::connect(address)?)
    }

    /// Creates a client for a connected socket.
    ///
    /// # Errors
    /// If the options of the socket cannot be set.
    pub(crate) fn from_stream(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Returns `true` if something has arrived that was not read.
    pub(crate) fn has_answer(&self) -> bool {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        peeked.is_ok()
    }

    /// Writes as much as the service accepts.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn json(&mut self, method: &str, path: &str, body: &Value) -> Reply {
        let body = body.to_string();
        let kind = [("Content-Type", "application/json")];
        self.request(method, path, &kind, body.as_bytes())
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        self.try_request(method, path, headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a request, and reads the response at the same time.
    pub(crate) fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.send(head.as_bytes())?;
        let mut writer = self.stream.get_ref().try_clone()?;
        std::thread::scope(|scope| {
            // A service that refuses a body does not read it.
            if body.len() > 1 << 16 {
                scope.spawn(move || drop(writer.write_all(body)));
            } else {
                let _ = writer.write_all(body);
            }
            self.reply()
        })
    }

    /// Reads a response.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                let what = format!("the connection ended: {head:?}");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
        }
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(head.clone()))?;
        let mut body = Vec::new();
        let length = header(&head, "content-length").and_then(|it| it.parse::<u64>().ok());
        if let Some(length) = length {
            (&mut self.stream).take(length).read_to_end(&mut body)?;
        } else if header(&head, "transfer-encoding") == Some("chunked") {
            while self.chunk(&mut body)? {}
        }
        Ok(Reply { status, head, body })
    }

    /// Reads a chunk of a body; returns `true` if there may be more.
    pub(crate) fn chunk(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        let mut size = String::new();
        self.stream.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        (&mut self.stream).take(size).read_to_end(body)?;
        self.stream.read_line(&mut String::new())?;
        Ok(size > 0)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.text();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// Returns the status and the code of a problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{}",
            self.text()
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        (self.status, problem["code"].as_str().unwrap().to_owned())
    }
}

/// Returns a document.
pub(crate) fn document(id: &str, text: &str) -> Value {
    json!({ "id": id, "text": text })
}
