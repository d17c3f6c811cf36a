#!/usr/bin/env python3
"""Checks that every link and picture inside a built site leads to a file and, if it names one, to an anchor.

`check_links.py SITE` prints the links that lead nowhere and then fails. Links to other servers are not followed.
"""

import pathlib
import sys
import urllib.parse
from html.parser import HTMLParser


class PageParser(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(filter(None, (values.get("id"), values.get("name") if tag == "a" else None)))
        link = values.get("href") if tag in ("a", "link") else values.get("src")
        if link:
            self.links.append(link)


def read_pages(site):
    pages = {}
    for path in sorted(site.rglob("*.html")):
        parser = PageParser()
        parser.feed(path.read_text(encoding="utf-8"))
        pages[path] = parser
    return pages


def main(site):
    pages = read_pages(site)
    wrong, checked = set(), 0
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            file = urllib.parse.unquote(parts.path)
            target = (path.parent / file).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            anchor = urllib.parse.unquote(parts.fragment)
            is_found = target.exists() and (not anchor or target not in pages or anchor in pages[target].anchors)
            if not is_found:
                wrong.add(f"{path.relative_to(site)}: {link}")
    print(f"{len(pages)} pages, {checked} links")
    if wrong or checked < 1000:
        sys.exit("these links lead nowhere:\n" + "\n".join(sorted(wrong)))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
