#!/usr/bin/env python3
"""Composes what the generator of the site reads: `compose.py TARGET` writes TARGET/en and TARGET/zh.

The pages are those of `docs/`, which also read well where the repository is browsed. Four things differ in the site:

- The reference is divided, a page for each command.
- Pages that are in English only are reached from Chinese pages by links into the English site.
- Files of the repository that pages link, for example `deploy/alerts.yml`, become files of the site.
- The navigation is that of `navigation.toml`; a page that it does not name is an error.

The site also has `llms.txt`, which lists the pages with their first sentences for language models (https://llmstxt.org).
"""

import json
import os
import pathlib
import posixpath
import re
import shutil
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def read_navigation():
    return tomllib.loads((ROOT / "tools/site/navigation.toml").read_text(encoding="utf-8"))


def divide_reference():
    """Returns the pages of the reference by their paths, and the page that has each anchor of the whole."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^(?=## lookalike )", text, flags=re.MULTILINE)
    pages, anchors = {}, {"reference": "reference/index.md"}
    commands = []
    for section in sections:
        title = section.split("\n", 1)[0].removeprefix("## ")
        name = title.removeprefix("lookalike ").replace(" ", "-")
        # `index.md` is the page of all commands.
        path = f"reference/{'index-command' if name == 'index' else name}.md"
        commands.append((title, path))
        # One level up, because each command has a page of its own.
        pages[path] = re.sub(r"^#(#+ )", r"\1", section, flags=re.MULTILINE)
        anchors[title.replace(" ", "-")] = path
    listed = "\n".join(f"- [{title}]({path.removeprefix('reference/')})" for title, path in commands)
    pages["reference/index.md"] = f"{head.rstrip()}\n\n## Commands\n\n{listed}\n"
    return pages, anchors, commands


def first_sentence(text):
    """Returns the first sentence of a page in Markdown, without links, pictures and emphasis."""
    for paragraph in FENCE.sub("", text).split("\n\n"):
        line = " ".join(paragraph.split())
        if line and not re.match(r"[#|!<-]|\d+\. ", line):
            line = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).replace("**", "")
            return re.match(r".*?[.:](?= [A-Z`]|$)|.*", line)[0].rstrip(":")
    return ""


def page_url(path):
    """Returns the address of a page below the root of the site, which ends with a slash."""
    directory, name = posixpath.split(path.removesuffix(".md"))
    parts = [directory] if name in ("index", "README") else [directory, name]
    return "".join(part + "/" for part in parts if part)


class Composer:
    def __init__(self, target):
        self.target = target
        self.navigation = read_navigation()
        self.reference, self.anchors, self.commands = divide_reference()
        self.user_pages = [page["path"] for section in self.navigation["section"] for page in section["pages"]]
        self.linked_pages = set()

    def english_path(self, path, anchor):
        """Returns the path in the English site of a page below docs/, and the anchor in it."""
        if path != "reference.md":
            return path, anchor
        page = self.anchors.get(anchor)
        return (page, "") if page else ("reference/index.md", anchor)

    def rewrite_link(self, language, page, link):
        """Returns the link of a page (its path in the site) as the site needs it."""
        if re.match(r"[a-z]+:|#", link):
            return link
        file, _, anchor = link.partition("#")
        source = pathlib.PurePosixPath("docs/zh" if language == "zh" else "docs") / page
        target = posixpath.normpath(posixpath.join(source.parent, file))
        suffix = f"#{anchor}" if anchor else ""
        if target.startswith(("docs/images/", "docs/curves/")):
            return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(page) or ".")
        if language == "zh" and target.startswith("docs/zh/"):
            return link
        if target.startswith("docs/zh/"):
            # From an English page: the Chinese site is below the English one.
            url = "zh/" + page_url(target.removeprefix("docs/zh/"))
            return posixpath.relpath(url, posixpath.dirname(page) or ".") + "/" + suffix
        if not target.startswith("docs/"):
            target = "docs/" + self.add_file_of_repository(target)
        path, anchor = self.english_path(target.removeprefix("docs/"), anchor)
        suffix = f"#{anchor}" if anchor else ""
        if language == "en":
            return posixpath.relpath(path, posixpath.dirname(page) or ".") + suffix
        # The generator takes links to be relative to the source of a page, not to its address.
        url = page_url(path) if path.endswith(".md") else path
        relative = posixpath.relpath(url or ".", posixpath.join("zh", posixpath.dirname(page)))
        return (relative + "/" if url.endswith("/") or not url else relative) + suffix

    def add_file_of_repository(self, path):
        """Makes a file or directory of the repository a part of the English site, and returns its path there."""
        if (ROOT / path).is_dir():
            page = f"project/{path}.md"
            if page not in self.linked_pages:
                self.linked_pages.add(page)
                files = sorted(str(it.relative_to(ROOT)) for it in (ROOT / path).rglob("*") if it.is_file())
                listed = [f"- [{file}]({posixpath.relpath(self.add_file_of_repository(file), posixpath.dirname(page))})" for file in files]
                self.write("en", page, f"# {path}/\n\n" + "\n".join(listed) + "\n")
            return page
        if path.endswith(".md"):
            page = f"project/{path}"
            if page not in self.linked_pages:
                self.linked_pages.add(page)
                text = (ROOT / path).read_text(encoding="utf-8")
                # These pages stand at the root of the repository, so their links are those of a page of docs/ one level up.
                moved = LINK.sub(lambda it: it[1] + self.move_link(path, it[2]) + it[3], text)
                self.write("en", page, moved)
            return page
        copy = self.target / "en/docs/files" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
        return f"files/{path}"

    def move_link(self, path, link):
        if re.match(r"[a-z]+:|#", link):
            return link
        file, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        target = target.removeprefix("docs/") if target.startswith("docs/") else self.add_file_of_repository(target)
        if target.startswith("zh/"):
            return posixpath.relpath("zh/" + page_url(target.removeprefix("zh/")), f"project/{posixpath.dirname(path)}".rstrip("/")) + "/"
        target, anchor = self.english_path(target, anchor)
        return posixpath.relpath(target, f"project/{posixpath.dirname(path)}".rstrip("/")) + (f"#{anchor}" if anchor else "")

    def write(self, language, path, text):
        file = self.target / language / "docs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def write_page(self, language, path, text):
        parts = FENCE.split(text)
        for at in range(0, len(parts), 2):
            parts[at] = LINK.sub(lambda it: it[1] + self.rewrite_link(language, path, it[2]) + it[3], parts[at])
        self.write(language, path, "".join(parts))

    def check_that_all_are_listed(self):
        listed = set(self.user_pages) | {page["path"] for page in self.navigation["references"]["pages"]} | {"reference.md"}
        found = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
        missing = {path for path in found if not path.startswith(("zh/", "decisions/"))} - listed
        if missing:
            sys.exit(f"tools/site/navigation.toml does not name {', '.join(sorted(missing))}")

    def compose(self):
        self.check_that_all_are_listed()
        shutil.rmtree(self.target, ignore_errors=True)
        references = [page["path"] for page in self.navigation["references"]["pages"]]
        decisions = sorted(str(path.relative_to(DOCS)) for path in (DOCS / "decisions").glob("*.md"))
        for path in self.user_pages + references + decisions:
            self.write_page("en", path, (DOCS / path).read_text(encoding="utf-8"))
        for path, text in self.reference.items():
            self.write_page("en", path, text)
        for path in self.user_pages:
            self.write_page("zh", path, (DOCS / "zh" / path).read_text(encoding="utf-8"))
        for language in ("en", "zh"):
            for pictures in ("images", "curves"):
                shutil.copytree(DOCS / pictures, self.target / language / "docs" / pictures)
        self.write_list_for_models()
        self.write_configuration("en", "Documentation", self.list_sections("en") + self.list_references(decisions))
        self.write_configuration("zh", "文档", self.list_sections("zh"))

    def write_list_for_models(self):
        """Writes llms.txt: what lookalike is, and each page with its first sentence. References are optional reading."""
        sections = [(it["en"], [(page["en"], page["path"]) for page in it["pages"]]) for it in self.navigation["section"]]
        references = [(page["en"], page["path"]) for page in self.navigation["references"]["pages"]]
        commands = [(title, path) for title, path in self.commands]
        lines = ["# lookalike", "", "> " + first_sentence((DOCS / "index.md").read_text(encoding="utf-8"))]
        for section, pages in [*sections, ("Commands", commands), ("Optional", references)]:
            lines += ["", f"## {section}", ""]
            for title, path in pages:
                text = self.reference.get(path) or (DOCS / path).read_text(encoding="utf-8")
                sentence = first_sentence(text)
                # A page of questions begins with a short answer, which says nothing about the page.
                lines.append(f"- [{title}]({page_url(path) or './'})" + (f": {sentence}" if len(sentence) > 20 else ""))
        (self.target / "en/docs/llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def list_sections(self, language):
        sections = self.navigation["section"]
        return [{it[language]: [{page[language]: page["path"]} for page in it["pages"]]} for it in sections]

    def list_references(self, decisions):
        pages = [{page["en"]: page["path"]} for page in self.navigation["references"]["pages"]]
        commands = [{"All commands": "reference/index.md"}] + [{title: path} for title, path in self.commands]
        records = [path for path in decisions if not path.endswith("README.md")]
        return [
            {"Commands": commands},
            {"Look up": pages},
            {"Decisions": ["decisions/README.md", *records]},
        ]

    def write_configuration(self, language, title, navigation):
        """Writes zensical.toml. JSON strings, lists and inline tables with `=` are TOML."""
        lines = [
            "[project]",
            f"site_name = {quote('lookalike · ' + title)}",
            'site_dir = "html"',
            'docs_dir = "docs"',
            f"nav = {to_toml(navigation)}",
            "[project.theme]",
            f'language = "{language}"',
            "font = false",
            'features = ["navigation.sections", "navigation.top", "navigation.footer", "content.code.copy", "search.highlight"]',
            "[[project.theme.palette]]",
            'media = "(prefers-color-scheme: light)"',
            'scheme = "default"',
            "[[project.theme.palette]]",
            'media = "(prefers-color-scheme: dark)"',
            'scheme = "slate"',
            "[[project.extra.alternate]]",
            'name = "English"',
            f'link = "{"./" if language == "en" else "../"}"',
            'lang = "en"',
            "[[project.extra.alternate]]",
            'name = "中文"',
            f'link = "{"./zh/" if language == "en" else "./"}"',
            'lang = "zh"',
            "[project.markdown_extensions.toc]",
            "permalink = true",
            "[project.markdown_extensions.toc.slugify]",
            'object = "pymdownx.slugs.slugify"',
            'kwds = { case = "lower" }',
            "[project.markdown_extensions.tables]",
            "[project.markdown_extensions.pymdownx.superfences]",
            "[project.markdown_extensions.pymdownx.highlight]",
        ]
        (self.target / language / "zensical.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def quote(text):
    return json.dumps(text, ensure_ascii=False)


def to_toml(value):
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return "{ " + ", ".join(f"{quote(key)} = {to_toml(item)}" for key, item in value.items()) + " }"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {os.path.basename(__file__)} TARGET")
    Composer(pathlib.Path(sys.argv[1])).compose()
