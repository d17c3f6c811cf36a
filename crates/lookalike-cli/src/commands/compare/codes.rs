//! Two fingerprints compared, without texts.

use anyhow::{Result, anyhow, bail};
use lookalike::plan::Settings;
use serde_json::json;

use super::words;
use crate::Outcome;
use crate::args::{CompareArgs, Notation};
use crate::comparison::Shape;
use crate::output::{Printer, Tone, plural};
use crate::settings;

pub(super) fn run(args: &CompareArgs) -> Result<Outcome> {
    let bits = bits(args)?;
    let usual = Settings::default().distance.min(bits - 1);
    let shape = Shape {
        bits,
        distance: args.rule.distance.unwrap_or(usual),
    };
    if shape.distance >= bits {
        bail!(
            "--distance is {}: give less than the {bits} bits of the fingerprints",
            shape.distance
        );
    }
    let digits = settings::digits(args.digits);
    let read = |text: &str| {
        let read = digits.read(text, bits).map_err(|reason| anyhow!(reason))?;
        read.ok_or_else(|| anyhow!("'-' is a text without a fingerprint: give two fingerprints"))
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let distance = (a ^ b).count_ones();
    let matches = distance <= shape.distance;
    let printer = Printer::new(false);
    if args.json {
        let side = |print| json!({ "bits": shape.digits(print), "fingerprint": shape.hex(print) });
        let told = json!({
            "a": side(a),
            "b": side(b),
            "distance": distance,
            "blocks": shape.blocks_as_json((a, b)),
            "match": matches,
        });
        printer.data(&format!("{told}\n"))?;
        return Ok(Outcome::Done);
    }
    let (heading, rows) = words::fingerprints(shape, (a, b));
    let differing = plural(distance.into(), "bit", "bits");
    let (said, than) = match matches {
        true => ("They match", "at most"),
        false => ("They do not match", "more than"),
    };
    let verdict = format!(
        "{said}: they differ in {differing}, {than} the distance {}.",
        shape.distance
    );
    let [heading, verdict] =
        [heading, verdict].map(|text| printer.in_output(Tone::Heading, &text).to_string());
    printer.data(&format!("{heading}\n{rows}\n{verdict}\n"))?;
    Ok(Outcome::Done)
}

/// Returns the number of bits for the digits of both fingerprints. Decimal ones have 64 bits, or 128 if one
/// is larger.
fn bits(args: &CompareArgs) -> Result<u32> {
    let digits = |text: &str| text.strip_prefix("0x").unwrap_or(text).len();
    let most = digits(&args.a).max(digits(&args.b)).max(1);
    let bits = match args.digits {
        Some(Notation::Binary) => most,
        None | Some(Notation::Hex) => 4 * most,
        Some(Notation::Decimal) => {
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
