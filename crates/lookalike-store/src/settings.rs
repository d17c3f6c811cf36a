//! Settings of a collection, and the manifest that stores them.

use std::sync::Arc;
use std::time::Duration;

use lookalike::plan::{self, CandidateRule, EditUnit, MatchMethod, MatchPlan, SimilarityMeasure};
use lookalike::stream::StreamWindow;
use lookalike::{Recipe, Threshold};
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::recipes::{RECIPE, check_loaded, read_collection_recipe, write_recipe};

/// Kind of content that a collection holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectionContent {
    /// Documents with their texts.
    #[default]
    Texts,
    /// Fingerprints without their texts.
    Fingerprints,
}

/// Treatment of a document whose id exists with other content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The document is refused.
    #[default]
    Refuse,
    /// The document replaces the existing one, which is deleted.
    Replace,
}

/// Clock by which documents leave the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpiryClock {
    /// The clock of the documents: the newest time of a stored document.
    #[default]
    Documents,
    /// Also the wall clock, so that documents leave the window even if none arrives. A document whose time is
    /// before the window is late, whatever the times of other documents.
    Wall,
}

impl ExpiryClock {
    /// Returns the clock of a window.
    pub fn from_window(window: &StreamWindow) -> Self {
        match window.follows_wall_clock() {
            true => Self::Wall,
            false => Self::Documents,
        }
    }

    fn is_documents(&self) -> bool {
        *self == Self::Documents
    }
}

/// Settings of a collection, fixed at its creation.
///
/// ```
/// use std::time::Duration;
///
/// use lookalike::stream::StreamWindow;
/// use lookalike_store::CollectionSettings;
///
/// let (two_days, skew) = (Duration::from_secs(2 * 24 * 3600), Duration::from_secs(60));
/// let window = Some(StreamWindow::new(two_days, skew, false)?);
/// let settings = CollectionSettings { window, ..CollectionSettings::default() };
/// assert!(settings.match_plan().is_ok());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionSettings {
    /// Determines tokens, features and sketches.
    pub recipe: Recipe,
    /// Match options.
    pub matching: plan::MatchSettings,
    /// Window in time within which documents can match, and its clock; `None` means that all documents are
    /// kept for ever.
    pub window: Option<StreamWindow>,
    /// Kind of content.
    pub holds: CollectionContent,
    /// Treatment of other content under an existing id.
    pub on_conflict: OnConflict,
}

impl Default for CollectionSettings {
    fn default() -> Self {
        Self {
            recipe: Recipe::default(),
            matching: plan::MatchSettings::default(),
            window: None,
            holds: CollectionContent::Texts,
            on_conflict: OnConflict::Refuse,
        }
    }
}

impl CollectionSettings {
    /// Returns the match plan.
    ///
    /// # Errors
    /// If the settings contradict one another, or the recipe names files whose contents it does not have.
    pub fn match_plan(&self) -> Result<MatchPlan> {
        check_loaded(&self.recipe)?;
        let by_fingerprint = self.matching.method == MatchMethod::SimHash
            && self.matching.measure == SimilarityMeasure::Sketch;
        if self.holds == CollectionContent::Fingerprints && !by_fingerprint {
            return Err(Error::setting_error(
                "a collection of fingerprints compares nothing else: its method must be 'simhash' \
                 without a measure",
            ));
        }
        Ok(MatchPlan::new(&self.recipe, self.matching)?)
    }
}

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

/// Name of the manifest.
pub(crate) const MANIFEST: &str = "manifest";

const MAGIC: &str = "lookalike-collection";

/// Version of collections without a list of partitions.
const WITHOUT_LIST: u32 = 1;

/// Version of new collections.
const VERSION: u32 = 2;

/// Ending of the name of an incomplete file.
pub(crate) const NEW: &str = ".new";

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
            write_recipe(disk, RECIPE, &self.settings.recipe)?;
        }
        let text = format!("{}\n{}", first_line(VERSION, self.seal), self.body);
        let name = format!("{MANIFEST}{NEW}");
        let write = || {
            let file = disk.create_file(&name)?;
            file.write_at(text.as_bytes(), 0)?;
            file.sync()?;
            disk.rename_file(&name, MANIFEST)?;
            disk.sync_names()
        };
        write().map_err(|error| Error::disk_error("cannot write", MANIFEST, &error))
    }

    pub(crate) fn read_file(disk: &dyn Disk) -> Result<Self> {
        let read = || {
            let file = disk.open_file(MANIFEST)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| Error::disk_error("cannot read", MANIFEST, &error))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::damaged_file(MANIFEST, "it is not text"))?;
        let (head, body) = text
            .split_once('\n')
            .ok_or_else(|| Error::damaged_file(MANIFEST, "it has no second line"))?;
        let seal = crc32fast::hash(body.as_bytes());
        let lists_partitions = head == first_line(VERSION, seal);
        if !lists_partitions && head != first_line(WITHOUT_LIST, seal) {
            let (head, expected) = (line_beginning(head), first_line(VERSION, seal));
            let what = format!("its first line '{head}' is not '{expected}'");
            return Err(Error::damaged_file(MANIFEST, what));
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
        serde_json::from_str(body).map_err(|error| Error::damaged_file(MANIFEST, error))?;
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
