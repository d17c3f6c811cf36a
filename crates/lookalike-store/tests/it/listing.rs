//! Documents in order: pages, their cursors and bounds, and deletions of many documents.

use std::sync::Arc;

use lookalike_store::{
    ClusterSelection, Collection, CollectionSettings, DocumentPage, DocumentSelection, ErrorKind,
    InsertAnswer, ListedDocument, NewDocument, OnConflict, StoredVerdict, export_documents,
};

use crate::compaction::by_wall;
use crate::disk::{Fault, Simulated};
use crate::support::{Hand, Random, S, document, page_of_clusters, prepare, settings, text};

fn insert(collection: &Collection, documents: Vec<NewDocument>) -> Vec<InsertAnswer> {
    let prepared = prepare(collection, documents);
    let answers = collection.insert_documents(&prepared).into_iter();
    answers.map(Result::unwrap).collect()
}

fn page_where(
    collection: &Collection,
    after: u64,
    count: usize,
    accepts: &dyn Fn(&InsertAnswer, Option<&str>) -> bool,
) -> DocumentPage {
    let selection = DocumentSelection {
        count,
        has_texts: true,
        accepts,
    };
    collection.list_documents(after, &selection).unwrap()
}

/// Returns all documents, read in pages of `count`.
fn list_all(collection: &Collection, count: usize) -> Vec<ListedDocument> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = page_where(collection, after, count, &|_, _| true);
        assert!(page.documents.len() <= count);
        all.extend(page.documents);
        match page.continue_after {
            Some(next) => after = next,
            None => return all,
        }
    }
}

