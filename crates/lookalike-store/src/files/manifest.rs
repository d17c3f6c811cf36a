//! The manifest: the settings of a collection. A directory without it is no collection.
//!
//! The settings at the creation of the collection are never changed in it, because other files refer to their
//! checksum. Changes are written beside them, and the whole file is replaced at once:
//!
//! ```text
//! lookalike-collection 2 SEAL              lookalike-collection 3 SEAL CHECKSUM
//! settings at the creation                 changes, on one line
//!                                          settings at the creation
//! ```
//!
//! Version 4 is as version 3. Its second line also has the places in a shared log at which the collection was created
//! and last changed, and has the changes only if there are any. Collections that follow no log do not have it.

use std::sync::Arc;

use lookalike::Threshold;
use lookalike::plan::{self, CandidateRule, EditUnit, MatchMethod, SimilarityMeasure};
use lookalike::stream::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::file_names::{MANIFEST_FILE, RECIPE_FILE};
use super::log_progress::{LogMark, LogPosition, LoggedChange};
use super::whole_file::{publish_file, read_file, stage_file};
use super::window_history::{WindowChange, WindowHistory, WrittenChange, WrittenWindow};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::recipes::{read_collection_recipe, write_recipe};
use crate::settings::{CollectionContent, CollectionSettings, OnConflict};

/// The settings as they are written in the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestSettings {
    recipe: String,
    #[serde(with = "method_name")]
    method: MatchMethod,
    threshold: f64,
    distance: u32,
    #[serde(with = "measure_name")]
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

/// The changes of the settings as they are written in the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestChanges {
    on_conflict: OnConflict,
    windows: Vec<WrittenChange>,
}

/// Places in a shared log, and the changes of the settings if there are any, as they are written in the manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestLog {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_at: Option<LogPosition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_at: Option<WrittenLogChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<ManifestChanges>,
}

/// A [`LoggedChange`] as it is written in the manifest. Times are in microseconds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLogChange {
    position: LogPosition,
    /// 32 hexadecimal digits.
    digest: String,
    clock_us: i64,
    expired_us: i64,
}

impl From<&LoggedChange> for WrittenLogChange {
    fn from(change: &LoggedChange) -> Self {
        Self {
            position: change.mark.position,
            digest: format!("{:032x}", change.mark.digest),
            clock_us: change.clock.0,
            expired_us: change.expired_at.0,
        }
    }
}

impl WrittenLogChange {
    fn to_change(&self) -> Result<LoggedChange> {
        let digits = &self.digest;
        let digest = u128::from_str_radix(digits, 16).map_err(|_| {
            let what = format!("its digest '{digits}' is not a hexadecimal number");
            Error::damaged_file(MANIFEST_FILE, what)
        })?;
        let position = self.position;
        Ok(LoggedChange {
            mark: LogMark { position, digest },
            clock: Timestamp(self.clock_us),
            expired_at: Timestamp(self.expired_us),
        })
    }
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

/// The method, as its name.
mod method_name {
    use super::{Deserializer, MatchMethod, Serializer, deserialize_choice};

    pub(super) fn serialize<S: Serializer>(
        method: &MatchMethod,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<MatchMethod, D::Error> {
        deserialize_choice(deserializer, &MatchMethod::ALL, MatchMethod::name)
    }
}

/// The measure, as its name.
mod measure_name {
    use super::{Deserializer, Serializer, SimilarityMeasure, deserialize_choice};

