//! The forms of a collection, learned from what it holds.
//!
//! A cluster whose members are similar and not equal may be a filled form. The largest clusters are looked at first, until
//! the texts that were read are as many as a request may read. Nothing about the collection changes: a new collection whose
//! recipe has the table keeps filled forms apart.

use std::cmp::Reverse;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::http::{HeaderValue, header};
use lookalike::Recipe;
use lookalike::forms::{FormCorpus, FormLearner, FormTable, MOST_SAMPLED_TEXTS};
use lookalike::passages::PassageBudget;
use lookalike::similarity::Route;
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike_store::{
    ClusterSelection, CollectionContent, DocumentCluster, DocumentContent, DocumentLookup,
    StoredVerdict,
};
use serde::Serialize;

use crate::api::problem::{ApiProblem, ProblemCode};
use crate::api::responses::QueryParameters;
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::text_work::{TextAllowance, answer_with_work};
use crate::api::texts::passage_problem;
use crate::collections::open_collection::OpenCollection;
use crate::json::bad_settings;

/// Pages of clusters that are listed: each examines up to 16,384 kept documents, in a quarter of a second.
const MAX_PAGES: usize = 60;

/// The most bytes of the ids of documents in groups, and of their places there.
const MAX_ID_BYTES: usize = 16 << 20;

/// Memory of a document in a group beside its id.
const BYTES_OF_DOCUMENT: usize = 64;

/// Memory of the ids, and of the page that is being read.
const LISTING_BYTES: usize = 2 * MAX_ID_BYTES;

/// Members of a cluster that are looked at, the newest ones.
const MEMBERS_OF_CLUSTER: usize = 4 * MOST_SAMPLED_TEXTS;

/// Clusters that are listed at a time.
const CLUSTERS_AT_A_TIME: usize = 500;

/// The most bytes of the texts that are read.
pub(crate) const MAX_LEARNED_BYTES: usize = 64 << 20;

/// Length of the longest text, in bytes, that is looked at.
pub(crate) const LONGEST_LEARNED_TEXT: usize = 64 << 10;

/// Memory of the texts of a group while they are aligned, for each byte of them.
const COPIES_OF_TEXT: usize = 8;

/// Steps of reading, aligning and analysing a byte.
const STEPS_OF_BYTE: u64 = 8;

/// The answer.
#[derive(Serialize)]
struct LearnedFormsJson {
    /// Number of forms in the table.
    forms: usize,
    /// Documents of the clusters that were listed, but for those that are equal to another.
    documents: usize,
    /// `false` if there are clusters that were not listed, or texts that were not read.
    complete: bool,
    /// The table, as TOML.
    table: String,
}

/// Learns the forms of the documents of a collection. If its recipe has forms, the table is theirs with the new ones
/// behind.
pub(crate) async fn learn_forms(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &["format"])?;
    let format = parameters.get_parameter("format", "`json` or `toml`")?;
    let format = format.unwrap_or(TableFormat::Json);
    let settings = open.collection.collection_settings();
    if settings.holds != CollectionContent::Texts {
        let detail = format!(
            "the collection '{}' holds fingerprints without texts, in which no forms can be found: learn from a \
             collection that holds texts",
            open.name
        );
        return Err(ApiProblem::new(ProblemCode::BadSettings, detail));
    }
    let recipe = settings.recipe.clone();
    let can_have_forms = recipe
        .clone()
        .with_forms("forms.toml", &FormTable::default());
    can_have_forms.map_err(bad_settings)?;
    let (service, client) = (api_request.service, api_request.client);
    answer_with_work(&service, client, LISTING_BYTES, move |allowance, answer| {
        let groups = StoredGroups::collect(&open, allowance)?;
        let learned = groups.learn(&open, &recipe, allowance)?;
        allowance.keep_memory(0);
        match format {
            TableFormat::Json => answer.write_json(&learned),
            TableFormat::Toml => answer.write_bytes(learned.to_toml().as_bytes()),
        }
    })
    .await
    .map(|mut response| {
        if format == TableFormat::Toml {
            let kind = HeaderValue::from_static(TOML_TYPE);
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        response
    })
}

/// Media type of a table alone.
pub(crate) const TOML_TYPE: &str = "application/toml";

/// Format of an answer with a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableFormat {
    Json,
    Toml,
}

impl FromStr for TableFormat {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "json" => Ok(Self::Json),
            "toml" => Ok(Self::Toml),
            _ => Err(()),
        }
    }
}

impl LearnedFormsJson {
    /// Returns the table, with a comment that says of what it was learned.
    fn to_toml(&self) -> String {
        let all = if self.complete {
            "all were looked at"
        } else {
            "not all were looked at"
        };
        let documents = self.documents;
        format!(
            "# Learned from clusters with {documents} documents; {all}.\n{}",
            self.table
        )
    }
}

/// Clusters with members that are similar and not equal to their kept document.
struct StoredGroups {
    /// The ids of each group, the kept document first; the largest group first.
    groups: Vec<Vec<String>>,
    is_complete: bool,
}

