"""`raymond list`: what needs somebody comes first, and it can be narrowed down."""

import json
from pathlib import Path
from time import time

import pytest

from kept import Projects
from raymond import cli
from raymond.control import runs
from raymond.faces import listing, table
from raymond.views import times
from raymond.views.status import RunRow, group


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Projects:
    return Projects(tmp_path, monkeypatch)


def listed(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    """The ids that `list` shows, in its order."""
    assert cli.main(["list", *args]) == 0
    return [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:] if line.startswith("  ")]


# --- groups


@pytest.mark.parametrize(
    ("status", "driven", "questions", "stop_kind", "expected"),
    [
        ("running", True, 0, None, "working"),
        ("running", True, 1, None, "needs you"),
        ("stopping", True, 0, "stop", "working"),
        ("waiting", False, 1, None, "needs you"),
        ("interrupted", False, 0, None, "needs you"),
        ("paused", False, 0, None, "needs you"),
        ("stopped", False, 0, "limit", "needs you"),
        ("stopped", False, 0, "stop", "resting"),
        ("stopped", False, 2, "stop", "needs you"),
        ("paused", False, 0, "paused", "resting"),
        ("unreadable", False, 0, None, "needs you"),
        ("failed", False, 1, None, "needs you"),
        ("stopped", False, 0, None, "needs you"),
        ("completed", False, 0, None, "done"),
        ("cancelled", False, 0, "cancelled", "done"),
    ],
)
def test_a_run_is_in_one_group(status: str, driven: bool, questions: int, stop_kind: str | None, expected: str) -> None:
    assert group(status, driven=driven, questions=questions, stop_kind=stop_kind) == expected


