//! Compares many machines with the index of a run on one machine, and with whole comparisons of two texts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lookalike::passages::{PassageIndex, SelectedGram, Winnower};
use lookalike::shuffle::ShuffleDocument;
use lookalike::text::SpannedTokens;
use lookalike_comparison::shared_passages::SharedPassages;

use crate::passage_shuffle::*;

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 += 1;
        (lookalike::value_hash(&self.0.to_le_bytes()) % limit as u64) as usize
    }

    fn choose<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

#[derive(Clone, Debug)]
struct TestDocument {
    id: String,
    text: String,
    partition: u64,
    is_known: bool,
}

impl TestDocument {
    fn as_document(&self) -> ShuffleDocument<'_> {
        ShuffleDocument {
            partition: self.partition,
            is_known: self.is_known,
            ..ShuffleDocument::new(&self.id, &[], &self.text)
        }
    }
}

const BOILERPLATE_NOTICE: &str = "all rights are reserved and no part may be copied";

/// Makes documents of two scripts with passages of others, a notice that many have, and ids in no order.
fn make_documents(count: usize, random: &mut Random) -> Vec<TestDocument> {
    let han: Vec<char> = "渡船七点离开岛上没有人会错过它清晨老长已经把缆绳解了"
        .chars()
        .collect();
    let mut documents: Vec<TestDocument> = Vec::new();
    for number in 0..count {
        let length = 5 + random.below(60);
        let mut text = match number % 3 {
            2 => (0..2 * length).map(|_| *random.choose(&han)).collect(),
            _ => {
                let words = (0..length).map(|_| format!("w{}", random.below(400)));
                words.collect::<Vec<_>>().join(" ")
            }
        };
        if !documents.is_empty() && random.below(3) > 0 {
            let characters: Vec<char> = random.choose(&documents).text.chars().collect();
            let start = random.below(characters.len().max(2) / 2);
            text.push('\n');
            text.extend(characters[start..].iter().take(20 + random.below(150)));
        }
        if random.below(4) == 0 {
            text.push_str(BOILERPLATE_NOTICE);
        }
        if random.below(9) == 0 {
            text.truncate(0);
        }
        documents.push(TestDocument {
            id: format!("{:x}", number * 7919 % 1009),
            text,
            partition: random.below(2) as u64,
            is_known: random.below(3) == 0,
        });
    }
    documents
}

fn make_setup(bounds: MatchBounds, offsets: OffsetUnit) -> Arc<PassageShuffleSetup> {
    let passages = PassageSettings::new(6).unwrap();
    let recipe = Recipe::default();
    Arc::new(PassageShuffleSetup::new(&recipe, passages, bounds, offsets))
}

/// The findings of a run.
#[derive(Debug, PartialEq)]
struct Findings {
    passages: Vec<FoundPassage>,
    boilerplate_grams: u64,
    with_boilerplate: u64,
}

/// Sorts passages by document, source and place.
fn sort_passages(passages: &mut [FoundPassage]) {
    passages.sort_by(|a, b| {
        let key = |passage: &FoundPassage| {
            let (place, source_place) = (&passage.place, &passage.source_place);
            let ids = (passage.document.clone(), passage.source.clone());
            (
                ids,
                place.start,
                place.end,
                source_place.start,
                source_place.end,
            )
        };
        key(a).cmp(&key(b))
    });
}

/// Blocks by the part that receives them.
type BlocksByPart = BTreeMap<u32, Vec<Vec<u8>>>;

fn send_blocks(blocks: Vec<PartBlock>, into: &mut BlocksByPart) {
    for PartBlock { part, block } in blocks {
        into.entry(part).or_default().push(block);
    }
}

/// The steps with portions of random sizes.
fn run_many(
    setup: &Arc<PassageShuffleSetup>,
    documents: &[TestDocument],
    max_documents: Option<u32>,
    parts: u32,
    random: &mut Random,
) -> Findings {
    let (mut grams, mut of_documents) = (BlocksByPart::new(), BlocksByPart::new());
    for portion in documents.chunks(1 + random.below(40)) {
        let mut scatterer = GramScatterer::new(setup.clone());
        for document in portion {
            scatterer.add_document(&document.as_document()).unwrap();
        }
        let blocks = scatterer.take_blocks(parts);
        send_blocks(blocks.grams, &mut grams);
        send_blocks(blocks.ids, &mut of_documents);
    }
    let mut boilerplate_grams = 0;
    for blocks in grams.values() {
        let mut gatherer = CandidateGatherer::new(setup.clone(), max_documents);
        blocks
            .iter()
            .for_each(|block| gatherer.add_block(block).unwrap());
        let mut candidates = gatherer.find_candidates(parts);
        for blocks in candidates.by_ref() {
            send_blocks(blocks, &mut of_documents);
        }
        boilerplate_grams += candidates.boilerplate_grams();
    }
    let (mut members, mut with_boilerplate) = (Vec::new(), 0);
    for blocks in of_documents.values() {
        let mut gatherer = MemberGatherer::new();
        blocks
            .iter()
            .for_each(|block| gatherer.add_block(block).unwrap());
        let found = gatherer.finish_gathering().unwrap();
        assert!(found.repeated_ids.is_empty() && found.repeated_known_ids.is_empty());
        with_boilerplate += found.with_boilerplate;
        members.extend(found.documents);
    }
    Findings {
        passages: compare_members(setup, documents, &members, random),
        boilerplate_grams,
        with_boilerplate,
    }
}

