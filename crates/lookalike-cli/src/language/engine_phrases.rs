//! Phrases that the engine, the recipes and the shared log describe in English, and their Chinese.
//!
//! `{}` stands for a number, a name or another phrase. A phrase that is not listed stays English; a test compares texts
//! by every recipe and method and finds none.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::MessageLanguage;

/// A phrase in English, and in Chinese with the parts of `{}` in the same order.
type Phrase = (&'static str, &'static str);

/// The phrases. The pages of `console/` read the same file.
const PHRASES_JSON: &str = include_str!("phrases.json");

/// The phrases of the descriptors of measures, methods and routes that no page shows.
const DESCRIPTOR_PHRASES: &str = include_str!("descriptor_phrases.json");

/// The phrases of damages and repairs of a shared log.
const LOG_PHRASES: &str = include_str!("log_phrases.json");

/// The refusals of the command-line parser, errors of the system, and the errors of runs that people meet most.
const ERROR_PHRASES: &str = include_str!("error_phrases.json");

/// Returns the phrases, which are read once.
fn phrases() -> &'static [Phrase] {
    static READ_PHRASES: OnceLock<Vec<Phrase>> = OnceLock::new();
    READ_PHRASES.get_or_init(|| {
        let read = |file: &'static str| -> Vec<Phrase> {
            serde_json::from_str(file).expect("the file is a list of pairs")
        };
        let mut phrases = read(PHRASES_JSON);
        phrases.extend(read(DESCRIPTOR_PHRASES));
        phrases.extend(read(LOG_PHRASES));
        phrases.extend(read(ERROR_PHRASES));
        phrases
    })
}

/// Returns a phrase of the engine in the language of this process.
pub(crate) fn translate_phrase(phrase: &str) -> Cow<'_, str> {
    match MessageLanguage::current() {
        MessageLanguage::English => Cow::Borrowed(phrase),
        MessageLanguage::Chinese => to_chinese(phrase).map_or(Cow::Borrowed(phrase), Cow::Owned),
    }
}

/// Returns an error in the language of this process. Where only the end of it is listed, for example behind the place of a
/// row, the beginning stays.
pub(crate) fn translate_error(error: &str) -> Cow<'_, str> {
    if MessageLanguage::current() == MessageLanguage::English {
        return Cow::Borrowed(error);
    }
    if let Some(chinese) = to_chinese(error) {
        return Cow::Owned(chinese);
    }
    let mut places = error.match_indices(": ");
    let behind_place = places.find_map(|(at, mark)| {
        let chinese = to_chinese(&error[at + mark.len()..])?;
        Some(format!("{}：{chinese}", &error[..at]))
    });
    behind_place.map_or(Cow::Borrowed(error), Cow::Owned)
}

/// Names of figures that have several words, those that begin with another one first.
const LONG_NAMES: [&str; 8] = [
    "containment by bottom-k",
    "cosine by SimHash",
    "cosine of counts",
    "cosine of weights",
    "longest common substring by words",
    "longest common substring",
    "Levenshtein by words",
    "Indel by words",
];

/// A space within a name, which no pattern has.
const JOINING_SPACE: &str = "\u{a0}";

/// Returns the Chinese of a phrase that is listed. Of several patterns the longest counts, because it says most.
fn to_chinese(phrase: &str) -> Option<String> {
    let listed = |phrase: &str| phrases().iter().find(|(english, _)| *english == phrase);
    if let Some((_, chinese)) = listed(&phrase.replace(JOINING_SPACE, " ")) {
        return Some((*chinese).to_owned());
    }
    let joined = join_names(phrase);
    let fitting = phrases().iter().filter_map(|(english, chinese)| {
        let parts = match_parts(&joined, english)?;
        Some((english.len(), parts, chinese))
    });
    let (_, parts, chinese) = fitting.max_by_key(|(length, ..)| *length)?;
    let mut parts = parts.into_iter();
    let mut pieces = chinese.split("{}");
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let part = parts.next()?;
        // A quoted part is a name or a value of the user.
        let translated = (!text.ends_with(['`', '\''])).then(|| to_chinese(part));
        text.push_str(
            &translated
                .flatten()
                .unwrap_or_else(|| part.replace(JOINING_SPACE, " ")),
        );
        text.push_str(piece);
    }
    Some(text)
}

