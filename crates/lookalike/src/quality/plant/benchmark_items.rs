//! Items of benchmarks planted into documents, in the forms in which they stand in real ones, and decoys: texts that have
//! much in common with an item and do not contain it.

use std::fmt::Write as _;

use super::random::SplitMix64;
use super::structure::{TextUnit, paragraph_ranges, split_units};
use super::{EditKind, EditPlanter, PlantedEdit};
use crate::contamination::ItemTexts;

/// Fewest words or characters of a question that is planted without its answer.
const MIN_UNITS_ALONE: usize = 20;

/// Words of a phrase that a decoy takes from a question, and phrases of a decoy.
const PHRASE_UNITS: usize = 4;
const PHRASES: usize = 3;

/// The form in which an item is planted.
///
/// ```
/// use lookalike::quality::plant::ItemForm;
///
/// assert_eq!(ItemForm::ALL.len(), 12);
/// assert_eq!(ItemForm::TableCells.name(), "table-cells");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemForm {
    /// As it is.
    Verbatim,
    /// Within sentences of other documents, in one line with them.
    Wrapped,
    /// Cut into short lines.
    ShortLines,
    /// Cut into cells of a table.
    TableCells,
    /// In upper or lower case.
    OtherCase,
    /// Without punctuation, or with other marks.
    OtherPunctuation,
    /// With commands of LaTeX around words and numbers.
    Latex,
    /// With emphasis and links of Markdown.
    Markdown,
    /// With tags and entities of HTML.
    Html,
    /// In the other Chinese script; in full width where there is no Chinese.
    OtherScript,
    /// With its choices in another order.
    OtherChoices,
    /// With a fifth of the words of the question replaced.
    ReplacedWords,
}

impl ItemForm {
    /// All forms, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Verbatim,
        Self::Wrapped,
        Self::ShortLines,
        Self::TableCells,
        Self::OtherCase,
        Self::OtherPunctuation,
        Self::Latex,
        Self::Markdown,
        Self::Html,
        Self::OtherScript,
        Self::OtherChoices,
        Self::ReplacedWords,
    ];

    /// Returns the name in reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Wrapped => "wrapped",
            Self::ShortLines => "short-lines",
            Self::TableCells => "table-cells",
            Self::OtherCase => "other-case",
            Self::OtherPunctuation => "other-punctuation",
            Self::Latex => "latex",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::OtherScript => "other-script",
            Self::OtherChoices => "other-choices",
            Self::ReplacedWords => "replaced-words",
        }
    }
}

/// A text that has much in common with an item and does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemDecoy {
    /// Phrases of the question, each in a sentence of another document.
    SharedPhrases,
    /// The words of the question in another order, with as many other ones.
    SameTopic,
    /// The formulae and numbers of the question between other words.
    SameFormulae,
    /// The beginning of the question, and a sentence of another document as its end.
    SameBeginning,
}

impl ItemDecoy {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 4] = [
        Self::SharedPhrases,
        Self::SameTopic,
        Self::SameFormulae,
        Self::SameBeginning,
    ];

    /// Returns the name in reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedPhrases => "shared-phrases",
            Self::SameTopic => "same-topic",
            Self::SameFormulae => "same-formulae",
            Self::SameBeginning => "same-beginning",
        }
    }
}

