"""Output text -> the transitions in it, or why they are refused."""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from raymond import durations
from raymond.language import choices
from raymond.language.refusal import WIDTH, Refusal, cut
from raymond.language.scanner import LIMIT, Scanner, Tag
from raymond.language.tags import (
    BUILT_IN,
    EXAMPLES,
    TAGS,
    VARIABLE,
    Attribute,
    AttributeKind,
    Fork,
    Goto,
    Reset,
    Result,
    Transition,
)
from raymond.patterns import regex

MOST_FORKS = 10_000

# Most scripts write one transition and nothing else: this spares them the scanner.
_PLAINEST = regex(r"<(goto|reset|result)>([A-Za-z0-9_./-]+)</\1>\n?")
_TRANSITION = regex(rf"<(?:{'|'.join(name for name in TAGS if name != 'print')})[\s>]")
_ONE = "end with exactly one transition, e.g. <goto>NEXT.md</goto> or <result>text</result>"
_COUNTS = {2: "two", 3: "three"}
_BESIDE_FORKS: tuple[list[str], ...] = ([], *([name] for name in TAGS["fork"].attributes["next"].unless))
_REQUIRED = {
    form.name: tuple(name for name, one in form.attributes.items() if one.required and not one.unless)
    for form in TAGS.values()
}
_CONVERT: dict[AttributeKind, Callable[[str], Any]] = {
    "state": str.strip,
    "duration": durations.parse,
    "text": str,
    "path": str,
    "name": str.strip,
    "choices": str,
}


class Reading(Struct, frozen=True):
    """What an output says: transitions, or why it was refused."""

    transitions: tuple[Transition, ...] = ()
    refused: Refusal | None = None
    prints: tuple[str, ...] = ()
    """Payloads of <print> that `feed` had not returned yet."""
    line: str = ""
    """The line that stands for a transition, if there is one (`says` of an allowed transition)."""


class Reader:
    """Reads an output as it arrives."""

    def __init__(self, *, script: bool = False, limit: int = LIMIT) -> None:
        self._script = script
        self._limit = limit
        self._plainly: re.Match[str] | None = None
        """All the text so far, if it is one transition in its plainest form."""
        self._full: _FullReader | None = None

    def feed(self, text: str) -> list[str]:
        """Take more text; return the <print> payloads that it completes."""
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
        """The text is complete: what it says."""
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
            wrong = _misattributed(tag) or _swallowed(tag)
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
    """The transitions of an output; their texts are kept only while they can still be valid together."""

    def __init__(self, limit: int, script: bool) -> None:
        self.count = 0
        self.others: list[str] = []
        """Names of the first two that are not forks."""
        self.shown: list[str] = []
        self.said: list[Transition | Refusal] = []
        """Made as the tags arrive: nobody waits for it while the script still runs."""
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
        """Whether there are more than one output may have."""
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
    wrong = _misattributed(tag) or _incomplete(tag) or _misvalued(tag)
    if wrong:
        return wrong
    return _build(tag, script) or Refusal("none", f"<{tag.name}> is not a transition", _ONE)


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
    """Where the agent that forks continues must be said once."""
    nexts = list(dict.fromkeys(fork.next for fork in forks))
    if forks and kept.others:
        return _contradiction(kept.others[0]) if any(nexts) else None
    if "" in nexts:
        reason = "a <fork> needs `next`, or one <goto> or <wait> in the same output"
        return Refusal("incomplete", reason, _form("fork", forks[nexts.index("")].target))
    if len(nexts) > 1:
        reason = f"the forks of the output disagree on `next`: {cut(nexts[0])} and {cut(nexts[1])}"
        return Refusal("several", reason, "give all of them the same `next`")
    return None


def _contradiction(other: str) -> Refusal:
    reason = f"the output has a <fork> with `next` and a <{other}>, which both say where to continue"
    return Refusal("several", reason, f"remove `next` from each <fork>, or remove the <{other}>")


def _none(quoted: int, unclosed: str) -> Refusal:
    if unclosed:
        return Refusal("none", f"the output has no transition; its <{unclosed}> is never closed", _form(unclosed))
    if quoted:
        reason = f"the output has no transition; the {_number(quoted)} in code or comments do not count"
        return Refusal("none", reason, "write the one you mean outside code and comments")
    return Refusal("none", "the output has no transition", _ONE)


def _several(kept: _Kept) -> Refusal:
    if kept.others not in _BESIDE_FORKS:
        shown = kept.shown if kept.count <= 3 else [*kept.shown[:2], f"{kept.count - 2} more"]
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}"
        return Refusal("several", f"the output has {_number(kept.count)} transitions: {listed}", _ONE)
    return Refusal("several", f"the output has more than {MOST_FORKS} forks", "fork fewer agents at once")


def _long(what: str) -> Refusal:
    return Refusal("too_long", f"{what} is longer than 8 MiB", "write it to a file and pass on the name of the file")


def _swallowed(printed: Tag) -> Refusal | None:
    """A transition inside a <print> is probably meant: the <print> may come from a text that was only passed on."""
    if not _TRANSITION.search(printed.body):
        return None
    inside = next((tag for tag in scan(printed.body) if tag.name != "print"), None)
    if inside is None:
        return None
    reason = f"a <print> holds the transition {_show(inside)}, so which one is meant is unclear"
    hint = "close each <print> before the transition; a script can also write its transition to the file $RAYMOND_OUT"
    return Refusal("several", reason, hint)


