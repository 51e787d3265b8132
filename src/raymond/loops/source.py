"""Source: where the items of a loop come from, which is next, and where their outcome is written down."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from raymond.loops import reasons
from raymond.loops.formats import queue
from raymond.loops.formats.queue_item import Item, PlanWarning
from raymond.loops.ledger import Entry, Ledger
from raymond.loops.settings import Settings
from raymond.patterns import regex

if TYPE_CHECKING:
    from raymond.language.shell_line import Pipeline
    from raymond.loops.item_run import ItemRun

PROPOSED = "proposed by an agent; --accept-proposed runs it"

_LONGEST, _LONGEST_OF_ALL = 10_000, 50_000
"""Characters of one check, and of all checks of an item: they are handed on from step to step."""

_UNSEEN = regex(r"\b(?:case|select|for|function|coproc)\b|\$\{[^}]*['\"]")
"""What sets variables, or ends, where a reader of single commands does not see it."""
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr")
"""Files in which nothing is kept."""
_ELSEWHERE = "proposed by an agent for the queue; raymond continuous-session start --accept-proposed runs it"


class PassedOver(Struct, frozen=True):
    """An item that is not taken."""

    item: Item
    reason: str


class Selection(Struct, frozen=True):
    """What a queue comes to."""

    ready: list[Item]
    """In the order in which they are taken."""
    blocked: list[PassedOver]
    passed_over: list[PassedOver]
    """Those that are passed over, and why."""
    proposed: list[Item]
    set_aside: list[PassedOver] = []
    """Those that are blocked because of what the loop itself did with them."""

    def not_taken(self) -> list[tuple[str, str]]:
        """The titles of items that are not taken, and why."""
        passed_over = [(one.item.title, one.reason) for one in (*self.blocked, *self.passed_over)]
        return passed_over + [(one.title, PROPOSED) for one in self.proposed]


def select(items: Iterable[Item], ledger: Ledger, settings: Settings) -> Selection:
    """What of a queue can be worked on."""
    closed, later = ledger.closed(), ledger.later()
    known: dict[str, str] = {}
    found = Selection([], [], [], [], [])
    for item in items:
        if queue.key(item) in closed or item.ticked:
            if item.verification.kind == "blocked" and not item.ticked:
                found.set_aside.append(PassedOver(item, item.verification.reason))
            continue
        if item.verification.kind == "blocked":
            found.blocked.append(PassedOver(item, item.verification.reason))
        elif item.proposed and not settings.accept_proposed:
            found.proposed.append(item)
        elif why := _obstacle(item, settings, known):
            found.passed_over.append(PassedOver(item, why))
        else:
            found.ready.append(item)
    ready = queue.ordered(found.ready)
    again = {key: at for at, key in enumerate(later)}
    ready.sort(key=lambda item: again.get(queue.key(item), -1))
    return Selection(ready, found.blocked, found.passed_over, found.proposed, found.set_aside)


def proposed_in(text: str) -> list[PassedOver]:
    """What agents have proposed for the queue of a session log, for a loop that does not work through it."""
    return [PassedOver(one, _ELSEWHERE) for one in queue.read(text).items if one.proposed and not one.ticked]


def without(found: Selection, key: str) -> Selection:
    """A selection in which the item with this key is not."""
    return Selection(
        [one for one in found.ready if queue.key(one) != key],
        [one for one in found.blocked if queue.key(one.item) != key],
        [one for one in found.passed_over if queue.key(one.item) != key],
        [one for one in found.proposed if queue.key(one) != key],
        found.set_aside,
    )


def without_warned(found: Selection, text: str, warnings: Iterable[PlanWarning]) -> Selection:
    """A selection in which items that may not mean what their author thinks are passed over."""
    known = list(warnings)
    looked = [(item, queue.warnings_of(item, text, known)) for item in found.ready]
    passed_over = [PassedOver(item, f"{why[0].message} (--strict)") for item, why in looked if why]
    ready = [item for item, why in looked if not why]
    return Selection(ready, found.blocked, [*found.passed_over, *passed_over], found.proposed, found.set_aside)


def _obstacle(item: Item, settings: Settings, known: dict[str, str]) -> str:
    """Why an item cannot be taken with these settings; empty when it can. `known` are commands that were judged."""
    if item.verification.kind == "none" and settings.require_verify:
        return "it has no [VERIFY: ...], and --require-verify asks for one"
    if sum(len(one.run) for one in item.commands) > _LONGEST_OF_ALL:
        return f"its checks have more than {_LONGEST_OF_ALL:,} characters: let one script run them"
    for command in (one.run for one in item.commands):
        if command not in known:
            known[command] = refused(command, settings)
        if known[command]:
            return known[command]
    return ""


def refused(command: str, settings: Settings) -> str:
    """Why a command may not be run as a check: any part of it can be denied, and every part has to be allowed."""
    from raymond.language import gate_rules, shell_line

    if len(command) > _LONGEST:
        return f"its check has more than {_LONGEST:,} characters: put it into a script"
    if what := reasons.secret(command):
        return f"its check contains {what}, which no journal keeps: let it read that from the environment"
    read = shell_line.read(command)
    parts = [command, *(" ".join(words) for words in gate_rules.commands(read))] if settings.deny else []
    for pattern in settings.deny:
        if any(fnmatchcase(part, pattern) for part in parts):
            return f"its check matches --deny {pattern}"
    if settings.allow and (found := _UNSEEN.search(command)):
        return f"its check has `{found[0]}`, through which --allow does not see: put it into a script"
    for part, writes in _parts(read) if settings.allow else ():
        if not any(_allows(pattern, part, writes=writes) for pattern in settings.allow):
            return f"`{part}` in its check matches no --allow"
    return next((f"its check {one.what}" for one in gate_rules.judge(command) if one.kind == "unsafe"), "")


def _allows(pattern: str, part: str, *, writes: bool) -> bool:
    """Whether a pattern fits a command; one that writes to a file has to be meant: by `>` in it, or by `*` alone."""
    return fnmatchcase(part, pattern) and (not writes or ">" in pattern or pattern == "*")


def _parts(pipelines: "Iterable[Pipeline]") -> Iterator[tuple[str, bool]]:
    """The single commands of a line, those inside of others too, with the variables that are set for them.

    Each with the files that it writes, and whether there are any.
    """
    for pipeline in pipelines:
        for command in pipeline:
            files = [one for one in command.writes if one not in _NOWHERE]
            words = [*command.sets, *command.words, *(f"> {one}" for one in files)]
            if words:
                yield " ".join(words), bool(files)
            yield from _parts(command.inner)


class Looked(Struct, frozen=True):
    """What there is to do now."""

    log: str
    """The name of the newest session log; empty when there is none."""
    selection: Selection
    warnings: tuple[PlanWarning, ...] = ()
    """What may not mean what its author thinks."""
    text: str = ""
    """The whole log, where the items come from it."""
    trouble: str = ""
    """What a person has to repair before anybody can say what there is to do."""


class Source(Protocol):
    """The documents with the items of a loop."""

    def look(self, ledger: Ledger) -> Looked:
        """What there is to do, after what was done."""

    def settled(self) -> str:
        """That all which was asked for is done, in words; empty when it is not."""

    def warnings_of(self, looked: Looked, item: Item) -> list[PlanWarning]:
        """What about an item may not mean what its author thinks."""

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Write down that an item counts."""

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """Write down that it does not; the item that was made to repair it, if any, in words."""
