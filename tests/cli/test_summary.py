"""`raymond summary`: the morning after, from anywhere."""

import json
from pathlib import Path

import pytest

from looping import HONEST, WAIT, Night
from running import Room

TWO = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n"


@pytest.mark.slow
def test_a_night_in_which_an_agent_was_wrong_twice(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, "echo 42 > answer.txt; echo ITERATION_COMPLETE", **{"two.sh": "echo no; exit 1\n"})
    ran = night.loop("--attempts", "1")
    assert ran.code == 1
    wrong = "- Wrong: the agent said 2 times that it was done while the check was red\n"
    assert wrong in ran.out
    elsewhere = night.room.raymond("-C", str(tmp_path), "summary", "n")
    where = f"\nits commands are for another folder: cd {night.path}\n"
    assert (elsewhere.returncode, elsewhere.stdout) == (0, ran.out + where), "the same, from anywhere, at any time"
    assert night.room.raymond("summary", "n").stdout == ran.out
    found = json.loads(night.room.raymond("summary", "n", "--json").stdout)
    assert (found["done"], found["claimed_while_red"]) == (["Write the answer"], 2)
    assert found["failed"] == [{"title": "Write the other", "why": "failed: `sh two.sh` ended with exit code 1: no"}]
    assert found["run"]["exit_code"] == 1
    assert any("git merge raymond/n" in one for one in found["next"])


@pytest.mark.slow
def test_all_runs_of_a_night_in_all_projects(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, "echo 42 > answer.txt; echo 'not yet'", **{"two.sh": "echo no; exit 1\n"})
    assert night.loop("--attempts", "1").code == 1
    (tmp_path / "shop").mkdir()
    flows = {
        "works": {"START.sh": "echo '<result>fine</result>'"},
        "breaks": {"START.sh": "echo broken >&2; exit 3"},
        "asks": {"START.sh": "echo '<ask next=\"END\">Well?</ask>'", "END.sh": "echo '<result>x</result>'"},
        "gives-up": {
            "START.sh": "# /// raymond\n# gate: 'false'\n# on_fail: END.sh\n# ///\necho '<result>x</result>'",
            "END.sh": "echo '<result>gave up</result>'",
        },
    }
    for id, files in flows.items():
        night.room.raymond("-C", str(tmp_path / "shop"), "run", night.room.flow(files, id), "--id", id)
    done = night.room.raymond("-C", str(tmp_path), "summary", "--since", "1h")
    assert done.returncode == 0, done.stderr
    head, *rest = done.stdout.splitlines()
    assert ": 5 runs in 2 projects, " in head
    needs, finished = "\n".join(rest).split("\ndone\n")
    for id in ("n", "breaks", "asks"):
        assert f"  {id} (" in needs
    assert "  works (works, " in finished
    assert "gives-up (gives-up, shop): completed, the gate of START.sh stayed red" in finished
    assert "    failed: Write the other (failed: `sh two.sh` ended with exit code 1: no)" in needs
    assert "    failed: main in START.sh (" in needs
    assert f"    next:   cd {night.path}\n" in needs
    assert "    next:   raymond answer asks" in needs
    rows = json.loads(night.room.raymond("summary", "--since", "1h", "--json").stdout)
    assert {one["run"]["workflow_id"] for one in rows} == {"n", *flows}
    assert night.room.raymond("summary", "n", "--since", "1h").returncode == 2


@pytest.mark.slow
def test_a_loop_at_work_is_told_as_one(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, f"{WAIT}{HONEST}")
    with night.room.start("continuous-session", "start", "--id", "n") as live:
        live.sees("Selected item")
        told = night.room.raymond("summary", "n").stdout
        assert "- Ended: not yet: it is running\n" in told
        assert told.endswith("## What to do next\n\n- watch it: raymond attach n\n")
        (tmp_path / "go").touch()
        live.wait()


def test_of_a_plain_run_the_end_of_what_its_check_printed_is_told_and_that_its_agent_was_wrong(room: Room) -> None:
    gate = "gate: 'seq 1 50; echo the last line; false'\ngate_tries: 2"
    flow = room.flow({"START.md": f"---\n{gate}\n---\nDo it.", "replies.yaml": "START: <result>done</result>"})
    assert room.raymond("run", flow, "--id", "r").returncode == 1
    found = json.loads(room.raymond("summary", "r", "--json").stdout)
    assert (found["claimed_while_red"], found["failed"][0]["why"].rpartition(" / ")[2]) == (3, "the last line")
    assert "  wrong:  the agent said 3 times that it was done while the check was red" in room.raymond("summary").stdout


@pytest.mark.slow
def test_a_run_that_cannot_be_told_hides_no_other(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, "echo 42 > answer.txt; echo 'not yet'", **{"two.sh": "echo no; exit 1\n"})
    assert night.loop("--attempts", "1").code == 1
    night.room.raymond("run", night.room.flow({"START.sh": "echo '<result>fine</result>'"}, "works"), "--id", "works")
    night.git("update-ref", "refs/raymond/n/tip", "main")
    several = night.room.raymond("summary", "--since", "1h", "--json")
    moved, works = sorted(json.loads(several.stdout), key=lambda one: str(one["run"]["workflow_id"]))
    assert (works["run"]["workflow_id"], works["failed"]) == ("works", [])
    assert moved["failed"][0]["why"].startswith("refs/raymond/n/tip is not where Raymond left it")
    journal = Path(night.room.project.run("works").journal)
    journal.write_bytes(journal.read_bytes().replace(b"fine", b"fime", 1))
    Path(night.room.project.run("works").state).unlink()
    assert "  works (.): unreadable, " in night.room.raymond("summary", "--since", "1h").stdout
    alone = night.room.raymond("summary", "n", "--json")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "puts it back" in alone.stderr


@pytest.mark.slow
def test_a_script_and_the_answer_of_a_person_claim_nothing(room: Room) -> None:
    files = {
        "START.md": "Ask.",
        "CHECK.sh": "# /// raymond\n# gate: 'false'\n# ///\necho '<result>x</result>'",
        "replies.yaml": "START: '<ask next=\"CHECK\">Is it done?</ask>'",
    }
    assert room.raymond("run", room.flow(files), "--id", "r").returncode == 3
    room.raymond("answer", "r", "yes, all of it")
    assert room.raymond("wait", "r").returncode == 1
    found = json.loads(room.raymond("summary", "r", "--json").stdout)
    assert ([one["title"] for one in found["failed"]], found["claimed_while_red"]) == (["main in CHECK.sh"], 0)
