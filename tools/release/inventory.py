"""Lists what a program is made of: a bill of materials in CycloneDX, and the licences of the crates.

    inventory.py MANIFEST TARGET FEATURES SBOM.json LICENCES.txt

MANIFEST is the Cargo.toml of the program, TARGET a Rust target, FEATURES a list with commas. Crates are those that
the program contains or that run while it is compiled; those of tests are left out. The same sources give the same
files.
"""

import json
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

LICENCE_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")


def main():
    manifest, target, features, bill_path, licences_path = sys.argv[1:]
    metadata = read_metadata(manifest, target, features)
    root, crates, links = find_crates(metadata, Path(manifest).resolve())
    checksums = read_checksums(Path(metadata["workspace_root"]) / "Cargo.lock")
    bill = make_bill(root, crates, links, checksums)
    Path(bill_path).write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    Path(licences_path).write_text(collect_licences(crates), encoding="utf-8")
    print(f"{bill_path}: {len(crates)} crates")


def read_metadata(manifest, target, features):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    command += ["--manifest-path", manifest, "--features", features]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def find_crates(metadata, manifest):
    """Returns the program's package, the packages it is made of by id, and what each depends on."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(it for it in packages.values() if Path(it["manifest_path"]) == manifest)
    links, waiting = {}, [root["id"]]
    while waiting:
        crate = waiting.pop()
        if crate in links:
            continue
        # No "kind" is a normal dependency.
        links[crate] = sorted(
            dependency["pkg"]
            for dependency in nodes[crate]["deps"]
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
        )
        waiting += links[crate]
    crates = {crate: packages[crate] for crate in sorted(links, key=lambda it: reference(packages[it]))}
    return root, crates, links


def read_checksums(lock):
    packages = tomllib.loads(lock.read_text(encoding="utf-8"))["package"]
    return {(it["name"], it["version"]): it["checksum"] for it in packages if "checksum" in it}


def reference(package):
    """The package URL by which a bill of materials names a crate."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def make_bill(root, crates, links, checksums):
    components = [describe(it, checksums) for it in crates.values() if it["id"] != root["id"]]
    dependencies = [
        {"ref": reference(crates[crate]), "dependsOn": sorted({reference(crates[it]) for it in links[crate]})}
        for crate in crates
    ]
    named = json.dumps([components, dependencies])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, named)}",
        "version": 1,
        "metadata": {"component": describe(root, checksums) | {"type": "application"}},
        "components": components,
        "dependencies": dependencies,
    }


def describe(package, checksums):
    component = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component


def collect_licences(crates):
    """Returns the licence files of the crates of others, each text once, under the names of all that have it."""
    crates_by_text, without = {}, []
    for package in crates.values():
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']} ({package['license']})"
        folder = Path(package["manifest_path"]).parent
        texts = [
            file.read_text(encoding="utf-8", errors="replace").strip()
            for file in sorted(folder.iterdir())
            if file.is_file() and file.name.upper().startswith(LICENCE_NAMES)
        ]
        if not texts:
            without.append(name)
        for text in texts:
            crates_by_text.setdefault(text, []).append(name)
    rule = "=" * 80
    parts = ["The program contains these crates of others, under these licences."]
    if without:
        parts.append("Without a file of their own, under the licence that is named:\n\n" + "\n".join(without))
    for text, names in crates_by_text.items():
        parts.append("\n".join(names) + f"\n\n{text}")
    return f"\n\n{rule}\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
