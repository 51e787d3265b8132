"""json.md is true: it has every key that a command prints as JSON, with its type."""

import contextlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import cli_reference
from inside import DONE as SAID
from inside import Inside
from raymond import cli
from raymond.language.tags import Transition
from raymond.machine import events, failures
from raymond.machine.agent import AskedFile
from raymond.machine.prices import Price
from raymond.machine.run_started import Program, Recording
from raymond.machine.sender import Sender
from running import Room, until
from typist import Typist

ROOT = Path(__file__).resolve().parents[2]
JSON_PAGE = (ROOT / "docs" / "json.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
FACTS = {kind.__name__: kind for kind in get_args(events.Event)}
PLAIN: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "time": lambda value: isinstance(value, str) and bool(TIME.fullmatch(value)),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "map": lambda value: isinstance(value, dict),
    "anything": lambda value: True,
}


TAKEN = re.compile(r"\bAs in an? \[([\w ]+)\]\(#[\w-]+\): ([^.]*)\.")
"""What a section says about keys that stand in the table of another one."""


def table(heading: str, first: str = "key") -> dict[str, str]:
    """The keys and types in the table of a section, and of those that it takes from another section."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", JSON_PAGE, re.DOTALL | re.MULTILINE)
    assert section, heading
    rows = re.search(rf"^\| {first} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", section[1], re.MULTILINE)
    taken = TAKEN.findall(section[1])
    assert rows or taken, heading
    kinds = {key: table(other.capitalize())[key] for other, keys in taken for key in re.findall(r"`(\w+)`", keys)}
    for keys, kind in re.findall(r"^\| ((?:`\w+` )+)\| (.*?) \|", rows[1] if rows else "", re.MULTILINE):
        for key in re.findall(r"`(\w+)`", keys):
            assert key not in kinds, f"{heading} has {key} twice"
            kinds[key] = kind
    return kinds


SOME = {"Record": "key of a record", "Sender": "key of a sender"}
"""Documents that leave out keys, and what their tables are headed with."""


class Check:
    """Compares documents with tables, and remembers which of the documented types were seen."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}

    def document(self, heading: str, found: dict[str, Any], *more: str, some: str = "") -> None:
        """`found` has exactly the keys of these tables, or some of them, with their types."""
        kinds = {key: kind for name in (heading, *more) for key, kind in table(name, some or "key").items()}
        assert found.keys() <= kinds.keys() if some else found.keys() == kinds.keys(), heading
        for key, value in found.items():
            self._value(heading, key, kinds[key], value)

    def _value(self, heading: str, key: str, kind: str, value: Any) -> None:
        choices = kind.split(" or ")
        fits = next((one for one in choices if self.fits(one, value)), None)
        assert fits, f"{heading}.{key} is {value!r}, not {kind}"
        self.seen.setdefault(f"{heading}.{key}", set()).add(fits)

    def fits(self, kind: str, value: Any) -> bool:
        """Whether `value` is what the page calls `kind`."""
        outer, _, inner = kind.partition(" of ")
        linked = re.fullmatch(r"\[(\w+)\]\(#\w+\)", inner or kind)
        if linked:
            name = linked[1].capitalize()
            items = list(value) if outer == "list" else value.values() if outer == "map" else [value]
            for item in items:
                self.document(name, item, some=SOME.get(name, ""))
            return True
        if outer == "list":
            return isinstance(value, list) and all(PLAIN[inner](item) for item in value)
        if outer == "map" and inner:
            return isinstance(value, dict) and all(PLAIN[inner](item) for item in value.values())
        return PLAIN[kind](value)

    def unseen(self, *headings: str) -> list[str]:
        """What the tables allow and no document had."""
        missing = []
        for heading in headings:
            for key, kind in table(heading, SOME.get(heading, "key")).items():
                seen = self.seen.get(f"{heading}.{key}", set())
                missing += [f"{heading}.{key}: {one}" for one in kind.split(" or ") if one not in seen]
        return missing


