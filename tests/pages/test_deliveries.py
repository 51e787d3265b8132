"""What else delivers events in the example: the lines for cron, the units of systemd and the workflow of GitHub Actions."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pages.delivering import EVENTS, RESULT, Machine
from running import PATIENCE

ISSUE = EVENTS / "workflow" / "lib" / "issue.json"
UNITS = sorted(path.name for path in EVENTS.glob("raymond-*"))
NONE: Any = subprocess.DEVNULL


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.clear()


def today() -> str:
    return subprocess.run(["date", "+%F"], capture_output=True, text=True, check=True).stdout.strip()


# --- cron


def crontab(machine: Machine) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What the file sets, and its lines: when, and what; a % is written with a backslash, as cron wants it."""
    settings, lines = {}, []
    for line in machine.here((EVENTS / "crontab").read_text("utf-8")).splitlines():
        if line.startswith("#"):
            continue
        entry = re.fullmatch(r"(@reboot|(?:\S+ ){4}\S+) +(.*)", line)
        if set_here := re.fullmatch(r"([A-Z]+)=(.*)", line):
            settings[set_here[1]] = set_here[2]
        elif entry:
            assert not re.search(r"(?<!\\)%", entry[2]), "cron ends the command there"
            lines.append((entry[1], entry[2].replace("\\%", "%")))
        else:
            assert not line
    return settings, lines


