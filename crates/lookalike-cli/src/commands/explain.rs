//! `lookalike explain`: shows why a document was removed, with both texts.
//!
//! The record of a removal contains the result of the run. Both texts are read again and their similarity is
//! computed again, so the answer is about the present texts, and says whether the record still fits them.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use lookalike::plan::Unit;
use lookalike::sketch::{MinHasher, SimHasher, bottom_k_jaccard, equal_slots, smallest_features};
use lookalike::text::{Analysis, Analyzer, Extras, Scratch, State};
use lookalike::{Cpu, Recipe, Threshold, verify};
use lookalike_batch::source::{Fields, Format, IdField, Inputs, ReadOptions, Row, Scalar};
use serde_json::json;

use crate::Outcome;
use crate::args::{ExplainArgs, Verify};
use crate::diff::{marked, passages};
use crate::output::{Printer, Tone, plural, visible};
use crate::settings;
use crate::settings::load_recipe;

use super::documents::{
    Description, DocumentAddress, Found, ambiguous, lock, look_up, unless_known, visit_rows,
};

/// Number of removed duplicates of a kept document that are named.
const NAMED: usize = 5;

/// Largest difference of equal numbers. Tables have enough digits to restore every `f64`.
const SAME: f64 = 1e-12;

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome> {
    let printer = Printer::new(false);
    let recipe = load_recipe(&args.recipe, &args.changes)?;
    settings::unit_of(
        args.verify.unwrap_or(Verify::Jaccard),
        args.unit,
        &args.reading,
    )?;
    let options = settings::read_options(args.input_format.format, &args.reading)?;
    let table = Table::read(args)?;
    let text = match table.removal_of(DocumentAddress::parse(&args.document))? {
        Some(removal) => Case::find(args, &options, &recipe, &table, removal)?.told(args, &printer),
        None => not_removed(args, &options, &table)?,
    };
    printer.data(&text)?;
    Ok(Outcome::Done)
}

/// A row of the table of removed documents.
#[derive(Debug, Clone)]
struct Removal {
    id: String,
    kept: String,
    similarity: Option<f64>,
    method: String,
    threshold: Option<f64>,
    cluster: String,
    /// Places of the document and the kept one, if the table has them.
    place: Option<Place>,
    kept_place: Option<Place>,
}

/// A source and a row in it, from 1.
#[derive(Debug, Clone)]
struct Place {
    source: String,
    row: u64,
}

impl Place {
    fn is(&self, source: &str, row: u64) -> bool {
        self.row == row && self.source == source
    }

    fn shown(&self) -> String {
        format!("{}:{}", self.source, self.row)
    }
}

/// Columns of the table besides both ids. Tables of earlier versions have only the first four.
const COLUMNS: [&str; 8] = [
    "similarity",
    "method",
    "threshold",
    "cluster",
    "source",
    "row",
    "kept_source",
    "kept_row",
];

/// The part of the table about one document: its own removal, or the removals that name it.
struct Table {
    removals: Vec<Removal>,
    /// `true` for TSV, which writes tabs and line ends as `\t`, `\n` and `\r`.
    escaped: bool,
}

impl Table {
    fn read(args: &ExplainArgs) -> Result<Self> {
        let with_places = Self::read_columns(args, &COLUMNS);
        with_places.or_else(|_| Self::read_columns(args, &COLUMNS[..4]))
    }

