//! Many machines compared with one: deduplication of all documents in their order, which has a model of
//! its own.

mod sample_audit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike_oracle::effort::choose_effort;

use super::gather::BucketLimits;
use super::resolve::BESIDE_A_TEXT;
use super::*;
use crate::candidates::KeyPrices;
use crate::dedup::{CopyPairs, MatchCorpus, TextReanalysis, find_pairs, find_verdicts};
use crate::plan::{CandidateRule, MatchMethod};
use crate::text::{AnalysisScratch, TextAnalysis};
use crate::types::Threshold;

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix_bits(self.0) % limit as u64) as usize
    }
}

#[derive(Clone, Debug)]
struct Held {
    id: String,
    value: f64,
    order_value: OrderValue<'static>,
    text: String,
    partition: u64,
    is_known: bool,
}

impl Held {
    fn new(id: String, value: f64, text: String) -> Self {
        let order_value = if value < 1.0 {
            OrderValue::Missing
        } else {
            OrderValue::Number(value)
        };
        Self {
            id,
            value,
            order_value,
            text,
            partition: 0,
            is_known: false,
        }
    }

    fn document(&self) -> ShuffleDocument<'_> {
        let values = std::slice::from_ref(&self.order_value);
        ShuffleDocument {
            partition: self.partition,
            is_known: self.is_known,
            ..ShuffleDocument::new(&self.id, values, &self.text)
        }
    }
}

