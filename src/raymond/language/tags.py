"""Output text -> transitions: the grammar of tags, and nothing else."""

import re
from typing import TypeAlias

from msgspec import Struct

from raymond import durations
from raymond.language.refusal import Refusal
from raymond.language.scanner import LIMIT as LIMIT
from raymond.language.scanner import NAMES as NAMES
from raymond.language.scanner import Scanner
from raymond.language.scanner import Tag as Tag

MOST_FORKS = 10_000

BUILT_IN = frozenset(
    "input result results run_input workflow_id agent_id state visit attempt task_folder workflow_dir"
    " error gate transitions include output transition".split()
)
"""Names a fork may not give to a variable."""

_PLAINEST = re.compile(r"<(goto|reset|result)>([A-Za-z0-9_./-]+)</\1>\n?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "goto": ("input", "after"),
    "reset": ("input", "after", "cd"),
    "call": ("return", "input"),
    "function": ("return", "input", "model", "effort"),
    "fork": ("next", "input", "after", "cd"),
    "wait": ("input", "timeout", "timeout_next"),
    "ask": ("next", "timeout", "timeout_next"),
    "result": (),
    "print": (),
}
_REQUIRED = {"call": "return", "function": "return", "ask": "next"}
_FORMS = {
    "goto": ("<goto>", "NEXT.md"),
    "reset": ("<reset>", "NEXT.md"),
    "call": ('<call return="NEXT.md">', "CHECK.md"),
    "function": ('<function return="NEXT.md">', "CHECK.md"),
    "fork": ('<fork next="NEXT.md">', "WORKER.md"),
    "wait": ("<wait>", "NEXT.md"),
    "ask": ('<ask next="NEXT.md">', "question"),
    "result": ("<result>", "text"),
    "print": ("<print>", "text"),
}
_ONE = "end with exactly one transition, e.g. <goto>NEXT.md</goto> or <result>text</result>"
_COUNTS = {2: "two", 3: "three"}
_BESIDE_FORKS: tuple[list[str], ...] = ([], ["goto"], ["wait"])
_WIDTH = 40
"""Characters of the output that are shown in a reason or hint."""


class Goto(Struct, frozen=True, kw_only=True, tag="goto", omit_defaults=True):
    """Continue at `target` in the same conversation."""

    target: str
    input: str | None = None
    after: float = 0.0


class Reset(Struct, frozen=True, kw_only=True, tag="reset", omit_defaults=True):
    """Continue at `target` with memory dropped."""

    target: str
    input: str | None = None
    after: float = 0.0
    cd: str = ""


class Call(Struct, frozen=True, kw_only=True, tag="call", omit_defaults=True):
    """Run `target` as a subtask that sees the conversation, then `then`."""

    target: str
    then: str
    input: str | None = None


class Function(Struct, frozen=True, kw_only=True, tag="function", omit_defaults=True):
    """Run `target` as a subtask that sees nothing, then `then`."""

    target: str
    then: str
    input: str | None = None
    model: str = ""
    effort: str = ""


class Fork(Struct, frozen=True, kw_only=True, tag="fork", omit_defaults=True):
    """A new agent at `target`; this one goes on at `next`."""

    target: str
    next: str = ""
    """Empty when a goto or wait in the same output says it."""
    input: str | None = None
    after: float = 0.0
    cd: str = ""
    variables: dict[str, str] = {}


class Wait(Struct, frozen=True, kw_only=True, tag="wait", omit_defaults=True):
    """Sleep until every forked agent has ended, then `target`."""

    target: str
    input: str | None = None
    timeout: float = 0.0
    timeout_next: str = ""


class Ask(Struct, frozen=True, kw_only=True, tag="ask", omit_defaults=True):
    """Sleep until a person answers `question`, then `next`."""

    question: str
    next: str
    timeout: float = 0.0
    timeout_next: str = ""


class Result(Struct, frozen=True, kw_only=True, tag="result", omit_defaults=True):
    """Return `text` to the caller, or end."""

    text: str


Transition: TypeAlias = Goto | Reset | Call | Function | Fork | Wait | Ask | Result


