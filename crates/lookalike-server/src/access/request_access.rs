//! Access of requests that have begun: it ends when the key of the caller is removed, limited or expires.
//!
//! A request can stay open for hours, for example a bulk request whose lines arrive slowly. A reload of the keys
//! would otherwise not reach it. Three places wait for the end of the access:
//!
//! | place | what ends |
//! |---|---|
//! | `api::body` | reading a request body: nothing that arrives later is used |
//! | `api::router`, `api::export`, `api::stream` | a call that only reads; the next portion or turn of a long one |
//! | `connections` | the connection, after a grace period in which the client can take its answer |
//!
//! A change that has begun, such as a snapshot, is completed.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{AccessKeys, AccessRole, AccessScope, ApiCaller};
use crate::api::problem::ApiProblem;

/// Longest time between two looks at the wall clock, which somebody may set.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Shortest time between two looks at the wall clock.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// Names of the collection that a request touches, as [`AccessScope`] has them.
#[derive(Clone)]
enum RequestScope {
    Nothing,
    Collection(Vec<String>),
    Service,
}

/// Access of a request.
#[derive(Clone)]
pub(crate) struct RequestAccess {
    caller: ApiCaller,
    needed: AccessRole,
    scope: RequestScope,
    /// The accepted keys, which a reload replaces.
    keys: watch::Receiver<Arc<AccessKeys>>,
}

impl RequestAccess {
    /// Creates the access of a caller that has passed [`ApiCaller::check_access`].
    pub(crate) fn new(
        caller: ApiCaller,
        needed: AccessRole,
        scope: AccessScope<'_>,
        keys: watch::Receiver<Arc<AccessKeys>>,
    ) -> Self {
        let scope = match scope {
            AccessScope::Nothing => RequestScope::Nothing,
            AccessScope::Collection(names) => {
                RequestScope::Collection(names.iter().map(|&name| name.to_owned()).collect())
            }
            AccessScope::Service => RequestScope::Service,
        };
        Self {
            caller,
            needed,
            scope,
            keys,
        }
    }

    /// Checks that the keys in use now permit the request.
    ///
    /// # Errors
    /// As for [`ApiCaller::check_access`].
    pub(crate) fn check_now(&mut self) -> Result<(), ApiProblem> {
        let keys = Arc::clone(&self.keys.borrow_and_update());
        let caller = keys.identify_again(&self.caller);
        let names: Vec<&str>;
        let scope = match &self.scope {
            RequestScope::Nothing => AccessScope::Nothing,
            RequestScope::Collection(owned) => {
                names = owned.iter().map(String::as_str).collect();
                AccessScope::Collection(&names)
            }
            RequestScope::Service => AccessScope::Service,
        };
        caller.check_access(self.needed, scope).map_err(|problem| {
            let detail = format!(
                "the request was still open when its access ended: {}",
                problem.detail
            );
            ApiProblem::new(problem.code, detail)
        })?;
        self.caller = caller;
        Ok(())
    }

    /// Waits until the keys do not permit the request any more, and returns why.
    pub(crate) async fn wait_until_ended(mut self) -> ApiProblem {
        loop {
            if let Err(problem) = self.check_now() {
                return problem;
            }
            let wait = self.caller.time_to_expiry(Timestamp::now());
            let expiry = async {
                match wait {
                    Some(wait) => sleep(wait.clamp(SHORTEST_WAIT, CLOCK_CHECK_INTERVAL)).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = self.keys.changed() => {
                    if changed.is_err() {
                        // The service ends.
                        return pending().await;
                    }
                }
                () = expiry => {}
            }
        }
    }
}

/// Access of the latest request of a connection, as an extension of its requests.
#[derive(Clone)]
pub(crate) struct ConnectionAccess(Arc<watch::Sender<Option<RequestAccess>>>);

impl Default for ConnectionAccess {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl ConnectionAccess {
    /// Records the access of a request that begins. The one before it has been answered.
    pub(crate) fn set_latest(&self, access: RequestAccess) {
        self.0.send_replace(Some(access));
    }

