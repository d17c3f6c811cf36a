//! Phrases that the engine and the recipes describe in English, and their Chinese.
//!
//! `{}` stands for a number, a name or another phrase. A phrase that is not listed stays English; a test compares texts
//! by every recipe and method and finds none.

use std::borrow::Cow;

use super::MessageLanguage;

/// A phrase in English, and in Chinese with the parts of `{}` in the same order.
type Phrase = (&'static str, &'static str);

const PHRASES: [Phrase; 79] = [
    // Names of figures.
    ("containment", "包含度"),
    ("cosine of counts", "词频余弦"),
    ("cosine of weights", "权重余弦"),
    ("Euclidean distance", "欧氏距离"),
    ("SimHash bits", "SimHash 位"),
    ("cosine by SimHash", "SimHash 余弦"),
    ("MinHash, textbook", "MinHash（教科书式）"),
    ("containment by bottom-k", "bottom-k 包含度"),
    ("bottom-k, textbook", "bottom-k（教科书式）"),
    ("longest common substring", "最长公共子串"),
    ("Levenshtein by words", "Levenshtein（按词）"),
    ("Indel by words", "Indel（按词）"),
    ("longest common substring by words", "最长公共子串（按词）"),
    ("similarity", "相似度"),
    // Details of figures.
    (
        "features: {} and {}, {} shared",
        "特征 {} 个和 {} 个，共有 {} 个",
    ),
    ("{} of the {} of the smaller", "较小一篇的特征：{} / {}"),
    ("neither text has a feature", "两篇都没有特征"),
    ("neither text has any {}", "两篇都没有{}"),
    ("of how often features occur", "按特征出现的次数"),
    ("of the weights of the recipe", "按配方的权重"),
    ("{} of {} differ", "不同的位：{} / {}"),
    (
        "of the weights, by the angle that the differing bits stand for",
        "按不同的位所表示的夹角估计权重余弦",
    ),
    (
        "of Jaccard: {} of {} slots are equal",
        "Jaccard：相等的槽 {} / {}",
    ),
    (
        "of Jaccard: minima in both by minima in either",
        "Jaccard：共有的最小值与全部最小值之比",
    ),
    (
        "of Jaccard, by the {} smallest hashes",
        "Jaccard，按最小的 {} 个哈希",
    ),
    (
        "of containment, by the {} smallest hashes",
        "包含度，按最小的 {} 个哈希",
    ),
    (
        "of Jaccard: smallest hashes in both by those in either",
        "Jaccard：共有的最小哈希与全部最小哈希之比",
    ),
    ("{} edit, {} in the longer", "{} 次编辑，较长一篇 {}"),
    ("{} edits, {} in the longer", "{} 次编辑，较长一篇 {}"),
    (
        "{} insertion or deletion, {} in both",
        "{} 次插入或删除，两篇共 {}",
    ),
    (
        "{} insertions and deletions, {} in both",
        "{} 次插入或删除，两篇共 {}",
    ),
    ("{} in a row, {} in both", "连续 {}，两篇共 {}"),
    ("{} character", "{} 个字符"),
    ("{} characters", "{} 个字符"),
    ("{} word", "{} 个词"),
    ("{} words", "{} 个词"),
    ("characters", "字符"),
    ("words", "词"),
    (
        "not computed: the texts have {} and {} {} and differ in more than {} edits",
        "未计算：两篇有 {} 和 {} 个{}，相差超过 {} 次编辑",
    ),
    // Reasons of verdicts.
    ("they are equal after normalisation", "归一化后相同"),
    ("they are not equal after normalisation", "归一化后不同"),
    ("their longest sentences are the same", "最长的句子相同"),
    ("their longest sentences differ", "最长的句子不同"),
    (
        "the fingerprints differ in {}, at most the distance {}",
        "指纹相差 {}，不超过海明距离 {}",
    ),
    (
        "the fingerprints differ in {}, more than the distance {}",
        "指纹相差 {}，超过海明距离 {}",
    ),
    ("{} bit", "{} 位"),
    ("{} bits", "{} 位"),
    (
        "the fingerprints share none of {} blocks of bits",
        "指纹的 {} 块都不相同",
    ),
    (
        "found by {}; {} {} ≥ the threshold {}",
        "由 {} 找到；{} {} ≥ 阈值 {}",
    ),
    ("an empty text matches nothing", "空文本不与任何文本匹配"),
    (
        "a text that is too short for a feature matches only texts that are equal after normalisation",
        "不足一个特征的文本只与归一化后相同的文本匹配",
    ),
    (
        "a text without a weighted feature matches only texts that are equal after normalisation",
        "没有加权特征的文本只与归一化后相同的文本匹配",
    ),
    (
        "they share too few features to be candidates: Jaccard {} is below {}, the least for this measure at the threshold {}",
        "共有的特征太少，不成候选：Jaccard {} 低于 {}，即此度量在阈值 {} 时的下限",
    ),
    (
        "{} {} reaches the threshold {}, but the sketches did not make them candidates, as happens to about one pair in a hundred at the threshold",
        "{} {} 达到阈值 {}，但两篇的摘要未使其成为候选；在阈值处约百分之一的文档对如此",
    ),
    ("{} {} is below the threshold {}", "{} {} 低于阈值 {}"),
    // Kinds of passages.
    ("verbatim", "逐字相同"),
    ("edited", "有改动"),
    ("reordered", "调换了顺序"),
    ("reworded", "改写"),
    // Candidates of a search.
    ("distance at most {}", "海明距离不超过 {}"),
    // Suspicious clusters.
    (
        "giant: {} of {} documents; most of their text may be a template or boilerplate",
        "过大：{} / {} 篇文档；其文本可能大多是模板或套话",
    ),
    (
        "stretched: its component connects {} clusters by chains of matches, and their representatives are below the threshold with one another",
        "拉长：其连通分量以匹配链连接 {} 个簇，而各簇的代表之间低于阈值",
    ),
    // Rules of sums.
    ("0 and above gives 1", "不小于 0 得 1"),
    ("above 0 gives 1", "大于 0 得 1"),
    ("above 0 gives 1, 0 is a tie", "大于 0 得 1，等于 0 为平局"),
    // Features of recipes.
    ("single {}", "单个的{}"),
    ("pairs of neighbouring {}", "相邻的两个{}"),
    ("runs of {} {}", "连续 {} 个{}"),
    ("words of jieba's dictionary", "jieba 词典的词"),
    ("words cut by jieba for search", "jieba 搜索模式的词"),
    ("words cut by jieba", "jieba 切分的词"),
    ("words separated by white space", "以空白分隔的词"),
    (
        "runs of 4 characters, letters and digits alone, as in the package simhash",
        "连续 4 个字符，只计字母和数字，与 simhash 包相同",
    ),
    (
        "runs of 4 words, as in the package simhash-py",
        "连续 4 个词，与 simhash-py 包相同",
    ),
    (
        "words separated by white space, as in the script for news",
        "以空白分隔的词，与新闻脚本相同",
    ),
    (
        "words separated by blanks, as in the Java class",
        "以空格分隔的词，与该 Java 类相同",
    ),
    (
        "words cut by jieba with tables from files, as in yanyiwu's simhash",
        "jieba 按词表文件切分的词，与 yanyiwu 的 simhash 相同",
    ),
    (
        "words separated by white space, hashed as in datasketch 1",
        "以空白分隔的词，哈希与 datasketch 1 相同",
    ),
    (
        "words separated by white space, hashed as in datasketch 2",
        "以空白分隔的词，哈希与 datasketch 2 相同",
    ),
];

