"""Which run a name means, and which one is meant without a name."""

import os
from pathlib import Path

import pytest

from kept import Projects
from raymond import cli
from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.errors import RunNotFound, UsageError


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Projects:
    return Projects(tmp_path, monkeypatch)


def found(given: str | None = None, verb: str = "", *, changes: bool = False) -> tuple[str, str]:
    project, id = naming.named(given, changes=changes, verb=verb)
    return os.path.basename(project.tree), id


# --- with a name


def test_a_run_here_comes_first_a_whole_id_before_a_beginning_and_this_project_before_others(
    projects: Projects,
) -> None:
    projects.keep("here", ship="completed", ship_it="completed", review_1="waiting")
    projects.keep("other", review="waiting", night_1="waiting")
    assert found("ship") == ("here", "ship")
    assert found("ship-") == ("here", "ship-it")
    assert found("review") == ("other", "review")
    assert found("review-") == ("here", "review-1")
    for verb in ("", "stop", "resume", "answer", "repair"):
        assert found("nig", verb, changes=bool(verb)) == ("other", "night-1")


@pytest.mark.parametrize("verb", ["cancel", "clean"])
def test_what_cannot_be_undone_takes_the_full_id_of_a_run_elsewhere(projects: Projects, verb: str) -> None:
    projects.keep("here", ship="waiting")
    other = projects.keep("other", night_1="waiting")
    assert found("sh", verb, changes=True) == ("here", "ship")
    assert found("night-1", verb, changes=True) == ("other", "night-1")
    with pytest.raises(SeveralRuns) as caught:
        found("nig", verb, changes=True)
    assert str(caught.value) == f"`nig` is a run of another project: `{verb}` cannot be undone, and needs its full id"
    assert caught.value.hint == f"in full:\n  night-1  waiting  {other.tree}"


def test_several_runs_are_named_with_their_status_and_project(projects: Projects) -> None:
    one, two = (
        projects.keep("one", night_1="waiting", same="failed"),
        projects.keep("two", night_22="completed", same="stopped"),
    )
    with pytest.raises(SeveralRuns) as caught:
        found("night")
    assert str(caught.value) == "`night` is the beginning of 2 runs"
    assert sorted(caught.value.hint.splitlines()[1:]) == [
        f"  night-1   waiting    {one.tree}",
        f"  night-22  completed  {two.tree}",
    ]
    with pytest.raises(SeveralRuns) as caught:
        found("same")
    assert str(caught.value) == "`same` is a run of 2 other projects"
    assert caught.value.hint.splitlines()[0] == "say which:"
    projects.keep("here", same="completed")
    assert found("same") == ("here", "same")


@pytest.mark.parametrize(
    ("args", "commands"),
    [
        (["status", "nig"], ["raymond -C TWO status night", "raymond -C ONE status night"]),
        (["status", "night"], ["raymond -C TWO status night", "raymond -C ONE status night"]),
        (["logs", "--tail", "3", "n"], ["logs --tail 3 night", "logs --tail 3 night", "raymond logs --tail 3 note"]),
        (["cancel", "not"], ["raymond cancel note"]),
        (
            ["-C", ".", "logs", "n", "--agent", "my agent"],
            [
                "logs night --agent 'my agent'",
                "logs night --agent 'my agent'",
                "raymond -C . logs note --agent 'my agent'",
            ],
        ),
        (["logs", "n", "--agent", "n"], ["logs night ...", "logs night ...", "raymond logs note ..."]),
        (["answer", "n", "one\ntwo"], ["answer night ...", "answer night ...", "raymond answer note ..."]),
    ],
)
def test_a_name_that_fits_several_is_answered_with_the_command_for_each(
    projects: Projects, capsys: pytest.CaptureFixture[str], args: list[str], commands: list[str]
) -> None:
    """The command as it was typed, and where the id alone would not do, with the project."""
    one, two = projects.keep("one", note="waiting", night="failed"), projects.keep("two", night="failed")
    assert cli.main(args) == 2
    lines = capsys.readouterr().err.splitlines()[2:]
    assert len(lines) == len(commands)
    for command in commands:
        there = command.replace("ONE", one.tree).replace("TWO", two.tree)
        assert any(f"{there}  " in line for line in lines), (there, lines)


def test_of_many_runs_a_few_are_named(projects: Projects) -> None:
    projects.keep("here", **{f"n{number}": "waiting" for number in range(14)})
    with pytest.raises(SeveralRuns) as caught:
        found("n")
    lines = caught.value.hint.splitlines()
    assert (len(lines), lines[-1]) == (12, "  ... and 4 more: raymond list --all")
    assert len(caught.value.candidates) == 14


def test_an_unknown_name_is_answered_with_those_like_it_in_any_project(projects: Projects) -> None:
    projects.keep("other", review_1f3a="waiting")
    with pytest.raises(RunNotFound) as caught:
        found("reviw-1f3a")
    assert str(caught.value) == "there is no run `reviw-1f3a` here or in any other project"
    assert caught.value.hint == "did you mean `review-1f3a`?"
    with pytest.raises(RunNotFound) as caught:
        found("zzz")
    assert caught.value.hint == "`raymond list --all` shows the runs of all projects"


