//! Corpora in English and Chinese with planted near-duplicates, generated from a seed.
//!
//! The same arguments give the same bytes on every machine, now and in later versions, because all
//! numbers come from one small generator in integer arithmetic; a test compares a checksum. The
//! words mean nothing. Their frequencies fall off as in natural language (the k-th word is about k
//! times rarer than the first), and lengths spread over more than one order of magnitude. About
//! four documents in ten are an edited copy of an earlier document or share a template with others.

use std::sync::LazyLock;

/// Language and length of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorpusKind {
    /// Articles of 40 to 1,300 English words.
    English,
    /// Articles of 60 to 2,500 Chinese characters.
    Chinese,
    /// Titles and posts of 4 to 60 characters, Chinese and some English.
    Short,
}

/// Returns `documents` pairs of id and text.
pub fn generate_corpus(kind: CorpusKind, documents: usize, seed: u64) -> Vec<(String, String)> {
    let mut random = OracleRandom::new(seed);
    let mut texts: Vec<String> = Vec::with_capacity(documents);
    let mut form = Vec::new();
    while texts.len() < documents {
        let text = match random.next_below(100) {
            0..35 if !texts.is_empty() => {
                // A few texts are copied many times, most once or never.
                let copied = match random.next_below(4) {
                    0 => random.next_rank(texts.len()),
                    _ => random.next_below(texts.len()),
                };
                let text = texts[copied].clone();
                edit_repeatedly(&text, &mut random)
            }
            35..40 => {
                if form.is_empty() || random.next_below(8) == 0 {
                    form = make_sentences(kind, &mut random);
                }
                fill_template(&form, kind, &mut random)
            }
            _ => make_sentences(kind, &mut random).concat(),
        };
        texts.push(text);
    }
    number_texts(texts)
}

/// Returns `documents` texts from one template of `words` words. Each text has the fraction
/// `changed` of its words replaced, at places of its own.
///
/// # Panics
/// If `changed` is not between 0 and 1.
pub fn generate_template(
    documents: usize,
    words: usize,
    seed: u64,
    changed: f64,
) -> Vec<(String, String)> {
    generate_siblings(documents, words, seed, changed, |at, _, random| {
        at + random.next_below(words - at)
    })
}

/// Returns texts as [`generate_template`] does, but with the replaced words at the same places in all texts,
/// as in a form that is filled in.
///
/// # Panics
/// If `changed` is not between 0 and 1.
pub fn generate_form(
    documents: usize,
    words: usize,
    seed: u64,
    changed: f64,
) -> Vec<(String, String)> {
    generate_siblings(documents, words, seed, changed, |at, replaced, _| {
        at * words / replaced
    })
}

/// Returns `documents` texts of 0 to 2,000 words, short beside long. Many are 1.2, 1.5, 3 or 20 times as long as
/// an earlier text, which they contain whole or with a few words replaced. Others are excerpts or repetitions of
/// earlier ones.
pub fn generate_contained(documents: usize, seed: u64) -> Vec<(String, String)> {
    const ODD_TEXTS: [&str; 6] = ["", " ", "!!", "one", "One.", "one two"];
    let mut random = OracleRandom::new(seed);
    let mut texts: Vec<String> = Vec::with_capacity(documents);
    while texts.len() < documents {
        let earlier = match texts.len() {
            0 => Vec::new(),
            count => texts[random.next_below(count)]
                .split(' ')
                .map(str::to_owned)
                .collect(),
        };
        let text = match random.next_below(20) {
            0 => ODD_TEXTS[random.next_below(ODD_TEXTS.len())].to_owned(),
            1 => earlier.join(", "),
            2 | 3 if !earlier.is_empty() => {
                let start = random.next_below(earlier.len());
                let length = 1 + random.next_below(earlier.len() - start);
                earlier[start..start + length].join(" ")
            }
            4..=12 => surround_words(earlier, &mut random).join(" "),
            _ => {
                let length = [6, 40, 160, 400][random.next_below(4)];
                let words = 1 + random.next_below(length);
                choose_words(words, &mut random).join(" ")
            }
        };
        texts.push(text);
    }
    number_texts(texts)
}