impl EditPlanter {
    /// Returns a document with an item in it; `None` if the form changes nothing of the item. A question with fewer than 20
    /// words stands with its answer or its choices, and every fourth of the others alone.
    ///
    /// ```
    /// use lookalike::contamination::ItemTexts;
    /// use lookalike::quality::plant::{EditPlanter, ItemForm, TextStock};
    ///
    /// let planter = EditPlanter::new(7, TextStock::new(["Two old boats left the harbour at dawn. Rain fell."]));
    /// let item = ItemTexts { question: "Which river is the longest?", choices: &[], answer: "The Nile", passage: "" };
    /// let host = "One paragraph.\nAnother paragraph.";
    /// let planted = planter.plant_item("doc-1", host, item, ItemForm::TableCells).unwrap();
    /// assert!(planted.starts_with("One paragraph.\n") && planted.contains(" | "));
    /// assert_eq!(planter.plant_item("doc-1", host, item, ItemForm::OtherChoices), None);
    /// ```
    pub fn plant_item(
        &self,
        id: &str,
        host: &str,
        item: ItemTexts<'_>,
        form: ItemForm,
    ) -> Option<String> {
        let mut random = SplitMix64::from_document(self.seed, id, form.name());
        let mut order: Vec<usize> = (0..item.choices.len()).collect();
        let mut question = item.question.to_owned();
        match form {
            ItemForm::OtherChoices => {
                if order.len() < 2 {
                    return None;
                }
                order.rotate_left(1);
            }
            ItemForm::ReplacedWords => {
                question = self.edit_text(id, &question, EditKind::ReplaceWords, 200)?;
            }
            _ => {}
        }
        let with_choices = form == ItemForm::OtherChoices;
        let block = render_item(&question, item, &order, with_choices, &mut random);
        let block = match form {
            ItemForm::Verbatim | ItemForm::OtherChoices | ItemForm::ReplacedWords => block,
            ItemForm::Wrapped => self.wrap_block(&block, &mut random)?,
            ItemForm::ShortLines => cut_pieces(&block, "\n", 40..70, &mut random),
            ItemForm::TableCells => cut_pieces(&block, " | ", 15..40, &mut random),
            ItemForm::OtherCase if random.next_below(2) == 0 => block.to_lowercase(),
            ItemForm::OtherCase => block.to_uppercase(),
            ItemForm::OtherPunctuation if random.next_below(2) == 0 => without_marks(&block),
            ItemForm::OtherPunctuation => self.edit_text(id, &block, EditKind::Punctuation, 0)?,
            ItemForm::Latex | ItemForm::Markdown | ItemForm::Html => {
                mark_words(&block, form, &mut random)
            }
            ItemForm::OtherScript => self.other_script(id, &block)?,
        };
        Some(insert_block(host, &block, &mut random))
    }

    /// Returns a document with a decoy of an item; `None` if the question is too short or too plain for one.
    pub fn plant_decoy(
        &self,
        id: &str,
        host: &str,
        item: ItemTexts<'_>,
        decoy: ItemDecoy,
    ) -> Option<String> {
        let mut random = SplitMix64::from_document(self.seed, id, decoy.name());
        let question = item.question;
        let units = split_units(question);
        let text = match decoy {
            ItemDecoy::SharedPhrases => self.share_phrases(question, &units, &mut random)?,
            ItemDecoy::SameTopic => self.shuffle_words(question, &units, &mut random)?,
            ItemDecoy::SameFormulae => self.keep_formulae(question, &units, &mut random)?,
            ItemDecoy::SameBeginning => {
                let kept = units
                    .get(units.len() * 2 / 5)
                    .filter(|_| units.len() >= 10)?;
                let sentence = self.stock.choose_sentence(question, &mut random)?;
                format!("{} {sentence}", question[..kept.range.start].trim_end())
            }
        };
        Some(insert_block(host, &text, &mut random))
    }

    /// Returns a document with another text in it, between two paragraphs.
    pub fn insert_text(&self, id: &str, host: &str, text: &str) -> String {
        let mut random = SplitMix64::from_document(self.seed, id, "insert");
        insert_block(host, text, &mut random)
    }

    fn edit_text(&self, id: &str, text: &str, kind: EditKind, share: u16) -> Option<String> {
        let edit = PlantedEdit { kind, share };
        self.plant_edits(id, text, &[edit])
    }

    fn other_script(&self, id: &str, block: &str) -> Option<String> {
        let kinds = [
            EditKind::Traditional,
            EditKind::Simplified,
            EditKind::FullWidth,
        ];
        kinds
            .into_iter()
            .find_map(|kind| self.edit_text(id, block, kind, 0))
    }

    fn wrap_block(&self, block: &str, random: &mut SplitMix64) -> Option<String> {
        let before = self.stock.choose_sentence(block, random)?;
        let behind = self.stock.choose_sentence(block, random)?;
        Some(format!("{before} {} {behind}", block.replace('\n', " ")))
    }

