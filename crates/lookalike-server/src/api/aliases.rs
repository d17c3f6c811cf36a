//! Calls on aliases: list, set, remove, and several changes in one step.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use lookalike_log::EntryKind;
use serde_json::json;

use crate::access::AccessScope;
use crate::api::problem::ApiProblem;
use crate::api::replicated::{change_through_log, with_position};
use crate::api::responses::{self, in_background};
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::{AliasChanges, AliasMap};
use crate::json::JsonFields;
use crate::service::ServiceState;

/// Largest body, in bytes, of changes.
const MAX_CHANGES_BYTES: u64 = 1 << 20;

/// Lists the aliases of the collections that the caller may see.
pub(crate) async fn list_aliases(api_request: ApiRequest) -> ApiResult {
    let mut aliases = api_request.service.collections.list_aliases();
    aliases.retain(|alias, collection| {
        let names = [alias.as_str(), collection.as_str()];
        api_request.caller.may_read(AccessScope::Collection(&names))
    });
    Ok(list_response(&aliases))
}

/// Sets an alias, also one that exists.
pub(crate) async fn put_alias(api_request: ApiRequest) -> ApiResult {
    let alias = api_request.path_part("alias");
    let service = Arc::clone(&api_request.service);
    let (body, _held) = responses::read_json_body(api_request, MAX_CHANGES_BYTES).await?;
    let mut fields = JsonFields::read_fields(&body)?;
    let collection: String = fields.need_field("collection")?;
    fields.refuse_rest()?;
    let changes = AliasChanges {
        set: [(alias.clone(), collection.clone())].into(),
        remove: Vec::new(),
    };
    let changed = make_changes(service, changes).await?;
    let body = json!({ "alias": alias, "collection": collection });
    Ok(changed.add_position(responses::json_response(StatusCode::OK, &body)))
}

/// Removes an alias; its collection stays.
pub(crate) async fn delete_alias(api_request: ApiRequest) -> ApiResult {
    let alias = api_request.path_part("alias");
    let changes = AliasChanges {
        set: BTreeMap::new(),
        remove: vec![alias],
    };
    let changed = make_changes(Arc::clone(&api_request.service), changes).await?;
    Ok(changed.add_position(responses::empty_response()))
}

/// Sets and removes several aliases in one step.
pub(crate) async fn change_aliases(api_request: ApiRequest) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let (body, _held) = responses::read_json_body(api_request, MAX_CHANGES_BYTES).await?;
    let changed = make_changes(service, read_changes(&body)?).await?;
    Ok(changed.add_position(list_response(&changed.aliases)))
}

/// All aliases after a change, and the number of its record in the shared log.
struct ChangedAliases {
    aliases: AliasMap,
    record: Option<u64>,
}

impl ChangedAliases {
    fn add_position(&self, response: Response<Body>) -> Response<Body> {
        match self.record {
            Some(record) => with_position(response, record),
            None => response,
        }
    }
}

async fn make_changes(
    service: Arc<ServiceState>,
    changes: AliasChanges,
) -> Result<ChangedAliases, ApiProblem> {
    let Some(replica) = &service.replica else {
        let changed = in_background(move || service.collections.change_aliases(changes));
        return Ok(ChangedAliases {
            aliases: changed.await?,
            record: None,
        });
    };
    let body = json!({ "set": changes.set, "remove": changes.remove });
    let body = responses::json_text(&body);
    let change = change_through_log(replica, EntryKind::ChangeAliases, "", body);
    let (_, record) = change.await?;
    Ok(ChangedAliases {
        aliases: service.collections.list_aliases(),
        record: Some(record),
    })
}

/// Reads changes of aliases.
///
/// # Errors
/// If the JSON is not that of changes.
pub(crate) fn read_changes(body: &[u8]) -> Result<AliasChanges, ApiProblem> {
    let mut fields = JsonFields::read_fields(body)?;
    let changes = AliasChanges {
        set: fields.take_field("set")?.unwrap_or_default(),
        remove: fields.take_field("remove")?.unwrap_or_default(),
    };
    fields.refuse_rest()?;
    Ok(changes)
}

fn list_response(aliases: &AliasMap) -> Response<Body> {
    responses::json_response(StatusCode::OK, &json!({ "aliases": aliases }))
}