class Reading(Struct, frozen=True):
    """What an output says: transitions, or why it was refused."""

    transitions: tuple[Transition, ...] = ()
    refused: Refusal | None = None
    prints: tuple[str, ...] = ()
    """Payloads of <print> that `feed` had not returned yet."""


class Reader:
    """Reads an output as it arrives."""

    def __init__(self, *, script: bool = False, limit: int = LIMIT) -> None:
        self._script = script
        self._limit = limit
        self._plainly: re.Match[str] | None = None
        """All there is so far: one transition in its plainest form, as most scripts write it."""
        self._full: _FullReader | None = None

    def feed(self, text: str) -> list[str]:
        """Take more text; the <print> payloads that became certain with it."""
        if not self._full:
            if not self._plainly:
                self._plainly = _PLAINEST.fullmatch(text) if len(text) <= self._limit else None
                if self._plainly:
                    return []
            self._full = _FullReader(self._script, self._limit)
            if self._plainly:
                self._full.feed(self._plainly[0])
        return self._full.feed(text)

    def close(self) -> Reading:
        """The text is complete: what does it say."""
        if self._full:
            return self._full.close()
        if not self._plainly:
            return Reading(refused=_none(0, ""))
        name, body = self._plainly.groups()
        if name == "result":
            return Reading((Result(text=body),))
        return Reading((Goto(target=body) if name == "goto" else Reset(target=body),))

    @property
    def held(self) -> int:
        """Characters of the text kept in memory."""
        return self._full.held if self._full else 0


class _FullReader:
    """Reads an output that may say anything."""

    def __init__(self, script: bool, limit: int) -> None:
        self._scanner = Scanner(self._take, limit)
        self._prints: list[str] = []
        self._plain = _Kept(limit, script)
        self._quoted = _Kept(limit, script)
        self._wrong: Refusal | None = None

    def feed(self, text: str) -> list[str]:
        self._scanner.feed(text)
        prints, self._prints = self._prints, []
        return prints

    def close(self) -> Reading:
        self._scanner.close()
        prints, self._prints = tuple(self._prints), []
        said = self._decide()
        if isinstance(said, Refusal):
            return Reading(refused=said, prints=prints)
        return Reading(said, prints=prints)

    @property
    def held(self) -> int:
        return self._scanner.held

    def _take(self, tag: Tag) -> None:
        if tag.name != "print":
            (self._quoted if tag.quoted else self._plain).add(tag)
        elif not tag.quoted:
            wrong = _misattributed(tag)
            if wrong:
                self._wrong = self._wrong or wrong
            else:
                self._prints.append(_trim(tag.body))

    def _decide(self) -> tuple[Transition, ...] | Refusal:
        if self._scanner.long:
            return _long(f"the text of <{self._scanner.long}>")
        if self._wrong:
            return self._wrong
        kept = self._plain
        if not kept.count:
            if self._quoted.count != 1:
                return _none(self._quoted.count, self._scanner.unclosed)
            kept = self._quoted
        return _settle(kept)


class _Kept:
    """The transitions of an output; their texts only as long as they can still be right together."""

    def __init__(self, limit: int, script: bool) -> None:
        self.count = 0
        self.others: list[str] = []
        """Names of the first two that are no forks."""
        self.shown: list[str] = []
        self.said: list[Transition | Refusal] = []
        """Made as the tags come: while a script still runs, this costs nobody anything."""
        self.long = False
        self._room = limit
        self._script = script

    def add(self, tag: Tag) -> None:
        self.count += 1
        if self.count <= 3:
            self.shown.append(_show(tag))
        if tag.name != "fork" and len(self.others) < 2:
            self.others.append(tag.name)
        self._room -= len(tag.body) + sum(len(name) + len(value) for name, value in tag.attributes.items())
        self.long = self.long or self._room < 0
        if self.long or self.at_odds():
            self.said.clear()
        else:
            self.said.append(transition(tag, script=self._script))

    def at_odds(self) -> bool:
        """Whether there are more than may stand together."""
        if self.count == 1:
            return False
        forks = self.count - len(self.others)
        return forks > MOST_FORKS or self.others not in _BESIDE_FORKS


def read(text: str, *, script: bool = False) -> Reading:
    """What a complete output says."""
    reader = Reader(script=script)
    early = reader.feed(text)
    reading = reader.close()
    if not early:
        return reading
    return Reading(reading.transitions, reading.refused, (*early, *reading.prints))