/// The last step, with batches of random sizes.
fn compare_members(
    setup: &Arc<PassageShuffleSetup>,
    documents: &[TestDocument],
    members: &[MemberDocument],
    random: &mut Random,
) -> Vec<FoundPassage> {
    let mut texts = Vec::new();
    for member in members {
        let is_member = |document: &&TestDocument| {
            document.id == member.id
                && (document.is_known && setup.bounds.against) == member.key.is_known()
        };
        let document = documents.iter().find(is_member).unwrap();
        texts.extend(member.groups.iter().map(|&group| ComparedDocumentText {
            group,
            key: member.key,
            id: &document.id,
            text: &document.text,
        }));
    }
    texts.sort_by_key(|text| (text.group, text.group != text.key, text.key));
    let mut comparer = GroupComparer::new(setup.clone());
    let mut passages = Vec::new();
    for batch in texts.chunks(1 + random.below(5)) {
        comparer.compare_texts(batch).unwrap();
        passages.extend(comparer.take_passages());
    }
    sort_passages(&mut passages);
    passages
}

/// One index of all sources, and a whole comparison of each candidate pair.
fn run_alone(
    setup: &PassageShuffleSetup,
    documents: &[TestDocument],
    max_documents: Option<u32>,
) -> Findings {
    let bounds = setup.bounds;
    let is_known = |document: &TestDocument| bounds.against && document.is_known;
    let (mut winnower, mut tokens) = (Winnower::new(setup.passages), SpannedTokens::default());
    let mut select = |document: &TestDocument| {
        let mut selected: Vec<SelectedGram> = Vec::new();
        setup
            .tokenizer
            .tokenize_text(&document.text, &mut tokens)
            .unwrap();
        winnower.select_grams(tokens.values(), &mut selected);
        selected
    };
    let selected: Vec<_> = documents.iter().map(&mut select).collect();
    let mut pairs = Vec::new();
    for (number, grams) in selected.iter().enumerate() {
        if !bounds.against || is_known(&documents[number]) {
            pairs.extend(grams.iter().map(|gram| (gram.hash, number as u32)));
        }
    }
    let index = PassageIndex::from_pairs(pairs, max_documents);
    let mut found = Findings {
        passages: Vec::new(),
        boilerplate_grams: index.boilerplate_grams().len() as u64,
        with_boilerplate: 0,
    };
    for (document, grams) in documents.iter().zip(&selected) {
        if is_known(document) {
            continue;
        }
        let mut candidates = Vec::new();
        found.with_boilerplate += u64::from(index.find_candidates(grams, &mut candidates) > 0);
        let sources = candidates
            .iter()
            .map(|candidate| &documents[candidate.document as usize]);
        let sources = sources.filter(|source| is_known(source) || source.id < document.id);
        for source in
            sources.filter(|source| !bounds.within || source.partition == document.partition)
        {
            let texts = [&*source.text, &*document.text];
            let shared = SharedPassages::find_all(&Recipe::default(), texts, setup.passages);
            let rows = shared.unwrap().passages;
            let ids = [document.id.clone(), source.id.clone()];
            let rows = rows.into_iter().map(|row| {
                let [document, source] = ids.clone();
                let place = |spot: lookalike_comparison::shared_passages::PassageSpot| match setup
                    .offsets
                {
                    OffsetUnit::Characters => spot.characters,
                    OffsetUnit::Bytes => spot.bytes,
                };
                FoundPassage {
                    document,
                    source,
                    place: place(row.b),
                    source_place: place(row.a),
                    length: row.length,
                    similarity: row.similarity,
                    kind: row.kind.kind_name(),
                }
            });
            found.passages.extend(rows);
        }
    }
    sort_passages(&mut found.passages);
    found
}

#[test]
fn many_machines_find_what_one_finds() {
    let mut random = Random(0);
    let mut kinds = BTreeSet::new();
    for (at, max_documents) in [None, Some(2), Some(3), Some(8), Some(5)]
        .iter()
        .enumerate()
    {
        let documents = make_documents(150, &mut random);
        for (within, against) in [(false, false), (true, false), (false, true), (true, true)] {
            let bounds = MatchBounds {
                within,
                against,
                features: false,
            };
            let setup = make_setup(bounds, OffsetUnit::ALL[at % 2]);
            let alone = run_alone(&setup, &documents, *max_documents);
            assert!(alone.passages.len() > 3, "{bounds:?} {max_documents:?}");
            assert_eq!(alone.boilerplate_grams > 0, max_documents.is_some());
            kinds.extend(alone.passages.iter().map(|passage| passage.kind));
            for parts in [1, 3, 64] {
                let many = run_many(&setup, &documents, *max_documents, parts, &mut random);
                assert_eq!(many, alone, "{bounds:?} {max_documents:?} {parts}");
            }
        }
    }
    assert!(
        kinds.contains("verbatim") && kinds.contains("edited"),
        "{kinds:?}"
    );
}