def test_every_command_that_can_print_json_is_on_the_page() -> None:
    commands = cli_reference.every_command()
    able = [path for path, command in commands if any("--json" in param.opts for param in command.params)]
    listed = JSON_PAGE[: JSON_PAGE.index("\n## ")]
    assert "raymond run" in able
    words = [path.removeprefix("raymond ") for path in able]
    assert [name for name in words if not re.search(rf"`(raymond )?{name} --json`", listed)] == []


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


MANY = {
    "START.md": "Begin.",
    "CALLER.md": "Ask.",
    "NAP.sh": 'printf "\\377" >&2; echo \'<goto after="1h">END</goto>\'',
    "BAD.sh": "exit 3",
    "SLOW.md": "",
    "SUB.sh": 'echo shown > shown; echo \'<ask next="END" approve="person" choices="this,that" files="shown">Which one?</ask>\'',
    "END.sh": "echo '<result>done</result>'",
    "replies.yaml": """\
        START:
          - - {fail: crash}
            - "I forgot the tag."
            - text: '<fork who="Ada">NAP</fork><fork>BAD</fork><fork>SLOW</fork><goto>CALLER</goto>'
              cost: 0.5
              tools: [{name: Read, input: {file_path: a.py}}]
              denied: [WebFetch]
        CALLER: '<call return="END" input="x">SUB</call>'
        SLOW: {text: "<result>late</result>", delay: 1h}
        """,
}
"""Agents in every state of mind: one sleeps, one has failed, one answers for an hour, one asks out of a subtask."""
ASKS = {
    "START.sh": "echo '<call return=\"END\">SUB</call>'",
    "SUB.sh": "echo '<ask next=\"END\">Which one?</ask>'",
    "END.sh": "exit 1",
}
DONE = {"START.sh": "echo '<print>hello</print>'; echo '<result>done</result>' > \"$RAYMOND_OUT\""}


def settled(room: Room, id: str) -> bool:
    """Three of the agents of MANY are where they stay."""
    found = json.loads(room.raymond("status", id, "--json").stdout)
    return {agent["status"] for agent in found["agents"]} == {"asking", "sleeping", "failed", "running"}


