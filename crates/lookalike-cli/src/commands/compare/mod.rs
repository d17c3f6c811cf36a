//! `lookalike compare`: two texts through every step.

mod args;
mod fingerprints;
mod html_page;
mod sketches;
mod text_report;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use lookalike::compare::Comparison;
use lookalike::passages::PassageSettings;
use lookalike_comparison::comparison::{ComparedSide, ComparisonCase, GIVEN_TEXT};
use lookalike_comparison::shared_passages::SharedPassages;
use lookalike_documents::{DocumentKind, ExtractedText};
use lookalike_io::source::{InputFormat, ParseScratch, ReadOptions, RowPlace};

pub(crate) use self::args::CompareArgs;
use super::shared::documents::{
    DescribedDocuments, DocumentDescription, FoundDocument, lock_ignoring_poison,
    look_up_documents, parse_place, unless_known, visit_rows,
};
use super::shared::inputs::{document_file_options, read_options};
use super::shared::matching::recipe_and_plan;
use super::shared::running::thread_count;
use crate::CommandOutcome;
use crate::output::{OutputPrinter, ReplacedFiles, escape_control};

/// Place of a text of standard input.
const STANDARD_INPUT: &str = "standard input";

pub(crate) fn run_compare(args: &CompareArgs) -> Result<CommandOutcome> {
    if args.fingerprints {
        return fingerprints::compare_fingerprints(args);
    }
    if args.hashes {
        return fingerprints::compare_weighted_hashes(args);
    }
    with_comparison(args, |case| {
        let replaced = ReplacedFiles::find_existing(args.html.as_deref());
        if let Some(path) = &args.html {
            std::fs::write(path, html_page::render_page(case)?)
                .map_err(|cause| anyhow!("cannot write the page {}: {cause}", path.display()))?;
        }
        let printer = OutputPrinter::new(false);
        let text = if args.json {
            format!("{}\n", case.to_json())
        } else {
            text_report::render_report(case, &printer)
        };
        printer.write_data(&text)?;
        replaced.report_replaced(&printer);
        Ok(CommandOutcome::Done)
    })
}

/// Compares the texts of the arguments, and passes the comparison on.
///
/// # Errors
/// If a text cannot be read, the arguments contradict each other, or the comparison is too costly; also the errors of
/// `show_case`.
pub(crate) fn with_comparison<T>(
    args: &CompareArgs,
    show_case: impl FnOnce(&ComparisonCase<'_>) -> Result<T>,
) -> Result<T> {
    let (recipe, chosen, _) = recipe_and_plan(&args.rule, &args.reading)?;
    let recipe = args.forms.apply_to(recipe)?;
    let options = read_options(&args.reading)?;
    if options.fields.features.is_some() {
        bail!("compare shows texts, and --features has no texts: leave it out");
    }
    let [a, b] = [&args.a, &args.b].map(|text| read_compared_side(text, args, &options));
    let (a, b) = (a?, b?);
    let compared = Comparison::new(&recipe, chosen, &a.extracted.text, &b.extracted.text)?;
    let both = [&a.extracted, &b.extracted];
    let passages = PassageSettings::default().with_reworded(args.reworded);
    let shared = SharedPassages::find_in_documents(&recipe, both, passages)?;
    let [a, b] = [a, b].map(|side| ComparedSide {
        place: side.place,
        text: side.extracted.text,
    });
    let case = ComparisonCase {
        recipe: &recipe,
        a,
        b,
        compared,
        shared,
        top: args.top,
        distance: chosen.distance,
    };
    show_case(&case)
}

/// A text that an argument names, with the places of its characters.
struct NamedText {
    place: String,
    extracted: ExtractedText,
}

impl NamedText {
    fn from_plain_text(place: String, text: String) -> Self {
        Self {
            place,
            extracted: ExtractedText::from_plain_text(text),
        }
    }
}

/// Reads the text that an argument names.
fn read_compared_side(named: &str, args: &CompareArgs, options: &ReadOptions) -> Result<NamedText> {
    if args.literal {
        return Ok(NamedText::from_plain_text(
            GIVEN_TEXT.to_owned(),
            named.to_owned(),
        ));
    }
    if named == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes)?;
        let (text, _, malformed) = options.encoding.decode(&bytes);
        if malformed && !args.reading.lossy {
            bail!(
                "standard input is not valid {}: give its --encoding, or --lossy",
                options.encoding.name()
            );
        }
        return Ok(NamedText::from_plain_text(
            STANDARD_INPUT.to_owned(),
            text.into_owned(),
        ));
    }
    let is_whole_url = lookalike_io::is_url(Path::new(named))
        && !named.contains('#')
        && parse_place(named).is_none();
    if Path::new(named).exists() || is_whole_url {
        return only_document(named, args, options);
    }
    let found = named_document(named, args, options)?;
    Ok(NamedText::from_plain_text(
        found.display_place(),
        found.text,
    ))
}

