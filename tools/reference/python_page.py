#!/usr/bin/env python3
"""Writes `docs/python/reference.md`, the reference of the Python package, from its signatures and docstrings.

    PYTHONPATH=python tools/reference/python_page.py [--check]

Every public name must have a docstring. The tests of the package run the examples in them. With `--check` nothing is
written, and a page that differs is an error.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Iterator

import lookalike.compat.datasketch
import lookalike.compat.rensa
import lookalike.compat.simhash
import lookalike.datasets
import lookalike.datatrove
import lookalike.errors
import lookalike.langchain
import lookalike.llama_index
import lookalike.pandas
import lookalike.polars
import lookalike.results
import lookalike.service
import lookalike.sklearn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python" / "reference.md"

HEAD = """# Python: every name

This page is made from the signatures and docstrings of the package. [Work in Python](index.md) shows what to use for
which task. `import lookalike as la` is assumed. The names of other modules are imported from these, for example
`from lookalike.compat.datasketch import MinHash`. The operator for Data-Juicer is named in its settings, and stands among the
[integrations](integrations.md).
"""

#: Modules whose names are listed after those of the package, under headings with the module.
MODULES = (
    lookalike.results,
    lookalike.errors,
    lookalike.service,
    lookalike.compat.datasketch,
    lookalike.compat.rensa,
    lookalike.compat.simhash,
    lookalike.pandas,
    lookalike.polars,
    lookalike.sklearn,
    lookalike.datasets,
    lookalike.datatrove,
    lookalike.langchain,
    lookalike.llama_index,
)

# A page wider than this has its arguments on a line each.
MAX_WIDTH = 100


def clean_type(words: str) -> str:
    """Returns an annotation without module names and without quotes, except for those of literals."""
    words = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", words)
    words = re.sub(r"Literal\[[^\]]*\]|['\"]", lambda part: part[0] if part[0].startswith("Literal") else "", words)
    return re.sub(r"(?:typing|collections\.abc|lookalike(?:\.\w+)*)\.", "", words)


STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def describe_parameter(parameter: inspect.Parameter) -> str:
    words = STARS.get(parameter.kind, "") + parameter.name
    is_typed = parameter.annotation is not inspect.Parameter.empty
    if is_typed:
        words += f": {clean_type(str(parameter.annotation))}"
    default = parameter.default
    if default is not inspect.Parameter.empty:
        # The representation of a function has its address.
        shown = default.__name__ if inspect.isfunction(default) else repr(default)
        words += f" = {shown}" if is_typed else f"={shown}"
    return words


def describe_signature(name: str, function: Any) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return name
    shown, has_star = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        has_star |= parameter.kind == inspect.Parameter.VAR_POSITIONAL
        if parameter.kind == inspect.Parameter.KEYWORD_ONLY and not has_star:
            shown.append("*")
            has_star = True
        shown.append(describe_parameter(parameter))
    result = signature.return_annotation
    arrow = "" if result is inspect.Signature.empty else f" -> {clean_type(str(result))}"
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) <= MAX_WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in shown) + f"){arrow}"


#: Headings of sections that list arguments, results and errors, as numpydoc has them.
SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises|Notes)\n-+\n", re.MULTILINE)


def write_sections(text: str) -> str:
    """Returns a docstring whose sections are lists of Markdown: a name, its type and its description on a line."""
    head, *sections = SECTION.split(text)
    for title, body in zip(sections[::2], sections[1::2]):
        listed, example, rest = body.partition(">>> ")
        entries = listed if title == "Notes" else "\n".join(write_entry(entry) for entry in re.split(r"\n(?=\S)", listed))
        head += f"**{title}**\n\n{entries.strip()}\n\n{example}{rest}"
    return head


def write_entry(entry: str) -> str:
    """Returns an argument with its description, or a heading between arguments as it is."""
    name, _, description = entry.strip().partition("\n")
    if name.startswith("**") or not name:
        return f"\n{name.strip('*')}:\n"
    names, colon, kind = name.partition(" : ")
    described = " ".join(description.split())
    return f"- `{names}`" + (f" ({kind})" if colon else "") + (f": {described}" if described else "")


def write_docstring(text: str) -> str:
    """Returns a docstring as Markdown: sections become lists, examples and indented blocks become code."""
    text = write_sections(text)
    text = re.sub(r":(?:\w+:)?(?:func|meth|class|attr|exc|mod|data|obj|ref):`~?([^`]+)`", r"`\1`", text)
    text = text.replace("``", "`")
    lines, block = [], []

    def close_block() -> None:
        if block:
            while block and not block[-1].strip():
                block.pop()
            indent = min(len(line) - len(line.lstrip()) for line in block if line.strip())
            lines.extend(["```python", *[line[indent:] for line in block], "```", ""])
            block.clear()

    is_example = False
    for line in text.splitlines():
        starts_example = line.lstrip().startswith(">>> ")
        if starts_example or (is_example and line.strip()) or (line.startswith("    ") and line.strip()):
            is_example = starts_example or (is_example and bool(line.strip()))
            block.append(line)
            continue
        if not line.strip() and block and not is_example:
            block.append(line)
            continue
        is_example = False
        close_block()
        lines.append(line[:-1] if line.endswith("::") else line)
    close_block()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def public_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yields methods and properties of this package with a docstring of their own, in the order of their definition."""
    own = [base for base in kind.__mro__ if base.__module__.split(".")[0] == "lookalike"]
    for name in dict.fromkeys(name for base in own for name in base.__dict__):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or isinstance(member, type) or name in vars(tuple):
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if callable(member) or isinstance(member, property):
            if inspect.getdoc(member):
                yield name, member


