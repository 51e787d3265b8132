"""YAML as authors write it here, with the place of every key and value."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct

from raymond.errors import Diagnostic
from raymond.language.findings import FINDINGS

if TYPE_CHECKING:
    from yaml import Node

Path: TypeAlias = tuple[str | int, ...]

# Compiled at first use: most runs read no YAML, and compiling takes longer than the rest of the start.
_UNPRINTABLE = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_DEEPEST = 20
_CLOSED = ("quoted scalar", "flow sequence", "flow mapping")
"""What has a sign at its end; when that is missing, YAML notices far below."""
_SUSPICIOUS = 200
_SCALARS = (
    ("bool", r"(?:true|false)", "tf"),
    ("null", r"(?:~|null|)", ["~", "n", ""]),
    ("int", r"[-+]?[0-9]{1,18}", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)
_FORMS = {name: form for name, form, _ in _SCALARS}
_READ: dict[str, Callable[[str], Any]] = {"bool": "true".__eq__, "null": lambda _: None, "int": int, "float": float}


class Mark(Struct, frozen=True):
    """A place in an author's file."""

    file: str
    line: int = 0
    column: int = 0
    source: str = ""
    length: int = 1


class Document(Struct):
    """A mapping that was read, and where everything in it is."""

    file: str
    values: dict[str, Any] = {}
    keys: dict[Path, Mark] = {}
    marks: dict[Path, Mark] = {}
    diagnostics: list[Diagnostic] = []

    def refuse(self, path: Path, id: str, message: str, hint: str = "", *, key: bool = False) -> None:
        """Add a diagnostic at the value, or with `key` at the key, that `path` leads to."""
        mark = (self.keys if key else self.marks).get(path) or self.keys.get(path) or Mark(self.file)
        self.diagnostics.append(diagnose(mark, id, message, hint))


class _Wrong(Exception):
    """The text is not YAML as it is supported here."""

    def __init__(self, message: str, line: int, column: int, length: int = 1, hint: str = "") -> None:
        super().__init__(message)
        self.place = line, column, length
        self.hint = hint


def diagnose(mark: Mark, id: str, message: str, hint: str = "") -> Diagnostic:
    """A diagnostic at `mark`."""
    return Diagnostic(
        id=id,
        message=message,
        file=mark.file,
        severity=FINDINGS[id].severity,
        line=mark.line,
        column=mark.column,
        source=mark.source,
        length=mark.length,
        hint=hint,
    )


def mark(file: str, source: str, line: int, column: int, length: int = 1) -> Mark:
    """The place `line`:`column` of `source`, the caret kept within the line."""
    lines = source.split("\n", line)
    shown = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""
    return Mark(file, line, column, shown, max(1, min(length, len(shown) - column + 1)))


def load(text: str, *, file: str, source: str | None = None, example: str = "model: opus") -> Document:
    """Read a mapping. `text` is in `source` at the same lines and columns; `example` is a line of it. Never raises."""
    document = Document(file)
    source = text if source is None else source
    try:
        _read(text, document, source, example)
    except _Wrong as wrong:
        line, column, length = wrong.place
        place = mark(file, source, line, column, length)
        document.diagnostics.append(diagnose(place, "bad-frontmatter", str(wrong), wrong.hint))
        document.values = {}
    return document


