"""The ledger of a loop: what became of its items, handed from iteration to iteration through the journal of its run."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from raymond.loops.formats import foreign_text, item_ids
from raymond.patterns import unnumbered

PASSED, NO_CHANGE, OWN_CHECK, UNCHECKED = "passed", "no change", "own check", "not verified"
FAILED, TIMED_OUT, GAVE_UP, REVIEW = "failed", "timed out", "gave up", "review"
RED = "red"
"""The check of an iteration of the plain loop was not green: the next one goes on from there."""
IDLE = "idle"
"""An iteration of the plain loop without a check changed nothing: it is neither done nor failed."""
ACCEPTED, REJECTED = "accepted", "rejected"
"""How a person has decided about an item that was set aside: it is committed, or in the queue again."""
PENDING, PLANNED = "pending", "planned"
"""Done, and a person has to judge it; tasks were written down for it."""
DONE = (PASSED, NO_CHANGE, OWN_CHECK, UNCHECKED, PENDING, PLANNED, ACCEPTED)
"""The verdicts of items that are done."""

_LISTED = 200
"""Titles of what is left or was passed over that are handed on, and the characters of each."""
REPLY = 8_000
"""Characters of the last message of an agent that are handed on."""
STUCK = 3
"""Items in a row that changed nothing, and of which the check said the same, after which a loop is stuck."""
_CODES = {"exhausted": 4, "stuck": 4, "impossible": 1, "refused": 2, "red": 1}
"""The exit codes of endings for which it does not matter what became of the items."""


class Decided(Struct, frozen=True):
    """What a person has decided about an item that was set aside."""

    commit: str = ""
    """Where it is, if it was accepted."""
    reason: str = ""
    """Why it was rejected."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item that was worked on."""

    number: int
    """Of the session."""
    key: str
    title: str
    verdict: str
    check: str = ""
    timeout: float = 0.0
    """Seconds that one run of the check may take; 0 for what the settings say."""
    log: str = ""
    """The session log, as people are told its path."""
    began: float = 0.0
    seconds: float = 0.0
    commit: str = ""
    error: str = ""
    action: str = ""
    """What follows from its failure: skip, retry, create-fix-task, pause or block."""
    saved: str = ""
    """The reference under which its changes are kept, if they are not in the tree."""
    attempts: int = 1
    notes: tuple[str, ...] = ()
    """What the agent did besides its work."""
    wrote: tuple[str, ...] = ()
    """Tracked files that the check wrote."""
    agent: str = ""
    base: str = ""
    """The commit that it began with."""
    slot: str = ""
    """Which of all items of the run it was."""
    left: str = ""
    """The tree that a red iteration of the plain loop left."""
    may: tuple[str, ...] = ()
    """What a person let it change although that decides a check."""
    kept: str = ""
    """The commit that `saved` named when it was made."""
    checks: str = ""
    """What was run, where `check` does not say all of it."""
    place: str = ""
    """The document that it comes from, relative to the folder of documents; empty for a session log."""
    tasks: tuple[str, ...] = ()
    """The tasks that are done when it is."""
    group: str = ""
    """The story that it belongs to."""

    def write(self, reply: str = "") -> str:
        """As it is handed on, with what the agent said, for the judge."""
        told = {"reply": reply[-REPLY:]} if reply else {}
        return json.dumps({**self.fields, **told})  # a title need not be UTF-8

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields without those that are empty."""
        needed = self.__struct_fields__[: -len(self.__struct_defaults__)]
        return {name: one for name, one in to_builtins(self).items() if one or name in needed}

    @property
    def is_done(self) -> bool:
        """Whether it counts."""
        return self.verdict in DONE

    @property
    def verification(self) -> str:
        """The same as state files say it: passed, failed or skipped."""
        if not self.check or self.verdict == PENDING:
            return "skipped" if self.is_done else "failed"
        return "passed" if self.is_done else "failed"


class Opened(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item that was begun: everything about it that its scripts need."""

    slot: str
    """Which of all items of the run it is, counted with every time that it begins."""
    number: int
    """Of the session; an item that is only tried again has the same."""
    title: str
    key: str
    base: str = ""
    """The commit that its tree began with."""
    began: float = 0.0
    since: int = 0
    """The step in which it was begun: those that follow are its own."""
    raw: str = ""
    """As it is written in the queue."""
    details: str = ""
    check: str = ""
    """The commands that check it, as people type them."""
    checks: str = ""
    """The same as the gate of its agent is given it."""
    timeout: float = 0.0
    may: list[str] = []
    on_fail: str = ""
    attempts: int = 0
    """Sessions that it may take; 0 for what the settings say."""
    failures: int = 0
    """How often it has failed before, in a row."""
    log: str = ""
    """The name of the session log that it writes."""
    source: str = ""
    """The name of the one that its queue comes from."""
    is_proposed: bool = False
    is_plan: bool = False
    """Whether an agent says which tasks it takes, instead of doing it."""
    place: str = ""
    """The document that it comes from, relative to the folder of documents; empty for a session log."""
    tasks: tuple[str, ...] = ()
    """The tasks that are done when it is."""
    group: str = ""
    """The story that it belongs to."""
    criteria: list[str] = []
    """What a person judges it by."""

    def write(self) -> str:
        """As the variable of its agent."""
        return json.dumps(to_builtins(self))