/// Returns a phrase in which the words of a long name are one part of a pattern.
fn join_names(phrase: &str) -> String {
    let joined = phrase.to_owned();
    let join =
        |phrase: String, name: &&str| phrase.replace(name, &name.replace(' ', JOINING_SPACE));
    LONG_NAMES.iter().fold(joined, join)
}

/// Returns the parts of a phrase that stand for `{}` in a pattern, if the rest is equal.
fn match_parts<'a>(phrase: &'a str, pattern: &str) -> Option<Vec<&'a str>> {
    let mut literals: Vec<_> = pattern.split("{}").collect();
    let last = literals.pop().filter(|_| !literals.is_empty())?;
    let mut literals = literals.into_iter();
    let mut rest = phrase.strip_prefix(literals.next()?)?;
    let mut parts = Vec::new();
    for literal in literals {
        let (part, after) = rest.split_once(literal)?;
        parts.push(part);
        rest = after;
    }
    let part = rest.strip_suffix(last)?;
    parts.push(part);
    let is_one = |part: &&str| !part.is_empty() && part.len() < phrase.len();
    parts.iter().all(is_one).then_some(parts)
}

/// Returns the Chinese of all phrases, to check their typography.
#[cfg(test)]
pub(super) fn chinese_texts() -> Vec<&'static str> {
    phrases().iter().map(|(_, chinese)| *chinese).collect()
}

#[cfg(test)]
mod tests {
    use lookalike::plan::{MatchMethod, SimilarityMeasure};
    use lookalike::similarity::Route;
    use lookalike_log::{
        ContradictionKind, DamageKind, LogId, LogWitness, RecordDigest, WitnessContradiction,
        WitnessKind,
    };

    use super::*;

    #[test]
    fn phrases_are_recognised_with_their_parts() {
        for (english, chinese) in [
            (
                "features: 11 and 12, 9 shared",
                Some("特征 11 个和 12 个，共有 9 个"),
            ),
            (
                "3 insertions and deletions, 25 characters in both",
                Some("3 次插入或删除，两篇共 25 个字符"),
            ),
            (
                "Jaccard 0.6429 is below the threshold 0.75",
                Some("Jaccard 0.6429 低于阈值 0.75"),
            ),
            ("pairs of neighbouring words", Some("相邻的两个词或字")),
            ("single words cut by jieba", Some("jieba 切出的词")),
            ("the field `words` is missing", Some("缺少字段 `words`")),
            (
                "the field `text` is a number, not a string",
                Some("字段 `text` 是数字，应为字符串"),
            ),
            (
                "the log ends with record 9 (object 'log/0000000000000009'), but the replica 'a' has applied record \
                 10 (object 'log/000000000000000a'): records are lost",
                Some(
                    "日志以记录 9（对象 'log/0000000000000009'）结束，但副本 'a' 已应用记录 10（对象 \
                     'log/000000000000000a'）：有记录丢失",
                ),
            ),
            (
                "none of the 30 rows can be used, so every output stays as it was; the first: gbk.csv:2: the row is not \
                 valid UTF-8 at its byte 3; it looks like --encoding gb18030",
                Some(
                    "30 行全都不能用，所以各输出保持不变；第一行：gbk.csv:2：这一行不是 UTF-8（从第 3 字节起）；\
                     看起来是别的编码，请加 --encoding gb18030",
                ),
            ),
            (
                "the distance is 3: give less than the 3 bits of the fingerprints",
                Some("海明距离是 3：应小于指纹的 3 位"),
            ),
            (
                "notice.csv is not read: it holds rows, and not one document: give it as an input of its own",
                Some("没有读取 notice.csv：它存的是多行，不是一篇文档：请单独作为输入"),
            ),
            ("something new", None),
        ] {
            assert_eq!(to_chinese(english).as_deref(), chinese, "{english}");
        }
    }

