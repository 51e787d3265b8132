"""The real Codex judges: the configured small model, asked apart, decides where another one goes."""

import json
from collections.abc import Callable

import pytest

from e2e.conftest import Coder
from e2e.model import Answer, Request, Script, Text, program
from e2e.responses import MISSING, Question
from e2e.test_evaluators import FILES, START
from raymond.machine.events import AgentFailed, EvaluatorEnded, StepStarted
from running import Ran

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("codex") is None, reason=MISSING)]
SMALL = "gpt-5-mini"


def play(room: Coder, files: dict[str, str], *args: str) -> Ran:
    done = room.raymond(*room.begin(files, *args))
    return Ran(room, "r", done.returncode, done.stdout, done.stderr)


def judged(room: Coder) -> list[Question]:
    return [one for one in room.server.requests if "prompt READY" in one.prompt]


def test_a_small_model_overrides_a_transition(coder: Callable[[Script], Coder]) -> None:
    room = coder(
        {
            "prompt START": Text(START),
            "prompt READY": Text("**Commit.**\nIt has a test. <goto>REVIEW</goto>"),
            "prompt COMMIT": Text("<result>committed</result>"),
        }
    )
    room.settings(f'small_model = "{SMALL}"\n')
    (room.path / "AGENTS.md").write_text("Instructions for the work.", "utf-8")
    ran = play(room, FILES)
    assert (ran.code, ran.out) == (0, "committed\n"), ran.err
    [ended] = ran.all(EvaluatorEnded)
    assert (ended.verdict, ended.requested, ended.actual) == ("COMMIT", "goto REVIEW.md", "goto COMMIT.md")
    assert (ended.cost > 0, ended.tokens_out > 0) == (True, True)
    assert "main evaluator says COMMIT: goto COMMIT.md instead of goto REVIEW.md" in "\n".join(ran.lines)

    [asked] = judged(room)
    assert len(asked.turns) == 1, "it knows nothing else"
    assert asked.body["input"][-1]["content"][0]["text"] == f"prompt READY about <goto>REVIEW.md</goto>: {START}"
    assert asked.body["model"] == SMALL
    about = json.loads(asked.body["client_metadata"]["x-codex-turn-metadata"])
    assert about["sandbox_mode"] == "read-only"
    assert set(asked.tools) == {"request_user_input"}, "it has no tools, and nobody answers it"
    assert "Instructions for the work." not in str(asked.body)
    assert room.saw("prompt COMMIT") == ["prompt START", START, "prompt COMMIT"], "nobody has heard the judge"
    assert [event.model for event in ran.all(StepStarted)] == ["", SMALL, ""]


def test_a_judge_that_says_no_word_is_asked_once_more_and_then_fails_the_visit(
    coder: Callable[[Script], Coder],
) -> None:
    def answer(request: Request) -> Answer:
        return Text(START if request.prompt == "prompt START" else "I cannot tell.")

    room = coder(answer)
    ran = play(room, {**FILES, "workflow.yaml": f"small_model: {SMALL}\n"})
    assert ran.code == 1, ran.err
    assert [(event.verdict, event.again) for event in ran.all(EvaluatorEnded)] == [
        ("", True),
        ("", False),
    ]
    assert len({one.session for one in judged(room)}) == 2, "asked in a conversation of its own"
    [failed] = ran.all(AgentFailed)
    assert failed.kind == "evaluator"


def test_without_a_small_model_nobody_is_asked(coder: Callable[[Script], Coder]) -> None:
    room = coder({})
    done = room.raymond(*room.begin(FILES))
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert "small_model in workflow.yaml or in your settings" in done.stderr
    assert room.server.requests == []
