//! The language of what people read in the terminal: English or Chinese.
//!
//! [`messages`] is the catalogue. Each message has both languages and typed arguments, so a missing translation or
//! argument does not compile. [`engine_phrases`] has the phrases and errors that other crates write in English, and
//! [`help_texts`] the texts of the help. JSON, tables, manual pages and the reference are the same in every language.

pub(crate) mod engine_phrases;
pub(crate) mod help_texts;
pub(crate) mod messages;

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use lookalike_system::locale_of_user;

use crate::output::format_count;

/// A language of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[repr(u8)]
pub(crate) enum MessageLanguage {
    /// English
    #[default]
    #[value(name = "en")]
    English,
    /// Chinese (simplified)
    #[value(name = "zh")]
    Chinese,
}

/// The language of this process.
static PROCESS_LANGUAGE: AtomicU8 = AtomicU8::new(MessageLanguage::English as u8);

/// `true` if an option states that language.
static IS_STATED: AtomicBool = AtomicBool::new(false);

impl MessageLanguage {
    /// Makes this the language of all messages from now on.
    pub(crate) fn apply(self) {
        PROCESS_LANGUAGE.store(self as u8, Ordering::Relaxed);
    }

    /// Makes this the language of all messages, and of pages, which otherwise may follow the browser.
    pub(crate) fn apply_as_stated(self) {
        IS_STATED.store(true, Ordering::Relaxed);
        self.apply();
    }

    /// Returns the language that an option states.
    pub(crate) fn stated() -> Option<Self> {
        IS_STATED.load(Ordering::Relaxed).then(Self::current)
    }

    /// Returns the name of the language in tags, such as `zh`.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    pub(crate) fn current() -> Self {
        if PROCESS_LANGUAGE.load(Ordering::Relaxed) == Self::Chinese as u8 {
            Self::Chinese
        } else {
            Self::English
        }
    }

    /// Returns the language of the environment: that of the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is not
    /// empty. Everything but Chinese is English.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let values = names.into_iter().filter_map(variable);
        let stated = values.map(|value| value.to_string_lossy().into_owned());
        match stated.into_iter().find(|value| !value.is_empty()) {
            Some(locale) if is_chinese(&locale) => Self::Chinese,
            _ => Self::English,
        }
    }
}

/// Returns a variable of the environment that names a locale. Where the environment has no `LANG`, the locale that the user
/// has chosen in the system stands for it, because Windows has no such variables.
pub(crate) fn read_locale_variable(name: &str) -> Option<OsString> {
    let chosen = || (name == "LANG").then(locale_of_user).flatten();
    std::env::var_os(name).or_else(|| chosen().map(OsString::from))
}

/// Returns `true` for a locale such as `zh`, `zh_CN.UTF-8` or `zh-Hans`.
fn is_chinese(locale: &str) -> bool {
    let rest = locale.strip_prefix("zh");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '-', '.', '@']))
}

/// A thing that messages count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedNoun {
    BadRow,
    Block,
    Document,
    EditedCopy,
    FurtherDifference,
    Group,
    KeptDocument,
    Other,
    Pair,
    Passage,
    Query,
    RemovedDocument,
    Row,
    SampledDocument,
    Setting,
    SourcePair,
    Step,
    TextUnit,
    Text,
    LabelledText,
    CorpusDocument,
    RepeatingRow,
    ContradictoryPair,
    DocumentWithId,
    RowWithId,
    MoreBadRow,
    SkippedFile,
    FurtherFile,
    MissingId,
    Finding,
    Partition,
    Cluster,
    Byte,
    Feature,
    Word,
    WordRun,
    Thread,
    IndexSegment,
    File,
    Input,
    Character,
    /// A character of a script without spaces, where it counts as a word.
    WordCharacter,
    Bit,
    BenchmarkItem,
    ItemFinding,
    EmptiedDocument,
    RowWithoutItem,
    FurtherBenchmark,
    LogRecord,
    LogEntry,
}

/// A number of things: `1 document`, `2 documents`, `2 篇文档`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NounCount(pub(crate) u64, pub(crate) CountedNoun);

