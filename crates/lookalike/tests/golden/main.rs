//! Golden vectors: a recipe yields the same fingerprints for ever.

mod compat;
mod vectors;

use std::collections::BTreeSet;

use lookalike::{Cpu, Recipe};
use serde_json::Value;

fn recorded() -> Vec<String> {
    let file = std::fs::read_to_string(vectors::path("vectors.jsonl"))
        .expect("the vectors are in the repository");
    file.lines().map(str::to_owned).collect()
}

#[test]
fn all_instruction_sets_equal_golden_vectors() {
    let recorded = recorded();
    for cpu in Cpu::detect_all() {
        let made = vectors::lines(cpu).unwrap();
        assert_eq!(made.len(), recorded.len());
        for (made, recorded) in made.iter().zip(&recorded) {
            assert_eq!(made, recorded, "by {}", cpu.name());
        }
    }
}

#[test]
fn every_recipe_and_text_state_has_vectors() {
    let built_in: BTreeSet<String> = Recipe::NAMES
        .iter()
        .map(|name| Recipe::built_in(name).unwrap())
        // The vectors of these recipes are in `testdata/compat`.
        .filter(|recipe| recipe.scheme.is_none())
        .map(|recipe| recipe.name)
        .collect();
    let here = vectors::RECIPES.map(str::to_owned);
    assert_eq!(BTreeSet::from(here), built_in);
    let states: BTreeSet<String> = recorded()
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["state"].to_string())
        .collect();
    assert_eq!(states.len(), 4, "{states:?}");
}

#[test]
fn equal_normalised_texts_have_one_text_key() {
    let key = |text: &str| {
        let lines = recorded();
        let values = lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let line = values
            .into_iter()
            .find(|line| line["text"] == text && line["recipe"] == "default-1");
        line.unwrap()["key"].clone()
    };
    assert_eq!(key("english"), key("english-loud"));
    assert_eq!(key("chinese-simplified"), key("chinese-traditional"));
    assert_ne!(key("english"), key("chinese-simplified"));
}
