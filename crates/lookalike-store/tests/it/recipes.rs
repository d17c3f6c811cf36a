//! Recipes with files: an archive that is interrupted at every step, and collections that have such a recipe.

use std::io;
use std::sync::Arc;

use lookalike::Recipe;
use lookalike_store::{
    Collection, CollectionSettings, Disk, ErrorKind, RecipeArchive, SettingsRecord, StoredVerdict,
    read_settings, repair_collection, restore_collection, verify_collection,
};

use crate::disk::{Fault, Simulated};
use crate::support::{Hand, Random, document, prepare, settings};

const FAULTS: [Fault; 3] = [
    Fault::Error(io::ErrorKind::Other),
    Fault::Error(io::ErrorKind::StorageFull),
    Fault::Short,
];

/// Returns a recipe of single words without those of a list.
fn recipe_without(words: &str) -> Recipe {
    let toml = Recipe::built_in("words-1").unwrap().to_toml();
    let toml = format!("{toml}\n[filter]\nstopwords = \"mine.txt\"\n");
    let content: Arc<[u8]> = words.as_bytes().into();
    Recipe::read_with_files(&toml, &|_| Some(content.clone())).unwrap()
}

fn open_archive(disk: &Simulated) -> RecipeArchive {
    RecipeArchive::open(Arc::new(disk.clone()), 0).unwrap()
}

/// Checks that the archive on a disk has one of two recipes, and no remains.
fn check_either(disk: &Simulated, expected: [Option<&Recipe>; 2]) -> Option<Recipe> {
    let archive = open_archive(disk);
    let found = archive.load_recipe("mine").unwrap();
    assert!(expected.contains(&found.as_ref()), "{found:?}");
    let names = disk.file_names().unwrap();
    assert_eq!(names.len(), usize::from(found.is_some()), "{names:?}");
    found
}

/// Interrupts a change of an archive at every operation. Returns how often the new state was there afterwards.
fn interrupt(
    make: &dyn Fn() -> Simulated,
    change: &dyn Fn(&RecipeArchive) -> bool,
    expected: [Option<&Recipe>; 2],
) -> usize {
    let whole = make();
    let begun = whole.operations();
    assert!(change(&open_archive(&whole)));
    let operations = whole.operations() - begun;
    assert!(operations >= 2);
    let mut changed = 0;
    for operation in 1..=operations {
        for fault in FAULTS {
            let disk = make();
            let archive = open_archive(&disk);
            disk.fail(operation, fault);
            let succeeded = change(&archive);
            // The archive goes on with that which is on the disk.
            let found = archive.load_recipe("mine").unwrap();
            assert!(expected.contains(&found.as_ref()), "{operation} {fault:?}");
            assert!(!succeeded || found.as_ref() == expected[1]);
            for seed in 0..20 {
                let lost = disk.after_power_loss(&mut Random(seed * 97 + operation));
                changed += usize::from(check_either(&lost, expected).as_ref() == expected[1]);
            }
            assert!(
                change(&archive),
                "{operation} {fault:?}: it does not work again"
            );
        }
    }
    changed
}

#[test]
fn interrupted_upload_leaves_the_old_or_the_new_recipe() {
    let (old, new) = (recipe_without("the\n"), recipe_without("of\nand\n"));
    let put = |archive: &RecipeArchive| archive.put_recipe("mine", &new).is_ok();
    assert!(interrupt(&Simulated::new, &put, [None, Some(&new)]) > 0);
    let with_old = || {
        let disk = Simulated::new();
        open_archive(&disk).put_recipe("mine", &old).unwrap();
        disk
    };
    assert!(interrupt(&with_old, &put, [Some(&old), Some(&new)]) > 0);
    // After a failed removal the recipe may be gone already, which is as good.
    let remove = |archive: &RecipeArchive| archive.remove_recipe("mine").is_ok();
    assert!(interrupt(&with_old, &remove, [Some(&old), None]) > 0);
}

/// A process that ends in the middle of an upload, before each of its operations in turn.
#[test]
fn killed_upload_leaves_the_old_or_the_new_recipe() {
    let (old, new) = (recipe_without("the\n"), recipe_without("of\nand\n"));
    let disk = Simulated::new();
    let archive = open_archive(&disk);
    archive.put_recipe("mine", &old).unwrap();
    let states = Arc::new(std::sync::Mutex::new(Vec::new()));
    let of_hook = states.clone();
    disk.set_hook(move |disk, _| of_hook.lock().unwrap().push(disk.copy()));
    archive.put_recipe("mine", &new).unwrap();
    disk.set_hook(|_, _| ());
    let states = std::mem::take(&mut *states.lock().unwrap());
    assert!(states.len() >= 4);
    for state in states {
        check_either(&state, [Some(&old), Some(&new)]);
    }
    assert_eq!(check_either(&disk, [None, Some(&new)]), Some(new));
}

/// A changed bit is noticed when the archive is opened and when the recipe is read, and another upload replaces
/// the damaged file.
#[test]
fn damaged_recipe_is_refused_and_replaced() {
    let recipe = recipe_without("the\n");
    let disk = Simulated::new();
    let archive = open_archive(&disk);
    archive.put_recipe("mine", &recipe).unwrap();
    archive.put_recipe("other", &recipe).unwrap();
    let file = "mine.recipe";
    for at in 0..disk.length(file) {
        disk.flip(file, at, (at % 8) as u8);
        let error = archive.load_recipe("mine").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{at}: {error}");
        assert!(error.to_string().contains("'mine.recipe' is damaged"));
        disk.flip(file, at, (at % 8) as u8);
    }
    disk.flip(file, 100, 3);
    let archive = open_archive(&disk);
    assert!(archive.find_recipe("mine").unwrap().is_err());
    assert!(archive.load_recipe("other").unwrap().is_some());
    archive.put_recipe("mine", &recipe).unwrap();
    assert_eq!(archive.load_recipe("mine").unwrap(), Some(recipe));
}