/// Checks that pages have the documents of an export, with the content that each id has.
fn check_equals_export(collection: &Collection, count: usize) {
    let mut lines = Vec::new();
    let exported = export_documents(collection, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let listed = list_all(collection, count);
    assert_eq!(listed.len() as u64, exported);
    let seqs: Vec<_> = listed.iter().map(|it| it.answer.seq.unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    for (line, listed) in lines.lines().zip(&listed) {
        let answer = &listed.answer;
        assert!(
            line.contains(&format!("\"id\":\"{}\",", answer.id)),
            "{line}"
        );
        assert!(
            line.contains(&format!("\"seq\":{}", answer.seq.unwrap())),
            "{line}"
        );
        let stored = collection.find_document(&answer.id).unwrap().unwrap();
        assert_eq!((&stored.answer, &stored.meta), (answer, &listed.meta));
        assert_eq!(Some(&stored.content), listed.content.as_ref());
        assert_eq!(stored.of_is_gone, listed.of_is_gone);
    }
}

/// Pages of every size are the export, also of documents that were moved, replaced, deleted and compacted, and
/// after the collection was opened again.
#[test]
fn pages_have_the_documents_of_an_export() {
    for (seed, window) in [(1, None), (2, Some((40, true))), (3, Some((40, false)))] {
        let settings = CollectionSettings {
            on_conflict: OnConflict::Replace,
            ..settings(window)
        };
        let (disk, hand) = (Arc::new(Simulated::new()), Hand::default());
        hand.set(1_000 * S);
        let mut collection =
            Collection::create_empty(disk.clone(), &settings, hand.options()).unwrap();
        let (mut random, mut moved, mut last_rows) = (Random(seed), false, Vec::new());
        for round in 0..60 {
            hand.set(hand.get() + 3 * S);
            let documents = (0..8).map(|_| {
                let id = random.below(120).to_string();
                document(&id, &text(random.below(90)), None)
            });
            let answers = insert(&collection, documents.collect());
            last_rows.push(
                answers
                    .iter()
                    .filter_map(|answer| answer.seq)
                    .max()
                    .unwrap_or(0),
            );
            for _ in 0..2 {
                collection
                    .delete_document(&random.below(120).to_string())
                    .unwrap();
            }
            if round % 10 == 9 {
                collection.compact_all(&mut || true).unwrap();
            }
            if round % 25 == 24 {
                drop(collection);
                collection = Collection::open_existing(disk.clone(), hand.options()).unwrap();
            }
            check_equals_export(&collection, 1 + random.below(40));
            let first = list_all(&collection, 1000)[0].answer.seq.unwrap();
            // Rows of 60 seconds ago have expired.
            moved |= window.is_some() && round >= 20 && first <= last_rows[round - 20];
        }
        assert_eq!(moved, window == Some((40, true)));
    }
}

/// A cursor goes on over insertions, deletions, moves and compaction: every document that is there from the
/// beginning to the end is listed once, in order, and those that come later are at the end.
#[test]
fn cursors_stay_valid_while_documents_change() {
    for seed in 0..6 {
        let (disk, hand) = (Arc::new(Simulated::new()), Hand::default());
        let collection =
            Collection::create_empty(disk, &settings(Some((1_000, true))), hand.options()).unwrap();
        let mut random = Random(seed);
        let fresh =
            |from: usize| (from..from + 30).map(|id| document(&format!("d{id}"), &text(id), None));
        for round in 0..10 {
            hand.set(hand.get() + 50 * S);
            insert(&collection, fresh(30 * round).collect());
        }
        let begin: Vec<_> = list_all(&collection, 1000)
            .into_iter()
            .map(|it| it.answer.id)
            .collect();
        let (mut seen, mut after, mut gone, mut next_id) = (Vec::new(), 0, Vec::new(), 300);
        loop {
            let page = page_where(&collection, after, 1 + random.below(30), &|_, _| true);
            seen.extend(
                page.documents
                    .into_iter()
                    .map(|document| (document.answer.seq.unwrap(), document.answer.id)),
            );
            let Some(next) = page.continue_after else {
                break;
            };
            after = next;
            let id = format!("d{}", random.below(300));
            if collection.delete_document(&id).unwrap() {
                gone.push(id);
            }
            if next_id < 360 {
                hand.set(hand.get() + 5 * S);
                let at = next_id;
                insert(
                    &collection,
                    (at..at + 3)
                        .map(|id| document(&format!("d{id}"), &text(id - 300), None))
                        .collect(),
                );
                next_id += 3;
            }
            if random.chance(30) {
                collection.compact_all(&mut || true).unwrap();
            }
        }
        assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
        let ids: Vec<_> = seen.iter().map(|(_, id)| id).collect();
        for id in begin.iter().filter(|id| !gone.contains(id)) {
            assert_eq!(ids.iter().filter(|it| **it == id).count(), 1, "{id}");
        }
        let late = (300..next_id).map(|id| format!("d{id}"));
        let late: Vec<_> = late.filter(|id| !gone.contains(id)).collect();
        assert!(
            late.len() > 10 && ids.ends_with(&late.iter().collect::<Vec<_>>()),
            "{late:?} {ids:?}"
        );
    }
}

/// Inserts the documents with the numbers from 0 on, a thousand at a time.
fn insert_numbered(collection: &Collection, count: usize, make: impl Fn(usize) -> NewDocument) {
    for start in (0..count).step_by(1000) {
        let numbers = start..(start + 1000).min(count);
        insert(collection, numbers.map(&make).collect());
    }
}

/// A page without matches is bounded in the documents that it examines, and the next ones find what there is.
#[test]
fn pages_with_few_matches_are_bounded() {
    let hand = Hand::default();
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings(None), hand.options())
            .unwrap();
    let count = 40_000;
    insert_numbered(&collection, count, |number| NewDocument {
        meta: (number == count - 10).then(|| "the only one".to_owned()),
        ..document(&format!("{number}"), "", None)
    });
    let (mut pages, mut after, mut found) = (0, 0, Vec::new());
    loop {
        let examined = std::cell::Cell::new(0);
        let page = page_where(&collection, after, 5, &|_, meta| {
            examined.set(examined.get() + 1);
            meta.is_some()
        });
        assert!(examined.get() <= 17_000, "{}", examined.get());
        pages += 1;
        found.extend(
            page.documents
                .into_iter()
                .map(|document| document.answer.id),
        );
        match page.continue_after {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!((pages, found), (3, vec![(count - 10).to_string()]));
    // Numbers without documents are passed faster.
    let ids: Vec<_> = (0..count - 5).map(|it| it.to_string()).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let deleted = collection.delete_documents(&ids).unwrap();
    assert!(deleted.into_iter().all(|it| it.unwrap()));
    let page = page_where(&collection, 0, 5, &|_, _| true);
    assert_eq!(page.documents.len(), 5);
    assert_eq!(
        page_where(&collection, u64::MAX, 5, &|_, _| true),
        DocumentPage::default()
    );
}

/// A page of clusters is bounded in the documents that it examines, and the next ones find the clusters whose
/// representative is accepted.
#[test]
fn pages_of_clusters_are_bounded() {
    let hand = Hand::default();
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings(None), hand.options())
            .unwrap();
    let count = 40_000;
    // Each text comes twice, so that every second document is a duplicate.
    insert_numbered(&collection, count, |number| NewDocument {
        meta: (number >= count - 10).then(|| format!("{number}")),
        ..document(&format!("{number}"), &format!("w{}", number / 2), None)
    });
    let wanted = (count - 4).to_string();
    let (mut pages, mut after, mut found) = (0, None, Vec::new());
    loop {
        let examined = std::cell::Cell::new(0);
        let selection = ClusterSelection {
            count: 5,
            most_members: 5,
            accepts: &|meta| {
                examined.set(examined.get() + 1);
                meta == Some(&wanted)
            },
        };
        let page = collection.list_clusters(after, &selection).unwrap();
        assert!(examined.get() <= 17_000, "{}", examined.get());
        pages += 1;
        found.extend(page.clusters);
        after = page.continue_after;
        if after.is_none() {
            break;
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|it| (&*it.kept.id, it.members.len(), it.continue_after))
        .collect();
    assert_eq!((pages, found), (2, vec![(&*wanted, 1, None)]));
}

/// A cluster of which most members were deleted is read in pages of bounded work, which together have the members
/// that are left.
#[test]
fn deleted_members_are_passed_in_pages() {
    let hand = Hand::default();
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings(None), hand.options())
            .unwrap();
    let ids: Vec<_> = (0..5_000).map(|at| at.to_string()).collect();
    let documents = ids.iter().map(|id| document(id, "the same text", None));
    insert(&collection, documents.collect());
    let left = ["1", "2", "1000", "4999"];
    let deleted = ids[1..].iter().map(String::as_str);
    let deleted: Vec<_> = deleted.filter(|id| !left.contains(id)).collect();
    collection.delete_documents(&deleted).unwrap();
    for (most, pages_with_most) in [(1, 6), (2, 5), (100, 5)] {
        let (mut after, mut found, mut pages) = (None, Vec::new(), 0);
        loop {
            let page = collection.find_cluster("0", after, most).unwrap().unwrap();
            assert!(page.members.len() <= most);
            found.extend(page.members.into_iter().map(|member| member.id));
            pages += 1;
            after = page.continue_after;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, ["4999", "1000", "2", "1"], "{most} at a time");
        assert_eq!(pages, pages_with_most, "{most} at a time");
    }
    let page = page_of_clusters(&collection, None, 10, 100);
    assert_eq!(page.clusters.len(), 1);
    assert!(page.clusters[0].continue_after.is_some());
}

/// A page ends after 16 MiB of texts, and has at least one document.
#[test]
fn pages_are_bounded_in_bytes() {
    let hand = Hand::default();
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings(None), hand.options())
            .unwrap();
    for id in 0..5 {
        let long = format!("{id} {}", "z".repeat(7 << 20));
        insert(&collection, vec![document(&id.to_string(), &long, None)]);
    }
    let sizes = |has_texts| {
        let (mut sizes, mut after) = (Vec::new(), 0);
        loop {
            let selection = DocumentSelection {
                count: 100,
                has_texts,
                accepts: &|_, _| true,
            };
            let page = collection.list_documents(after, &selection).unwrap();
            sizes.push(page.documents.len());
            assert!(
                page.documents
                    .iter()
                    .all(|document| document.content.is_some() == has_texts)
            );
            match page.continue_after {
                Some(next) => after = next,
                None => return sizes,
            }
        }
    };
    assert_eq!((sizes(true), sizes(false)), (vec![3, 2], vec![5]));
}

/// Documents are listed by verdict and metadata, and those past the window of the wall clock are left out.
#[test]
fn documents_are_selected() {
    let hand = Hand::default();
    let settings = by_wall(100);
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings, hand.options()).unwrap();
    for (second, id, words) in [
        (0, "a", "one two three"),
        (50, "b", "one two three"),
        (60, "c", "others"),
    ] {
        hand.set(second * S);
        insert(&collection, vec![document(id, words, None)]);
    }
    let ids = |accepts: &dyn Fn(&InsertAnswer, Option<&str>) -> bool| -> String {
        let page = page_where(&collection, 0, 10, accepts);
        page.documents
            .into_iter()
            .map(|document| document.answer.id)
            .collect()
    };
    assert_eq!(ids(&|_, _| true), "abc");
    assert_eq!(
        ids(&|answer, _| answer.verdict == StoredVerdict::Kept),
        "ac"
    );
    hand.set(101 * S);
    assert_eq!(ids(&|_, _| true), "bc");
    assert!(collection.find_document("a").unwrap().is_none());
}