/// The findings of a run: removed documents by id, and all pairs.
#[derive(Debug, Default, PartialEq)]
struct Found {
    removed: BTreeMap<String, (String, f64, &'static str)>,
    pairs: BTreeSet<(String, String)>,
}

/// The division of the work.
#[derive(Clone, Copy, Debug)]
struct Cut {
    portions: usize,
    parts: u32,
    tasks: usize,
    limits: BucketLimits,
}

const CUTS: [Cut; 3] = [
    Cut {
        portions: 1,
        parts: 1,
        tasks: 1,
        limits: BucketLimits {
            members: 4096,
            comparisons: 512,
            portion: 4096,
        },
    },
    Cut {
        portions: 3,
        parts: 7,
        tasks: 2,
        limits: BucketLimits {
            members: 9,
            comparisons: 2,
            portion: 3,
        },
    },
    Cut {
        portions: 5,
        parts: 2,
        tasks: 2,
        limits: BucketLimits {
            members: 4096,
            comparisons: 1,
            portion: 50,
        },
    },
];

/// Gathers shuffle blocks by part.
fn gather(
    setup: &Arc<ShuffleSetup>,
    shuffle_blocks: &[ShuffleBlock],
    cut: Cut,
) -> Vec<GatheredLinks> {
    let tasks = (0..cut.tasks).map(|task| {
        let mut gather = BlockGatherer::new(setup.clone()).with_limits(cut.limits);
        let of_task =
            |shuffle_block: &&ShuffleBlock| shuffle_block.part as usize % cut.tasks == task;
        for shuffle_block in shuffle_blocks.iter().filter(of_task) {
            assert_eq!(shuffle_block.kind, ShuffleBlockKind::Part);
            assert!(shuffle_block.part < cut.parts);
            gather.add_block(&shuffle_block.block).unwrap();
        }
        gather.finish_gathering(cut.parts)
    });
    tasks.collect()
}

fn keys_of_features(
    setup: &ShuffleSetup,
    features: &[ShuffleBlock],
    parts: u32,
) -> Vec<ShuffleBlock> {
    // Two tables, of which one is read from bytes: a table has a million counters, so one for every block would
    // take most of the time.
    let tables = features
        .chunks(features.len().div_ceil(2).max(1))
        .map(|some| {
            let order = FeatureOrder::default();
            for shuffle_block in some {
                order.count_features(setup, &shuffle_block.block).unwrap();
            }
            order
        });
    let order = tables
        .reduce(|all, one| {
            FeatureOrder::decode_order(&all.to_bytes())
                .unwrap()
                .merge_counts(&one)
        })
        .unwrap_or_default();
    let keys = |shuffle_block: &ShuffleBlock| {
        order
            .rarest_keys(setup, &shuffle_block.block, parts)
            .unwrap()
    };
    features.iter().flat_map(keys).collect()
}

/// Counts of dense buckets, to check that a test has any.
#[derive(Debug, Default)]
struct Hot {
    dense_nodes: usize,
    split: usize,
}

fn distributed(setup: &Arc<ShuffleSetup>, documents: &[Held], cut: Cut) -> (Found, Hot) {
    let (members, hot) = find_members(setup, documents, cut);
    (settle(setup, documents, &members, &|node| node), hot)
}

fn find_members(
    setup: &Arc<ShuffleSetup>,
    documents: &[Held],
    cut: Cut,
) -> (Arc<ComponentMembers>, Hot) {
    let portion = documents.len().div_ceil(cut.portions).max(1);
    let (mut parts, mut features) = (Vec::new(), Vec::new());
    for documents in documents.chunks(portion) {
        let mut scatter = DocumentScatterer::new(setup.clone());
        for (at, document) in documents.iter().enumerate() {
            scatter.add_document(&document.document());
            if at % 40 == 39 {
                let shuffle_blocks = scatter.take_blocks().into_iter();
                let (part, rest): (Vec<_>, Vec<_>) =
                    shuffle_blocks.partition(|block| block.kind == ShuffleBlockKind::Part);
                parts.extend(part);
                features.extend(rest);
            }
        }
        for shuffle_block in scatter.take_blocks() {
            match shuffle_block.kind {
                ShuffleBlockKind::Part => parts.push(shuffle_block),
                ShuffleBlockKind::Features => features.push(shuffle_block),
            }
        }
    }
    let sent =
        |shuffle_block: ShuffleBlock| divide_block(setup, &shuffle_block.block, cut.parts).unwrap();
    let mut parts: Vec<ShuffleBlock> = parts.into_iter().flat_map(sent).collect();
    parts.extend(keys_of_features(setup, &features, cut.parts));
    let mut gathered = gather(setup, &parts, cut);
    let dense_nodes: Vec<u64> = gathered
        .iter()
        .flat_map(|gathered| gathered.dense_nodes.iter().map(|node| node.0))
        .collect();
    let mut hot = Hot {
        dense_nodes: dense_nodes.len(),
        split: 0,
    };
    if !dense_nodes.is_empty() {
        let mut features = Vec::new();
        for documents in documents.chunks(portion) {
            let mut scatter =
                DocumentScatterer::for_dense_nodes(setup.clone(), dense_nodes.clone());
            for document in documents {
                scatter.add_document(&document.document());
            }
            features.extend(scatter.take_blocks());
        }
        let keys = keys_of_features(setup, &features, cut.parts);
        gathered.extend(gather(setup, &keys, cut));
    }
    let split: Vec<ShuffleBlock> = gathered
        .iter()
        .flat_map(|gathered| gathered.split.clone())
        .collect();
    hot.split = split.len();
    let squares = gather(setup, &split, cut);
    assert!(
        squares
            .iter()
            .all(|square| square.split.is_empty() && square.dense_nodes.is_empty())
    );
    gathered.extend(squares);
    let links: Vec<_> = gathered
        .iter()
        .flat_map(|gathered| gathered.links.clone())
        .collect();
    let repeats = gathered
        .into_iter()
        .flat_map(|gathered| gathered.repeats)
        .collect();
    let members = ComponentMembers::new(&links, repeats);
    let members = ComponentMembers::decode_members(&members.to_bytes()).unwrap();
    (Arc::new(members), hot)
}

/// Resolves components with the steps that `prepare` returns.
fn settle(
    setup: &Arc<ShuffleSetup>,
    documents: &[Held],
    members: &Arc<ComponentMembers>,
    prepare: &dyn Fn(ComponentResolver) -> ComponentResolver,
) -> Found {
    let mut found = Found::default();
    let mut collected = Vec::new();
    let mut collect = RoleFinder::new(setup.clone(), members.clone());
    for document in documents {
        let role = collect.document_role(&document.document());
        match role.unwrap() {
            DocumentRole::KeptHere => {}
            DocumentRole::Repeats(kept) => {
                let removed = (kept, 1.0, "exact");
                found.removed.insert(document.id.clone(), removed);
            }
            DocumentRole::Member {
                component,
                name,
                position,
                first,
                repeated,
            } => collected.push((component, !first, name, position, repeated, document)),
        }
    }
    collected.sort_by_key(|record| (record.0, record.1));
    let mut walks = [
        ComponentResolver::new(setup.clone()),
        ComponentResolver::for_pairs(setup.clone()),
    ]
    .map(prepare);
    for walk in &mut walks {
        let mut before = None;
        for (component, repeats, name, position, repeated, document) in &collected {
            // Some components are resolved alone, others together.
            if before.replace(component) != Some(component) && component % 3 == 0 {
                walk.resolve_rest().unwrap();
            }
            let incoming = ComponentDocument {
                component: *component,
                name: *name,
                position,
                partition: document.partition,
                text: (!repeats).then_some(document.text.as_str()),
                repeated: *repeated,
            };
            walk.add_document(incoming).unwrap();
        }
        walk.resolve_rest().unwrap();
    }
    let [mut verdicts, mut pairs] = walks;
    for removed in verdicts.take_removed() {
        let of = (removed.kept, removed.similarity.get(), removed.route.name());
        assert!(found.removed.insert(removed.id, of).is_none());
    }
    for pair in pairs.take_pairs() {
        assert!(found.pairs.insert((pair.a, pair.b)));
    }
    found
}

struct Plain<'a>(&'a ShuffleSetup, &'a [Held]);

impl TextReanalysis for Plain<'_> {
    fn reanalyze_text(
        &self,
        document: DocId,
        visit: &mut dyn FnMut(&TextAnalysis<'_>),
    ) -> Result<()> {
        let text = &self.1[document.index()].text;
        visit(&self.0.analyze_text(text, &mut AnalysisScratch::default()));
        Ok(())
    }
}

/// Returns the result of one machine over the documents in their order.
fn alone(setup: &ShuffleSetup, documents: &[Held]) -> Found {
    let mut documents = documents.to_vec();
    documents.sort_by(|a, b| {
        let by_id = a.id.as_bytes().cmp(b.id.as_bytes());
        let missing = |it: &Held| it.value < 1.0;
        let by_value = |a: &Held, b: &Held| {
            let by_missing = missing(a).cmp(&missing(b));
            let both_there = !missing(a) && !missing(b);
            by_missing.then(if both_there {
                a.value.total_cmp(&b.value)
            } else {
                std::cmp::Ordering::Equal
            })
        };
        if a.is_known || b.is_known {
            return b.is_known.cmp(&a.is_known).then(by_id);
        }
        match setup.first {
            DocumentOrder::SMALLEST_ID => by_id,
            DocumentOrder::LARGEST_ID => by_id.reverse(),
            DocumentOrder::LEAST_VALUE => by_value(a, b).then(by_id),
            _ if missing(a) || missing(b) => by_value(a, b).then(by_id),
            _ => by_value(b, a).then(by_id),
        }
    });
    let mut sketches = setup.sketcher.new_sketches(0);
    let mut scratch = AnalysisScratch::default();
    for document in &documents {
        let analysis = setup.analyze_text(&document.text, &mut scratch);
        setup.sketcher.add_document(&analysis, &mut sketches);
    }
    let partitions: Vec<u64> = documents
        .iter()
        .map(|document| document.partition)
        .collect();
    let texts = Plain(setup, &documents);
    let corpus = MatchCorpus {
        partitions: setup.bounds.within.then_some(&partitions),
        known_prefix: documents
            .iter()
            .filter(|document| document.is_known)
            .count(),
        ..MatchCorpus::new(&setup.plan, &sketches, &texts)
    };
    let id = |document: DocId| documents[document.index()].id.clone();
    let mut found = Found::default();
    for removal in find_verdicts(&corpus, &|_| {}).unwrap().removals {
        let kept = removal.kept;
        let of = (id(kept.with), kept.similarity.get(), kept.route.name());
        found.removed.insert(id(removal.document), of);
    }
    let visit = |pair: crate::dedup::MatchingPair| {
        found.pairs.insert((id(pair.a), id(pair.b)));
        Ok::<_, crate::Error>(())
    };
    find_pairs(&corpus, CopyPairs::None, visit, &|_| {}).unwrap();
    found
}

/// Returns documents of families that drift, with equal texts, texts of one template, texts that are
/// too short, and empty ones.
fn corpus(random: &mut Random, count: usize, length: usize) -> Vec<Held> {
    let word = |at: usize| format!("w{at}");
    let words = |random: &mut Random, count: usize| -> Vec<String> {
        (0..count).map(|_| word(random.below(4000))).collect()
    };
    let families: Vec<_> = (0..12).map(|_| words(random, length)).collect();
    let template = words(random, length);
    let mut texts: Vec<String> = Vec::new();
    for _ in 0..count {
        let text = match random.below(10) {
            0 => ["", " ", "!", "?!", "one", "One.", "two"][random.below(7)].to_owned(),
            1 if !texts.is_empty() => texts[random.below(texts.len())].to_uppercase(),
            2 => {
                let mut own = template.clone();
                let from = length * 3 / 5;
                own.truncate(from);
                own.extend(words(random, length - from));
                own.join(" ")
            }
            3 => words(random, length).join(" "),
            _ => {
                let mut edited = families[random.below(12)].clone();
                for _ in 0..random.below(1 + length / 8) {
                    let at = random.below(edited.len());
                    edited[at] = word(random.below(4000));
                }
                if random.below(2) == 0 {
                    edited.truncate(length - random.below(length / 5));
                }
                edited.join(" ") + if random.below(3) == 0 { ". Yes" } else { "" }
            }
        };
        texts.push(text);
    }
    let document = |(at, text): (usize, String)| {
        let id = format!("{:x}", mix_bits(at as u64) >> 40);
        Held::new(id, random.below(9) as f64, text)
    };
    texts.into_iter().enumerate().map(document).collect()
}

fn setup(settings: MatchSettings, first: DocumentOrder) -> Arc<ShuffleSetup> {
    ShuffleSetup::new(&Recipe::default(), settings, first, MatchBounds::default()).unwrap()
}

fn at(method: MatchMethod, measure: SimilarityMeasure, threshold: f64) -> MatchSettings {
    MatchSettings {
        method,
        measure,
        threshold: Threshold::new(threshold).unwrap(),
        ..MatchSettings::default()
    }
}

/// Returns settings of every method and measure that divides documents differently.
fn all_settings() -> Vec<MatchSettings> {
    let simhash = |distance, candidates| MatchSettings {
        distance,
        candidates,
        ..at(MatchMethod::SimHash, SimilarityMeasure::Jaccard, 0.6)
    };
    vec![
        at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.75),
        at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.6),
        at(MatchMethod::Auto, SimilarityMeasure::Containment, 0.8),
        at(MatchMethod::Auto, SimilarityMeasure::Cosine, 0.8),
        at(MatchMethod::Auto, SimilarityMeasure::Levenshtein, 0.8),
        at(MatchMethod::Auto, SimilarityMeasure::Sketch, 0.75),
        at(MatchMethod::MinHash, SimilarityMeasure::Jaccard, 0.75),
        at(MatchMethod::MinHash, SimilarityMeasure::Sketch, 0.7),
        at(MatchMethod::Join, SimilarityMeasure::Jaccard, 0.5),
        at(MatchMethod::Exact, SimilarityMeasure::Jaccard, 0.75),
        at(MatchMethod::Sentences, SimilarityMeasure::Jaccard, 0.6),
        at(MatchMethod::BottomK, SimilarityMeasure::Jaccard, 0.75),
        simhash(9, CandidateRule::Distance),
        simhash(9, CandidateRule::Blocks),
    ]
}

