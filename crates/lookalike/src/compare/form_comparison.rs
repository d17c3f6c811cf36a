//! The comparison of two texts by a table of forms: their slots side by side, and the reason why they do not match.

use std::fmt;

use crate::forms::{self, ContentDifference, FormId, FormMatch};
use crate::recipe::Recipe;
use crate::text::{AnalysisScratch, TextAnalysis, TextAnalyzer};

/// Two texts of one form, slot by slot.
///
/// ```
/// use lookalike::Recipe;
/// use lookalike::compare::FormComparison;
/// use lookalike::forms::FormTable;
///
/// let table = FormTable::parse_table("shop.toml", r#"
/// lookalike_forms = 1
/// [[form]]
/// name = "offer"
/// frame = ["Only today in our shop:", "for", "euros, as long as there are some left."]
/// "#)?;
/// let recipe = Recipe::built_in("default")?.with_forms("shop.toml", &table)?;
/// let a = "Only today in our shop: a lamp for 20 euros, as long as there are some left.";
/// let found = FormComparison::between_texts(&recipe, a, &a.replace("20", "30")).unwrap();
/// assert_eq!(found.name, "offer");
/// assert_eq!(found.slots[0].values, ["a lamp", "a lamp"]);
/// assert_eq!(found.slots[1].values, ["20", "30"]);
/// assert!(found.slots[0].is_equal && !found.slots[1].is_equal);
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormComparison {
    /// Name of the form in the table of the recipe.
    pub name: String,
    /// Parts of the frame. A slot stands between two parts.
    pub frame: Vec<String>,
    /// Values of both texts for each slot.
    pub slots: Vec<SlotComparison>,
}

/// A slot of a form in two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotComparison {
    /// Value in each text; empty if the text has nothing there.
    pub values: [String; 2],
    /// `true` if the values are equal after normalisation.
    pub is_equal: bool,
}

impl FormComparison {
    /// Compares two texts of one form. Returns `None` if the recipe has no forms, or if the texts are not of the same one.
    ///
    /// # Panics
    /// As [`TextAnalyzer::new`].
    pub fn between_texts(recipe: &Recipe, a: &str, b: &str) -> Option<Self> {
        let (analyzer, mut scratch) = (TextAnalyzer::new(recipe), AnalysisScratch::default());
        let [a, b] = [a, b].map(|text| FilledForm::find_form(&analyzer, text, &mut scratch));
        let (a, b) = (a?, b?);
        if a.form != b.form {
            return None;
        }
        let files = recipe.loaded_files();
        let form = &files.forms.as_ref()?.forms()[a.form];
        let slots = a.values.into_iter().zip(b.values);
        let slots = slots.map(|(a, b)| SlotComparison {
            is_equal: a.tokens == b.tokens,
            values: [a.spelling, b.spelling],
        });
        Some(Self {
            name: form.name.clone(),
            frame: form.frame.clone(),
            slots: slots.collect(),
        })
    }
}

/// A text of a form, with the values of its slots.
#[derive(Clone, Debug)]
pub struct FilledForm {
    form: usize,
    values: Vec<SlotValue>,
}

#[derive(Clone, Debug)]
struct SlotValue {
    tokens: Vec<u64>,
    spelling: String,
}

impl FilledForm {
    /// Returns the position of the form in the table of the recipe, from 0.
    pub fn form_position(&self) -> usize {
        self.form
    }

    /// Returns the value of each slot as the text spells it; empty if the text has nothing there.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.spelling.as_str())
    }

    /// Returns the form of a text. Returns `None` if the recipe of the analyzer has no forms, or if the text is of none.
    pub fn find_form(
        analyzer: &TextAnalyzer,
        text: &str,
        scratch: &mut AnalysisScratch,
    ) -> Option<Self> {
        let analysis = analyzer.analyze_text(text, scratch);
        let FormMatch { form, values } = analysis.find_form()?;
        // Words of a dictionary, for example, have no places in the text, so that their normalised spelling is shown.
        let spellings = analysis.spell_places(&values).unwrap_or_else(|| {
            let tokens = analyzer.list_tokens(text);
            let spell =
                |place: &std::ops::Range<usize>| super::steps::join_tokens(&tokens[place.clone()]);
            values.iter().map(spell).collect()
        });
        let values = values.into_iter().zip(spellings);
        let values = values.map(|(place, spelling)| SlotValue {
            tokens: analysis.token_values()[place].to_vec(),
            spelling,
        });
        Some(Self {
            form,
            values: values.collect(),
        })
    }
}

