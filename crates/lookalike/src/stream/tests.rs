//! A stream compared with a batch of the same documents, and with a double loop that has neither keys
//! nor partitions.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use lookalike_oracle::effort::choose_effort;
use proptest::prelude::*;

use super::*;
use crate::arch::Cpu;
use crate::dedup::{self, MatchCorpus, find_verdicts};
use crate::error::ErrorKind;
use crate::hash::mix_bits;
use crate::plan::{CandidateRule, EditUnit, MatchMethod, MatchSettings, SimilarityMeasure};
use crate::sketch::{DocumentSketcher, DocumentSketches};
use crate::text::{AnalysisScratch, TextAnalysis, TextAnalyzer, TextToken};
use crate::types::Threshold;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix_bits(self.0) % limit as u64) as usize
    }
}

/// Returns texts of which many are edits of earlier ones: short, long, too short, of symbols only, and
/// empty.
fn texts(count: usize, random: &mut Random) -> Vec<String> {
    const RARE: [&str; 10] = ["", " ", "!", "!!", "。", "a", "A", "b", "老", "a b a b a"];
    let mut texts: Vec<String> = Vec::new();
    for _ in 0..count {
        let kind = random.below(20);
        let words = |length: usize, random: &mut Random| -> Vec<String> {
            let word = |random: &mut Random| format!("w{}", random.below(40) * random.below(40));
            (0..length).map(|_| word(random)).collect()
        };
        let text = match kind {
            0 => RARE[random.below(RARE.len())].to_owned(),
            1..=5 => {
                let length = 1 + random.below(14);
                words(length, random).join(" ")
            }
            6 | 7 => {
                let length = 40 + random.below(80);
                words(length, random).join(" ")
            }
            _ if texts.is_empty() => "one two three".to_owned(),
            _ => {
                let mut edited: Vec<String> = texts[random.below(texts.len())]
                    .split(' ')
                    .map(str::to_owned)
                    .collect();
                for _ in 0..random.below(4) {
                    let at = random.below(edited.len());
                    match random.below(3) {
                        0 => edited[at] = "changed".to_owned(),
                        1 => edited.insert(at, "more".to_owned()),
                        _ if edited.len() > 1 => drop(edited.remove(at)),
                        _ => {}
                    }
                }
                edited.join(if random.below(4) == 0 { ", " } else { " " })
            }
        };
        texts.push(text);
    }
    texts
}

#[derive(Default)]
struct Kept(HashMap<DocumentSlot, String>);

impl StreamTexts for Kept {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()> {
        visit(&self.0[&slot]);
        Ok(())
    }
}

/// A matcher with the texts of its documents, used as a caller does.
struct Stream {
    matcher: StreamMatcher,
    kept: Kept,
    partitions: u64,
    next: u64,
}

/// The answer for a document: its place in the order unless it was late, and the match that was found.
type Answer = (Option<u64>, Option<(u64, f64, Route)>);

impl Stream {
    fn new(settings: MatchSettings, window: Option<StreamWindow>) -> Self {
        let recipe = Recipe::built_in("default").unwrap();
        let plan = MatchPlan::new(&recipe, settings).unwrap();
        Self {
            matcher: StreamMatcher::new(&recipe, &plan, window).unwrap(),
            kept: Kept::default(),
            partitions: 0,
            next: 0,
        }
    }

    fn prepare(&self, text: &str) -> SketchedDocument {
        self.matcher
            .document_preparer()
            .prepare_text(text, &mut AnalysisScratch::default())
    }

    fn query(
        &self,
        text: &str,
        stated: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<(u64, f64, Route)> {
        let arrival = self.matcher.resolve_arrival(stated, now);
        let found = self
            .matcher
            .find_match(&self.prepare(text), &arrival, &self.kept)
            .unwrap();
        found.map(|found| (found.order, found.similarity.get(), found.route))
    }

    fn look_ahead(&self, document: &SketchedDocument, arrival: &ArrivalTime) -> PrecheckResult {
        let precheck = self.matcher.precheck(document, arrival, &self.kept);
        precheck.unwrap()
    }

    fn offer(&mut self, text: &str, stated: Option<Timestamp>, now: Timestamp) -> Answer {
        let document = self.prepare(text);
        let precheck = self.look_ahead(&document, &self.matcher.resolve_arrival(stated, now));
        self.offer_checked(text, &document, precheck, stated, now)
    }

    /// Offers a document as `offer` does, after an earlier check.
    fn offer_checked(
        &mut self,
        text: &str,
        document: &SketchedDocument,
        precheck: PrecheckResult,
        stated: Option<Timestamp>,
        now: Timestamp,
    ) -> Answer {
        let arrival = self.matcher.resolve_arrival(stated, now);
        let check = |matcher: &StreamMatcher, precheck, kept| {
            matcher
                .update_precheck(precheck, document, &arrival, kept)
                .unwrap()
        };
        let evidence = |precheck: &PrecheckResult| {
            let found = precheck.found_match();
            found.map(|found| (found.order, found.similarity.get(), found.route))
        };
        if arrival.late {
            let precheck = check(&self.matcher, precheck, &self.kept);
            return (None, evidence(&precheck));
        }
        if self.matcher.is_partition_due(&arrival) {
            self.matcher
                .begin_partition(self.partitions, arrival.clock)
                .unwrap();
            self.partitions += 1;
        }
        while self.matcher.expired_partition(&arrival).is_some() {
            self.matcher.drop_partition();
        }
        let mut precheck = check(&self.matcher, precheck, &self.kept);
        let (found, evidence) = (precheck.found_match(), evidence(&precheck));
        let order = self.next;
        self.next += 1;
        if order.is_multiple_of(2) {
            precheck = check(&self.matcher, precheck, &self.kept);
            assert_eq!(precheck.found_match(), found);
        }
        match found {
            None => {
                let slot = self
                    .matcher
                    .keep_checked(document, &precheck, order, arrival.time);
                let slot = slot.unwrap();
                self.kept.0.insert(slot, text.to_owned());
            }
            Some(found) => {
                self.matcher.note_time(arrival.time);
                if self
                    .matcher
                    .window()
                    .is_some_and(StreamWindow::is_refreshing)
                {
                    self.matcher.refresh_document(found.slot, arrival.time);
                }
            }
        }
        (Some(order), evidence)
    }
}

/// The texts of a batch.
struct Batch<'a>(&'a TextAnalyzer, &'a [String]);

impl dedup::TextReanalysis for Batch<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<()> {
        let text = &self.1[document.index()];
        visit(&self.0.analyze_text(text, &mut AnalysisScratch::default()));
        Ok(())
    }
}

