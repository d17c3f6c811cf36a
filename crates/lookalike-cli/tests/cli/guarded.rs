//! Access to the service: addresses, keys, TLS, configuration.

use serde_json::json;

use crate::service::{Reply, Service, TLS_OPTIONS, document, write_certificate};
use crate::support::Place;

pub(crate) const READ: &str = "read-read-read-1";
pub(crate) const WRITE: &str = "write-write-writ";
pub(crate) const ADMIN: &str = "admin-admin-admi";

/// Returns a line of a key file, with the output of `sha256sum`.
pub(crate) fn line(role: &str, key: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(key.as_bytes());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{role} sha256:{digits}\n")
}

pub(crate) fn with_key(
    service: &Service,
    key: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Reply {
    let key = format!("Bearer {key}");
    let headers = [
        ("Authorization", key.as_str()),
        ("Content-Type", "application/json"),
    ];
    service
        .connect()
        .request(method, path, &headers, body.as_bytes())
}

#[test]
fn public_address_needs_a_key() {
    let place = Place::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        place.refused(
            &format!("serve --data data --listen {address}"),
            &[
                address,
                "can be reached by other machines",
                "--keys",
                "--allow-unauthenticated",
            ],
        );
    }
    assert!(!place.has("data"));
    let open = Service::start(&place, "--allow-unauthenticated");
    let reply = open
        .connect()
        .request("GET", "/v1/collections", &[("Host", "example.com")], b"");
    assert!(matches!(reply.status, 200 | 400), "{}", reply.status);
    drop(open);
    place.write("keys", line("read", READ));
    place.refused(
        "serve --data data --keys keys --allow-unauthenticated",
        &["contradicts the keys"],
    );
}

/// A service that was given a key never starts without one, and its files are readable by its owner only.
#[cfg(target_os = "linux")]
#[test]
fn binary_key_is_refused_and_files_are_private() {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let mut command = place.command("serve --data data --listen 127.0.0.1:0");
    let key = std::ffi::OsStr::from_bytes(b"\xff\xfe0123456789abcdef");
    let ran = command.env("LOOKALIKE_ADMIN_KEY", key).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("LOOKALIKE_ADMIN_KEY is not UTF-8"), "{said}");
    let service = Service::start(&place, "");
    service.make("a", json!({}));
    for path in ["data", "data/a", "data/a/manifest"] {
        let mode = std::fs::metadata(place.path(path))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{path}: {mode:o}");
    }
}

#[test]
fn keys_have_roles() {
    let place = Place::new();
    let keys = [
        line("read", READ),
        line("write", WRITE),
        line("admin", ADMIN),
    ]
    .concat();
    place.write("keys", format!("# keys\n\n{keys}"));
    let service = Service::launch(&place, "--keys keys --snapshots copies");
    while service.get("/readyz").status != 200 {}
    for path in ["/livez", "/", "/openapi.json"] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    let refused = service.get("/metrics");
    assert_eq!(refused.problem(), (401, "unauthenticated".into()));
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let (settings, text) = ("{}", document("x", "some text").to_string());
    let name = json!({ "name": "one" }).to_string();
    // The lowest role for each call.
    let calls = [
        ("PUT", "/v1/collections/a", settings, 2),
        ("GET", "/v1/collections", "", 0),
        ("GET", "/metrics", "", 0),
        ("POST", "/v1/collections/a/documents", &text, 1),
        ("POST", "/v1/collections/a/query", &text, 0),
        ("GET", "/v1/collections/a/documents/x", "", 0),
        ("GET", "/v1/collections/a/clusters", "", 0),
        ("POST", "/v1/segment", "{\"texts\":[]}", 0),
        ("POST", "/v1/collections/a/snapshot", &name, 2),
        ("DELETE", "/v1/collections/a/documents/x", "", 1),
        ("DELETE", "/v1/collections/a", "", 2),
    ];
    for (method, path, body, needed) in calls {
        for (role, key) in [READ, WRITE, ADMIN].into_iter().enumerate() {
            let reply = with_key(&service, key, method, path, body);
            if role < needed {
                assert_eq!(
                    reply.problem(),
                    (403, "forbidden".into()),
                    "{method} {path}"
                );
                continue;
            }
            assert!(reply.status < 300, "{method} {path}: {}", reply.text());
            if needed > 0 {
                break;
            }
        }
        for wrong in ["", "short", "read-read-read-2", "admin-admin-admi "] {
            let reply = with_key(&service, wrong, method, path, body);
            // White space around a key is ignored.
            let expected = if wrong.trim() == ADMIN { continue } else { 401 };
            assert_eq!(reply.status, expected, "{method} {path} {wrong}");
        }
    }
    let (_, log) = service.stop();
    assert!(
        !log.contains("admin-admin") && !log.contains("read-read"),
        "{log}"
    );
}