    fn read_columns(args: &ExplainArgs, columns: &[&str]) -> Result<Self> {
        let address = DocumentAddress::parse(&args.document);
        // A file without a known extension is TSV, because the run that wrote it chose that too.
        let format = unless_known(&args.removed, Format::TSV);
        let fields = Fields {
            text: vec!["kept".to_owned()],
            id: IdField::Named("id".to_owned()),
            extra: columns.iter().map(|&column| column.to_owned()).collect(),
            ..Fields::default()
        };
        let scratch = args.reading.scratch.clone();
        let options = ReadOptions {
            format,
            fields,
            scratch,
            ..ReadOptions::default()
        };
        let inputs = Inputs::open(std::slice::from_ref(&args.removed), &options)?;
        let escaped = inputs
            .files()
            .iter()
            .any(|file| file.format() == Format::TSV);
        let wanted = escape(&args.document, escaped);
        let removals = Mutex::new(Vec::new());
        let bad = Mutex::new(None);
        visit_rows(&inputs, settings::threads(args.threads), &|row| match row {
            Ok(row) => {
                let id = row.id.unwrap_or_default();
                let removal = removal(row);
                let is_place = |place: &Option<Place>| {
                    let place = place.as_ref();
                    place.is_some_and(|it| address.is_place(&it.source, it.row))
                };
                if id == args.document
                    || id == wanted
                    || row.text == args.document
                    || row.text == wanted
                    || is_place(&removal.place)
                    || is_place(&removal.kept_place)
                {
                    lock(&removals).push((row.number, removal));
                }
                true
            }
            Err(reason) => {
                lock(&bad).get_or_insert(reason);
                true
            }
        })?;
        if let Some(reason) = bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
            bail!(
                "this is not a table of removed documents as `dedup --removed` writes it: {reason}"
            );
        }
        let mut removals = removals
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        removals.sort_by_key(|(number, _)| *number);
        let mut removals: Vec<_> = removals.into_iter().map(|(_, removal)| removal).collect();
        for removal in removals.iter_mut().filter(|removal| removal.id == wanted) {
            removal.id.clone_from(&args.document);
        }
        Ok(Self { removals, escaped })
    }

    /// Returns the removal of the addressed document, if it was removed. Refuses an id that several removed
    /// documents have.
    fn removal_of(&self, address: DocumentAddress<'_>) -> Result<Option<&Removal>> {
        let is_place = |removal: &&Removal| {
            let place = removal.place.as_ref();
            place.is_some_and(|it| address.is_place(&it.source, it.row))
        };
        if let Some(removal) = self.removals.iter().find(is_place) {
            return Ok(Some(removal));
        }
        let has_id = |removal: &&Removal| removal.id == address.text;
        let removals: Vec<_> = self.removals.iter().filter(has_id).collect();
        if removals.len() > 1 {
            let places = removals.iter().filter_map(|it| it.place.as_ref());
            let places: Vec<_> = places.take(NAMED).map(Place::shown).collect();
            bail!(
                "{}",
                ambiguous(address.text, removals.len() as u64, &places)
            );
        }
        Ok(removals.first().copied())
    }

    /// Returns `true` if an id in the table stands for an id of the inputs.
    fn names(&self, in_table: &str, id: &str) -> bool {
        in_table == id || self.escaped && in_table == escape(id, true)
    }
}

fn escape(id: &str, escaped: bool) -> String {
    if escaped {
        id.replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r")
    } else {
        id.to_owned()
    }
}

fn removal(row: &Row<'_>) -> Removal {
    let [similarity, method, threshold, cluster, places @ ..] = row.extra else {
        unreachable!("at least four fields were asked for");
    };
    let text = |value: &Scalar<'_>| match value {
        Scalar::Text(text) | Scalar::Number { literal: text, .. } => (*text).to_owned(),
        Scalar::Missing | Scalar::Null | Scalar::Bool(_) => String::new(),
    };
    let number = |value: &Scalar<'_>| text(value).parse().ok();
    let place = |at: usize| {
        let (source, row) = (places.get(at)?, places.get(at + 1)?);
        let row = text(row).parse().ok()?;
        let source = text(source);
        (!source.is_empty()).then_some(Place { source, row })
    };
    Removal {
        id: row.id.unwrap_or_default().to_owned(),
        kept: row.text.to_owned(),
        similarity: number(similarity),
        method: text(method),
        threshold: number(threshold),
        cluster: text(cluster),
        place: place(0),
        kept_place: place(2),
    }
}

/// A removal with both documents and their present comparison.
struct Case<'a> {
    removal: &'a Removal,
    recipe: &'a Recipe,
    removed: Found,
    kept: Found,
    now: Comparison,
}