    fn share_phrases(
        &self,
        question: &str,
        units: &[TextUnit],
        random: &mut SplitMix64,
    ) -> Option<String> {
        // At most two fifths of the question.
        let phrases = (units.len() * 2 / 5 / PHRASE_UNITS).min(PHRASES);
        let mut text = String::new();
        for at in 0..phrases.max(1) {
            let start = units.len() * at / phrases.max(1);
            let phrase = units.get(start..start + PHRASE_UNITS)?;
            let phrase = &question[phrase[0].range.start..phrase[PHRASE_UNITS - 1].range.end];
            let sentence = self.stock.choose_sentence(question, random)?;
            let _ = write!(text, "{sentence} {phrase}. ");
        }
        (phrases > 0).then_some(text)
    }

    fn shuffle_words(
        &self,
        question: &str,
        units: &[TextUnit],
        random: &mut SplitMix64,
    ) -> Option<String> {
        if units.len() < 8 {
            return None;
        }
        let mut words: Vec<String> = Vec::new();
        for unit in units {
            words.push(question[unit.range.clone()].to_owned());
            words.push(self.other_unit(question, unit, random)?);
        }
        random.shuffle_list(&mut words);
        Some(words.join(" "))
    }

    /// Returns a word in place of a word, and a character in place of a character.
    fn other_unit(&self, text: &str, unit: &TextUnit, random: &mut SplitMix64) -> Option<String> {
        let piece = &text[unit.range.clone()];
        if unit.is_word {
            self.stock.choose_word(piece, random).map(str::to_owned)
        } else {
            self.stock.choose_character(piece, random).map(String::from)
        }
    }

    fn keep_formulae(
        &self,
        question: &str,
        units: &[TextUnit],
        random: &mut SplitMix64,
    ) -> Option<String> {
        let mut text = String::new();
        let (mut end, mut formulae) = (0, 0);
        for unit in units {
            let word = &question[unit.range.clone()];
            let is_formula = word.chars().count() == 1 && unit.is_word
                || word.bytes().any(|byte| byte.is_ascii_digit());
            formulae += usize::from(is_formula);
            text.push_str(&question[end..unit.range.start]);
            if is_formula {
                text.push_str(word);
            } else {
                text.push_str(&self.other_unit(question, unit, random)?);
            }
            end = unit.range.end;
        }
        (formulae >= 3 && formulae * 2 <= units.len()).then_some(text)
    }
}

/// Returns an item as documents have it.
fn render_item(
    question: &str,
    item: ItemTexts<'_>,
    order: &[usize],
    with_choices: bool,
    random: &mut SplitMix64,
) -> String {
    let is_short = split_units(question).len() < MIN_UNITS_ALONE;
    let style = random.next_below(4);
    if style == 3 && !is_short && !with_choices {
        return question.to_owned();
    }
    let mut text = match style {
        0 => format!("Question: {question}\n"),
        1 => format!("{question}\n"),
        _ => format!("Q: {question}\n"),
    };
    if !order.is_empty() && (with_choices || style != 1 || item.answer.is_empty()) {
        for (at, &choice) in order.iter().enumerate() {
            let letter = char::from(b'A' + (at % 26) as u8);
            let _ = writeln!(text, "{letter}. {}", item.choices[choice]);
        }
    }
    if !item.answer.is_empty() {
        let _ = write!(text, "Answer: {}", item.answer);
    }
    text
}

/// Joins pieces of a text, each as long as one of `lengths` characters or a little longer, by a separator.
fn cut_pieces(
    text: &str,
    separator: &str,
    lengths: std::ops::Range<usize>,
    random: &mut SplitMix64,
) -> String {
    let mut joined = String::with_capacity(text.len() * 5 / 4);
    let mut length = 0;
    let mut wanted = lengths.start;
    for point in text.chars() {
        let can_break = point.is_whitespace() || !point.is_ascii();
        if can_break && length >= wanted {
            joined.push_str(separator);
            length = 0;
            wanted = lengths.start + random.next_below(lengths.len());
        }
        if point == '\n' && separator != "\n" {
            joined.push_str(separator);
        } else if length > 0 || !point.is_whitespace() {
            joined.push(point);
            length += 1;
        }
    }
    joined
}

/// Replaces all marks that are neither letters nor digits by spaces.
fn without_marks(text: &str) -> String {
    let plain = |point: char| if point.is_alphanumeric() { point } else { ' ' };
    text.chars().map(plain).collect()
}