/// Returns the answers of a batch for every document.
fn in_a_batch(
    plan: &MatchPlan,
    texts: &[String],
    times: Option<(&[f64], f64)>,
) -> Vec<Option<(u64, f64, Route)>> {
    let recipe = Recipe::built_in("default").unwrap();
    let sketcher = DocumentSketcher::new(&recipe, plan, Cpu::detect_best());
    let analyzer = TextAnalyzer::new(&recipe).with_extras(sketcher.required_extras());
    let mut sketches: DocumentSketches = sketcher.new_sketches(1 << 20);
    let mut scratch = AnalysisScratch::default();
    for text in texts {
        sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut sketches);
    }
    let batch = Batch(&analyzer, texts);
    let corpus = MatchCorpus {
        window: times.map(|(times, width)| dedup::TimeWindow { times, width }),
        ..MatchCorpus::new(plan, &sketches, &batch)
    };
    let mut verdicts = vec![None; texts.len()];
    for removal in find_verdicts(&corpus, &|_| {}).unwrap().removals {
        let kept = removal.kept;
        let evidence = (kept.with.index() as u64, kept.similarity.get(), kept.route);
        verdicts[removal.document.index()] = Some(evidence);
    }
    verdicts
}

fn all_settings() -> Vec<MatchSettings> {
    let base = MatchSettings {
        threshold: Threshold::new(0.7).unwrap(),
        ..MatchSettings::default()
    };
    let with = |method, measure| MatchSettings {
        method,
        measure,
        ..base
    };
    let simhash = |distance, measure, candidates| MatchSettings {
        distance,
        candidates,
        ..with(MatchMethod::SimHash, measure)
    };
    vec![
        base,
        with(MatchMethod::Join, SimilarityMeasure::Jaccard),
        with(MatchMethod::MinHash, SimilarityMeasure::Jaccard),
        with(MatchMethod::MinHash, SimilarityMeasure::Sketch),
        with(MatchMethod::Auto, SimilarityMeasure::Containment),
        with(MatchMethod::Auto, SimilarityMeasure::Cosine),
        with(MatchMethod::Auto, SimilarityMeasure::Levenshtein),
        MatchSettings {
            unit: EditUnit::Words,
            ..with(MatchMethod::Auto, SimilarityMeasure::Indel)
        },
        with(MatchMethod::Exact, SimilarityMeasure::Jaccard),
        with(MatchMethod::Sentences, SimilarityMeasure::Sketch),
        with(MatchMethod::BottomK, SimilarityMeasure::Jaccard),
        simhash(3, SimilarityMeasure::Sketch, CandidateRule::Distance),
        simhash(12, SimilarityMeasure::Jaccard, CandidateRule::Distance),
        simhash(17, SimilarityMeasure::Jaccard, CandidateRule::Distance),
        simhash(4, SimilarityMeasure::Indel, CandidateRule::Blocks),
    ]
}

const S: i64 = 1_000_000;

#[test]
fn stream_verdicts_equal_batch_verdicts() {
    for (seed, settings) in (1..).zip(all_settings()) {
        let mut random = Random(seed);
        let texts = texts(700, &mut random);
        let mut time = 0;
        let times: Vec<i64> = texts
            .iter()
            .map(|_| {
                time += random.below(3) as i64;
                time
            })
            .collect();
        for width in [None, Some(100), Some(7)] {
            let seconds = |width: i64| Duration::from_secs(width.unsigned_abs());
            let window = width
                .map(|width| StreamWindow::new(seconds(width), Duration::ZERO, false).unwrap());
            let mut stream = Stream::new(settings, window);
            let in_seconds: Vec<f64> = times.iter().map(|&time| time as f64).collect();
            let expected = in_a_batch(
                stream.matcher.plan(),
                &texts,
                width.map(|width| (&in_seconds[..], width as f64)),
            );
            assert!(expected.iter().any(Option::is_some) && expected.contains(&None));
            for ((text, &time), expected) in texts.iter().zip(&times).zip(expected) {
                let time = Timestamp(time * S);
                let before = stream.query(text, Some(time), time);
                let (order, found) = stream.offer(text, Some(time), time);
                assert_eq!(found, expected, "{order:?} '{text}' {settings:?} {width:?}");
                assert_eq!(found, before);
            }
            if width.is_some() {
                assert!(stream.partitions > 24);
                assert!(stream.matcher.len() < texts.len() as u64 / 2);
            }
        }
    }
}

/// Texts of all lengths that contain one another get the verdicts of a batch, also after the order of features
/// has changed, and if they are checked ahead.
#[test]
fn containments_equal_those_of_a_batch() {
    let count = choose_effort(1300, 3000);
    for (seed, threshold) in [0.5, 0.9, 1.0].into_iter().enumerate() {
        let settings = MatchSettings {
            threshold: Threshold::new(threshold).unwrap(),
            measure: SimilarityMeasure::Containment,
            ..MatchSettings::default()
        };
        let texts = lookalike_oracle::generate::generate_contained(count, seed as u64);
        let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        for width in [None, Some(count as u64 / 8)] {
            let window = width.map(|width| {
                StreamWindow::new(Duration::from_secs(width), Duration::ZERO, false).unwrap()
            });
            let mut stream = Stream::new(settings, window);
            let in_seconds: Vec<f64> = (0..count).map(|at| at as f64).collect();
            let expected = in_a_batch(
                stream.matcher.plan(),
                &texts,
                width.map(|width| (&in_seconds[..], width as f64)),
            );
            assert!(expected.iter().flatten().count() > count / 8);
            let mut answers = Vec::new();
            for (start, texts) in (0..).step_by(40).zip(texts.chunks(40)) {
                let documents: Vec<_> = texts.iter().map(|text| stream.prepare(text)).collect();
                let times = (start..).map(|at: i64| Timestamp(at * S));
                let prechecks: Vec<_> = documents
                    .iter()
                    .zip(times.clone())
                    .map(|(document, time)| {
                        stream.look_ahead(document, &stream.matcher.resolve_arrival(None, time))
                    })
                    .collect();
                for (((text, document), precheck), time) in
                    texts.iter().zip(&documents).zip(prechecks).zip(times)
                {
                    let answer = stream.offer_checked(text, document, precheck, None, time);
                    answers.push(answer.1);
                }
            }
            assert_eq!(answers, expected, "{threshold} {width:?}");
        }
    }
}

/// Documents that are checked before others of the same batch are inserted get the same answers.
#[test]
fn precheck_changes_no_verdict() {
    for (seed, settings) in (1..).zip(all_settings()) {
        let mut random = Random(100 + seed);
        let texts = texts(900, &mut random);
        let times: Vec<Timestamp> = (0..900).map(|at| Timestamp((at / 3) * S)).collect();
        for width in [None, Some(40)] {
            let window = width.map(|width| {
                StreamWindow::new(Duration::from_secs(width), Duration::ZERO, false).unwrap()
            });
            let now = Timestamp(1000 * S);
            let mut plain = Stream::new(settings, window);
            let answers = texts.iter().zip(&times);
            let expected: Vec<Answer> = answers
                .map(|(text, &time)| plain.offer(text, Some(time), now))
                .collect();
            for portion in [2, 50, 450] {
                let mut stream = Stream::new(settings, window);
                let mut answers = Vec::new();
                for (texts, times) in texts.chunks(portion).zip(times.chunks(portion)) {
                    let documents: Vec<_> = texts.iter().map(|text| stream.prepare(text)).collect();
                    let stated = times.iter().copied().map(Some);
                    let arrivals = stream.matcher.resolve_arrivals(stated, now);
                    let precheck = documents.iter().zip(&arrivals);
                    let precheck: Vec<_> = precheck
                        .map(|(document, arrival)| stream.look_ahead(document, arrival))
                        .collect();
                    for (at, precheck) in precheck.into_iter().enumerate() {
                        let (text, time) = (&texts[at], Some(times[at]));
                        answers.push(stream.offer_checked(
                            text,
                            &documents[at],
                            precheck,
                            time,
                            now,
                        ));
                    }
                }
                assert_eq!(answers, expected, "{settings:?} {width:?} {portion}");
            }
        }
    }
}

