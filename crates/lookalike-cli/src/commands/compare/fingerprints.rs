//! Two fingerprints compared, without texts.

use anyhow::{Result, anyhow, bail};
use lookalike::plan::MatchSettings;
use lookalike_batch::comparison::FingerprintShape;
use serde_json::json;

use super::{CompareArgs, text_report};
use crate::CommandOutcome;
use crate::commands::shared::fingerprints::{NotationArg, notation_from_arg};
use crate::output::{OutputPrinter, TextTone, format_plural};

pub(super) fn compare_fingerprints(args: &CompareArgs) -> Result<CommandOutcome> {
    let bits = common_bits(args)?;
    let usual = MatchSettings::default().distance.min(bits - 1);
    let shape = FingerprintShape {
        bits,
        distance: args.rule.distance.unwrap_or(usual),
    };
    if shape.distance >= bits {
        bail!(
            "--distance is {}: give less than the {bits} bits of the fingerprints",
            shape.distance
        );
    }
    let digits = notation_from_arg(args.digits);
    let read = |text: &str| {
        let read = digits
            .parse_fingerprint(text, bits)
            .map_err(|reason| anyhow!(reason))?;
        read.ok_or_else(|| anyhow!("'-' is a text without a fingerprint: give two fingerprints"))
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let distance = (a ^ b).count_ones();
    let matches = distance <= shape.distance;
    let printer = OutputPrinter::new(false);
    if args.json {
        let side = |print| json!({ "bits": shape.bit_digits(print), "fingerprint": shape.format_hex(print) });
        let told = json!({
            "a": side(a),
            "b": side(b),
            "distance": distance,
            "blocks": shape.blocks_as_json((a, b)),
            "match": matches,
        });
        printer.write_data(&format!("{told}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let (heading, rows) = text_report::fingerprints(shape, (a, b));
    let differing = format_plural(distance.into(), "bit", "bits");
    let (said, than) = match matches {
        true => ("They match", "at most"),
        false => ("They do not match", "more than"),
    };
    let verdict = format!(
        "{said}: they differ in {differing}, {than} the distance {}.",
        shape.distance
    );
    let [heading, verdict] = [heading, verdict].map(|text| {
        printer
            .paint_for_output(TextTone::Heading, &text)
            .to_string()
    });
    printer.write_data(&format!("{heading}\n{rows}\n{verdict}\n"))?;
    Ok(CommandOutcome::Done)
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
