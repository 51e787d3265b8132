"""Build files: the part of a Makefile, package.json and their like that decides a check, and who judges what.

What is free in each is in the table of `decides`. Every pattern looks at a text once: an agent can write what it likes.
A program that runs its files, or compares them with others, is none of those that only judge or build them.
"""

import functools
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import iglob
from itertools import islice, pairwise
from typing import Any

from msgspec import Struct

from raymond.digests import sha256
from raymond.patterns import regex
from raymond.verifier.decides import Row, build_file

NAMES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile", ".justfile")}
"""Programs -> the files that they run, in the order in which they look for them."""
_ASSIGNMENT = regex(r"^(?:export\s+|override\s+)?(?P<name>[\w.-]+)\s*(?P<how>:{1,3}|\?|\+)?=(?P<value>[^#]*)")
_VARIABLE = regex(r"\$(?:[({]([\w.-]+|[@<^+])[)}]|([@<^+]))")
_KNOWN = {"CC": "cc", "CXX": "g++", "LD": "ld", "AR": "ar", "MAKE": "make", "SHELL": "sh", "CURDIR": "."}
"""What make itself knows."""
_INCLUDE = regex(r" *[-s]?include[ \t]+(?P<names>[^#]+)")
_RULE = regex(r"(?P<targets>[^\s#:=][^#:=]*)::?(?P<needs>(?!=)[^;]*);?(?P<recipe>.*)")
_DEEPEST = 5
"""How often a variable may stand for others."""
_LONGEST = 10_000
"""Characters of a line, or of the value of a variable, that are expanded."""
_MOST_MATCHING = 1000
_MOST_PARTS = 100
"""Folders in a pattern: each is a level of recursion."""
_MOST_INCLUDED = 100
_LARGEST_MAKEFILE = 1 << 20
"""Bytes read of a file."""

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

_ASKS = frozenset("test [ [[ ls stat file wc cat head tail".split())
"""Those whose options name no file that decides."""
_READERS = _ASKS.union(
    """grep egrep fgrep rg jq yq ruff mypy pyright black isort flake8 pylint pycodestyle pyflakes pydocstyle bandit
    py_compile compileall json.tool eslint prettier jshint stylelint biome shellcheck shfmt gofmt golint rustfmt
    clang-format clang-tidy cppcheck yamllint jsonlint hadolint markdownlint rubocop phpcs phpstan ktlint swiftlint
    luacheck xmllint actionlint""".split()
)
_COMPILERS = frozenset(
    """cc gcc g++ c++ clang clang++ ld ar as nasm gfortran rustc javac kotlinc scalac swiftc ghc ocamlc ocamlopt dmd tsc
    esbuild sassc""".split()
)
_CHECKER = regex(r"(?:^|[\W_])(?:check|verify|test|spec)", re.IGNORECASE)
"""In the names of sources that are built to check the others."""
_COMPARES = ("diff", "cmp", "comm")
_BEFORE = frozenset(
    """npx bunx uv uvx poetry pdm hatch pipenv rye bundle run exec env time nice command ! xargs if then while do else
    dlx npm pnpm yarn bun""".split()
)
"""What may stand before a program."""
_CHECKS_ONLY = {
    **dict.fromkeys(("bash", "sh", "zsh"), ("-n",)),
    "node": ("--check", "-c"),
    "php": ("-l",),
    "ruby": ("-c", "-wc"),
    "perl": ("-c", "-wc"),
}
"""Interpreters that, with such an option, only read."""
_TAKES_FILE = regex(r"-[cfp]|--(?:config|settings|rcfile|file|project|ignore-path|rules?)[\w-]*")
"""Options of readers whose value decides: `--config strict.toml`."""


# Makefiles and justfiles, as far as targets, what they need, plain variables and recipes go


class Recipes(Struct):
    """What each target needs, and the lines that make it."""

    needs: dict[str, set[str]] = {}
    lines: dict[str, list[str]] = {}
    included: dict[str, None] = {}
    """What it includes, from its folder, whether or not it is there."""

    def reached(self, asked: Iterable[str]) -> set[str]:
        """The targets that are come to from those that are asked for; all, if none of these is known."""
        found, pending = set[str](), [one for one in asked if one in self.needs] or list(self.needs)
        while pending:
            target = pending.pop()
            if target not in found:
                found.add(target)
                pending += self.needs.get(target, ())
        return {target for target in found if target in self.needs and "$" not in target}

    @property
    def files(self) -> set[str]:
        """The targets that are files to make: one that is there would be up to date."""
        return self.needs.keys() - self.needs.get(".PHONY", set()) - {"", ".PHONY"}