    /// A measure is reported in both languages: by its formula in plans, and by its noun for recorded values.
    #[test]
    fn measures_have_chinese_phrases() {
        for measure in SimilarityMeasure::ALL {
            let described = measure.descriptor();
            for phrase in [described.formula, described.noun] {
                assert!(to_chinese(phrase).is_some(), "{phrase}");
            }
        }
    }

    /// A figure whose name has several words is translated inside of other phrases, by the command and by the pages.
    #[test]
    fn figures_of_several_words_are_known_here_and_in_the_pages() {
        let measures = SimilarityMeasure::ALL.into_iter();
        for name in measures.flat_map(|measure| measure.descriptor().figure_names) {
            let is_listed = LONG_NAMES.contains(&name);
            assert_eq!(is_listed, name.contains(' '), "{name}");
        }
        let path = "../../console/src/language/phrases.ts";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let source = std::fs::read_to_string(path).unwrap();
        let (_, list) = source.split_once("const longNames = [").unwrap();
        let (list, _) = list.split_once(']').unwrap();
        let of_pages: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(of_pages, LONG_NAMES);
    }

    #[test]
    fn methods_have_chinese_phrases() {
        for route in Route::ALL {
            let phrase = route.description();
            assert!(to_chinese(phrase).is_some(), "{phrase}");
        }
        for key in MatchMethod::ALL
            .into_iter()
            .filter_map(MatchMethod::equal_key)
        {
            let sentences = [
                format!("their {} are the same", key.noun),
                format!("their {} differ", key.noun),
                key.equality.to_owned(),
            ];
            for sentence in sentences {
                assert!(to_chinese(&sentence).is_some(), "{sentence}");
            }
        }
    }

    /// Every damage of a log and every contradiction has its Chinese, also where the English was changed.
    #[test]
    fn damages_of_logs_have_chinese_phrases() {
        let digest = RecordDigest::ZERO;
        let (found, expected) = (digest, digest);
        let damages = [
            DamageKind::Truncated {
                bytes: 7,
                expected: 9,
            },
            DamageKind::NotARecord,
            DamageKind::Checksum,
            DamageKind::WrongNumber { found: 3 },
            DamageKind::ForeignLog {
                found: LogId(1),
                expected: LogId(2),
            },
            DamageKind::BrokenChain { found, expected },
            DamageKind::Replaced { found, expected },
            DamageKind::Missing,
            DamageKind::TimeGoesBack {
                found: 1,
                previous: 2,
            },
            DamageKind::MalformedEntries {
                reason: "cut".to_owned(),
            },
        ];
        let mut phrases: Vec<_> = damages.iter().map(ToString::to_string).collect();
        for kind in [WitnessKind::Replica, WitnessKind::Snapshot] {
            for contradiction in [
                ContradictionKind::LostRecords { last: 0 },
                ContradictionKind::LostRecords { last: 4 },
                ContradictionKind::OtherRecord { found },
                ContradictionKind::OtherLog { found: LogId(1) },
            ] {
                let witness = LogWitness {
                    kind,
                    name: "a".to_owned(),
                    log: None,
                    number: 9,
                    digest: None,
                };
                let kind = contradiction;
                phrases.push(WitnessContradiction { witness, kind }.to_string());
            }
        }
        for phrase in phrases {
            let chinese = to_chinese(&phrase).unwrap_or_else(|| panic!("{phrase}"));
            for english in ["record", " log ", "the ", "has"] {
                assert!(!chinese.contains(english), "{phrase}: {chinese}");
            }
        }
    }

    #[test]
    fn both_languages_have_the_same_parts() {
        for (english, chinese) in phrases() {
            let parts = |text: &str| text.matches("{}").count();
            assert_eq!(parts(english), parts(chinese), "{english}");
            let others = phrases()
                .iter()
                .filter(|phrase| phrase.0 == *english)
                .count();
            assert_eq!(others, 1, "{english}");
        }
    }
}