#[test]
fn shuffle_equals_one_machine() {
    let mut random = Random(7);
    let firsts = [
        DocumentOrder::SMALLEST_ID,
        DocumentOrder::LARGEST_ID,
        DocumentOrder::LEAST_VALUE,
        DocumentOrder::MOST_VALUE,
    ];
    let (mut removed, mut dense_nodes, mut split) = (0, 0, 0);
    for (at, settings) in all_settings().into_iter().enumerate() {
        let lengths = [12, 90, 300];
        for length in choose_effort(vec![lengths[at % 3]], lengths.to_vec()) {
            let documents = corpus(&mut random, 250, length);
            let setup = setup(settings, firsts[(at + length) % 4]);
            let expected = alone(&setup, &documents);
            removed += expected.removed.len();
            for cut in CUTS {
                let (found, hot) = distributed(&setup, &documents, cut);
                assert_eq!(found, expected, "{settings:?} {length} {cut:?}");
                dense_nodes += hot.dense_nodes;
                split += hot.split;
            }
        }
    }
    let wanted = choose_effort(300, 1000);
    assert!(removed > wanted && dense_nodes > wanted && split > 100);
}

#[test]
fn template_documents_are_not_compared_pairwise() {
    let mut random = Random(3);
    let length = 200;
    let words = |random: &mut Random, count: usize| -> Vec<String> {
        (0..count)
            .map(|_| format!("w{}", random.below(100_000)))
            .collect()
    };
    let template = words(&mut random, length);
    // With many words of their own, pairs share bands but do not match; with few, they match.
    for (own, crowds) in [(85, true), (2, false)] {
        let count = choose_effort(600, 1500);
        let documents: Vec<Held> = (0..count)
            .map(|at| {
                let mut text = template[own..].to_vec();
                text.extend(words(&mut random, own));
                Held::new(format!("{at:05}"), 1.0, text.join(" "))
            })
            .collect();
        let setup = setup(
            at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.75),
            DocumentOrder::SMALLEST_ID,
        );
        let cut = Cut {
            limits: BucketLimits {
                members: 4096,
                comparisons: 16,
                portion: 4096,
            },
            ..CUTS[1]
        };
        let (found, hot) = distributed(&setup, &documents, cut);
        let expected = alone(&setup, &documents);
        assert_eq!(found.removed, expected.removed);
        assert_eq!(hot.dense_nodes > count / 3, crowds, "{hot:?}");
        assert_eq!(expected.removed.len() > count * 2 / 3, !crowds);
    }
}