def read_recipes(folder: str, program: str = "make") -> Recipes:
    """The recipes that a program would take in a folder."""
    said = next(filter(None, (text(os.path.join(folder, name)) for name in NAMES[program])), "")
    found, targets, variables = Recipes(), list[str](), dict(_KNOWN)
    pending, left = [_lines(said)], _LARGEST_MAKEFILE
    while pending:
        line = next(pending[-1], None)
        if line is None:
            pending.pop()
        elif line.startswith("\t") or (program == "just" and line.startswith(" ")):
            for target in targets:
                found.lines.setdefault(target, []).append(line.strip().lstrip("@-+"))
        elif assigned := _ASSIGNMENT.match(line):
            _assign(variables, assigned)
        elif include := _INCLUDE.match(line):
            for path in _included(found, folder, _expanded(include["names"], variables)):
                more = text(os.path.join(folder, path))[:left]
                left -= len(more)
                pending.append(_lines(more))
        elif rule := _RULE.match(_expanded(line, variables)):
            targets = rule["targets"].split()[: 1 if program == "just" else None]
            for target in targets:
                found.needs.setdefault(target, set()).update(rule["needs"].split())
                found.needs.setdefault("", {target})  # the first is made unasked
                found.lines.setdefault(target, []).extend([rule["recipe"].strip(" @-+")] if rule["recipe"] else [])
    for target, lines in found.lines.items():
        needs = " ".join(sorted(found.needs[target]))
        own = {**variables, "@": target, "<": needs, "^": needs, "+": needs}
        found.lines[target] = [_expanded(line, own) for line in lines]
    return found


def _lines(said: str) -> Iterator[str]:
    return iter(said.replace("\r\n", "\n").replace("\\\n", " ").split("\n"))


def _expanded(line: str, variables: Mapping[str, str]) -> str:
    """A line with its variables, as far as they are plain."""
    for _ in range(_DEEPEST):
        said = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), line)
        if said == line or len(said) > _LONGEST:
            break
        line = said
    return line


def _assign(variables: dict[str, str], assigned: "re.Match[str]") -> None:
    name, value = assigned["name"], assigned["value"].strip()
    if assigned["how"] == "+":
        value = f"{variables.get(name, '')} {value}"
    if assigned["how"] != "?" or name not in variables or name in _KNOWN:
        variables[name] = value[:_LONGEST]


def _included(recipes: Recipes, folder: str, names: str) -> Iterator[str]:
    """What a Makefile includes and has not included yet."""
    for path in (path for name in names.split() if "$" not in name for path in matching(name, folder)):
        if path not in recipes.included and len(recipes.included) < _MOST_INCLUDED:
            recipes.included[path] = None
            yield path


def matching(pattern: str, folder: str) -> list[str]:
    """What a pattern of the shell stands for in a folder; a plain path stands for itself, there or not."""
    if "\0" in pattern:
        return []
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    return list(islice(iglob(pattern, root_dir=folder), _MOST_MATCHING)) if pattern.count("/") < _MOST_PARTS else []


def text(path: str) -> str:
    """The beginning of a file; empty when there is none, or it is no plain file: a pipe would keep us waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(fd, "rb") as file:
        return file.read(_LARGEST_MAKEFILE).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""


# Manifests


def is_manifest(name: str) -> bool:
    """Whether only a part of a file with this name counts."""
    return build_file(name) is not None


def relevant_part(name: str, content: bytes) -> str:
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
        return found if relevant_part(name, found) == relevant_part(name, sealed) else sealed
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


# Programs that read files


def judged_files(words: Sequence[str]) -> frozenset[str]:
    """The words of a simple command that name what it judges."""
    at = next((at for at, word in enumerate(words) if not _is_before(word)), len(words))
    rest = words[at:]
    if not rest:
        return frozenset()
    name = os.path.basename(rest[0])
    if name.startswith("python") and rest[1:2] == ["-m"]:
        rest, name = rest[2:], rest[2] if len(rest) > 2 else ""
    elif any(option in rest[1:2] for option in _CHECKS_ONLY.get(name, ())):
        name = "test"
    if name in _COMPILERS:
        return frozenset(word for word in rest[1:] if not _CHECKER.search(word))
    if name not in _READERS:
        return frozenset()
    return frozenset(word for before, word in pairwise(rest) if name in _ASKS or not _TAKES_FILE.fullmatch(before))


def compares(commands: Sequence[Sequence[str]]) -> bool:
    """Whether a command of a line compares files: then what the others only read may be what is expected."""
    return any(os.path.basename(word) in _COMPARES for words in commands for word in words[:1])


def _is_before(word: str) -> bool:
    return word in _BEFORE or re.match(r"[A-Za-z_]\w*=", word) is not None