impl<'a> Case<'a> {
    fn find(
        args: &ExplainArgs,
        options: &ReadOptions,
        recipe: &'a Recipe,
        table: &Table,
        removal: &'a Removal,
    ) -> Result<Self> {
        let threads = settings::threads(args.threads);
        let address = DocumentAddress::parse(&args.document);
        let removed_place = removal.place.as_ref();
        let by_place = removed_place.filter(|it| address.is_place(&it.source, it.row));
        let is_removed = |id: &str, source: &str, row: u64| match by_place {
            Some(place) => place.is(source, row),
            None => id == args.document,
        };
        let is_kept = |id: &str, _: &str, _: u64| table.names(&removal.kept, id);
        let kept_place = removal.kept_place.as_ref();
        let is_kept_there =
            |_: &str, source: &str, row: u64| kept_place.is_some_and(|place| place.is(source, row));
        let wanted: [Description<'_>; 3] = [&is_kept, &is_kept_there, &is_removed];
        let mut in_against = look_up(&args.against, options, threads, &wanted[..2])?.into_iter();
        let mut found = look_up(&args.inputs, options, threads, &wanted)?.into_iter();
        let mut next = || found.next().unwrap_or_default();
        let (by_id, in_place, removed) = (next(), next(), next());
        let removed = removed.into_only(&args.document)?;
        let mut next = || in_against.next().unwrap_or_default();
        let (against_by_id, against_in_place) = (next(), next());
        // If the table has the place of the kept document, that identifies it even if the id is not unique.
        // Inputs may have been renamed since; then the id decides.
        let (in_against, in_inputs) = match (against_in_place.into_first(), in_place.into_first()) {
            (None, None) => (against_by_id.into_first(), by_id.into_first()),
            in_place => in_place,
        };
        let missing = |id: &str, role: &str, more: &str| {
            anyhow::anyhow!(
                "the {role} document {id} is not in the inputs: give the inputs of the dedup run, \
                 with the same --id, --id-row and --format{more}"
            )
        };
        let removed = removed.ok_or_else(|| missing(&args.document, "removed", ""))?;
        // The id can occur in both inputs; then the document that fits the record is the right one.
        let in_inputs = in_inputs.filter(|found| found.number != removed.number);
        let mut candidates: Vec<_> = in_against
            .into_iter()
            .chain(in_inputs)
            .map(|kept| {
                let now = Comparison::new(recipe, args, removal, &kept, &removed)?;
                Ok((kept, now))
            })
            .collect::<Result<_>>()?;
        let fitting = candidates
            .iter()
            .position(|(_, now)| now.fits(removal).is_some());
        if candidates.is_empty() {
            return Err(missing(&removal.kept, "kept", " and --against"));
        }
        let (kept, now) = candidates.swap_remove(fitting.unwrap_or(0));
        Ok(Self {
            removal,
            recipe,
            removed,
            kept,
            now,
        })
    }

    fn told(&self, args: &ExplainArgs, printer: &Printer) -> String {
        if args.json {
            self.as_json()
        } else {
            self.in_words(args.full, printer)
        }
    }

    fn in_words(&self, full: bool, printer: &Printer) -> String {
        let Self {
            removal,
            now,
            kept,
            removed,
            recipe,
            ..
        } = self;
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} was removed: it is a near-duplicate of {}, which was kept.",
            visible(&removal.id),
            visible(&removal.kept)
        );
        let mut line = |label: &str, value: &str| {
            let _ = writeln!(text, "  {label:<12} {}", visible(value));
        };
        line("kept", &kept.place());
        line("removed", &removed.place());
        let recorded = |value: Option<f64>, show: fn(f64) -> String| {
            value.map_or_else(|| "not recorded".to_owned(), show)
        };
        let similarity = recorded(removal.similarity, |value| format!("{value:.4}"));
        line(
            "similarity",
            &format!("{similarity}, found by {}", removal.method),
        );
        line(
            "threshold",
            &recorded(removal.threshold, |value| value.to_string()),
        );
        line("cluster", &removal.cluster);
        line("recipe", &format!("{} ({})", recipe.name, recipe.id()));
        line("now", &now.in_words());
        line("", &self.verdict());
        let (kept, removed) = (kept.shown(), removed.shown());
        let heading = "Both texts: [-only in the kept text-] {+only in the removed text+}";
        let _ = writeln!(text, "\n{}", printer.in_output(Tone::Heading, heading));
        text.push_str(&marked(&passages(&kept, &removed), full, printer));
        text.push('\n');
        text
    }

    /// Returns a sentence that says whether the record fits the present texts.
    fn verdict(&self) -> String {
        match self.now.fits(self.removal) {
            Some(measure) => {
                format!("the recorded similarity is that of the present texts ({measure})")
            }
            None => "the recorded similarity is not that of the present texts: they have changed \
                     since, or the run had other options (--recipe, --verify, --text, or those for \
                     reading)"
                .to_owned(),
        }
    }

    fn as_json(&self) -> String {
        let Self {
            removal,
            now,
            kept,
            removed,
            recipe,
            ..
        } = self;
        let (kept_text, removed_text) = (kept.shown(), removed.shown());
        let document = |found: &Found, text: &str| json!({ "file": found.file, "row": found.row, "text": text });
        let object = json!({
            "id": removal.id,
            "removed": true,
            "kept": removal.kept,
            "similarity": removal.similarity,
            "method": removal.method,
            "threshold": removal.threshold,
            "cluster": removal.cluster,
            "recipe": recipe.name,
            "recipe_id": recipe.id().to_string(),
            "now": {
                "equal": now.equal,
                "jaccard": now.jaccard,
                "containment": now.containment,
                "cosine": now.cosine,
                "of_sequences": now.sequences,
                "shared_features": now.shared,
                "kept_features": now.kept,
                "removed_features": now.removed,
                "fits": now.fits(removal).is_some(),
            },
            "kept_document": document(kept, &kept_text),
            "removed_document": document(removed, &removed_text),
            "differences": passages(&kept_text, &removed_text),
        });
        format!("{object}\n")
    }
}