/// A document in the double loop.
struct Remembered {
    order: u64,
    tokens: Vec<TextToken>,
    text: String,
    time: i64,
    /// `true` if the clock was set back to more than a window before this document.
    is_far: bool,
    slot: Option<DocumentSlot>,
}

/// The rule by itself, for texts of the exact join.
struct Model {
    analyzer: TextAnalyzer,
    threshold: f64,
    width: i64,
    skew: i64,
    refresh: bool,
    newest: i64,
    /// Clock at the start of the newest partition.
    began: Option<i64>,
    kept: Vec<Remembered>,
    next: u64,
}

impl Model {
    fn similarity(&self, a: &Remembered, text: &str, tokens: &[TextToken]) -> Option<f64> {
        if a.tokens.is_empty() || tokens.is_empty() {
            let same = a.tokens.is_empty() && tokens.is_empty() && a.text.trim() == text.trim();
            return (same && !text.trim().is_empty()).then_some(1.0);
        }
        if a.tokens == tokens {
            return Some(1.0);
        }
        let set = |tokens: &[TextToken]| -> BTreeSet<(String, String)> {
            let pairs = tokens.windows(2);
            pairs
                .map(|pair| (format!("{:?}", pair[0]), format!("{:?}", pair[1])))
                .collect()
        };
        let (a, b) = (set(&a.tokens), set(tokens));
        let shared = a.intersection(&b).count();
        let share = shared as f64 / (a.len() + b.len() - shared) as f64;
        (shared > 0 && share >= self.threshold).then_some(share)
    }

    /// Returns the time and the clock at a document's arrival.
    fn arrival(&self, stated: Option<i64>, now: i64) -> (i64, i64) {
        let time = stated.unwrap_or(now).min(now + self.skew);
        (time, self.newest.max(time).min(now + self.skew))
    }

    /// Returns the orders and similarities of all kept documents that match, the most similar first and then
    /// the earliest.
    fn all_matches(&self, text: &str, stated: Option<i64>, now: i64) -> Vec<(u64, f64)> {
        let (time, clock) = self.arrival(stated, now);
        let tokens = self.analyzer.list_tokens(text);
        let reached = self.kept.iter().filter(|kept| {
            (kept.time - time).abs() <= self.width && kept.time >= clock - self.width
        });
        let mut matches: Vec<_> = reached
            .filter_map(|kept| Some((kept.order, self.similarity(kept, text, &tokens)?)))
            .collect();
        matches.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        matches
    }

    fn best(&self, text: &str, stated: Option<i64>, now: i64) -> Option<(usize, f64)> {
        let (time, clock) = self.arrival(stated, now);
        let tokens = self.analyzer.list_tokens(text);
        let mut best: Option<(usize, f64)> = None;
        for (at, kept) in self.kept.iter().enumerate() {
            let reached = (kept.time - time).abs() <= self.width && kept.time >= clock - self.width;
            if let Some(similarity) = self.similarity(kept, text, &tokens)
                && reached
                && best.is_none_or(|(_, most)| similarity > most)
            {
                best = Some((at, similarity));
            }
        }
        best
    }