#[test]
fn repeats_get_the_verdicts_of_a_batch() {
    // b is removed for a. Its later repeats match c, which is kept, better than a.
    let setup = setup(
        at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.5),
        DocumentOrder::SMALLEST_ID,
    );
    let shared = "one two three four five six seven eight nine ten";
    let texts = [
        format!("{shared} a b c d e"),
        format!("{shared} eleven twelve thirteen fourteen"),
        "nine ten eleven twelve thirteen fourteen seven eight five six".to_owned(),
    ];
    let mut documents = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        documents.push(Held::new(format!("{at}"), 1.0, text.clone()));
    }
    // More repeats than may wait for the verdicts of a component.
    let repeats = 2 * super::resolve::MOST_WAITING_REPEATS;
    for at in 0..repeats {
        let id = if at % 3 == 0 {
            format!("1{at:06}")
        } else {
            format!("3{at:06}")
        };
        documents.push(Held::new(id, 1.0, texts[1].clone()));
    }
    let (found, _) = distributed(&setup, &documents, CUTS[1]);
    let expected = alone(&setup, &documents);
    assert_eq!(found.removed, expected.removed);
    assert!(expected.removed.len() >= repeats);
}

#[test]
fn component_beyond_the_limit_is_refused() {
    let setup = setup(MatchSettings::default(), DocumentOrder::SMALLEST_ID);
    let text = "a".repeat(400);
    let settle = |limit: u64, components: [u64; 3]| {
        let mut settle = ComponentResolver::new(setup.clone()).with_limit(limit);
        (0..).zip(components).try_for_each(|(at, component)| {
            settle.add_document(ComponentDocument {
                component,
                name: TextName(at),
                position: format!("id{at}").as_bytes(),
                partition: 0,
                text: Some(&text),
                repeated: false,
            })
        })
    };
    assert!(settle(3000, [1, 1, 1]).is_ok());
    assert!(settle(2000, [1, 1, 2]).is_ok());
    let error = settle(2999, [1, 1, 1]).unwrap_err().to_string();
    for named in ["'id2'", "limit of 2999 bytes", "first 3 texts take 3000"] {
        assert!(error.contains(named), "{error}");
    }
}