    pub(super) fn serialize<S: Serializer>(
        measure: &SimilarityMeasure,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(measure.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SimilarityMeasure, D::Error> {
        deserialize_choice(
            deserializer,
            &SimilarityMeasure::ALL,
            SimilarityMeasure::name,
        )
    }
}

/// Reads a name, and returns the choice that has it.
fn deserialize_choice<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    choices: &[T],
    name_of: fn(T) -> &'static str,
) -> std::result::Result<T, D::Error> {
    let name = String::deserialize(deserializer)?;
    let chosen = choices
        .iter()
        .copied()
        .find(|&choice| name_of(choice) == name);
    chosen.ok_or_else(|| {
        let names: Vec<_> = choices
            .iter()
            .map(|&choice| format!("`{}`", name_of(choice)))
            .collect();
        let names = names.join(", ");
        D::Error::custom(format!("unknown variant `{name}`, expected one of {names}"))
    })
}

const MANIFEST_MAGIC: &str = "lookalike-collection";

/// Version of collections without a list of partitions.
const WITHOUT_LIST: u32 = 1;

/// Version of collections whose settings are those of their creation.
const MANIFEST_VERSION: u32 = 2;

/// Version of collections whose settings have been changed.
const WITH_CHANGES: u32 = 3;

/// Version of collections that follow a shared log.
const WITH_LOG: u32 = 4;

/// The manifest of a collection.
#[derive(Debug)]
pub(crate) struct CollectionManifest {
    /// The settings that are in force.
    pub(crate) settings: Arc<CollectionSettings>,
    /// The settings at the creation, if they have been changed.
    pub(crate) created: Option<Arc<CollectionSettings>>,
    /// The windows so far.
    pub(crate) windows: WindowHistory,
    /// The settings at the creation as they are written.
    body: String,
    /// Checksum of the settings at the creation, by which the other files of the collection refer to it.
    pub(crate) seal: u32,
    /// `true` if the collection has a list of partitions.
    pub(crate) lists_partitions: bool,
    /// Position in a shared log at which the collection was created.
    pub(crate) created_at: Option<LogPosition>,
    /// The last change of the settings that has a position in a shared log.
    pub(crate) logged_change: Option<LoggedChange>,
}

impl CollectionManifest {
    /// Returns the manifest of a new collection.
    pub(crate) fn new(settings: &CollectionSettings) -> Result<Self> {
        let body = encode_settings(settings)?;
        Ok(Self {
            settings: Arc::new(settings.clone()),
            windows: WindowHistory::new(settings.window),
            seal: crc32fast::hash(body.as_bytes()),
            body,
            lists_partitions: true,
            created: None,
            created_at: None,
            logged_change: None,
        })
    }

    /// Returns the manifest of a collection that was created at a position of a shared log.
    /// Returns the manifest without positions in a shared log.
    pub(crate) fn without_log(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            created: self.created.clone(),
            windows: self.windows.clone(),
            body: self.body.clone(),
            seal: self.seal,
            lists_partitions: self.lists_partitions,
            created_at: None,
            logged_change: None,
        }
    }

    pub(crate) fn with_creation(self, created_at: Option<LogPosition>) -> Self {
        Self { created_at, ..self }
    }

    /// Returns the manifest with changed settings, which differ in nothing but the window and the treatment of
    /// conflicts. They apply to rows from `next_row` on. The oldest row is `first_row`, and the newest partition has
    /// the number `newest`. `logged` is the change at its place in a shared log, if the collection follows one.
    ///
    /// # Errors
    /// If the window has been changed too often.
    pub(crate) fn with_settings(
        &self,
        settings: CollectionSettings,
        next_row: u64,
        first_row: u64,
        newest: u64,
        logged: Option<LoggedChange>,
    ) -> Result<Self> {
        let changed = settings
            .window
            .filter(|_| settings.window != self.settings.window);
        let change = changed.map(|window| WindowChange {
            from_row: next_row,
            window,
            partition: logged.map(|_| newest),
        });
        let windows = match change {
            Some(change) => self.windows.with_change(change, first_row)?,
            None => self.windows.clone(),
        };
        let created = self.created.as_ref().unwrap_or(&self.settings);
        Ok(Self {
            settings: Arc::new(settings),
            created: Some(Arc::clone(created)),
            windows,
            body: self.body.clone(),
            seal: self.seal,
            lists_partitions: true,
            created_at: self.created_at,
            logged_change: logged.or(self.logged_change),
        })
    }