impl StoredGroups {
    /// Lists the clusters of a collection.
    fn collect(open: &OpenCollection, allowance: &TextAllowance) -> Result<Self, ApiProblem> {
        let selection = ClusterSelection {
            count: CLUSTERS_AT_A_TIME,
            most_members: MEMBERS_OF_CLUSTER,
            accepts: &|_| true,
        };
        let (mut groups, mut bytes, mut after, mut pages) = (Vec::new(), 0, None, 0);
        let is_complete = loop {
            allowance.check_client()?;
            if pages == MAX_PAGES || bytes >= MAX_ID_BYTES {
                break false;
            }
            pages += 1;
            let page = open.collection.list_clusters(after, &selection);
            let page = page.map_err(|error| open.to_problem(error))?;
            for cluster in page.clusters {
                let group = ids_of_group(cluster);
                if group.len() > 1 && bytes < MAX_ID_BYTES {
                    let ids = group.iter().map(|id| id.len() + BYTES_OF_DOCUMENT);
                    bytes += ids.sum::<usize>();
                    groups.push(group);
                }
            }
            after = page.continue_after;
            if after.is_none() {
                break true;
            }
        };
        // The sort is stable, so equally large groups stay in the order of their kept documents.
        groups.sort_by_key(|group| Reverse(group.len()));
        Ok(Self {
            groups,
            is_complete,
        })
    }

    /// Learns the forms of the groups, on this thread, because threads of the shared pool have documents to prepare.
    fn learn(
        &self,
        open: &OpenCollection,
        recipe: &Recipe,
        allowance: &mut TextAllowance,
    ) -> Result<LearnedFormsJson, ApiProblem> {
        let most_bytes = MOST_SAMPLED_TEXTS * LONGEST_LEARNED_TEXT * COPIES_OF_TEXT;
        allowance.hold_memory(LISTING_BYTES, most_bytes)?;
        let corpus = StoredDocuments {
            open,
            groups: &self.groups,
            analyzer: TextAnalyzer::new(recipe),
            budget: &allowance.budget,
            read_bytes: AtomicUsize::new(0),
            has_long_texts: AtomicBool::new(false),
        };
        let numbered = self.groups.iter().enumerate().map(|(group, ids)| {
            let members = 0..ids.len();
            members.map(|member| (group, member)).collect()
        });
        let numbered: Vec<Vec<(usize, usize)>> = numbered.collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|error| ApiProblem::new(ProblemCode::Busy, error.to_string()))?;
        let learner = FormLearner::new(recipe);
        let learned = pool.install(|| learner.learn_table(&corpus, &numbered));
        let learned = learned.map_err(|failure| failure.0)?;
        let table = match recipe.form_table() {
            Some(table) => table.extend_with(&learned),
            None => learned,
        };
        let has_read_all = !corpus.is_full() && !corpus.has_long_texts.load(Ordering::Relaxed);
        Ok(LearnedFormsJson {
            forms: table.forms().len(),
            documents: self.groups.iter().map(Vec::len).sum(),
            complete: self.is_complete && has_read_all,
            table: table.to_toml(),
        })
    }
}

/// Returns the ids of a kept document and of its members that are not equal to it.
fn ids_of_group(cluster: DocumentCluster) -> Vec<String> {
    let is_unequal = |verdict: &StoredVerdict| match verdict {
        StoredVerdict::Duplicate(evidence) => evidence.route != Route::Exact,
        StoredVerdict::Kept => false,
    };
    // The oldest first, as they came.
    let members = cluster.members.into_iter().rev();
    let similar = members.filter(|member| is_unequal(&member.verdict));
    let similar = similar.map(|member| member.id);
    std::iter::once(cluster.kept.id).chain(similar).collect()
}

/// The stored documents of groups, as far as a request may read them.
struct StoredDocuments<'a> {
    open: &'a OpenCollection,
    groups: &'a [Vec<String>],
    analyzer: TextAnalyzer,
    budget: &'a PassageBudget,
    /// Bytes of the texts that were read.
    read_bytes: AtomicUsize,
    /// `true` once a text was too long to be read.
    has_long_texts: AtomicBool,
}

impl StoredDocuments<'_> {
    fn is_full(&self) -> bool {
        self.read_bytes.load(Ordering::Relaxed) >= MAX_LEARNED_BYTES
    }
}

/// Why learning has failed.
struct LearningFailure(ApiProblem);

impl From<lookalike::Error> for LearningFailure {
    fn from(error: lookalike::Error) -> Self {
        Self(bad_settings(error))
    }
}

impl FormCorpus for StoredDocuments<'_> {
    /// The number of a group, and the place in it.
    type Document = (usize, usize);
    type Scratch = AnalysisScratch;
    type Error = LearningFailure;

    fn read_text(
        &self,
        (group, member): Self::Document,
        _: &mut AnalysisScratch,
    ) -> Result<Option<String>, LearningFailure> {
        if self.is_full() {
            return Ok(None);
        }
        let failed = |error| LearningFailure(self.open.to_problem(error));
        let id = &self.groups[group][member];
        let collection = &self.open.collection;
        let found = collection.find_short_document(id, LONGEST_LEARNED_TEXT);
        let text = match found.map_err(failed)? {
            None => return Ok(None),
            Some(DocumentLookup::Long { .. }) => {
                self.has_long_texts.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            Some(DocumentLookup::Short(stored)) => match stored.content {
                DocumentContent::Text(text) => text,
                DocumentContent::Fingerprint(_) => return Ok(None),
            },
        };
        let bytes = text.len();
        if let Err(error) = self.budget.take_steps(STEPS_OF_BYTE * bytes as u64) {
            if self.budget.is_cancelled() {
                return Err(LearningFailure(passage_problem(error)));
            }
            // The steps of the request are used up, so no more is read.
            self.read_bytes.store(MAX_LEARNED_BYTES, Ordering::Relaxed);
            return Ok(None);
        }
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Some(text))
    }

    fn append_features(
        &self,
        document: Self::Document,
        scratch: &mut AnalysisScratch,
        into: &mut Vec<u64>,
    ) -> Result<(), LearningFailure> {
        if let Some(text) = self.read_text(document, scratch)? {
            self.analyzer
                .analyze_text(&text, scratch)
                .append_features(into);
        }
        Ok(())
    }
}
