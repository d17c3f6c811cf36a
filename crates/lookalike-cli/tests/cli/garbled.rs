//! Lines of documents that were cut, doubled, swapped and garbled: each is answered in its place by its
//! content, and has no other effect.

use serde_json::{Value, json};

use crate::service::{Service, document};
use crate::support::{Numbers, Place};

/// Pieces with a meaning in lines, JSON, text or documents.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r\n",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud83d",
    b"\\u00e9",
    b"{",
    b"}",
    b"[",
    b",",
    b":",
    b"null",
    b"1e999",
    b"-0",
    b"\"id\":\"twice\"",
    b"\"time\":1e18",
    b"\"meta\":{\"a\":[1,2]}",
    b"\"fingerprint\":\"ff\"",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xed\xa0\x80",
    b"\x00",
    "\u{feff}\u{202e}中".as_bytes(),
];

/// Returns a body of some documents after some mutations.
fn body(numbers: &mut Numbers, round: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for line in 0..1 + numbers.below(12) {
        let mut sent = document(&format!("r{round}-{line}"), &numbers.text(6));
        if numbers.below(3) == 0 {
            sent["time"] = json!(numbers.below(1000));
        }
        body.extend_from_slice(sent.to_string().as_bytes());
        body.push(b'\n');
    }
    for _ in 0..numbers.below(10) {
        let at = numbers.below(body.len() + 1);
        let end = (at + numbers.below(20)).min(body.len());
        match numbers.below(4) {
            0 => drop(body.splice(at..end, []).count()),
            1 => {
                let copied = body[at..end].to_vec();
                body.splice(at..at, copied);
            }
            2 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                body.splice(at..at, piece.iter().copied());
            }
            _ if at < body.len() => body[at] ^= 1 << numbers.below(8),
            _ => {}
        }
    }
    body
}

/// Returns `true` if a line can be a document, judged by its JSON alone.
fn may_be_document(line: &[u8]) -> bool {
    const KNOWN: [&str; 5] = ["id", "text", "fingerprint", "time", "meta"];
    let Ok(Value::Object(fields)) = serde_json::from_slice(line) else {
        return false;
    };
    let is_id =
        |id: &Value| id.is_u64() || id.is_i64() || id.as_str().is_some_and(|id| !id.is_empty());
    fields.keys().all(|name| KNOWN.contains(&name.as_str()))
        && fields.get("id").is_some_and(is_id)
        && fields.get("text").is_some_and(Value::is_string)
}

#[test]
fn garbled_lines_are_answered_in_order() {
    let place = Place::new();
    let service = Service::start(&place, "");
    service.make("a", json!({ "recipe": "words-3" }));
    let mut numbers = Numbers::new(20);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..400 {
        let body = body(&mut numbers, round);
        let answers = service.post_lines("/v1/collections/a/documents", &body);
        let mark: &[u8] = b"\xef\xbb\xbf";
        let lines = body
            .strip_prefix(mark)
            .unwrap_or(&body)
            .split(|&byte| byte == b'\n');
        let blank = |line: &&[u8]| line.iter().all(|byte| b" \t\r".contains(byte));
        let lines: Vec<_> = lines.filter(|line| !blank(line)).collect();
        assert_eq!(answers.len(), lines.len(), "round {round}");
        for (answer, line) in answers.iter().zip(lines) {
            let shown = String::from_utf8_lossy(line);
            if answer.get("verdict").is_some() {
                assert!(may_be_document(line), "{shown}: {answer}");
                taken += 1;
                continue;
            }
            refused += 1;
            let code = answer["problem"]["code"].as_str().unwrap();
            assert!(
                ["bad_json", "bad_document", "id_conflict"].contains(&code),
                "{shown}: {answer}"
            );
            if code == "id_conflict" {
                assert!(may_be_document(line), "{shown}: {answer}");
            }
        }
    }
    assert!(taken > 400 && refused > 400, "{taken} and {refused}");
    let text = "what was never garbled is taken as ever";
    for (id, verdict) in [("first", "kept"), ("second", "duplicate")] {
        let answer = service.post("/v1/collections/a/documents", &document(id, text));
        assert_eq!(answer.json()["verdict"], verdict);
    }
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
}
