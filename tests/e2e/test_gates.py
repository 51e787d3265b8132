"""Gates and the real Claude Code: it is told what was red, asked why it changed a test, and given up after its visits."""

import json
import subprocess
from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Request, Script, Text, Tool, program, results, typed
from raymond.machine.events import AgentMoved, GateEnded, StepRefused
from running import Ran
from typist import Typist

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

MAKEFILE = "test:\n\t@sh tests/check.sh\n"
CHECK = "grep -q right answer.txt || { echo 'answer.txt is wrong'; exit 1; }\n"
GREEN = "true\n"
TOLD = "Raymond ran the check of this step, and it is not green"
ASKED = "Raymond ran the check of this step, and its result does not count"
WHY = "The task says that any answer will do, so the check has to go."
DONE = Text("<result>done</result>")


def gated(*more: str, **files: str) -> dict[str, str]:
    """A workflow whose first state has a gate."""
    head = "\n".join(["---", "gate: make test", "gate_reruns: 0", *more, "---"])
    return {"START.md": f"{head}\nprompt START", **{f"{name}.md": text for name, text in files.items()}}


def verdicts(ran: Ran) -> list[str]:
    return [event.verdict for event in ran.all(GateEnded)]


@pytest.fixture
def repository(desk: Callable[..., Desk]) -> Callable[[Script], Desk]:
    """Makes the one desk of a test, with a repository whose check is red."""

    def make(script: Script) -> Desk:
        room = desk(script)
        (room.path / "tests").mkdir()
        for name, text in {"Makefile": MAKEFILE, "tests/check.sh": CHECK, "answer.txt": "wrong\n"}.items():
            (room.path / name).write_text(text, "utf-8")
        commit = "git -c user.name=a -c user.email=a@b commit -qm base"
        given = ["bash", "-ec", f"git init -q . && git add . && {commit}"]
        subprocess.run(given, cwd=room.path, env=room.environment, check=True)
        return room

    return make


def edits(room: Desk, name: str, text: str, said: Text) -> list[Answer]:
    """What an agent does to change a file: look at it, write it, say something."""
    path = str(room.path / name)
    return [Tool("Read", {"file_path": path}), Tool("Write", {"file_path": path, "content": text}), said]


def test_a_red_gate_goes_back_to_the_conversation_and_turns_green(repository: Callable[[Script], Desk]) -> None:
    script: dict[str, list[Answer]] = {"prompt START": [DONE]}
    room = repository(script)
    script[TOLD] = edits(room, "answer.txt", "right\n", Text("<result>fixed</result>"))
    ran = room.claude(gated())
    assert (ran.code, ran.out) == (0, "fixed\n"), ran.err
    assert verdicts(ran) == ["failed", "passed"]
    assert (room.path / "answer.txt").read_text("utf-8") == "right\n"
    claimed, worked = room.turns()
    assert worked.base == claimed.session, "the same conversation continues"
    asked = room.server.requests[-1]
    assert typed(asked)[0] == "prompt START"
    assert f"{TOLD}: `make test` ended with exit code 2\n" in typed(asked)[-1]
    assert "\nanswer.txt is wrong\n" in typed(asked)[-1]
    assert len(results(asked)) == 2, "it read the file and wrote it"
    assert ran.all(StepRefused) == []


def test_an_agent_that_edits_the_test_is_asked_why_and_a_person_decides(repository: Callable[[Script], Desk]) -> None:
    script: dict[str, list[Answer]] = {ASKED: [Text(f"{WHY} <result>done</result>")]}
    room = repository(script)
    script["prompt START"] = edits(room, "tests/check.sh", GREEN, DONE)
    ran = room.claude(gated())
    assert ran.code == 3, ran.err
    assert verdicts(ran) == ["review", "review"]
    assert ran.lines[-1] == "next:   raymond review r"
    asked = room.server.requests[-1].prompt
    assert "it is green only with your versions:\n- changed tests/check.sh\n" in asked
    assert "say why in your reply" in asked

    [review] = json.loads(room.raymond("review", "r", "--json").stdout)
    assert (review["agent"], review["verdict"], review["changes"]) == ("main", "review", ["changed tests/check.sh"])
    assert review["words"] == f"{WHY} <result>done</result>"
    assert "--- a/tests/check.sh\n+++ b/tests/check.sh\n" in review["texts"]["what changed"]
    assert f"\n-{CHECK}+{GREEN}" in review["texts"]["what changed"]
    assert "answer.txt is wrong\n" in review["texts"]["what it printed with the sealed files"]

    requests = len(room.server.requests)
    person = Typist(room, "accept", "r")
    person.sees(r"accept this change\? \[y/n\] ")
    person.type("y\n")
    assert person.end() == 0
    done = room.raymond("wait", "r")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert len(room.server.requests) == requests, "the agent is not asked again"


def test_an_agent_whose_change_is_rejected_is_told_why_and_does_the_work(repository: Callable[[Script], Desk]) -> None:
    reason = "No answer but the right one will do."

    def answer(request: Request) -> Answer:
        told = [text for text in typed(request) if ASKED in text]
        works = edits(room, "tests/check.sh", GREEN, DONE)
        if told and reason in told[-1]:
            check = Tool("Write", {"file_path": str(room.path / "tests/check.sh"), "content": CHECK})
            works = [check, *edits(room, "answer.txt", "right\n", Text("<result>fixed</result>"))]
        elif told:
            works = [Text(f"{WHY} <result>done</result>")]
        return works[request.call]

    room = repository(answer)
    assert room.claude(gated()).code == 3
    person = Typist(room, "reject", "r", "main", reason)
    assert person.end() == 0, person.said
    done = room.raymond("wait", "r")
    assert (done.returncode, done.stdout) == (0, "fixed\n"), done.stderr
    found = [event.verdict for event in room.events() if isinstance(event, GateEnded)]
    assert found == ["review", "review", "passed"]
    assert len({turn.session for turn in room.turns()}) == 3
    assert typed(room.server.requests[-1])[0] == "prompt START", "the same conversation continues"


def test_a_gate_that_stays_red_ends_where_the_visits_end(repository: Callable[[Script], Desk]) -> None:
    room = repository({TOLD: [DONE], "prompt START": [DONE], "prompt GIVE_UP": [Text("<result>given up</result>")]})
    flow = gated(
        "gate_tries: 1", "on_fail: START", "max_visits: 2", "then: GIVE_UP", GIVE_UP="prompt GIVE_UP\n{{gate}}"
    )
    ran = room.claude(flow)
    assert (ran.code, ran.out) == (0, "given up\n"), ran.err
    assert verdicts(ran) == ["failed"] * 4, "two visits, each told once"
    assert [event.state for event in ran.all(AgentMoved)] == ["START.md", "GIVE_UP.md"]
    assert room.server.requests[-1].prompt.startswith("prompt GIVE_UP\nanswer.txt is wrong\n")
