//! The formats of inputs, each with one descriptor.
//!
//! Readers, writers, messages and the values of `--format` ask the descriptor. Work that a format cannot do is refused
//! unless the module that does it knows the format. So a new format is a variant and a descriptor here, a parser, and
//! the call of the parser. Its rows are then read in lines, and written byte for byte.

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputFormat {
    /// One JSON object per line.
    Jsonl,
    /// One JSON list of objects.
    Json,
    /// Delimited fields under a header.
    Csv {
        /// The byte between two fields; an ASCII character.
        delimiter: u8,
        /// `true` if fields may be quoted as in RFC 4180; otherwise a quote is literal.
        quoting: bool,
    },
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow: a file (Feather of version 2) or a stream, which their first bytes tell apart.
    Arrow,
    /// Plain text, one document per line.
    Text,
    /// One document per file: plain text, or one of [`DocumentKind`](lookalike_documents::DocumentKind).
    TextFile,
    /// Rows in memory; no file has this format.
    Memory,
}

/// Everything that readers, writers and programs ask about a format.
///
/// ```
/// use lookalike_io::source::InputFormat;
///
/// let format = InputFormat::TSV.descriptor();
/// assert_eq!((format.name, format.extensions), ("TSV", &["tsv"][..]));
/// assert_eq!(format.option.map(|option| option.name), Some("tsv"));
/// ```
#[derive(Debug)]
pub struct FormatDescriptor {
    /// Name in messages.
    pub name: &'static str,
    /// Description of an input of the format, for messages.
    pub contents: &'static str,
    /// The value of `--format`, if the format has one.
    pub option: Option<FormatOption>,
    /// Extensions of files, in lower case and without the point, that messages list.
    pub extensions: &'static [&'static str],
    /// Further extensions.
    pub other_extensions: &'static [&'static str],
}

/// A value of the option `--format`.
#[derive(Clone, Copy, Debug)]
pub struct FormatOption {
    /// Name of the value.
    pub name: &'static str,
    /// Explanation in the help of the command.
    pub help: &'static str,
}

static JSON_LINES: FormatDescriptor = FormatDescriptor {
    name: "JSONL",
    contents: "JSONL",
    option: Some(FormatOption {
        name: "jsonl",
        help: "One JSON object per line",
    }),
    // A `.json` file that begins with a bracket is a list.
    extensions: &["jsonl", "ndjson", "json"],
    other_extensions: &[],
};

static JSON_LIST: FormatDescriptor = FormatDescriptor {
    name: "a JSON list",
    contents: "a JSON list",
    option: Some(FormatOption {
        name: "json",
        help: "JSON list of objects, as in .json files that begin with [",
    }),
    extensions: &[],
    other_extensions: &[],
};

static COMMA_SEPARATED: FormatDescriptor = FormatDescriptor {
    name: "CSV",
    contents: "CSV",
    option: Some(FormatOption {
        name: "csv",
        help: "Comma-separated values with quoting",
    }),
    extensions: &["csv"],
    other_extensions: &[],
};

static TAB_SEPARATED: FormatDescriptor = FormatDescriptor {
    name: "TSV",
    contents: "TSV",
    option: Some(FormatOption {
        name: "tsv",
        help: "Tab-separated values without quoting",
    }),
    extensions: &["tsv"],
    other_extensions: &["tab"],
};

static PARQUET_FILE: FormatDescriptor = FormatDescriptor {
    name: "Parquet",
    contents: "Parquet",
    option: Some(FormatOption {
        name: "parquet",
        help: "Apache Parquet",
    }),
    extensions: &["parquet"],
    other_extensions: &["pq"],
};

static ARROW_FILE: FormatDescriptor = FormatDescriptor {
    name: "Arrow",
    contents: "Arrow",
    option: Some(FormatOption {
        name: "arrow",
        help: "Apache Arrow: a file (Feather of version 2) or a stream",
    }),
    extensions: &["arrow", "feather"],
    other_extensions: &["ipc", "arrows"],
};