class Ledger(Struct, kw_only=True, omit_defaults=True):
    """What a loop has done so far."""

    entries: list[Entry] = []
    sessions: int = 0
    """How many have begun, retries of an item not counted."""
    ended: str = ""
    """Why it ended, in a word: complete, limit, stopped, repeated; empty while it goes on."""
    why: str = ""
    open: Opened | None = None
    """The item that an agent is at."""
    asked: int = 0
    """How many entries there were when a person was last asked whether to go on."""
    was_red: bool = False
    """Of the plain loop: whether its check was red at the start."""
    unjudged: str = ""
    """Of the plain loop: what the last agent said, until a model has judged it."""
    prompt: str = ""
    """Of the plain loop: the prompt of the last iteration."""
    closing: str = ""
    """What an agent wrote about the whole loop, when it had ended."""
    left: list[str] = []
    """The titles that remain in the queue, when it ended; a line says how many more there are than it names."""
    unlisted: int = 0
    """How many that are."""
    log: str = ""
    """The session log that all items write, where it is one for all."""
    noticed: list[str] = []
    """What went wrong beside the items."""
    skipped: list[tuple[str, str]] = []
    """Titles of items that were blocked, passed over or only proposed, and why."""

    def write(self) -> str:
        """As it is handed on."""
        told = {"exit_code": self.exit_code, "text": self.text} if self.ended else {}
        return json.dumps({**told, **to_builtins(self), "entries": [one.fields for one in self.entries]})

    @property
    def exit_code(self) -> int:
        """What a loop that has ended exits with."""
        if self.ended in _CODES:
            return _CODES[self.ended]
        if self.ended == "stopped" and self.red[-1:] == self.entries[-1:] != []:
            return _CODES["exhausted"]  # what it was to do is not done
        repaired = self.repaired()
        return 1 if any(one.verdict != RED and one.key not in repaired for one in self.failed) else 0

    @property
    def text(self) -> str:
        """How it ended, in a line."""
        review = sum(one.verdict == REVIEW for one in self.failed)
        rejected = sum(one.verdict == REJECTED for one in self.failed)
        failed = len(self.failed) - len(self.red) - review - rejected
        left = len(self.left) - 1 + self.unlisted if self.unlisted else len(self.left)
        whole = len(self.done) + failed + review + rejected + left
        counts = {"red": len(self.red), "without a change": len(self.idle), "failed": failed}
        counts |= {"to review": review, "rejected": rejected}
        more = "".join(f", {count} {word}" for word, count in counts.items() if count)
        whys = {"stopped": f"stopped {self.why}: ", "stuck": f"stuck: {self.why}: ", "complete": "", "limit": ""}
        why = whys.get(self.ended, f"{self.why}: ")
        return f"{why}{len(self.done)}{f' of {whole}' if whole > len(self.done) else ''} done{more}"

    @property
    def done(self) -> list[Entry]:
        """The items that count."""
        return [one for one in self.entries if one.is_done]

    @property
    def failed(self) -> list[Entry]:
        """The items that do not, each once, as it ended last."""
        last = {one.key: one for one in self.entries}
        return [one for one in last.values() if not one.is_done and one.verdict != IDLE]

    def settle(self, decided: Mapping[str, Decided]) -> None:
        """Take note of what a person has decided about items that were set aside, by their keys."""
        for at, one in enumerate(self.entries):
            if one.verdict == REVIEW and one.key in decided:
                known = decided[one.key]
                verdict, error = (ACCEPTED, "") if known.commit else (REJECTED, known.reason or one.error)
                self.entries[at] = replace(one, verdict=verdict, commit=known.commit, error=error)

    def repeated(self, verdict: str) -> list[Entry]:
        """The last entries, if there are enough of this verdict and their checks said the same, but for numbers."""
        last = self.entries[-STUCK:]
        is_same = len({unnumbered(one.error) for one in last}) == 1
        return last if len(last) == STUCK and is_same and {one.verdict for one in last} == {verdict} else []

    @property
    def idle(self) -> list[Entry]:
        """The iterations of the plain loop of which nothing can be said."""
        return [one for one in self.entries if one.verdict == IDLE]

    @property
    def red(self) -> list[Entry]:
        """Of these, the iterations of the plain loop whose check was not green."""
        return [one for one in self.failed if one.verdict == RED]

    def note_left(self, left: Sequence[str], skipped: Sequence[tuple[str, str]]) -> None:
        """Note what remains and what was passed over, as much of it as can be handed on."""
        self.unlisted = max(0, len(left) - _LISTED)
        self.left = [_short(title) for title in left[:_LISTED]]
        self.left += [f"and {self.unlisted:,} more"] if self.unlisted else []
        self.skipped = [(_short(title), _short(why)) for title, why in skipped[:_LISTED]]
        if more := len(skipped) - len(self.skipped):
            self.skipped.append((f"and {more:,} more", "the dry run names all of them"))

    def whole(self, titles: Iterable[str], most: int) -> int:
        """How many items the loop comes to, with the `titles` that are in its queue, and may do at `most` (0: any)."""
        left = {
            " ".join(title.split()).casefold() for title in (*titles, self.open.title if self.open else "") if title
        }
        known = len({one.key for one in self.entries} | left)
        return min(most, known) if most else known

    def in_a_row(self, key: str) -> int:
        """How often an item has failed since it last passed."""
        count = 0
        for one in self.entries:
            count = 0 if one.is_done and one.key == key else count + (one.key == key)
        return count

    def of_repairs(self, id: str) -> int:
        """How often a task and the tasks that repair it have failed since one of them last passed."""
        own, count = item_ids.repaired(id), 0
        for one in self.entries:
            if item_ids.repaired(one.key) == own:
                count = 0 if one.is_done else count + 1
        return count

    def closed(self) -> set[str]:
        """The items that are not taken again in this run: done, skipped or waiting for a person."""
        again = ("retry", "pause")
        last = {one.key: one for one in self.entries}
        return {key for key, one in last.items() if one.is_done or one.action not in again}

    def repaired(self) -> dict[str, str]:
        """The tasks that failed and were verified by a fix task since, which has the same check: key -> fix task."""
        fixes = {item_ids.repaired(one.key): one.key for one in self.done if one.place}
        failed = [one.key for one in self.failed if one.place and item_ids.repaired(one.key) in fixes]
        return {key: fixes[item_ids.repaired(key)] for key in failed}

    def groups(self) -> set[str]:
        """The stories that were begun."""
        return {one.group for one in self.entries if one.group}

    def later(self) -> list[str]:
        """The items that are tried again after the others, in the order in which they failed."""
        last = {one.key: one for one in self.entries}
        return [one.key for one in last.values() if not one.is_done and one.action == "retry"]

    def named(self) -> Iterator[tuple[Entry, str]]:
        """What agents did besides their work, with the item."""
        for entry in self.entries:
            for note in entry.notes:
                yield entry, note


def _short(text: str) -> str:
    return text if len(text) <= _LISTED else foreign_text.cut(text, _LISTED)


def read_entry(text: str) -> Entry:
    """An entry as it was handed on."""
    return convert(json.loads(text), Entry)


def read_opened(text: str) -> Opened:
    """The item of an agent, as its variable has it."""
    return convert(json.loads(text), Opened)


def read(text: str) -> Ledger:
    """A ledger as it was handed on; an empty text is a loop that begins."""
    return convert(json.loads(text), Ledger) if text.strip() else Ledger()