/// Texts outside of a resolver.
struct SpilledTexts(String);

impl TextSpill for SpilledTexts {
    fn append_text(&mut self, text: &str) -> Result<()> {
        self.0.push_str(text);
        Ok(())
    }

    fn read_text(&self, range: std::ops::Range<u64>) -> Result<String> {
        Ok(self.0[range.start as usize..range.end as usize].to_owned())
    }
}

/// Returns a resolver whose largest component may take `limit` bytes without its texts, and which counts in `spills`
/// how often texts went elsewhere.
fn with_counted_spill(
    resolver: ComponentResolver,
    limit: u64,
    spills: &Arc<AtomicUsize>,
) -> ComponentResolver {
    let spills = spills.clone();
    let create = move || {
        spills.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(SpilledTexts(String::new())) as Box<dyn TextSpill>)
    };
    resolver.with_limit(limit).with_text_spill(Box::new(create))
}

#[test]
fn spilled_components_equal_one_machine() {
    let mut random = Random(17);
    let spills = Arc::new(AtomicUsize::new(0));
    for settings in all_settings() {
        let documents = corpus(&mut random, 200, 40);
        let setup = setup(settings, DocumentOrder::LEAST_VALUE);
        let (members, _) = find_members(&setup, &documents, CUTS[1]);
        let mut sizes = BTreeMap::new();
        for (_, component) in members.components() {
            *sizes.entry(component).or_insert(0) += 1;
        }
        let limit = sizes.into_values().max().unwrap_or(0) * BESIDE_A_TEXT;
        let prepare = |task| with_counted_spill(task, limit, &spills);
        let found = settle(&setup, &documents, &members, &prepare);
        assert_eq!(found, alone(&setup, &documents), "{settings:?}");
    }
    // Some settings link no texts; the others have a largest component, for verdicts and for pairs.
    assert!(spills.load(Ordering::Relaxed) > 10);
}

