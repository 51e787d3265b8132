"""Build files: the part of package.json, Cargo.toml, pom.xml and their like that decides a check.

What is free in each is in the table of `decides`. Every pattern looks at a text once: an agent can write what it likes.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from raymond.digests import sha256
from raymond.patterns import regex
from raymond.verifier.decides import Row, build_file

_INHERITED = {"lints": {"workspace": True}}
"""All that a new crate says about tests, if its lints are those of its workspace."""
_HEADER = regex(r"^[ \t]*\[\[?(?P<name>[^\]\n]+)\]\]?[ \t]*(?:[#;].*)?$", re.MULTILINE)
_COMMENT = regex(r"#[^\n]*")
_TESTS = regex(r"test|spec|check|verify", re.IGNORECASE)
"""In the names of sources that are built to check others."""
_SEPARATES = regex(r"\r(?!\n)|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What is the end of a line to some readers of setup.cfg, and to others is not."""
_MOST = 256 << 10
"""Bytes of a file that is taken apart: of a larger one, everything counts."""
_UNREADABLE = (ValueError, KeyError, AttributeError, TypeError, RecursionError)


def is_manifest(name: str) -> bool:
    """Whether only a part of a file with this name counts."""
    return build_file(name) is not None


def relevant(name: str, content: bytes) -> str:
    """A digest of what decides a check; of everything when the file cannot be read."""
    try:
        found = _read(name, content)
    except _UNREADABLE:
        return sha256(content).hexdigest()
    return sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()


def counts_when_new(name: str, content: bytes) -> bool:
    """Whether a file that was not there before decides a check; one without tables is about its own folder."""
    row = build_file(name)
    if row and row.format not in ("json", "toml", "ini"):
        return False
    try:
        return _read(name, content) not in (None, _INHERITED)
    except _UNREADABLE:
        return True


def put_back(name: str, sealed: bytes, current: bytes) -> bytes:
    """`current` with the part that decides as it is in `sealed`; `sealed` itself where that cannot be done.

    A dependency that the work needs stays, whatever else was changed in the file.
    """
    row = build_file(name)
    try:
        _read(name, current)
        if not row or row.format not in ("json", "toml", "ini"):
            return sealed
        found = _joined(row, sealed.decode("utf-8"), current.decode("utf-8")).encode()
        return found if relevant(name, found) == relevant(name, sealed) else sealed
    except _UNREADABLE:
        return sealed


def _joined(row: Row, sealed: str, current: str) -> str:
    """Whole tables of the one where they count, and of the other where they do not."""
    if row.format == "json":
        kept = {key: value for key, value in json.loads(current).items() if not _counts(row, key)}
        old = {key: value for key, value in json.loads(sealed or "{}").items() if _counts(row, key)}
        return json.dumps({**kept, **old}, indent=2) + "\n"
    tables = [text for table, text in _tables(current) if not _counts(row, table)]
    tables += [text for table, text in _tables(sealed) if _counts(row, table)]
    return "".join(f"{one}\n" if one and not one.endswith("\n") else one for one in tables)


def _tables(text: str) -> Iterator[tuple[str, str]]:
    """The tables of a text with their names, as they stand there; first what comes before them all."""
    name, at = "", 0
    for header in _HEADER.finditer(text):
        yield name, text[at : header.start()]
        name, at = re.sub(r"[\s\"']", "", header["name"]), header.start()
    yield name, text[at:]


def _read(name: str, content: bytes) -> Any:
    """What counts in a file; None for nothing."""
    row = build_file(name)
    if row is None or len(content) > _MOST:
        raise ValueError("not to be taken apart")
    text = content.decode("utf-8")
    if row.format == "lines":
        either = "|".join(line.strip() for line in row.free.splitlines())
        return re.sub(rf"^[ \t]*(?:{either})[ \t]*$", "", text, flags=re.MULTILINE).split() or None
    if row.format == "calls":
        calls = rf"\b(?:{'|'.join(row.free.split())})[ \t]*\(([^()]*)\)"
        return re.sub(calls, _about_tests, _COMMENT.sub("", text), flags=re.IGNORECASE).split() or None
    return _counting(row, {"json": _json, "toml": _toml, "ini": _ini, "xml": _xml}[row.format](text), "")


def _about_tests(call: "re.Match[str]") -> str:
    return " ".join(word for word in call[1].split() if _TESTS.search(word))


def _counting(row: Row, value: Any, path: str) -> Any:
    """What counts of a value: a list is where its items are, and what is empty says nothing."""
    if isinstance(value, dict):
        found = {key: _counting(row, one, f"{path}.{key}" if path else key) for key, one in value.items()}
        return {key: one for key, one in found.items() if one is not None} or None
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return [one for one in (_counting(row, one, path) for one in value) if one is not None] or None
    return value if value not in ({}, []) and _counts(row, path) else None


def _counts(row: Row, path: str) -> bool:
    """Whether what is there counts: the longest path of the row says so. Above all tables nothing is said."""
    free, counts = (_pattern(paths).fullmatch(path) for paths in (row.free, row.counts))
    return bool(path) and (free is None or counts is not None)


@functools.cache
def _pattern(paths: str) -> "re.Pattern[str]":
    """Matches these paths and those below them."""
    either = "|".join(re.escape(one).replace(r"\*", "[^.]*") for one in paths.split())
    return re.compile(rf"(?:{either})(?:\..*)?", re.DOTALL)


def _json(text: str) -> Any:
    return dict(json.loads(text or "{}"))


def _toml(text: str) -> Any:
    import tomllib  # only where there is such a file

    return tomllib.loads(text)


def _ini(text: str) -> Any:
    import configparser

    if _SEPARATES.search(text):
        raise ValueError("read in more than one way")
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from None
    return {name: dict(parser[name]) for name in parser.sections()}


def _xml(text: str) -> Any:
    from xml.etree import ElementTree

    try:
        return _element(ElementTree.fromstring(text))
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None


def _element(element: Any) -> Any:
    """The attributes, the elements and the text of an element, without comments and spaces."""
    found: dict[str, Any] = {name: [value] for name, value in element.attrib.items()}
    for one in element:
        found.setdefault(str(one.tag).rpartition("}")[2], []).append(_element(one))
    text = (element.text or "").strip()
    return {**found, "#": text} if text or not found else found
