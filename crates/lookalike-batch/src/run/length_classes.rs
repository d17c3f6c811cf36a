//! Length classes of documents, for reports.

/// Largest length of each class in tokens, and the name of the class.
const LENGTH_CLASSES: [(usize, &str); 5] = [
    (15, "1-15"),
    (50, "16-50"),
    (300, "51-300"),
    (2000, "301-2000"),
    (usize::MAX, "2001-"),
];

/// Returns the names of all classes, from short to long.
pub(super) fn class_names() -> impl Iterator<Item = &'static str> {
    LENGTH_CLASSES.iter().map(|&(_, name)| name)
}

/// Returns the class of a length in tokens.
pub(super) fn length_class(length: usize) -> &'static str {
    let class = LENGTH_CLASSES.iter().find(|&&(most, _)| length <= most);
    class.map_or("", |&(_, name)| name)
}