#[test]
fn spilled_component_beyond_the_limit_is_refused() {
    let setup = setup(MatchSettings::default(), DocumentOrder::SMALLEST_ID);
    let spills = Arc::new(AtomicUsize::new(0));
    let add_texts = |limit: u64| {
        let resolver = ComponentResolver::new(setup.clone());
        let mut resolver = with_counted_spill(resolver, limit, &spills);
        (0..3).try_for_each(|at| {
            resolver.add_document(ComponentDocument {
                component: 1,
                name: TextName(at),
                position: format!("id{at}").as_bytes(),
                partition: 0,
                text: Some("a text"),
                repeated: false,
            })
        })
    };
    assert!(add_texts(1818).is_ok());
    assert_eq!(spills.load(Ordering::Relaxed), 0);
    assert!(add_texts(1800).is_ok());
    assert_eq!(spills.load(Ordering::Relaxed), 1);
    let error = add_texts(1799).unwrap_err().to_string();
    for named in [
        "'id2'",
        "limit of 1799 bytes",
        "first 3 texts take 1800 beside the texts",
    ] {
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn partitions_and_known_documents_equal_a_batch() {
    let mut random = Random(11);
    let recipe = Recipe::default();
    let settings = [
        at(MatchMethod::Auto, SimilarityMeasure::Jaccard, 0.6),
        at(MatchMethod::Auto, SimilarityMeasure::Containment, 0.8),
        at(MatchMethod::Auto, SimilarityMeasure::Levenshtein, 0.7),
        at(MatchMethod::Sentences, SimilarityMeasure::Jaccard, 0.6),
        MatchSettings {
            distance: 9,
            ..at(MatchMethod::SimHash, SimilarityMeasure::Jaccard, 0.6)
        },
    ];
    let (mut removed, mut repeats_of_known) = (0, 0);
    for (at, settings) in settings.into_iter().enumerate() {
        for (within, against) in [(true, false), (false, true), (true, true)] {
            let mut documents = corpus(&mut random, 250, [12, 90][at % 2]);
            for document in &mut documents {
                document.partition = random.below(3) as u64;
                document.is_known = against && random.below(3) == 0;
            }
            let bounds = MatchBounds {
                within,
                against,
                features: false,
            };
            let first = [
                DocumentOrder::SMALLEST_ID,
                DocumentOrder::LARGEST_ID,
                DocumentOrder::MOST_VALUE,
            ][at % 3];
            let setup = ShuffleSetup::new(&recipe, settings, first, bounds).unwrap();
            let expected = alone(&setup, &documents);
            removed += expected.removed.len();
            for cut in CUTS {
                let (found, _) = distributed(&setup, &documents, cut);
                assert_eq!(found.pairs, expected.pairs, "{settings:?} {cut:?}");
                assert_eq!(found.removed, expected.removed, "{settings:?} {cut:?}");
            }
            let of_known = |kept: &str| {
                documents
                    .iter()
                    .any(|document| document.is_known && document.id == kept)
            };
            let kept = expected.removed.values();
            repeats_of_known += kept.filter(|(kept, _, _)| of_known(kept)).count();
        }
    }
    assert!(removed > 300 && repeats_of_known > 100);
}

/// Texts of all lengths that contain one another get the verdicts of one machine, also within partitions and
/// against known documents.
#[test]
fn containments_equal_those_of_one_machine() {
    let mut random = Random(13);
    let (mut removed, mut far) = (0, 0);
    for (seed, threshold) in [0.5, 0.9, 1.0].into_iter().enumerate() {
        let settings = at(MatchMethod::Auto, SimilarityMeasure::Containment, threshold);
        for (within, against) in [(false, false), (true, false), (true, true)] {
            let count = choose_effort(200, 600);
            let texts = lookalike_oracle::generate::generate_contained(count, 40 + seed as u64);
            let documents: Vec<Held> = texts
                .into_iter()
                .map(|(id, text)| Held {
                    partition: random.below(2) as u64,
                    is_known: against && random.below(3) == 0,
                    ..Held::new(id, 1.0 + random.below(9) as f64, text)
                })
                .collect();
            let bounds = MatchBounds {
                within,
                against,
                features: false,
            };
            let recipe = Recipe::default();
            let setup =
                ShuffleSetup::new(&recipe, settings, DocumentOrder::MOST_VALUE, bounds).unwrap();
            let expected = alone(&setup, &documents);
            removed += expected.removed.len();
            let length = |id: &str| {
                let document = documents.iter().find(|document| document.id == id);
                document.map_or(0, |document| document.text.len())
            };
            let is_far = |(id, (kept, ..)): &(&String, &(String, f64, &str))| {
                let (one, other) = (length(id), length(kept));
                one.max(other) > 3 * one.min(other)
            };
            far += expected.removed.iter().filter(is_far).count();
            for cut in CUTS {
                let (found, _) = distributed(&setup, &documents, cut);
                assert_eq!(found.pairs, expected.pairs, "{settings:?} {cut:?}");
                assert_eq!(found.removed, expected.removed, "{settings:?} {cut:?}");
            }
        }
    }
    assert!(removed > 300 && far > 60, "{removed} {far}");
}

/// Links by containment leave most texts of a natural corpus in components of their own, because one task
/// resolves a component.
#[test]
fn containment_links_few_texts_that_do_not_match() {
    use lookalike_oracle::generate::{CorpusKind, generate_corpus};

    let setup = setup(
        at(MatchMethod::Auto, SimilarityMeasure::Containment, 0.9),
        DocumentOrder::SMALLEST_ID,
    );
    let texts = generate_corpus(CorpusKind::English, choose_effort(300, 1000), 5);
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    let mut scatter = DocumentScatterer::new(setup.clone());
    for (at, text) in texts.iter().enumerate() {
        let id = format!("{at:05}");
        scatter.add_document(&ShuffleDocument::new(&id, &[], text));
    }
    let (_, features): (Vec<_>, Vec<_>) = scatter
        .take_blocks()
        .into_iter()
        .partition(|block| block.kind == ShuffleBlockKind::Part);
    let keys = keys_of_features(&setup, &features, 1);
    let links = gather(&setup, &keys, CUTS[0]).remove(0).links;
    let members = ComponentMembers::new(&links, Vec::new());
    let documents: Vec<_> = texts
        .iter()
        .map(|text| lookalike_oracle::OracleDocument::new(text, 2))
        .collect();
    let matching = lookalike_oracle::all_containments(&documents, 0.9);
    let matching: BTreeSet<usize> = matching.iter().flat_map(|&(a, b, _)| [a, b]).collect();
    let linked = members.components().len();
    let share = |count: usize| 100 * count / texts.len();
    assert!(share(matching.len()) > 10, "{}", matching.len());
    assert!(
        share(linked) < share(matching.len()) + 20,
        "{linked} {}",
        matching.len()
    );
}

#[test]
fn repeated_ids_are_named() {
    let setup = setup(MatchSettings::default(), DocumentOrder::SMALLEST_ID);
    let mut scatter = DocumentScatterer::new(setup.clone());
    for id in ["a", "b", "a", "c", "b", "a"] {
        scatter.add_document(&ShuffleDocument::new(id, &[], "some text"));
    }
    let shuffle_blocks = scatter.take_blocks();
    let mut gather = BlockGatherer::new(setup);
    let of_parts = shuffle_blocks
        .iter()
        .filter(|block| block.kind == ShuffleBlockKind::Part);
    of_parts.for_each(|part| gather.add_block(&part.block).unwrap());
    let found = gather.finish_gathering(1);
    assert_eq!(found.repeated_ids, ["a", "b"]);
    assert_eq!(found.repeats.len(), 1);
    assert_eq!(found.repeats[0].first, b"a");
}

#[test]
fn damaged_blocks_are_refused_without_panic() {
    let setup = setup(MatchSettings::default(), DocumentOrder::SMALLEST_ID);
    let mut random = Random(1);
    let mut scatter = DocumentScatterer::new(setup.clone());
    for document in corpus(&mut random, 60, 100) {
        scatter.add_document(&document.document());
    }
    for shuffle_block in scatter.take_blocks() {
        for length in (0..shuffle_block.block.len()).step_by(7) {
            let mut gather = BlockGatherer::new(setup.clone());
            assert!(gather.add_block(&shuffle_block.block[..length]).is_err());
        }
        for _ in 0..300 {
            let mut block = shuffle_block.block.clone();
            let at = random.below(block.len());
            block[at] ^= 1 << random.below(8);
            let mut gather = BlockGatherer::new(setup.clone());
            if gather.add_block(&block).is_ok() {
                gather.finish_gathering(2);
            }
            drop(divide_block(&setup, &block, 3));
        }
    }
    assert!(ComponentMembers::decode_members(&[1; 17]).is_err());
    assert!(FeatureOrder::decode_order(&[0; 12]).is_err());
    assert!(divide_block(&setup, &[3, 0, 0, 0, 0], 0).is_err());
    assert!(divide_block(&setup, &[3, 0, 0, 0, 0], 1).is_ok());
}

/// Blocks of features in memory.
struct HeldBlocks<'a>(Vec<&'a [u8]>);

impl FeatureBlocks for HeldBlocks<'_> {
    fn block_count(&self) -> usize {
        self.0.len()
    }

    fn read_block(&self, at: usize) -> crate::Result<Vec<u8>> {
        Ok(self.0[at].to_vec())
    }
}

