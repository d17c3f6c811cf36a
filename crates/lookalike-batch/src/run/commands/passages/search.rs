//! The second reading: every document beside the sources that its grams name.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookalike::passages::{
    Passage, PassageBudget, PassageCandidate, PassageFinder, PassageKind, PassageSettings,
    PassageSource, PlaceIndex, SelectedGram, Winnower, count_covered, is_character,
    to_visible_characters,
};
use lookalike::text::SpannedTokens;
use lookalike::{DocId, ErrorKind};
use lookalike_comparison::passage_table::PassageTableRow;
use lookalike_comparison::shared_passages::{
    description_steps, file_bytes, file_characters, file_line, preparation_steps, round_share,
};
use lookalike_documents::ExtractedText;
use lookalike_io::error::Result;
use lookalike_io::source::ParseScratch;

use crate::run::commands::passages::cache::DocumentCache;
use crate::run::commands::passages::corpus::{PassageCorpus, RereadText};
use crate::run::commands::passages::settings::{
    CopiedPair, DescribedPassage, OffsetUnit, PassageRunSettings, SHOWN_PASSAGE_CHARACTERS,
};

/// A row of the table of passages.
#[derive(Debug, Clone)]
pub(super) struct PassageRow {
    pub(super) document: DocId,
    pub(super) source: DocId,
    pub(super) ids: [Arc<str>; 2],
    /// Positions in the document, in the unit of the run.
    pub(super) place: Range<usize>,
    pub(super) source_place: Range<usize>,
    /// Bytes of both texts as they are compared.
    pub(super) bytes: [Range<usize>; 2],
    pub(super) length: usize,
    /// The unit of the length.
    pub(super) unit: &'static str,
    pub(super) similarity: f64,
    pub(super) kind: &'static str,
    /// Words and characters of the document that lie in passages of this source.
    pub(super) copied: usize,
}

impl PassageRow {
    /// Returns the bytes of memory. The row counts twice, because a list of rows that grows has up to twice their
    /// bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let ids = self.ids.iter().map(|id| id.len()).sum::<usize>();
        2 * size_of::<Self>() + ids
    }

    /// Returns the fields that the table has.
    pub(super) fn to_table_row(&self) -> PassageTableRow {
        let [document, source] = self.ids.each_ref().map(|id| id.to_string());
        PassageTableRow {
            document,
            source,
            start: self.place.start,
            end: self.place.end,
            source_start: self.source_place.start,
            source_end: self.source_place.end,
            length: self.length,
            similarity: self.similarity,
            kind: self.kind,
        }
    }
}

/// The passages of one document.
#[derive(Debug)]
pub(super) struct DocumentFindings {
    pub(super) rows: Vec<PassageRow>,
    pub(super) pairs: Vec<CopiedPair>,
    /// Passages that may be among the longest of the run, each with its row.
    pub(super) described: Vec<(usize, DescribedPassage)>,
    pub(super) tokens: usize,
    /// Tokens that lie in passages of any source.
    pub(super) copied: usize,
    /// Tokens among these that lie in reworded passages alone.
    pub(super) reworded: usize,
    /// Tokens that stand in a base text.
    pub(super) given: usize,
    pub(super) has_boilerplate: bool,
    /// `false` if the limits of the run ended the search before all sources were compared.
    pub(super) is_complete: bool,
}

/// A source that is kept for the next documents: its text, its tokens, their places and its index.
struct CachedSource {
    reread: Arc<RereadText>,
    tokens: SpannedTokens,
    places: PlaceIndex,
    prepared: PassageSource,
}

impl CachedSource {
    /// Returns the bytes of memory.
    fn memory_bytes(&self) -> usize {
        16 * self.tokens.len() + self.prepared.memory_bytes() + 200
    }
}

