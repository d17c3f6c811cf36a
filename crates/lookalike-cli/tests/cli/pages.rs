//! The documents are in step: Chinese pages with English ones, links with what they lead to, pages with their size.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Documents for programs, for the curious and for developers. They are in English only and may be long.
const REFERENCES: [&str; 12] = [
    "docs/architecture.md",
    "docs/decisions",
    "docs/evaluation.md",
    "docs/format.md",
    "docs/glossary.md",
    "docs/http.md",
    "docs/python/reference.md",
    "docs/python/speed.md",
    "docs/reference.md",
    "docs/spark-steps.md",
    "docs/summaries.md",
    "docs/zh",
];

/// Bytes of the longest page that a user has to read, and of the README.
const MOST_BYTES_OF_PAGE: usize = 12_000;
const MOST_BYTES_OF_README: usize = 8_000;
/// Bytes of all pages that users read, in both languages together.
const MOST_BYTES_TOGETHER: usize = 460_000;
/// Bytes of the page of measurements. Figures that few readers need are in `bench/figures/`.
const MOST_BYTES_OF_EVALUATION: usize = 15_000;

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(super) fn read_page(page: &Path) -> String {
    fs::read_to_string(root().join(page))
        .unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// Returns the README and the pages below `docs/` that users read, in English, by their paths from the root.
pub(super) fn user_pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    pages.extend(find_pages(Path::new("docs")).into_iter().filter(|page| {
        !REFERENCES
            .iter()
            .any(|reference| page.starts_with(reference))
    }));
    pages
}

/// Returns the Markdown files below a directory, sorted.
fn find_pages(directory: &Path) -> BTreeSet<PathBuf> {
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let entry = directory.join(entry.unwrap().file_name());
        if root().join(&entry).is_dir() {
            pages.extend(find_pages(&entry));
        } else if entry.extension().is_some_and(|it| it == "md") {
            pages.insert(entry);
        }
    }
    pages
}

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageLanguage {
    English,
    Chinese,
}

impl PageLanguage {
    /// Returns the locale in which the program speaks this language.
    pub(super) fn locale(self) -> &'static str {
        match self {
            Self::English => "C.UTF-8",
            Self::Chinese => "zh_CN.UTF-8",
        }
    }

    /// Returns where the text of an English page is in this language.
    pub(super) fn page_of(self, english: &Path) -> PathBuf {
        match (self, english.strip_prefix("docs")) {
            (Self::English, _) => english.to_owned(),
            (Self::Chinese, Ok(page)) => Path::new("docs/zh").join(page),
            (Self::Chinese, Err(_)) => english.with_extension("zh.md"),
        }
    }
}

/// Returns the code blocks of a page with their borders, and the levels of its headings.
fn parse_outline(page: &str) -> (Vec<String>, Vec<usize>) {
    let (mut blocks, mut levels) = (Vec::new(), Vec::new());
    let mut block: Option<String> = None;
    for line in page.lines() {
        let is_border = line.starts_with("```");
        match &mut block {
            Some(text) => {
                text.push_str(line);
                text.push('\n');
                if is_border {
                    blocks.extend(block.take());
                }
            }
            None if is_border => block = Some(format!("{line}\n")),
            None if line.starts_with('#') => {
                levels.push(line.chars().take_while(|&it| it == '#').count());
            }
            None => {}
        }
    }
    assert!(block.is_none(), "a code block has no end");
    (blocks, levels)
}

/// Returns the lines of a block that are the same in every language: all of them, but of an example with the output of the
/// program only the commands. Lines of output are empty here, because there are as many of them in every language.
fn language_free_lines(block: &str) -> Vec<&str> {
    let is_example = block.starts_with("```console\n");
    let is_output = |line: &str| is_example && !line.starts_with("$ ") && !line.starts_with("```");
    let lines = block.lines();
    lines
        .map(|line| if is_output(line) { "" } else { line })
        .collect()
}

/// Returns a page with the code blocks of another one in place of its own.
pub(super) fn with_blocks_of(page: &str, other: &str) -> String {
    let mut blocks = parse_outline(other).0.into_iter();
    let mut copied = String::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
            if in_block {
                copied.push_str(&blocks.next().unwrap_or_default());
            }
        } else if !in_block {
            copied.push_str(line);
            copied.push('\n');
        }
    }
    copied
}

