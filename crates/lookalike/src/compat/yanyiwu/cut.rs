//! Word segmentation as in cppjieba 5.6.7, in its mixed mode.
//!
//! Separators split a text into stretches. A stretch is cut by the likeliest path through the words of the
//! dictionary. Adjacent characters that remain single words go together through a hidden Markov model of word
//! boundaries, except ASCII characters, of which letters and digits stay together. The result differs from
//! jieba's in two points: all characters but five separators belong to words, and a character that the model
//! has not seen has another effect. `jieba-rs` can therefore not compute it.
//!
//! Sums and comparisons are the tool's, in its order, in doubles. Of equally likely paths, the one with the
//! shorter first word is taken. Logarithms are those of the platform.
//!
//! Cost: for every character, one look-up for each prefix of a word that starts there; some tens of
//! nanoseconds.

use std::collections::HashSet;
use std::ops::Range;

use crate::text::weight::HashLookup;

/// The characters that separate stretches.
const STRETCH_SEPARATORS: [char; 5] = [' ', '\t', '\n', '，', '。'];

/// Length of the longest word that is looked up, in characters.
const LONGEST_WORD: usize = 512;

/// Logarithm that stands for a probability of 0.
const LOG_OF_ZERO: f64 = -3.14e100;

/// Number of states of the model. In this order, a character begins a word, ends it, is within it, or is a
/// word itself.
pub(super) const STATE_COUNT: usize = 4;
const END_STATE: usize = 1;
const SINGLE_STATE: usize = 3;

/// Words with the logarithms of their probabilities, as a tree of characters.
#[derive(Debug)]
pub(super) struct WordDictionary {
    /// Child node of a node and a character.
    children: HashLookup,
    /// Weight of the word that ends at a node, if one does.
    weights: Vec<Option<f64>>,
    /// Weight of a character that is not a word, which is the weight of the rarest word.
    least: f64,
    /// The user's words of one character, which the model does not process.
    own: HashSet<char>,
}

/// A hidden Markov model, in logarithms of probabilities.
#[derive(Debug)]
pub(super) struct HiddenMarkovModel {
    pub(super) start: [f64; STATE_COUNT],
    /// Weights of the step from each state to the next.
    pub(super) steps: [[f64; STATE_COUNT]; STATE_COUNT],
    emissions: HashLookup,
    weights: Vec<[f64; STATE_COUNT]>,
}

/// Buffers of a [`WordCutter`], which are reused.
#[derive(Debug, Default)]
pub(in crate::compat) struct CutterBuffers {
    points: Vec<char>,
    /// Start of every character, and the end of the last one.
    starts: Vec<usize>,
    /// For every character, the weight of the likeliest path from it to the end, and the length of the path's
    /// first word.
    ways: Vec<(f64, usize)>,
    /// For every character and state, the likeliest previous state.
    before: Vec<[u8; STATE_COUNT]>,
}

/// A dictionary and a model.
#[derive(Debug)]
pub(super) struct WordCutter {
    pub(super) dictionary: WordDictionary,
    pub(super) model: HiddenMarkovModel,
}

/// A word of a dictionary, with the logarithm of its probability.
pub(super) type DictionaryEntry<'t> = (&'t str, f64);

fn edge_key(node: usize, point: char) -> u64 {
    (node as u64) << 21 | u64::from(point)
}