def given(values: Mapping[str, Any], *, file: str, state: str = "") -> Document:
    """A mapping that is in no file: `--set STATE.KEY=VALUE`."""
    marks: dict[Path, Mark] = {
        (key,): Mark(file, source=f"{state}.{key}={_written(value)}") for key, value in values.items()
    }
    return Document(file, dict(values), marks, dict(marks))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def suggest(word: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """`did you mean ...?`, or nothing. A mapping gives the form in which each name is shown."""
    import difflib

    shown = known if isinstance(known, Mapping) else {name: name for name in known}
    folded = {name.casefold(): shown[name] for name in shown}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[close[0]]}`?" if close else ""


def _read(text: str, document: Document, source: str, example: str) -> None:
    import yaml

    if bad := re.search(_UNPRINTABLE, text):
        line, column = position(text, bad.start())
        raise _Wrong(f"the character U+{ord(bad[0]):04X} is not allowed in YAML", line, column, hint="remove it")
    try:
        _measure(text)
        node = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        raise _explain(error, text) from None
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        return
    if not isinstance(node, yaml.MappingNode):
        raise _wrong_at(node, "expected keys with values", f"write lines like `{example}`")
    document.values = _value(node, (), document, source.split("\n"), set())


def _measure(text: str) -> None:
    # libyaml's composer recurses in C: many thousand levels would end the process.
    if text.count("[") + text.count("{") + max(map(len, text.split("\n"))) < _SUSPICIOUS:
        return
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _Wrong("nested too deeply", event.start_mark.line + 1, event.start_mark.column + 1)


def _explain(error: Any, text: str) -> _Wrong:
    is_open = error.context_mark and error.context and error.context.endswith(_CLOSED)
    place = error.context_mark if is_open else error.problem_mark or error.context_mark
    line, column = (place.line, place.column) if place else (0, 0)
    lines = text.split("\n")
    if "\t" in lines[line][: column + 1] if line < len(lines) else False:
        return _Wrong("YAML cannot be indented with tabs", line + 1, lines[line].index("\t") + 1, hint="use spaces")
    context = f"{error.context}: " if error.context else ""
    problem = error.problem or "not valid YAML"
    hint = ""
    if "mapping values are not allowed" in problem:
        hint = "put a value that contains `: ` in quotes"
    elif "cannot start any token" in problem:
        hint = "put the value in quotes"
    elif is_open:
        hint = "close the quote or the bracket that begins here"
    return _Wrong(f"YAML: {context}{problem}", line + 1, column + 1, hint=hint)


def _wrong_at(node: "Node", message: str, hint: str = "") -> _Wrong:
    start, end = node.start_mark, node.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return _Wrong(message, start.line + 1, start.column + 1, length, hint)


def _value(node: Any, path: Path, document: Document, lines: list[str], seen: set[int]) -> Any:
    if id(node) in seen:
        raise _wrong_at(node, "anchors and aliases are not supported", "write the value itself")
    if len(path) >= _DEEPEST:
        raise _wrong_at(node, "nested too deeply")
    seen.add(id(node))
    document.marks[path] = _mark(node, document.file, lines)
    if node.id == "scalar":
        if document.marks[path].source[node.start_mark.column :].startswith("! "):
            raise _wrong_at(node, "YAML drops a `!` at the beginning of a value", "put the value in quotes")
        return _scalar(node)
    if node.id == "sequence" and node.tag == "tag:yaml.org,2002:seq":
        return [_value(item, (*path, index), document, lines, seen) for index, item in enumerate(node.value)]
    if node.id != "mapping" or node.tag != "tag:yaml.org,2002:map":
        raise _wrong_at(node, f"the type `{node.tag}` is not supported", "remove the `!`")
    values: dict[str, Any] = {}
    for key, item in node.value:
        if key.id != "scalar":
            raise _wrong_at(key, "a key must be text")
        name = key.value
        if name in values:
            place, first = _mark(key, document.file, lines), document.keys[(*path, name)].line
            hint = f"the first one is in line {first}"
            document.diagnostics.append(diagnose(place, "bad-frontmatter", f"`{name}` is given twice", hint))
            continue  # the rest can be read, and may be wrong too
        document.keys[(*path, name)] = _mark(key, document.file, lines)
        values[name] = _value(item, (*path, name), document, lines, seen)
    return values


def _mark(node: "Node", file: str, lines: list[str]) -> Mark:
    start, end = node.start_mark, node.end_mark
    shown = lines[start.line].rstrip("\r") if start.line < len(lines) else ""
    stop = end.column if end.line == start.line else len(shown)
    return Mark(file, start.line + 1, start.column + 1, shown, max(1, stop - start.column))


def _scalar(node: Any) -> Any:
    kind, value = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    if kind == "str":
        return value
    if kind in _FORMS and re.fullmatch(_FORMS[kind], value, re.ASCII):
        return _READ[kind](value)
    raise _wrong_at(node, f"the type `{node.tag}` is not supported", "remove the `!`")


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of `offset`, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


@cache
def _loader() -> Any:
    # YAML 1.1 reads `no` as false, 1:30 as 90 and 2026-01-17 as a date; authors mean text.
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for name, form, starts in _SCALARS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(rf"{form}\Z", re.ASCII), list(starts))
    return Loader