/// Returns words with some of them replaced, inside a list that is several times as long.
fn surround_words(mut words: Vec<String>, random: &mut OracleRandom) -> Vec<String> {
    let replaced = match random.next_below(4) {
        0 => words.len() / 10,
        1 => words.len() / 2,
        few => few - 2,
    };
    for _ in 0..replaced.min(words.len()) {
        let at = random.next_below(words.len());
        words[at] = make_rare_word(random);
    }
    let tenths = [2, 5, 20, 190][random.next_below(4)];
    let more = (words.len() * tenths / 10).min(2000 - words.len().min(2000));
    let before = random.next_below(more + 1);
    let mut all = choose_words(before, random);
    all.extend(words);
    all.extend(choose_words(more - before, random));
    all
}

fn choose_words(count: usize, random: &mut OracleRandom) -> Vec<String> {
    (0..count).map(|_| choose_word(random)).collect()
}

/// `place(at, replace_words, random)` chooses the place of replaced word number `at` of `replace_words`, as
/// an index into the list of places whose first `at` are taken.
fn generate_siblings(
    documents: usize,
    words: usize,
    seed: u64,
    changed: f64,
    place: impl Fn(usize, usize, &mut OracleRandom) -> usize,
) -> Vec<(String, String)> {
    assert!(
        (0.0..=1.0).contains(&changed),
        "changed is {changed}, but must be 0 to 1"
    );
    let replaced = (changed * words as f64).round() as usize;
    let mut random = OracleRandom::new(seed);
    let template: Vec<String> = (0..words).map(|_| choose_word(&mut random)).collect();
    let texts = (0..documents).map(|_| {
        let mut text = template.clone();
        let mut places: Vec<usize> = (0..words).collect();
        for at in 0..replaced {
            places.swap(at, place(at, replaced, &mut random));
            text[places[at]] = format!(
                "{}{}",
                make_rare_word(&mut random),
                random.next_below(1_000_000)
            );
        }
        text.join(" ")
    });
    number_texts(texts.collect())
}

fn number_texts(texts: Vec<String>) -> Vec<(String, String)> {
    let numbered = texts.into_iter().enumerate();
    numbered
        .map(|(number, text)| (format!("d{number:07}"), text))
        .collect()
}

/// Returns the sentences of a new document, each with the white space that follows it.
fn make_sentences(kind: CorpusKind, random: &mut OracleRandom) -> Vec<String> {
    match kind {
        CorpusKind::English => {
            let count = 3 << random.next_below(5);
            (0..count + random.next_below(count))
                .map(|_| english_sentence(random))
                .collect()
        }
        CorpusKind::Chinese => {
            let count = 4 << random.next_below(5);
            (0..count + random.next_below(count))
                .map(|_| chinese_sentence(random))
                .collect()
        }
        CorpusKind::Short if random.next_below(6) == 0 => {
            let words: Vec<_> = (0..2 + random.next_below(8))
                .map(|_| choose_word(random))
                .collect();
            vec![words.join(" ")]
        }
        CorpusKind::Short => {
            let clauses = 1 + random.next_below(3);
            let clauses: Vec<_> = (0..clauses).map(|_| make_hanzi(random, 4, 16)).collect();
            vec![clauses.join("，")]
        }
    }
}

fn english_sentence(random: &mut OracleRandom) -> String {
    let mut sentence = String::new();
    for at in 0..6 + random.next_below(18) {
        let word = choose_word(random);
        if at == 0 {
            sentence.push_str(&word[..1].to_ascii_uppercase());
            sentence.push_str(&word[1..]);
        } else {
            sentence.push_str(if random.next_below(12) == 0 {
                ", "
            } else {
                " "
            });
            sentence.push_str(&word);
        }
    }
    sentence.push_str(if random.next_below(5) == 0 {
        ".\n"
    } else {
        ". "
    });
    sentence
}

fn chinese_sentence(random: &mut OracleRandom) -> String {
    let clauses: Vec<_> = (0..1 + random.next_below(4))
        .map(|_| make_hanzi(random, 5, 17))
        .collect();
    let end = if random.next_below(6) == 0 {
        "。\n"
    } else {
        "。"
    };
    clauses.join("，") + end
}

/// Returns `least` to `most - 1` Chinese characters, sometimes followed by a number or a Latin
/// word.
fn make_hanzi(random: &mut OracleRandom, least: usize, most: usize) -> String {
    let mut text = String::new();
    for _ in 0..least + random.next_below(most - least) {
        text.push(common_hanzi(random));
    }
    match random.next_below(20) {
        0 => text.push_str(&random.next_below(10_000).to_string()),
        1 => text.push_str(&make_rare_word(random)),
        _ => {}
    }
    text
}

