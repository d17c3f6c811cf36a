//! Items of benchmarks planted into real documents in every form, and decoys: what is found of them, and how fast.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use lookalike::contamination::{
    ContaminationIndex, CorpusTerms, EvidenceWeights, ItemCandidate, ItemSearcher, ItemTexts,
};
use lookalike::quality::plant::{EditPlanter, ItemDecoy, ItemForm, TextStock};
use lookalike::text::TextAnalyzer;
use rayon::prelude::*;

use crate::corpora::Corpus;

#[derive(Clone, Default)]
struct Item {
    question: String,
    choices: Vec<String>,
    answer: String,
    passage: String,
}

impl Item {
    fn texts(&self) -> ItemTexts<'_> {
        ItemTexts {
            question: &self.question,
            choices: &self.choices,
            answer: &self.answer,
            passage: &self.passage,
        }
    }
}

fn read_items(folder: &Path) -> Result<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let mut by_key: BTreeMap<(String, String), usize> = BTreeMap::new();
        for line in std::fs::read_to_string(&path)?.lines() {
            let row: serde_json::Value = serde_json::from_str(line)?;
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let key = (row["eval_instance_index"].to_string(), text("question"));
            let at = *by_key.entry(key).or_insert_with(|| {
                items.push(Item {
                    question: text("question"),
                    passage: text("passage"),
                    ..Item::default()
                });
                items.len() - 1
            });
            let answer = text("answer");
            if row.get("is_correct").is_some() {
                items[at].choices.push(answer.clone());
            }
            if row["is_correct"] != serde_json::Value::Bool(false) {
                items[at].answer = answer;
            }
        }
    }
    Ok(items)
}

struct Planted {
    text: String,
    /// The item that stands in it.
    item: Option<u32>,
    kind: &'static str,
    length: usize,
}