    /// Waits until the access of the latest request has ended, and then for the time `grace`. A further request
    /// starts the wait anew.
    pub(crate) async fn wait_until_cut(&self, grace: Duration) -> ApiProblem {
        let mut latest = self.0.subscribe();
        loop {
            let access = latest.borrow_and_update().clone();
            let ended = async {
                match access {
                    Some(access) => {
                        let problem = access.wait_until_ended().await;
                        sleep(grace).await;
                        problem
                    }
                    None => pending().await,
                }
            };
            tokio::select! {
                // The sender lives as long as this connection, so there is always a further value to wait for.
                _ = latest.changed() => {}
                problem = ended => return problem,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tests::{LONG, OTHER, caller, keys};
    use crate::api::problem::ProblemCode;

    /// Returns the access of the key [`LONG`] to a collection, and the sender of keys.
    fn begin_request(first: AccessKeys) -> (RequestAccess, watch::Sender<Arc<AccessKeys>>) {
        let sender = watch::Sender::new(Arc::new(first));
        let known = caller(&sender.borrow(), LONG);
        let scope = AccessScope::Collection(&["live", "news"]);
        known.check_access(AccessRole::Write, scope).unwrap();
        let access = RequestAccess::new(known, AccessRole::Write, scope, sender.subscribe());
        (access, sender)
    }

    #[tokio::test]
    async fn access_ends_with_the_key_or_its_permission() {
        for (changed, code) in [
            (keys(&[("write", OTHER, "")]), ProblemCode::Unauthenticated),
            (keys(&[("read", LONG, "")]), ProblemCode::Forbidden),
            (
                keys(&[("write", LONG, " collections=other")]),
                ProblemCode::Forbidden,
            ),
            (
                keys(&[("write", LONG, " expires=2020-01-01")]),
                ProblemCode::Unauthenticated,
            ),
        ] {
            let (access, sender) = begin_request(keys(&[("write", LONG, "")]));
            let ended = tokio::spawn(access.clone().wait_until_ended());
            // A reload that leaves the permission ends nothing.
            sender.send_replace(Arc::new(keys(&[("admin", LONG, " collections=news")])));
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(!ended.is_finished());
            assert!(access.clone().check_now().is_ok());
            sender.send_replace(Arc::new(changed));
            let problem = ended.await.unwrap();
            assert_eq!(problem.code, code, "{}", problem.detail);
            assert!(access.clone().check_now().is_err());
        }
    }

    #[tokio::test]
    async fn access_ends_with_the_validity_of_the_key() {
        let soon = Timestamp::now() + Duration::from_secs(2);
        let expires = format!(" expires={}", soon.strftime("%Y-%m-%dT%H:%M:%SZ"));
        let (access, _sender) = begin_request(keys(&[("write", LONG, &expires)]));
        let problem = access.wait_until_ended().await;
        assert_eq!(problem.code, ProblemCode::Unauthenticated);
        assert!(Timestamp::now() >= soon - Duration::from_secs(1));
    }

    /// A connection is cut some time after the access of its latest request ended, and not if another one follows.
    #[tokio::test]
    async fn connection_is_cut_after_a_grace_period() {
        let (access, sender) = begin_request(keys(&[("write", LONG, "")]));
        let connection = ConnectionAccess::default();
        connection.set_latest(access);
        let grace = Duration::from_millis(200);
        let waiting = connection.clone();
        let cut = tokio::spawn(async move { waiting.wait_until_cut(grace).await });
        let begun = tokio::time::Instant::now();
        sender.send_replace(Arc::new(keys(&[("write", OTHER, "")])));
        cut.await.unwrap();
        assert!(begun.elapsed() >= grace);
        let (access, _sender) = begin_request(keys(&[("write", LONG, "")]));
        connection.set_latest(access);
        let waiting = connection.wait_until_cut(Duration::ZERO);
        let waited = tokio::time::timeout(Duration::from_millis(100), waiting).await;
        assert!(waited.is_err());
    }
}
