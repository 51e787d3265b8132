"""The keys of a policy: how the value of each is read."""

import re
import shlex
from collections.abc import Callable
from typing import Any, TypeAlias

from raymond import amounts, durations
from raymond.language import choices, evaluator, frontmatter
from raymond.language.allowed_transitions import FIELDS, GATED, Allowed
from raymond.language.check import EXPECTED, Check, expectation
from raymond.language.evaluator import KEEP, MATCH, NONE, Evaluator
from raymond.language.frontmatter import Document, Path
from raymond.language.tags import BUILT_IN, NAME, TAGS, VARIABLE
from raymond.language.ways import NETS, WAYS
from raymond.patterns import regex

PERMISSION_MODES = ("default", "manual", "acceptEdits", "auto", "plan", "dontAsk", "bypassPermissions")
ON_DENIED = ("count", "pause")
_BRACKETS = r"write it like Bash(make test:*), and \( or \) for a bracket that is part of the command"
_BRACKET = regex(r"\\.|[()]", re.DOTALL)
_NAMES = "begin with a letter or a digit; then letters, digits and _.:/@+[]- may follow"
_VERDICTS = 'verdicts: {"yes": keep, "no": <goto>FIX.md</goto>}'
# The names of what other tags have are mistakes here rather than variables.
_NOT_VARIABLES = frozenset({"return", "payload", *BUILT_IN})


# Each reader returns the value of a key as the policy holds it, or None after it has reported what is wrong.
Reader: TypeAlias = Callable[[Document, Path, Any], Any]
GATE_KEYS = (
    "gate_tries",
    "on_fail",
    "gate_timeout",
    "gate_reruns",
    "gate_env",
    "seal",
    "unseal",
    "may_change",
    "on_review",
)
"""Keys that say something about the gate of a state."""


def _label(path: Path) -> str:
    return next((str(part) for part in reversed(path) if isinstance(part, str)), "")


def _bad(document: Document, path: Path, message: str, hint: str = "") -> None:
    if _at(document.values, path) is None:
        message, hint = f"`{_label(path)}` has no value", "give it one, or remove the line"
    document.refuse(path, "bad-value", message, hint)


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def closed(pattern: str) -> bool:
    """Whether the brackets of a tool pattern match; one after a backslash is meant as it is."""
    depth = 0
    for found in _BRACKET.findall(pattern):
        depth += {"(": 1, ")": -1}.get(found, 0)
        if depth < 0:
            return False
    return depth == 0


