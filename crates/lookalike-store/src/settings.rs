//! Settings of a collection, and their changes.

use std::time::Duration;

use lookalike::Recipe;
use lookalike::plan::{self, MatchMethod, MatchPlan, SimilarityMeasure};
use lookalike::stream::StreamWindow;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::recipes::check_loaded;

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
        if window.follows_wall_clock() {
            Self::Wall
        } else {
            Self::Documents
        }
    }

    pub(crate) fn is_documents(&self) -> bool {
        *self == Self::Documents
    }
}

/// Settings of a collection. All but the window and the treatment of conflicts are fixed at its creation.
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

    /// Checks that these settings can have become of those with which a collection was created.
    ///
    /// # Errors
    /// If they differ in anything but the window and the treatment of conflicts, or only one has a window.
    pub(crate) fn check_changed_from(&self, created: &Self) -> Result<()> {
        let Self {
            recipe,
            matching,
            window,
            holds,
            on_conflict: _,
        } = self;
        let is_same = [
            ("recipe", *recipe == created.recipe),
            ("match options", *matching == created.matching),
            ("content", *holds == created.holds),
            (
                "window (whether there is one)",
                window.is_some() == created.window.is_some(),
            ),
        ];
        match is_same.iter().find(|(_, is_same)| !is_same) {
            None => Ok(()),
            Some((what, _)) => Err(Error::setting_error(format!(
                "the settings do not belong together: their {what} is not that of the creation, which cannot change"
            ))),
        }
    }
}

/// The settings of a collection, and those of its creation.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsRecord {
    /// The settings that were in force last.
    pub settings: CollectionSettings,
    /// The settings at the creation, if they have been changed.
    pub created: Option<CollectionSettings>,
}

impl From<CollectionSettings> for SettingsRecord {
    fn from(settings: CollectionSettings) -> Self {
        Self {
            settings,
            created: None,
        }
    }
}

/// A change of the settings of a collection. Settings that are `None` stay as they are.
///
/// ```
/// use std::time::Duration;
///
/// use lookalike::stream::StreamWindow;
/// use lookalike_store::{CollectionSettings, SettingsChange};
///
/// let window = StreamWindow::new(Duration::from_secs(3600), Duration::ZERO, false)?;
/// let settings = CollectionSettings { window: Some(window), ..CollectionSettings::default() };
/// let change = SettingsChange { width: Some(Duration::from_secs(7200)), ..SettingsChange::default() };
/// let changed = change.apply_to(&settings)?.window;
/// assert_eq!(changed.map(|window| window.width()), change.width);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// Width of the window.
    pub width: Option<Duration>,
    /// Time by which documents may be ahead of the wall clock; at most the width.
    pub skew: Option<Duration>,
    /// `true` if the window of a kept document runs from its last duplicate.
    pub refresh: Option<bool>,
    /// Clock by which documents leave the window.
    pub expire: Option<ExpiryClock>,
    /// Treatment of other content under an existing id.
    pub on_conflict: Option<OnConflict>,
}

impl SettingsChange {
    /// Returns the settings of a collection after this change.
    ///
    /// # Errors
    /// If the collection has no window and the change concerns one, the window is invalid, or the skew would be
    /// longer than the width.
    pub fn apply_to(&self, settings: &CollectionSettings) -> Result<CollectionSettings> {
        Ok(CollectionSettings {
            window: self.change_window(settings.window)?,
            on_conflict: self.on_conflict.unwrap_or(settings.on_conflict),
            ..settings.clone()
        })
    }

    fn change_window(&self, window: Option<StreamWindow>) -> Result<Option<StreamWindow>> {
        let is_window_kept = self.width.is_none()
            && self.skew.is_none()
            && self.refresh.is_none()
            && self.expire.is_none();
        match window {
            _ if is_window_kept => Ok(window),
            Some(window) => self.replace_window(&window).map(Some),
            None => Err(Error::setting_error(
                "the collection was created without a window, so `window`, `skew`, `refresh` and `expire` \
                 cannot change: make a new collection with a window and switch an alias to it",
            )),
        }
    }

    fn replace_window(&self, window: &StreamWindow) -> Result<StreamWindow> {
        let (width, skew) = (
            self.width.unwrap_or_else(|| window.width()),
            self.skew.unwrap_or_else(|| window.skew()),
        );
        let refresh = self.refresh.unwrap_or_else(|| window.is_refreshing());
        let expire = self
            .expire
            .unwrap_or_else(|| ExpiryClock::from_window(window));
        let changed = StreamWindow::new(width, skew, refresh)?;
        // Collections of earlier versions may have a longer skew, which other changes leave as it is.
        if skew > width && (self.width.is_some() || self.skew.is_some()) {
            return Err(Error::setting_error(format!(
                "`skew` would be {skew:?}, longer than the `window` of {width:?}: one document from so far \
                 ahead would make all documents with correct times late; give a `skew` of at most {width:?}"
            )));
        }
        Ok(changed.with_wall_clock(expire == ExpiryClock::Wall))
    }
}