/// Present comparison of two documents under a recipe.
#[derive(Debug)]
struct Comparison {
    /// Measure to which the recorded similarity is attributed.
    measure: Verify,
    /// `true` if the texts are equal after normalisation.
    equal: bool,
    /// Distinct features of each document, and shared ones.
    kept: usize,
    removed: usize,
    shared: usize,
    jaccard: f64,
    containment: f64,
    cosine: f64,
    /// The similarity of sequences, if the measure is one and it reaches the recorded threshold.
    sequences: Option<f64>,
    /// Estimate from the smallest hashes.
    smallest: f64,
    /// `true` if the longest sentences are the same.
    same_sentences: bool,
    /// Share of equal slots of the signatures.
    slots: Option<f64>,
    /// 1 − distance/bits of the fingerprints.
    bits: Option<f64>,
}

impl Comparison {
    fn new(
        recipe: &Recipe,
        args: &ExplainArgs,
        removal: &Removal,
        kept: &Found,
        removed: &Found,
    ) -> Result<Self> {
        let analyzer = Analyzer::new(recipe).with_extras(Extras {
            characters: true,
            sentences: Some(args.sentences),
        });
        let (mut scratch_a, mut scratch_b) = (Scratch::default(), Scratch::default());
        let a = kept.analyze(&analyzer, &mut scratch_a);
        let b = removed.analyze(&analyzer, &mut scratch_b);
        let listed = |analysis: &Analysis<'_>| {
            let (mut features, mut weighted, mut smallest) = (Vec::new(), Vec::new(), Vec::new());
            analysis.features(&mut features);
            analysis.weighted_features(&mut weighted);
            smallest_features(analysis, recipe.minhash.slots as usize, &mut smallest);
            (features, weighted, smallest)
        };
        let (in_a, weighted_a, smallest_a) = listed(&a);
        let (in_b, weighted_b, smallest_b) = listed(&b);
        let measure = args.verify.unwrap_or(Verify::Jaccard);
        let unit = settings::unit_of(measure, args.unit, &args.reading)?;
        let mut comparison = Self {
            measure,
            equal: a.state != State::Empty && a.key == b.key,
            kept: in_a.len(),
            removed: in_b.len(),
            shared: verify::intersection(&in_a, &in_b),
            jaccard: verify::jaccard(&in_a, &in_b).get(),
            containment: verify::containment(&in_a, &in_b).get(),
            cosine: verify::cosine(&weighted_a, &weighted_b).get(),
            sequences: of_sequences((measure, unit), removal, (&a, &b))?,
            smallest: bottom_k_jaccard(&smallest_a, &smallest_b, recipe.minhash.slots as usize)
                .get(),
            same_sentences: a.sentences().is_some() && a.sentences() == b.sentences(),
            slots: equal_share(recipe, &a, &b),
            bits: equal_bits(recipe, &a, &b),
        };
        // A run without a check of the features can be recognised only by its numbers.
        if args.verify.is_none() && comparison.fits(removal).is_none() {
            comparison.measure = Verify::None;
        }
        Ok(comparison)
    }

    /// Returns the measure by which the record is right, if it is.
    fn fits(&self, removal: &Removal) -> Option<&'static str> {
        let (value, name) = if removal.method == "exact" || self.equal {
            (f64::from(u8::from(self.equal)), "equal after normalisation")
        } else {
            match (self.measure, &removal.method[..]) {
                (Verify::Containment, _) => (self.containment, "containment"),
                (Verify::Cosine, _) => (self.cosine, "cosine"),
                (Verify::Levenshtein, _) => (self.sequences?, "Levenshtein similarity"),
                (Verify::Indel, _) => (self.sequences?, "Indel similarity"),
                (Verify::Lcs, _) => (self.sequences?, "share of the longest common substring"),
                (Verify::None, "minhash") => (self.slots?, "share of equal MinHash slots"),
                (Verify::None, "simhash") => (self.bits?, "share of equal SimHash bits"),
                (Verify::None, "bottomk") => (self.smallest, "estimate from the smallest hashes"),
                (Verify::None, "sentences") => {
                    let same = f64::from(u8::from(self.same_sentences));
                    (same, "same longest sentences")
                }
                (Verify::Jaccard | Verify::None, _) => (self.jaccard, "Jaccard index"),
            }
        };
        ((value - removal.similarity?).abs() <= SAME).then_some(name)
    }

    fn in_words(&self) -> String {
        if self.equal {
            return "the texts are equal after normalisation".to_owned();
        }
        if self.kept == 0 || self.removed == 0 {
            return "the texts differ, and one of them is too short for a feature".to_owned();
        }
        format!(
            "{} shared, of {} in the kept and {} in the removed text: Jaccard index {:.4}, \
             containment {:.4}",
            plural(self.shared as u64, "feature", "features"),
            self.kept,
            self.removed,
            self.jaccard,
            self.containment
        ) + &self.sequences.map_or_else(String::new, |value| {
            format!(", sequence similarity {value:.4}")
        })
    }
}