#[test]
fn chinese_pages_follow_the_english_ones() {
    let pages = user_pages();
    assert!(pages.len() > 30, "{pages:?}");
    let mut expected = BTreeSet::new();
    for page in &pages {
        let chinese = PageLanguage::Chinese.page_of(page);
        let (blocks, levels) = parse_outline(&read_page(page));
        let (chinese_blocks, chinese_levels) = parse_outline(&read_page(&chinese));
        let name = chinese.display();
        assert_eq!(levels, chinese_levels, "{name}: levels of the headings");
        assert_eq!(blocks.len(), chinese_blocks.len(), "{name}: code blocks");
        for (block, chinese) in blocks.iter().zip(&chinese_blocks) {
            let hint = "`./test -- --ignored write_the_guide` copies blocks";
            assert_eq!(
                language_free_lines(block),
                language_free_lines(chinese),
                "{name}: {hint}"
            );
        }
        expected.insert(chinese);
    }
    for page in find_pages(Path::new("docs/zh")) {
        assert!(
            expected.contains(&page),
            "{} has no English page",
            page.display()
        );
    }
}

#[test]
fn pages_of_users_are_short() {
    let bytes = read_page(Path::new("docs/evaluation.md")).len();
    assert!(
        bytes <= MOST_BYTES_OF_EVALUATION,
        "docs/evaluation.md: {bytes} bytes, at most {MOST_BYTES_OF_EVALUATION}: move figures to bench/figures/"
    );
    for english in user_pages() {
        for page in [PageLanguage::Chinese.page_of(&english), english] {
            let is_readme = page.starts_with("README.md") || page.starts_with("README.zh.md");
            let most = if is_readme {
                MOST_BYTES_OF_README
            } else {
                MOST_BYTES_OF_PAGE
            };
            let bytes = read_page(&page).len();
            assert!(
                bytes <= most,
                "{}: {bytes} bytes, at most {most}: divide it",
                page.display()
            );
        }
    }
}

#[test]
fn pages_of_users_are_few() {
    let both = |english: PathBuf| [PageLanguage::Chinese.page_of(&english), english];
    let pages = user_pages().into_iter().flat_map(both);
    let bytes: usize = pages.map(|page| read_page(&page).len()).sum();
    assert!(
        bytes <= MOST_BYTES_TOGETHER,
        "{bytes} bytes, at most {MOST_BYTES_TOGETHER}: say it once, and leave lists to the references"
    );
}

/// Returns the name of a heading in links, as GitHub and the site form it.
fn heading_anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            _ if character.is_alphanumeric() => Some(character),
            _ => None,
        });
    kept.collect::<String>().to_lowercase()
}

fn heading_anchors(page: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut anchors = BTreeSet::new();
    for line in page.lines() {
        in_block ^= line.starts_with("```");
        if !in_block && line.starts_with('#') {
            anchors.insert(heading_anchor(line.trim_start_matches('#')));
        }
    }
    anchors
}

/// Returns the targets of the links and pictures of a page, outside of code blocks.
fn link_targets(page: &str) -> Vec<&str> {
    let prose = page.split("\n```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1));
    targets
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .filter(|target| {
            !target.contains(' ') && !target.contains("://") && !target.starts_with("mailto:")
        })
        .collect()
}

/// Returns a path without `..` and `.`.
fn normal_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[test]
fn links_lead_somewhere() {
    let mut pages = find_pages(Path::new("docs"));
    pages.extend(find_pages(Path::new("bench/figures")));
    let others = [
        "bench/README.md",
        "README.md",
        "README.zh.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "examples/README.md",
    ];
    pages.extend(others.map(PathBuf::from));
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in &pages {
        for target in link_targets(&read_page(page)) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.clone(),
                _ => normal_path(&page.parent().unwrap().join(file)),
            };
            let is_found = root().join(&path).exists()
                && (anchor.is_empty() || heading_anchors(&read_page(&path)).contains(anchor));
            if !is_found {
                wrong.push(format!("{}: {target}", page.display()));
            }
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked}");
    assert!(
        wrong.is_empty(),
        "these links lead nowhere:\n{}",
        wrong.join("\n")
    );
}
