//! The page with the data in it.
//!
//! The data stands in an element `<script type="application/json">`, which no browser executes. Every `<` in it is
//! written as `\u003c`, so no text can end the element or begin a comment. Scripts and styles of the page are allowed
//! by their hashes alone.
//!
//! This module only renders the page. `ReportData::prepare_file` writes it.

use serde::Serialize;

/// The page, with [`DATA_PLACEHOLDER`] where the data belongs.
const REPORT_PAGE: &str = include_str!("../../../pages/report.html");

/// The mark in the page in whose place the data is written.
const DATA_PLACEHOLDER: &str = "__LOOKALIKE_DATA__";

/// Returns the page with data in it.
///
/// # Panics
/// If the data has a map whose keys are no strings, which JSON has not.
pub(super) fn render_page(data: &impl Serialize) -> String {
    let (head, tail) = REPORT_PAGE
        .split_once(DATA_PLACEHOLDER)
        .expect("the page has a place for the data");
    let json = serde_json::to_string(data).expect("the data can be written as JSON");
    let json = json.replace('<', "\\u003c");
    [head, &json, tail].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_the_data() {
        let hostile = "</script><script>alert(1)</script><!-- ]]> \u{2028}\0";
        let page = render_page(&serde_json::json!({ "text": hostile }));
        let plain = render_page(&serde_json::json!({ "text": "" }));
        for mark in ["<script", "</script", "<!--"] {
            assert_eq!(
                page.matches(mark).count(),
                plain.matches(mark).count(),
                "{mark}"
            );
        }
        let start = page.find("{\"text\"").unwrap();
        let end = start + page[start..].find("</script>").unwrap();
        let read: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
        assert_eq!(read["text"], hostile);
    }

    #[test]
    fn page_names_no_other_host() {
        let allowed = ["http://www.w3.org/", "https://www.w3.org/"];
        for scheme in ["http://", "https://"] {
            for (at, _) in REPORT_PAGE.match_indices(scheme) {
                let address = &REPORT_PAGE[at..REPORT_PAGE.len().min(at + 60)];
                assert!(
                    allowed.iter().any(|prefix| address.starts_with(prefix)),
                    "{address}"
                );
            }
        }
        assert!(REPORT_PAGE.contains("default-src 'none'"));
        assert!(REPORT_PAGE.len() < 600_000, "{}", REPORT_PAGE.len());
    }
}