    /// Returns the manifest of a collection that was created with other settings than those that are in force. It has
    /// no history of the windows, so it is only for reading the files of a collection whose own manifest is lost.
    ///
    /// # Errors
    /// If the two differ in settings that cannot change.
    pub(crate) fn with_lost_changes(
        created: &CollectionSettings,
        settings: &CollectionSettings,
    ) -> Result<Self> {
        settings.check_changed_from(created)?;
        Ok(Self {
            settings: Arc::new(settings.clone()),
            created: Some(Arc::new(created.clone())),
            ..Self::new(created)?
        })
    }

    /// Writes the manifest of a collection with a list of partitions, and before it the files that the recipe
    /// names. Each gets its final name once it is complete.
    pub(crate) fn write_file(&self, disk: &dyn Disk) -> Result<()> {
        if !self.settings.recipe.files.is_empty() {
            write_recipe(disk, RECIPE_FILE, &self.settings.recipe)?;
        }
        self.stage_file(disk)?;
        Self::publish_file(disk)
    }

    /// Writes the manifest under the name of an incomplete file. After an error the manifest on disk is still
    /// the former one.
    pub(crate) fn stage_file(&self, disk: &dyn Disk) -> Result<()> {
        let text = self.to_text()?;
        stage_file(disk, MANIFEST_FILE, [text.as_bytes()])
            .map_err(|error| Error::disk_error("cannot write", MANIFEST_FILE, &error))
    }

    /// Gives a [staged](Self::stage_file) manifest its name. After an error it is unknown which manifest is on
    /// disk.
    pub(crate) fn publish_file(disk: &dyn Disk) -> Result<()> {
        publish_file(disk, MANIFEST_FILE)
            .map_err(|error| Error::disk_error("cannot write", MANIFEST_FILE, &error))
    }

    fn to_text(&self) -> Result<String> {
        let Self { body, seal, .. } = self;
        let changes = self.created.as_ref().map(|_| ManifestChanges {
            on_conflict: self.settings.on_conflict,
            windows: self.windows.to_written(),
        });
        let (version, second_line) = match changes {
            changes if self.created_at.is_some() || self.logged_change.is_some() => {
                let log = ManifestLog {
                    created_at: self.created_at,
                    changed_at: self.logged_change.as_ref().map(WrittenLogChange::from),
                    changes,
                };
                (WITH_LOG, serde_json::to_string(&log))
            }
            Some(changes) => (WITH_CHANGES, serde_json::to_string(&changes)),
            None => return Ok(format!("{}\n{body}", first_line(MANIFEST_VERSION, *seal))),
        };
        let second_line = second_line.map_err(|error| Error::setting_error(error.to_string()))?;
        let head = first_line_with_checksum(version, *seal, &second_line);
        Ok(format!("{head}\n{second_line}\n{body}"))
    }

    pub(crate) fn read_file(disk: &dyn Disk) -> Result<Self> {
        let text = read_text(disk)?;
        let (head, rest) = split_line(&text)?;
        for version in [WITH_CHANGES, WITH_LOG] {
            if head.starts_with(&format!("{MANIFEST_MAGIC} {version} ")) {
                return Self::from_versions_with_line(disk, version, head, rest);
            }
        }
        let seal = crc32fast::hash(rest.as_bytes());
        let lists_partitions = head == first_line(MANIFEST_VERSION, seal);
        if !lists_partitions && head != first_line(WITHOUT_LIST, seal) {
            return Err(unexpected_first_line(
                head,
                &first_line(MANIFEST_VERSION, seal),
            ));
        }
        let settings = decode_settings(disk, rest)?;
        Ok(Self {
            windows: WindowHistory::new(settings.window),
            settings: Arc::new(settings),
            body: rest.to_owned(),
            seal,
            lists_partitions,
            created: None,
            created_at: None,
            logged_change: None,
        })
    }

