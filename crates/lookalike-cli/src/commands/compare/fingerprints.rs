//! Two fingerprints compared, without texts: as given, or from given hashes and weights.

use anyhow::{Result, anyhow, bail};
use lookalike_comparison::comparison::FingerprintShape;
use lookalike_comparison::worked_examples::WeightedHashes;
use serde_json::json;

use super::{CompareArgs, text_report};
use crate::CommandOutcome;
use crate::commands::shared::fingerprints::{NotationArg, notation_from_arg};
use crate::commands::shared::weighted_hashes::render_votes;
use crate::language::{CountedNoun, NounCount, messages};
use crate::output::{OutputPrinter, TextTone};

pub(super) fn compare_fingerprints(args: &CompareArgs) -> Result<CommandOutcome> {
    let shape = shape_of_bits(args, common_bits(args)?)?;
    let digits = notation_from_arg(args.digits);
    let read = |text: &str| {
        let read = digits
            .parse_fingerprint(text, shape.bits)
            .map_err(|reason| anyhow!(reason))?;
        read.ok_or_else(|| anyhow!("'-' is a text without a fingerprint: give two fingerprints"))
    };
    let both = (read(&args.a)?, read(&args.b)?);
    let printer = OutputPrinter::new(false);
    if args.json {
        let side = |print| json!({ "bits": shape.bit_digits(print), "fingerprint": shape.format_hex(print) });
        let sides = [side(both.0), side(both.1)];
        let told = shape.verdict_as_json(both.0, both.1, sides);
        printer.write_data(&format!("{told}\n"))?;
    } else {
        printer.write_data(&render_fingerprints(shape, both, &printer))?;
    }
    Ok(CommandOutcome::Done)
}

/// Compares two documents whose features have given hashes and weights.
pub(super) fn compare_weighted_hashes(args: &CompareArgs) -> Result<CommandOutcome> {
    let read = |letter: &str, text: &str| {
        WeightedHashes::parse_document(text).map_err(|reason| anyhow!("{letter}: {reason}"))
    };
    let (a, b) = (read("A", &args.a)?, read("B", &args.b)?);
    a.check_comparable(&b).map_err(|reason| anyhow!(reason))?;
    let shape = shape_of_bits(args, a.bits)?;
    let both = (a.fingerprint, b.fingerprint);
    let printer = OutputPrinter::new(false);
    if args.json {
        let told = shape.verdict_as_json(both.0, both.1, [a.to_json(), b.to_json()]);
        printer.write_data(&format!("{told}\n"))?;
    } else {
        let text = render_votes(&[("A", &a), ("B", &b)], &printer);
        let verdict = render_fingerprints(shape, both, &printer);
        printer.write_data(&format!("{text}\n{verdict}"))?;
    }
    Ok(CommandOutcome::Done)
}

/// Returns the format of fingerprints with this number of bits, and the distance of the verdict.
fn shape_of_bits(args: &CompareArgs, bits: u32) -> Result<FingerprintShape> {
    FingerprintShape::with_distance(bits, args.rule.distance)
        .map_err(|reason| anyhow!("--distance {reason}"))
}

/// Returns both fingerprints block by block, and the verdict.
fn render_fingerprints(
    shape: FingerprintShape,
    both: (u128, u128),
    printer: &OutputPrinter,
) -> String {
    let (heading, rows) = text_report::fingerprints(shape, both.0, both.1);
    let distance = (both.0 ^ both.1).count_ones();
    let differing = NounCount(distance.into(), CountedNoun::Bit);
    let verdict = if distance <= shape.distance {
        messages::they_match(&messages::differ_at_most(differing, shape.distance))
    } else {
        messages::they_do_not_match(&messages::differ_more(differing, shape.distance))
    };
    let [heading, verdict] = [heading, verdict].map(|text| {
        printer
            .paint_for_output(TextTone::Heading, &text)
            .to_string()
    });
    format!("{heading}\n{rows}\n{verdict}\n")
}

/// Returns the number of bits for the digits of both fingerprints. Decimal ones have 64 bits, or 128 if one
/// is larger.
fn common_bits(args: &CompareArgs) -> Result<u32> {
    let digits = |text: &str| text.strip_prefix("0x").unwrap_or(text).len();
    let most = digits(&args.a).max(digits(&args.b)).max(1);
    let bits = match args.digits {
        Some(NotationArg::Binary) => most,
        None | Some(NotationArg::Hex) => 4 * most,
        Some(NotationArg::Decimal) => {
            let is_wide = |text: &str| text.parse::<u128>().is_ok_and(|value| value >> 64 != 0);
            if is_wide(&args.a) || is_wide(&args.b) {
                128
            } else {
                64
            }
        }
    };
    let most = u128::BITS;
    match u32::try_from(bits) {
        Ok(bits) if bits <= most => Ok(bits),
        _ => bail!("a fingerprint has at most {most} bits, and {bits} are given: check --digits"),
    }
}