static TEXT_LINES: FormatDescriptor = FormatDescriptor {
    name: "plain text",
    contents: "text, a document in each line",
    option: Some(FormatOption {
        name: "text",
        help: "Plain text, one document per line",
    }),
    extensions: &["txt"],
    other_extensions: &["text"],
};

static TEXT_FILE: FormatDescriptor = FormatDescriptor {
    name: "plain text",
    contents: "a document in each file",
    option: None,
    extensions: &[],
    other_extensions: &[],
};

static MEMORY_TABLE: FormatDescriptor = FormatDescriptor {
    name: "a table in memory",
    contents: "a table in memory",
    option: None,
    extensions: &[],
    other_extensions: &[],
};

impl InputFormat {
    /// Comma-separated values with quoting.
    pub const CSV: Self = Self::Csv {
        delimiter: b',',
        quoting: true,
    };
    /// Tab-separated values without quoting.
    pub const TSV: Self = Self::Csv {
        delimiter: b'\t',
        quoting: false,
    };

    /// All formats of files, in the order of the values of `--format` and of the extensions in messages.
    pub const ALL: [Self; 8] = [
        Self::Jsonl,
        Self::Json,
        Self::CSV,
        Self::TSV,
        Self::Parquet,
        Self::Arrow,
        Self::Text,
        Self::TextFile,
    ];

    /// Returns what there is to know about the format.
    pub fn descriptor(self) -> &'static FormatDescriptor {
        match self {
            Self::Jsonl => &JSON_LINES,
            Self::Json => &JSON_LIST,
            Self::Csv {
                delimiter: b'\t', ..
            } => &TAB_SEPARATED,
            Self::Csv { .. } => &COMMA_SEPARATED,
            Self::Parquet => &PARQUET_FILE,
            Self::Arrow => &ARROW_FILE,
            Self::Text => &TEXT_LINES,
            Self::TextFile => &TEXT_FILE,
            Self::Memory => &MEMORY_TABLE,
        }
    }

    /// Returns the format of files with an extension, in lower case.
    pub(super) fn from_extension(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| {
            let described = format.descriptor();
            described.extensions.contains(&extension)
                || described.other_extensions.contains(&extension)
        })
    }

    /// Returns the extensions that messages list, each with its point.
    pub(super) fn listed_extensions() -> impl Iterator<Item = String> {
        let all = Self::ALL.into_iter();
        all.flat_map(|format| format.descriptor().extensions)
            .map(|extension| format!(".{extension}"))
    }

    /// Returns the format with another byte between two fields, if it has such a byte.
    #[must_use]
    pub(super) fn with_delimiter(self, delimiter: u8) -> Self {
        match self {
            Self::Csv { quoting, .. } => Self::Csv { delimiter, quoting },
            other => other,
        }
    }

    /// Returns `true` if rows are stored column by column.
    pub fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// Returns `true` if rows are JSON objects.
    pub fn is_json(self) -> bool {
        matches!(self, Self::Jsonl | Self::Json)
    }

    /// Returns `true` if rows are plain text, which has no fields.
    pub fn is_plain_text(self) -> bool {
        matches!(self, Self::Text | Self::TextFile)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// An extension or a value of `--format` stands for one format.
    #[test]
    fn names_and_extensions_are_distinct() {
        let (mut options, mut extensions) = (BTreeSet::new(), BTreeSet::new());
        for format in InputFormat::ALL {
            let described = format.descriptor();
            if let Some(option) = described.option {
                assert!(options.insert(option.name), "{}", option.name);
            }
            let all = described
                .extensions
                .iter()
                .chain(described.other_extensions);
            for extension in all {
                assert!(extensions.insert(extension), "{extension}");
                assert_eq!(InputFormat::from_extension(extension), Some(format));
            }
        }
        assert_eq!(options.len(), 7);
        assert_eq!(InputFormat::from_extension("docx"), None);
    }
}
