//! The attacks. Each goes on until the service has ended.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use lookalike_oracle::generate::{self, CorpusKind};
use serde_json::json;

use super::client::{Connection, NDJSON_TYPE, head_of};
use super::{
    AttackSize, COLLECTION_PATH, READ_KEY, Target, WRITE_KEY, edit_distance_settings,
    settings_of_measure, usual_settings,
};

/// An attack.
pub(super) struct AttackKind {
    pub(super) name: &'static str,
    /// Threads of the attacker.
    pub(super) threads: usize,
    /// Settings of the collection.
    pub(super) settings: fn() -> serde_json::Value,
    /// Makes texts of the honest client.
    honest_texts: fn(&AttackSize) -> Vec<String>,
    /// One thread of the attacker, by its number.
    pub(super) attack: fn(&Target<'_>, usize) -> Result<()>,
}

impl AttackKind {
    pub(super) fn texts(&self, size: &AttackSize) -> Vec<String> {
        (self.honest_texts)(size)
    }
}

/// All attacks, after what the clients meet without one.
pub(super) const ATTACK_KINDS: [AttackKind; 20] = [
    AttackKind {
        name: "none",
        threads: 0,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: |_, _| Ok(()),
    },
    AttackKind {
        name: "zstd bombs of blank lines, two at a time",
        threads: 2,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: send_zstd_bombs,
    },
    AttackKind {
        name: "gzip bombs, four at a time",
        threads: 4,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: send_gzip_bombs,
    },
    AttackKind {
        name: "half-open connections of one address",
        threads: 1,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: hold_half_open,
    },
    AttackKind {
        name: "17 stalled uploads",
        threads: 17,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: stall_upload,
    },
    AttackKind {
        name: "slow readers of long answers",
        threads: 5,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: read_slowly,
    },
    AttackKind {
        name: "dripping bodies",
        threads: 1,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: drip_bodies,
    },
    AttackKind {
        name: "permuted blocks, by edit distance",
        threads: 1,
        settings: edit_distance_settings,
        honest_texts: long_texts,
        attack: send_permutations,
    },
    AttackKind {
        name: "single permuted texts, by levenshtein",
        threads: 8,
        settings: edit_distance_settings,
        honest_texts: long_texts,
        attack: send_single_permutations,
    },
    AttackKind {
        name: "single permuted texts, by indel",
        threads: 8,
        settings: || settings_of_measure("indel"),
        honest_texts: long_texts,
        attack: send_single_permutations,
    },
    AttackKind {
        name: "single permuted texts, by lcs",
        threads: 8,
        settings: || settings_of_measure("lcs"),
        honest_texts: long_texts,
        attack: send_single_permutations,
    },
    AttackKind {
        name: "near texts, by containment",
        threads: 2,
        settings: || settings_of_measure("containment"),
        honest_texts: long_texts,
        attack: send_near_texts,
    },
    AttackKind {
        name: "long near texts, by containment",
        threads: 2,
        settings: || settings_of_measure("containment"),
        honest_texts: long_texts,
        attack: send_long_near_texts,
    },
    AttackKind {
        name: "long texts of distinct words, by containment",
        threads: 2,
        settings: || settings_of_measure("containment"),
        honest_texts: long_texts,
        attack: send_distinct_words,
    },
    AttackKind {
        name: "passages of alternating sentences",
        threads: 3,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: find_alternating_passages,
    },
    AttackKind {
        name: "sources of alternating sentences",
        threads: 3,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: find_alternating_sources,
    },
    AttackKind {
        name: "Markdown of nothing but markers",
        threads: 3,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: extract_markers,
    },
    AttackKind {
        name: "JSON of nothing but objects",
        threads: 3,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: send_objects,
    },
    AttackKind {
        name: "long documents that are not read",
        threads: 1,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: leave_documents_unread,
    },
    AttackKind {
        name: "short documents that are not read",
        threads: 1,
        settings: usual_settings,
        honest_texts: short_texts,
        attack: leave_short_documents_unread,
    },
];

/// Bodies that are made once.
pub(super) struct Payloads {
    zstd_bomb: Vec<u8>,
    gzip_bomb: Vec<u8>,
}

impl Payloads {
    pub(super) fn new(size: &AttackSize) -> Result<Self> {
        let newlines = |count| io::repeat(b'\n').take(count);
        let mut zstd = zstd::Encoder::new(Vec::new(), 3)?;
        zstd.window_log(23)?;
        io::copy(&mut newlines(size.zstd_bomb), &mut zstd)?;
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        io::copy(&mut newlines(size.gzip_bomb), &mut gzip)?;
        Ok(Self {
            zstd_bomb: zstd.finish()?,
            gzip_bomb: gzip.finish()?,
        })
    }
}

fn short_texts(_: &AttackSize) -> Vec<String> {
    let made = generate::generate_corpus(CorpusKind::Short, 4000, 7).into_iter();
    made.map(|(_, text)| text).collect()
}

/// Texts of so many bytes that are not like one another.
fn long_texts(size: &AttackSize) -> Vec<String> {
    let of = |seed: usize| {
        let mut numbers = Numbers(seed as u64);
        let mut text = String::new();
        while text.len() < size.honest_text {
            text.push_str(&format!("word{} ", numbers.below(100_000)));
        }
        text
    };
    (0..500).map(of).collect()
}

/// A small generator of numbers, the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

/// Time after which the attacker connects anew.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

fn headers<'a>(key: &'a str, kind: &'a str) -> [(&'a str, &'a str); 2] {
    [("Authorization", key), ("Content-Type", kind)]
}

