//! Files and directories, as every system has them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use lookalike_system::{
    Directory, FileNumber, FileVersion, PositionedAccess, create_unnamed, is_device, link_unnamed,
    open_standard_input, open_standard_output, read_disk_space, replace_file, resolve_path,
};

#[test]
fn bytes_are_read_and_written_at_any_offset() {
    let file = tempfile::tempfile().unwrap();
    file.write_all_bytes_at(b"world", 6).unwrap();
    file.write_all_bytes_at(b"hello ", 0).unwrap();
    let mut bytes = [0; 11];
    file.read_exact_bytes_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"hello world");
    assert_eq!(file.read_bytes_at(&mut bytes, 8).unwrap(), 3);
    assert_eq!(&bytes[..3], b"rld");
    assert_eq!(file.read_bytes_at(&mut bytes, 11).unwrap(), 0);
    let error = file.read_exact_bytes_at(&mut bytes, 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_directory_is_synced_and_has_free_bytes() {
    let place = tempfile::tempdir().unwrap();
    let directory = Directory::open(place.path()).unwrap();
    directory.sync().unwrap();
    Directory::sync_path(place.path()).unwrap();
    assert!(directory.free_bytes().unwrap() > 0);
    let space = read_disk_space(place.path()).unwrap();
    assert!(space.free > 0 && space.size >= space.free);
    assert!(Directory::open(&place.path().join("none")).is_err());
    assert_eq!(read_disk_space(&place.path().join("none/below")), None);
}

#[test]
fn files_of_an_open_directory_are_found_by_their_names() {
    let place = tempfile::tempdir().unwrap();
    let directory = Directory::open(place.path()).unwrap();
    let missing = directory.open_file("a").unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    let file = directory.create_file("a").unwrap();
    file.write_all_bytes_at(b"text", 0).unwrap();
    drop(file);
    directory.create_file("b").unwrap();
    directory.rename("a", "b").unwrap();
    fs::create_dir(place.path().join("c")).unwrap();
    let mut names = directory.read_entries().unwrap();
    names.sort_unstable();
    assert_eq!(names, ["b", "c"]);
    let file = directory.open_file("b").unwrap();
    let mut bytes = [0; 4];
    file.read_exact_bytes_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"text");
    file.write_all_bytes_at(b"T", 0).unwrap();
    drop(file);
    assert_eq!(fs::read(place.path().join("b")).unwrap(), b"Text");
    directory.create_file("b").unwrap();
    assert_eq!(fs::read(place.path().join("b")).unwrap(), b"");
    directory.remove("b").unwrap();
    assert!(!place.path().join("b").exists() && directory.remove("b").is_err());
}

#[test]
fn resolved_paths_have_the_form_that_users_know() {
    let place = tempfile::tempdir().unwrap();
    let place = resolve_path(place.path()).unwrap();
    fs::create_dir(place.join("in")).unwrap();
    fs::write(place.join("in/a"), "text").unwrap();
    let resolved = resolve_path(&place.join("in/../in/./a")).unwrap();
    assert_eq!(resolved, place.join("in").join("a"));
    assert!(!resolved.to_str().unwrap().starts_with(r"\\?\"));
    assert!(resolve_path(&place.join("none")).is_err());
}

fn version_of(path: &Path) -> FileVersion {
    FileVersion::of_file(path, &fs::metadata(path).unwrap())
}

#[test]
fn changed_and_replaced_files_are_recognised() {
    let place = tempfile::tempdir().unwrap();
    let [path, other] = ["file", "other"].map(|name| place.path().join(name));
    fs::write(&path, "one").unwrap();
    let before = version_of(&path);
    assert_eq!(version_of(&path), before);
    assert_eq!(before.bytes, 3);
    fs::write(&path, "four").unwrap();
    let changed = version_of(&path);
    assert_ne!(changed, before);
    assert_eq!(changed.number, before.number);
    assert!(changed.number.is_some());
    fs::write(&other, "four").unwrap();
    assert_ne!(version_of(&other).number, changed.number);
    replace_file(&other, &path).unwrap();
    assert_ne!(version_of(&path).number, changed.number);
}

/// Two paths of one file have one number.
#[test]
fn a_hard_link_has_the_number_of_its_file() {
    let place = tempfile::tempdir().unwrap();
    let [path, link] = ["file", "link"].map(|name| place.path().join(name));
    fs::write(&path, "text").unwrap();
    fs::hard_link(&path, &link).unwrap();
    let number = |path: &Path| FileNumber::of_file(path, &fs::metadata(path).unwrap());
    assert_eq!(number(&path), number(&link));
}

#[test]
fn a_file_that_is_open_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let [new, target] = ["new", "target"].map(|name| place.path().join(name));
    fs::write(&target, "old").unwrap();
    fs::write(&new, "new").unwrap();
    let open = File::open(&target).unwrap();
    replace_file(&new, &target).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    assert!(!new.exists());
    let mut bytes = [0; 3];
    open.read_exact_bytes_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"old");
    assert!(replace_file(&new, &target).is_err());
}

/// Systems without such files say so.
#[test]
fn an_unnamed_file_gets_its_name_when_it_is_complete() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("named");
    let Some(mut file) = create_unnamed(place.path()) else {
        let file = tempfile::tempfile().unwrap();
        assert!(link_unnamed(&file, &path).is_err() && !path.exists());
        return;
    };
    file.write_all(b"complete").unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    link_unnamed(&file, &path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "complete");
    assert!(link_unnamed(&file, &path).is_err());
}

#[test]
fn files_are_no_devices() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(!is_device(file.path()) && !is_device(Path::new("none")));
    let null = ["/dev/null", "NUL"].map(Path::new);
    assert!(null.iter().any(|path| is_device(path)));
}

#[test]
fn standard_streams_can_be_opened() {
    open_standard_output().unwrap().write_all(b"").unwrap();
    open_standard_input().unwrap();
}
