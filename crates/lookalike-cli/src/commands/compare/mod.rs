//! `lookalike compare`: two texts through every step.

mod codes;
mod page;
mod sketches;
mod words;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use lookalike::compare::Comparison;
use lookalike_batch::source::{Format, ReadOptions};

use super::documents::{
    Description, Found, Matches, lock, look_up, parse_place, unless_known, visit_rows,
};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::comparison::{Case, Side};
use crate::output::{Printer, ReplacedFiles, visible};
use crate::settings;

pub(crate) fn run(args: &CompareArgs) -> Result<Outcome> {
    if args.fingerprints {
        return codes::run(args);
    }
    let (recipe, chosen, _) = settings::plan_of(&args.rule, &args.reading)?;
    let options = settings::read_options(args.input_format.format, &args.reading)?;
    if options.fields.features.is_some() {
        bail!("compare shows texts, and --features has no texts: leave it out");
    }
    let [a, b] = [&args.a, &args.b].map(|text| read_side(text, args, &options));
    let (a, b) = (a?, b?);
    let compared = Comparison::new(&recipe, chosen, &a.text, &b.text)?;
    let case = Case {
        recipe: &recipe,
        a,
        b,
        compared,
        top: args.top,
        distance: chosen.distance,
    };
    let replaced = ReplacedFiles::find([args.html.as_ref()]);
    if let Some(path) = &args.html {
        std::fs::write(path, page::page(&case))
            .map_err(|cause| anyhow!("cannot write the page {}: {cause}", path.display()))?;
    }
    let printer = Printer::new(false);
    let text = if args.json {
        format!("{}\n", case.as_json())
    } else {
        words::in_words(&case, &printer)
    };
    printer.data(&text)?;
    replaced.tell(&printer);
    Ok(Outcome::Done)
}

/// Reads the text that an argument names.
fn read_side(named: &str, args: &CompareArgs, options: &ReadOptions) -> Result<Side> {
    if args.literal {
        return Ok(Side {
            place: "as given".to_owned(),
            text: named.to_owned(),
        });
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
        return Ok(Side {
            place: "standard input".to_owned(),
            text: text.into_owned(),
        });
    }
    let found = if Path::new(named).exists() {
        only_document(named, args, options)?
    } else {
        named_document(named, args, options)?
    };
    Ok(Side {
        place: found.place(),
        text: found.text,
    })
}

/// Reads the only document of a file.
fn only_document(path: &str, args: &CompareArgs, options: &ReadOptions) -> Result<Found> {
    let format = options
        .format
        .or_else(|| unless_known(Path::new(path), Format::Text));
    let options = ReadOptions {
        format,
        document_per_file: options.document_per_file || format == Some(Format::Text),
        ..options.clone()
    };
    let inputs = lookalike_batch::source::Inputs::open(&[PathBuf::from(path)], &options)?;
    let found = std::sync::Mutex::new(Vec::new());
    let bad = std::sync::Mutex::new(None);
    visit_rows(&inputs, settings::threads(args.threads), &|row| match row {
        Ok(row) => {
            let mut found = lock(&found);
            found.push(Found::new(row, &inputs));
            found.len() < 2
        }
        Err(reason) => {
            lock(&bad).get_or_insert(reason);
            false
        }
    })?;
    let found = std::mem::take(&mut *lock(&found));
    if let Some(reason) = lock(&bad).take() {
        bail!("the text cannot be read: {reason}");
    }
    match <[Found; 1]>::try_from(found) {
        Ok([found]) => Ok(found),
        Err(found) if found.is_empty() => bail!("{path} has no document"),
        Err(_) => bail!("{path} has several documents: name one as {path}#ID or {path}:ROW"),
    }
}

/// Reads the document that FILE#ID or FILE:ROW names. Both parts may contain `#`; the shortest file name that
/// exists is taken.
fn named_document(named: &str, args: &CompareArgs, options: &ReadOptions) -> Result<Found> {
    let place = named.match_indices('#').map(|(at, _)| at);
    let file = place
        .map(|at| (&named[..at], &named[at + 1..]))
        .find(|(file, _)| Path::new(file).exists());
    if let Some((file, wanted)) = file {
        let is_wanted = |id: &str, _: &str, _: u64| id == wanted;
        return match document_of(file, args, options, &is_wanted)?.into_only(wanted)? {
            Some(found) => Ok(found),
            None => bail!(
                "{file} has no document with the id '{}': check --id, or use row numbers with \
                 --id-row",
                visible(wanted)
            ),
        };
    }
    match parse_place(named).filter(|(file, _)| Path::new(file).exists()) {
        Some((file, wanted)) => {
            let is_wanted = |_: &str, _: &str, row: u64| row == wanted;
            let found = document_of(file, args, options, &is_wanted)?.into_first();
            found.ok_or_else(|| anyhow!("{file} has no document in row {wanted}"))
        }
        None => bail!(
            "there is no file {}: give FILE, FILE#ID, FILE:ROW or, with --literal, the text itself",
            visible(named)
        ),
    }
}

/// Finds the documents of a file that fit a description.
fn document_of(
    file: &str,
    args: &CompareArgs,
    options: &ReadOptions,
    is_wanted: Description<'_>,
) -> Result<Matches> {
    let options = ReadOptions {
        format: options
            .format
            .or_else(|| unless_known(Path::new(file), Format::Text)),
        ..options.clone()
    };
    let paths = [PathBuf::from(file)];
    let found = look_up(
        &paths,
        &options,
        settings::threads(args.threads),
        &[is_wanted],
    )?;
    Ok(found.into_iter().next().unwrap_or_default())
}