/// Divides blocks, of which those of features are counted.
fn divided(mut keys: LocalKeys, blocks: &[ShuffleBlock], parts: u32) -> Vec<ShuffleBlock> {
    let features = blocks.iter();
    let features = features.filter(|block| block.kind == ShuffleBlockKind::Features);
    let features = HeldBlocks(features.map(|block| &block.block[..]).collect());
    keys.choose_keys(&features).unwrap();
    let divide = |block: &ShuffleBlock| keys.divide_keys(&block.block, parts).unwrap();
    blocks.iter().flat_map(divide).collect()
}

/// Returns the component of every document, and the number of dense buckets.
fn local_components(
    setup: &Arc<ShuffleSetup>,
    documents: &[Held],
    cut: Cut,
    filter_bytes: usize,
) -> (Vec<u32>, Hot) {
    let new_keys = || {
        // Combinations of features whatever they cost, so that few documents have some.
        let prices = KeyPrices {
            crowded: &[3],
            key: None,
        };
        LocalKeys::new(setup.clone(), 250, 2500, filter_bytes).with_prices(prices)
    };
    let mut sketches = setup.sketcher.new_sketches(1 << 20);
    let mut texts = Vec::new();
    let mut scatter = |numbers: &[usize], keys: &LocalKeys, is_dense: bool| {
        let mut scatterer = LocalScatterer::new(setup.clone());
        let mut scratch = AnalysisScratch::default();
        for &number in numbers {
            let analysis = setup.analyze_text(&documents[number].text, &mut scratch);
            setup.sketcher.add_document(&analysis, &mut sketches);
            let at = DocId(sketches.len() as u32 - 1);
            let (partition, number) = (documents[number].partition, number as u32);
            if is_dense {
                scatterer.add_dense_document(number, partition, &sketches, at, &analysis)
            } else {
                scatterer.add_document(number, partition, &sketches, at, &analysis)
            }
        }
        let blocks = scatterer.take_blocks(keys);
        texts.push(scatterer.take_texts());
        blocks
    };
    let all: Vec<usize> = (0..documents.len()).collect();
    let portions = all.chunks(documents.len().div_ceil(cut.portions).max(1));
    let keys = new_keys();
    let blocks: Vec<_> = portions
        .flat_map(|portion| scatter(portion, &keys, false))
        .collect();
    let mut gathered = gather(setup, &divided(keys, &blocks, cut.parts), cut);
    let dense = gathered.iter().flat_map(|gathered| &gathered.dense_nodes);
    let dense: BTreeSet<usize> = dense.map(|node| node.0 as usize).collect();
    let dense: Vec<usize> = dense.into_iter().collect();
    if !dense.is_empty() {
        let keys = new_keys();
        let blocks = scatter(&dense, &keys, true);
        gathered.extend(gather(setup, &divided(keys, &blocks, cut.parts), cut));
    }
    let split: Vec<ShuffleBlock> = gathered
        .iter()
        .flat_map(|gathered| gathered.split.clone())
        .collect();
    gathered.extend(gather(setup, &split, cut));
    let mut links = LocalLinks::with_documents(documents.len());
    for part in 0..cut.parts {
        let mut equal = EqualTexts::default();
        for texts in &texts {
            equal
                .append_names(&texts.divide_names(cut.parts)[part as usize])
                .unwrap();
        }
        equal.sort_names(|number| number);
        equal.visit_repeats(|repeat, first| {
            assert!(first < repeat);
            links.add_link(repeat, first);
        });
    }
    for found in &gathered {
        links.add_links(&found.links).unwrap();
    }
    let hot = Hot {
        dense_nodes: dense.len(),
        split: split.len(),
    };
    (links.into_components(), hot)
}