/// Many deletions take as many disk operations as one, survive a loss of power once they are answered, and name
/// what was not there.
#[test]
fn deletions_are_one_commit() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings(None), hand.options()).unwrap();
    let documents = (0..200).map(|id| document(&format!("d{id}"), &text(id), None));
    insert(&collection, documents.collect());
    let operations_of = |ids: &[&str]| {
        let before = disk.operations();
        let deleted = collection.delete_documents(ids).unwrap();
        let deleted: Vec<_> = deleted.into_iter().map(Result::unwrap).collect();
        (deleted, disk.operations() - before)
    };
    let (deleted, one) = operations_of(&["d0"]);
    assert_eq!(deleted, [true]);
    let ids: Vec<_> = (1..150).map(|id| format!("d{id}")).collect();
    let mut ids: Vec<_> = ids.iter().map(String::as_str).collect();
    ids.extend(["d7", "none", "d0", ""]);
    let (deleted, many) = operations_of(&ids);
    assert!(deleted[..149].iter().all(|it| *it));
    assert_eq!(deleted[149..], [false; 4]);
    assert!(many <= 2 * one, "{many} {one}");
    let (deleted, _) = operations_of(&[]);
    assert!(deleted.is_empty());
    drop(collection);
    let disk = disk.after_power_loss(&mut Random(5));
    let again = Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap();
    let ids: Vec<_> = list_all(&again, 1000)
        .into_iter()
        .map(|it| it.answer.id)
        .collect();
    assert!(
        ids.iter().eq((150..200)
            .map(|id| format!("d{id}"))
            .collect::<Vec<_>>()
            .iter())
    );
    disk.fail(disk.operations(), Fault::Error(std::io::ErrorKind::Other));
    let refused = again.delete_documents(&["d150", "d151"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Stopped);
    let refused = again.delete_documents(&["d152"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Stopped);
}
