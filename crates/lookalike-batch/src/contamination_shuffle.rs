//! Items of benchmarks in documents that are spread over many machines.
//!
//! ```text
//! ItemCandidateScatterer   documents → candidates, and counts of tokens
//!                                          │               │ summed
//! FindingDecider           candidates ─────┴───────────────┴──> questions that stand alone
//!                                          │                                 │ summed, above the limit
//! FindingDecider           candidates ─────┴─────────────────────────────────┴──> findings, and cuts
//! ```
//!
//! Guarantee: the findings are those of one machine, whatever the number and the size of the portions, because both
//! decide with the same functions, and all that they need of other documents are sums.
//!
//! Cost: each task holds the items and their index ([`ContaminationShuffleSetup`]). A portion of documents sends 8 bytes
//! for each different word of the items, and about 150 bytes for each candidate. No text of a document travels.

use std::collections::HashSet;
use std::sync::Arc;

use lookalike::byte_reader::{ByteReader, put_string};
use lookalike::contamination::{ContaminationIndex, CorpusTerms, EvidenceWeights, ItemSearcher};
use lookalike_io::error::{Error, Result};
use lookalike_io::sink::LeftOutText;

pub use crate::run::commands::decontaminate::findings::{LoneQuestion, boilerplate_question_limit};

use crate::run::commands::decontaminate::candidate_spool::{CandidateDocument, visit_encoded};
use crate::run::commands::decontaminate::findings::{
    ContaminatedDocument, JudgedDocument, LoneQuestions,
};
use crate::run::commands::decontaminate::search::locate_candidates;
use crate::run::commands::decontaminate::writing::{ItemPlaces, left_out_text};
use crate::run::commands::decontaminate::{build_index, describe_boilerplate};
use crate::run::{
    BenchmarkInfo, BenchmarkItem, BenchmarkSet, BoilerplateQuestion, ContaminationCut,
};

/// The items that all steps of a run share, and their index.
#[derive(Debug)]
pub struct ContaminationShuffleSetup {
    benchmarks: BenchmarkSet,
    index: ContaminationIndex,
}

impl ContaminationShuffleSetup {
    /// Builds the index of benchmarks.
    ///
    /// # Errors
    /// If there are too many items.
    pub fn new(benchmarks: BenchmarkSet) -> Result<Self> {
        let index = build_index(&benchmarks)?;
        Ok(Self { benchmarks, index })
    }

    /// Returns the benchmarks. Those of bytes have only their names.
    pub fn benchmarks(&self) -> &BenchmarkSet {
        &self.benchmarks
    }

    /// Returns the number of items that cannot be found, because their question is too short.
    pub fn short_item_count(&self) -> u64 {
        let items = 0..self.benchmarks.items.len() as u32;
        items.filter(|&item| !self.index.is_findable(item)).count() as u64
    }

    /// Returns a question that is boilerplate as a summary names it; `None` if there is no such item.
    pub fn describe_boilerplate(&self, question: &LoneQuestion) -> Option<BoilerplateQuestion> {
        describe_boilerplate(&self.benchmarks, question)
    }

    /// Returns the names of the benchmarks and the items as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let BenchmarkSet {
            benchmarks, items, ..
        } = &self.benchmarks;
        let mut bytes = Vec::new();
        bytes.extend((benchmarks.len() as u32).to_le_bytes());
        for benchmark in benchmarks {
            put_string(&benchmark.name, &mut bytes);
        }
        bytes.extend((items.len() as u32).to_le_bytes());
        for item in items {
            bytes.extend(item.benchmark.to_le_bytes());
            bytes.extend((item.choices.len() as u32).to_le_bytes());
            let texts = [&item.id, &item.question, &item.answer, &item.passage];
            for text in texts.into_iter().chain(&item.choices) {
                put_string(text, &mut bytes);
            }
        }
        bytes
    }

    /// Restores items from bytes, and builds their index.
    ///
    /// # Errors
    /// If the bytes are not those of items.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let benchmarks = read_items(&mut ByteReader::new(bytes));
        Self::new(benchmarks.ok_or_else(|| damaged("the items of benchmarks"))?)
    }
}

fn damaged(what: &str) -> Error {
    Error::input_error(format!("{what} are damaged: run again"))
}