def run_in_a_copy(room: Room, id: str) -> dict[str, Any]:
    """A run that works in a workspace; what it prints."""
    for command in ("init -q", "add -A", "-c user.name=me -c user.email=me@localhost commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=room.path, env=room.environment, check=True)
    flow = room.flow({"START.sh": "echo new > new; echo '<result>ok</result>'"}, id)
    printed: dict[str, Any] = json.loads(room.raymond("run", flow, "--id", id, "--workspace", "copy", "--json").stdout)
    return printed


CHECK = 'test "$(cat tests/flag)" = good || { echo good > tests/flag; exit 1; }\n'
REVIEWED = {
    "START.md": "---\ngate: sh tests/check.sh\ngate_reruns: 0\n---\nDo it. <result>x</result>\n",
    "replies.yaml": "START: <result>x</result>\n",
}
"""A check that turns green by changing what decides it."""


@pytest.mark.slow
def test_what_a_reading_command_prints_as_json_is_documented(room: Room) -> None:
    check = Check()
    flow = room.flow(MANY)
    begun = room.raymond("run", flow, "-d", "--id", "r", "--var", "k=v", "--max-iterations", "50", "--budget", "0")
    assert begun.returncode == 0, begun.stderr
    until(lambda: settled(room, "r"), "agents in every state of mind")
    room.raymond("run", room.flow(DONE, "done"), "--id", "done")
    room.raymond("run", room.flow(ASKS, "asks"), "--id", "asks")
    (room.path / "tests").mkdir()
    (room.path / "tests" / "flag").write_text("bad\n", "utf-8")
    (room.path / "tests" / "check.sh").write_text(CHECK, "utf-8")
    assert room.raymond("run", room.flow(REVIEWED, "reviewed"), "--id", "reviewed").returncode == 3
    for review in json.loads(room.raymond("review", "reviewed", "--json").stdout):
        check.document("Review", review)
    room.folder("broken").mkdir()
    Path(room.project.run("broken").journal).write_text('{"format":1}\nx\n{}\n', "utf-8")

    for row in json.loads(room.raymond("list", "--json").stdout):
        check.document("Row", row)
    check.document("Run", json.loads(room.raymond("status", "r", "--json").stdout))
    room.raymond("stop", "r", "--now")
    for done in (room.raymond("wait", id, "--json") for id in ("r", "done")):
        check.document("Outcome", json.loads(done.stdout))
    run_in_a_copy(room, "placed")
    for id in ("r", "done", "asks", "reviewed", "placed"):
        document = json.loads(room.raymond("status", id, "--json").stdout)
        check.document("Run", document)
        beside = json.loads((room.path / ".raymond" / "workflows" / f"{id}.json").read_text("utf-8"))
        assert beside.keys() == document.keys()
    for id in ("r", "done", "reviewed", "placed"):
        told = lines(room.raymond("logs", id, "--json").stdout)
        for event in told:
            event_is_documented(event)
        for step in sorted({event["step"] for event in told if "step" in event}):
            for turn in lines(room.raymond("logs", id, "--step", str(step), "--json").stdout):
                check.document("Turn", turn)
    room.settings('[backends.mine]\ncommand = ["python3"]\n')
    for finding in json.loads(room.raymond("doctor", "--json").stdout):
        check.document("Finding", finding)
    (room.path / ".raymond" / "config.toml").write_text("budget = 0\n", "utf-8")
    for setting in json.loads(room.raymond("config", "show", "--json").stdout).values():
        check.document("Setting", setting)
    check.document("Ledger", json.loads(room.raymond("cost", "r", "--json").stdout))
    allowed = ("Row", "Run", "Review", "Agent", "Frame", "Turn", "Record", "Finding", "Setting")
    # A script that no signal could end has no exit code, and a turn whose driver was killed no end: nobody has one here.
    assert check.unseen(*allowed) == ["Turn.ended: null", "Record.exit: null"], "a table promises what was not printed"


INSIDE = """\
1. [VERIFY: sh check.sh] Write the answer
2. [VERIFY: false] Another
3. A third
   - On-fail: pause
"""


@pytest.mark.slow
def test_what_internal_mode_prints_as_json_is_documented(tmp_path: Path) -> None:
    check, inside = Check(), Inside(tmp_path, INSIDE)
    gave_up = "no\n\nITERATION_FAILED\n"

    def became(found: dict[str, Any]) -> str:
        check.document("Became", found, some="key")
        return str(found["status"])

    check.document("Handed item", inside.begin("--max-time", "1h"))
    assert became(inside.record(SAID, "--wait", "0s")) == "checking"
    check.document("Handed item", inside.record(None))
    inside.work({"answer.txt": "42\n"})
    assert became(inside.record()) == "recorded"
    inside.next()
    assert became(inside.record(gave_up)) == "recorded"
    inside.next()
    assert became(inside.record(gave_up, code=3)) == "waiting"
    assert Typist(inside.room, "answer", "n", "stop", "--no-resume").end() == 0
    assert became(inside.next("--resume")) == "done"
    assert check.unseen("Became") == []


def test_what_a_dry_run_prints_as_json_is_documented(
    room: Room, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = Check()
    monkeypatch.setenv("HOME", room.environment["HOME"])
    prompt = {"START.md": "{{inptu}} <result>x</result>", "replies.yaml": "START: x"}
    script = {"START.sh": "echo '<result>x</result>'"}
    with contextlib.chdir(room.path):
        for name, files, budget in (("prompt", prompt, "5"), ("script", script, "0")):
            assert cli.main(["run", room.flow(files, name), "--dry-run", "--json", "--budget", budget]) == 0
            check.document("Plan", json.loads(capsys.readouterr().out))
        refused = room.flow({"START.md": "{{inptu}} <goto>NOWHERE</goto>"}, "refused")
        for more, code in (((), 6), (("--cd", "nowhere"), 2)):
            assert cli.main(["run", refused, "--dry-run", "--json", *more]) == code
            check.document("Plan", json.loads(capsys.readouterr().out))
    assert check.unseen("Plan", "Warning") == []


def event_is_documented(event: dict[str, Any]) -> None:
    """A line of `logs --json`, by the tables of events."""
    kinds = table("Event") | {
        key: kind for key, kind in table("Event", "key of an event").items() if key in KEYS[event["type"]]
    }
    assert event.keys() <= kinds.keys()
    for key, value in event.items():
        assert Check().fits(kinds[key], value), (key, value)


def keys_of_events() -> dict[str, list[str]]:
    ends = re.search(r"^\*end\* stands for ((?:`\w+` ?)+), ", JSON_PAGE, re.MULTILINE)
    assert ends
    row = re.compile(r"^\| `([A-Z]\w+)` \| ((?:(?:`\w+`|\*end\*) ?)+) \| .+ \|$", re.MULTILINE)
    return {name: re.findall(r"`(\w+)`", keys.replace("*end*", ends[1])) for name, keys in row.findall(JSON_PAGE)}


KEYS = keys_of_events()


def test_every_event_is_documented_with_its_keys_and_their_types() -> None:
    fields = {name: msgspec.structs.fields(kind) for name, kind in FACTS.items()}
    assert {name: [field.encode_name for field in found] for name, found in fields.items()} == KEYS
    documented = table("Event", "key of an event")
    words: dict[object, str] = {
        str: "text",
        int: "integer",
        float: "number",
        bool: "boolean",
        dict[str, str]: "map of text",
    }
    words |= {list[str]: "list of text", dict[str, dict[str, Any]]: "map of map", dict[int, float]: "map of number"}
    words |= {str | None: "text", int | None: "integer", float | None: "number"}
    words |= {
        tuple[int, ...]: "list of integer",
        dict[str, Price]: "map of map",
        list[AskedFile]: "list of [shown](#shown)",
        list[Program]: "list of map",
        Program: "map",
        Recording: "map",
        list[Transition]: "list of map",
    }
    words |= {Sender | None: "[sender](#sender)"}
    found = {field.encode_name: field.type for fields_of in fields.values() for field in fields_of}
    assert {name: "text" if choices(kind) else words[kind] for name, kind in found.items()} == documented


def choices(kind: Any) -> list[str]:
    """The texts of a field that takes only certain ones; nothing for any other."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [text for part in parts if get_origin(part) is Literal for text in get_args(part)]


def test_every_way_to_stop_or_to_pause_is_documented() -> None:
    stops, pauses = get_type_hints(events.RunStopped), get_type_hints(events.AgentPaused)
    ways = {
        "RunStopped": {*choices(stops["kind"]), *choices(stops["limit"])},
        "AgentPaused": {*choices(pauses["kind"])},
    }
    told = dict(re.findall(r"^\| `([A-Z]\w+)` \| .* \| (.*) \|$", JSON_PAGE, re.MULTILINE))
    for event, known in ways.items():
        assert known - {""} <= set(re.findall(r"`(\w+)`", told[event])), event


def test_the_table_of_failures_has_a_row_for_every_class_and_for_no_other() -> None:
    section = (ROOT / "docs" / "design.md").read_text("utf-8").partition("\n## Failures\n")[2].partition("\n## ")[0]
    named = [name for row in re.findall(r"^\| (.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)]
    assert sorted(named) == sorted(failures.KINDS)


@pytest.mark.slow
def test_how_a_run_ended_is_documented(room: Room) -> None:
    check = Check()
    check.document("Start", json.loads(room.raymond("start", room.flow(DONE, "begun"), "--json").stdout))
    for files, code in ((DONE, 0), (ASKS, 3)):
        done = room.raymond("run", room.flow(files, str(code)), "--json", "--id", f"r{code}")
        assert done.returncode == code
        check.document("Outcome", json.loads(done.stdout))
    room.raymond("answer", "r3", "this", "--no-resume")
    failed = room.raymond("resume", "r3", "--json")
    assert failed.returncode == 1
    check.document("Outcome", json.loads(failed.stdout))
    (room.path / "file").touch()
    check.document("Outcome", run_in_a_copy(room, "placed"))
    assert check.unseen("Outcome") == []


def has_asked(room: Room, id: str) -> bool:
    return room.project.run(id).exists and "AskStarted" in str(room.events(id))


@pytest.mark.slow
def test_an_open_question_is_documented(room: Room) -> None:
    for id, more in (("a", ' choices="a,b" files="shown" approve="person" timeout="1h"'), ("b", "")):
        ask = f"echo shown > shown; echo '<ask next=\"END\"{more}>Which?</ask>'"
        with room.start("run", room.flow({**ASKS, "START.sh": ask}, id), "--id", id):
            until(partial(has_asked, room, id), "the question")
    check = Check()
    for one in json.loads(room.raymond("inbox", "--json").stdout):
        check.document("Question", one)
    assert check.unseen("Question", "Shown") == ["Question.label: text"]


@pytest.mark.slow
def test_what_is_told_to_others_is_documented(room: Room) -> None:
    flow = room.flow(
        {"START.sh": "echo '<ask next=\"END\">Which one?</ask>'", "END.sh": "echo '<result>this</result>'"}
    )
    room.raymond("run", flow, "--id", "r", "--notify", TELL)
    room.raymond("resume", "r")
    by_event = {document["event"]: document for document in told(room)}
    check = Check()
    check.document("Asked", by_event["asked"], "Outcome", "Notification")
    check.document("Notification", by_event["ended"], "Outcome")
    # A question that anybody may answer is told without it.
    assert check.unseen("Asked", "Notification") == ["Asked.approve: text"]


TELL = "cat > part.$$ && mv part.$$ told.$$"
"""Two can be told at the same moment."""


def told(room: Room) -> list[Any]:
    return [json.loads(path.read_text("utf-8")) for path in (room.path.parent / "home").glob("told.*")]


def test_a_budget_that_is_nearly_spent_is_told_to_others_as_documented(room: Room) -> None:
    replies = "START: {text: <goto>END</goto>, cost: 0.85}"
    flow = room.flow({"START.md": "", "END.sh": DONE["START.sh"], "replies.yaml": replies})
    room.raymond("run", flow, "--id", "r", "--notify", TELL, "--budget", "1")
    until(lambda: len(told(room)) == 2, "two notifications")
    [warned] = [document for document in told(room) if document["event"] == "budget"]
    Check().document("Warned", warned, "Outcome", "Notification")
    assert warned["message"] == "80% of the budget is spent: $0.85 of $1.00"


@pytest.mark.parametrize(("kind", "event"), [("limit", "limit"), ("auth", "auth")])
def test_a_backend_that_takes_no_turns_is_told_once(room: Room, kind: str, event: str) -> None:
    replies = f"START: [[{{fail: {kind}, error: no more, retry_after: 0.2s}}, <result>x</result>]]"
    flow = room.flow({"START.md": "", "replies.yaml": replies})
    room.raymond("run", flow, "--id", "r", "--notify", TELL)
    until(lambda: len(told(room)) == 2, "two notifications")
    [warned] = [document for document in told(room) if document["event"] == event]
    Check().document("Warned", warned, "Outcome", "Notification")
    assert warned["message"] == "no more"


def test_what_is_long_is_told_to_others_without_its_maps(room: Room) -> None:
    flow = room.flow({"START.py": "print('<result>' + 'x' * 99000 + '</result>')"})
    room.raymond("run", flow, "--id", "r", "--notify", TELL)
    [document] = told(room)
    kinds = table("Outcome") | table("Notification")
    assert document.keys() == {key for key, kind in kinds.items() if not kind.startswith("map")} | {"shortened"}
    assert document["shortened"] is True
    assert 0 < len(document["result"]) < 99000


@pytest.mark.slow
def test_a_log_file_in_json_is_documented(room: Room) -> None:
    check = Check()
    flow = room.flow({"START.md": "", "END.sh": DONE["START.sh"], "replies.yaml": LOGGED})
    room.raymond("run", flow, "--id", "r", "--log-file", "log", "--log-format", "json", "--backend", "scripted-program")
    found = lines((room.path / "log").read_text("utf-8"))
    for line in found:
        if line["type"] in FACTS:
            event_is_documented(line)
        else:
            check.document("Notice" if line["type"] == "said" else "Word", line)
    assert {line["type"] for line in found} - FACTS.keys() >= {"print", "tool", "note"}


LOGGED = """\
START: {text: "<goto>END</goto>", tools: [{name: Read, input: {file_path: a.py}}], denied: [WebFetch]}
"""
