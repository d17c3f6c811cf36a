//! The manifest: the settings of a collection, written once. A directory without it is no collection.

use std::sync::Arc;
use std::time::Duration;

use lookalike::Threshold;
use lookalike::plan::{self, CandidateRule, EditUnit, MatchMethod, SimilarityMeasure};
use lookalike::stream::StreamWindow;
use serde::{Deserialize, Serialize};

use super::file_names::{INCOMPLETE, MANIFEST_FILE, RECIPE_FILE};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::recipes::{read_collection_recipe, write_recipe};
use crate::settings::{CollectionContent, CollectionSettings, ExpiryClock, OnConflict};

/// The settings as they are written in the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestSettings {
    recipe: String,
    #[serde(with = "MethodName")]
    method: MatchMethod,
    threshold: f64,
    distance: u32,
    #[serde(with = "MeasureName")]
    measure: SimilarityMeasure,
    #[serde(with = "UnitName")]
    unit: EditUnit,
    #[serde(with = "CandidatesName")]
    candidates: CandidateRule,
    sentences: usize,
    window: Option<WrittenWindow>,
    holds: CollectionContent,
    on_conflict: OnConflict,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWindow {
    width_us: u64,
    skew_us: u64,
    refresh: bool,
    /// Omitted if it is the default, so that manifests of earlier versions stay the same.
    #[serde(default, skip_serializing_if = "ExpiryClock::is_documents")]
    expire: ExpiryClock,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MatchMethod", rename_all = "lowercase")]
enum MethodName {
    Auto,
    MinHash,
    SimHash,
    Exact,
    Join,
    Sentences,
    BottomK,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SimilarityMeasure", rename_all = "lowercase")]
enum MeasureName {
    Jaccard,
    Containment,
    Cosine,
    Levenshtein,
    Indel,
    #[serde(rename = "lcs")]
    Substring,
    #[serde(rename = "none")]
    Sketch,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EditUnit", rename_all = "lowercase")]
enum UnitName {
    Characters,
    Words,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CandidateRule", rename_all = "lowercase")]
enum CandidatesName {
    Distance,
    Blocks,
}

const MAGIC: &str = "lookalike-collection";

/// Version of collections without a list of partitions.
const WITHOUT_LIST: u32 = 1;

/// Version of new collections.
const VERSION: u32 = 2;

/// The manifest of a collection.
#[derive(Debug)]
pub(crate) struct CollectionManifest {
    pub(crate) settings: Arc<CollectionSettings>,
    /// The settings as they are written.
    body: String,
    /// Checksum of the settings, by which the other files of the collection refer to it.
    pub(crate) seal: u32,
    /// `true` if the collection has a list of partitions.
    pub(crate) lists_partitions: bool,
}

impl CollectionManifest {
    /// Returns the manifest of a new collection.
    pub(crate) fn new(settings: &CollectionSettings) -> Result<Self> {
        let body = encode_settings(settings)?;
        Ok(Self {
            settings: Arc::new(settings.clone()),
            seal: crc32fast::hash(body.as_bytes()),
            body,
            lists_partitions: true,
        })
    }

    /// Writes the manifest of a collection with a list of partitions, and before it the files that the recipe
    /// names. Each gets its final name once it is complete.
    pub(crate) fn write_file(&self, disk: &dyn Disk) -> Result<()> {
        if !self.settings.recipe.files.is_empty() {
            write_recipe(disk, RECIPE_FILE, &self.settings.recipe)?;
        }
        let text = format!("{}\n{}", first_line(VERSION, self.seal), self.body);
        let name = format!("{MANIFEST_FILE}{INCOMPLETE}");
        let write = || {
            let file = disk.create_file(&name)?;
            file.write_at(text.as_bytes(), 0)?;
            file.sync()?;
            disk.rename_file(&name, MANIFEST_FILE)?;
            disk.sync_names()
        };
        write().map_err(|error| Error::disk_error("cannot write", MANIFEST_FILE, &error))
    }

    pub(crate) fn read_file(disk: &dyn Disk) -> Result<Self> {
        let read = || {
            let file = disk.open_file(MANIFEST_FILE)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes =
            read().map_err(|error| Error::disk_error("cannot read", MANIFEST_FILE, &error))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::damaged_file(MANIFEST_FILE, "it is not text"))?;
        let (head, body) = text
            .split_once('\n')
            .ok_or_else(|| Error::damaged_file(MANIFEST_FILE, "it has no second line"))?;
        let seal = crc32fast::hash(body.as_bytes());
        let lists_partitions = head == first_line(VERSION, seal);
        if !lists_partitions && head != first_line(WITHOUT_LIST, seal) {
            let (head, expected) = (line_beginning(head), first_line(VERSION, seal));
            let what = format!("its first line '{head}' is not '{expected}'");
            return Err(Error::damaged_file(MANIFEST_FILE, what));
        }
        Ok(Self {
            settings: Arc::new(decode_settings(disk, body)?),
            body: body.to_owned(),
            seal,
            lists_partitions,
        })
    }
}

fn first_line(version: u32, seal: u32) -> String {
    format!("{MAGIC} {version} {seal:08x}")
}

fn line_beginning(line: &str) -> String {
    line.chars().take(60).collect()
}

fn encode_settings(settings: &CollectionSettings) -> Result<String> {
    let matching = settings.matching;
    let microseconds = |duration: Duration| duration.as_micros() as u64;
    let written = ManifestSettings {
        recipe: settings.recipe.to_toml(),
        method: matching.method,
        threshold: matching.threshold.get(),
        distance: matching.distance,
        measure: matching.measure,
        unit: matching.unit,
        candidates: matching.candidates,
        sentences: matching.sentences,
        window: settings.window.map(|window| WrittenWindow {
            width_us: microseconds(window.width()),
            skew_us: microseconds(window.skew()),
            refresh: window.is_refreshing(),
            expire: ExpiryClock::from_window(&window),
        }),
        holds: settings.holds,
        on_conflict: settings.on_conflict,
    };
    serde_json::to_string_pretty(&written).map_err(|error| Error::setting_error(error.to_string()))
}

fn decode_settings(disk: &dyn Disk, body: &str) -> Result<CollectionSettings> {
    let written: ManifestSettings =
        serde_json::from_str(body).map_err(|error| Error::damaged_file(MANIFEST_FILE, error))?;
    let recipe = read_collection_recipe(disk, &written.recipe)?;
    let window = written.window.map(|window| {
        let duration = Duration::from_micros;
        StreamWindow::new(
            duration(window.width_us),
            duration(window.skew_us),
            window.refresh,
        )
        .map(|made| made.with_wall_clock(window.expire == ExpiryClock::Wall))
    });
    Ok(CollectionSettings {
        recipe,
        matching: plan::MatchSettings {
            method: written.method,
            threshold: Threshold::new(written.threshold)?,
            distance: written.distance,
            measure: written.measure,
            unit: written.unit,
            candidates: written.candidates,
            sentences: written.sentences,
        },
        window: window.transpose()?,
        holds: written.holds,
        on_conflict: written.on_conflict,
    })
}