#[test]
fn local_components_hold_all_matches() {
    let mut random = Random(11);
    let (mut pairs, mut components, mut all) = (0, 0, 0);
    let (mut dense_nodes, mut split) = (0, 0);
    for (at, settings) in all_settings().into_iter().enumerate() {
        let lengths = [12, 90, 300];
        for length in choose_effort(vec![lengths[at % 2]], lengths[at % 2..][..2].to_vec()) {
            let documents = corpus(&mut random, 250, length);
            let number_of: BTreeMap<&str, usize> = (documents.iter().enumerate())
                .map(|(number, document)| (document.id.as_str(), number))
                .collect();
            let setup = setup(settings, DocumentOrder::SMALLEST_ID);
            let found = alone(&setup, &documents);
            let removed = found.removed.iter();
            let removed = removed.map(|(id, (kept, ..))| (id.clone(), kept.clone()));
            let expected: Vec<_> = found.pairs.iter().cloned().chain(removed).collect();
            for (cut, filter_bytes) in CUTS.into_iter().zip([1 << 20, 1 << 20, 0]) {
                let (of, hot) = local_components(&setup, &documents, cut, filter_bytes);
                for (a, b) in &expected {
                    let (a, b) = (number_of[a.as_str()], number_of[b.as_str()]);
                    assert_eq!(of[a], of[b], "{settings:?} {length} {cut:?} {a} {b}");
                }
                pairs += expected.len();
                let first = of.iter().enumerate();
                let firsts = first.filter(|&(at, &component)| at == component as usize);
                components += firsts.count();
                all += documents.len();
                dense_nodes += hot.dense_nodes;
                split += hot.split;
            }
        }
    }
    assert!(
        pairs > 3000 && 3 * components > all,
        "{pairs} {components} {all}"
    );
    assert!(dense_nodes > 300 && split > 30, "{dense_nodes} {split}");
}

#[test]
fn links_to_no_document_are_refused() {
    let mut links = LocalLinks::with_documents(3);
    assert!(links.add_links(&[(TextNode(0), TextNode(2))]).is_ok());
    let error = links.add_links(&[(TextNode(0), TextNode(3))]).unwrap_err();
    assert!(error.to_string().contains("document 3 of 3"), "{error}");
    assert_eq!(links.into_components(), [0, 1, 0]);
}