/// Returns a Chinese character, drawn by frequency.
fn common_hanzi(random: &mut OracleRandom) -> char {
    static HANZI_BY_FREQUENCY: LazyLock<Vec<char>> =
        LazyLock::new(|| COMMON_HANZI.chars().collect());
    HANZI_BY_FREQUENCY[random.next_rank(HANZI_BY_FREQUENCY.len())]
}

/// Returns an English word, drawn by frequency: a common word or a made-up rarer one.
fn choose_word(random: &mut OracleRandom) -> String {
    let rank = random.next_rank(20_000);
    COMMON_WORDS
        .get(rank)
        .map_or_else(|| make_up_word(rank), |word| (*word).to_owned())
}

fn make_rare_word(random: &mut OracleRandom) -> String {
    make_up_word(2_000 + random.next_below(200_000))
}

/// Returns the pronounceable word of a number; every number has its own.
fn make_up_word(mut number: usize) -> String {
    let mut word = String::new();
    loop {
        let syllable = number % (SYLLABLE_ONSETS.len() * SYLLABLE_VOWELS.len());
        word.push_str(SYLLABLE_ONSETS[syllable / SYLLABLE_VOWELS.len()]);
        word.push_str(SYLLABLE_VOWELS[syllable % SYLLABLE_VOWELS.len()]);
        number /= SYLLABLE_ONSETS.len() * SYLLABLE_VOWELS.len();
        if number == 0 {
            return word + "n";
        }
    }
}

/// Fills a template: every third sentence is new, and a number ends the text.
fn fill_template(form: &[String], kind: CorpusKind, random: &mut OracleRandom) -> String {
    let mut text = String::new();
    for (at, sentence) in form.iter().enumerate() {
        if at % 3 != 1 {
            text.push_str(sentence);
        } else {
            text.push_str(&make_sentences(kind, random)[0]);
        }
    }
    text + &random.next_below(1_000_000).to_string()
}

/// Applies one or two edits, as reposting does; lighter edits are more frequent.
fn edit_repeatedly(text: &str, random: &mut OracleRandom) -> String {
    let mut text = edit_once(text, random);
    if random.next_below(3) == 0 {
        text = edit_once(&text, random);
    }
    text
}

fn edit_once(text: &str, random: &mut OracleRandom) -> String {
    match random.next_below(12) {
        0 | 1 => text.to_owned(),
        2 => traditional(text),
        3 => full_width(text),
        4 => text.to_uppercase(),
        5 => other_punctuation(text),
        6 => interspersed(text, random),
        7 => replace_words(text, 10, random),
        8 => replace_words(text, 40, random),
        9 => replace_words(text, 150, random),
        10 => cut_text(text, random),
        _ => frame_text(text, random),
    }
}

/// Replaces simplified characters by traditional ones, where the mapping is one to one.
pub fn traditional(text: &str) -> String {
    let pairs: Vec<char> = TRADITIONAL_FORMS.chars().collect();
    let other = |c| {
        pairs
            .chunks_exact(2)
            .find(|pair| pair[0] == c)
            .map_or(c, |pair| pair[1])
    };
    text.chars().map(other).collect()
}

/// Replaces ASCII by full-width forms, and the space by the ideographic space.
pub fn full_width(text: &str) -> String {
    let wide = |c| match c {
        ' ' => '\u{3000}',
        '!'..='~' => char::from_u32(c as u32 + 0xfee0).unwrap_or(c),
        _ => c,
    };
    text.chars().map(wide).collect()
}

/// Replaces punctuation marks by others.
pub fn other_punctuation(text: &str) -> String {
    let other = |c| match c {
        ',' => ';',
        '.' => '!',
        '，' => ' ',
        '。' => '！',
        '\n' => ' ',
        _ => c,
    };
    text.chars().map(other).collect()
}

/// Inserts zero-width characters, and a space after about every hundredth non-ASCII character.
fn interspersed(text: &str, random: &mut OracleRandom) -> String {
    let mut result = String::new();
    for c in text.chars() {
        result.push(c);
        if random.next_below(20) == 0 {
            result.push(['\u{200b}', '\u{feff}', '\u{ad}'][random.next_below(3)]);
        }
        if !c.is_ascii() && random.next_below(100) == 0 {
            result.push(' ');
        }
    }
    result
}

/// Replaces, deletes or doubles about `per_mille` of every thousand words or non-ASCII characters.
fn replace_words(text: &str, per_mille: usize, random: &mut OracleRandom) -> String {
    let mut result = String::new();
    for piece in text.split_inclusive(|c: char| c == ' ' || !c.is_ascii()) {
        if random.next_below(1000) >= per_mille {
            result.push_str(piece);
            continue;
        }
        match (random.next_below(3), piece.is_ascii()) {
            (0, _) => {}
            (1, _) => result.push_str(&piece.repeat(2)),
            (_, true) => result.push_str(&(make_rare_word(random) + " ")),
            (_, false) => result.push(common_hanzi(random)),
        }
    }
    result
}

