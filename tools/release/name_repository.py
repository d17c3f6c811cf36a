"""Fills the address of the repository into sources that are about to be packaged.

    name_repository.py SOURCES ADDRESS TAG

The crates and the Python package name ADDRESS. Links of README.md become absolute, since a page of a package stands
without the files that it links to: ADDRESS/blob/TAG/… for pages and ADDRESS/raw/TAG/… for pictures.
"""

import re
import sys
from pathlib import Path

# A link or a picture of Markdown to a file of the repository.
LINK = re.compile(r"(?P<picture>!?)\[(?P<label>[^\]]*)\]\((?P<path>(?![a-z]+:|#)[^)\s]+)\)")


def main():
    sources, address, tag = Path(sys.argv[1]), sys.argv[2].rstrip("/"), sys.argv[3]
    if not re.fullmatch(r"https://[^\s\"']+", address):
        raise SystemExit(f"the address of the repository is {address}: give one that begins with https://")
    for manifest in sorted(sources.glob("crates/*/Cargo.toml")):
        replace(manifest, "license.workspace = true\n", f'license.workspace = true\nrepository = "{address}"\n')
    links = f'[project.urls]\nRepository = "{address}"\nDocumentation = "{address}/blob/{tag}/docs/index.md"\n\n'
    replace(sources / "pyproject.toml", "[project.scripts]\n", f"{links}[project.scripts]\n")
    readme = sources / "README.md"
    readme.write_text(make_links_absolute(readme.read_text(encoding="utf-8"), address, tag), encoding="utf-8")
    print(f"packages name {address}")


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{path}: {old.strip()!r} stands there {text.count(old)} times, and 1 is expected")
    path.write_text(text.replace(old, new), encoding="utf-8")


def make_links_absolute(text, address, tag):
    """Returns Markdown whose links to files of the repository are absolute."""
    # A picture that is a link itself would need two passes; the README has none.
    absolute = LINK.sub(
        lambda it: f"{it['picture']}[{it['label']}]({address}/{'raw' if it['picture'] else 'blob'}/{tag}/{it['path']})",
        text,
    )
    if LINK.search(absolute):
        raise SystemExit("README.md has links that are still relative")
    return absolute


if __name__ == "__main__":
    main()