def scan(text: str) -> list[Tag]:
    """Every tag of a text, quoted ones and <print> too."""
    found: list[Tag] = []
    scanner = Scanner(found.append)
    scanner.feed(text)
    scanner.close()
    return found


def transition(tag: Tag, *, script: bool = False) -> Transition | Refusal:
    """What `tag` says, or what is wrong with it."""
    wrong = _misattributed(tag) or _incomplete(tag)
    if wrong:
        return wrong
    built = _build(tag, script)
    return built or Refusal("none", f"<{tag.name}> is no transition", _ONE)


def _settle(kept: _Kept) -> tuple[Transition, ...] | Refusal:
    if kept.at_odds():
        return _several(kept)
    if kept.long:
        return _long("the text of the transitions")
    forks: list[Fork] = []
    rest: list[Transition] = []
    for said in kept.said:
        if isinstance(said, Refusal):
            return said
        if isinstance(said, Fork):
            forks.append(said)
        else:
            rest.append(said)
    return _disagreement(forks, kept) or (*forks, *rest)


def _disagreement(forks: list[Fork], kept: _Kept) -> Refusal | None:
    """Where the agent that forks goes on must be said once."""
    nexts = list(dict.fromkeys(fork.next for fork in forks))
    if forks and kept.others:
        return _contradiction(kept.others[0]) if any(nexts) else None
    if "" in nexts:
        reason = "a <fork> needs `next`, or one <goto> or <wait> beside it"
        return Refusal("incomplete", reason, _form("fork", forks[nexts.index("")].target))
    if len(nexts) > 1:
        reason = f"the forks of the output disagree on `next`: {_cut(nexts[0])} and {_cut(nexts[1])}"
        return Refusal("several", reason, "give all of them the same `next`")
    return None


def _contradiction(other: str) -> Refusal:
    reason = f"the output has a <fork> with `next` and a <{other}>, which both say where to go on"
    return Refusal("several", reason, f"leave out `next` in each <fork>, or the <{other}>")


def _none(quoted: int, unclosed: str) -> Refusal:
    if unclosed:
        return Refusal("none", f"the output has no transition; its <{unclosed}> is never closed", _form(unclosed))
    if quoted:
        reason = f"the output has no transition; the {_number(quoted)} in code or comments do not count"
        return Refusal("none", reason, "write the one that is meant outside of code and comments")
    return Refusal("none", "the output has no transition", _ONE)


def _several(kept: _Kept) -> Refusal:
    if kept.others not in _BESIDE_FORKS:
        shown = kept.shown if kept.count <= 3 else [*kept.shown[:2], f"{kept.count - 2} more"]
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
        return Refusal("several", f"the output has {_number(kept.count)} transitions: {listed}", _ONE)
    return Refusal("several", f"the output has more than {MOST_FORKS} forks", "fork fewer agents at once")


def _long(what: str) -> Refusal:
    return Refusal("too_long", f"{what} is longer than 8 MiB", "write it to a file and hand on the name of the file")


def _misattributed(tag: Tag) -> Refusal | None:
    """What is wrong with the names of the attributes."""
    if tag.twice:
        reason = f"<{tag.name}> has the attribute `{_cut(tag.twice)}` twice"
        return Refusal("attribute", reason, f"give `{_cut(tag.twice)}` once")
    for name in tag.attributes:
        if name not in _ATTRIBUTES[tag.name]:
            wrong = _not_a_variable(name) if tag.name == "fork" else _unknown(tag.name, name)
            if wrong:
                return wrong
    return None


def _not_a_variable(name: str) -> Refusal | None:
    if name in BUILT_IN:
        return Refusal("attribute", f"<fork> cannot set `{name}`, a built-in variable", "choose another name")
    if _VARIABLE.fullmatch(name):
        return None
    reason = f"<fork> cannot set a variable `{_cut(name)}`"
    return Refusal("attribute", reason, "use letters, digits and _ in the name, no digit first")


