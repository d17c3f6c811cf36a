//! Calls on many documents: a list in order, and several by their ids.

use std::sync::Arc;

use lookalike_store::{DocumentPage, DocumentSelection, InsertAnswer, StoredVerdict};
use serde::Serialize;

use crate::api::answer_text::{AnswerText, wait_for_permit};
use crate::api::problem::{ApiProblem, ProblemCode, ProblemJson};
use crate::api::replicated::{AT_LEAST, delete_through_log, with_position};
use crate::api::responses::{self, FIRST_ANSWER_BYTES, MUCH_MEMORY, QueryParameters};
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::open_collection::OpenCollection;
use crate::json::documents::{DocumentJson, DocumentsRequest, read_documents_request, read_ids};
use crate::json::meta_filter::MetaFilter;
use crate::limits::byte_budget::HeldBytes;
use crate::limits::request_budget::RequestBudget;

/// Documents on a page: default and maximum.
pub(crate) const DOCUMENTS_ON_PAGE: (usize, usize) = (100, 1000);

/// Conditions on `meta` in one request.
pub(crate) const MAX_CONDITIONS: usize = 16;

/// Ids in one request.
pub(crate) const MAX_IDS: usize = 1000;

/// Largest body with ids: as many of the longest ones, each byte escaped.
const MAX_IDS_BYTES: u64 = 4 << 20;

/// Bytes of an answer with documents by their ids; one document alone may have more.
const MAX_GOT_BYTES: usize = 64 << 20;

/// Verdict of the documents that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedVerdict {
    Kept,
    Duplicate,
}

impl std::str::FromStr for ListedVerdict {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "kept" => Ok(Self::Kept),
            "duplicate" => Ok(Self::Duplicate),
            _ => Err(()),
        }
    }
}

impl ListedVerdict {
    fn accepts_verdict(self, verdict: &StoredVerdict) -> bool {
        match verdict {
            StoredVerdict::Kept => self == Self::Kept,
            StoredVerdict::Duplicate(_) => self == Self::Duplicate,
        }
    }
}

/// The documents that a page lists, as a request asks for them.
struct PageQuery {
    after: u64,
    count: usize,
    has_texts: bool,
    verdict: Option<ListedVerdict>,
    filter: MetaFilter,
}

impl PageQuery {
    fn parse_parameters(parameters: &QueryParameters<'_>) -> Result<Self, ApiProblem> {
        let after = "the `next` of the page before, or a sequence number (`seq`)";
        Ok(Self {
            after: parameters.get_parameter("after", after)?.unwrap_or(0),
            count: parameters.count_parameter("limit", DOCUMENTS_ON_PAGE.0, DOCUMENTS_ON_PAGE.1)?,
            has_texts: parameters
                .get_parameter("text", "true or false")?
                .unwrap_or(false),
            verdict: parameters.get_parameter("verdict", "kept or duplicate")?,
            filter: parse_filter(parameters)?,
        })
    }

    fn accepts_document(&self, answer: &InsertAnswer, meta: Option<&str>) -> bool {
        self.verdict
            .is_none_or(|verdict| verdict.accepts_verdict(&answer.verdict))
            && self.filter.accepts_meta(meta)
    }

    fn read_page(&self, open: &OpenCollection) -> Result<DocumentPage, ApiProblem> {
        let selection = DocumentSelection {
            count: self.count,
            has_texts: self.has_texts,
            accepts: &|answer, meta| self.accepts_document(answer, meta),
        };
        let page = open.collection.list_documents(self.after, &selection);
        page.map_err(|error| open.to_problem(error))
    }
}

/// Reads the parameters `meta.FIELD=VALUE`.
pub(crate) fn parse_filter(parameters: &QueryParameters<'_>) -> Result<MetaFilter, ApiProblem> {
    let mut filter = MetaFilter::default();
    let conditions = parameters.prefixed_parameters("meta.")?;
    if conditions.len() > MAX_CONDITIONS {
        let detail = format!(
            "the request has {} conditions on `meta`, more than the limit of {MAX_CONDITIONS}",
            conditions.len()
        );
        return Err(ApiProblem::new(ProblemCode::BadRequest, detail));
    }
    for (field, value) in conditions {
        filter.add_condition(&field, &value);
    }
    Ok(filter)
}

#[derive(Serialize)]
struct DocumentPageJson<'a> {
    documents: Vec<DocumentJson<'a>>,
    /// Value of `after` for the next page; null at the end.
    next: Option<u64>,
}

/// Returns a page of documents, in the order of their sequence numbers.
pub(crate) async fn list_documents(api_request: ApiRequest) -> ApiResult {
    let open = api_request.look_up_collection()?;
    let known = ["after", "limit", "text", "verdict", "meta.FIELD", AT_LEAST];
    let parameters = QueryParameters::parse_query(api_request.query.as_deref(), &known)?;
    let asked = PageQuery::parse_parameters(&parameters)?;
    let (service, client) = (api_request.service, api_request.client);
    responses::long_answer(service, client, FIRST_ANSWER_BYTES, move |text| {
        let page = asked.read_page(&open)?;
        let bits = open.fingerprint_bits();
        let documents = page.documents.iter();
        text.write_json(&DocumentPageJson {
            documents: documents
                .map(|listed| DocumentJson::from_listed(listed, bits))
                .collect(),
            next: page.continue_after,
        })
    })
    .await
}