    fn offer(&mut self, text: &str, stated: Option<i64>, now: i64) -> (Option<u64>, Option<u64>) {
        let (time, clock) = self.arrival(stated, now);
        let best = self.best(text, stated, now);
        let of = best.map(|(at, _)| self.kept[at].order);
        if time < clock - self.width {
            return (None, of);
        }
        if self
            .began
            .is_none_or(|began| (clock - began).abs() >= self.width / 24)
        {
            self.began = Some(clock);
            self.newest = self.newest.min(clock + self.width);
        }
        self.newest = self.newest.max(time);
        let order = self.next;
        self.next += 1;
        match best {
            Some((at, _)) if self.refresh => self.kept[at].time = self.kept[at].time.max(time),
            Some(_) => {}
            None => self.kept.push(Remembered {
                order,
                tokens: self.analyzer.list_tokens(text),
                text: text.to_owned(),
                time,
                is_far: false,
                slot: None,
            }),
        }
        (Some(order), of)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Offer { text: usize, lag: Option<i64> },
    Query { text: usize, lag: i64 },
    Delete { place: usize },
    Wait { seconds: i64 },
    SetBack { seconds: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lag = prop_oneof![4 => Just(0i64), 4 => -3i64..12, 1 => -2000i64..2000];
    let step = prop_oneof![
        20 => (0..80usize, proptest::option::weighted(0.8, lag.clone()))
            .prop_map(|(text, lag)| Step::Offer { text, lag }),
        8 => (0..80usize, lag).prop_map(|(text, lag)| Step::Query { text, lag }),
        2 => (0..40usize).prop_map(|place| Step::Delete { place }),
        5 => (0..20i64).prop_map(|seconds| Step::Wait { seconds }),
        1 => prop_oneof![0..40i64, 300..400i64].prop_map(|seconds| Step::Wait { seconds }),
        1 => (0..60i64).prop_map(|seconds| Step::SetBack { seconds }),
    ];
    proptest::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stream_follows_the_verdict_rule(
        steps in steps(),
        seed in 0..1000u64,
        width in prop_oneof![Just(Some(24i64)), Just(Some(100)), Just(Some(5)), Just(None)],
        refresh in any::<bool>(),
    ) {
        let texts = texts(80, &mut Random(seed));
        let settings = MatchSettings {
            method: MatchMethod::Join,
            threshold: Threshold::new(0.6).unwrap(),
            ..MatchSettings::default()
        };
        let seconds = |count: i64| Duration::from_secs(count.unsigned_abs());
        let window = width.map(|width| StreamWindow::new(seconds(width), seconds(5), refresh).unwrap());
        let mut stream = Stream::new(settings, window);
        // Result of the last precheck of each text, however long ago.
        let mut precheck: HashMap<usize, PrecheckResult> = HashMap::new();
        let mut model = Model {
            analyzer: TextAnalyzer::new(&Recipe::built_in("default").unwrap()),
            threshold: 0.6,
            width: width.map_or(i64::MAX / 4, |width| width * S),
            skew: width.map_or(i64::MAX / 4, |_| 5 * S),
            refresh: refresh && width.is_some(),
            newest: i64::MIN / 2,
            began: None,
            kept: Vec::new(),
            next: 0,
        };
        let mut now = 1_000_000 * S;
        for step in steps {
            match step {
                Step::Wait { seconds } => now += seconds * S,
                Step::SetBack { seconds } => now -= seconds * S,
                Step::Offer { text, lag } => {
                    let stated = lag.map(|lag| now - lag * S);
                    let before = stream.matcher.len();
                    let document = stream.prepare(&texts[text]);
                    let (stated_time, now_time) = (stated.map(Timestamp), Timestamp(now));
                    let arrival = stream.matcher.resolve_arrival(stated_time, now_time);
                    let precheck = precheck.remove(&text);
                    let precheck = precheck.unwrap_or_else(|| stream.look_ahead(&document, &arrival));
                    let answer =
                        stream.offer_checked(&texts[text], &document, precheck, stated_time, now_time);
                    // Documents past the window are dropped at some time, and for good, even if the
                    // wall clock is set back.
                    let (_, clock) = model.arrival(stated, now);
                    for gone in model.kept.extract_if(.., |kept| {
                        kept.slot.is_some_and(|slot| stream.matcher.kept_document(slot).is_none())
                    }) {
                        prop_assert!(gone.time < clock - model.width || gone.is_far);
                    }
                    let expected = model.offer(&texts[text], stated, now);
                    prop_assert_eq!((answer.0, answer.1.map(|found| found.0)), expected);
                    if answer.0.is_some() && answer.1.is_none() {
                        let newest = model.kept.last_mut().unwrap();
                        let slots = stream.kept.0.keys();
                        newest.slot = slots.max().copied();
                        prop_assert!(stream.matcher.len() <= before + 1);
                    }
                    for kept in &mut model.kept {
                        kept.is_far |= answer.0.is_some() && kept.time > clock + model.width;
                    }
                }
                Step::Query { text, lag } => {
                    let stated = now - lag * S;
                    let found = stream.query(&texts[text], Some(Timestamp(stated)), Timestamp(now));
                    let arrival = stream.matcher.resolve_arrival(Some(Timestamp(stated)), Timestamp(now));
                    let document = stream.prepare(&texts[text]);
                    precheck.insert(text, stream.look_ahead(&document, &arrival));
                    let expected = model.best(&texts[text], Some(stated), now);
                    let expected = expected.map(|(at, share)| (model.kept[at].order, share));
                    prop_assert_eq!(found.map(|(order, share, _)| (order, share)), expected);
                    let expected = model.all_matches(&texts[text], Some(stated), now);
                    for limit in [0, 1, 2, 3, 100] {
                        let found = stream.matcher.find_matches(&document, &arrival, None, limit, &stream.kept);
                        let found = found.unwrap().into_iter();
                        let found: Vec<_> = found.map(|found| (found.order, found.similarity.get())).collect();
                        prop_assert_eq!(&found[..], &expected[..limit.min(expected.len())]);
                    }
                }
                Step::Delete { place } => {
                    if place < model.kept.len() {
                        let gone = model.kept.remove(place);
                        let slot = gone.slot.unwrap();
                        let there = stream.matcher.kept_document(slot);
                        let same = |(order, time)| order == gone.order && time == Timestamp(gone.time);
                        let right = there.is_none_or(same);
                        prop_assert!(right);
                        prop_assert_eq!(stream.matcher.remove_document(slot), there.is_some());
                        prop_assert!(!stream.matcher.remove_document(slot));
                    }
                }
            }
        }
    }
}

#[test]
fn bare_fingerprint_is_compared_by_its_bits() {
    let settings = MatchSettings {
        method: MatchMethod::SimHash,
        measure: SimilarityMeasure::Sketch,
        ..MatchSettings::default()
    };
    let mut stream = Stream::new(settings, None);
    let preparer = stream.matcher.document_preparer().clone();
    let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
    stream.matcher.begin_partition(3, Timestamp(0)).unwrap();
    let kept = preparer.fingerprint(0).unwrap();
    let slot = stream
        .matcher
        .keep_document(&kept, 10, Timestamp(0))
        .unwrap();
    assert_eq!((slot.partition, slot.index), (3, 0));
    for (bits, similarity) in [
        (0u32, Some(1.0)),
        (2, Some(62.0 / 64.0)),
        (3, Some(61.0 / 64.0)),
        (4, None),
    ] {
        let code = (1u128 << bits) - 1;
        let probed = preparer.fingerprint(code).unwrap();
        let found = stream
            .matcher
            .find_match(&probed, &arrival, &stream.kept)
            .unwrap();
        assert_eq!(
            found.map(|found| found.similarity.get()),
            similarity,
            "{bits}"
        );
    }
    let wide = preparer.fingerprint(1 << 64).unwrap_err();
    assert!(wide.to_string().contains("64 bits"), "{wide}");
    let compared = Stream::new(MatchSettings::default(), None);
    let refused = compared
        .matcher
        .document_preparer()
        .fingerprint(5)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Setting);
    assert!(refused.to_string().contains("0x5"), "{refused}");
}

/// Documents that were written and read again are kept like the originals. Other bytes are refused.
#[test]
fn written_documents_round_trip() {
    for (seed, settings) in (1..).zip(all_settings()) {
        let mut random = Random(300 + seed);
        let texts = texts(200, &mut random);
        let (mut one, mut other) = (Stream::new(settings, None), Stream::new(settings, None));
        let preparer = one.matcher.document_preparer().clone();
        let by_sequence = one.matcher.plan().sequence_measure().is_some();
        assert_eq!(preparer.can_encode(), !by_sequence);
        if by_sequence {
            continue;
        }
        for stream in [&mut one, &mut other] {
            stream.matcher.begin_partition(0, Timestamp(0)).unwrap();
        }
        for (order, text) in (0..).zip(&texts) {
            let document = preparer.prepare_text(text.as_str(), &mut AnalysisScratch::default());
            let mut bytes = Vec::new();
            preparer.encode_document(&document, &mut bytes);
            let again = preparer.decode_document(&bytes).unwrap();
            for cut in 0..bytes.len() {
                assert!(preparer.decode_document(&bytes[..cut]).is_none());
            }
            let slot = one
                .matcher
                .keep_document(&document, order, Timestamp(0))
                .unwrap();
            one.kept.0.insert(slot, text.clone());
            let document_keys = other.matcher.key_extractor().extract_keys(&again);
            let slot = other
                .matcher
                .keep_with_keys(&again, &document_keys, order, Timestamp(0));
            other.kept.0.insert(slot.unwrap(), text.clone());
        }
        assert_eq!(
            one.matcher.memory_by_part()[0],
            other.matcher.memory_by_part()[0]
        );
        for text in &texts {
            let found = one.query(text, None, Timestamp(0));
            assert_eq!(found, other.query(text, None, Timestamp(0)), "{text}");
        }
    }
}

/// A wall clock that was far ahead for a moment does not keep the window from sliding.
#[test]
fn documents_with_wrong_times_expire() {
    let seconds = Duration::from_secs;
    let window = StreamWindow::new(seconds(24), seconds(5), false).unwrap();
    let mut stream = Stream::new(MatchSettings::default(), Some(window));
    let year = 365 * 86_400;
    let mut kept = Vec::new();
    for second in 0..200 {
        let now = if second == 30 { year } else { second };
        let text = format!("{second} is the number of this one");
        stream.offer(&text, None, Timestamp((1000 + now) * S));
        kept.push(stream.matcher.len());
    }
    // The documents that follow stay as long as the one from next year: two windows and the skew.
    let until = 31 + 2 * 24 + 5;
    assert_eq!(kept.iter().max(), Some(&kept[until]), "{kept:?}");
    assert_eq!(kept[until], until as u64 - 30 + 1);
    assert!(kept[until + 1..].iter().all(|&kept| kept <= 24 + 2));
}

/// Orders are preserved however far apart they are.
#[test]
fn partition_spans_any_range_of_orders() {
    let far = 1 << 33;
    for orders in [
        vec![3, far, far + 1, 5, 2 * far, 9],
        vec![far, 3, far - 1, far + (1 << 32) - 1, far + (1 << 31)],
        vec![0, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 32, 1],
    ] {
        let mut stream = Stream::new(MatchSettings::default(), None);
        stream.matcher.begin_partition(0, Timestamp(0)).unwrap();
        let keep = |(at, &order): (usize, &u64)| {
            let document = stream.prepare(&format!("{at} is the number of this one"));
            stream
                .matcher
                .keep_document(&document, order, Timestamp(0))
                .unwrap()
        };
        let slots: Vec<DocumentSlot> = orders.iter().enumerate().map(keep).collect();
        let again = slots
            .iter()
            .map(|&slot| stream.matcher.kept_document(slot).unwrap().0);
        assert!(again.eq(orders));
    }
}

#[test]
fn changed_text_is_detected() {
    let mut stream = Stream::new(MatchSettings::default(), None);
    stream.offer("one two three four five six", None, Timestamp(0));
    let slot = *stream.kept.0.keys().next().unwrap();
    stream
        .kept
        .0
        .insert(slot, "one two three four five".to_owned());
    let probed = stream.prepare("one two three four five six seven");
    let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
    let error = stream
        .matcher
        .find_match(&probed, &arrival, &stream.kept)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Text);
}