/// Removes up to a third of the text from its head or its tail.
fn cut_text(text: &str, random: &mut OracleRandom) -> String {
    let characters: Vec<char> = text.chars().collect();
    let cut = random.next_below(characters.len() / 3 + 1);
    let rest = if random.next_below(2) == 0 {
        &characters[cut..]
    } else {
        &characters[..characters.len() - cut]
    };
    rest.iter().collect()
}

/// Surrounds the text with phrases of a web site.
fn frame_text(text: &str, random: &mut OracleRandom) -> String {
    const SITE_FRAMES: [(&str, &str); 4] = [
        (
            "Share this story: ",
            " All rights reserved. Read more on our site.",
        ),
        ("", " (Reported by our correspondent; edited for length.)"),
        ("【转载】", "（来源：综合报道）"),
        ("", " 版权归原作者所有，点击查看更多"),
    ];
    let (before, after) = SITE_FRAMES[random.next_below(SITE_FRAMES.len())];
    format!("{before}{text}{after}")
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct OracleRandom(u64);

impl OracleRandom {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub fn next_below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below 0");
        ((u128::from(self.next_bits()) * bound as u128) >> 64) as usize
    }

    /// Returns a number below `bound`; k − 1 is about k times rarer than 0.
    pub fn next_rank(&mut self, bound: usize) -> usize {
        let octaves = bound.ilog2() as usize + 1;
        let low = 1usize << self.next_below(octaves);
        let high = (2 * low - 1).min(bound);
        low - 1 + self.next_below(high - low + 1)
    }
}

const SYLLABLE_ONSETS: [&str; 20] = [
    "b", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br",
    "st", "kl",
];
const SYLLABLE_VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ai", "ea", "ou"];

const COMMON_WORDS: [&str; 120] = [
    "the", "of", "and", "to", "a", "in", "is", "it", "that", "was", "for", "on", "with", "as",
    "are", "at", "be", "this", "by", "from", "or", "an", "which", "not", "have", "has", "had",
    "their", "its", "were", "been", "but", "they", "all", "can", "more", "will", "would", "there",
    "when", "who", "one", "two", "three", "new", "year", "city", "said", "after", "before",
    "first", "last", "people", "work", "water", "road", "house", "school", "river", "market",
    "price", "report", "council", "station", "engine", "letter", "garden", "winter", "summer",
    "morning", "evening", "between", "under", "over", "without", "because", "during", "against",
    "through", "small", "large", "early", "late", "open", "closed", "north", "south", "east",
    "west", "long", "short", "public", "private", "local", "general", "number", "part", "place",
    "case", "week", "group", "problem", "fact", "question", "system", "power", "money", "story",
    "month", "book", "area", "line", "change", "office", "service", "result", "plan", "level",
    "order", "team",
];

/// Common characters, approximately in order of frequency.
const COMMON_HANZI: &str = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下\
    过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都\
    两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重\
    新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想\
    已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知\
    较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造\
    百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采转更单风切打白\
    教速花带安场身车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集\
    温传土许步群广石记需段研界拉林律叫且究观越织装影算低持音众书布复容儿须际商非验连断深难近矿\
    千周委素技备半办青省列习响约支般史感劳便团往酸历市克何除消构府称太准精值号率族维划选标写存\
    候毛亲快效斯院查江型眼王按格养易置派层片始却专状育厂京识适属圆包火住调满县局照参红细引听该\
    铁价严";