#[test]
fn archive_leaves_the_headroom_free() {
    let disk = Simulated::new();
    let archive = RecipeArchive::open(Arc::new(disk.clone()), 1000).unwrap();
    let recipe = recipe_without("the\n");
    disk.set_free(1003);
    let refused = archive.put_recipe("mine", &recipe).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    disk.set_free(1004);
    archive.put_recipe("mine", &recipe).unwrap();
}

fn settings_with(recipe: Recipe) -> CollectionSettings {
    CollectionSettings {
        recipe,
        ..settings(None)
    }
}

/// Stopwords without which the text of [`insert_similar`] has three words.
const STOPWORDS: &str = "the\nof\nand\nin\n";

/// Inserts a document, and returns its verdict.
fn insert_similar(collection: &Collection, id: &str) -> StoredVerdict {
    let text = "ship harbour the lantern the the the the the the the the";
    let prepared = prepare(collection, vec![document(id, text, None)]);
    let mut answers = collection.insert_documents(&prepared);
    answers.remove(0).unwrap().verdict
}

fn make_collection(disk: &Simulated, recipe: &Recipe) -> lookalike_store::Result<Collection> {
    let settings = settings_with(recipe.clone());
    Collection::create_empty(Arc::new(disk.clone()), &settings, Hand::default().options())
}

fn open_collection(disk: &Simulated) -> lookalike_store::Result<Collection> {
    Collection::open_existing(Arc::new(disk.clone()), Hand::default().options())
}

/// A collection has its recipe's files, after it is opened again and in a restored snapshot.
#[test]
fn collection_keeps_the_files_of_its_recipe() {
    let (disk, recipe) = (Simulated::new(), recipe_without(STOPWORDS));
    let collection = make_collection(&disk, &recipe).unwrap();
    let first = prepare(
        &collection,
        vec![document("a", "ship, harbour, lantern", None)],
    );
    assert!(collection.insert_documents(&first).remove(0).is_ok());
    let is_duplicate = |verdict: StoredVerdict| match verdict {
        StoredVerdict::Duplicate { .. } => (),
        kept => panic!("{kept:?}"),
    };
    is_duplicate(insert_similar(&collection, "b"));
    let (snapshot, restored) = (Simulated::new(), Simulated::new());
    collection.copy_to_snapshot(&snapshot).unwrap();
    restore_collection(&snapshot, &restored, 0).unwrap();
    drop(collection);
    for disk in [&disk, &restored] {
        assert_eq!(read_settings(disk).unwrap().recipe, recipe);
        assert!(verify_collection(disk).unwrap().findings.is_empty());
        is_duplicate(insert_similar(&open_collection(disk).unwrap(), "c"));
    }
}

/// A damaged or missing file of a recipe is named, and settings that have it repair the collection.
#[test]
fn damaged_recipe_of_a_collection_is_refused() {
    let (disk, recipe) = (Simulated::new(), recipe_without("the\n"));
    let collection = make_collection(&disk, &recipe).unwrap();
    insert_similar(&collection, "a");
    drop(collection);
    for at in 0..disk.length("recipe") {
        disk.flip("recipe", at, (at % 8) as u8);
        let error = open_collection(&disk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{at}: {error}");
        assert!(error.to_string().contains("'recipe' is damaged"), "{error}");
        disk.flip("recipe", at, (at % 8) as u8);
    }
    disk.remove_file("recipe").unwrap();
    let error = open_collection(&disk).unwrap_err().to_string();
    assert!(
        error.contains("'recipe' is damaged: it is missing"),
        "{error}"
    );
    // The recipe of another collection has other digests.
    let other = Simulated::new();
    make_collection(&other, &recipe_without("of\n")).unwrap();
    let content = other.open_file("recipe").unwrap();
    let mut bytes = vec![0; content.len().unwrap() as usize];
    content.read_at(&mut bytes, 0).unwrap();
    disk.create_file("recipe")
        .unwrap()
        .write_at(&bytes, 0)
        .unwrap();
    let error = open_collection(&disk).unwrap_err().to_string();
    assert!(
        error.contains("it is not the file of the recipe"),
        "{error}"
    );
    let settings = SettingsRecord::from(settings_with(recipe));
    let new = Arc::new(Simulated::new());
    let options = Hand::default().options();
    let (_, repaired) = repair_collection(&disk, Some(&settings), new, options).unwrap();
    assert_eq!(repaired.collect_stats().unwrap().rows, 1);
}

/// Creating a collection whose recipe has files makes all of it or nothing, and can be repeated, also with
/// another recipe.
#[test]
fn interrupted_creation_with_a_recipe_can_be_repeated() {
    let recipe = recipe_without("the\n");
    let whole = Simulated::new();
    make_collection(&whole, &recipe).unwrap();
    let mut interrupted = 0;
    for operation in 1..=whole.operations() {
        for fault in FAULTS {
            let disk = Simulated::new();
            disk.fail(operation, fault);
            interrupted += usize::from(make_collection(&disk, &recipe).is_err());
            let lost = disk.after_power_loss(&mut Random(operation));
            match open_collection(&lost) {
                Ok(collection) => assert_eq!(collection.collection_settings().recipe, recipe),
                Err(error) => {
                    assert!(error.to_string().contains("'manifest'"), "{error}");
                    make_collection(&lost, &Recipe::default()).unwrap();
                    let names = lost.file_names().unwrap();
                    assert!(!names.contains(&"recipe".to_owned()), "{names:?}");
                }
            }
        }
    }
    assert!(interrupted > 10, "{interrupted}");
}