/// Reads a body with ids by `read`, as far as the client can have budget for it. Also returns that budget.
async fn read_id_body<T>(
    api_request: ApiRequest,
    read: fn(&[u8]) -> Result<T, ApiProblem>,
) -> Result<(T, HeldBytes), ApiProblem> {
    let share = api_request.service.config.limits.client_share();
    let (body, room) = responses::read_json_body(api_request, MAX_IDS_BYTES.min(share)).await?;
    Ok((read(&body)?, room))
}

/// Returns documents by their ids, in the order of the request; null for an id that no document has.
pub(crate) async fn get_documents(api_request: ApiRequest) -> ApiResult {
    drop(api_request.look_up_collection()?);
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let named = api_request.target_collection();
    let (asked, room) = read_id_body(api_request, read_documents_request).await?;
    // A body that arrives slowly must not keep the collection from being deleted.
    let open = service.collections.look_up_collection(&named)?;
    responses::long_answer(service, client, FIRST_ANSWER_BYTES, move |text| {
        let written = write_documents(&open, &asked, text);
        drop(room);
        written
    })
    .await
}

fn write_documents(
    open: &OpenCollection,
    asked: &DocumentsRequest,
    text: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let ids = &asked.ids;
    text.write_bytes(b"{\"documents\":[")?;
    for (at, id) in ids.iter().enumerate() {
        let found = open.collection.find_document(id);
        let found = found.map_err(|error| open.to_problem(error))?;
        let bits = open.fingerprint_bits();
        let document = found
            .as_ref()
            .map(|stored| DocumentJson::new(stored, bits).with_text_cut(asked.max_characters));
        if at > 0 {
            text.write_bytes(b",")?;
        }
        text.write_json(&document)?;
        if at > 0 && text.byte_count() > MAX_GOT_BYTES {
            let detail = format!(
                "the first {} of {} documents make an answer of more than {MAX_GOT_BYTES} bytes, the limit: \
                 ask for fewer in one request",
                at + 1,
                ids.len()
            );
            return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
        }
    }
    text.write_bytes(b"]}")
}

#[derive(Serialize)]
struct DeletionListJson<'a> {
    results: Vec<DeletionJson<'a>>,
}

/// The result for one id of a deletion.
#[derive(Serialize)]
struct DeletionJson<'a> {
    id: &'a str,
    /// `false` if no document has the id; missing if there is a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemJson<'a>>,
}

/// Deletes documents by their ids, and answers once all deletions are on disk. There is budget for the answer before
/// anything is deleted, so that no deletion goes without its answer.
pub(crate) async fn delete_documents(api_request: ApiRequest) -> ApiResult {
    drop(api_request.look_up_collection()?);
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let (named, subject) = (api_request.target_collection(), api_request.log_subject());
    let (ids, body_room) = read_id_body(api_request, read_ids).await?;
    let open = service.collections.look_up_collection(&named)?;
    let memory = RequestBudget::new(Arc::clone(&service.answer_budget), client);
    if let Some(replica) = &service.replica {
        drop(open);
        let (results, record) = delete_through_log(replica, &subject, &ids).await?;
        let list = deletion_list(ids.iter().map(String::as_str), &results);
        let response = responses::counted_answer(memory, &list)?;
        drop(body_room);
        return Ok(with_position(response, record));
    }
    let patience = service.config.limits.body_timeout;
    let bytes = deletion_answer_bytes(&ids);
    let begun = wait_for_permit(&memory, bytes, patience, &service.answer_permits, client);
    let (room, permit) = begun.await?;
    let release_memory = service.config.release_memory;
    let working = permit.run_work(move || {
        let mut text = AnswerText::new(memory).with_room(room);
        let deleted = delete_all(&open, &ids, &mut text);
        text.close_answer();
        drop((ids, body_room));
        if text.byte_count() >= MUCH_MEMORY {
            release_memory();
        }
        deleted.map(|()| text)
    });
    let (text, _permit) = working.await;
    Ok(responses::text_response(text?))
}

/// Returns an upper bound of the length of the answer to a deletion. Damaged documents, whose problems are longer, are left
/// out.
fn deletion_answer_bytes(ids: &[String]) -> usize {
    /// Bytes of a result beside the id, and of the list around all.
    const BYTES_PER_RESULT: usize = 32;
    let escaped = ids
        .iter()
        .map(|id| responses::json_text(id).len() + BYTES_PER_RESULT);
    FIRST_ANSWER_BYTES + escaped.sum::<usize>()
}

fn delete_all(
    open: &OpenCollection,
    ids: &[String],
    text: &mut AnswerText,
) -> Result<(), ApiProblem> {
    let names: Vec<_> = ids.iter().map(String::as_str).collect();
    let deleted = open.collection.delete_documents(&names);
    let deleted = deleted.map_err(|error| open.to_problem(error))?;
    let answers = deleted.into_iter();
    let answers: Vec<_> = answers
        .map(|one| one.map_err(|error| open.to_problem(error)))
        .collect();
    text.write_json(&deletion_list(names.into_iter(), &answers))
}

fn deletion_list<'a>(
    ids: impl Iterator<Item = &'a str>,
    answers: &'a [Result<bool, ApiProblem>],
) -> DeletionListJson<'a> {
    let results = ids.zip(answers).map(|(id, answer)| DeletionJson {
        id,
        deleted: answer.as_ref().ok().copied(),
        problem: answer.as_ref().err().map(ApiProblem::to_json),
    });
    DeletionListJson {
        results: results.collect(),
    }
}
