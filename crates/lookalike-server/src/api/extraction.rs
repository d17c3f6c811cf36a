//! The call that returns the text of a document file, so that a program or a page can send it to other calls.
//! Nothing is stored.
//!
//! The file, its text, and what a `.docx` file expands to, have at most the size of a document (`--max-document`). A
//! PDF file is read in a process with limits of time and memory. The call waits for a permit, as all work on texts, so
//! that one client cannot start many such processes, and for the memory that reading the file takes.

use std::path::Path;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use lookalike_documents::{DocumentKind, ExtractOptions, estimate_memory, extract_text_while};
use serde::Serialize;

use crate::api::answer_text::largest_memory;
use crate::api::problem::{ApiProblem, ProblemCode, shorten_text};
use crate::api::responses::{self, QueryParameters};
use crate::api::router::{ApiRequest, ApiResult};
use crate::api::text_work::{self, TextAllowance};

/// Type of the body: the bytes of the file. A page of another origin cannot send it without a permission that the
/// service never gives.
pub(crate) const FILE_TYPE: &str = "application/octet-stream";

/// A file that was read.
#[derive(Serialize)]
struct ExtractedFileJson<'a> {
    name: &'a str,
    kind: &'static str,
    text: String,
    /// The encoding in which the file was read, if its bytes alone suggest it.
    guessed_encoding: Option<String>,
}

/// Returns the text of a document file.
pub(crate) async fn extract_file(mut api_request: ApiRequest) -> ApiResult {
    let (service, client) = (Arc::clone(&api_request.service), api_request.client);
    let name = parse_file_name(&api_request)?;
    check_file_type(&api_request.headers)?;
    let kind = DocumentKind::from_path(Path::new(&name));
    let kind = kind.map_err(|reason| unreadable_file(&name, &reason))?;
    let most = service.config.limits.document;
    let options = ExtractOptions {
        // Files of a page have no option that states it.
        guesses_encoding: true,
        max_bytes: u32::try_from(most).unwrap_or(u32::MAX),
        pdf: service.config.pdf.clone(),
        ..ExtractOptions::default()
    };
    let reader = api_request.take_body_reader(most)?;
    let (body, room) = responses::read_whole_body(reader, &service.waiting_budget, client).await?;
    let needed = estimate_memory(kind, &body, &options);
    check_memory(
        &name,
        needed,
        largest_memory(service.answer_budget.total_bytes()),
    )?;
    text_work::answer_with_work(&service, client, needed, move |allowance, answer| {
        let text = read_text(&name, kind, &body, &options, allowance)?;
        let guessed_encoding = options.guessed_encoding_of(kind, &body);
        drop((body, room));
        allowance.keep_memory(text.len());
        answer.write_json(&ExtractedFileJson {
            name: &name,
            kind: kind.name(),
            text,
            guessed_encoding,
        })
    })
    .await
}

/// Returns the text of a file, unless the client disconnects meanwhile.
fn read_text(
    name: &str,
    kind: DocumentKind,
    file: &[u8],
    options: &ExtractOptions,
    allowance: &TextAllowance,
) -> Result<String, ApiProblem> {
    let is_wanted = || allowance.check_client().is_ok();
    let extracted = extract_text_while(kind, file, options, &is_wanted);
    allowance.check_client()?;
    let extracted = extracted.map_err(|reason| unreadable_file(name, &reason))?;
    Ok(extracted.text)
}

/// Refuses a file whose reading takes more memory than a request may hold.
fn check_memory(name: &str, needed: usize, most: usize) -> Result<(), ApiProblem> {
    if needed <= most {
        return Ok(());
    }
    let shown = shorten_text(name);
    let detail = format!(
        "reading '{shown}' takes up to {needed} bytes of memory, because of its size and its markup, more than the limit \
         of {most}, three eighths of --max-queue: send a smaller file, or start the service with a larger --max-queue"
    );
    Err(ApiProblem::new(ProblemCode::TooLarge, detail))
}

/// Returns the name of the file, whose extension says what it is.
fn parse_file_name(api_request: &ApiRequest) -> Result<String, ApiProblem> {
    let query = QueryParameters::parse_query(api_request.query.as_deref(), &["name"])?;
    let name: Option<String> = query.get_parameter("name", "the name of the file")?;
    name.filter(|name| !name.is_empty()).ok_or_else(|| {
        let detail = "the parameter `name` is missing: give the name of the file, such as essay.docx, \
                      because its extension says what the file is";
        ApiProblem::new(ProblemCode::BadRequest, detail)
    })
}

fn check_file_type(headers: &HeaderMap) -> Result<(), ApiProblem> {
    let stated = headers.get(header::CONTENT_TYPE);
    let stated = stated.map_or("", |header| header.to_str().unwrap_or("?"));
    let essence = stated.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(FILE_TYPE) {
        return Ok(());
    }
    let shown = shorten_text(stated);
    let detail =
        format!("the Content-Type is '{shown}': give {FILE_TYPE}, with the file as the body");
    Err(ApiProblem::new(ProblemCode::UnsupportedType, detail))
}

fn unreadable_file(name: &str, reason: &str) -> ApiProblem {
    let detail = format!("'{}' cannot be read: {reason}", shorten_text(name));
    ApiProblem::new(ProblemCode::BadDocument, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_with_its_client() {
        let allowance = TextAllowance::new_alone(1 << 20);
        let read = || {
            let options = ExtractOptions::default();
            read_text(
                "a.txt",
                DocumentKind::PlainText,
                b"text",
                &options,
                &allowance,
            )
        };
        assert_eq!(read().unwrap(), "text");
        allowance.budget.cancel();
        assert_eq!(read().unwrap_err().code, ProblemCode::TooSlow);
    }
}