/// Simplified characters, each followed by a traditional form of it.
const TRADITIONAL_FORMS: &str = "这這为為个個国國时時来來们們对對会會发發动動过過说說产產种種后後学學经經\
    进進电電里裡现現实實两兩体體机機当當点點从從业業应應开開还還样樣与與关關线線内內数數气氣变變\
    条條没沒结結问問无無军軍题題党黨员員总總设設长長头頭资資边邊级級图圖统統见見计計别別论論运運农農\
    几幾区區强強决決战戰则則据據处處队隊给給门門规規热熱领領东東导導压壓争爭济濟阶階术術极極联聯认認\
    权權证證转轉单單风風带帶场場车車务務万萬达達积積议議声聲报報类類离離华華确確张張马馬节節话話温溫\
    传傳许許广廣记記观觀织織装裝书書复復儿兒须須际際验驗连連断斷难難矿礦备備办辦习習响響约約劳勞团團\
    历歷构構称稱准準号號维維划劃选選标標写寫亲親养養层層状狀厂廠识識适適属屬圆圓满滿县縣参參红紅细細\
    听聽该該铁鐵价價严嚴";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::document::OracleDocument;
    use crate::normalize_text;
    use crate::pairs::all_pairs;

    /// Returns the FNV-1a hash of ids and texts.
    fn checksum(corpus: &[(String, String)]) -> u64 {
        let bytes = corpus
            .iter()
            .flat_map(|(id, text)| [id.as_bytes(), text.as_bytes()])
            .flatten();
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    #[test]
    fn generated_bytes_never_change() {
        let sums = [CorpusKind::English, CorpusKind::Chinese, CorpusKind::Short]
            .map(|kind| checksum(&generate_corpus(kind, 500, 1)));
        assert_eq!(
            sums,
            [0x23194af9ac3fb634, 0x30d9f2fc68c7d241, 0x2e097a290bf5fe5]
        );
        assert_eq!(
            checksum(&generate_template(100, 100, 1, 0.05)),
            0xdf89bfeabf0ee9f2
        );
        assert_eq!(
            checksum(&generate_form(100, 100, 1, 0.05)),
            0xd9dc593fd7857060
        );
    }

    fn texts_of(corpus: &[(String, String)]) -> Vec<&str> {
        corpus.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn corpus_has_many_degrees_of_similarity() {
        for kind in [CorpusKind::English, CorpusKind::Chinese, CorpusKind::Short] {
            let texts = generate_corpus(kind, 500, 5);
            let ids: BTreeSet<_> = texts.iter().map(|(id, _)| id).collect();
            assert_eq!(ids.len(), 500);
            let pairs = all_pairs(&texts_of(&texts), 2, 0.3);
            for degree in [0.4..0.6, 0.6..0.8, 0.8..1.0, 1.0..1.1] {
                let of_this = pairs.iter().filter(|pair| degree.contains(&pair.2)).count();
                assert!(of_this >= 10, "{kind:?}: {of_this} pairs at {degree:?}");
            }
            let repeats: BTreeSet<_> = pairs
                .iter()
                .filter(|pair| pair.2 >= 0.8)
                .map(|pair| pair.1)
                .collect();
            assert!(
                (50..200).contains(&repeats.len()),
                "{kind:?}: {} repeats",
                repeats.len()
            );
        }
    }

    #[test]
    fn variants_normalise_to_equal_text() {
        for (_, text) in generate_corpus(CorpusKind::Chinese, 100, 9)
            .iter()
            .chain(&generate_corpus(CorpusKind::English, 100, 9))
        {
            for form in [traditional(text), full_width(text)] {
                assert_eq!(normalize_text(&form), normalize_text(text));
            }
            assert_eq!(
                crate::split_tokens(&other_punctuation(text)),
                crate::split_tokens(text)
            );
        }
    }

    #[test]
    fn template_changes_the_requested_share() {
        for (changed, least, most) in [(0.0, 1.0, 1.0), (0.03, 0.85, 0.98), (1.0, 0.0, 0.0)] {
            let texts = generate_template(50, 100, 2, changed);
            let documents: Vec<_> = texts
                .iter()
                .map(|(_, text)| OracleDocument::new(text, 1))
                .collect();
            for pair in documents.windows(2) {
                let similarity = pair[0].similarity(&pair[1]);
                assert!(
                    (least..=most).contains(&similarity),
                    "{changed}: {similarity}"
                );
            }
        }
    }

    #[test]
    fn forms_share_words_at_fixed_places() {
        let texts = generate_form(20, 100, 2, 0.3);
        let words: Vec<Vec<&str>> = texts
            .iter()
            .map(|(_, text)| text.split(' ').collect())
            .collect();
        let same = |at: &usize| words.iter().all(|text| text[*at] == words[0][*at]);
        assert_eq!((0..100).filter(same).count(), 70);
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut random = OracleRandom::new(1);
        for bound in [1, 2, 3, 7, 8, 100] {
            let ranks: BTreeSet<_> = (0..5000).map(|_| random.next_rank(bound)).collect();
            let evenly: BTreeSet<_> = (0..5000).map(|_| random.next_below(bound)).collect();
            assert_eq!(ranks, (0..bound).collect());
            assert_eq!(evenly, (0..bound).collect());
        }
    }
}