#[test]
fn partitions_are_begun_in_ascending_order() {
    let mut stream = Stream::new(MatchSettings::default(), None);
    let document = stream.prepare("one two three");
    assert!(
        stream
            .matcher
            .keep_document(&document, 0, Timestamp(0))
            .is_err()
    );
    stream.matcher.begin_partition(5, Timestamp(0)).unwrap();
    let again = stream.matcher.begin_partition(5, Timestamp(0)).unwrap_err();
    assert!(again.to_string().contains("section 5"), "{again}");
    stream.matcher.begin_partition(6, Timestamp(0)).unwrap();
    assert!(
        stream
            .matcher
            .keep_document(&document, 0, Timestamp(0))
            .is_ok()
    );
    let memory = stream.matcher.memory_by_part();
    assert!(
        memory.iter().all(|&(_, bytes)| bytes < 1 << 20),
        "{memory:?}"
    );
}

/// A skipped place counts for later documents, and no check finds it.
#[test]
fn skipped_place_is_never_found() {
    let recipe = Recipe::built_in("default").unwrap();
    for method in [
        MatchMethod::Join,
        MatchMethod::SimHash,
        MatchMethod::MinHash,
    ] {
        let settings = MatchSettings {
            method,
            ..MatchSettings::default()
        };
        let plan = MatchPlan::new(&recipe, settings).unwrap();
        let mut matcher = StreamMatcher::new(&recipe, &plan, None).unwrap();
        matcher.begin_partition(3, Timestamp(0)).unwrap();
        let mut kept = Kept::default();
        let prepare = |text: &str| {
            matcher
                .document_preparer()
                .prepare_text(text, &mut AnalysisScratch::default())
        };
        let (empty, text) = (prepare(""), prepare("one two three four five six"));
        assert_eq!(matcher.skip_place(1).unwrap().index, 0);
        let slot = matcher.keep_document(&text, 2, Timestamp(0)).unwrap();
        assert_eq!((slot.partition, slot.index), (3, 1));
        assert_eq!(matcher.skip_place(3).unwrap().index, 2);
        kept.0
            .insert(slot, "one two three four five six".to_owned());
        assert_eq!(matcher.len(), 1);
        let arrival = matcher.resolve_arrival(None, Timestamp(0));
        assert!(
            matcher
                .find_match(&empty, &arrival, &kept)
                .unwrap()
                .is_none()
        );
        let found = matcher.find_match(&text, &arrival, &kept).unwrap().unwrap();
        assert_eq!((found.slot, found.order), (slot, 2));
    }
}

/// Texts of the same blocks in other orders: candidates of one another that are many edits apart.
fn permuted_blocks(count: usize, random: &mut Random) -> Vec<String> {
    let mut blocks: Vec<String> = (0..12)
        .map(|block| {
            (0..40)
                .map(|word| format!("b{block}w{} ", word * block))
                .collect()
        })
        .collect();
    let mut permute = || {
        for at in (1..blocks.len()).rev() {
            blocks.swap(at, random.below(at + 1));
        }
        blocks.concat()
    };
    (0..count).map(|_| permute()).collect()
}

#[test]
fn steps_of_verification_are_bounded() {
    let settings = MatchSettings {
        measure: SimilarityMeasure::Levenshtein,
        ..MatchSettings::default()
    };
    let texts = permuted_blocks(6, &mut Random(5));
    let (last, texts) = texts.split_last().unwrap();
    let mut stream = Stream::new(settings, None);
    let (document, arrival) = (
        stream.prepare(last),
        stream.matcher.resolve_arrival(None, Timestamp(0)),
    );
    let mut early = None;
    for (at, text) in texts.iter().enumerate() {
        if at == 3 {
            early = Some(stream.look_ahead(&document, &arrival));
        }
        let answer = stream.offer(text, None, Timestamp(0));
        assert!(matches!(answer, (Some(_), None)), "{answer:?}");
    }
    let matcher = &stream.matcher;
    let (early, whole) = (early.unwrap(), stream.look_ahead(&document, &arrival));
    let (before, steps) = (early.steps(), whole.steps());
    assert!(0 < before && before < steps, "{before} {steps}");
    let taken = matcher.steps_taken();
    let again = matcher.update_precheck(early.clone(), &document, &arrival, &stream.kept);
    assert_eq!(again.unwrap().steps(), steps);
    assert_eq!(matcher.steps_taken() - taken, steps - before);

    for (limit, fits) in [(steps - 1, false), (steps, true), (steps + 1, true)] {
        stream.matcher.set_step_limit(limit);
        let (matcher, kept) = (&stream.matcher, &stream.kept);
        for checked in [
            matcher.precheck(&document, &arrival, kept),
            matcher.update_precheck(early.clone(), &document, &arrival, kept),
        ] {
            let refused = checked.err().map(|error| error.kind());
            assert_eq!(refused, (!fits).then_some(ErrorKind::TooCostly), "{limit}");
        }
    }
    for (limit, may_be_kept) in [(2 * steps - 1, false), (2 * steps, true)] {
        stream.matcher.set_step_limit(limit);
        assert_eq!(stream.matcher.check_keepable(&whole).is_ok(), may_be_kept);
    }
    // A measure of features takes what it takes.
    let mut stream = Stream::new(MatchSettings::default(), None);
    stream.matcher.set_step_limit(0);
    let found = texts
        .iter()
        .map(|text| stream.offer(text, None, Timestamp(0)).1);
    assert!(found.skip(1).all(|found| found.is_some()));
}

