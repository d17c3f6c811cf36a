//! The service is killed again and again, and its answers stay valid.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::service::{Connection, NDJSON, Service};
use crate::serving::{evidence, removed};
use crate::support::{Numbers, Place, corpus_jsonl};

const INSERT: &str = "/v1/collections/a/documents";

/// Documents in a request.
const AT_A_TIME: usize = 16;

/// Sends documents in order, from the first without an answer, until the service is gone or all have one.
/// Repeated documents must get the same answer again.
fn send(service: &Service, lines: &[&str], ledger: &mut HashMap<usize, Value>) -> bool {
    let Ok(mut connection) = Connection::try_to(service.address) else {
        return false;
    };
    let mut at = (0..lines.len())
        .find(|at| !ledger.contains_key(at))
        .unwrap_or(0);
    // Some answered documents are sent again.
    at = at.saturating_sub(AT_A_TIME / 2);
    while at < lines.len() {
        let end = (at + AT_A_TIME).min(lines.len());
        let single = at % 5 == 0;
        let (kind, body) = if single {
            ("application/json", lines[at].to_owned())
        } else {
            (NDJSON, lines[at..end].join("\n"))
        };
        let headers = [("Content-Type", kind)];
        let Ok(reply) = connection.try_request("POST", INSERT, &headers, body.as_bytes()) else {
            return false;
        };
        assert_eq!(reply.status, 200, "{}", reply.text());
        for answer in reply.lines() {
            let earlier = ledger.entry(at).or_insert_with(|| answer.clone());
            assert_eq!(*earlier, answer);
            at += 1;
        }
    }
    true
}

fn kill_rounds(rounds: usize) {
    let place = Place::new();
    let corpus = corpus_jsonl(&Numbers::new(6).corpus(40 * rounds.max(20)));
    place.write("corpus.jsonl", &corpus);
    let expected = removed(&place, "");
    let lines: Vec<&str> = corpus.lines().collect();
    let mut numbers = Numbers::new(7);
    let (mut ledger, mut killed) = (HashMap::new(), 0);
    while killed < rounds {
        let service = Service::start(&place, "");
        if killed == 0 {
            service.make("a", json!({}));
        }
        let most = lines.len() * (killed + 1) / (rounds + 1);
        let delay = Duration::from_millis(5 + numbers.below(60) as u64);
        let ledger = &mut ledger;
        std::thread::scope(|scope| {
            let (service_ref, lines) = (&service, &lines[..most.max(AT_A_TIME)]);
            let sending = scope.spawn(move || {
                while send(service_ref, lines, ledger) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            std::thread::sleep(delay);
            service.signal("-KILL");
            sending.join().unwrap();
        });
        service.kill();
        killed += 1;
    }
    let service = Service::start(&place, "");
    assert!(send(&service, &lines, &mut ledger));
    assert_eq!(ledger.len(), lines.len());
    for (at, answer) in &ledger {
        let id = answer["id"].as_str().unwrap();
        assert_eq!(answer["seq"], at + 1);
        assert_eq!(evidence(answer).as_ref(), expected.get(id));
        let stored = service.get(&format!("{INSERT}/{id}")).json();
        assert_eq!(
            (&stored["verdict"], &stored["seq"]),
            (&answer["verdict"], &answer["seq"])
        );
    }
    drop(service);
}

#[test]
fn acknowledged_inserts_survive_a_kill() {
    kill_rounds(20);
}

#[test]
#[ignore = "takes minutes"]
fn acknowledged_inserts_survive_500_kills() {
    kill_rounds(500);
}
