//! Verdicts, refusals in their place, and clusters.

use lookalike_store::{
    DocumentCluster, DuplicateEvidence, InsertAnswer, PreferredDocument, StoredVerdict,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::preference::ClusterPreferenceRule;
use crate::api::problem::ProblemJson;
use crate::collections::nearest_document::NearestSearch;

/// The verdict on a document. For a query without an id, `id` is null, and so is
/// `cluster` if nothing matches.
#[derive(Serialize)]
pub(crate) struct VerdictJson<'a> {
    id: Option<&'a str>,
    verdict: &'static str,
    of: Option<&'a str>,
    cluster: Option<&'a str>,
    similarity: Option<f64>,
    seq: Option<u64>,
    /// Number of the record of the shared log that the document is in. Only the answers to a bulk request have it,
    /// because their header is sent before the first record is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
}

impl VerdictJson<'_> {
    /// Adds the number of the record of the document, if it is in one.
    pub(crate) fn with_record(self, record: Option<u64>) -> Self {
        Self { record, ..self }
    }
}

impl<'a> From<&'a InsertAnswer> for VerdictJson<'a> {
    fn from(answer: &'a InsertAnswer) -> Self {
        let evidence = match &answer.verdict {
            StoredVerdict::Kept => None,
            StoredVerdict::Duplicate(evidence) => Some(evidence),
        };
        Self {
            id: answer.stated_id(),
            verdict: if evidence.is_some() {
                "duplicate"
            } else {
                "kept"
            },
            of: evidence.map(|evidence| evidence.of.as_str()),
            cluster: answer.stated_cluster_id(),
            similarity: evidence.map(|evidence| evidence.similarity),
            seq: answer.seq,
            record: None,
        }
    }
}

/// The verdict on a query, and the kept documents that match.
#[derive(Serialize)]
pub(crate) struct MatchesJson<'a> {
    #[serde(flatten)]
    verdict: VerdictJson<'a>,
    /// The most similar first, and of equally similar ones the earliest first.
    matches: Vec<MatchJson<'a>>,
    /// Only if the request asks for it, and nothing matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<NearestJson<'a>>,
}

/// The kept document that is most similar to a query without a match.
#[derive(Serialize)]
struct NearestJson<'a> {
    /// Null if no document that was compared shares anything with the query.
    document: Option<MatchJson<'a>>,
    considered: usize,
    complete: bool,
}

impl<'a> From<&'a NearestSearch> for NearestJson<'a> {
    fn from(search: &'a NearestSearch) -> Self {
        let document = search.document.as_ref().map(|nearest| MatchJson {
            id: &nearest.id,
            similarity: nearest.similarity.get(),
            seq: nearest.seq,
        });
        Self {
            document,
            considered: search.considered,
            complete: search.is_complete,
        }
    }
}

#[derive(Serialize)]
struct MatchJson<'a> {
    id: &'a str,
    similarity: f64,
    seq: u64,
}

impl<'a> MatchesJson<'a> {
    pub(crate) fn new(answer: &'a InsertAnswer, matches: &'a [DuplicateEvidence]) -> Self {
        let to_json = |evidence: &'a DuplicateEvidence| MatchJson {
            id: &evidence.of,
            similarity: evidence.similarity,
            seq: evidence.seq,
        };
        Self {
            verdict: VerdictJson::from(answer),
            matches: matches.iter().map(to_json).collect(),
            nearest: None,
        }
    }

    /// Adds the nearest document, which is searched for if nothing matches.
    pub(crate) fn with_nearest(self, search: &'a NearestSearch) -> Self {
        Self {
            nearest: Some(NearestJson::from(search)),
            ..self
        }
    }
}

/// The entry for a refused line, in place of its answer.
#[derive(Serialize)]
pub(crate) struct RefusedLineJson<'a> {
    pub(crate) id: Option<&'a str>,
    /// Line number, from 1.
    pub(crate) line: u64,
    pub(crate) problem: ProblemJson<'a>,
}

/// A cluster as it is returned.
#[derive(Serialize)]
pub(crate) struct ClusterJson<'a> {
    cluster: &'a str,
    kept: VerdictJson<'a>,
    /// Newest first.
    members: Vec<VerdictJson<'a>>,
    more: bool,
    /// Value of `after` for the next page; null at the end.
    next: Option<u64>,
    /// Only if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred: Option<PreferredJson<'a>>,
}

/// The preferred document of a cluster.
#[derive(Serialize)]
struct PreferredJson<'a> {
    document: VerdictJson<'a>,
    /// Value of the field as it stands in the document's `meta`; null if it has none.
    value: Option<Box<RawValue>>,
    considered: usize,
    complete: bool,
}

impl<'a> ClusterJson<'a> {
    /// Adds the preferred document of the cluster.
    pub(crate) fn with_preferred(
        self,
        rule: &ClusterPreferenceRule,
        preferred: Option<&'a PreferredDocument>,
    ) -> Self {
        let preferred = preferred.map(|preferred| PreferredJson {
            document: VerdictJson::from(&preferred.answer),
            value: rule
                .find_value(preferred.meta.as_deref())
                .map(ToOwned::to_owned),
            considered: preferred.considered,
            complete: preferred.is_complete,
        });
        Self { preferred, ..self }
    }
}

impl<'a> From<&'a DocumentCluster> for ClusterJson<'a> {
    fn from(cluster: &'a DocumentCluster) -> Self {
        Self {
            cluster: &cluster.kept.id,
            kept: VerdictJson::from(&cluster.kept),
            members: cluster.members.iter().map(VerdictJson::from).collect(),
            more: cluster.continue_after.is_some(),
            next: cluster.continue_after,
            preferred: None,
        }
    }
}