def _unknown(tag: str, name: str) -> Refusal:
    from difflib import get_close_matches

    known = _ATTRIBUTES[tag]
    reason = f"<{tag}> has no attribute `{_cut(name)}`"
    if not known:
        return Refusal("attribute", reason, _form(tag))
    meant = get_close_matches(name[:_WIDTH], known, 1)
    takes = f"<{tag}> takes {', '.join(f'`{one}`' for one in known)}"
    return Refusal("attribute", reason, f"did you mean `{meant[0]}`? {takes}" if meant else takes)


def _incomplete(tag: Tag) -> Refusal | None:
    """What is missing, or is no length of time."""
    has, body = tag.attributes, tag.body.strip()
    required = _REQUIRED.get(tag.name)
    if required and not has.get(required, "").strip():
        return Refusal("incomplete", f"<{tag.name}> needs `{required}`", _form(tag.name, body))
    if not body and tag.name not in ("result", "print"):
        what = "question" if tag.name == "ask" else "target"
        return Refusal("incomplete", f"<{tag.name}> has no {what}", _form(tag.name))
    for name in ("after", "timeout"):
        if name in has and name in _ATTRIBUTES[tag.name] and not _is_time(name, has[name]):
            reason = f"`{_cut(has[name])}` in `{name}` is no length of time"
            return Refusal("value", reason, f'{name}="5m"')
    if "timeout_next" in has and "timeout" not in has and tag.name != "fork":
        return Refusal("incomplete", f"<{tag.name}> has `timeout_next` without `timeout`", 'add timeout="5m"')
    return None


def _is_time(name: str, value: str) -> bool:
    # Zero is how the structs say "no timeout", so a written one would sleep for ever.
    seconds = durations.parse(value) if len(value) <= _WIDTH else None
    return seconds is not None and (seconds > 0 or name == "after")


def _build(tag: Tag, script: bool) -> Transition | None:
    """The value of a tag that was checked."""
    has, target = tag.attributes, tag.body.strip()
    given, then = has.get("input"), _word(has, "return")
    match tag.name:
        case "goto":
            return Goto(target=target, input=given, after=_seconds(has, "after"))
        case "reset":
            return Reset(target=target, input=given, after=_seconds(has, "after"), cd=has.get("cd", ""))
        case "call":
            return Call(target=target, then=then, input=given)
        case "function":
            model, effort = _word(has, "model"), _word(has, "effort")
            return Function(target=target, then=then, input=given, model=model, effort=effort)
        case "fork":
            return _fork(target, has)
        case "wait":
            timeout, on_time = _seconds(has, "timeout"), _word(has, "timeout_next")
            return Wait(target=target, input=given, timeout=timeout, timeout_next=on_time)
        case "ask":
            timeout, on_time = _seconds(has, "timeout"), _word(has, "timeout_next")
            return Ask(question=target, next=_word(has, "next"), timeout=timeout, timeout_next=on_time)
        case "result":
            return Result(text=_trim(tag.body) if script else target)
        case _:
            return None


def _fork(target: str, has: dict[str, str]) -> Fork:
    own = _ATTRIBUTES["fork"]
    return Fork(
        target=target,
        next=_word(has, "next"),
        input=has.get("input"),
        after=_seconds(has, "after"),
        cd=has.get("cd", ""),
        variables={name: value for name, value in has.items() if name not in own},
    )


def _word(has: dict[str, str], name: str) -> str:
    return has.get(name, "").strip()


def _seconds(has: dict[str, str], name: str) -> float:
    return durations.parse(has.get(name, "0s")) or 0.0


def _trim(text: str) -> str:
    """Without one line end at either side."""
    text = text.removeprefix("\r\n") if text.startswith("\r") else text.removeprefix("\n")
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def _show(tag: Tag) -> str:
    body = tag.body.strip()
    brief = tag.name not in ("result", "ask") and len(body) <= _WIDTH and len(body.splitlines()) == 1
    return f"<{tag.name}>{body}</{tag.name}>" if brief else f"<{tag.name}>"


def _form(name: str, body: str = "") -> str:
    """How the tag is written rightly, with the target it had where that is short."""
    opening, example = _FORMS[name]
    fits = 0 < len(body) <= _WIDTH and len(body.splitlines()) == 1
    return f"{opening}{body if fits else example}</{name}>"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _number(count: int) -> str:
    return _COUNTS.get(count, str(count))