def describe_value(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"A value of type `{type(value).__name__}`."
    names = ", ".join(f"`{name}`" for name in value)
    kinds = sorted({type(one).__name__ for one in value.values()})
    return f"A mapping of the names {names} to values of type `{'`, `'.join(kinds)}`. It cannot be changed."


def write_name(module: Any, name: str) -> str:
    value = getattr(module, name)
    text = inspect.getdoc(value)
    is_plain = not (callable(value) or isinstance(value, type))
    heading, called = heading_of(module, name), f"la.{name}" if module is lookalike else name
    parts = [f"## {heading}\n\n"]
    if is_plain:
        parts.append(describe_value(value) + "\n\n")
        return "".join(parts)
    if not text:
        sys.exit(f"{module.__name__}.{name} has no docstring")
    if isinstance(value, type) and value.__name__ != name:
        return f"## {heading}\n\nAnother name of `{value.__name__}`.\n\n"
    if isinstance(value, type) and issubclass(value, BaseException):
        base = value.__mro__[1].__name__
        parts.append(f"An error, a kind of `{base}`.\n\n")
    elif module is not lookalike.results:
        # Results have no constructor for callers: the calls of the package make them.
        parts.append(f"```python\n{describe_signature(called, value)}\n```\n\n")
    parts.append(write_docstring(text) + "\n\n")
    if isinstance(value, type) and not issubclass(value, BaseException):
        for member_name, member in public_members(value):
            if isinstance(member, property):
                parts.append(f"### {name}.{member_name}\n\n")
            else:
                parts.append(f"### {name}.{member_name}\n\n```python\n{describe_signature(member_name, member)}\n```\n\n")
            parts.append(write_docstring(inspect.getdoc(member) or "") + "\n\n")
    return "".join(parts)


def heading_of(module: Any, name: str) -> str:
    """Returns a name with its module below the package."""
    return ".".join([*module.__name__.split(".")[1:], name])


def is_error(name: str) -> bool:
    value = getattr(lookalike, name)
    return isinstance(value, type) and issubclass(value, BaseException)


def link_names(module: Any, names: list[str]) -> str:
    """Returns links to the headings of names."""
    headings = [(name, heading_of(module, name).lower().replace(".", "")) for name in names]
    return ", ".join(f"[`{name}`](#{anchor})" for name, anchor in headings)


def further_names(module: Any) -> list[str]:
    """Returns the names of a module that the package itself does not have, or has for something else."""
    top = {name: getattr(lookalike, name) for name in lookalike.__all__}
    names = [name for name in module.__all__ if getattr(module, name) is not top.get(name)]
    return sorted(names, key=str.lower)


def write_page() -> str:
    names = sorted(lookalike.__all__, key=str.lower)
    functions = [name for name in names if inspect.isfunction(getattr(lookalike, name))]
    errors = [name for name in names if is_error(name)]
    others = [name for name in names if name not in functions and name not in errors]
    groups = {"Functions": functions, "Classes and values": others, "Errors": errors}
    contents = [f"- {title}: {link_names(lookalike, group)}" for title, group in groups.items()]
    sections = [write_name(lookalike, name) for group in groups.values() for name in group]
    for module in MODULES:
        contents.append(f"- `{module.__name__}`: {link_names(module, further_names(module))}")
        sections += [write_name(module, name) for name in further_names(module)]
    return f"{HEAD}\n" + "\n".join(contents) + "\n\n" + "".join(sections).rstrip("\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page differs")
    arguments = parser.parse_args()
    page = write_page()
    if not arguments.check:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        sys.exit("docs/python/reference.md differs from the package: run tools/reference/python_page.py")


if __name__ == "__main__":
    main()