fn query() -> String {
    format!("{COLLECTION_PATH}/query")
}

fn send_zstd_bombs(target: &Target<'_>, _: usize) -> Result<()> {
    send_bombs(target, "zstd", &target.payloads.zstd_bomb)
}

fn send_gzip_bombs(target: &Target<'_>, _: usize) -> Result<()> {
    send_bombs(target, "gzip", &target.payloads.gzip_bomb)
}

/// Sends a body that expands to very much, again and again. Every one that is answered must be refused.
fn send_bombs(target: &Target<'_>, encoding: &str, bomb: &[u8]) -> Result<()> {
    let [key, kind] = headers(READ_KEY, NDJSON_TYPE);
    let headers = [key, kind, ("Content-Encoding", encoding)];
    while !target.has_ended() {
        let asked = target
            .connect()
            .and_then(|mut connection| connection.ask("POST", &query(), &headers, bomb));
        match asked {
            Ok(answer) => {
                target.count_attempt();
                let refused = answer.body.contains("too_large") || target.is_draining();
                ensure!(refused, "{}: {}", answer.status, answer.body);
            }
            Err(_) => std::thread::sleep(RECONNECT_PAUSE),
        }
    }
    Ok(())
}

/// Opens connections with half a head, and for each that is too many a new one.
fn hold_half_open(target: &Target<'_>, _: usize) -> Result<()> {
    let mut open = VecDeque::new();
    while !target.has_ended() {
        let Ok(mut connection) = target.connect() else {
            std::thread::sleep(RECONNECT_PAUSE);
            continue;
        };
        let _ = connection.send(b"GET /livez HTTP/1.1\r\nHost: local");
        target.count_attempt();
        open.push_back(connection);
        if open.len() > target.size.half_open {
            open.pop_front();
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}

/// Sends most of a document and nothing more.
fn stall_upload(target: &Target<'_>, _: usize) -> Result<()> {
    let mut body = b"{\"text\":\"".to_vec();
    body.resize(target.size.upload, b'a');
    let headers = headers(READ_KEY, "application/json");
    let head = head_of("POST", &query(), &headers, target.size.upload + 1000);
    while !target.has_ended() {
        let sent = target.connect().and_then(|mut connection| {
            connection.send(head.as_bytes())?;
            let _ = connection.send(&body);
            Ok(connection)
        });
        if let Ok(mut connection) = sent {
            target.count_attempt();
            wait_for_answer(target, connection.stream.get_mut())?;
        }
        std::thread::sleep(RECONNECT_PAUSE);
    }
    Ok(())
}

/// Waits until something has come, or the service has ended.
fn wait_for_answer(target: &Target<'_>, stream: &mut TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    while !target.has_ended() {
        match stream.read(&mut [0]) {
            Err(error) if is_pending(&error) => {}
            _ => break,
        }
    }
    Ok(())
}

fn is_pending(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Asks for much and takes a kibibyte of it from time to time.
fn read_slowly(target: &Target<'_>, _: usize) -> Result<()> {
    let body = "x\n".repeat(target.size.unread_lines);
    let headers = headers(READ_KEY, NDJSON_TYPE);
    let head = head_of("POST", &query(), &headers, body.len());
    let sent = [head.as_bytes(), body.as_bytes()].concat();
    while !target.has_ended() {
        let Ok(connection) = target.connect() else {
            std::thread::sleep(RECONNECT_PAUSE);
            continue;
        };
        target.count_attempt();
        let stream = connection.stream.into_inner();
        stream.set_nonblocking(true)?;
        trickle(target, &stream, &sent);
    }
    Ok(())
}

/// Sends what is taken and reads little, until the connection ends.
fn trickle(target: &Target<'_>, mut stream: &TcpStream, mut unsent: &[u8]) {
    let mut taken = [0; 1024];
    while !target.has_ended() {
        match stream.write(unsent) {
            Ok(count) => unsent = &unsent[count..],
            Err(error) if is_pending(&error) => {}
            Err(_) => return,
        }
        match stream.read(&mut taken) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_pending(&error) => {}
            Err(_) => return,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sends bodies of which a little comes four times a second.
fn drip_bodies(target: &Target<'_>, _: usize) -> Result<()> {
    let headers = headers(READ_KEY, "application/json");
    let head = head_of("POST", &query(), &headers, 4 << 20) + "{\"text\":\"";
    let begin = || {
        let mut connection = target.connect().ok()?;
        connection.send(head.as_bytes()).ok()?;
        connection.stream.get_ref().set_nonblocking(true).ok()?;
        target.count_attempt();
        Some(connection)
    };
    let mut open: Vec<Option<Connection>> = (0..target.size.dripping).map(|_| begin()).collect();
    while !target.has_ended() {
        for one in &mut open {
            let sent = one
                .as_mut()
                .is_some_and(|connection| connection.send(&[b'a'; 1100]).is_ok());
            if !sent {
                *one = begin();
            }
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok(())
}

/// Inserts texts that share all their blocks in another order, which a bound by features cannot tell
/// apart, so that each would be compared with all before it. They are either answered or refused as too
/// costly.
fn send_permutations(target: &Target<'_>, _: usize) -> Result<()> {
    let (count, bytes) = target.size.permutations;
    send_bulk(target, |round| permuted_texts(count, bytes, round))
}

/// Inserts texts that share most of their blocks, so that each has all before it as candidates by containment.
fn send_near_texts(target: &Target<'_>, thread: usize) -> Result<()> {
    let (count, bytes) = target.size.near_texts;
    send_bulk(target, |round| {
        near_texts(count, bytes, (thread as u64) << 32 | round)
    })
}

/// Inserts the texts of one round after another, each round in one body.
fn send_bulk<T: Iterator<Item = String>>(
    target: &Target<'_>,
    texts_of_round: impl Fn(u64) -> T,
) -> Result<()> {
    let path = format!("{COLLECTION_PATH}/documents");
    let headers = headers(WRITE_KEY, NDJSON_TYPE);
    let mut round = 0;
    while !target.has_ended() {
        round += 1;
        let body: String = texts_of_round(round)
            .map(|text| document_of_attacker(&text) + "\n")
            .collect();
        let asked = target.connect().and_then(|mut connection| {
            target.count_attempt();
            connection.ask("POST", &path, &headers, body.as_bytes())
        });
        match asked {
            Ok(answer) => check_answers(target, &answer.body)?,
            Err(_) => std::thread::sleep(RECONNECT_PAUSE),
        }
    }
    Ok(())
}

/// Inserts permuted texts one at a time.
fn send_single_permutations(target: &Target<'_>, thread: usize) -> Result<()> {
    let (count, bytes) = target.size.permutations;
    send_singly(target, |round| {
        permuted_texts(count, bytes, (thread as u64) << 32 | round)
    })
}

/// Inserts long texts that have one another as candidates, one at a time.
fn send_long_near_texts(target: &Target<'_>, thread: usize) -> Result<()> {
    send_singly(target, |round| {
        near_texts(1, target.size.long_text, (thread as u64) << 32 | round)
    })
}

/// Inserts long texts whose words occur nowhere else, one at a time.
fn send_distinct_words(target: &Target<'_>, thread: usize) -> Result<()> {
    const BYTES_OF_WORD: usize = 9;
    send_singly(target, |round| {
        let mut numbers = Numbers((thread as u64) << 32 | round);
        let words = (0..target.size.long_text / BYTES_OF_WORD)
            .map(|_| format!("{:08x} ", numbers.below(1 << 31)));
        std::iter::once(words.collect())
    })
}

/// Inserts the texts of one round after another, each in a request of its own. All threads use the same key, so that
/// they are one client, which always has a document in the queue.
fn send_singly<T: Iterator<Item = String>>(
    target: &Target<'_>,
    texts_of_round: impl Fn(u64) -> T,
) -> Result<()> {
    let path = format!("{COLLECTION_PATH}/documents");
    let headers = headers(WRITE_KEY, "application/json");
    let mut connection = None;
    for round in 1.. {
        for text in texts_of_round(round) {
            if target.has_ended() {
                return Ok(());
            }
            if connection.is_none() {
                connection = target.connect().ok();
            }
            let Some(open) = &mut connection else {
                std::thread::sleep(RECONNECT_PAUSE);
                continue;
            };
            target.count_attempt();
            let document = document_of_attacker(&text);
            match open.ask("POST", &path, &headers, document.as_bytes()) {
                Ok(answer) => check_answers(target, &answer.body)?,
                Err(_) => connection = None,
            }
        }
    }
    Ok(())
}

/// Returns a document with an id that follows from its text.
fn document_of_attacker(text: &str) -> String {
    let id = format!("attack-{:016x}", lookalike::value_hash(text.as_bytes()));
    json!({ "id": id, "text": text }).to_string()
}

/// Checks that every line is an answer or a refusal that the attack expects.
fn check_answers(target: &Target<'_>, answers: &str) -> Result<()> {
    const EXPECTED: [&str; 4] = ["\"verdict\"", "\"too_costly\"", "\"busy\"", "\"stopping\""];
    let is_expected = |line: &str| EXPECTED.iter().any(|&expected| line.contains(expected));
    let told = answers.lines().all(is_expected);
    ensure!(told || target.is_draining(), "{answers}");
    Ok(())
}

/// Texts of so many bytes that have the same blocks of 500 bytes in orders of their own: they share
/// nearly all of their features, and are far from one another by edit distance.
fn permuted_texts(count: usize, bytes: usize, seed: u64) -> impl Iterator<Item = String> {
    const BLOCK_BYTES: usize = 500;
    let mut numbers = Numbers(1);
    let block = |_| {
        let mut block = String::new();
        while block.len() < BLOCK_BYTES - 10 {
            block.push_str(&format!("w{} ", numbers.below(1_000_000)));
        }
        block
    };
    let mut blocks: Vec<String> = (0..bytes / BLOCK_BYTES).map(block).collect();
    let mut order = Numbers(seed);
    (0..count).map(move |_| {
        for at in (1..blocks.len()).rev() {
            blocks.swap(at, order.below(at + 1));
        }
        blocks.concat()
    })
}

/// Texts of about so many bytes, each of three in five blocks of five words: two of them share three in five of
/// their features, too few to match.
fn near_texts(count: usize, bytes: usize, seed: u64) -> impl Iterator<Item = String> {
    const BYTES_OF_BLOCK: usize = 40;
    let mut numbers = Numbers(2);
    let block = |_| -> String {
        (0..5)
            .map(|_| format!("n{:06} ", numbers.below(1_000_000)))
            .collect()
    };
    let blocks: Vec<String> = (0..bytes * 5 / 3 / BYTES_OF_BLOCK).map(block).collect();
    let mut choice = Numbers(seed);
    (0..count).map(move |_| {
        let chosen = blocks.iter().filter(|_| choice.below(5) < 3);
        chosen.map(String::as_str).collect()
    })
}

/// Two sentences of 13 words.
const SENTENCES: [&str; 2] = ["a b c d e f g h i j k l m ", "n o p q r s t u v w x y z "];

/// Returns a source with both sentences far apart. In [`alternating_text`] each of them is then a passage every time.
fn distant_sentences() -> String {
    let mut numbers = Numbers(9);
    let words = (0..100).map(|_| format!("w{} ", numbers.below(1_000_000)));
    [SENTENCES[0], &words.collect::<String>(), SENTENCES[1]].concat()
}

fn alternating_text(bytes: usize) -> String {
    let both = SENTENCES.concat();
    both.repeat(bytes / both.len())
}

fn find_alternating_passages(target: &Target<'_>, _: usize) -> Result<()> {
    let text = alternating_text(target.size.copied_text);
    let body = json!({ "pairs": [{ "a": distant_sentences(), "b": text }] }).to_string();
    send_searches(target, "/v1/passages", "application/json", body.as_bytes())
}

/// Inserts sources that have the sentences, and searches for them.
fn find_alternating_sources(target: &Target<'_>, thread: usize) -> Result<()> {
    for at in 0..20 {
        let id = format!("source-{thread}-{at}");
        let body = json!({ "id": id, "text": format!("{id} {}", distant_sentences()) });
        let path = format!("{COLLECTION_PATH}/documents");
        let headers = headers(WRITE_KEY, "application/json");
        let body = body.to_string();
        let _ = target
            .connect()
            .and_then(|mut connection| connection.ask("POST", &path, &headers, body.as_bytes()));
    }
    let text = alternating_text(target.size.copied_text);
    let body = json!({ "text": text, "limit": 1000 }).to_string();
    let path = format!("{COLLECTION_PATH}/passages");
    send_searches(target, &path, "application/json", body.as_bytes())
}

fn extract_markers(target: &Target<'_>, _: usize) -> Result<()> {
    let body = "*a_ ".repeat(target.size.copied_text / 4);
    let path = "/v1/extract?name=a.md";
    send_searches(target, path, "application/octet-stream", body.as_bytes())
}

/// Sends objects in place of texts.
fn send_objects(target: &Target<'_>, _: usize) -> Result<()> {
    const OBJECT: &str = "{\"\":0},";
    let objects = OBJECT.repeat(target.size.copied_text / OBJECT.len());
    let body = format!("{{\"texts\":[{objects}0]}}");
    send_searches(
        target,
        "/v1/fingerprint",
        "application/json",
        body.as_bytes(),
    )
}

/// Inserts a long document, asks for it over many connections, and reads none of the answers.
fn leave_documents_unread(target: &Target<'_>, _: usize) -> Result<()> {
    let text = "word ".repeat(target.size.long_text / 5) + "of nobody";
    leave_unread(target, &text, 1)
}

/// Asks for a document without reading it, several times over each connection. Its characters are escaped in the answer, which
/// is six times as long.
fn leave_short_documents_unread(target: &Target<'_>, _: usize) -> Result<()> {
    const TEXT_BYTES: usize = 16_000;
    leave_unread(target, &"\u{1}".repeat(TEXT_BYTES), 4)
}

/// Inserts a text, and asks for it `times` over each of many connections without reading an answer.
fn leave_unread(target: &Target<'_>, text: &str, times: usize) -> Result<()> {
    let path = format!("{COLLECTION_PATH}/documents");
    let body = json!({ "id": "unread", "text": text }).to_string();
    let kind = headers(WRITE_KEY, "application/json");
    target
        .connect()?
        .ask("POST", &path, &kind, body.as_bytes())?;
    let head = head_of(
        "GET",
        &format!("{path}/unread"),
        &[("Authorization", READ_KEY)],
        0,
    );
    let mut open = VecDeque::new();
    while !target.has_ended() {
        let Ok(mut connection) = target.connect() else {
            std::thread::sleep(RECONNECT_PAUSE);
            continue;
        };
        let _ = connection.send(head.repeat(times).as_bytes());
        target.count_attempt();
        open.push_back(connection);
        if open.len() > target.size.dripping {
            open.pop_front();
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Sends a body again and again. Every answer is complete or a refusal.
fn send_searches(target: &Target<'_>, path: &str, kind: &str, body: &[u8]) -> Result<()> {
    let headers = headers(READ_KEY, kind);
    while !target.has_ended() {
        let asked = target.connect().and_then(|mut connection| {
            target.count_attempt();
            connection.ask("POST", path, &headers, body)
        });
        match asked {
            Ok(answer) => {
                let is_expected = matches!(answer.status, 200 | 413 | 422 | 429 | 503);
                ensure!(is_expected, "{}: {}", answer.status, answer.body);
            }
            Err(_) => std::thread::sleep(RECONNECT_PAUSE),
        }
    }
    Ok(())
}