def by_cron(machine: Machine, number: int) -> "subprocess.CompletedProcess[str]":
    """Do what cron does with a line, in the little environment that cron has."""
    settings, lines = crontab(machine)
    home = str(machine.ada)
    environment = {"HOME": home, "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "ada", **settings}
    argv = ["/bin/sh", "-c", lines[number][1]]
    return subprocess.run(
        argv, cwd=home, env=environment | machine.mark, stdin=NONE, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.slow
def test_the_line_of_each_morning_starts_one_run_a_day_however_often_cron_asks(machine: Machine) -> None:
    before = today()
    first = by_cron(machine, 0)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    [key] = machine.project.ids()
    assert key in (f"morning-{before}", f"morning-{today()}")
    assert machine.ended(key) == (0, RESULT)
    if today() == before:
        again = by_cron(machine, 0)
        assert (again.returncode, again.stdout, again.stderr, machine.project.ids()) == (0, "", "", [key])


@pytest.mark.slow
def test_the_line_for_a_folder_starts_a_run_for_each_payload_and_keeps_what_is_refused(machine: Machine) -> None:
    folder = machine.ada / "events"
    folder.mkdir()
    assert by_cron(machine, 1).stderr == ""
    for name in ("a b.json", "the same again.json"):
        shutil.copy(ISSUE, folder / name)
    (folder / "bytes.json").write_bytes(b"\xff")
    refused = by_cron(machine, 1)
    assert "bytes.json` is not UTF-8" in refused.stderr
    [aside] = folder.iterdir()
    assert re.fullmatch(r"bytes\.json\.[0-9]+\.refused", aside.name)
    assert aside.read_bytes() == b"\xff"
    assert by_cron(machine, 1).stderr == "", "it is not refused again every minute"
    [key] = machine.project.ids()
    assert machine.ended(key) == (0, RESULT)


@pytest.mark.slow
def test_the_line_for_a_folder_keeps_payloads_for_which_there_is_no_workflow(machine: Machine) -> None:
    folder, workflow = machine.ada / "events", machine.path / "workflows" / "events"
    folder.mkdir()
    shutil.copy(ISSUE, folder / "issue.json")
    workflow.rename(workflow.parent / "elsewhere")
    assert "there is no `workflows/events`" in by_cron(machine, 1).stderr
    assert [one.name for one in folder.iterdir()] == ["issue.json"]
    (workflow.parent / "elsewhere").rename(workflow)
    assert by_cron(machine, 1).stderr == ""
    assert list(folder.iterdir()) == []
    assert len(machine.project.ids()) == 1


@pytest.mark.slow
def test_the_line_for_a_boot_continues_what_was_cut_off(machine: Machine) -> None:
    assert crontab(machine)[1][2][0] == "@reboot"
    done = by_cron(machine, 2)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- systemd


@pytest.mark.parametrize("name", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit(machine: Machine, name: str) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("not installed: systemd-analyze")
    folder = machine.ada / "units"
    folder.mkdir()
    for unit in UNITS:  # a timer needs its service
        (folder / unit).write_text(placed(machine, unit), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", folder / name], capture_output=True, text=True)
    if re.search(r"Failed to (?:initialize manager|create)", done.stderr):
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.splitlines()[0]}")
    assert (done.returncode, done.stderr) == (0, "")


def placed(machine: Machine, unit: str) -> str:
    """A unit, with the places of this machine."""
    text = machine.here((EVENTS / unit).read_text("utf-8"))
    return text.replace("/usr/local/lib/raymond/receiver.py", str(EVENTS / "receiver.py")).replace("User=ada\n", "")


def setting(text: str, name: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith(f"{name}=")]
    return line.partition("=")[2]


def by_systemd(machine: Machine, unit: str) -> tuple[list[str], dict[str, Any]]:
    """The command of a unit as systemd starts it: where, and with which environment."""
    text = placed(machine, unit)
    runtime = machine.ada / "run"
    line = (
        setting(text, "ExecStart").replace("${RUNTIME_DIRECTORY}", str(runtime)).replace("$$", "$").replace("%%", "%")
    )
    name, _, value = setting(text, "Environment").partition("=")
    environment = {"HOME": str(machine.ada), name: value, **machine.mark}
    return shlex.split(line), {"cwd": setting(text, "WorkingDirectory"), "env": environment, "stdin": NONE}


@pytest.mark.slow
def test_the_unit_of_each_morning_starts_one_run_a_day(machine: Machine) -> None:
    argv, how = by_systemd(machine, "raymond-morning.service")
    before = today()
    outs = {subprocess.run(argv, **how, capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert f"morning-{before}\n" in outs
    assert sorted(out.strip() for out in outs) == sorted(machine.project.ids())
    assert machine.ended(f"morning-{before}") == (0, RESULT)


@pytest.mark.slow
def test_the_unit_of_the_receiver_starts_it(machine: Machine) -> None:
    argv, how = by_systemd(machine, "raymond-receiver.service")
    how["env"]["WEBHOOK_SECRET"] = "It's a secret to everybody"
    with subprocess.Popen([*argv, "--port", "0"], **how, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline().startswith("listening on http://127.0.0.1:")
        process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("name", [name for name in UNITS if name.endswith(".service")])
def test_a_unit_leaves_the_runs_alone_and_grants_no_more_than_they_need(name: str) -> None:
    text = (EVENTS / name).read_text("utf-8")
    assert setting(text, "KillMode") == "process"
    assert setting(text, "NoNewPrivileges") == "yes"
    assert setting(text, "ProtectSystem") == "strict"
    assert setting(text, "CapabilityBoundingSet") == ""


# --- GitHub Actions


ACTIONS = (EVENTS / "github-actions.yml").read_text("utf-8")


def steps() -> list[dict[str, Any]]:
    [job] = yaml.safe_load(ACTIONS)["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def test_the_job_may_only_read_and_runs_for_the_label_alone() -> None:
    document = yaml.safe_load(ACTIONS)
    assert document[True] == {"issues": {"types": ["labeled"]}}  # `on` is a boolean of YAML 1.1
    assert document["permissions"] == {"contents": "read"}
    [job] = document["jobs"].values()
    assert job["if"] == "github.event.label.name == 'raymond'"
    assert "permissions" not in job
    [checkout] = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"] == {"persist-credentials": False}


def test_no_expression_stands_in_a_script() -> None:
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) == 2
    assert [script for script in scripts if "${{" in script] == []


def test_only_the_step_that_runs_agents_has_a_secret() -> None:
    assert [step["name"] for step in steps() if "secrets." in json.dumps(step)] == ["Run"]


@pytest.mark.slow
def test_the_scripts_of_the_job_do_what_they_say_and_a_second_attempt_starts_nothing(machine: Machine) -> None:
    temp, summary = machine.ada / "temp", machine.ada / "summary.md"
    temp.mkdir()
    github = {
        "GITHUB_EVENT_PATH": str(ISSUE),
        "GITHUB_RUN_ID": "1658821493",
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(temp),
        "PATH": machine.searched,
        "HOME": str(machine.ada),
        **machine.mark,
    }
    for _ in range(2):
        for step in [step for step in steps() if "run" in step]:
            given = {name: re.sub(r"\$\{\{ runner\.temp \}\}", str(temp), value) for name, value in step["env"].items()}
            given = {name: re.sub(r"\$\{\{ secrets\..*?\}\}", "", value) for name, value in given.items()}
            argv = ["bash", "-e", "-c", step["run"]]
            done = subprocess.run(
                argv, cwd=machine.path, env=github | given, capture_output=True, text=True, stdin=NONE
            )
            assert done.returncode == 0, done.stderr
    assert summary.read_text("utf-8") == RESULT * 2
    listed = machine.raymond("list", "--json", environment={"RAYMOND_HOME": str(temp / "raymond")}).stdout
    assert [row["workflow_id"] for row in json.loads(listed)] == ["actions-1658821493"]
    packed = subprocess.run(["tar", "-tzf", temp / "raymond.tar.gz"], capture_output=True, text=True, check=True).stdout
    assert "/runs/actions-1658821493/journal.jsonl\n" in packed
    assert not (machine.path / "pwned").exists()
