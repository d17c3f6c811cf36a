//! Calls on documents and clusters: insert, query, get, delete, list.

use std::str::FromStr;

use axum::http::{HeaderMap, StatusCode, header};
use lookalike::online::Slot;
use lookalike::text::Scratch;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use super::api::{Answered, Asked};
use super::body::Reader;
use super::problem::{Code, Problem};
use super::reply::{self, Kind, Parameters, in_background};
use super::stream::{Stream, Task, check_room};
use super::wire::{Group, Shown, Told};

/// Longest document, in bytes, that is compared on the request thread, because waking another thread would
/// take longer.
const SHORT: usize = 16 << 10;

/// Clusters on a page: default and maximum.
pub(super) const CLUSTERS: (usize, usize) = (100, 1000);

/// Members listed per cluster, default and maximum: on a page of clusters, and for a single cluster.
pub(super) const MEMBERS_ON_PAGE: (usize, usize) = (10, 1000);
pub(super) const MEMBERS: (usize, usize) = (1000, 100_000);

/// Checks and inserts documents.
pub(super) async fn insert(asked: Asked) -> Answered {
    check(asked, Task::Insert).await
}

/// Checks documents without inserting them.
pub(super) async fn query(asked: Asked) -> Answered {
    check(asked, Task::Query).await
}

async fn check(asked: Asked, task: Task) -> Answered {
    let collection = asked.collection();
    let open = asked.service.collections.get(&collection)?;
    let kind = reply::kind(&asked.headers)?;
    let (limits, queue) = (asked.service.config.limits, &asked.service.queue);
    let most = match kind {
        Kind::Json => limits.document,
        Kind::Lines => limits.body,
    };
    let mut reader = Reader::new(&asked.headers, asked.body, most, limits.body_timeout)?;
    // A body that arrives slowly must not keep the collection from being deleted.
    drop(open);
    if kind == Kind::Lines {
        if waits_to_be_asked(&asked.headers) {
            check_room(queue)?;
            reader.begin().await?;
        }
        let open = asked.service.collections.get(&collection)?;
        let stream = Stream {
            open,
            task,
            reader,
            timed: asked.timed,
            queue: queue.clone(),
            held: asked.service.held.clone(),
            client: asked.client,
            longest: limits.document as usize,
            patience: limits.body_timeout,
        };
        return stream.begin();
    }
    let (document, room) = reply::whole(reader, queue, asked.client).await?;
    let open = asked.service.collections.get(&collection)?;
    let answer = match task {
        Task::Insert => open.take(asked.client, document, room).await?,
        Task::Query => {
            let is_short = document.len() <= SHORT;
            let ask = move || {
                let answer = open.query(&document, &mut Scratch::default());
                open.count_query(&answer);
                // The budget is occupied until here, even if the client disconnects.
                drop(room);
                answer
            };
            let answer = match is_short {
                true => at_once(&asked.service.at_once, ask),
                false => in_background(ask).await,
            };
            answer.map_err(|refused| refused.problem)?
        }
    };
    Ok(reply::json(StatusCode::OK, &Told::from(&answer)))
}

/// Runs short work that may block on a lock or the disk. Blocks this thread while other request threads
/// remain; otherwise lets the runtime start another one first.
fn at_once<T>(permits: &Semaphore, work: impl FnOnce() -> T) -> T {
    match permits.try_acquire() {
        Ok(_permit) => work(),
        Err(_) => block_in_place(work),
    }
}

/// Returns `true` if the client sends its body only after `100 Continue`.
fn waits_to_be_asked(headers: &HeaderMap) -> bool {
    let expected = headers.get(header::EXPECT);
    expected.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Returns a stored document.
pub(super) async fn get(asked: Asked) -> Answered {
    let open = asked.service.collections.get(&asked.collection())?;
    let id = asked.part("id");
    in_background(
        move || match open.collection.get(&id).map_err(|it| open.problem(it))? {
            Some(stored) => Ok(reply::json(
                StatusCode::OK,
                &Shown::new(&stored, open.bits()),
            )),
            None => Err(no_document(&id)),
        },
    )
    .await
}

/// Deletes a document.
pub(super) async fn delete(asked: Asked) -> Answered {
    let open = asked.service.collections.get(&asked.collection())?;
    let id = asked.part("id");
    in_background(
        move || match open.collection.delete(&id).map_err(|it| open.problem(it))? {
            true => Ok(reply::empty()),
            false => Err(no_document(&id)),
        },
    )
    .await
}

fn no_document(id: &str) -> Problem {
    let shown: String = id.chars().take(60).collect();
    Problem::new(Code::NoDocument, format!("there is no document '{shown}'"))
}

#[derive(Serialize)]
struct Page<'a> {
    clusters: Vec<Group<'a>>,
    /// Value of `after` for the next page; null at the end.
    next: Option<String>,
}

/// Position at which a page ended.
struct Place(Slot);

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (section, index) = text.split_once('-').ok_or(())?;
        Ok(Self(Slot {
            section: section.parse().map_err(|_| ())?,
            index: index.parse().map_err(|_| ())?,
        }))
    }
}

/// Returns a page of clusters.
pub(super) async fn clusters(asked: Asked) -> Answered {
    let open = asked.service.collections.get(&asked.collection())?;
    let known = ["after", "limit", "members"];
    let parameters = Parameters::read(asked.query.as_deref(), &known)?;
    let after: Option<Place> = parameters.get("after", "the `next` of the page before")?;
    let count = parameters.count("limit", CLUSTERS.0, CLUSTERS.1)?;
    let members = parameters.count("members", MEMBERS_ON_PAGE.0, MEMBERS_ON_PAGE.1)?;
    if count * members > MEMBERS.1 {
        let detail = format!(
            "{count} clusters with {members} members each can exceed the limit of {} members per \
             page: give a smaller `limit` or fewer `members`",
            MEMBERS.1
        );
        return Err(Problem::new(Code::BadRequest, detail));
    }
    reply::long(asked.service, asked.client, move || {
        let after = after.map(|place| place.0);
        let page = open.collection.clusters(after, count, members);
        let page = page.map_err(|it| open.problem(it))?;
        let next = page.next.filter(|_| page.clusters.len() == count);
        let page = Page {
            clusters: page.clusters.iter().map(Group::from).collect(),
            next: next.map(|slot| format!("{}-{}", slot.section, slot.index)),
        };
        Ok(reply::text(&page))
    })
    .await
}

/// Returns one cluster.
pub(super) async fn cluster(asked: Asked) -> Answered {
    let open = asked.service.collections.get(&asked.collection())?;
    let id = asked.part("id");
    let parameters = Parameters::read(asked.query.as_deref(), &["after", "members"])?;
    let after: Option<u64> = parameters.get("after", "the `next` of the answer before")?;
    let members = parameters.count("members", MEMBERS.0, MEMBERS.1)?;
    reply::long(asked.service, asked.client, move || {
        match open
            .collection
            .cluster(&id, after, members)
            .map_err(|it| open.problem(it))?
        {
            Some(cluster) => Ok(reply::text(&Group::from(&cluster))),
            None => {
                let shown: String = id.chars().take(60).collect();
                let detail = format!(
                    "there is no cluster '{shown}': a cluster has the id of its kept document"
                );
                Err(Problem::new(Code::NoCluster, detail))
            }
        }
    })
    .await
}
