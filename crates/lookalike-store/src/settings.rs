//! Settings of a collection, and the manifest that stores them.

use std::sync::Arc;
use std::time::Duration;

use lookalike::online::Window;
use lookalike::plan::{self, Candidates, Measure, Method, Plan, Unit};
use lookalike::{Recipe, Threshold};
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::error::{Error, Result};

/// Kind of content that a collection holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
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
pub enum Expire {
    /// The clock of the documents: the newest time of a stored document.
    #[default]
    Documents,
    /// Also the wall clock, so that documents leave the window even if none arrives. A document whose time is
    /// before the window is late, whatever the times of other documents.
    Wall,
}

impl Expire {
    /// Returns the clock of a window.
    pub fn of(window: &Window) -> Self {
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
/// use lookalike::online::Window;
/// use lookalike_store::Settings;
///
/// let (two_days, skew) = (Duration::from_secs(2 * 24 * 3600), Duration::from_secs(60));
/// let window = Some(Window::new(two_days, skew, false)?);
/// let settings = Settings { window, ..Settings::default() };
/// assert!(settings.plan().is_ok());
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Determines tokens, features and sketches.
    pub recipe: Recipe,
    /// Match options.
    pub matching: plan::Settings,
    /// Window in time within which documents can match, and its clock; `None` means that all documents are
    /// kept for ever.
    pub window: Option<Window>,
    /// Kind of content.
    pub holds: Holds,
    /// Treatment of other content under an existing id.
    pub on_conflict: OnConflict,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            recipe: Recipe::default(),
            matching: plan::Settings::default(),
            window: None,
            holds: Holds::Texts,
            on_conflict: OnConflict::Refuse,
        }
    }
}

impl Settings {
    /// Returns the match plan.
    ///
    /// # Errors
    /// If the settings contradict one another, or the recipe names files, for which a collection has no
    /// place.
    pub fn plan(&self) -> Result<Plan> {
        if let Some((what, file)) = self.recipe.file_names().first() {
            return Err(Error::setting(format!(
                "the recipe names the file '{file}' ({what}): a collection takes recipes without files"
            )));
        }
        let by_fingerprint =
            self.matching.method == Method::SimHash && self.matching.measure == Measure::Sketch;
        if self.holds == Holds::Fingerprints && !by_fingerprint {
            return Err(Error::setting(
                "a collection of fingerprints compares nothing else: its method must be 'simhash' \
                 without a measure",
            ));
        }
        Ok(Plan::new(&self.recipe, self.matching)?)
    }
}

/// The settings as they are written in the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    recipe: String,
    #[serde(with = "MethodName")]
    method: Method,
    threshold: f64,
    distance: u32,
    #[serde(with = "MeasureName")]
    measure: Measure,
    #[serde(with = "UnitName")]
    unit: Unit,
    #[serde(with = "CandidatesName")]
    candidates: Candidates,
    sentences: usize,
    window: Option<WrittenWindow>,
    holds: Holds,
    on_conflict: OnConflict,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWindow {
    width_us: u64,
    skew_us: u64,
    refresh: bool,
    /// Omitted if it is the default, so that manifests of earlier versions stay the same.
    #[serde(default, skip_serializing_if = "Expire::is_documents")]
    expire: Expire,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Method", rename_all = "lowercase")]
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
#[serde(remote = "Measure", rename_all = "lowercase")]
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
#[serde(remote = "Unit", rename_all = "lowercase")]
enum UnitName {
    Characters,
    Words,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Candidates", rename_all = "lowercase")]
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
pub(crate) struct Manifest {
    pub(crate) settings: Arc<Settings>,
    /// The settings as they are written.
    body: String,
    /// Checksum of the settings, by which the other files of the collection refer to it.
    pub(crate) seal: u32,
    /// `true` if the collection has a list of partitions.
    pub(crate) lists_partitions: bool,
}

impl Manifest {
    /// Returns the manifest of a new collection.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let body = encode(settings)?;
        Ok(Self {
            settings: Arc::new(settings.clone()),
            seal: crc32fast::hash(body.as_bytes()),
            body,
            lists_partitions: true,
        })
    }

    /// Writes the manifest of a collection with a list of partitions. It gets its final name once it is
    /// complete.
    pub(crate) fn write(&self, disk: &dyn Disk) -> Result<()> {
        let text = format!("{}\n{}", first_line(VERSION, self.seal), self.body);
        let name = format!("{MANIFEST}{NEW}");
        let write = || {
            let file = disk.create(&name)?;
            file.write_at(text.as_bytes(), 0)?;
            file.sync()?;
            disk.rename(&name, MANIFEST)?;
            disk.sync_names()
        };
        write().map_err(|error| Error::disk("cannot write", MANIFEST, &error))
    }

    pub(crate) fn read(disk: &dyn Disk) -> Result<Self> {
        let read = || {
            let file = disk.open(MANIFEST)?;
            let mut bytes = vec![0; file.len()? as usize];
            file.read_exact(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| Error::disk("cannot read", MANIFEST, &error))?;
        let text =
            String::from_utf8(bytes).map_err(|_| Error::damaged(MANIFEST, "it is not text"))?;
        let (head, body) = text
            .split_once('\n')
            .ok_or_else(|| Error::damaged(MANIFEST, "it has no second line"))?;
        let seal = crc32fast::hash(body.as_bytes());
        let lists_partitions = head == first_line(VERSION, seal);
        if !lists_partitions && head != first_line(WITHOUT_LIST, seal) {
            let (head, expected) = (beginning(head), first_line(VERSION, seal));
            let what = format!("its first line '{head}' is not '{expected}'");
            return Err(Error::damaged(MANIFEST, what));
        }
        Ok(Self {
            settings: Arc::new(decode(body)?),
            body: body.to_owned(),
            seal,
            lists_partitions,
        })
    }
}

fn first_line(version: u32, seal: u32) -> String {
    format!("{MAGIC} {version} {seal:08x}")
}

fn beginning(line: &str) -> String {
    line.chars().take(60).collect()
}

fn encode(settings: &Settings) -> Result<String> {
    let matching = settings.matching;
    let microseconds = |duration: Duration| duration.as_micros() as u64;
    let written = Written {
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
            refresh: window.refreshes(),
            expire: Expire::of(&window),
        }),
        holds: settings.holds,
        on_conflict: settings.on_conflict,
    };
    serde_json::to_string_pretty(&written).map_err(|error| Error::setting(error.to_string()))
}

fn decode(body: &str) -> Result<Settings> {
    let written: Written =
        serde_json::from_str(body).map_err(|error| Error::damaged(MANIFEST, error))?;
    let recipe = Recipe::read(&written.recipe, &|_, file| file.into())?;
    let window = written.window.map(|window| {
        let duration = Duration::from_micros;
        Window::new(
            duration(window.width_us),
            duration(window.skew_us),
            window.refresh,
        )
        .map(|made| made.with_wall_clock(window.expire == Expire::Wall))
    });
    Ok(Settings {
        recipe,
        matching: plan::Settings {
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