/// Returns a phrase of the engine in the language of this process.
pub(crate) fn translate_phrase(phrase: &str) -> Cow<'_, str> {
    match MessageLanguage::current() {
        MessageLanguage::English => Cow::Borrowed(phrase),
        MessageLanguage::Chinese => to_chinese(phrase).map_or(Cow::Borrowed(phrase), Cow::Owned),
    }
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
const JOINT: &str = "\u{a0}";

/// Returns the Chinese of a phrase that is listed. Of several patterns the longest counts, because it says most.
fn to_chinese(phrase: &str) -> Option<String> {
    let listed = |phrase: &str| PHRASES.iter().find(|(english, _)| *english == phrase);
    if let Some((_, chinese)) = listed(&phrase.replace(JOINT, " ")) {
        return Some((*chinese).to_owned());
    }
    let joined = join_names(phrase);
    let fitting = PHRASES.iter().filter_map(|(english, chinese)| {
        let parts = match_parts(&joined, english)?;
        Some((english.len(), parts, chinese))
    });
    let (_, parts, chinese) = fitting.max_by_key(|(length, ..)| *length)?;
    let mut parts = parts.into_iter();
    let mut pieces = chinese.split("{}");
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let part = parts.next()?;
        text.push_str(&to_chinese(part).unwrap_or_else(|| part.replace(JOINT, " ")));
        text.push_str(piece);
    }
    Some(text)
}

/// Returns a phrase in which the words of a long name are one part of a pattern.
fn join_names(phrase: &str) -> String {
    let joined = phrase.to_owned();
    let join = |phrase: String, name: &&str| phrase.replace(name, &name.replace(' ', JOINT));
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

#[cfg(test)]
mod tests {
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
            ("pairs of neighbouring words", Some("相邻的两个词")),
            ("something new", None),
        ] {
            assert_eq!(to_chinese(english).as_deref(), chinese, "{english}");
        }
    }

    #[test]
    fn both_languages_have_the_same_parts() {
        for (english, chinese) in PHRASES {
            let parts = |text: &str| text.matches("{}").count();
            assert_eq!(parts(english), parts(chinese), "{english}");
            let others = PHRASES.iter().filter(|it| it.0 == english).count();
            assert_eq!(others, 1, "{english}");
        }
    }
}
