//! Collections of fingerprints, compared with a scan.

use std::sync::Arc;

use lookalike::plan::{self, MatchMethod, SimilarityMeasure};
use lookalike::stream::Timestamp;
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    Collection, CollectionContent, CollectionSettings, Disk, DocumentContent, ErrorKind,
    NewDocument, OnConflict, StoredVerdict, export_documents, import_documents, verify_collection,
};

use crate::disk::Simulated;
use crate::support::{Hand, Random, document, page_of_clusters};

pub(crate) fn bare(distance: u32) -> CollectionSettings {
    CollectionSettings {
        holds: CollectionContent::Fingerprints,
        matching: plan::MatchSettings {
            method: MatchMethod::SimHash,
            measure: SimilarityMeasure::Sketch,
            distance,
            ..plan::MatchSettings::default()
        },
        ..CollectionSettings::default()
    }
}

pub(crate) fn fingerprint(id: usize, code: u64) -> NewDocument {
    NewDocument {
        id: id.to_string(),
        content: DocumentContent::Fingerprint(code.into()),
        time: Some(Timestamp(id as i64)),
        meta: None,
    }
}

/// Returns codes of which many differ from an earlier one in a few bits.
pub(crate) fn codes(count: usize) -> Vec<u64> {
    let mut random = Random(77);
    let mut codes: Vec<u64> = Vec::new();
    for _ in 0..count {
        let mut code = random.next();
        if !codes.is_empty() && random.chance(70) {
            code = codes[random.below(codes.len())];
            for _ in 0..random.below(7) {
                code ^= 1 << random.below(64);
            }
        }
        codes.push(code);
    }
    codes
}

#[test]
fn fingerprint_verdicts_equal_a_scan() {
    for distance in [0, 3, 8] {
        let codes = codes(1500);
        let (mut disk, hand) = (Simulated::new(), Hand::default());
        let create = || {
            Collection::create_empty(Arc::new(Simulated::new()), &bare(distance), hand.options())
                .unwrap()
        };
        let mut collection =
            Collection::create_empty(Arc::new(disk.clone()), &bare(distance), hand.options())
                .unwrap();
        let mut kept: Vec<(usize, u64)> = Vec::new();
        let mut answered = 0;
        for portion in codes.chunks(250) {
            let mut scratch = AnalysisScratch::default();
            let documents: Vec<_> = (answered..)
                .zip(portion)
                .map(|(id, &code)| {
                    let document = fingerprint(id, code);
                    collection.prepare_document(document, &mut scratch).unwrap()
                })
                .collect();
            for (answer, &code) in collection
                .insert_documents(&documents)
                .into_iter()
                .zip(portion)
            {
                let apart = |&&(_, other): &&(usize, u64)| (code ^ other).count_ones();
                let nearest = kept.iter().min_by_key(apart);
                let found = nearest.filter(|nearest| apart(nearest) <= distance);
                match (answer.unwrap().verdict, found) {
                    (StoredVerdict::Kept, None) => kept.push((answered, code)),
                    (StoredVerdict::Duplicate(evidence), Some(found)) => {
                        assert_eq!(evidence.of, found.0.to_string());
                        let similarity = f64::from(64 - apart(&found)) / 64.0;
                        assert_eq!(evidence.similarity, similarity);
                    }
                    other => panic!("{answered}: {other:?}"),
                }
                answered += 1;
            }
            disk = disk.copy();
            drop(collection);
            collection = Collection::open_existing(Arc::new(disk.clone()), hand.options()).unwrap();
        }
        assert!(kept.len() > 100 && kept.len() < 1400, "{}", kept.len());
        let stored = collection.find_document("7").unwrap().unwrap();
        assert_eq!(
            stored.content,
            DocumentContent::Fingerprint(codes[7].into())
        );
        let (mut lines, other) = (Vec::new(), create());
        export_documents(&collection, &mut lines).unwrap();
        import_documents(&other, &mut &lines[..], &mut |_, error| Err(error.clone())).unwrap();
        let mut again = Vec::new();
        export_documents(&other, &mut again).unwrap();
        assert_eq!(lines, again);
        let report = verify_collection(&disk.copy()).unwrap();
        assert!(
            report.findings.is_empty() && report.documents == 1500,
            "{report:?}"
        );
    }
}

