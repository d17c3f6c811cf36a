//! Calls on aliases: list, set, remove, and several changes in one step.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;

use crate::access::AccessScope;
use crate::api::problem::ApiProblem;
use crate::api::responses::{self, in_background};
use crate::api::router::{ApiRequest, ApiResult};
use crate::collections::{AliasChanges, AliasMap};
use crate::json::JsonFields;

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
    in_background(move || {
        let mut fields = JsonFields::read_fields(&body)?;
        let collection: String = fields.need_field("collection")?;
        fields.refuse_rest()?;
        service.collections.change_aliases(AliasChanges {
            set: [(alias.clone(), collection.clone())].into(),
            remove: Vec::new(),
        })?;
        let body = json!({ "alias": alias, "collection": collection });
        Ok(responses::json_response(StatusCode::OK, &body))
    })
    .await
}

/// Removes an alias; its collection stays.
pub(crate) async fn delete_alias(api_request: ApiRequest) -> ApiResult {
    let alias = api_request.path_part("alias");
    in_background(move || {
        let collections = &api_request.service.collections;
        collections.change_aliases(AliasChanges {
            set: BTreeMap::new(),
            remove: vec![alias],
        })?;
        Ok(responses::empty_response())
    })
    .await
}

/// Sets and removes several aliases in one step.
pub(crate) async fn change_aliases(api_request: ApiRequest) -> ApiResult {
    let service = Arc::clone(&api_request.service);
    let (body, _held) = responses::read_json_body(api_request, MAX_CHANGES_BYTES).await?;
    in_background(move || {
        let changes = read_changes(&body)?;
        let aliases = service.collections.change_aliases(changes)?;
        Ok(list_response(&aliases))
    })
    .await
}

fn read_changes(body: &[u8]) -> Result<AliasChanges, ApiProblem> {
    let mut fields = JsonFields::read_fields(body)?;
    let changes = AliasChanges {
        set: fields.take_field("set")?.unwrap_or_default(),
        remove: fields.take_field("remove")?.unwrap_or_default(),
    };
    fields.refuse_rest()?;
    Ok(changes)
}

fn list_response(aliases: &AliasMap) -> axum::http::Response<axum::body::Body> {
    responses::json_response(StatusCode::OK, &json!({ "aliases": aliases }))
}
