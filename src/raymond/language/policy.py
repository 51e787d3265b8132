"""Frontmatter -> what a state may do and needs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.errors import Diagnostic
from raymond.language import frontmatter, late, tags
from raymond.language.allowed_transitions import GATED, Allowed, Entries, bare, make, missing, show, write
from raymond.language.check import Check
from raymond.language.evaluator import Evaluator
from raymond.language.frontmatter import Document, Mark, Path
from raymond.language.policy_keys import KEYS
from raymond.language.reading import Reading
from raymond.language.refusal import Refusal
from raymond.language.tags import Transition
from raymond.patterns import regex

__all__ = ["Allowed", "Evaluator", "Parsed", "Policy", "bare", "check", "implicit", "instructions", "parse", "permit"]


class Policy(Struct, frozen=True, kw_only=True):
    """What a state may do and needs. A default means: not set."""

    allowed_transitions: tuple[Allowed, ...] = ()
    backend: str = ""
    model: str = ""
    effort: str = ""
    permission_mode: str = ""
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    on_denied: str = ""
    timeout: float | None = None
    tool_timeout: float | None = None
    max_time: float | None = None
    retries: int | None = None
    max_visits: int | None = None
    then: str = ""
    budget: float | None = None
    on_error: str = ""
    gate: tuple[Check, ...] = ()
    on_fail: str = ""
    gate_tries: int | None = None
    gate_timeout: float | None = None
    gate_reruns: int | None = None
    gate_env: dict[str, str] = {}
    seal: tuple[str, ...] = ()
    unseal: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()
    on_review: str = ""
    evaluator: Evaluator | None = None
    force_implicit: bool = False
    in_place: bool = False
    workspace: str = ""
    lend: tuple[str, ...] | None = None
    net: str = ""
    description: str = ""
    late: dict[str, str] = {}
    """Keys whose value is a variable, which an agent may have."""

    @property
    def has_gate(self) -> bool:
        """Whether there is a gate, or may be one for some agents."""
        return bool(self.gate) or "gate" in self.late


class Parsed(Struct):
    """A state file, read."""

    policy: Policy
    body: str
    line: int
    """Where the body begins in the file."""
    diagnostics: list[Diagnostic]
    marks: dict[Path, Mark] = {}
    """Where the values of the policy are."""


def parse(
    text: str, *, file: str, script: bool, defaults: Mapping[str, Any] = {}, overrides: Mapping[str, Any] = {}
) -> Parsed:
    """Read a state file. `defaults` as `check` returns them, `overrides` as written. Never raises."""
    document, body, line = _block(text, file) if script else _head(text, file)
    fields = _over(defaults, check(document))
    marks = {**document.keys, **document.marks}
    if overrides:
        above = frontmatter.given(overrides, file="--set", state=bare(file))
        fields = _over(fields, check(above))
        marks = {path: mark for path, mark in marks.items() if path and path[0] not in overrides} | above.marks
        document.diagnostics += above.diagnostics
    policy = Policy(**fields)
    if not document.diagnostics:
        document.diagnostics += _contradictions(policy, marks, file, script)
    return Parsed(policy, body, line, document.diagnostics, marks)


def check(document: Document, *, known: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of a Policy that `document` sets. Mistakes go to its diagnostics; `known` keys are skipped."""
    fields: dict[str, Any] = {}
    for key, value in document.values.items():
        if key in known:
            continue
        read = KEYS.get(key)
        if read is None:
            hint = frontmatter.suggest(key, [*KEYS, *known]) or f"there are: {', '.join([*KEYS, *known])}"
            document.refuse((key,), "unknown-key", f"there is no key `{key}`", hint, key=True)
            continue
        if variable := late.variable(key, value):
            fields.setdefault("late", {})[key] = variable
            continue
        found = read(document, (key,), value)
        if found is not None:
            fields[key] = found
    return fields


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `above`, and those of `below` that it does not set, late or not."""
    if not below:
        return {**above}
    set_late = {**below.get("late", {}), **above.get("late", {})}
    kept = {key: name for key, name in set_late.items() if key not in above}
    fields = {key: value for key, value in {**below, **above}.items() if key not in kept}
    return {**fields, "late": kept} if kept else {key: value for key, value in fields.items() if key != "late"}


def permit(policy: Policy, transitions: Sequence[Transition]) -> Refusal | None:
    """None when the policy allows these; else what was asked and what is allowed."""
    if not policy.allowed_transitions:
        return None
    entries = Entries(policy.allowed_transitions)
    forks = [one for one in transitions if isinstance(one, tags.Fork)]
    after = next((one.target for one in transitions if isinstance(one, tags.Goto | tags.Wait)), "")
    after = next((one.next for one in forks if one.next), after)
    for one in transitions:
        # Forks followed by a plain goto say the same as forks with `next`.
        plain = bool(forks) and isinstance(one, tags.Goto) and one == tags.Goto(target=one.target)
        if plain and entries.continues(forks, after):
            continue
        why = entries.refusal(one, after)
        if why is not None:
            allowed = ", ".join(f"`{line}`" for line in instructions(policy).splitlines())
            because = f": {why}" if why else ""
            return Refusal("not_allowed", f"`{show(one)}` is not allowed here{because}; allowed: {allowed}")
    return None


def is_gated(policy: Policy, transitions: Sequence[Transition]) -> bool:
    """Whether what was permitted counts only once the gate of the state has passed."""
    if not policy.gate or any(one.__struct_config__.tag not in GATED for one in transitions):
        return False
    entries = Entries(policy.allowed_transitions)
    return not any(entries.passes_freely(one) for one in transitions)


def implicit(policy: Policy) -> Transition | None:
    """The one allowed transition that no line stands for, when it needs nothing from the agent."""
    unsaid = [one for one in policy.allowed_transitions if not one.says]
    return make(unsaid[0]) if len(unsaid) == 1 else None


def with_line(policy: Policy, reading: Reading, text: str) -> Reading:
    """What an output says, with the last of its lines that stands for a transition here."""
    says = {one.says for one in policy.allowed_transitions if one.says}
    if not says:
        return reading
    lines = (line.strip().strip("*`_ ") for line in reversed(text.splitlines()))
    return replace(reading, line=next((line for line in lines if line in says), ""))


def said(policy: Policy, line: str) -> Transition | None:
    """The transition that a line of an output stands for."""
    return next((make(one) for one in policy.allowed_transitions if line and one.says == line), None)


def keeps_output(policy: Policy) -> bool:
    """Whether an allowed transition passes on the final message."""
    return any("{{output}}" in value for one in policy.allowed_transitions for value in one.fields.values())


def instructions(policy: Policy) -> str:
    """The allowed transitions as tags, one per line; `...` stands for what the agent chooses."""
    entries, lines = Entries(policy.allowed_transitions), list[str]()
    for allowed in policy.allowed_transitions:
        written = write(allowed.tag, dict.fromkeys(entries.needed(allowed), "...") | allowed.fields)
        lines.append(allowed.says or written)
    return "\n".join(dict.fromkeys(lines))


def _head(text: str, file: str) -> tuple[Document, str, int]:
    if not text.startswith(("---\n", "---\r\n")) and text != "---":
        return Document(file), text, 1
    text = text.replace("\r\n", "\n")
    closing = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE).search(text, 4)
    if not closing:
        return _unclosed(Mark(file, 1, 1, "---", 3), "end it with a line `---`"), "", 1
    yaml = "\n" + text[4 : closing.start()]
    document = frontmatter.load(yaml, file=file, source=text[: closing.end()])
    return document, text[closing.end() :], text.count("\n", 0, closing.end()) + 1


def _block(text: str, file: str) -> tuple[Document, str, int]:
    # A batch file has no `#`.
    comment = "::" if file.endswith(".bat") else "#"
    if "///" not in text:
        return Document(file), text, 1
    lines = text.replace("\r\n", "\n").split("\n")
    opening = [number for number, line in enumerate(lines) if line.rstrip() == f"{comment} /// raymond"]
    if not opening:
        return _misspelt(lines, comment, file), text, 1
    first = opening[0]
    last = first + 1
    while last < len(lines) and lines[last].startswith(comment) and lines[last].rstrip() != f"{comment} ///":
        last += 1
    mark = Mark(file, first + 1, 1, lines[first], len(lines[first]))
    if last == len(lines) or lines[last].rstrip() != f"{comment} ///":
        return _unclosed(mark, f"every line of it starts with `{comment}`; end it with `{comment} ///`"), text, 1
    # Blanks in place of the comment signs: lines and columns stay those of the file.
    blank = " " * len(comment)
    yaml = "\n" * (first + 1) + "\n".join(blank + line[len(comment) :] for line in lines[first + 1 : last])
    document = frontmatter.load(yaml, file=file, source="\n".join(lines[: last + 1]))
    for number in opening[1:]:
        again = Mark(file, number + 1, 1, lines[number], len(lines[number]))
        message = "there is a second `/// raymond` block"
        document.diagnostics.append(
            frontmatter.diagnose(again, "bad-frontmatter", message, "put all keys in the first one")
        )
    return document, text, 1


_ALMOST = regex(r"(?:#|::)\s*/{2,4}\s*raymond\s*:?\s*", re.IGNORECASE)


def _misspelt(lines: list[str], comment: str, file: str) -> Document:
    """No block, unless a line is so close to its beginning that somebody relies on it."""
    document = Document(file)
    for number, line in enumerate(lines):
        if _ALMOST.fullmatch(line):
            mark = Mark(file, number + 1, 1, line, len(line))
            hint = f"write `{comment} /// raymond`"
            document.diagnostics.append(
                frontmatter.diagnose(mark, "bad-frontmatter", "this looks like a policy block and is a comment", hint)
            )
    return document


def _unclosed(mark: Mark, hint: str) -> Document:
    wrong = frontmatter.diagnose(mark, "bad-frontmatter", f"`{mark.source}` opens a block that is never closed", hint)
    return Document(mark.file, diagnostics=[wrong])


def _contradictions(policy: Policy, marks: Mapping[Path, Mark], file: str, script: bool) -> Iterator[Diagnostic]:
    def at(key: str) -> Mark:
        return marks.get((key,)) or Mark(file)

    if policy.then and policy.max_visits is None:
        yield frontmatter.diagnose(at("then"), "bad-value", "`then` needs `max_visits`", "max_visits: 3")
    if policy.force_implicit and implicit(policy) is None:
        message = "`force_implicit` needs exactly one allowed transition, with everything it needs given"
        hint = "allowed_transitions: [{tag: goto, target: NEXT.md}]"
        unsaid = [one for one in policy.allowed_transitions if not one.says]
        if len(unsaid) == 1:
            hint = f"this `{unsaid[0].tag}` also needs: {', '.join(missing(unsaid[0]))}"
        yield frontmatter.diagnose(at("force_implicit"), "force-implicit-invalid", message, hint)
    yield from _contradictions_of_lines(policy, marks, file, script)


def _contradictions_of_lines(
    policy: Policy, marks: Mapping[Path, Mark], file: str, script: bool
) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for index, one in enumerate(policy.allowed_transitions):
        if not one.says:
            continue
        mark = marks.get(("allowed_transitions", index, "says")) or Mark(file)
        if script:
            yield frontmatter.diagnose(mark, "bad-value", "`says` is for prompts", "let the script print the tag")
        elif one.says in seen:
            yield frontmatter.diagnose(mark, "bad-value", f"two entries say `{one.says}`", "give each its own line")
        elif make(one) is None:
            hint = f"this `{one.tag}` also needs: {', '.join(missing(one))}"
            yield frontmatter.diagnose(mark, "bad-value", "`says` needs everything of its transition given", hint)
        seen.add(one.says)