/// Searches documents on one thread.
pub(super) struct DocumentSearcher<'a> {
    corpus: &'a PassageCorpus<'a>,
    offsets: OffsetUnit,
    /// Passages shorter than this are not described.
    min_described: &'a AtomicUsize,
    winnower: Winnower,
    finder: PassageFinder,
    parse: ParseScratch,
    tokens: SpannedTokens,
    selected: Vec<SelectedGram>,
    candidates: Vec<PassageCandidate>,
    cache: DocumentCache<Rc<CachedSource>>,
    settings: PassageSettings,
    budget: Arc<PassageBudget>,
    /// `true` if a search beyond the budget returns what it has found.
    allows_partial: bool,
}

impl<'a> DocumentSearcher<'a> {
    pub(super) fn new(
        corpus: &'a PassageCorpus<'a>,
        run: &PassageRunSettings,
        min_described: &'a AtomicUsize,
    ) -> Self {
        let limits = run.limits.as_ref();
        let budget = limits.map_or_else(
            || Arc::new(PassageBudget::unlimited()),
            |limits| Arc::clone(&limits.budget),
        );
        let kept_bytes = corpus.memory.source_bytes().min(budget.max_bytes() / 2);
        Self {
            corpus,
            offsets: run.offsets,
            min_described,
            winnower: Winnower::new(corpus.indexed),
            finder: PassageFinder::new(run.passages),
            parse: ParseScratch::default(),
            tokens: SpannedTokens::default(),
            selected: Vec::new(),
            candidates: Vec::new(),
            cache: DocumentCache::new(kept_bytes),
            settings: run.passages,
            budget,
            allows_partial: limits.is_some_and(|limits| limits.allows_partial),
        }
    }

    /// Finds the passages of a document in all of its sources.
    pub(super) fn search_document(&mut self, document: DocId) -> Result<DocumentFindings> {
        let corpus = self.corpus;
        let reread = corpus.reread_document(document, &mut self.parse, &mut self.tokens)?;
        self.winnower
            .select_grams(self.tokens.values(), &mut self.selected);
        let base = corpus.base_text();
        if let Some(base) = base {
            self.selected.retain(|gram| !base.has_gram(gram.hash));
        }
        let given = base.map_or_else(Vec::new, |base| base.find_given(self.tokens.values()));
        let boilerplate = corpus
            .index
            .find_candidates(&self.selected, &mut self.candidates)?;
        let mut findings = DocumentFindings {
            rows: Vec::new(),
            pairs: Vec::new(),
            described: Vec::new(),
            tokens: self.tokens.len(),
            copied: 0,
            reworded: 0,
            given: given.iter().map(Range::len).sum(),
            has_boilerplate: boilerplate > 0,
            is_complete: true,
        };
        let sources = self.list_candidates()?;
        let sources = sources
            .into_iter()
            .map(|source| corpus.indexed_source(source));
        let sources: Vec<DocId> = sources
            .filter(|&source| corpus.may_copy(document, source))
            .collect();
        if sources.is_empty() {
            return Ok(findings);
        }
        self.finder.set_document(self.tokens.values(), base);
        let places = PlaceIndex::new(reread.extracted.original_text());
        let mut found = Vec::new();
        for source in sources {
            let Some((prepared, passages)) = self.compare_source(source)? else {
                findings.is_complete = false;
                break;
            };
            if passages.is_empty() {
                continue;
            }
            let sides = [
                TextSide::new(document, &reread, &self.tokens, &places),
                TextSide::new(source, &prepared.reread, &prepared.tokens, &prepared.places),
            ];
            self.add_pair(sides, &passages, &mut findings);
            found.extend(passages);
        }
        findings.copied = count_in_document(&found);
        findings.reworded = count_reworded(&found);
        Ok(findings)
    }

