//! Texts of users as messages and reports show them.

/// Returns the text, or its first `most` characters and an ellipsis.
///
/// ```
/// use lookalike_options::shown_text::shorten_text;
///
/// assert_eq!(shorten_text("café", 4), "café");
/// assert_eq!(shorten_text("cafés", 4), "café…");
/// ```
pub fn shorten_text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
