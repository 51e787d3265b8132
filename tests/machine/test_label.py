"""Labels: what people tell forks apart by, in every view and in what a wait hands over."""

import io
import json

import pytest

from builders import Play
from raymond.faces import documents, words
from raymond.faces.lines import Lines
from raymond.faces.overview import run_lines
from raymond.faces.summary import ending
from raymond.machine import placed_workflow
from raymond.machine.agent import LONGEST_LABEL, label_of
from raymond.views import cost

FILES = {"START.md": "", "A.md": "", "END.md": ""}
FORKS = (
    "<fork file='src/c.py' kind='b'>A</fork><fork file='x' label='the parser'>A</fork><fork>A</fork><wait>END</wait>"
)


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ({}, ""),
        ({"file": "src/c.py", "n": "2"}, "src/c.py"),
        ({"file": "src/c.py", "label": "the parser"}, "the parser"),
        ({"file": "src/c.py", "label": ""}, ""),
        ({"text": " two\n lines\t "}, "two lines"),
        ({"text": "\x1b[2Jred\u202e"}, "\\x1b[2Jred\\u202e"),
        ({"who": "the 👩\u200d👩\u200d👧\u200d👦 family"}, "the 👩\u200d👩\u200d👧\u200d👦 family"),
        ({"text": "\u202e" * 9}, "\\u202e\\u202e\\u202e...\\u202e\\u202e\\u202e"),
        (
            {"path": "src/raymond/language/" + "deep/" * 10 + "policy_keys.py"},
            "src/raymond/languag...eep/policy_keys.py",
        ),
    ],
)
def test_a_label_is_one_short_line_that_can_be_printed(given: dict[str, str], label: str) -> None:
    assert label_of(given) == label
    assert len(label_of(given)) <= LONGEST_LABEL


def forked() -> Play:
    play = Play(FILES)
    play.say(FORKS)
    play.say("<result>fine</result>", "main_a1", cost=0.25)
    play.fail("setup", "main_a2")
    return play


def test_a_label_is_seen_wherever_its_agent_is() -> None:
    play = forked()
    assert words.who(play.agent("main_a2")) == "main_a2 (the parser)"
    assert words.who(play.agent("main_a3")) == "main_a3"
    told = [line.split() for line in run_lines(play.run, "running", 0, "/nowhere")]
    assert ["main_a2", "(the", "parser)", "A.md", "failed"] in told
    assert "failed: main_a2 (the parser) in A.md: boom" in ending(play.run, "failed")
    shown = documents.outcome(play.run)
    assert shown["labels"] == {"main_a1": "src/c.py", "main_a2": "the parser"}
    state = json.loads(documents.state_file(play.run))
    assert [agent["label"] for agent in state["agents"]] == [None, "the parser", None]
    assert state["labels"] == {"main_a1": "src/c.py"}
    sums = cost.sums(cost.entries("r", play.decisions), "agent")
    assert sums["main_a1"].label == "src/c.py"


def test_every_line_about_an_agent_names_its_label() -> None:
    play, told = forked(), io.StringIO()
    lines = Lines(told)
    lines.on_decisions(play.run, play.decisions[:3])
    lines.refresh()
    lines.on_output("main_a1", "print", "half way")
    lines.on_decisions(play.run, play.decisions[3:])
    lines.refresh()
    found = [line.partition("] ")[2] or line for line in told.getvalue().splitlines()]
    assert "main_a1 (src/c.py) starts at A.md forked by main" in found
    assert "main_a1 (src/c.py) | half way" in found
    assert "main_a1 (src/c.py) done $0.25 total $0.25" in found
    assert "main_a2 (the parser) failed (setup): boom" in found
    later = io.StringIO()
    lines = Lines(later)
    lines.on_decisions(play.run, [])
    lines.on_output("main_a2", "tool", "Read")
    assert later.getvalue() == "main_a2 (the parser) * Read\n"


def test_what_a_wait_collects_is_labelled() -> None:
    play = forked()
    play.say("<result>fine</result>", "main_a3")
    found = json.loads(placed_workflow.collected_results(play.main.visit, lambda one: one.result))
    assert [(one["agent"], one["label"]) for one in found] == [
        ("main_a1", "src/c.py"),
        ("main_a2", "the parser"),
        ("main_a3", ""),
    ]


def test_label_is_a_variable_like_any_other() -> None:
    play = forked()
    assert placed_workflow.values_of_visit(play.run, play.workspace, play.agent("main_a2"))["label"] == "the parser"
    assert "label" not in placed_workflow.values_of_visit(play.run, play.workspace, play.agent("main_a3"))
