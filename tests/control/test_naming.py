"""Which run a name means, and which one is meant without a name."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.errors import RunNotFound, UsageError
from raymond.store.home import Home
from raymond.store.project import Project

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes projects with runs, by their id and status; the current directory is one called `here`, without any."""
    home = Home(f"{tmp_path}/home")
    monkeypatch.setenv("RAYMOND_HOME", home.path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def project(name: str, **runs: str) -> Project:
        (tmp_path / name).mkdir(exist_ok=True)
        made = Project(home, str(tmp_path / name))
        made.make()
        for age, (id, status) in enumerate(runs.items()):
            folder = made.run(id.replace("_", "-"))
            os.mkdir(folder.path)
            Path(folder.journal).write_text("")
            os.utime(folder.journal, (1_000_000 + age, 1_000_000 + age))
            Path(folder.state).write_bytes(msgspec.json.encode(_state(status)))
        return made

    return project


def _state(status: str) -> dict[str, object]:
    """A state file that is believed: it is as new as the journal, which is empty."""
    return {
        "status": status,
        "agents_started": 1,
        "total_cost_usd": 0.0,
        "cost_is_estimated": False,
        "started_at": None,
        "updated_at": None,
        "journal_bytes": 0,
    }


def found(given: str | None = None, verb: str = "", *, changes: bool = False) -> tuple[str, str]:
    project, id = naming.named(given, changes=changes, verb=verb)
    return os.path.basename(project.tree), id


# --- with a name


def test_a_run_here_comes_first_a_whole_id_before_a_beginning_and_this_project_before_others(make: Make) -> None:
    make("here", ship="completed", ship_it="completed", review_1="waiting")
    make("other", review="waiting", night_1="waiting")
    assert found("ship") == ("here", "ship")
    assert found("ship-") == ("here", "ship-it")
    assert found("review") == ("other", "review")
    assert found("review-") == ("here", "review-1")
    for verb in ("", "stop", "resume", "answer", "repair"):
        assert found("nig", verb, changes=bool(verb)) == ("other", "night-1")


@pytest.mark.parametrize("verb", ["cancel", "clean"])
def test_what_cannot_be_undone_takes_the_full_id_of_a_run_elsewhere(make: Make, verb: str) -> None:
    make("here", ship="waiting")
    other = make("other", night_1="waiting")
    assert found("sh", verb, changes=True) == ("here", "ship")
    assert found("night-1", verb, changes=True) == ("other", "night-1")
    with pytest.raises(SeveralRuns) as caught:
        found("nig", verb, changes=True)
    assert str(caught.value) == f"`nig` is a run of another project: `{verb}` cannot be undone, and needs its full id"
    assert caught.value.hint == f"in full:\n  night-1  waiting  {other.tree}"


def test_several_runs_are_named_with_their_status_and_project(make: Make) -> None:
    one, two = make("one", night_1="waiting", same="failed"), make("two", night_22="completed", same="stopped")
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
    assert caught.value.hint.splitlines()[0] == "raymond -C DIR ..., with one of these:"
    make("here", same="completed")
    assert found("same") == ("here", "same")


def test_of_many_runs_a_few_are_named(make: Make) -> None:
    make("here", **{f"n{number}": "waiting" for number in range(14)})
    with pytest.raises(SeveralRuns) as caught:
        found("n")
    lines = caught.value.hint.splitlines()
    assert (len(lines), lines[-1]) == (12, "  ... and 4 more: raymond list --all")
    assert len(caught.value.candidates) == 14


def test_an_unknown_name_is_answered_with_those_like_it_in_any_project(make: Make) -> None:
    make("other", review_1f3a="waiting")
    with pytest.raises(RunNotFound) as caught:
        found("reviw-1f3a")
    assert str(caught.value) == "there is no run `reviw-1f3a` here or in any other project"
    assert caught.value.hint == "did you mean `review-1f3a`?"
    with pytest.raises(RunNotFound) as caught:
        found("zzz")
    assert caught.value.hint == "`raymond list --all` shows the runs of all projects"


def test_an_empty_name_is_no_name(make: Make) -> None:
    make("here", ship="waiting")
    with pytest.raises(UsageError, match="the id of the run is empty"):
        found("")


# --- without a name


def test_looking_takes_the_latest_run_here(make: Make) -> None:
    make("here", one="waiting", two="completed")
    assert found() == ("here", "two")


@pytest.mark.parametrize(
    ("verb", "id"),
    [("resume", "paused"), ("stop", "paused"), ("cancel", "paused"), ("wait", "done"), ("attach", "done")],
)
def test_the_only_run_that_the_command_can_act_on_is_meant(make: Make, verb: str, id: str) -> None:
    """Nobody drives any of them: there is nothing to wait for, so that the latest is told of."""
    make("here", failed="failed", paused="paused", over="cancelled", done="completed")
    assert found(None, verb, changes=True) == ("here", id)


def test_a_failed_run_is_meant_when_nothing_else_can_be_resumed(make: Make) -> None:
    make("here", bad="failed", done="completed")
    assert found(None, "resume", changes=True) == ("here", "bad")
    assert found(None, "stop", changes=True) == ("here", "done")


def test_when_several_can_be_meant_they_are_named(make: Make) -> None:
    here = make("here", one="waiting", two="paused", done="completed")
    with pytest.raises(SeveralRuns) as caught:
        found(None, "resume", changes=True)
    assert str(caught.value) == "2 runs can be meant"
    assert caught.value.hint == f"say which:\n  two  paused   {here.tree}\n  one  waiting  {here.tree}"


def test_where_no_run_was_started_those_elsewhere_are_named_and_none_is_meant(make: Make) -> None:
    other = make("other", one="waiting", done="completed")
    for verb, changes, named in (("resume", True, ["one"]), ("", False, ["one", "done"])):
        with pytest.raises(SeveralRuns) as caught:
            found(None, verb, changes=changes)
        assert str(caught.value) == "no run has been started here yet"
        assert sorted(row.workflow_id for row in caught.value.candidates) == sorted(named)
        assert other.tree in caught.value.hint
    with pytest.raises(RunNotFound):
        found(None, "attach")