def text(document: Document, path: Path, value: Any) -> str | None:
    """A text that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, str):
        _bad(document, path, f"`{_label(path)}` is empty", "give it one, or remove the line")
        return None
    hint = "give it one, or remove the line"
    if isinstance(value, bool | int | float):
        hint = f'put it in quotes: "{str(value).lower()}"'
    _bad(document, path, f"`{_label(path)}` must be text", hint)
    return None


def name(document: Document, path: Path, value: Any) -> str | None:
    """The name of a model or of an effort."""
    found = text(document, path, value)
    if found is None or NAME.fullmatch(found):
        return found
    _bad(document, path, f"`{_label(path)}` is not a name that a program takes", _NAMES)
    return None


def texts(document: Document, path: Path, value: Any) -> tuple[str, ...] | None:
    """One text or a list of them."""
    if isinstance(value, str) and value.strip():
        return (value,)
    if not isinstance(value, list):
        _bad(document, path, f"`{_label(path)}` must be text or a list of texts")
        return None
    found = [text(document, (*path, index), item) for index, item in enumerate(value)]
    return None if None in found else tuple(item for item in found if item)


def flag(document: Document, path: Path, value: Any) -> bool | None:
    """`true` or `false`, nothing else."""
    if isinstance(value, bool):
        return value
    _bad(document, path, f"`{_label(path)}` must be true or false", "write true or false")
    return None


def count(least: int) -> Reader:
    """A whole number, `least` or more."""

    def read(document: Document, path: Path, value: Any) -> int | None:
        try:
            return amounts.count(value if isinstance(value, int) else None, least)
        except ValueError as error:
            _bad(document, path, f"`{_label(path)}` must be {error}", f"{_label(path)}: 3")
            return None

    return read


def dollars(document: Document, path: Path, value: Any) -> float | None:
    """An amount of money."""
    try:
        return amounts.dollars(value if isinstance(value, int | float) else None)
    except ValueError as error:
        _bad(document, path, f"`{_label(path)}` must be {error}", f"{_label(path)}: 0.50")
        return None


def _duration(document: Document, path: Path, value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        hint = f"{value} what? write {value}s or {value}m"
        _bad(document, path, f"`{_label(path)}` has no unit", hint)
        return None
    seconds = durations.parse(value) if isinstance(value, str) else None
    if seconds:
        return seconds
    _bad(document, path, f"`{_label(path)}` must be {durations.explain(value)}", "write it like 90s, 10m or 2h")
    return None


def _choice(*choices: str) -> Reader:
    def read(document: Document, path: Path, value: Any) -> str | None:
        if isinstance(value, str) and value in choices:
            return value
        _bad(document, path, f"`{_label(path)}` cannot be `{value}`", f"one of: {', '.join(choices)}")
        return None

    return read


def _tools(document: Document, path: Path, value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str) and "," in value:
        _bad(document, path, f"several tools in `{_label(path)}` must be a list", f"{_label(path)}: [{value}]")
        return None
    found = texts(document, path, value)
    for index, pattern in enumerate(found or ()):
        if not closed(pattern):
            at = (*path, index) if isinstance(value, list) else path
            _bad(document, at, f"`{pattern}` has brackets that do not match", _BRACKETS)
            return None
    return found


def _allowed(document: Document, path: Path, value: Any) -> tuple[Allowed, ...] | None:
    if not isinstance(value, list) or not value:
        hint = "allowed_transitions: [{tag: goto, target: NEXT.md}]"
        _bad(document, path, "`allowed_transitions` must be a list of transitions", hint)
        return None
    found = [_allow(document, (*path, index), item) for index, item in enumerate(value)]
    return None if None in found else tuple(item for item in found if item)


def _allow(document: Document, path: Path, value: Any) -> Allowed | None:
    if not isinstance(value, dict) or "tag" not in value:
        _bad(document, path, "an allowed transition needs a `tag`", "{tag: goto, target: NEXT.md}")
        return None
    tag = value["tag"]
    if not isinstance(tag, str) or tag not in FIELDS:
        _bad(document, (*path, "tag"), f"`{tag}` is not a transition", f"one of: {', '.join(FIELDS)}")
        return None
    before = len(document.diagnostics)
    is_gated = flag(document, (*path, "gate"), value["gate"]) if "gate" in value and tag in GATED else True
    says = _line(document, (*path, "says"), value["says"]) if "says" in value else ""
    known_keys = ("tag", "says", "gate") if tag in GATED else ("tag", "says")
    fields = {key: text(document, (*path, key), item) for key, item in value.items() if key not in known_keys}
    for key in fields:
        known = FIELDS[tag].get(key)
        variable = TAGS[tag].variables and key not in _NOT_VARIABLES and VARIABLE.fullmatch(key)
        if known and known.kind == "duration" and fields[key]:
            _duration(document, (*path, key), fields[key])
        elif known and known.kind == "choices" and (why := choices.problem(fields[key] or "")):
            _bad(document, (*path, key), why, "yes,no")
        elif known and known.choices and fields[key] not in known.choices:
            _bad(document, (*path, key), f"`{key}` cannot be `{fields[key]}`", f"one of: {', '.join(known.choices)}")
        elif known and known.kind == "name" and fields[key]:
            name(document, (*path, key), fields[key])
        elif not known and not variable:
            hint = frontmatter.suggest(key, FIELDS[tag].keys()) or f"one of: {', '.join(FIELDS[tag])}"
            document.refuse((*path, key), "unknown-key", f"`<{tag}>` has no `{key}`", hint, key=True)
    if len(document.diagnostics) > before:
        return None
    given = {key: item for key, item in fields.items() if item is not None}
    return Allowed(tag, given, is_gated is not False, says or "")


def _line(document: Document, path: Path, value: Any) -> str | None:
    """What an agent can write as a line of its own."""
    found = text(document, path, value)
    if found is not None and (found.strip().strip("*`_ ") != found or len(found.splitlines()) != 1 or "<" in found):
        _bad(document, path, f"`{found}` cannot stand on a line of its own", "says: GIVE_UP")
        return None
    return found


def _gate(document: Document, path: Path, value: Any) -> tuple[Check, ...] | None:
    """One command, or a list of commands and of tables that also say what is expected."""
    if not isinstance(value, list):
        one = _check(document, path, value)
        return (one,) if one else None
    checks = [_check(document, (*path, index), item) for index, item in enumerate(value)]
    return None if None in checks else tuple(one for one in checks if one)


def _check(document: Document, path: Path, value: Any) -> Check | None:
    if not isinstance(value, dict):
        found = text(document, path, value)
        return None if found is None or not _is_command(document, path, found) else Check(run=found)
    if "run" not in value:
        _bad(document, path, "a check needs `run`", "{run: make test, timeout: 5m}")
        return None
    before = len(document.diagnostics)
    fields: dict[str, Any] = {}
    for key, item in value.items():
        at = (*path, key)
        if key == "run":
            fields["run"] = text(document, at, item)
            _is_command(document, at, fields["run"] or "")
        elif key == "timeout":
            fields["timeout"] = _duration(document, at, item)
        elif key == "expected":
            try:
                fields |= expectation(item)
            except ValueError as error:
                _bad(document, at, str(error), EXPECTED)
        else:
            hint = frontmatter.suggest(key, ("run", "expected", "timeout"))
            document.refuse(at, "unknown-key", f"a check has no `{key}`", hint, key=True)
    return None if len(document.diagnostics) > before else Check(**fields)


def _is_command(document: Document, path: Path, command: str) -> bool:
    """Whether a shell could read it as far as quotes go; if not, that is reported."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError as error:
        what = "a quote is not closed" if "quotation" in str(error) else str(error).lower()
        _bad(document, path, f"`{command}` is no command: {what}", "close it, or put a \\ before it")
        return False
    if command.strip() and not words:
        _bad(document, path, f"`{command}` is only a comment: it would always be green", "write a command before it")
        return False
    return True


