"""The proof that a run which met trouble ended as it should: nothing is lost, done twice, or left behind.

    check(place, expected, endings)     the run: its result, steps, money, conversations, processes and files
    check_views(place)                  two commands more: what `status` and `list` say
    check_clean(place)                  two more: `clean` leaves nothing of it; the last check, for the run is gone

`place` holds the run and the ledger of its scripts, `expected` is what the run comes to when nobody is in its way, and
`endings` are the commands that were given meanwhile.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from crash import gates, ledger, runs
from crash.runs import Story
from raymond.machine.events import EvaluatorEnded, StepEnded, StepFinished, StepInterrupted, StepRefused, StepStarted
from raymond.store import journal, lock

if TYPE_CHECKING:
    from crash.torture import Ending, Place

_OUR_FAULT = re.compile(r"Traceback|bug in Raymond|Exception ignored|Fatal Python error")
_ASIDE = re.compile(r"\.(?!gitignore).*|.*\.(tmp|new|old)")
"""Names of what is half written or half removed."""


class Expected(Struct):
    """What a run comes to when nobody is in its way."""

    result: str
    finished: Counter[tuple[str, str]]
    """How many visits each agent finished in each state."""
    cost: float
    """Of all turns that were answered."""
    talks: dict[str, list[str]]
    """What the turn of each prompt could see: the states that were asked before it, and itself."""
    gates: dict[str, list[str]] = {}
    """What the gate of each state found, from try to try."""
    work: dict[str, str] = {}
    """Of a run whose agents work in a workspace: the files that come home."""

    def reds(self, state: str) -> int:
        """How many turns of a visit end in a red gate."""
        return self.gates.get(state, []).count("failed")


def expected(place: "Place") -> Expected:
    """The same from a run that nobody was in the way of."""
    told = runs.story(place.project, place.id)
    result = told.run.outcomes["main"].result
    work = place.person.work() if place.person else {}
    return Expected(result, _visits(told), _paid(_ends(place)), dict(_talks(place, told)), work=work)


def check(place: "Place", expected: Expected, endings: Iterable["Ending"] = (), *, paid_once: bool = False) -> None:
    """Nothing is lost, doubled, or left; with `paid_once` no turn was cut off, so that none was paid for twice."""
    for ending in endings:
        check_words(ending)
    told = runs.story(place.project, place.id)
    check_story(place, expected, told)
    gates.check(place, expected.gates)
    ledger.check(place.notes(), told)
    check_money(place, expected, told, paid_once=paid_once)
    for state, talk in _talks(place, told):
        whole, reds = expected.talks[state], expected.reds(state)
        assert talk in [whole[: len(whole) - less] for less in range(reds + 1)], f"{state} sees {talk}"
    check_left(place)
    if place.person:
        assert place.person.work() == expected.work, "the work that comes home"
        place.person.check()


def check_words(ending: "Ending") -> None:
    """A command that cannot do its work says so in words, and never that it is our fault."""
    assert ending.code != 70, ending.err
    assert not _OUR_FAULT.search(ending.err), ending.err


def check_story(place: "Place", expected: Expected, told: Story) -> None:
    """The journal tells of the right end, and of every visit once."""
    assert runs.ending(told.run) == ("completed", 0)
    assert told.run.outcomes["main"].result == expected.result
    assert _visits(told) == expected.finished, "the finished visits"
    for visit, times in told.finished.items():
        assert times == 1 + expected.reds(visit.state), f"{visit} is finished {times} times"
    numbers = [one.seq for one in journal.decisions(place.project.run(place.id))]
    assert numbers == list(range(1, told.run.seq + 1))


def _visits(told: Story) -> Counter[tuple[str, str]]:
    return Counter((visit.agent, visit.state) for visit in told.finished)


def check_money(place: "Place", expected: Expected, told: Story, *, paid_once: bool) -> None:
    """Every answer is paid once; a turn that was itself cut off may be paid again, and then both count."""
    ends = _ends(place)
    assert round(_paid(ends), 9) == round(expected.cost, 9), "every answered turn counts once"
    assert round(told.run.cost, 9) == round(sum(event.cost for event in ends), 9), "what was cut off counts too"
    files = sessions(place)
    turns = {visit: n for visit, n in (told.finished + told.refused).items() if visit.state.endswith(".md")}
    assert files <= set(told.sessions)
    assert {told.sessions[name] for name in files} == set(turns), "every prompt was answered"
    judged = sum(isinstance(event, EvaluatorEnded) and event.cost > 0 for event in ends)
    answered = sum(turns.values()) + judged
    assert len(files) <= answered + sum(event.estimated for event in ends), "a turn was paid for twice"
    cut_off = [event for event in ends if isinstance(event, StepInterrupted) and event.estimated]
    assert not (paid_once and cut_off), "a turn was cut off"


def _ends(place: "Place") -> list[StepEnded]:
    decisions = journal.decisions(place.project.run(place.id))
    return [event for decision in decisions for event in decision.events if isinstance(event, StepEnded)]


def _paid(ends: list[StepEnded]) -> float:
    return sum(event.cost for event in ends if isinstance(event, StepFinished | StepRefused | EvaluatorEnded))


def sessions(place: "Place") -> set[str]:
    """The conversations that were written: each is one answered turn."""
    names = _names(place.project.run(place.id).sessions)
    # A kill may leave the beginning of one, with another ending.
    return {name.removesuffix(".json") for name in names if name.endswith(".json")}


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def _talks(place: "Place", told: Story) -> list[tuple[str, list[str]]]:
    """What every turn that was taken could see: a callee its caller's conversation, and nobody anything else."""
    events = [event for decision in journal.decisions(place.project.run(place.id)) for event in decision.events]
    started = {event.session: event for event in events if isinstance(event, StepStarted) and event.session}
    taken = [event.session for event in events if isinstance(event, StepFinished) and event.session]
    return [(told.sessions[name].state, _talk(told, started, name)) for name in taken]