impl CountedNoun {
    /// Returns one and many of it in English, and the classifier with the noun in Chinese.
    fn forms(self) -> [&'static str; 3] {
        match self {
            Self::BadRow => ["bad row", "bad rows", "个坏行"],
            Self::LogRecord => ["record", "records", "条记录"],
            Self::LogEntry => ["entry", "entries", "项"],
            Self::Block => ["block", "blocks", "块"],
            Self::Document => ["document", "documents", "篇文档"],
            Self::EditedCopy => ["edited copy", "edited copies", "份改动副本"],
            Self::FurtherDifference => ["further difference", "further differences", "处差异"],
            Self::Group => ["group", "groups", "组"],
            Self::KeptDocument => ["kept document", "kept documents", "篇保留的文档"],
            Self::Other => ["other", "others", "个"],
            Self::Pair => ["pair", "pairs", "对"],
            Self::Passage => ["passage", "passages", "处"],
            Self::Query => ["query", "queries", "个查询"],
            Self::RemovedDocument => ["document was", "documents were", "篇文档"],
            Self::Row => ["row", "rows", "行"],
            Self::SourcePair => [
                "pair of a document and a source",
                "pairs of a document and a source",
                "对文档与来源",
            ],
            Self::Setting => ["setting", "settings", "组设置"],
            Self::Step => ["step", "steps", "步"],
            Self::TextUnit => ["unit of texts", "units of texts", "组文本"],
            Self::Text => ["text", "texts", "篇文本"],
            Self::LabelledText => ["labelled text", "labelled texts", "篇标注文本"],
            Self::CorpusDocument => [
                "document of the corpus",
                "documents of the corpus",
                "篇语料文档",
            ],
            Self::RepeatingRow => ["row repeats", "rows repeat", "行重复"],
            Self::ContradictoryPair => ["pair has", "pairs have", "对的标注互相矛盾"],
            Self::DocumentWithId => ["document has", "documents have", "篇文档"],
            Self::RowWithId => ["row has", "rows have", "行"],
            Self::MoreBadRow => ["more bad row", "more bad rows", "个坏行"],
            Self::SkippedFile => [
                "file in directories is",
                "files in directories are",
                "个文件",
            ],
            Self::FurtherFile => ["more file", "more files", "个文件"],
            Self::MissingId => ["more id is", "more ids are", "个 id"],
            Self::Finding => ["more", "more", "项"],
            Self::Partition => ["partition", "partitions", "个分区"],
            Self::Cluster => ["cluster", "clusters", "个簇"],
            Self::Byte => ["byte", "bytes", "字节"],
            Self::Feature => ["feature", "features", "个特征"],
            Self::WordRun => ["run of words", "runs of words", "个词串"],
            Self::SampledDocument => ["sampled document", "sampled documents", "篇抽样文档"],
            Self::Word => ["word", "words", "个词"],
            Self::Thread => ["thread", "threads", "个线程"],
            Self::IndexSegment => ["segment", "segments", "个分段"],
            Self::File => ["file", "files", "个文件"],
            Self::Bit => ["bit", "bits", "位"],
            Self::Input => ["input", "inputs", "个输入"],
            Self::Character => ["character", "characters", "个字符"],
            Self::WordCharacter => ["character", "characters", "字"],
            Self::BenchmarkItem => ["item", "items", "道题"],
            Self::ItemFinding => ["finding", "findings", "处"],
            Self::EmptiedDocument => ["document has", "documents have", "篇文档"],
            Self::RowWithoutItem => ["row is no item", "rows are no items", "行不是题目"],
            Self::FurtherBenchmark => ["more benchmark", "more benchmarks", "个评测集"],
        }
    }
}

impl Display for NounCount {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = *self;
        let [one, many, chinese] = noun.forms();
        let noun = match MessageLanguage::current() {
            MessageLanguage::Chinese => chinese,
            MessageLanguage::English if number == 1 => one,
            MessageLanguage::English => many,
        };
        write!(formatter, "{} {noun}", format_count(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first place of a Chinese text at which its typography breaks the rule: a space between Chinese characters
    /// and Latin letters, digits, options or code, none beside full-width marks.
    fn misplaced_space(text: &str) -> Option<String> {
        let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        let is_latin = |c: char| c.is_ascii_alphanumeric();
        let is_mark = |c: char| "，。；：（）、？！".contains(c);
        // Code keeps the words of a command line.
        let code = |(at, part): (usize, &str)| {
            if at % 2 == 0 {
                part.to_owned()
            } else {
                "`x`".to_owned()
            }
        };
        let text: String = text.split('`').enumerate().map(code).collect();
        let characters: Vec<char> = text.chars().collect();
        let breaks = characters.windows(2).position(|pair| {
            let [a, b] = [pair[0], pair[1]];
            is_han(a) && (is_latin(b) || b == '`')
                || (is_latin(a) || a == '`') && is_han(b)
                || a == ' ' && is_mark(b)
                || is_mark(a) && b == ' '
        });
        let at = breaks?;
        let from = at.saturating_sub(6);
        Some(
            characters[from..characters.len().min(at + 8)]
                .iter()
                .collect(),
        )
    }

    #[test]
    fn chinese_has_one_rule_of_spaces() {
        for (text, is_right) in [
            ("用 --json 列出 3 篇", true),
            ("第3行", false),
            ("字段 `text` 缺少", true),
            ("字段`text`", false),
            ("警告： 坏行", false),
            ("（1 行）", true),
            ("（1 行） 共", false),
        ] {
            assert_eq!(misplaced_space(text).is_none(), is_right, "{text}");
        }
        let messages = messages::chinese_texts();
        let phrases = engine_phrases::chinese_texts();
        let help = help_texts::help_text_pairs()
            .into_iter()
            .map(|(_, chinese)| chinese);
        let texts: Vec<_> = messages.into_iter().chain(phrases).chain(help).collect();
        assert!(texts.len() > 1000);
        for text in texts {
            // Spaces around a text are those of a column.
            assert_eq!(misplaced_space(text.trim()), None, "{text}");
        }
    }

    #[test]
    fn environment_names_the_language() {
        let language = |stated: &[(&str, &str)]| {
            MessageLanguage::from_environment(|name| {
                let of_name = stated.iter().find(|(stated, _)| *stated == name);
                of_name.map(|(_, value)| OsString::from(value))
            })
        };
        for (stated, expected) in [
            (&[][..], MessageLanguage::English),
            (&[("LANG", "zh_CN.UTF-8")], MessageLanguage::Chinese),
            (&[("LANG", "zh")], MessageLanguage::Chinese),
            (&[("LANG", "zha_CN")], MessageLanguage::English),
            (
                &[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C")],
                MessageLanguage::English,
            ),
            (
                &[("LANG", "en_GB"), ("LC_MESSAGES", "zh_TW")],
                MessageLanguage::Chinese,
            ),
            (
                &[("LANG", "zh_CN"), ("LC_ALL", "")],
                MessageLanguage::Chinese,
            ),
        ] {
            assert_eq!(language(stated), expected, "{stated:?}");
        }
    }
}