fn read_items(reader: &mut ByteReader<'_>) -> Option<BenchmarkSet> {
    let mut set = BenchmarkSet::default();
    for _ in 0..reader.read_u32()? {
        set.benchmarks.push(BenchmarkInfo {
            name: reader.read_string()?.to_owned(),
            sources: Vec::new(),
            presets: Vec::new(),
            items: 0,
            rejected: 0,
            rejected_rows: Vec::new(),
        });
    }
    for _ in 0..reader.read_u32()? {
        let benchmark = reader.read_u32()?;
        let choices = reader.read_u32()?;
        let mut text = || reader.read_string().map(str::to_owned);
        set.benchmarks.get(benchmark as usize)?;
        set.items.push(BenchmarkItem {
            benchmark,
            id: text()?,
            question: text()?,
            answer: text()?,
            passage: text()?,
            choices: (0..choices).map(|_| text()).collect::<Option<_>>()?,
        });
    }
    reader.is_at_end().then_some(set)
}

/// Searches a portion of the documents.
pub struct ItemCandidateScatterer {
    setup: Arc<ContaminationShuffleSetup>,
    terms: CorpusTerms,
    candidates: Vec<u8>,
    documents: u64,
    bytes: u64,
}

impl ItemCandidateScatterer {
    /// Creates a scatterer without documents.
    pub fn new(setup: Arc<ContaminationShuffleSetup>) -> Self {
        Self {
            terms: CorpusTerms::new(&setup.index),
            setup,
            candidates: Vec::new(),
            documents: 0,
            bytes: 0,
        }
    }

    /// Calls `visit` with a function that searches a document, given its id and its text. A batch of thousands of
    /// documents is best, because the searcher of a batch is made for it.
    ///
    /// # Errors
    /// Those of `visit`. The function fails if a text has 4 GiB or more.
    pub fn search_batch<T, E>(
        &mut self,
        visit: impl FnOnce(
            &mut dyn FnMut(&str, &str) -> lookalike::Result<()>,
        ) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let setup = Arc::clone(&self.setup);
        let mut searcher = ItemSearcher::new(&setup.index);
        let visited = visit(&mut |id, text| self.search_document(id, text, &mut searcher))?;
        self.terms.add_counted(&searcher.take_counts());
        Ok(visited)
    }

    fn search_document(
        &mut self,
        id: &str,
        text: &str,
        searcher: &mut ItemSearcher<'_>,
    ) -> lookalike::Result<()> {
        self.documents += 1;
        self.bytes += text.len() as u64;
        let candidates = locate_candidates(text, searcher)?;
        if !candidates.is_empty() {
            let document = CandidateDocument {
                index: 0,
                id: id.to_owned(),
                text_bytes: text.len() as u64,
                candidates,
            };
            document.append_bytes(&mut self.candidates);
        }
        Ok(())
    }

    /// Returns the bytes of the candidates that wait.
    pub fn pending_bytes(&self) -> usize {
        self.candidates.len()
    }

    /// Takes the candidates that wait.
    pub fn take_candidates(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.candidates)
    }

    /// Returns the counts of tokens, which are added to those of other portions number by number.
    pub fn term_counts(&self) -> Vec<u64> {
        self.terms.to_numbers()
    }

    /// Returns the number of documents and the bytes of their texts.
    pub fn document_counts(&self) -> [u64; 2] {
        [self.documents, self.bytes]
    }
}

/// A finding of a run on many machines, as the table of findings has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShuffleFinding {
    /// Id of the document.
    pub id: String,
    /// Number of the item; see [`ContaminationShuffleSetup::benchmarks`].
    pub item: u32,
    /// `question`, `answer` or `both`.
    pub found: &'static str,
    /// Share of the information of the item that was found.
    pub score: f64,
    /// Start and end in the document, in characters.
    pub place: [u64; 2],
    /// Start and end in the item, in characters.
    pub item_place: [u64; 2],
}

/// The rest of a document with findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentCut {
    /// Id of the document.
    pub id: String,
    /// The parts that are cut from its text; `None` if nothing of it stays.
    pub left_out: Option<LeftOutText>,
}

/// Decides which candidates are findings.
pub struct FindingDecider {
    setup: Arc<ContaminationShuffleSetup>,
    weights: EvidenceWeights,
    places: ItemPlaces,
}

impl FindingDecider {
    /// Creates a decider from the [sums](ItemCandidateScatterer::term_counts) of all portions.
    ///
    /// # Errors
    /// If the sums are of other items.
    pub fn new(setup: Arc<ContaminationShuffleSetup>, term_counts: &[u64]) -> Result<Self> {
        let terms = CorpusTerms::from_numbers(term_counts, &setup.index)?;
        Ok(Self {
            weights: EvidenceWeights::new(&setup.index, &terms),
            setup,
            places: ItemPlaces::default(),
        })
    }