def test_an_empty_name_is_no_name(projects: Projects) -> None:
    projects.keep("here", ship="waiting")
    with pytest.raises(UsageError, match="the id of the run is empty"):
        found("")


# --- without a name


def test_looking_takes_the_latest_run_here(projects: Projects) -> None:
    projects.keep("here", one="waiting", two="completed")
    assert found() == ("here", "two")


@pytest.mark.parametrize("verb", ["resume", "stop", "cancel"])
def test_the_only_run_that_the_command_can_act_on_is_meant(projects: Projects, verb: str) -> None:
    failed = {} if verb == "resume" else {"failed": "failed"}
    projects.keep("here", **failed, paused="paused", over="cancelled", done="completed")
    assert found(None, verb, changes=True) == ("here", "paused")


@pytest.mark.parametrize("runs", [{"bad": "failed"}, {"bad": "failed", "done": "completed"}])
def test_what_is_about_running_runs_means_none_that_has_ended(projects: Projects, runs: dict[str, str]) -> None:
    """Or a script that waits would get the exit code of an old run."""
    projects.keep("here", **runs)
    latest = [*runs][-1]
    for verb, more in (("stop", ""), ("attach", ""), ("wait", f"; raymond wait {latest} exits with its exit code")):
        with pytest.raises(UsageError) as caught:
            found(None, verb)
        assert (str(caught.value), caught.value.exit_code) == ("no run here is running", 2)
        assert caught.value.hint == f"raymond status shows the latest run{more}"


def test_attaching_means_what_asks_when_nothing_runs(projects: Projects) -> None:
    asks = {"status": "waiting", "agents": [{"status": "asking"}]}
    projects.keep("here", asks=asks, done="completed")
    assert found(None, "attach") == ("here", "asks")
    with pytest.raises(UsageError, match="no run here is running"):
        found(None, "wait")


def test_a_failed_run_is_meant_when_nothing_else_can_be_resumed(projects: Projects) -> None:
    projects.keep("here", bad="failed", done="completed")
    assert found(None, "resume", changes=True) == ("here", "bad")


def test_a_failed_run_and_one_that_was_stopped_can_both_be_resumed(projects: Projects) -> None:
    """Neither is taken without being named: it would be retried, moved or put on other files."""
    projects.keep("here", limited={"status": "stopped", "stop_kind": "limit"}, bad="failed", done="completed")
    for verb in ("resume", "change"):
        with pytest.raises(SeveralRuns, match="2 runs match") as caught:
            found(None, verb, changes=True)
        assert [row.workflow_id for row in caught.value.candidates] == ["bad", "limited"]


def test_when_several_can_be_meant_they_are_named(projects: Projects) -> None:
    """Also a failed one, which a resume continues; where they are is not said when it is here."""
    limit = {"status": "stopped", "stop_kind": "limit", "reason": "max_turns (2) was reached"}
    projects.keep("here", one="waiting", two=limit, bad="failed", done="completed")
    with pytest.raises(SeveralRuns) as caught:
        found(None, "resume", changes=True)
    assert str(caught.value) == "3 runs match"
    assert [line.split() for line in caught.value.hint.splitlines()] == [
        ["say", "which:"],
        ["bad", "failed"],
        ["two", "stopped", "max_turns", "(2)", "was", "reached"],
        ["one", "waiting"],
    ]


def test_where_no_run_was_started_those_elsewhere_are_named_and_none_is_meant(projects: Projects) -> None:
    other = projects.keep("other", one="waiting", done="completed")
    for verb, changes, named in (("resume", True, ["one"]), ("", False, ["one", "done"])):
        with pytest.raises(SeveralRuns) as caught:
            found(None, verb, changes=changes)
        assert str(caught.value) == "no run has been started here yet"
        assert sorted(row.workflow_id for row in caught.value.candidates) == sorted(named)
        assert other.tree in caught.value.hint
    with pytest.raises(RunNotFound):
        found(None, "attach")


# --- a run where something else is expected


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["review-1"],
            "there is no command or workflow `review-1`\nhint: review-1 is a run: raymond status review-1 shows it",
        ),
        (["revi"], "there is no command or workflow `revi`\nhint: did you mean `raymond review`?"),
        (["stat"], "there is no command or workflow `stat`\nhint: did you mean `raymond start`?"),
        (
            ["run", "review-1"],
            "`review-1` is a run, not a workflow\nhint: raymond status review-1 shows it, raymond resume review-1 continues it",
        ),
        (["config", "shwo"], "there is no `shwo` in raymond config\nhint: did you mean `show`?"),
    ],
)
def test_the_id_of_a_run_is_told_from_a_workflow_and_a_misspelt_command(
    projects: Projects, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    projects.keep("other", review_1="waiting", stat_1="waiting")
    assert cli.main(args) == 2
    assert capsys.readouterr().err == f"error: {said}\n"