#[test]
fn texts_and_fingerprints_are_not_mixed() {
    let hand = Hand::default();
    let create = |settings: &CollectionSettings| {
        Collection::create_empty(Arc::new(Simulated::new()), settings, hand.options())
    };
    let prepare = |settings: &CollectionSettings, document: NewDocument| {
        let prepared = create(settings).unwrap();
        let refused = prepared.prepare_document(document, &mut AnalysisScratch::default());
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Document, "{refused}");
    };
    prepare(&bare(3), document("a", "a text", None));
    prepare(&CollectionSettings::default(), fingerprint(1, 5));
    let compared = CollectionSettings {
        matching: plan::MatchSettings::default(),
        ..bare(3)
    };
    assert!(
        create(&compared)
            .unwrap_err()
            .to_string()
            .contains("simhash")
    );
}

/// The same fingerprint again, another one under the same id, and a replacement.
#[test]
fn fingerprints_are_sent_again_and_replaced() {
    let hand = Hand::default();
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..bare(3)
    };
    let collection =
        Collection::create_empty(Arc::new(Simulated::new()), &settings, hand.options()).unwrap();
    let insert = |document: NewDocument| {
        let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
        collection
            .insert_documents(&[prepared.unwrap()])
            .remove(0)
            .unwrap()
    };
    let first = insert(fingerprint(1, 0xff));
    let again = insert(fingerprint(1, 0xff));
    assert!(again.again && again.seq == first.seq);
    let replaced = insert(fingerprint(1, 0xffff_ffff));
    assert!(!replaced.again && replaced.seq > first.seq);
    assert_eq!(insert(fingerprint(2, 0xff)).verdict, StoredVerdict::Kept);
}

/// A document is not replaced if its replacement cannot be checked.
#[test]
fn refused_replacement_keeps_the_document() {
    let (disk, hand) = (Simulated::new(), Hand::default());
    let settings = CollectionSettings {
        on_conflict: OnConflict::Replace,
        ..bare(3)
    };
    let collection =
        Collection::create_empty(Arc::new(disk.clone()), &settings, hand.options()).unwrap();
    let insert = |collection: &Collection, document: NewDocument| {
        let prepared = collection.prepare_document(document, &mut AnalysisScratch::default());
        collection.insert_documents(&[prepared.unwrap()]).remove(0)
    };
    insert(&collection, fingerprint(1, 0xff)).unwrap();
    insert(&collection, fingerprint(2, 0xffff_ffff)).unwrap();
    drop(collection);
    let texts = disk.file_names().unwrap();
    let texts = texts.iter().find(|name| name.ends_with(".texts")).unwrap();
    disk.flip(texts, disk.length(texts) - 8, 0);
    let collection = Collection::open_existing(Arc::new(disk), hand.options()).unwrap();
    let refused = insert(&collection, fingerprint(1, 0xffff_ffff)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damaged, "{refused}");
    let stored = collection.find_document("1").unwrap().unwrap();
    assert_eq!(stored.content, DocumentContent::Fingerprint(0xff));
    assert!(insert(&collection, fingerprint(1, 0xff)).unwrap().again);
    let answer = insert(&collection, fingerprint(3, 0xfe)).unwrap();
    assert!(matches!(answer.verdict, StoredVerdict::Duplicate(evidence) if evidence.of == "1"));
}

/// More documents than one step of the search examines, and few clusters far apart.
#[test]
fn sparse_clusters_are_paged() {
    const COUNT: usize = 140_000;
    let hand = Hand::default();
    let disk = Arc::new(Simulated::new());
    let collection = Collection::create_empty(disk, &bare(0), hand.options()).unwrap();
    let mut scratch = AnalysisScratch::default();
    let mut insert = |ids: &mut dyn Iterator<Item = (usize, u64)>| {
        let documents = ids.map(|(id, code)| {
            let document = NewDocument {
                time: None,
                ..fingerprint(id, code)
            };
            collection.prepare_document(document, &mut scratch).unwrap()
        });
        let documents: Vec<_> = documents.collect();
        for answer in collection.insert_documents(&documents) {
            answer.unwrap();
        }
    };
    insert(&mut (0..COUNT).map(|id| (id, id as u64)));
    let repeated = [0, 1, 65_535, 65_536, 70_000, COUNT - 1];
    insert(&mut repeated.iter().map(|&id| (COUNT + id, id as u64)));
    for count in [1, 2, 6, 7] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = page_of_clusters(&collection, after, count, 9);
            assert!(page.clusters.len() <= count);
            let ids = page
                .clusters
                .iter()
                .map(|cluster| cluster.kept.id.parse::<usize>());
            found.extend(ids.map(Result::unwrap));
            after = page.continue_after;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, repeated, "{count} at a time");
    }
}