#[test]
fn keys_are_read_from_the_environment() {
    let place = Place::new();
    let refused = |key: &str, said: &str| {
        let mut command = place.command("serve --data data --listen 127.0.0.1:0");
        let ran = command.env("LOOKALIKE_WRITE_KEY", key).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.code() == Some(2) && err.contains(said), "{err}");
        assert!(!err.contains("0123456789"), "{err}");
    };
    refused(
        "012345678901234",
        "LOOKALIKE_WRITE_KEY has 15 bytes: a key has at least 16",
    );
    refused(
        "012345678901234567\n",
        "LOOKALIKE_WRITE_KEY begins or ends with white space",
    );
    let environment = [("LOOKALIKE_WRITE_KEY", "0123456789012345")];
    let service = Service::launch_with(&place, "", &environment);
    while service.get("/readyz").status != 200 {}
    assert_eq!(service.get("/v1/collections").status, 401);
    let allowed = with_key(&service, "0123456789012345", "GET", "/v1/collections", "");
    assert_eq!(allowed.status, 200);
    for (text, said) in [("", "has no keys"), ("read 0123456789012345\n", "line 1")] {
        place.write("keys", text);
        place.refused("serve --data data --keys keys", &["the keys in keys", said]);
    }
    place.refused(
        "serve --data data --keys none",
        &["cannot read the keys in none"],
    );
}

#[test]
fn service_uses_tls() {
    let place = Place::new();
    let certificate = write_certificate(&place, 2090);
    let service = Service::launch(&place, TLS_OPTIONS);
    let answer = service.try_get_encrypted(&certificate, "/livez").unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"live\":true}"),
        "{answer}"
    );
    // A client without TLS gets no answer.
    let mut plain = service.connect();
    plain
        .send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert!(plain.reply().is_err());
    for (options, said) in [
        ("--tls-cert cert.pem", "belong together"),
        (
            "--tls-cert none.pem --tls-key key.pem",
            "the certificate none.pem",
        ),
        ("--tls-cert cert.pem --tls-key cert.pem", "the key cert.pem"),
    ] {
        place.refused(
            &format!("serve --data other --listen 127.0.0.1:0 {options}"),
            &[said],
        );
    }
}

#[test]
fn command_line_precedes_environment_and_file() {
    let place = Place::new();
    place.write(
        "serve.toml",
        "data = \"of-file\"\nmax-document = \"1Ki\"\nbody-timeout = \"5s\"\nlog = \"error\"\nlog-format = \"json\"\n",
    );
    let status = |service: &Service, bytes: usize| {
        let sent = document("x", &"y".repeat(bytes));
        service.post("/v1/collections/none/query", &sent).status
    };
    let service = Service::launch_with(&place, "--config serve.toml --log info", &[]);
    // The command line, here written by the tests, takes precedence.
    assert!(place.has("data") && !place.has("of-file"));
    service.make("none", json!({}));
    assert_eq!((status(&service, 900), status(&service, 1100)), (200, 413));
    drop(service);
    let environment = [
        ("LOOKALIKE_MAX_DOCUMENT", "2Ki"),
        ("LOOKALIKE_CONFIG", "serve.toml"),
    ];
    let service = Service::launch_with(&place, "--log info", &environment);
    while service.get("/readyz").status != 200 {}
    assert_eq!((status(&service, 1100), status(&service, 2100)), (200, 413));
    drop(service);
    let service = Service::launch_with(&place, "--log info --max-document 3Ki", &environment);
    while service.get("/readyz").status != 200 {}
    assert_eq!((status(&service, 2100), status(&service, 3100)), (200, 413));
    let (_, log) = service.stop();
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");
    for (text, said) in [
        ("max-documents = \"1Ki\"", "unknown field `max-documents`"),
        ("max-document = \"lots\"", "give a size"),
        ("body-timeout = 5", "invalid type"),
        ("data = 1", "invalid type"),
    ] {
        place.write("wrong.toml", text);
        place.refused(
            "serve --config wrong.toml",
            &["the configuration wrong.toml", said],
        );
    }
    for (options, said) in [
        ("", "--data is missing"),
        (
            "--data d --max-header 4Ki",
            "--max-header is 4096 bytes: give 8192 to 1048576",
        ),
        (
            "--data d --max-queue 1Mi",
            "--max-queue is 1048576 bytes, of which one client may hold 8/9, and a document may have 16777216",
        ),
        ("--data d --body-timeout 0s", "--body-timeout is 0"),
        ("--data d --listen nowhere", "--listen"),
        (
            "--data serve.toml --listen 127.0.0.1:0",
            "the directory of --data, serve.toml",
        ),
    ] {
        place.refused(&format!("serve {options}"), &[said]);
    }
}