impl WordDictionary {
    /// Creates a dictionary of words, none of them empty, and of a user's words. Of equal words the last one
    /// counts.
    pub(super) fn new(words: &[DictionaryEntry<'_>], own: &[DictionaryEntry<'_>]) -> Self {
        let mut all = [words, own].concat();
        all.sort_by_key(|&(word, _)| word);
        let (mut edges, mut weights) = (Vec::new(), vec![None]);
        let mut path: Vec<(char, usize)> = Vec::new();
        for (word, weight) in all {
            let shared = path.iter().zip(word.chars());
            let shared = shared.take_while(|((a, _), b)| a == b).count();
            path.truncate(shared);
            let end = |path: &[(char, usize)]| path.last().map_or(0, |&(_, node)| node);
            for point in word.chars().skip(shared) {
                edges.push((edge_key(end(&path), point), weights.len() as i64));
                path.push((point, weights.len()));
                weights.push(None);
            }
            weights[end(&path)] = Some(weight);
        }
        let single = |&(word, _): &DictionaryEntry<'_>| {
            let mut points = word.chars();
            points.next().filter(|_| points.next().is_none())
        };
        Self {
            children: HashLookup::new(edges),
            weights,
            least: words.iter().map(|&(_, weight)| weight).fold(0.0, f64::min),
            own: own.iter().filter_map(single).collect(),
        }
    }

    fn child_node(&self, node: usize, point: char) -> Option<usize> {
        (self.children.get(edge_key(node, point))).map(|child| child as usize)
    }

    /// Finds the likeliest path from every character to the end.
    fn find_likeliest_ways(&self, points: &[char], ways: &mut Vec<(f64, usize)>) {
        ways.clear();
        ways.resize(points.len(), (LOG_OF_ZERO, 1));
        for at in (0..points.len()).rev() {
            let mut likeliest = (LOG_OF_ZERO, 1);
            let mut consider = |length: usize, weight: f64| {
                let rest = ways.get(at + length).map_or(0.0, |&(rest, _)| rest);
                if rest + weight > likeliest.0 {
                    likeliest = (rest + weight, length);
                }
            };
            let mut node = self.child_node(0, points[at]);
            let single = node.and_then(|node| self.weights[node]);
            consider(1, single.unwrap_or(self.least));
            let longer = points[at..].iter().enumerate().take(LONGEST_WORD).skip(1);
            for (index, &point) in longer {
                node = node.and_then(|node| self.child_node(node, point));
                let Some(node) = node else { break };
                if let Some(weight) = self.weights[node] {
                    consider(index + 1, weight);
                }
            }
            ways[at] = likeliest;
        }
    }
}

impl HiddenMarkovModel {
    /// Creates a model with the weight of every character in every state. Of equal characters the last one
    /// counts.
    pub(super) fn new(
        start: [f64; STATE_COUNT],
        steps: [[f64; STATE_COUNT]; STATE_COUNT],
        emissions: [Vec<(char, f64)>; STATE_COUNT],
    ) -> Self {
        let mut weights: Vec<[f64; STATE_COUNT]> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (state, emissions) in emissions.into_iter().enumerate() {
            for (point, weight) in emissions {
                let place = *places.entry(point).or_insert_with(|| {
                    weights.push([LOG_OF_ZERO; STATE_COUNT]);
                    weights.len() - 1
                });
                weights[place][state] = weight;
            }
        }
        let places = places.into_iter();
        Self {
            start,
            steps,
            emissions: HashLookup::new(
                places
                    .map(|(point, place)| (u64::from(point), place as i64))
                    .collect(),
            ),
            weights,
        }
    }

    fn emission_of(&self, point: char) -> [f64; STATE_COUNT] {
        let place = self.emissions.get(u64::from(point));
        place.map_or([LOG_OF_ZERO; STATE_COUNT], |place| {
            self.weights[place as usize]
        })
    }

    /// Cuts characters into words by the likeliest states (Viterbi 1967) and calls `visit` with the range of
    /// each word.
    fn cut_by_states(
        &self,
        points: &[char],
        before: &mut Vec<[u8; STATE_COUNT]>,
        mut visit: impl FnMut(Range<usize>),
    ) {
        let Some((&first, rest)) = points.split_first() else {
            return;
        };
        let emission = self.emission_of(first);
        let mut weights: [f64; STATE_COUNT] =
            std::array::from_fn(|state| self.start[state] + emission[state]);
        before.clear();
        before.push([END_STATE as u8; STATE_COUNT]);
        for &point in rest {
            let emission = self.emission_of(point);
            let mut from = [END_STATE as u8; STATE_COUNT];
            weights = std::array::from_fn(|state| {
                let mut likeliest = LOG_OF_ZERO;
                for (earlier, (weight, steps)) in weights.iter().zip(&self.steps).enumerate() {
                    let weight = weight + steps[state] + emission[state];
                    if weight > likeliest {
                        likeliest = weight;
                        from[state] = earlier as u8;
                    }
                }
                likeliest
            });
            before.push(from);
        }
        let mut state = if weights[END_STATE] >= weights[SINGLE_STATE] {
            END_STATE
        } else {
            SINGLE_STATE
        };
        // From here on, the first of the four values is the state of the character.
        for from in before.iter_mut().rev() {
            let earlier = from[state];
            from[0] = state as u8;
            state = earlier.into();
        }
        let mut start = 0;
        for (at, states) in before.iter().enumerate() {
            if [END_STATE, SINGLE_STATE].contains(&states[0].into()) {
                visit(start..at + 1);
                start = at + 1;
            }
        }
    }
}

