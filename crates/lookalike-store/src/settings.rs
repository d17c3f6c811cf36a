//! Settings of a collection.

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
        match window.follows_wall_clock() {
            true => Self::Wall,
            false => Self::Documents,
        }
    }

    pub(crate) fn is_documents(&self) -> bool {
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