    /// Reads a manifest with a second line: that of a collection whose settings have been changed, or that follows a
    /// shared log.
    fn from_versions_with_line(
        disk: &dyn Disk,
        version: u32,
        head: &str,
        rest: &str,
    ) -> Result<Self> {
        let (second_line, body) = split_line(rest)?;
        let seal = crc32fast::hash(body.as_bytes());
        let expected = first_line_with_checksum(version, seal, second_line);
        if head != expected {
            return Err(unexpected_first_line(head, &expected));
        }
        let created = decode_settings(disk, body)?;
        let log = if version == WITH_LOG {
            decode_line(second_line)?
        } else {
            ManifestLog {
                created_at: None,
                changed_at: None,
                changes: Some(decode_line(second_line)?),
            }
        };
        let logged_change = log.changed_at.as_ref().map(WrittenLogChange::to_change);
        let mut manifest = Self {
            windows: WindowHistory::new(created.window),
            settings: Arc::new(created),
            body: body.to_owned(),
            seal,
            lists_partitions: true,
            created: None,
            created_at: log.created_at,
            logged_change: logged_change.transpose()?,
        };
        if let Some(changes) = log.changes {
            manifest.apply_changes(&changes)?;
        }
        Ok(manifest)
    }

    /// Replaces the settings at the creation, which are in force, by the changed ones.
    fn apply_changes(&mut self, changes: &ManifestChanges) -> Result<()> {
        let mut settings = CollectionSettings::clone(&self.settings);
        self.windows = WindowHistory::from_written(settings.window, &changes.windows)
            .map_err(|error| Error::damaged_file(MANIFEST_FILE, error))?;
        settings.window = self.windows.current_window();
        settings.on_conflict = changes.on_conflict;
        let created = std::mem::replace(&mut self.settings, Arc::new(settings));
        self.created = Some(created);
        Ok(())
    }
}

fn read_text(disk: &dyn Disk) -> Result<String> {
    let bytes = read_file(disk, MANIFEST_FILE)
        .map_err(|error| Error::disk_error("cannot read", MANIFEST_FILE, &error))?;
    String::from_utf8(bytes).map_err(|_| Error::damaged_file(MANIFEST_FILE, "it is not text"))
}

/// Returns the first line of a text, and the rest.
fn split_line(text: &str) -> Result<(&str, &str)> {
    let split = text.split_once('\n');
    split.ok_or_else(|| Error::damaged_file(MANIFEST_FILE, "it has no second line"))
}

fn unexpected_first_line(head: &str, expected: &str) -> Error {
    let head = line_beginning(head);
    let what = format!("its first line '{head}' is not '{expected}'");
    Error::damaged_file(MANIFEST_FILE, what)
}

fn decode_line<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| Error::damaged_file(MANIFEST_FILE, error))
}

fn first_line_with_checksum(version: u32, seal: u32, second_line: &str) -> String {
    let checksum = crc32fast::hash(second_line.as_bytes());
    format!("{} {checksum:08x}", first_line(version, seal))
}

fn first_line(version: u32, seal: u32) -> String {
    format!("{MANIFEST_MAGIC} {version} {seal:08x}")
}

fn line_beginning(line: &str) -> String {
    line.chars().take(60).collect()
}

fn encode_settings(settings: &CollectionSettings) -> Result<String> {
    let matching = settings.matching;
    let written = ManifestSettings {
        recipe: settings.recipe.to_toml(),
        method: matching.method,
        threshold: matching.threshold.get(),
        distance: matching.distance,
        measure: matching.measure,
        unit: matching.unit,
        candidates: matching.candidates,
        sentences: matching.sentences,
        window: settings.window.as_ref().map(WrittenWindow::from),
        holds: settings.holds,
        on_conflict: settings.on_conflict,
    };
    serde_json::to_string_pretty(&written).map_err(|error| Error::setting_error(error.to_string()))
}

fn decode_settings(disk: &dyn Disk, body: &str) -> Result<CollectionSettings> {
    let written: ManifestSettings =
        serde_json::from_str(body).map_err(|error| Error::damaged_file(MANIFEST_FILE, error))?;
    let recipe = read_collection_recipe(disk, &written.recipe)?;
    let window = written.window.as_ref().map(WrittenWindow::to_window);
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