def _talk(told: Story, started: dict[str, StepStarted], session: str) -> list[str]:
    states: list[str] = []
    while session:
        states.append(told.sessions[session].state)
        session = started[session].base
    return states[::-1]


def check_left(place: "Place") -> None:
    """Nothing runs, nobody holds the lock, and no file of a turn or a request is left."""
    folder = place.project.run(place.id)
    assert place.marked() == [], "no process is left"
    assert lock.holder(folder) is None
    assert _names(folder.spool) == [], "no file of a turn is left"
    assert _names(folder.inbox) == [], "every request was taken"


def check_views(place: "Place") -> None:
    """`status` and `list` say what the journal says."""
    told = runs.story(place.project, place.id)
    shown = _json(place, "status", place.id, "--json")
    assert (shown["status"], shown["journal_seq"], shown["agents"]) == ("completed", told.run.seq, [])
    assert shown["results"] == {one.agent: one.result for one in told.run.outcomes.values() if one.status == "done"}
    assert shown["total_cost_usd"] == round(told.run.billed, 6)
    (row,) = [one for one in _json(place, "list", "--json") if one["workflow_id"] == place.id]
    assert (row["status"], row["driven"], row["cost_usd"]) == ("completed", False, shown["total_cost_usd"])


def _json(place: "Place", *args: str) -> Any:
    done = place.start(*args).wait()
    check_words(done)
    assert done.code == 0, done.err
    return json.loads(done.out)


def check_clean(place: "Place") -> None:
    """`clean` removes the run, and whatever a killed process left half written; an hour is given to those that live."""
    long_ago = os.stat(place.journal).st_mtime - 3 * 86400
    for path in _files(place):
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    for args in (("clean", *place.project.ids()), ("clean",)):
        done = place.start(*args).wait()
        check_words(done)
        assert done.code == 0, done.err
    assert place.project.ids() == []
    left = [path for path in _files(place) if _ASIDE.fullmatch(path.name) or path.suffix in (".zip", ".sh")]
    assert left == [], "nothing of it is left"


def _files(place: "Place") -> list[Path]:
    """Everything in the home and in what the project is shown."""
    return [path for folder in (place.project.home.path, place.room / ".raymond") for path in Path(folder).rglob("*")]