/// Returns settings of every way in which candidates are found and compared.
fn settings_of_all_measures() -> Vec<MatchSettings> {
    let of = |measure, hundredths| MatchSettings {
        measure,
        threshold: Threshold::new(f64::from(hundredths) / 100.0).unwrap(),
        ..MatchSettings::default()
    };
    let joined = MatchSettings {
        method: MatchMethod::Join,
        ..of(SimilarityMeasure::Jaccard, 60)
    };
    let by_fingerprint = MatchSettings {
        method: MatchMethod::SimHash,
        ..of(SimilarityMeasure::Sketch, 80)
    };
    vec![
        joined,
        by_fingerprint,
        of(SimilarityMeasure::Jaccard, 75),
        of(SimilarityMeasure::Containment, 80),
        of(SimilarityMeasure::Cosine, 80),
        of(SimilarityMeasure::Levenshtein, 75),
        of(SimilarityMeasure::Indel, 75),
        of(SimilarityMeasure::Substring, 75),
    ]
}

/// Checks that go on in turns of one unit, while documents are inserted, removed and refreshed and the window
/// moves, have the result of a check at that moment. Candidates that take more than a unit are compared later,
/// without the matcher, or again in a turn.
#[test]
fn checks_in_turns_equal_whole_checks() {
    let windows = [None, Some(false), Some(true)].map(|refresh| {
        let seconds = Duration::from_secs;
        refresh.map(|refresh| StreamWindow::new(seconds(60), seconds(5), refresh).unwrap())
    });
    let (mut matches, mut unfinished, mut deferred, mut keys_set) = (0, 0, 0, 0);
    let mut unchecked = 0;
    for (at, settings) in settings_of_all_measures().into_iter().enumerate() {
        for window in windows {
            let mut random = Random(100 + at as u64);
            let texts = texts(120, &mut random);
            let mut stream = Stream::new(settings, window);
            // Searches under way: the place of the text, the stated time, and a slot that is ignored.
            let mut searches = Vec::new();
            for step in 0..400i64 {
                let now = Timestamp(1_000_000 * S + step * S / 2);
                let text = random.below(texts.len());
                stream.offer(&texts[text], None, now);
                if step % 5 == 0 && !stream.kept.0.is_empty() {
                    let slots: BTreeSet<_> = stream.kept.0.keys().copied().collect();
                    let place = random.below(slots.len());
                    let slot = slots.into_iter().nth(place).unwrap();
                    stream.matcher.remove_document(slot);
                }
                let arrival = stream.matcher.resolve_arrival(None, now);
                let search = match random.below(3) {
                    0 => stream.matcher.begin_listing(&arrival),
                    _ => stream.matcher.begin_precheck(&arrival),
                };
                let without = stream
                    .kept
                    .0
                    .keys()
                    .min()
                    .copied()
                    .filter(|_| step % 3 == 0);
                let text = random.below(texts.len());
                searches.push((text, without, search, None::<String>, None::<KeyExtractor>));
                if searches.len() > 6 {
                    searches.remove(random.below(searches.len()));
                }
                for (text, without, search, compared_text, extractor) in &mut searches {
                    let document = stream.prepare(&texts[*text]);
                    let (matcher, kept) = (&stream.matcher, &stream.kept);
                    if let Some(text) = compared_text.take() {
                        let verifier = matcher.candidate_verifier();
                        verifier.compare_deferred(search, &document, &text).unwrap();
                        deferred += 1;
                    }
                    if let Some(extractor) = extractor.take() {
                        search.set_keys(extractor.extract_search_keys(&document));
                        keys_set += 1;
                    }
                    let unit_steps = [0, 300, 3000, u64::MAX][random.below(4)];
                    let mut turn = SearchTurn::new(random.below(3) as u64 * 200);
                    // A search that never compares what is deferred does not end in turns without units.
                    if random.below(8) > 0 {
                        turn = turn.with_unit_steps(unit_steps);
                    }
                    let is_complete = matcher
                        .continue_precheck(search, &document, &arrival, *without, kept, &mut turn)
                        .unwrap();
                    if !is_complete {
                        let slot = search.deferred_slot().filter(|_| random.below(4) > 0);
                        *compared_text = slot.map(|slot| kept.0[&slot].clone());
                        let awaits_keys = search.awaits_keys() && random.below(4) > 0;
                        *extractor = awaits_keys.then(|| matcher.key_extractor());
                        unfinished += 1;
                        unchecked += usize::from(!search.unchecked.is_empty());
                        continue;
                    }
                    let whole = matcher.check_without(&document, &arrival, *without, kept);
                    let whole = whole.unwrap();
                    let summary = |found: KeptMatch| (found.slot, found.similarity.get());
                    assert_eq!(
                        search.found_match().map(summary),
                        whole.map(summary),
                        "{settings:?} {window:?} step {step}"
                    );
                    if search.lists_all {
                        let all = matcher.find_matches(&document, &arrival, *without, 1000, kept);
                        let all = all.unwrap();
                        assert_eq!(search.list_matches(usize::MAX), all, "step {step}");
                        for limit in [1, 2, all.len()] {
                            let first = &all[..limit.min(all.len())];
                            assert_eq!(search.list_matches(limit), first, "step {step}");
                        }
                    }
                    matches += usize::from(whole.is_some());
                }
            }
        }
    }
    assert!(matches > 2000 && unfinished > 500, "{matches} {unfinished}");
    assert!(deferred > 200, "{deferred}");
    assert!(keys_set > 50, "{keys_set}");
    assert!(unchecked > 40, "{unchecked}");
}