impl WordCutter {
    /// Calls `visit` with the range of every word of more than one character, in the order of the text.
    pub(super) fn visit_words(
        &self,
        text: &str,
        buffers: &mut CutterBuffers,
        mut visit: impl FnMut(Range<usize>),
    ) {
        let mut start = 0;
        for stretch in text.split_inclusive(STRETCH_SEPARATORS) {
            let end = start + stretch.len();
            let stretch = stretch.trim_end_matches(STRETCH_SEPARATORS);
            buffers.read_stretch(stretch, start);
            self.cut_stretch(buffers, &mut visit);
            start = end;
        }
    }

    fn cut_stretch(&self, buffers: &mut CutterBuffers, visit: &mut impl FnMut(Range<usize>)) {
        let CutterBuffers {
            points,
            starts,
            ways,
            before,
        } = buffers;
        self.dictionary.find_likeliest_ways(points, ways);
        let mut word = |word: Range<usize>| {
            if word.len() > 1 {
                visit(starts[word.start]..starts[word.end]);
            }
        };
        let is_alone = |at: usize| ways[at].1 == 1 && !self.dictionary.own.contains(&points[at]);
        let mut at = 0;
        while at < points.len() {
            let alone = (at..points.len()).take_while(|&at| is_alone(at)).count();
            if alone == 0 {
                word(at..at + ways[at].1);
                at += ways[at].1;
            } else {
                self.cut_unknown(&points[at..at + alone], before, |part| {
                    word(at + part.start..at + part.end);
                });
                at += alone;
            }
        }
    }

    /// Cuts adjacent characters that the dictionary left as single words.
    fn cut_unknown(
        &self,
        points: &[char],
        before: &mut Vec<[u8; STATE_COUNT]>,
        mut visit: impl FnMut(Range<usize>),
    ) {
        let mut at = 0;
        while at < points.len() {
            let length = if points[at].is_ascii() {
                ascii_length(&points[at..])
            } else {
                points[at..]
                    .iter()
                    .take_while(|point| !point.is_ascii())
                    .count()
            };
            let here = at..at + length;
            if points[at].is_ascii() {
                visit(here);
            } else {
                self.model.cut_by_states(&points[here], before, |word| {
                    visit(at + word.start..at + word.end);
                });
            }
            at += length;
        }
    }
}

/// Returns how many characters stay together from an ASCII character on: letters and digits with decimals
/// behind them, or else this character alone.
fn ascii_length(points: &[char]) -> usize {
    let whole = count_leading(points, char::is_ascii_alphanumeric);
    let decimals = match points[whole..].split_first() {
        Some(('.', rest)) if whole > 0 => count_leading(rest, char::is_ascii_digit),
        _ => 0,
    };
    match (whole, decimals) {
        (0, _) => 1,
        (_, 0) => whole,
        _ => whole + 1 + decimals,
    }
}

fn count_leading(points: &[char], is: impl Fn(&char) -> bool) -> usize {
    points.iter().take_while(|point| is(point)).count()
}

impl CutterBuffers {
    fn read_stretch(&mut self, stretch: &str, start: usize) {
        self.points.clear();
        self.starts.clear();
        for (at, point) in stretch.char_indices() {
            self.points.push(point);
            self.starts.push(start + at);
        }
        self.starts.push(start + stretch.len());
    }