fn named(id: &str, text: &str, is_known: bool) -> TestDocument {
    TestDocument {
        id: id.to_owned(),
        text: text.to_owned(),
        partition: 0,
        is_known,
    }
}

#[test]
fn limit_of_boilerplate_is_inclusive_and_counts_sources() {
    for against in [false, true] {
        let bounds = MatchBounds {
            against,
            ..MatchBounds::default()
        };
        let setup = make_setup(bounds, OffsetUnit::Characters);
        for (count, is_found) in [(2, true), (3, true), (4, false)] {
            let known = |at: usize| against && at < count;
            let total = if against { 2 * count } else { count };
            let documents: Vec<_> = (0..total)
                .map(|at| named(&format!("{at}"), BOILERPLATE_NOTICE, known(at)))
                .collect();
            let found = run_many(&setup, &documents, Some(3), 5, &mut Random(0));
            assert_eq!(found, run_alone(&setup, &documents, Some(3)));
            assert_eq!(!found.passages.is_empty(), is_found, "{against} {count}");
            assert_eq!(
                found.with_boilerplate,
                if is_found { 0 } else { count as u64 }
            );
        }
    }
}

/// A gram of so many documents that its pairs are returned in several blocks.
#[test]
fn pairs_of_a_frequent_gram_come_in_portions() {
    let setup = make_setup(MatchBounds::default(), OffsetUnit::Characters);
    let documents = 2_000_u64;
    let posting = |at: u64| blocks::GramPosting {
        hash: 7,
        document: DocumentKey(at << 40),
        partition: 0,
    };
    let postings: Vec<_> = (0..documents).map(posting).collect();
    let mut gatherer = CandidateGatherer::new(setup, None);
    gatherer
        .add_block(&blocks::encode_postings(&postings, false))
        .unwrap();
    let mut members = BTreeSet::new();
    let (mut portions, mut largest) = (0, 0);
    for portion in gatherer.find_candidates(4) {
        portions += 1;
        let bytes = portion.iter().map(|part| part.block.len()).sum::<usize>();
        largest = largest.max(bytes / 16);
        for PartBlock { part, block } in portion {
            let blocks::BlockContent::Members(some) = blocks::decode_block(&block).unwrap() else {
                panic!("a block without members");
            };
            assert!(
                some.iter()
                    .all(|member| part_of_hash(member.document.0, 4) == part)
            );
            members.extend(some);
        }
    }
    // Every document but the last has a group, in which it is a member too.
    let pairs = documents * (documents - 1) / 2;
    assert_eq!(members.len() as u64, pairs + documents - 1);
    assert!(
        portions > 1 && largest < (1 << 20) + 2_000,
        "{portions} {largest}"
    );
}

#[test]
fn repeated_ids_are_found_and_known_ones_may_be_those_of_the_data() {
    let bounds = MatchBounds {
        against: true,
        ..MatchBounds::default()
    };
    let setup = make_setup(bounds, OffsetUnit::Characters);
    let mut scatterer = GramScatterer::new(setup);
    for (id, is_known) in [
        ("a", false),
        ("a", true),
        ("b", false),
        ("b", false),
        ("c", true),
    ] {
        scatterer
            .add_document(&named(id, BOILERPLATE_NOTICE, is_known).as_document())
            .unwrap();
    }
    scatterer
        .add_document(&named("c", "", true).as_document())
        .unwrap();
    let counts = ScatterCounts {
        searched: 3,
        known: 3,
        tokens: 3 * BOILERPLATE_NOTICE.split(' ').count() as u64,
    };
    assert_eq!(scatterer.counts(), counts);
    let mut gatherer = MemberGatherer::new();
    for PartBlock { block, .. } in scatterer.take_blocks(1).ids {
        gatherer.add_block(&block).unwrap();
    }
    assert_eq!(scatterer.pending_bytes(), 0);
    let found = gatherer.finish_gathering().unwrap();
    assert_eq!(found.repeated_ids, ["b"]);
    assert_eq!(found.repeated_known_ids, ["c"]);
}

#[test]
fn ids_with_one_hash_are_refused() {
    let mut gatherer = MemberGatherer::new();
    let ids = ["x", "y"].map(|id| (DocumentKey(8), id.to_owned()));
    gatherer.add_block(&blocks::encode_ids(&ids)).unwrap();
    let error = gatherer.finish_gathering().unwrap_err().to_string();
    assert!(
        error.starts_with("the ids 'x' and 'y' have the same hash"),
        "{error}"
    );
}

#[test]
fn absent_text_of_a_group_is_refused() {
    let setup = make_setup(MatchBounds::default(), OffsetUnit::Characters);
    let text = ComparedDocumentText {
        group: DocumentKey(2),
        key: DocumentKey(4),
        id: "b",
        text: BOILERPLATE_NOTICE,
    };
    let error = GroupComparer::new(setup)
        .compare_texts(&[text])
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("'b' is compared with is missing"),
        "{error}"
    );
}