/// The values and tokens of a text by which a table of forms keeps it apart from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparedContents {
    /// The form and the value of each slot.
    form_values: Vec<u64>,
    /// The tokens by which titles and numbers are compared.
    marked_tokens: Vec<u64>,
}

impl ComparedContents {
    /// Returns those of an analysis. They are empty if its recipe has no forms.
    pub fn from_analysis(analysis: &TextAnalysis<'_>) -> Self {
        let mut contents = Self::default();
        analysis.append_form_values(&mut contents.form_values);
        analysis.append_marked_tokens(&mut contents.marked_tokens);
        contents
    }

    /// Returns the form of the text, if it is of one.
    pub fn form_id(&self) -> Option<FormId> {
        FormId::from_values(&self.form_values)
    }

    /// Returns the name of the reason why two texts do not match, as [`FormDifference::reason_name`] gives it.
    pub fn name_difference(&self, other: &Self) -> Option<&'static str> {
        if !forms::do_forms_agree(&self.form_values, &other.form_values) {
            return Some(FORM_REASON);
        }
        match forms::find_difference(&self.marked_tokens, &other.marked_tokens)? {
            ContentDifference::Title(_) => Some(TITLE_REASON),
            ContentDifference::Numbers(_) => Some(NUMBERS_REASON),
        }
    }
}

/// Names of the reasons in tables and summaries.
const FORM_REASON: &str = "form";
const TITLE_REASON: &str = "title";
const NUMBERS_REASON: &str = "numbers";

/// The reason why texts do not match under a table of forms, although they may be similar. Its text is a phrase for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormDifference {
    /// They are of one form, and too many of its slots differ.
    Slots,
    /// They are of different forms, or one of them is of none.
    Form,
    /// Their titles are about different things: the words of each that differ first.
    Title([String; 2]),
    /// Most of their numbers differ: the first of each that does.
    Numbers([String; 2]),
}

impl FormDifference {
    /// Returns the reason why two texts do not match, if there is one. Both analyses are by the same recipe.
    pub fn between_texts(a: &TextAnalysis<'_>, b: &TextAnalysis<'_>) -> Option<Self> {
        Self::between_forms(a, b).or_else(|| Self::between_contents(a, b))
    }

    /// Returns the reason in the forms of two texts and in their slots, if there is one.
    pub(super) fn between_forms(a: &TextAnalysis<'_>, b: &TextAnalysis<'_>) -> Option<Self> {
        let [a, b] = [a, b].map(|text| {
            let mut values = Vec::new();
            text.append_form_values(&mut values);
            values
        });
        if forms::do_forms_agree(&a, &b) {
            return None;
        }
        let is_same_form = !a.is_empty() && a.first() == b.first();
        Some(if is_same_form {
            Self::Slots
        } else {
            Self::Form
        })
    }

    /// Returns the reason in the titles and numbers of two texts, if there is one.
    pub(super) fn between_contents(a: &TextAnalysis<'_>, b: &TextAnalysis<'_>) -> Option<Self> {
        let texts = [a, b];
        let [in_a, in_b] = texts.map(|text| {
            let mut list = Vec::new();
            text.append_marked_tokens(&mut list);
            list
        });
        let difference = forms::find_difference(&in_a, &in_b)?;
        let spell = |places: &[std::ops::Range<usize>; 2]| {
            [0, 1].map(|at| {
                texts[at]
                    .spell_compared_tokens(places[at].clone())
                    .to_owned()
            })
        };
        Some(match &difference {
            ContentDifference::Title(places) => Self::Title(spell(places)),
            ContentDifference::Numbers(places) => Self::Numbers(spell(places)),
        })
    }

    /// Returns the name of the reason in tables and summaries: `form`, `title` or `numbers`.
    pub fn reason_name(&self) -> &'static str {
        match self {
            Self::Slots | Self::Form => FORM_REASON,
            Self::Title(_) => TITLE_REASON,
            Self::Numbers(_) => NUMBERS_REASON,
        }
    }
}

impl fmt::Display for FormDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots => {
                formatter.write_str("they are filled forms of one frame, and their slots differ")
            }
            Self::Form => formatter.write_str("they are not of the same form"),
            Self::Title([a, b]) => {
                write!(
                    formatter,
                    "the titles are about different things: '{a}' and '{b}'"
                )
            }
            Self::Numbers([a, b]) => {
                write!(formatter, "most of the numbers differ: '{a}' and '{b}'")
            }
        }
    }
}