    /// Frees buffers with a capacity of more than `most` elements.
    pub(in crate::compat) fn trim_buffers(&mut self, most: usize) {
        if self.points.capacity() > most {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the weight of the heaviest of all paths.
    fn plain_way(points: &[char], words: &[DictionaryEntry<'_>], least: f64) -> f64 {
        if points.is_empty() {
            return 0.0;
        }
        let ways = (1..=points.len()).filter_map(|length| {
            let word: String = points[..length].iter().collect();
            let known = words.iter().rev().find(|&&(known, _)| known == word);
            let weight = known.map(|&(_, weight)| weight);
            let weight = weight.or((length == 1).then_some(least))?;
            Some(plain_way(&points[length..], words, least) + weight)
        });
        ways.fold(f64::MIN, f64::max)
    }

    #[test]
    fn segmentation_is_the_most_probable() {
        let words = [
            ("a", -2.0),
            ("ab", -3.5),
            ("abc", -5.25),
            ("bc", -2.75),
            ("cab", -4.5),
            ("ab", -3.0),
        ];
        let own = [("ca", -1.5)];
        let dictionary = WordDictionary::new(&words, &own);
        assert_eq!(dictionary.least, -5.25);
        let all = [&words[..], &own].concat();
        for number in 0..500 {
            let points: Vec<char> = (0..number % 12)
                .map(|at| ['a', 'b', 'c'][crate::hash::mix_bits(number * 16 + at) as usize % 3])
                .collect();
            let mut ways = Vec::new();
            dictionary.find_likeliest_ways(&points, &mut ways);
            let found = ways.first().map_or(0.0, |&(weight, _)| weight);
            assert_eq!(found, plain_way(&points, &all, -5.25), "{points:?}");
            let mut at = 0;
            let mut sum = 0.0;
            while at < points.len() {
                let length = ways[at].1;
                let word: String = points[at..at + length].iter().collect();
                let known = all.iter().rev().find(|&&(known, _)| known == word);
                sum += known.map_or(-5.25, |&(_, weight)| weight);
                at += length;
            }
            assert_eq!(sum, found, "{points:?}");
        }
    }

    #[test]
    fn ties_take_the_shorter_first_word() {
        let dictionary = WordDictionary::new(&[("ab", -2.0), ("a", -1.0), ("b", -1.0)], &[]);
        let mut ways = Vec::new();
        dictionary.find_likeliest_ways(&['a', 'b'], &mut ways);
        assert_eq!(ways, [(-2.0, 1), (-1.0, 1)]);
    }

    fn model() -> HiddenMarkovModel {
        let no = LOG_OF_ZERO;
        let weight = |seed: u64| -((crate::hash::mix_bits(seed) % 800) as f64) / 64.0;
        let emissions: [Vec<(char, f64)>; STATE_COUNT] = std::array::from_fn(|state| {
            let points = ['甲', '乙', '丙', '丁'].into_iter();
            points
                .map(|point| (point, weight(u64::from(point) * 4 + state as u64)))
                .collect()
        });
        HiddenMarkovModel::new(
            [-0.25, no, no, -1.5],
            [
                [no, -0.5, -1.0, no],
                [-0.5, no, no, -0.75],
                [no, -0.25, -1.25, no],
                [-0.75, no, no, -0.5],
            ],
            emissions,
        )
    }

    fn cut(model: &HiddenMarkovModel, points: &[char]) -> Vec<Range<usize>> {
        let mut words = Vec::new();
        model.cut_by_states(points, &mut Vec::new(), |word| words.push(word));
        words
    }

    /// Returns the weight of the states that cut characters into these words.
    fn weight_of(model: &HiddenMarkovModel, points: &[char], words: &[Range<usize>]) -> f64 {
        let states = words.iter().flat_map(|word| match word.len() {
            1 => vec![SINGLE_STATE],
            length => [&[0][..], &vec![2; length - 2], &[END_STATE]].concat(),
        });
        let mut before = None;
        let mut sum = 0.0;
        for (state, &point) in states.zip(points) {
            sum += before.map_or(model.start[state], |from: usize| model.steps[from][state]);
            sum += model.emission_of(point)[state];
            before = Some(state);
        }
        sum
    }

    #[test]
    fn model_cuts_by_the_most_probable_states() {
        let model = model();
        for number in 0..300u64 {
            let count = 1 + number % 9;
            let points: Vec<char> = (0..count)
                .map(|at| {
                    ['甲', '乙', '丙', '丁'][crate::hash::mix_bits(number * 16 + at) as usize % 4]
                })
                .collect();
            let words = cut(&model, &points);
            let covered: Vec<usize> = words.iter().cloned().flatten().collect();
            assert_eq!(covered, (0..points.len()).collect::<Vec<_>>());
            // Every way to place boundaries between the characters.
            let best = (0..1u32 << (count - 1)).map(|borders| {
                let mut all = Vec::new();
                let mut start = 0;
                for end in 1..=points.len() {
                    if end == points.len() || borders >> (end - 1) & 1 == 1 {
                        all.push(start..end);
                        start = end;
                    }
                }
                weight_of(&model, &points, &all)
            });
            let best = best.fold(f64::MIN, f64::max);
            assert_eq!(weight_of(&model, &points, &words), best, "{points:?}");
        }
    }

    #[test]
    fn unseen_characters_hide_known_states() {
        // All weights become equal, as in the tool, because its fingerprints must be reproduced.
        let model = model();
        assert_eq!(cut(&model, &['！', '？']), [0..1, 1..2]);
        assert_eq!(cut(&model, &[]), []);
    }
}