/// Reads the only document of a file.
fn only_document(path: &str, args: &CompareArgs, options: &ReadOptions) -> Result<NamedText> {
    let usual = || match DocumentKind::from_path(Path::new(path)) {
        Ok(_) => None,
        Err(_) => unless_known(Path::new(path), InputFormat::Text),
    };
    let format = options.format.or_else(usual);
    let options = ReadOptions {
        format,
        text_documents: true,
        document_files: Some(document_file_options()),
        document_per_file: options.document_per_file || format == Some(InputFormat::Text),
        ..options.clone()
    };
    let inputs = lookalike_io::source::InputSet::open_paths(&[PathBuf::from(path)], &options)?;
    let found = std::sync::Mutex::new(Vec::new());
    let bad = std::sync::Mutex::new(None);
    visit_rows(&inputs, thread_count(args.threads), &|row| match row {
        Ok(row) => {
            let mut found = lock_ignoring_poison(&found);
            found.push((FoundDocument::new(row, &inputs).display_place(), row.place));
            found.len() < 2
        }
        Err(reason) => {
            lock_ignoring_poison(&bad).get_or_insert(reason);
            false
        }
    })?;
    let found = std::mem::take(&mut *lock_ignoring_poison(&found));
    if let Some(reason) = lock_ignoring_poison(&bad).take() {
        bail!("the text cannot be read: {reason}");
    }
    match <[(String, RowPlace); 1]>::try_from(found) {
        Ok([(place, row)]) => Ok(NamedText {
            place,
            extracted: inputs.reread_document(row, &mut ParseScratch::default())?,
        }),
        Err(found) if found.is_empty() => bail!("{path} has no document"),
        Err(_) => bail!("{path} has several documents: name one as {path}#ID or {path}:ROW"),
    }
}

/// Reads the document that FILE#ID or FILE:ROW names. Both parts may contain `#`; the shortest file name that
/// exists is taken.
fn named_document(named: &str, args: &CompareArgs, options: &ReadOptions) -> Result<FoundDocument> {
    let place = named.match_indices('#').map(|(at, _)| at);
    let file = place
        .map(|at| (&named[..at], &named[at + 1..]))
        .find(|(file, _)| may_exist(file));
    if let Some((file, wanted)) = file {
        let is_wanted = |id: &str, _: &str, _: u64| id == wanted;
        return match document_of(file, args, options, &is_wanted)?.into_only_document(wanted)? {
            Some(found) => Ok(found),
            None => bail!(
                "{file} has no document with the id '{}': check --id, or use row numbers with \
                 --id-row",
                escape_control(wanted)
            ),
        };
    }
    match parse_place(named).filter(|(file, _)| may_exist(file)) {
        Some((file, wanted)) => {
            let is_wanted = |_: &str, _: &str, row: u64| row == wanted;
            let found = document_of(file, args, options, &is_wanted)?.into_first();
            found.ok_or_else(|| anyhow!("{file} has no document in row {wanted}"))
        }
        None => bail!(
            "there is no file {}: give FILE, FILE#ID, FILE:ROW or, with --literal, the text itself",
            escape_control(named)
        ),
    }
}

/// Returns `true` for a file that exists, and for every URL.
fn may_exist(file: &str) -> bool {
    Path::new(file).exists() || lookalike_io::is_url(Path::new(file))
}

/// Finds the documents of a file that fit a description.
fn document_of(
    file: &str,
    args: &CompareArgs,
    options: &ReadOptions,
    is_wanted: DocumentDescription<'_>,
) -> Result<DescribedDocuments> {
    let options = ReadOptions {
        format: options
            .format
            .or_else(|| unless_known(Path::new(file), InputFormat::Text)),
        ..options.clone()
    };
    let paths = [PathBuf::from(file)];
    let found = look_up_documents(&paths, &options, thread_count(args.threads), &[is_wanted])?;
    Ok(found.into_iter().next().unwrap_or_default())
}