/// Documents whose keys are inserted in turns, before the documents themselves, get and cause the same verdicts. Keys of
/// documents that are not inserted after all change nothing, and neither do readers between two turns.
#[test]
fn keys_inserted_ahead_change_no_verdict() {
    let (mut turns, mut discarded) = (0, 0);
    for (seed, window) in (1..).zip([None, Some(300)]) {
        let settings = MatchSettings {
            measure: SimilarityMeasure::Containment,
            ..MatchSettings::default()
        };
        let window = window.map(|seconds| {
            StreamWindow::new(Duration::from_secs(seconds), Duration::ZERO, false).unwrap()
        });
        let texts = lookalike_oracle::generate::generate_contained(1500, seed);
        let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        let mut random = Random(seed);
        let (mut plain, mut ahead) = (Stream::new(settings, window), Stream::new(settings, window));
        // Each document is checked before the one before it is inserted.
        let mut next_check = None;
        for (at, text) in texts.iter().enumerate() {
            let now = Timestamp(at as i64 * S);
            let mut turn = || SearchTurn::new(random.below(3000) as u64);
            if at % 3 == 0 {
                let other = ahead.prepare(&texts[(at * 7 + 5) % texts.len()]);
                let mut keys = ahead.matcher.key_extractor().extract_keys(&other);
                let is_inserted = ahead.matcher.insert_ahead(&other, &mut keys, &mut turn());
                discarded += usize::from(!is_inserted);
            }
            let document = ahead.prepare(text);
            let arrival = ahead.matcher.resolve_arrival(None, now);
            let precheck = next_check.take();
            let precheck = precheck.unwrap_or_else(|| ahead.look_ahead(&document, &arrival));
            let updated = ahead
                .matcher
                .update_precheck(precheck, &document, &arrival, &ahead.kept);
            let mut precheck = updated.unwrap();
            if let Some(next) = texts.get(at + 1) {
                let next = ahead.prepare(next);
                next_check = Some(ahead.look_ahead(&next, &arrival));
            }
            if let Some(keys) = precheck.insertion_keys_mut() {
                while !ahead.matcher.insert_ahead(&document, keys, &mut turn()) {
                    turns += 1;
                    if turns % 5 == 0 {
                        // Another document begins at the same place.
                        let other = ahead.prepare(&texts[(at * 3 + 1) % texts.len()]);
                        let mut keys = ahead.matcher.key_extractor().extract_keys(&other);
                        ahead.matcher.insert_ahead(&other, &mut keys, &mut turn());
                    }
                    for queried in [at, at / 2] {
                        let text = &texts[queried];
                        assert_eq!(ahead.query(text, None, now), plain.query(text, None, now));
                    }
                }
            }
            let answer = ahead.offer_checked(text, &document, precheck, None, now);
            assert_eq!(answer, plain.offer(text, None, now), "document {at}");
        }
        let counters = |stream: &Stream| stream.matcher.memory_by_part()[2];
        assert_eq!(counters(&plain), counters(&ahead));
    }
    assert!(turns > 500 && discarded > 100, "{turns} {discarded}");
}

/// The work of a turn is bounded by every measure, however many candidates a document has.
#[test]
fn turns_are_bounded_by_every_measure() {
    const LIMIT: u64 = 20_000;
    for settings in settings_of_all_measures() {
        let mut random = Random(3);
        let mut stream = Stream::new(settings, None);
        // Texts of most of the same words: each has all others as candidates, or nearly.
        let text_of = |random: &mut Random| {
            let words = (0..60).map(|at| match random.below(4) {
                0 => format!("own{} ", random.below(100_000)),
                _ => format!("shared{at} "),
            });
            words.collect::<String>()
        };
        for _ in 0..400 {
            stream.offer(&text_of(&mut random), None, Timestamp(0));
        }
        let document = stream.prepare(&text_of(&mut random));
        let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
        let mut search = stream.matcher.begin_listing(&arrival);
        let (mut turns, mut longest) = (0, 0);
        loop {
            let mut turn = SearchTurn::new(LIMIT);
            let is_complete = stream.matcher.continue_precheck(
                &mut search,
                &document,
                &arrival,
                None,
                &stream.kept,
                &mut turn,
            );
            longest = longest.max(turn.steps());
            turns += 1;
            if is_complete.unwrap() {
                break;
            }
            assert!(turn.steps() > LIMIT);
        }
        // A unit is one candidate or a few keys of some hundred documents.
        assert!(longest < 20 * LIMIT, "{settings:?}: {longest}");
        if settings.measure == SimilarityMeasure::Containment {
            assert!(turns > 1, "{settings:?}: {turns} turns");
        }
    }
}

/// Texts of kept documents, and the longest one that was read.
struct ObservedTexts<'a> {
    kept: &'a Kept,
    longest: std::cell::Cell<usize>,
}

impl StreamTexts for ObservedTexts<'_> {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()> {
        self.kept.visit_text(slot, &mut |text| {
            self.longest.set(self.longest.get().max(text.len()));
            visit(text);
        })
    }

    fn visit_short_text(
        &self,
        slot: DocumentSlot,
        most_bytes: usize,
        visit: &mut dyn FnMut(&str),
    ) -> Result<bool> {
        let is_short = self.kept.0[&slot].len() <= most_bytes;
        if is_short {
            self.visit_text(slot, visit)?;
        }
        Ok(is_short)
    }
}

/// Searches in turns with units, and returns the matches, the deferred comparisons and the longest turn.
fn search_in_units(
    stream: &Stream,
    document: &SketchedDocument,
    limit: u64,
    unit_steps: u64,
) -> (Vec<KeptMatch>, u32, u64) {
    let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
    let mut search = stream.matcher.begin_listing(&arrival);
    let texts = ObservedTexts {
        kept: &stream.kept,
        longest: std::cell::Cell::new(0),
    };
    let (mut deferred, mut longest) = (0, 0);
    loop {
        let mut turn = SearchTurn::new(limit).with_unit_steps(unit_steps);
        let is_complete = stream
            .matcher
            .continue_precheck(&mut search, document, &arrival, None, &texts, &mut turn)
            .unwrap();
        assert!(texts.longest.get() <= turn.most_text_bytes());
        longest = longest.max(turn.steps());
        if is_complete {
            return (search.list_matches(usize::MAX), deferred, longest);
        }
        if search.awaits_keys() {
            let extractor = stream.matcher.key_extractor();
            search.set_keys(extractor.extract_search_keys(document));
        }
        if let Some(slot) = search.deferred_slot() {
            let verifier = stream.matcher.candidate_verifier();
            let text = &stream.kept.0[&slot];
            verifier
                .compare_deferred(&mut search, document, text)
                .unwrap();
            deferred += 1;
        }
    }
}

