"""Nobody but the person widens what a run may do: not a gate, not a workflow's settings, not a tag, not a checkout."""

import os
from pathlib import Path

import pytest

from builders import head, place, start
from raymond.control import preflight
from raymond.control.preflight import Proposal
from raymond.errors import Diagnostic
from raymond.language import policy
from raymond.machine import rights
from raymond.store.loader import Loaded
from trust.places import Place

# --- gates


@pytest.mark.parametrize("command", ["python3", "bash", "curl", "env", "make test"])
def test_a_gate_gives_the_agent_no_right(command: str) -> None:
    person = rights.rights_of(start(place({"START.md": ""}, "START.md"), permission_mode="dontAsk"))
    read = policy.parse(head(f"gate: {command}"), file="A.md", script=False).policy
    assert read.gate == (command,)
    assert rights.narrow(person, read) == rights.Rights("dontAsk", (), (), False)


# --- directories


def asked(cwd: Path, roots: str, *, given: list[Path]) -> list[Diagnostic]:
    workspace = place({"START.md": "", "workflow.yaml": f"roots: {roots}"}, "START.md")
    loaded = Loaded(workspace.workflow, "", {}, "")
    begun = start(workspace, cwd=str(cwd))
    return list(preflight.wider_roots(Proposal(loaded, begun, {}, [], [], roots=[str(one) for one in given])))


def test_a_workflow_opens_no_directory_by_naming_it(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    (secret := tmp_path / "secret").mkdir()
    os.symlink(secret, work / "link")
    found = asked(work, f"[{secret}, ../secret, link, sub, .]", given=[])
    assert [one.id for one in found] == ["wider-permission"] * 3
    assert found[0].message == f"the workflow wants to enter {secret}, which was not opened to it"
    assert found[0].hint == f"--root {secret}, if you mean it"
    assert (found[2].file, found[2].line, found[2].source) == (
        "workflow.yaml",
        1,
        f"roots: [{secret}, ../secret, link, sub, .]",
    )


def test_a_directory_beside_an_open_one_stays_closed(tmp_path: Path) -> None:
    for name in ("work", "open", "open-too"):
        (tmp_path / name).mkdir()
    found = asked(tmp_path / "work", "[../open, ../open/deep, ../open-too]", given=[tmp_path / "open"])
    assert [one.hint for one in found] == [f"--root {tmp_path}/open-too, if you mean it"]


def test_a_root_that_is_replaced_by_a_link_later_leads_nowhere_new(room: Place) -> None:
    """What counts is what the person opened at the start; a workflow's own folder is open because it is below the run's."""
    (room.path.parent / "secret").mkdir()
    (room.path / "sub").mkdir()
    ran = room.drive(
        {
            "START.sh": "rmdir sub && ln -s ../secret sub && echo '<reset cd=\"sub\">END</reset>'",
            "END.sh": 'echo "<result>$PWD</result>"',
            "workflow.yaml": "roots: [sub]",
        }
    )
    assert ran.code == 1
    assert f"{room.path.parent}/secret is outside {room.path}" in ran.err