pub fn run(data: &Path, benchmarks: &Path, corpus: &str, sample: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let corpus = Corpus::real(data, corpus, folder.path())?;
    let hosts = corpus.texts()?;
    let all = read_items(benchmarks)?;
    let rank = |item: &Item| lookalike::value_hash(item.question.as_bytes());
    let (items, others): (Vec<Item>, Vec<Item>) =
        all.into_iter().partition(|item| rank(item) % 2 == 0);
    let started = Instant::now();
    let index = ContaminationIndex::build(items.iter().map(Item::texts))?;
    println!(
        "{} items, index {:.1} MB in {:.2} s",
        items.len(),
        index.memory_bytes() as f64 / 1e6,
        started.elapsed().as_secs_f64()
    );
    let stock = TextStock::new(hosts.iter().take(500).map(String::as_str));
    let planter = EditPlanter::new(11, stock);
    let step = (items.len() / sample).max(1);
    let chosen: Vec<u32> = (0..items.len() as u32).step_by(step).collect();
    let host = |at: usize| &*hosts[(at * 7919) % hosts.len()];
    let analyzer = TextAnalyzer::new(&lookalike::Recipe::default());
    let planted: Vec<Planted> = chosen
        .par_iter()
        .flat_map_iter(|&number| {
            let item = &items[number as usize];
            let id = number.to_string();
            let length = analyzer.list_tokens(&item.question).len();
            let forms = ItemForm::ALL.iter().enumerate().filter_map({
                let (planter, id) = (&planter, id.clone());
                move |(at, &form)| {
                    let host = host(number as usize * 31 + at);
                    let host: String = host.chars().take(4000).collect();
                    let text = planter.plant_item(&id, &host, item.texts(), form)?;
                    Some(Planted {
                        text,
                        item: Some(number),
                        kind: form.name(),
                        length,
                    })
                }
            });
            let decoys = ItemDecoy::ALL.iter().enumerate().filter_map({
                let planter = &planter;
                move |(at, &decoy)| {
                    let host = host(number as usize * 37 + at);
                    let host: String = host.chars().take(4000).collect();
                    let text = planter.plant_decoy(&id, &host, item.texts(), decoy)?;
                    Some(Planted {
                        text,
                        item: None,
                        kind: decoy.name(),
                        length,
                    })
                }
            });
            forms.chain(decoys).collect::<Vec<_>>()
        })
        .collect();
    let series = others
        .iter()
        .step_by((others.len() / sample).max(1))
        .enumerate()
        .map(|(at, other)| {
            let text = format!("{}\nAnswer: {}", other.question, other.answer);
            let host: String = host(at * 41).chars().take(4000).collect();
            Planted {
                text: planter.insert_text(&other.question, &host, &text),
                item: None,
                kind: "same-series",
                length: 0,
            }
        });
    let planted: Vec<Planted> = planted.into_iter().chain(series).collect();
    // The corpus itself and the planted documents are searched.
    let started = Instant::now();
    let search = |texts: &[&str]| -> Result<(Vec<Vec<ItemCandidate>>, CorpusTerms)> {
        let found: Vec<_> = texts
            .par_chunks(256)
            .map(|texts| {
                let mut searcher = ItemSearcher::new(&index);
                let mut found = Vec::new();
                for text in texts {
                    let mut candidates = Vec::new();
                    searcher.search_text(text, &mut candidates)?;
                    found.push(candidates);
                }
                Ok((found, searcher.take_counts()))
            })
            .collect::<Result<_>>()?;
        let mut counts = CorpusTerms::new(&index);
        let mut all = Vec::new();
        for (candidates, more) in found {
            all.extend(candidates);
            counts.add_counted(&more);
        }
        Ok((all, counts))
    };
    let host_texts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let bytes: usize = hosts.iter().map(String::len).sum();
    let (natural, mut counts) = search(&host_texts)?;
    let seconds = started.elapsed().as_secs_f64();
    let candidates: usize = natural.iter().map(Vec::len).sum();
    println!(
        "corpus: {:.0} MB in {seconds:.2} s: {:.0} MB/s, {candidates} candidates",
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / seconds
    );
    let texts: Vec<&str> = planted.iter().map(|planted| &*planted.text).collect();
    let (found, more) = search(&texts)?;
    counts.add_counts(&more);
    let weights = EvidenceWeights::new(&index, &counts);
    let judge = |candidate: &ItemCandidate| candidate.weigh_evidence(&index, &weights);
    let mut in_corpus = 0;
    for (text, candidates) in hosts.iter().zip(&natural) {
        for candidate in candidates {
            if let Some(evidence) = judge(candidate) {
                in_corpus += 1;
                if in_corpus <= 20 {
                    println!(
                        "  corpus: {:?} {:.2} {:.0} bits: {:?} <- {:?}",
                        evidence.found,
                        evidence.score,
                        evidence.bits,
                        text[candidate.whole_place.clone()]
                            .chars()
                            .take(200)
                            .collect::<String>(),
                        items[candidate.item as usize]
                            .question
                            .chars()
                            .take(200)
                            .collect::<String>()
                    );
                }
            }
        }
    }
    println!("findings in the corpus itself: {in_corpus}");
    // Kind -> (planted, found), and wrong findings.
    let mut by_kind: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let (mut right, mut wrong) = (0, 0);
    let mut shown = BTreeMap::new();
    for (planted, candidates) in planted.iter().zip(&found) {
        let judged: Vec<_> = candidates
            .iter()
            .filter_map(|candidate| Some((candidate, judge(candidate)?)))
            .collect();
        let row = by_kind.entry(planted.kind).or_default();
        let same = |item: u32| {
            planted.item.is_some_and(|wanted| {
                item == wanted || items[item as usize].question == items[wanted as usize].question
            })
        };
        let is_found = judged.iter().any(|(candidate, _)| same(candidate.item));
        let others = judged
            .iter()
            .filter(|(candidate, _)| !same(candidate.item))
            .count();
        row[0] += 1;
        row[1] += usize::from(is_found || (planted.item.is_none() && others > 0));
        if planted.length < 13 && planted.item.is_some() {
            row[2] += 1;
            row[3] += usize::from(is_found);
        }
        right += usize::from(is_found);
        wrong += usize::from(others > 0);
        let count: &mut usize = shown.entry((planted.kind, is_found)).or_default();
        if planted.item.is_some() && !is_found && *count < 6 {
            *count += 1;
            let wanted = planted.item.unwrap_or_default();
            let candidate = candidates.iter().find(|candidate| candidate.item == wanted);
            println!(
                "  missed {}: {:?} answer {:?} (candidate: {})",
                planted.kind,
                items[wanted as usize]
                    .question
                    .chars()
                    .take(300)
                    .collect::<String>(),
                items[wanted as usize]
                    .answer
                    .chars()
                    .take(100)
                    .collect::<String>(),
                candidate.is_some()
            );
        }
        if others > 0 && *count < 10 {
            *count += 1;
            for (candidate, evidence) in judged
                .iter()
                .filter(|(candidate, _)| !same(candidate.item))
                .take(1)
            {
                println!(
                    "  wrong {}: {:?} {:.2} {:.0} bits: {:?} <- {:?}",
                    planted.kind,
                    evidence.found,
                    evidence.score,
                    evidence.bits,
                    planted.text[candidate.whole_place.clone()]
                        .chars()
                        .take(300)
                        .collect::<String>(),
                    items[candidate.item as usize]
                        .question
                        .chars()
                        .take(300)
                        .collect::<String>()
                );
            }
        }
    }
    println!(
        "{:20} {:>7} {:>7} {:>7}   {:>7} {:>7}",
        "kind", "planted", "found", "share", "short", "share"
    );
    for (kind, [planted, found, short, short_found]) in by_kind {
        println!(
            "{kind:20} {planted:7} {found:7} {:7.3}   {short:7} {:7.3}",
            found as f64 / planted as f64,
            short_found as f64 / short.max(1) as f64
        );
    }
    println!(
        "precision {:.4} ({wrong} documents with wrong findings)",
        right as f64 / (right + wrong) as f64
    );
    Ok(())
}
