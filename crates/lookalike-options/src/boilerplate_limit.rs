//! The frequency from which a run of words counts as boilerplate: the option `--max-documents` of passages.

/// In how many documents a gram may be before it counts as boilerplate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BoilerplateLimit {
    /// 20 documents, or one in a thousand if that is more.
    #[default]
    Usual,
    /// This many documents, from 1.
    Documents(u32),
    /// This share of the documents, above 0 and at most 1; at least one document.
    Share(f64),
    /// No limit.
    Unlimited,
}

impl BoilerplateLimit {
    /// Returns the largest number of documents of a corpus that may share a gram; `None` without a limit.
    pub fn max_documents(self, documents: usize) -> Option<u32> {
        let share = |share: f64| (documents as f64 * share).clamp(1.0, f64::from(u32::MAX)) as u32;
        match self {
            Self::Usual => Some(share(0.001).max(20)),
            Self::Documents(most) => Some(most),
            Self::Share(part) => Some(share(part)),
            Self::Unlimited => None,
        }
    }
}

/// Parses the value of `--max-documents`: a number of documents, a percentage such as `0.5%`, or `none`.
///
/// # Errors
/// If the text is none of these. The message is a phrase that can follow the text.
pub fn parse_boilerplate_limit(text: &str) -> Result<BoilerplateLimit, String> {
    let message = "give a number of documents from 1, a percentage above 0 and up to 100 such as 0.5%, or none";
    if text == "none" {
        return Ok(BoilerplateLimit::Unlimited);
    }
    let limit = match text.strip_suffix('%') {
        Some(percent) => percent
            .parse()
            .ok()
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(|percent: f64| BoilerplateLimit::Share(percent / 100.0)),
        None => text
            .parse()
            .ok()
            .filter(|most| *most > 0)
            .map(BoilerplateLimit::Documents),
    };
    limit.ok_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boilerplate_limits_parse() {
        let most = |text, documents| {
            parse_boilerplate_limit(text).map(|limit| limit.max_documents(documents))
        };
        assert_eq!(most("none", 1000), Ok(None));
        assert_eq!(most("7", 1000), Ok(Some(7)));
        assert_eq!(most("0.5%", 1000), Ok(Some(5)));
        assert_eq!(most("0.5%", 10), Ok(Some(1)));
        assert_eq!(BoilerplateLimit::Usual.max_documents(100), Some(20));
        assert_eq!(BoilerplateLimit::Usual.max_documents(50_000), Some(50));
        for text in ["", "0", "-1", "0%", "101%", "x", "1.5", "nan%"] {
            assert!(most(text, 1).is_err(), "{text}");
        }
    }
}