def _misattributed(tag: Tag) -> Refusal | None:
    """What is wrong with the names of the attributes."""
    if tag.twice:
        reason = f"<{tag.name}> has the attribute `{cut(tag.twice)}` twice"
        return Refusal("attribute", reason, f"give `{cut(tag.twice)}` once")
    form = TAGS[tag.name]
    for name in tag.attributes:
        if name not in form.attributes:
            wrong = _not_a_variable(tag.name, name) if form.variables else _unknown(tag.name, name)
            if wrong:
                return wrong
    return None


def _not_a_variable(tag: str, name: str) -> Refusal | None:
    if name in BUILT_IN:
        return Refusal("attribute", f"<{tag}> cannot set `{name}`, a built-in variable", "choose another name")
    if VARIABLE.fullmatch(name):
        return None
    reason = f"<{tag}> cannot set a variable `{cut(name)}`"
    return Refusal("attribute", reason, "use letters, digits and _ in the name, and do not start with a digit")


def _unknown(tag: str, name: str) -> Refusal:
    from difflib import get_close_matches

    known = TAGS[tag].attributes
    reason = f"<{tag}> has no attribute `{cut(name)}`"
    if not known:
        return Refusal("attribute", reason, _form(tag))
    meant = get_close_matches(name[:WIDTH], known, 1)
    takes = f"<{tag}> takes {', '.join(f'`{one}`' for one in known)}"
    return Refusal("attribute", reason, f"did you mean `{meant[0]}`? {takes}" if meant else takes)


def _incomplete(tag: Tag) -> Refusal | None:
    """What is missing."""
    body = tag.body.strip()
    for name in _REQUIRED[tag.name]:
        if not tag.attributes.get(name, "").strip():
            return Refusal("incomplete", f"<{tag.name}> needs `{name}`", _form(tag.name, body))
    form = TAGS[tag.name]
    if not body and form.body.required:
        return Refusal("incomplete", f"<{tag.name}> has no {form.body.field}", _form(tag.name))
    return None


def _misvalued(tag: Tag) -> Refusal | None:
    """What is wrong with the values of the attributes."""
    known = TAGS[tag.name].attributes
    lonely = None
    for name, value in tag.attributes.items():
        attribute = known.get(name)
        if attribute is None:
            continue
        if attribute.kind == "duration" and (wrong := _not_a_duration(name, attribute, value)):
            return wrong
        if attribute.kind == "choices" and (why := choices.problem(value)):
            return Refusal("value", why, f'{name}="{EXAMPLES["choices"]}"')
        if attribute.choices and value.strip() not in attribute.choices:
            hint = " or ".join(f'{name}="{one}"' for one in attribute.choices)
            return Refusal("value", f"`{name}` cannot be `{cut(value)}`", hint)
        if attribute.needs and attribute.needs not in tag.attributes:
            lonely = lonely or _lonely(tag.name, name, attribute.needs)
    return lonely


def _lonely(tag: str, name: str, needs: str) -> Refusal:
    example = EXAMPLES[TAGS[tag].attributes[needs].kind]
    return Refusal("incomplete", f"<{tag}> has `{name}` without `{needs}`", f'add {needs}="{example}"')


def _not_a_duration(name: str, attribute: Attribute, value: str) -> Refusal | None:
    seconds = durations.parse(value) if len(value) <= WIDTH else None
    hint = f'{name}="{EXAMPLES["duration"]}"'
    if seconds is None:
        return Refusal("value", f"`{name}`: `{cut(value)}` is not {durations.explain(value[:WIDTH])}", hint)
    if not seconds and not attribute.zero:
        return Refusal("value", f"`{name}` must be longer than 0s", hint)
    return None


def _build(tag: Tag, script: bool) -> Transition | None:
    """The value of a tag that was checked."""
    form = TAGS[tag.name]
    if not form.makes:
        return None
    exact = script and form.makes is Result
    fields: dict[str, Any] = {form.body.field: _trim(tag.body) if exact else tag.body.strip()}
    variables: dict[str, str] = {}
    for name, value in tag.attributes.items():
        attribute = form.attributes.get(name)
        if attribute:
            fields[attribute.field] = _CONVERT[attribute.kind](value)
        else:
            variables[name] = value
    if variables:
        fields["variables"] = variables
    made: Transition = form.makes(**fields)
    return made


def _trim(text: str) -> str:
    """`text` without one line end on either side."""
    text = text.removeprefix("\r\n") if text.startswith("\r") else text.removeprefix("\n")
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def _show(tag: Tag) -> str:
    body = tag.body.strip()
    brief = TAGS[tag.name].body.kind == "state" and len(body) <= WIDTH and len(body.splitlines()) == 1
    return f"<{tag.name}>{body}</{tag.name}>" if brief else f"<{tag.name}>"


def _form(name: str, body: str = "") -> str:
    """How the tag is written correctly, with the target that it had if that is short."""
    fits = 0 < len(body) <= WIDTH and len(body.splitlines()) == 1
    return TAGS[name].write(body if fits else "")


def _number(count: int) -> str:
    return _COUNTS.get(count, str(count))
