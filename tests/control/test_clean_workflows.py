"""A workflow in which nothing was found is not looked at again until something that decides about that has changed."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from builders import start
from raymond.control import preflight
from raymond.errors import WorkflowError
from raymond.language import lint, reach
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.store import loader, program_cache
from raymond.store.home import VARIABLE
from raymond.system import bash

END = "<result>x</result>"
FILES = {"START.sh": f"echo '<goto>B</goto>' '{END}'\n", "B.sh": f"echo '{END}'\n", "lib/tool.sh": "echo 1\n"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir(0o700)
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who looked at a workflow: `lint`, or bash at a script."""
    seen: list[str] = []
    check, ask = lint.check, bash.verdicts

    def checked(*given: Any) -> Any:
        seen.append("lint")
        return check(*given)

    def asked(texts: Mapping[str, str]) -> dict[str, str]:
        seen.extend(texts)
        return ask(texts)

    monkeypatch.setattr(lint, "check", checked)
    monkeypatch.setattr(bash, "verdicts", asked)
    return seen


def load(folder: Path, files: Mapping[str, str], **said: Any) -> loader.Loaded:
    for name, text in files.items():
        path = folder / "flow" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return loader.load(str(folder / "flow"), **said)


def found(loaded: loader.Loaded, given: Collection[str] = ()) -> list[str]:
    """The ids of what a start says about the workflow."""
    told = preflight.check_workflow(loaded, "claude", given)
    told += preflight.start_warnings(loaded, start(PlacedWorkflow(loaded.workflow, "/w", "/t", False)))
    return [one.id for one in told]


def test_it_is_linted_and_read_by_bash_at_its_first_start_only(tmp_path: Path, looks: list[str]) -> None:
    assert found(load(tmp_path, FILES)) == []
    assert looks == ["lint", "B.sh", "START.sh", "lib/tool.sh"]
    looks.clear()
    assert found(load(tmp_path, FILES)) == []
    assert looks == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"START.sh": "echo '<goto>NOWHERE</goto>'\n"}, ["script-tag"]),
        ({"START.sh": f"if\necho '{END}'\n"}, ["bash-syntax"]),
        ({"lib/tool.sh": "if\n"}, ["bash-syntax"]),
        ({"workflow.yml": "max_agents: 3\n"}, ["misnamed-file"]),
    ],
)
def test_a_change_of_any_of_its_files_is_seen(
    tmp_path: Path, looks: list[str], change: dict[str, str], what: list[str]
) -> None:
    assert found(load(tmp_path, FILES)) == []
    for _ in range(2):
        looks.clear()
        assert sorted(set(found(load(tmp_path, FILES | change)))) == what
        assert "lint" in looks, "what was found is said again"


def test_what_a_start_adds_counts_too(tmp_path: Path, looks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"START.md": f"{{{{inptu}}}} {END}"}
    assert found(load(tmp_path, files), ["inptu"]) == []
    assert found(load(tmp_path, files)) == ["unbound-variable"]
    looks.clear()
    assert found(load(tmp_path, files), ["inptu"]) == []
    assert looks == []
    with pytest.raises(WorkflowError):
        found(load(tmp_path, files, overrides={"START": {"then": "NOWHERE"}}), ["inptu"])
    with monkeypatch.context() as newer:
        newer.setattr(preflight, "__version__", "99")
        found(load(tmp_path, files), ["inptu"])
    assert looks.count("lint") == 2


def test_a_run_that_continues_with_more_states_is_linted(tmp_path: Path, looks: list[str]) -> None:
    files = {"START.sh": f"echo '{END}'\n", "LATER.sh": "echo '<goto>NOWHERE</goto>'\n"}
    assert found(load(tmp_path, files)) == []
    loaded = load(tmp_path, files)
    loaded.workflow.reach = reach.also_from(loaded.workflow, ["LATER"])
    assert found(loaded) == ["script-tag"]


DANGERS = {
    "secret-in-state": {"START.md": f"Use {'sk-ant-' + 'api03-' + 'A1b2C3d4' * 12}. {END}"},
    "gate-command-unsafe": {"START.md": f"---\ngate: rm -rf /\n---\n{END}"},
}


@pytest.mark.parametrize("id", DANGERS)
def test_a_danger_is_looked_for_every_time_whatever_was_kept(tmp_path: Path, looks: list[str], id: str) -> None:
    loaded = load(tmp_path, DANGERS[id])
    program_cache.remember_clean(preflight.clean_facts(loaded, ()))
    with pytest.raises(WorkflowError) as refused:
        found(loaded)
    assert [one.id for one in refused.value.diagnostics] == [id]


def test_a_verdict_that_bash_did_not_give_in_time_is_not_taken_for_a_good_one(
    tmp_path: Path, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Mapping[str, str]] = []

    def ask(texts: Mapping[str, str]) -> dict[str, str]:
        asked.append(texts)
        return {}

    with monkeypatch.context() as slow:
        slow.setattr(bash, "verdicts", ask)
        assert found(load(tmp_path, FILES)) == []
    assert len(asked) == 1, "a start waits for bash once"
    assert found(load(tmp_path, FILES)) == []
    assert looks == ["lint", "lint", "B.sh", "START.sh", "lib/tool.sh"]