/// A turn with units takes no more than its limit and a few units, however long the texts are and however much their
/// comparison costs.
#[test]
fn units_bound_the_comparison_of_long_texts() {
    const LIMIT: u64 = 40_000;
    const UNIT: u64 = 5_000;
    for settings in settings_of_all_measures() {
        let mut random = Random(17);
        let mut stream = Stream::new(settings, None);
        // Long texts of mostly the same words in the same order, and a short one.
        let text_of = |words: usize, random: &mut Random| {
            let words = (0..words).map(|at| match random.below(3) {
                0 => format!("own{} ", random.below(100_000)),
                _ => format!("shared{at} "),
            });
            words.collect::<String>()
        };
        for _ in 0..6 {
            stream.offer(&text_of(4000, &mut random), None, Timestamp(0));
        }
        stream.offer(&text_of(30, &mut random), None, Timestamp(0));
        let longest = stream.kept.0.values().max_by_key(|text| text.len());
        let edited = format!("{} and an edit", longest.unwrap());
        for text in [edited, text_of(4000, &mut random)] {
            let document = stream.prepare(&text);
            let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
            let matcher = &stream.matcher;
            let whole = matcher
                .find_matches(&document, &arrival, None, 1000, &stream.kept)
                .unwrap();
            let (found, deferred, longest) = search_in_units(&stream, &document, LIMIT, UNIT);
            assert_eq!(found, whole, "{settings:?}");
            // Looking up keys has units of its own.
            assert!(longest <= LIMIT + 4 * UNIT, "{settings:?}: {longest}");
            if settings.measure != SimilarityMeasure::Sketch && !whole.is_empty() {
                assert!(deferred > 0, "{settings:?}");
            }
        }
    }
}

/// The lists of a checked document are made once, whatever the number of turns.
#[test]
fn lists_of_a_checked_document_are_kept_over_its_turns() {
    let settings = MatchSettings {
        measure: SimilarityMeasure::Cosine,
        ..MatchSettings::default()
    };
    let mut stream = Stream::new(settings, None);
    let words =
        |from: usize| -> String { (from..from + 300).map(|at| format!("word{at} ")).collect() };
    // It is similar to both of two documents that are not similar to each other.
    for from in [0, 90] {
        stream.offer(&words(from), None, Timestamp(0));
    }
    assert_eq!(stream.matcher.len(), 2);
    let document = stream.prepare(&words(45));
    let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
    let expected = stream
        .matcher
        .find_matches(&document, &arrival, None, 9, &stream.kept);
    // The same document without its text, as it is read from a file.
    let preparer = stream.matcher.document_preparer();
    let mut bytes = Vec::new();
    preparer.encode_document(&document, &mut bytes);
    let without_text = preparer.decode_document(&bytes).unwrap();
    let mut search = stream.matcher.begin_listing(&arrival);
    let mut turns = 0;
    let mut is_complete = false;
    while !is_complete {
        let has_lists = search.steps() > 0;
        let document = if has_lists { &without_text } else { &document };
        let turn = &mut SearchTurn::new(0);
        is_complete = stream
            .matcher
            .continue_precheck(&mut search, document, &arrival, None, &stream.kept, turn)
            .unwrap();
        turns += u32::from(has_lists);
    }
    assert!(turns > 0);
    assert_eq!(search.list_matches(usize::MAX), expected.unwrap());
    assert_eq!(search.list_matches(usize::MAX).len(), 2);
}

proptest! {
    /// A pair that is compared in a turn, in vain in a turn and then without the matcher, or at once has one verdict,
    /// and it is that of the threshold.
    #[test]
    fn units_change_no_verdict_around_the_threshold(
        length in 30usize..400,
        allowed in 1usize..12,
        seed in 0u64..1000,
        measure in 0usize..3,
    ) {
        // One symbol for each word: a substitution is one edit, or two insertions and deletions.
        let mut random = Random(seed);
        let words: Vec<String> = (0..length).map(|at| format!("w{at}")).collect();
        let (measure, edits_of_a_change, whole) = [
            (SimilarityMeasure::Levenshtein, 1, length),
            (SimilarityMeasure::Indel, 2, 2 * length),
            (SimilarityMeasure::Substring, 2, 2 * length),
        ][measure];
        let edits = edits_of_a_change * allowed;
        let threshold = Threshold::new((whole - edits) as f64 / whole as f64).unwrap();
        let settings = MatchSettings {
            method: MatchMethod::Join,
            measure,
            threshold,
            unit: EditUnit::Words,
            ..MatchSettings::default()
        };
        let mut stream = Stream::new(settings, None);
        let kept = words.join(" ");
        stream.offer(&kept, None, Timestamp(0));
        for changes in [allowed - 1, allowed, allowed + 1] {
            let mut other = words.clone();
            // At the end, so that the rest is one substring.
            for word in other.iter_mut().rev().take(changes) {
                *word = format!("e{}", random.below(1 << 30));
            }
            let document = stream.prepare(&other.join(" "));
            let arrival = stream.matcher.resolve_arrival(None, Timestamp(0));
            let whole = stream.matcher.find_matches(&document, &arrival, None, 9, &stream.kept);
            let whole = whole.unwrap();
            if !whole.is_empty() {
                prop_assert!(changes <= allowed);
            }
            for unit_steps in [0, 1, 7, 60, 500, 1000, 5000, 100_000, u64::MAX] {
                let (found, deferred, _) = search_in_units(&stream, &document, 0, unit_steps);
                prop_assert_eq!(&found, &whole, "{} of {} within {}", changes, allowed, unit_steps);
                prop_assert!(unit_steps > 0 || whole.is_empty() || deferred == 1 || changes == 0);
            }
        }
    }
}

/// A stream that reaches back by documents compares with so many before a document, repeats included, and gives back the
/// memory of older ones. Removed documents match nothing.
#[test]
fn stream_reaches_back_by_documents() {
    let recipe = Recipe::default();
    let plan = MatchPlan::new(&recipe, MatchSettings::default()).unwrap();
    let last = 3.try_into().unwrap();
    for refresh in [false, true] {
        let reach = StreamReach::Documents { last, refresh };
        let mut stream = DocumentStream::new(&recipe, &plan, reach).unwrap();
        let preparer = stream.document_preparer().clone();
        let insert = |stream: &mut DocumentStream<u64>, text: &str, time| {
            let document = preparer.prepare_text(text, &mut AnalysisScratch::default());
            let id = stream.next_seq();
            let verdict = stream.insert_document(&document, id, text, time, Timestamp(0));
            verdict.map(|verdict| verdict.duplicate.map(|found| found.id))
        };
        let text = "the ferry leaves at seven";
        let other = |number: u32| format!("number {number} is {number} {number} times");
        assert_eq!(insert(&mut stream, text, None).unwrap(), None);
        insert(&mut stream, &other(1), None).unwrap();
        insert(&mut stream, &other(2), None).unwrap();
        assert_eq!(insert(&mut stream, text, None).unwrap(), Some(0));
        let later = insert(&mut stream, text, None).unwrap();
        assert_eq!(
            later,
            refresh.then_some(0),
            "the fourth document after the first"
        );
        for number in 3..200 {
            assert_eq!(insert(&mut stream, &other(number), None).unwrap(), None);
        }
        assert!(stream.len() < 10, "{}", stream.len());
        let refused = insert(&mut stream, text, Some(Timestamp(7))).unwrap_err();
        assert!(
            refused.to_string().contains("reaches back by documents"),
            "{refused}"
        );
        let kept: Vec<_> = stream.kept_documents().map(|kept| kept.id).collect();
        assert_eq!(stream.remove_documents(|id| Some(id) == kept.last()), 1);
        assert_eq!(insert(&mut stream, &other(199), None).unwrap(), None);
    }
}