    /// Returns the questions that stand alone in documents of a block, by their numbers. `documents` and `candidates` are
    /// added to those of other blocks, and `first_item` is the smallest of all.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn count_lone_questions(&self, block: &[u8]) -> Result<Vec<(u32, LoneQuestion)>> {
        let mut lone = LoneQuestions::default();
        self.visit_judged(block, &mut |document| {
            lone.count_document(&document, &self.setup.index);
            Ok(())
        })?;
        Ok(lone.into_counts())
    }

    /// Returns the findings of a block, given the questions that stand alone in more documents than
    /// [`boilerplate_question_limit`]. The findings of a document are together, the best one first.
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decide_findings(
        &mut self,
        block: &[u8],
        boilerplate: &HashSet<u32>,
    ) -> Result<Vec<ShuffleFinding>> {
        let mut places = std::mem::take(&mut self.places);
        let mut found = Vec::new();
        self.visit_contaminated(block, boilerplate, &mut |document| {
            for finding in &document.findings {
                let within = places.characters(finding, &self.setup.benchmarks)?;
                found.push(ShuffleFinding {
                    id: document.id.clone(),
                    item: finding.item,
                    found: finding.found.name(),
                    score: finding.score,
                    place: [finding.characters.start, finding.characters.end],
                    item_place: [within.start, within.end],
                });
            }
            Ok(())
        })?;
        self.places = places;
        Ok(found)
    }

    /// Returns what is cut from each document of a block with findings, given the same questions as
    /// [`decide_findings`](Self::decide_findings).
    ///
    /// # Errors
    /// If the block is damaged.
    pub fn decide_cuts(
        &self,
        block: &[u8],
        boilerplate: &HashSet<u32>,
        cut: ContaminationCut,
    ) -> Result<Vec<DocumentCut>> {
        let mut cuts = Vec::new();
        self.visit_contaminated(block, boilerplate, &mut |document| {
            cuts.push(DocumentCut {
                left_out: left_out_text(&document, cut),
                id: document.id,
            });
            Ok(())
        })?;
        Ok(cuts)
    }

    fn visit_contaminated(
        &self,
        block: &[u8],
        boilerplate: &HashSet<u32>,
        visit: &mut dyn FnMut(ContaminatedDocument) -> Result<()>,
    ) -> Result<()> {
        self.visit_judged(block, &mut |document| {
            let is_boilerplate = |question: u32| boilerplate.contains(&question);
            let document = document.into_findings(&self.setup.index, is_boilerplate);
            document.map_or(Ok(()), &mut *visit)
        })
    }

    fn visit_judged(
        &self,
        block: &[u8],
        visit: &mut dyn FnMut(JudgedDocument) -> Result<()>,
    ) -> Result<()> {
        let index = &self.setup.index;
        visit_encoded(
            block,
            index,
            &mut |document| match JudgedDocument::judge_document(document, index, &self.weights) {
                Some(document) => visit(document),
                None => Ok(()),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, question: &str, choices: &[&str]) -> BenchmarkItem {
        BenchmarkItem {
            benchmark: 0,
            id: id.to_owned(),
            question: question.to_owned(),
            choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
            answer: choices.first().map_or("", |choice| choice).to_owned(),
            passage: String::new(),
        }
    }

    fn made_setup() -> ContaminationShuffleSetup {
        let items = vec![
            item(
                "a",
                "In which year did the first ferry reach the northern lighthouse of Skarvoy?",
                &["1907", "1887"],
            ),
            item("b", "哪一座灯塔在一九零七年第一次看见渡船靠岸？", &[]),
        ];
        let benchmarks = BenchmarkSet {
            benchmarks: vec![BenchmarkInfo {
                name: "quiz/test".to_owned(),
                sources: Vec::new(),
                presets: Vec::new(),
                items: 0,
                rejected: 0,
                rejected_rows: Vec::new(),
            }],
            items,
            skipped_files: Vec::new(),
        };
        ContaminationShuffleSetup::new(benchmarks).unwrap()
    }

    /// Returns the findings of documents in portions of a size, and the boilerplate questions.
    fn find_in_portions(
        documents: &[(String, String)],
        size: usize,
    ) -> (Vec<ShuffleFinding>, usize) {
        let setup = made_setup();
        let setup = Arc::new(ContaminationShuffleSetup::from_bytes(&setup.to_bytes()).unwrap());
        let (mut blocks, mut sums) = (Vec::new(), Vec::new());
        for portion in documents.chunks(size) {
            let mut scatterer = ItemCandidateScatterer::new(Arc::clone(&setup));
            let searched: lookalike::Result<()> = scatterer
                .search_batch(|search| portion.iter().try_for_each(|(id, text)| search(id, text)));
            searched.unwrap();
            assert_eq!(scatterer.document_counts()[0], portion.len() as u64);
            let counts = scatterer.term_counts();
            sums.resize(counts.len(), 0);
            sums.iter_mut()
                .zip(&counts)
                .for_each(|(sum, count)| *sum += count);
            blocks.push(scatterer.take_candidates());
        }
        let mut decider = FindingDecider::new(setup, &sums).unwrap();
        let mut lone = std::collections::HashMap::new();
        for block in &blocks {
            for (question, counted) in decider.count_lone_questions(block).unwrap() {
                *lone.entry(question).or_insert(0) += counted.documents;
            }
        }
        let limit = boilerplate_question_limit(documents.len() as u64);
        let boilerplate: HashSet<u32> = lone
            .into_iter()
            .filter_map(|(question, documents)| (documents > limit).then_some(question))
            .collect();
        let findings = blocks
            .iter()
            .flat_map(|block| decider.decide_findings(block, &boilerplate).unwrap())
            .collect();
        (findings, boilerplate.len())
    }

    #[test]
    fn portions_change_nothing() {
        for copies in [20, 21] {
            let setup = made_setup();
            let questions: Vec<&str> = setup
                .benchmarks
                .items
                .iter()
                .map(|item| &*item.question)
                .collect();
            let text = |number: usize| match number {
                number if number < copies => format!("{number}. {} So it is.", questions[0]),
                30 => format!("{} 1907 or 1887?", questions[0].to_uppercase()),
                31 => format!("问：{}完。", questions[1]),
                _ => format!("Nothing of it stands in number {number}."),
            };
            let documents: Vec<_> = (0..40)
                .map(|number| (format!("d{number}"), text(number)))
                .collect();
            let (whole, boilerplate) = find_in_portions(&documents, 40);
            let is_boilerplate = copies > 20;
            assert_eq!(boilerplate, usize::from(is_boilerplate));
            assert_eq!(whole.len(), 2 + if is_boilerplate { 0 } else { copies });
            for size in [1, 7, 33] {
                assert_eq!(
                    find_in_portions(&documents, size),
                    (whole.clone(), boilerplate)
                );
            }
        }
    }

    #[test]
    fn a_document_that_is_an_item_has_no_cut_and_others_lose_the_item() {
        let setup = Arc::new(made_setup());
        let question = setup.benchmarks.items[0].question.clone();
        let text = format!("We asked around. {question} Nobody knew.");
        let mut scatterer = ItemCandidateScatterer::new(Arc::clone(&setup));
        let searched: lookalike::Result<()> = scatterer.search_batch(|search| {
            search("whole", &question)?;
            search("none", "The harbour is closed.")?;
            search("part", &text)
        });
        searched.unwrap();
        let decider = FindingDecider::new(setup, &scatterer.term_counts()).unwrap();
        let block = scatterer.take_candidates();
        let cuts = |cut| {
            let cuts = decider.decide_cuts(&block, &HashSet::new(), cut).unwrap();
            assert_eq!(
                cuts.iter().map(|cut| &*cut.id).collect::<Vec<_>>(),
                ["whole", "part"]
            );
            assert_eq!(cuts[0].left_out, None);
            let left_out = cuts[1].left_out.as_ref();
            left_out.map(|left_out| left_out.cut_text(&text).unwrap())
        };
        assert_eq!(cuts(ContaminationCut::Document), None);
        for cut in [ContaminationCut::Passage, ContaminationCut::Sentence] {
            let rest = cuts(cut).unwrap();
            assert!(
                rest.starts_with("We asked around.") && rest.ends_with("Nobody knew."),
                "{rest}"
            );
            assert!(!rest.contains("lighthouse"), "{rest}");
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = made_setup().to_bytes();
        for length in 0..bytes.len() {
            assert!(ContaminationShuffleSetup::from_bytes(&bytes[..length]).is_err());
        }
        let setup = Arc::new(made_setup());
        assert!(FindingDecider::new(Arc::clone(&setup), &[0; 3]).is_err());
        let mut scatterer = ItemCandidateScatterer::new(Arc::clone(&setup));
        let question = setup.benchmarks.items[0].question.clone();
        let searched: lookalike::Result<()> =
            scatterer.search_batch(|search| search("a", &question));
        searched.unwrap();
        let block = scatterer.take_candidates();
        let decider = FindingDecider::new(setup, &scatterer.term_counts()).unwrap();
        assert_eq!(decider.count_lone_questions(&block).unwrap().len(), 1);
        for length in 1..block.len() {
            assert!(decider.count_lone_questions(&block[..length]).is_err());
        }
    }
}