/// Marks every fourth word or so.
fn mark_words(text: &str, form: ItemForm, random: &mut SplitMix64) -> String {
    let mut marked = String::new();
    let mut end = 0;
    for unit in split_units(text) {
        let word = &text[unit.range.clone()];
        let between = &text[end..unit.range.start];
        end = unit.range.end;
        let is_chosen = random.next_below(4) == 0;
        match form {
            ItemForm::Html if between == " " && is_chosen => marked.push_str("&nbsp;"),
            ItemForm::Html if between.contains('\n') => marked.push_str("<br/>\n"),
            _ => marked.push_str(between),
        }
        let style = random.next_below(3);
        let _ = match (form, is_chosen, style) {
            (_, false, _) => write!(marked, "{word}"),
            (ItemForm::Latex, _, 0) => write!(marked, "\\textbf{{{word}}}"),
            (ItemForm::Latex, _, 1) => write!(marked, "${word}$"),
            (ItemForm::Latex, ..) => write!(marked, "\\emph{{{word}}}\\,"),
            (ItemForm::Markdown, _, 0) => write!(marked, "**{word}**"),
            (ItemForm::Markdown, _, 1) => write!(marked, "_{word}_"),
            (ItemForm::Markdown, ..) => write!(marked, "[{word}](https://example.org/{style})"),
            (_, _, 0) => write!(marked, "<b>{word}</b>"),
            (_, _, 1) => write!(marked, "<span class=\"q\">{word}</span>"),
            _ => write!(marked, "<i>{word}</i>"),
        };
    }
    marked.push_str(&text[end..]);
    marked
}

/// Puts a text between two paragraphs of a document.
fn insert_block(host: &str, block: &str, random: &mut SplitMix64) -> String {
    let paragraphs = paragraph_ranges(host);
    let at = match paragraphs.len() {
        0 => 0,
        count => paragraphs[random.next_below(count)].end,
    };
    format!("{}\n{block}\n{}", &host[..at], &host[at..])
}

#[cfg(test)]
mod tests {
    use super::super::TextStock;
    use super::*;

    const QUESTION: &str = "A train leaves the station at 7 and travels 120 miles in 3 hours; what is its mean speed \
                            in miles an hour?";

    fn planter() -> EditPlanter {
        let text = "Two old boats left the harbour at dawn. Rain fell on the quiet mill. Wheat was cheap that year.";
        EditPlanter::new(3, TextStock::new([text]))
    }

    #[test]
    fn every_form_changes_the_item_as_it_says() {
        let choices = ["40".to_owned(), "60".to_owned(), "80".to_owned()];
        let item = ItemTexts {
            question: QUESTION,
            choices: &choices,
            answer: "40",
            passage: "",
        };
        let host = "The first paragraph.\nThe second paragraph.";
        let mut seen = std::collections::HashSet::new();
        for form in ItemForm::ALL {
            let planted = planter().plant_item("doc", host, item, form).unwrap();
            assert!(seen.insert(planted.clone()), "{form:?}");
            assert_eq!(planter().plant_item("doc", host, item, form), Some(planted));
        }
        let planted = |form| planter().plant_item("doc", host, item, form).unwrap();
        assert!(planted(ItemForm::Verbatim).contains(QUESTION));
        assert!(planted(ItemForm::Wrapped).contains(QUESTION));
        assert!(planted(ItemForm::OtherChoices).contains("A. 60\nB. 80\nC. 40"));
        assert!(!planted(ItemForm::OtherPunctuation).contains(QUESTION));
        let replaced = planted(ItemForm::ReplacedWords);
        let same = QUESTION
            .split(' ')
            .filter(|word| replaced.contains(word))
            .count();
        assert!((14..22).contains(&same), "{same}");
    }

    #[test]
    fn decoys_have_no_whole_question() {
        let item = ItemTexts {
            question: QUESTION,
            choices: &[],
            answer: "40",
            passage: "",
        };
        for decoy in ItemDecoy::ALL {
            let planted = planter()
                .plant_decoy("doc", "A host.", item, decoy)
                .unwrap();
            assert!(!planted.contains(&QUESTION[..60]), "{decoy:?}");
            assert!(planted.contains("A host."));
        }
    }
}