def test_what_needs_you_comes_first_and_says_why(projects: Projects, capsys: pytest.CaptureFixture[str]) -> None:
    asks = {
        "status": "waiting",
        "agents": [{"status": "asking"}, {"status": "asking"}],
        "reason": "2 agents wait for an answer",
    }
    projects.keep(
        "here",
        asks=asks,
        done="completed",
        gone="running",
        bad={"status": "failed", "agents_failed": 1, "reason": "DO.md: it broke", "workflow": "flow"},
        works={
            "status": "waiting",
            "agents": [{"status": "asking", "current_state": "ASK.md"}],
            "reason": "1 agent waits for an answer",
            "workflow": "flow",
        },
        spent={"status": "stopped", "stop_kind": "limit", "reason": "the budget of $10.00 is spent"},
        mine={"status": "stopped", "stop_kind": "stop", "reason": "stopped on request"},
    )
    assert cli.main(["list"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(
        [
            "  ID     STATUS       WORKFLOW  AT         COST  WHY",
            "needs you",
            "  asks   waiting                2 agents  $0.00  2 agents wait for an answer",
            "  gone   interrupted                      $0.00  its process is gone",
            "  bad    failed       flow                $0.00  DO.md: it broke",
            "  works  waiting      flow      ASK.md    $0.00  1 agent waits for an answer",
            "  spent  stopped                          $0.00  the budget of $10.00 is spent",
            "resting",
            "  mine   stopped                          $0.00  stopped on request",
            "done",
            "  done   completed                        $0.00",
        ]
    )
    assert cli.main(["list"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert headings == ["needs you", "resting", "done"]


def test_a_question_is_only_mentioned() -> None:
    row = RunRow(workflow_id="r", project="/p", status="running", driven=True, questions=1, reason="claude is closed")
    assert listing.why(row) == "asks 1 question; claude is closed"


# --- widths


@pytest.mark.parametrize("width", [1, 2, 3, 10, 20, 40, 80, 120, 200])
@pytest.mark.parametrize("projects", [True, False])
def test_no_line_of_the_list_is_wider_than_the_terminal(width: int, projects: bool) -> None:
    long = "nightly-review-of-everything-1f3a9c2e"
    rows = [
        RunRow(workflow_id=long, project="/home/ada/日本語の店/shop", status="waiting", driven=False, questions=3),
        RunRow(workflow_id="b", project="/x", status="interrupted", driven=False, reason="w" * 300, group="resting"),
    ]
    lines = listing.lines(rows, 0.0, projects=projects, width=width)
    assert len(lines) == 5, "nothing is wrapped"
    assert max(map(table.cell_count, lines)) <= width
    if width >= 10:
        assert lines[2].startswith("  n"), "the id is there"
        assert lines[4].startswith("  b")


# --- narrowed down


def test_a_long_history_is_folded(projects: Projects, capsys: pytest.CaptureFixture[str]) -> None:
    projects.keep("here", asks={"status": "waiting"}, **{f"run_{number:02}": "completed" for number in range(14)})
    assert cli.main(["list"]) == 0
    said = capsys.readouterr()
    assert (said.out.count("completed"), said.err) == (10, "... and 4 more: raymond list --limit 15\n")
    assert len(listed(capsys, "--limit", "15")) == 15
    assert cli.main(["list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 15


def test_a_limit_leaves_out_none_that_needs_somebody_for_one_that_is_done(
    projects: Projects, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = {"status": "stopped", "stop_kind": "limit", "started_at": times.instant(1.0)}
    late = {"status": "completed", "started_at": times.instant(time())}
    projects.keep("here", old=limit, new=late, newer=late)
    assert listed(capsys, "--limit", "1") == ["old"]
    assert "old" in listed(capsys, "--limit", "2")


def test_a_filter_is_answered_without_a_word_about_this_place(
    projects: Projects, capsys: pytest.CaptureFixture[str]
) -> None:
    projects.keep("shop", c="failed")
    assert cli.main(["list", "--status", "failed"]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().err == "no run has been started here yet; these are the runs of all your projects\n"


def test_runs_are_chosen_by_status_project_and_time(projects: Projects, capsys: pytest.CaptureFixture[str]) -> None:
    now = time()
    hour, day = (times.instant(now - seconds) for seconds in (3600, 86400))
    projects.keep("here", a={"status": "completed", "updated_at": hour, "started_at": day}, b="failed")
    other = projects.keep("shop", c={"status": "completed", "updated_at": day, "started_at": day})
    assert sorted(listed(capsys)) == ["a", "b"]
    assert sorted(listed(capsys, "--all")) == ["a", "b", "c"]
    assert listed(capsys, "--status", "failed") == ["b"]
    assert sorted(listed(capsys, "--status", "failed", "--status", "completed")) == ["a", "b"]
    assert listed(capsys, "--project", "shop") == listed(capsys, "--project", other.tree) == ["c"]
    assert listed(capsys, "--all", "--since", "2h") == ["a"]
    assert listed(capsys, "--limit", "1") == ["b"], "what failed comes first"
    assert cli.main(["list", "--json"]) == 0
    assert {row["workflow_id"] for row in json.loads(capsys.readouterr().out)} == {"a", "b"}
    assert cli.main(["list", "--all", "--json", "--status", "completed"]) == 0
    assert {row["workflow_id"] for row in json.loads(capsys.readouterr().out)} == {"a", "c"}


def test_outside_of_a_project_the_runs_of_all_are_listed_unless_here_is_meant(
    projects: Projects, capsys: pytest.CaptureFixture[str]
) -> None:
    projects.keep("shop", c="completed")
    assert listed(capsys) == ["c"]
    assert listed(capsys, "--here") == []
    assert cli.main(["list", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--all", "--here"), "--all, --here and --project do not go together\nhint: raymond list --all"),
        (("--project", "nope"), "there are no runs of a project `nope`\nhint: there are runs of: shop"),
        (
            ("--project", ""),
            "--project needs a directory or the name of one\nhint: raymond list --all shows all projects",
        ),
        (("--since", "soon"), "`soon` is not a time\nhint: write how long ago"),
    ],
)
def test_what_cannot_be_meant_is_said(
    projects: Projects, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], error: str
) -> None:
    projects.keep("shop", c="completed")
    assert cli.main(["list", *args]) == 2
    assert f"error: {error}" in capsys.readouterr().err


def test_a_state_file_of_an_earlier_release_does_not_say_who_stopped_the_run(projects: Projects) -> None:
    """The journal is read then, and this one is empty."""
    here = projects.keep("here", old={"status": "stopped"})
    path = Path(here.run("old").state)
    path.write_text(path.read_text().replace('"stop_kind":null,', ""))
    assert [row.status for row in runs.rows()] == ["unreadable"]