    /// Returns a source and the passages that the document has from it; `None` if the budget is used up and the run
    /// may end early.
    fn compare_source(
        &mut self,
        source: DocId,
    ) -> Result<Option<(Rc<CachedSource>, Vec<Passage>)>> {
        let prepared = self.prepare_source(source)?;
        let steps = preparation_steps(self.settings, prepared.tokens.len());
        let found = self.budget.take_steps(steps).and_then(|()| {
            let passages = self
                .finder
                .find_passages_within(&prepared.prepared, &self.budget)?;
            self.budget.take_steps(description_steps(passages.len()))?;
            Ok(passages)
        });
        match found {
            Ok(passages) => Ok(Some((prepared, passages))),
            Err(error) if self.allows_partial && error.kind() == ErrorKind::TooCostly => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the candidates by grams, and by rare terms if reworded passages are found, ascending.
    fn list_candidates(&self) -> Result<Vec<u32>> {
        let mut candidates: Vec<u32> = self
            .candidates
            .iter()
            .map(|candidate| candidate.document)
            .collect();
        if let Some(terms) = &self.corpus.rare_terms {
            let tokens = self.tokens.values();
            let masked = self.corpus.base_text();
            let masked = masked.map(|base| base.mask_document(tokens));
            candidates.extend(terms.find_candidates(masked.as_deref().unwrap_or(tokens))?);
            candidates.sort_unstable();
            candidates.dedup();
        }
        Ok(candidates)
    }

    fn prepare_source(&mut self, document: DocId) -> Result<Rc<CachedSource>> {
        if let Some(known) = self.cache.find_value(document) {
            return Ok(known);
        }
        let mut tokens = SpannedTokens::default();
        let reread = self
            .corpus
            .reread_source(document, &mut self.parse, &mut tokens)?;
        let base = self.corpus.base_text();
        let mut prepared = PassageSource::default();
        prepared.set_tokens(tokens.values(), self.settings, base);
        let source = Rc::new(CachedSource {
            places: PlaceIndex::new(reread.extracted.original_text()),
            prepared,
            reread,
            tokens,
        });
        self.cache
            .add_value(document, Rc::clone(&source), source.memory_bytes());
        Ok(source)
    }

    /// Adds the rows of the passages of one document and one source, and their pair.
    fn add_pair(
        &self,
        [document, source]: [TextSide<'_>; 2],
        passages: &[Passage],
        findings: &mut DocumentFindings,
    ) {
        let pair = describe_pair(&document, &source, passages);
        for passage in passages {
            let bytes = document.byte_range(&passage.document);
            let source_bytes = source.byte_range(&passage.source);
            let row = PassageRow {
                document: document.id,
                source: source.id,
                ids: [Arc::clone(document.name), Arc::clone(source.name)],
                place: document.offsets(&bytes, self.offsets),
                source_place: source.offsets(&source_bytes, self.offsets),
                bytes: [bytes.clone(), source_bytes.clone()],
                length: passage.document.len(),
                unit: document.length_unit(&passage.document),
                similarity: round_share(passage.similarity()),
                kind: passage.kind.kind_name(),
                copied: pair.copied,
            };
            if row.length >= self.min_described.load(Ordering::Relaxed) {
                let described = DescribedPassage {
                    document: pair.document.clone(),
                    source: pair.source.clone(),
                    line: document.line_number(&bytes),
                    source_line: source.line_number(&source_bytes),
                    length: row.length,
                    unit: row.unit,
                    similarity: row.similarity,
                    kind: row.kind,
                    text: cut_text(&document.text()[bytes], SHOWN_PASSAGE_CHARACTERS),
                    source_text: cut_text(&source.text()[source_bytes], SHOWN_PASSAGE_CHARACTERS),
                };
                findings.described.push((findings.rows.len(), described));
            }
            findings.rows.push(row);
        }
        findings.pairs.push(pair);
    }
}

/// Returns the number of the document's tokens that lie in passages.
fn count_in_document<'p>(passages: impl IntoIterator<Item = &'p Passage>) -> usize {
    let ranges = passages.into_iter();
    count_covered(ranges.map(|passage| passage.document.clone()).collect())
}

/// Returns the number of the document's tokens that lie in reworded passages and in no other one.
fn count_reworded(passages: &[Passage]) -> usize {
    let others = passages
        .iter()
        .filter(|passage| passage.kind != PassageKind::Reworded);
    count_in_document(passages) - count_in_document(others)
}

fn describe_pair(
    document: &TextSide<'_>,
    source: &TextSide<'_>,
    passages: &[Passage],
) -> CopiedPair {
    let copied = count_in_document(passages);
    let copied_of_source = count_covered(
        passages
            .iter()
            .map(|passage| passage.source.clone())
            .collect(),
    );
    let share = |copied: usize, side: &TextSide<'_>| {
        round_share(copied as f64 / side.tokens.len().max(1) as f64)
    };
    CopiedPair {
        document: document.name.to_string(),
        source: source.name.to_string(),
        passages: passages.len() as u64,
        copied,
        reworded: count_reworded(passages),
        unit: length_unit(
            passages
                .iter()
                .flat_map(|passage| &document.tokens.values()[passage.document.clone()]),
        ),
        share: share(copied, document),
        source_share: share(copied_of_source, source),
        longest: passages
            .iter()
            .map(|passage| passage.document.len())
            .max()
            .unwrap_or(0),
    }
}

/// One text of a pair, with the places by which its characters are counted.
struct TextSide<'t> {
    id: DocId,
    name: &'t Arc<str>,
    extracted: &'t ExtractedText,
    tokens: &'t SpannedTokens,
    /// Places of the original text.
    places: &'t PlaceIndex,
}