/// Returns the similarity of sequences, if the measure is one and the similarity reaches the recorded
/// threshold.
fn of_sequences(
    (measure, unit): (Verify, Unit),
    removal: &Removal,
    (a, b): (&Analysis<'_>, &Analysis<'_>),
) -> Result<Option<f64>> {
    let Some(of) = settings::of_sequences(measure) else {
        return Ok(None);
    };
    let Some(threshold) = removal.threshold else {
        return Ok(None);
    };
    let threshold = Threshold::new(threshold)?;
    let found = match unit {
        Unit::Characters => of.similarity(a.characters(), b.characters(), threshold)?,
        Unit::Words => of.similarity(a.tokens(), b.tokens(), threshold)?,
    };
    Ok(found.map(|similarity| similarity.get()))
}

fn equal_share(recipe: &Recipe, a: &Analysis<'_>, b: &Analysis<'_>) -> Option<f64> {
    let hasher = MinHasher::new(&recipe.minhash, Cpu::best());
    let sign = |analysis: &Analysis<'_>| {
        let mut signature = vec![0; hasher.slots()];
        hasher.sign(analysis, &mut signature).then_some(signature)
    };
    Some(equal_slots(&sign(a)?, &sign(b)?) as f64 / hasher.slots() as f64)
}

fn equal_bits(recipe: &Recipe, a: &Analysis<'_>, b: &Analysis<'_>) -> Option<f64> {
    let hasher = SimHasher::new(&recipe.simhash, Cpu::best());
    let differing = (hasher.fingerprint(a)? ^ hasher.fingerprint(b)?).count_ones();
    let bits = recipe.simhash.bits;
    Some(f64::from(bits - differing) / f64::from(bits))
}

/// Answers for a document that is not among the removed ones.
fn not_removed(args: &ExplainArgs, options: &ReadOptions, table: &Table) -> Result<String> {
    let address = DocumentAddress::parse(&args.document);
    let is_wanted =
        |id: &str, source: &str, row: u64| id == args.document || address.is_place(source, row);
    let found = look_up(
        &args.inputs,
        options,
        settings::threads(args.threads),
        &[&is_wanted],
    )?;
    let found = found.into_iter().next().unwrap_or_default();
    let Some(found) = found.into_only(&args.document)? else {
        bail!(
            "the document {} is neither in {} nor in the inputs: give an id as it is in the table, \
             and the inputs of the dedup run with the same --id, --id-row and --format",
            visible(&args.document),
            args.removed.display()
        );
    };
    let for_it: Vec<_> = table
        .removals
        .iter()
        .map(|removal| &removal.id[..])
        .collect();
    if args.json {
        let object = json!({
            "id": args.document,
            "removed": false,
            "removed_for_it": for_it,
            "document": { "file": found.file, "row": found.row, "text": found.shown() },
        });
        return Ok(format!("{object}\n"));
    }
    let mut text = format!(
        "{} was not removed ({}).\n",
        visible(&args.document),
        visible(&found.place())
    );
    if for_it.is_empty() {
        text.push_str(
            "No document was removed as a duplicate of it either. If you expected a match, try a \
             lower --threshold, or list similar pairs with lookalike pairs.\n",
        );
    } else {
        let documents = plural(for_it.len() as u64, "document was", "documents were");
        let named = for_it[..for_it.len().min(NAMED)].join(", ");
        let more = if for_it.len() > NAMED { ", …" } else { "" };
        let _ = writeln!(
            text,
            "It was kept, and {documents} removed because of it: {}{more}\nTo see what they \
             have in common, give the id of one of these.",
            visible(&named)
        );
    }
    Ok(text)
}
