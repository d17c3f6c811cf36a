//! A request rate limit for each client, by token buckets.
//!
//! A bucket holds the tokens of one second, so a client that was idle may make that many requests at once.
//! Memory is bounded: a full bucket has no effect, so it is removed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::limits::byte_budget::ClientId;

/// Number of buckets from which full ones are removed.
const MANY_BUCKETS: usize = 4096;

/// Token buckets by client.
pub(crate) struct RequestRate {
    /// Requests per second; `None` means no limit.
    limit: Option<f64>,
    buckets: Mutex<HashMap<ClientId, TokenBucket>>,
}

#[derive(Clone, Copy)]
struct TokenBucket {
    tokens: f64,
    filled: Instant,
}

impl TokenBucket {
    fn refill_tokens(&mut self, now: Instant, limit: f64) {
        let seconds = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + seconds * limit).min(limit);
        self.filled = now;
    }
}

impl RequestRate {
    /// Limits every client to `limit` requests per second.
    pub(crate) fn new(limit: Option<u32>) -> Self {
        Self {
            limit: limit.map(f64::from),
            buckets: Mutex::default(),
        }
    }

    /// Takes a token of the client; returns `false` if it has made too many requests.
    pub(crate) fn take_token(&self, client: ClientId, now: Instant) -> bool {
        let Some(limit) = self.limit else { return true };
        // A bucket is changed in one step, so a poisoned lock is still consistent.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MANY_BUCKETS {
            buckets.retain(|_, bucket| {
                bucket.refill_tokens(now, limit);
                bucket.tokens < limit
            });
        }
        let bucket = buckets.entry(client).or_insert(TokenBucket {
            tokens: limit,
            filled: now,
        });
        bucket.refill_tokens(now, limit);
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_second_refills_up_to_the_limit() {
        let (rate, now) = (RequestRate::new(Some(3)), Instant::now());
        let (one, other) = (ClientId::Key(0), ClientId::Key(1));
        let at = |milliseconds| now + Duration::from_millis(milliseconds);
        let allowed = |milliseconds| {
            (0..5)
                .filter(|_| rate.take_token(one, at(milliseconds)))
                .count()
        };
        assert_eq!(allowed(0), 3);
        assert!(rate.take_token(other, now));
        assert_eq!(allowed(300), 0);
        assert_eq!(allowed(350), 1);
        assert_eq!(allowed(60_000), 3);
        assert!((0..1000).all(|_| RequestRate::new(None).take_token(one, now)));
    }

    #[test]
    fn full_buckets_are_dropped() {
        let (rate, now) = (RequestRate::new(Some(1)), Instant::now());
        for at in 0..MANY_BUCKETS as u64 {
            rate.take_token(ClientId::Key(at), now);
        }
        rate.take_token(ClientId::Key(u64::MAX), now + Duration::from_secs(2));
        assert_eq!(rate.buckets.lock().unwrap().len(), 1);
    }
}