impl<'t> TextSide<'t> {
    fn new(
        id: DocId,
        reread: &'t RereadText,
        tokens: &'t SpannedTokens,
        places: &'t PlaceIndex,
    ) -> Self {
        Self {
            id,
            name: &reread.id,
            extracted: &reread.extracted,
            tokens,
            places,
        }
    }

    fn text(&self) -> &str {
        &self.extracted.text
    }

    fn byte_range(&self, tokens: &Range<usize>) -> Range<usize> {
        to_visible_characters(self.text(), self.tokens.byte_range(tokens.clone()))
    }

    /// Returns the unit in which a length of some tokens counts.
    fn length_unit(&self, tokens: &Range<usize>) -> &'static str {
        length_unit(&self.tokens.values()[tokens.clone()])
    }

    /// Returns the positions of a range of the text in the file.
    fn offsets(&self, bytes: &Range<usize>, unit: OffsetUnit) -> Range<usize> {
        match unit {
            OffsetUnit::Bytes => file_bytes(self.extracted, bytes),
            OffsetUnit::Characters => file_characters(self.extracted, self.places, bytes),
        }
    }

    /// Returns the line of the file in which a range of the text begins.
    fn line_number(&self, bytes: &Range<usize>) -> usize {
        file_line(self.extracted, self.places, bytes)
    }
}

/// Returns the unit that most tokens are: `characters` of scripts without spaces, or `words`.
pub(super) fn length_unit<'t>(tokens: impl IntoIterator<Item = &'t u64>) -> &'static str {
    let (mut characters, mut all) = (0, 0);
    for &token in tokens {
        characters += usize::from(is_character(token));
        all += 1;
    }
    if 2 * characters > all {
        "characters"
    } else {
        "words"
    }
}

/// Returns the beginning of a text, at most so many characters of it.
pub(super) fn cut_text(text: &str, max_characters: usize) -> String {
    match text.char_indices().nth(max_characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..to_visible_characters(text, 0..end).end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_whole_characters() {
        assert_eq!(cut_text("船", 1), "船");
        let cut = cut_text(&"e\u{301}".repeat(1500), SHOWN_PASSAGE_CHARACTERS);
        assert_eq!(cut, "e\u{301}".repeat(1000) + "…");
    }
}