def _environment(document: Document, path: Path, value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        _bad(document, path, f"`{_label(path)}` must map names to texts", "gate_env: {CI: 'true'}")
        return None
    before = len(document.diagnostics)
    for name, item in value.items():
        if not isinstance(name, str) or not VARIABLE.fullmatch(name):
            _bad(document, (*path, name), f"`{name}` cannot be the name of an environment variable")
        elif not isinstance(item, str):
            text(document, (*path, name), item)
    return None if len(document.diagnostics) > before else dict(value)


def _evaluator(document: Document, path: Path, value: Any) -> Evaluator | None:
    if not isinstance(value, dict) or ("pattern" in value) == ("prompt" in value):
        hint = f"evaluator: {{prompt: JUDGE.md, {_VERDICTS}}}"
        _bad(document, path, "`evaluator` needs either `pattern` or `prompt`", hint)
        return None
    before = len(document.diagnostics)
    found: dict[str, Any] = {}
    for key, item in value.items():
        if key == "model":
            found[key] = name(document, (*path, key), item)
        elif key in ("pattern", "prompt", "default"):
            found[key] = text(document, (*path, key), item)
        elif key != "verdicts":
            hint = frontmatter.suggest(key, Evaluator.__struct_fields__)
            document.refuse((*path, key), "unknown-key", f"`evaluator` has no `{key}`", hint, key=True)
    found["verdicts"] = _verdicts(document, path, value)
    if found.get("default"):
        _verdict(document, (*path, "default"), found["default"])
    if found.get("pattern"):
        _pattern(document, path, value, found["pattern"])
    return None if len(document.diagnostics) > before else Evaluator(**found)


def _verdicts(document: Document, path: Path, value: dict[str, Any]) -> dict[str, str | None]:
    verdicts = value.get("verdicts")
    if not isinstance(verdicts, dict) or not verdicts:
        at = (*path, "verdicts") if "verdicts" in value else path
        document.refuse(at, "bad-value", "`evaluator` needs `verdicts`", _VERDICTS)
        return {}
    _words(document, (*path, "verdicts"), verdicts)
    found = {str(key): text(document, (*path, "verdicts", key), item) for key, item in verdicts.items()}
    for key, item in found.items():
        _verdict(document, (*path, "verdicts", key), item)
    return found


def _words(document: Document, path: Path, verdicts: dict[str, Any]) -> None:
    """A verdict is told from the others whatever its case, and without the punctuation around it."""
    seen: dict[str, str] = {}
    for word in verdicts:
        plain = evaluator.plain(str(word))  # a program may pass what is not text
        if not plain:
            document.refuse((*path, word), "bad-value", f"`{word}` is not a verdict", "use a word", key=True)
        elif plain in seen:
            message = f"`{word}` and `{seen[plain]}` are the same verdict: neither case nor punctuation counts"
            document.refuse((*path, word), "bad-value", message, "keep one of them", key=True)
        seen.setdefault(plain, word)


def _verdict(document: Document, path: Path, value: str | None) -> None:
    if value is not None and value != KEEP and evaluator.transition(value) is None:
        _bad(document, path, f"`{value}` is neither `keep` nor a transition", "write it like <goto>FIX.md</goto>")


def _pattern(document: Document, path: Path, value: dict[str, Any], pattern: str) -> None:
    at = (*path, "pattern")
    try:
        groups = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        _bad(document, at, f"`pattern` is not a regular expression: {error}")
        return
    if "model" in value:
        document.refuse((*path, "model"), "bad-value", "no model answers a `pattern`", "remove it", key=True)
    for word in value["verdicts"] if isinstance(value.get("verdicts"), dict) and not groups else ():
        if evaluator.plain(str(word)) not in (MATCH, NONE):
            message = f"`{word}` is never the verdict of a pattern without a group: that is `{MATCH}` or `{NONE}`"
            hint = f"write {MATCH} or {NONE}, or a group: pattern: ({pattern})"
            document.refuse((*path, "verdicts", word), "bad-value", message, hint, key=True)


workspace, net = _choice(*WAYS), _choice(*NETS)
"""Where agents work, and whether they have the network there."""

KEYS: dict[str, Reader] = {
    "allowed_transitions": _allowed,
    "backend": text,
    "model": name,
    "effort": name,
    "permission_mode": _choice(*PERMISSION_MODES),
    "allowed_tools": _tools,
    "disallowed_tools": _tools,
    "on_denied": _choice(*ON_DENIED),
    "timeout": _duration,
    "tool_timeout": _duration,
    "max_time": _duration,
    "retries": count(0),
    "max_visits": count(1),
    "then": text,
    "budget": dollars,
    "on_error": text,
    "gate": _gate,
    "on_fail": text,
    "gate_tries": count(0),
    "gate_timeout": _duration,
    "gate_reruns": count(0),
    "gate_env": _environment,
    "seal": texts,
    "unseal": texts,
    "may_change": texts,
    "on_review": text,
    "evaluator": _evaluator,
    "force_implicit": flag,
    "in_place": flag,
    "workspace": workspace,
    "lend": texts,
    "net": net,
    "description": text,
}
