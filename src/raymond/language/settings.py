"""`workflow.yaml`: what a workflow says about itself."""

import re
from typing import Any

from msgspec import Struct

from raymond.language import frontmatter, policy
from raymond.language.frontmatter import Document, Path
from raymond.language.policy_keys import count, dollars, flag, name, net, text, texts, workspace

SETTINGS_FILE = "workflow.yaml"


class Settings(Struct, frozen=True, kw_only=True):
    """What workflow.yaml says. A default means: not set."""

    name: str = ""
    description: str = ""
    input_hint: str = ""
    input_required: bool = False
    budget: float | None = None
    max_iterations: int | None = None
    max_parallel: int | None = None
    max_agents: int | None = None
    roots: tuple[str, ...] = ()
    python: str = ""
    small_model: str = ""
    include: tuple[str, ...] = ()
    workspace: str = ""
    carry: tuple[str, ...] = ()
    lend: tuple[str, ...] = ()
    net: str = ""
    setup: str = ""
    lint_ignore: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    """Fields of the policy of every state that does not set them."""


def read_settings(source: str) -> tuple[Settings, Document]:
    """workflow.yaml, and where everything in it is."""
    document = frontmatter.load(source, file=SETTINGS_FILE) if source.strip() else Document(SETTINGS_FILE)
    found: dict[str, Any] = {}
    for key, read in _KEYS.items():
        if key in document.values:
            value = read(document, (key,), document.values[key])
            if value is not None:
                found[key] = value
    found |= found.pop("input", {})
    found["lint_ignore"] = found.pop("lint", {})
    defaults = policy.check(document, known=tuple(_KEYS))
    return Settings(**found, defaults=defaults), document


def _name(document: Document, path: Path, value: Any) -> str | None:
    found = text(document, path, value)
    if found is None or re.search(r"[A-Za-z0-9]", found):
        return found and slug(found)
    document.refuse(path, "bad-value", "`name` needs a letter or a digit", "name: review")
    return None


def _input(document: Document, path: Path, value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        hint = text(document, path, value)
        return None if hint is None else {"input_hint": hint}
    found: dict[str, Any] = {}
    for key, item in value.items():
        if key == "description":
            found["input_hint"] = text(document, (*path, key), item) or ""
        elif key == "required":
            found["input_required"] = flag(document, (*path, key), item) or False
        else:
            hint = frontmatter.suggest(key, ["description", "required"]) or "one of: description, required"
            document.refuse((*path, key), "unknown-key", f"`input` has no `{key}`", hint, key=True)
    return found


def _lint(document: Document, path: Path, value: Any) -> dict[str, str] | None:
    ignore = value.get("ignore") if isinstance(value, dict) else None
    if not isinstance(ignore, dict) or len(value) != 1:
        hint = "lint: {ignore: {missing-target: a script writes it}}"
        document.refuse(path, "bad-value", "`lint` takes `ignore`, with a reason for each finding", hint)
        return None
    found: dict[str, str] = {}
    for id, reason in ignore.items():
        if isinstance(reason, str) and reason.strip():
            found[id] = reason
        else:
            mark, hint = document.marks[*path, "ignore", id], f"{id}: why it is not a mistake here"
            message = f"ignoring `{id}` needs a reason"
            wrong = frontmatter.diagnose(mark, "bad-ignore", message, hint)
            document.diagnostics.append(wrong)
    return found


_KEYS = {
    "name": _name,
    "description": text,
    "input": _input,
    "budget": dollars,
    "max_iterations": count(1),
    "max_parallel": count(1),
    "max_agents": count(1),
    "roots": texts,
    "python": text,
    "small_model": name,
    "include": texts,
    "workspace": workspace,
    "carry": texts,
    "lend": texts,
    "net": net,
    "setup": text,
    "lint": _lint,
}


def slug(name: str) -> str:
    """`name` in a form that fits the id of a run."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "workflow"
