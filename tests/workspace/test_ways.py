"""Which way agents work is said, never chosen silently, and refused where it cannot be had."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import RunStarted, TreeMade, WorkSaved
from raymond.workspace import ability
from running import PATIENCE, Room
from typist import Typist

NONE = "for name in user mnt; do echo 0 > /proc/sys/user/max_${name}_namespaces || exit 99; done"
WITHOUT = ("unshare", "-U", "-r", "sh", "-c", f'{NONE}; exec "$@"', "sh")
"""A user namespace in which no other can be made."""
WRITES = {"START.sh": "echo done > work.txt; echo '<result>ok</result>'\n"}
HERE = "or work here: --workspace here"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A project with one commit."""
    room = Room(tmp_path)
    git(room, "init", "-q", "-b", "main")
    (room.path / "a.txt").write_text("a\n")
    git(room, "add", "-A")
    git(room, "-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "one")
    yield room
    room.clear()


def git(room: Room, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=room.path, env=room.environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def can_isolate(room: Room) -> None:
    found = ability.probe(str(room.path.parent))
    if found.problem:
        pytest.skip(f"steps cannot be isolated here: {found.problem}")


def without(room: Room, *args: str) -> "subprocess.CompletedProcess[str]":
    """A command on a machine that gives no namespaces to anybody."""
    if not shutil.which("unshare") or subprocess.run([*WITHOUT, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine has no user namespace in which others can be forbidden")
    argv = [*WITHOUT, sys.executable, "-m", "raymond", *args]
    return subprocess.run(
        argv, cwd=room.path, env=room.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


# --- said


def test_the_first_line_the_journal_status_and_json_say_where_agents_work(room: Room) -> None:
    can_isolate(room)
    ran = room.command(WRITES, "--workspace", "isolated")
    assert ran.lines[0] == "run r started isolated: flow at START.sh, budget $10.00 (default)"
    [started] = ran.all(RunStarted)
    assert (started.workspace, started.carry, started.lend, started.net) == ("isolated", [], [], "")
    head = git(room, "rev-parse", "HEAD").strip()
    assert ran.all(TreeMade) == [TreeMade(head=head, commit=head)]
    [saved] = ran.all(WorkSaved)
    assert saved.commit == git(room, "rev-parse", "refs/raymond/r/tip").strip()
    shown = json.loads(room.raymond("status", "r", "--json").stdout)
    assert (shown["workspace"], shown["work"]) == ("isolated", saved.commit)
    status = room.raymond("status", "r").stdout
    assert "workspace: it went when the run ended; the work is in refs/raymond/r/tip\n" in status
    assert status.endswith("next: raymond apply r\n")


@pytest.mark.slow
def test_a_workspace_stays_while_something_in_it_is_nowhere_else(room: Room) -> None:
    can_isolate(room)
    leaves = {"START.sh": "echo done > work.txt; truncate -s 2G huge; echo '<result>ok</result>'\n"}
    ran = room.command(leaves, "--workspace", "isolated")
    tree = room.folder() / "workspace" / "1" / "tree"
    assert "not taken from the workspace: huge (larger than 1 GiB)" in ran.err
    assert f"the workspace stays, for what was not taken is nowhere else: {tree}" in ran.err
    assert (tree / "huge").stat().st_size == 2 << 30
    refused = room.raymond("clean", "r")
    assert refused.returncode == 1
    assert "r stays: huge in its workspace is nowhere else (larger than 1 GiB)\n" in refused.stderr
    assert f"copy what you need from {tree}, then raymond clean --force r\n" in refused.stderr
    assert room.raymond("apply", "r").returncode == 0
    assert (room.path / "work.txt").read_text() == "done\n"
    assert room.raymond("clean", "--force", "r").returncode == 0
    assert not tree.exists()


def test_the_task_folder_is_the_one_of_the_project(room: Room) -> None:
    can_isolate(room)
    flow = {"START.sh": "echo report > $RAYMOND_TASK_FOLDER/report.md; echo '<goto>NEXT</goto>'", "NEXT.sh": "set -e; grep report $RAYMOND_TASK_FOLDER/report.md; ln -s / link; echo '<result>ok</result>'"}  # fmt: skip
    ran = room.command(flow, "--workspace", "isolated")
    assert ran.code == 0, ran.err
    assert (room.path / ".raymond/tasks/r/main/report.md").read_text() == "report\n"
    assert git(room, "diff", "--name-only", "refs/raymond/r/base", "refs/raymond/r/tip") == "link\n"


@pytest.mark.slow
def test_work_of_an_earlier_run_with_the_same_id_is_not_overwritten(room: Room) -> None:
    can_isolate(room)
    assert room.command(WRITES, "--workspace", "isolated").code == 0
    tip = git(room, "rev-parse", "refs/raymond/r/tip")
    assert room.raymond("clean", "r").returncode == 0
    done = room.raymond("run", room.flow(WRITES), "--id", "r", "--workspace", "isolated")
    assert done.stderr.startswith("error: refs/raymond/r/tip has the work of an earlier run\n")
    assert (done.returncode, git(room, "rev-parse", "refs/raymond/r/tip")) == (2, tip)


@pytest.mark.slow
def test_a_home_behind_a_link_is_no_hindrance(room: Room, tmp_path: Path) -> None:
    can_isolate(room)
    (tmp_path / "far/home").mkdir(parents=True)
    (tmp_path / "near").symlink_to("far/home")
    environment = {"HOME": str(tmp_path / "near"), "RAYMOND_HOME": "", "XDG_STATE_HOME": ""}
    for id in ("one", "two"):
        done = room.raymond("run", room.flow(WRITES), "--id", id, "--workspace", "isolated", environment=environment)
        assert done.returncode == 0, done.stderr


def test_runs_that_are_kept_in_the_project_are_no_part_of_it(room: Room) -> None:
    done = room.raymond(
        "run", room.flow(WRITES), "--workspace", "copy", environment={"RAYMOND_HOME": str(room.path / "runs")}
    )
    assert (done.returncode, "the runs of this project are kept in it" in done.stderr) == (2, True)


@pytest.mark.slow
def test_a_run_can_begin_in_an_empty_folder(room: Room) -> None:
    can_isolate(room)
    (room.path / "empty").mkdir()
    flow = room.flow({"START.sh": "echo new > new; echo '<result>ok</result>'"})
    done = room.raymond("run", flow, "--id", "r", "--workspace", "isolated", cwd=room.path / "empty")
    assert done.returncode == 0, done.stderr
    assert git(room, "show", "refs/raymond/r/tip:empty/new") == "new\n"


@pytest.mark.slow
def test_a_dry_run_says_where_agents_would_work_and_makes_nothing(room: Room) -> None:
    can_isolate(room)
    (room.path / "data").mkdir()
    flow = room.flow({**WRITES, "workflow.yaml": "lend: [PATH]\ncarry: [data]\nnet: off\n"})
    done = room.raymond("run", flow, "--workspace", "isolated", "--dry-run")
    assert "works:    isolated; carried: data; lent: PATH; no network\n" in done.stdout
    told = json.loads(room.raymond("run", flow, "--workspace", "isolated", "--dry-run", "--json").stdout)
    assert told["workspace"] == "isolated"
    assert git(room, "for-each-ref", "refs/raymond") == ""


def test_without_a_word_agents_work_here(room: Room) -> None:
    ran = room.command(WRITES)
    assert ran.lines[0] == "run r started here: flow at START.sh, budget $10.00 (default)"
    assert (room.path / "work.txt").read_text() == "done\n"


@pytest.mark.slow
def test_the_workflow_sets_the_way_and_the_flag_wins(room: Room) -> None:
    can_isolate(room)
    files = {**WRITES, "workflow.yaml": "workspace: isolated\n"}
    assert room.command(files).lines[0].startswith("run r started isolated:")
    assert not (room.path / "work.txt").exists()
    assert room.command(files, "--workspace", "here", id="s").lines[0].startswith("run s started here:")
    assert (room.path / "work.txt").exists()


# --- narrowed


@pytest.mark.slow
def test_a_state_narrows_its_run_and_the_others_work_here(room: Room) -> None:
    can_isolate(room)
    files = {
        "START.sh": "echo here > mine.txt; echo '<goto>APART.sh</goto>'\n",
        "APART.sh": "# /// raymond\n# workspace: isolated\n# ///\necho apart > theirs.txt; echo '<goto>END.sh</goto>'\n",
        "END.sh": 'ls; echo "<result>$(ls)</result>"\n',
    }
    ran = room.command(files)
    assert ran.code == 0, ran.err
    assert ran.result == "a.txt\nmine.txt"
    assert git(room, "ls-tree", "--name-only", "refs/raymond/r/tip").split() == ["a.txt", "theirs.txt"]


@pytest.mark.parametrize(
    ("policy", "flag", "refusal"),
    [
        ("workspace: here", "isolated", "START.sh says `workspace: here`, and the run works isolated"),
        ("lend: [ssh]", "isolated", "START.sh is lent `ssh`, and its run is not"),
        ("net: off", "copy", "`net: off` needs --workspace isolated"),
    ],
)
def test_a_state_cannot_have_more_than_its_run(room: Room, policy: str, flag: str, refusal: str) -> None:
    flow = room.flow({"START.sh": f"# /// raymond\n# {policy}\n# ///\necho '<result>x</result>'\n"})
    done = room.raymond("run", flow, "--workspace", flag, "--id", "r")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {refusal}")
    assert not room.folder().exists()


@pytest.mark.slow
def test_a_prompt_of_a_program_that_needs_the_network_is_refused_without_it(room: Room) -> None:
    flow = room.flow({"START.md": "---\nnet: off\n---\n<result>x</result>\n"})
    done = room.raymond("run", flow, "--workspace", "isolated", "--backend", "claude")
    assert done.returncode == 2
    assert "START.md has `net: off`, and claude needs the network" in done.stderr


# --- without namespaces


@pytest.mark.slow
def test_doctor_isolates_a_command_to_find_out_whether_it_can(room: Room) -> None:
    can_isolate(room)
    assert "ok   workspace: steps can be isolated: --workspace isolated\n" in room.raymond("doctor").stdout
    told = without(room, "doctor").stdout
    assert "note workspace: steps cannot be isolated: user.max_user_namespaces is 0\n" in told
    assert f"     hint: sudo sysctl user.max_user_namespaces=10000; {HERE}\n" in told
    assert not room.home.exists()


@pytest.mark.slow
def test_without_namespaces_isolated_is_an_error_and_nothing_else_is_chosen(room: Room) -> None:
    done = without(room, "run", room.flow(WRITES), "--workspace", "isolated", "--id", "r")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: steps cannot be isolated on this machine: user.max_user_namespaces is 0",
        f"hint: sudo sysctl user.max_user_namespaces=10000; {HERE}",
    ]
    assert not room.folder().exists()
    assert not (room.path / "work.txt").exists()


@pytest.mark.slow
def test_without_namespaces_a_copy_works(room: Room) -> None:
    done = without(room, "run", room.flow(WRITES), "--workspace", "copy", "--id", "r")
    assert done.returncode == 0, done.stderr
    assert "run r started in a copy: flow at START.sh" in done.stderr
    assert not (room.path / "work.txt").exists()
    assert room.raymond("apply", "r").returncode == 0
    assert (room.path / "work.txt").read_text() == "done\n"


def test_a_file_system_that_cannot_be_a_layer_is_named(tmp_path: Path) -> None:
    if os.geteuid() != 0 or ability.probe(str(tmp_path)).problem:
        pytest.skip("needs root and namespaces")
    layered = tmp_path / "overlay"
    for name in ("lower", "upper", "work", "overlay"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    try:
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(layered)], check=True)
    except subprocess.CalledProcessError:
        pytest.skip("this machine mounts no overlay")
    try:
        found = ability.probe(str(layered))
    finally:
        subprocess.run(["umount", str(layered)], check=True)
    assert found.problem.startswith("overlay")
    assert found.hint.startswith("set RAYMOND_HOME to a folder on a local disk")


# --- a copy


@pytest.mark.slow
def test_a_copy_is_refused_where_installed_packages_name_the_project(room: Room) -> None:
    (room.path / ".gitignore").write_text(".venv\n")
    (room.path / ".venv" / "bin").mkdir(parents=True)
    (room.path / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (room.path / ".venv" / "bin" / "tool").write_text(f"#!{room.path}/.venv/bin/python\n")
    done = room.raymond("run", room.flow(WRITES), "--workspace", "copy", "--id", "r")
    assert done.returncode == 2
    told = f"error: .venv/bin/tool names {room.path}: in a copy, it would use your files instead of the agent's"
    assert done.stderr.splitlines()[0] == told
    assert not room.folder().exists()


@pytest.mark.slow
def test_a_copy_has_its_own_packages(room: Room) -> None:
    (room.path / ".gitignore").write_text("node_modules\n")
    (room.path / "node_modules" / "x").mkdir(parents=True)
    (room.path / "node_modules" / "x" / "index.js").write_text("yours\n")
    script = "cat node_modules/x/index.js; echo mine > node_modules/x/index.js; echo '<result>ok</result>'\n"
    ran = room.command({"START.sh": script}, "--workspace", "copy")
    assert ran.transcript()[0]["out"].splitlines()[0] == "yours"
    assert (room.path / "node_modules" / "x" / "index.js").read_text() == "yours\n"
    assert git(room, "for-each-ref", "refs/raymond/r/tip") == "", "what is carried is never harvested"


# --- a step that starts a run


def test_a_run_inside_an_isolated_step_is_refused_before_anything_is_paid(room: Room) -> None:
    can_isolate(room)
    inner = f"{sys.executable} -m raymond run inner.sh 2>&1; echo code $? | tee work; echo '<result>ok</result>'\n"
    (room.path / "inner.sh").write_text("echo paid > paid; echo '<result>x</result>'\n")
    ran = room.command({"START.sh": inner}, "--workspace", "isolated")
    said = ran.transcript()[0]["out"]
    assert said.startswith("error: a step that works isolated cannot start a run\n")
    assert "\ncode 2\n" in said
    assert git(room, "diff", "--name-only", "refs/raymond/r/base", "refs/raymond/r/tip") == "work\n"


# --- a shell


@pytest.mark.slow
def test_a_shell_opens_where_the_agents_work(room: Room) -> None:
    can_isolate(room)
    files = {"START.sh": "echo one > one.txt; exit 3\n"}
    assert room.command(files, "--workspace", "isolated").code == 1
    done = room.raymond("shell", "r", environment={"SHELL": "/bin/ls"})
    assert (done.returncode, done.stdout.split()) == (0, ["a.txt", "one.txt"])
    done = room.raymond("shell", "r", "nobody", environment={"SHELL": "/bin/ls"})
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: r has no agent `nobody`")


TYPES = """
import fcntl, sys, termios
with open("/dev/tty", "wb", buffering=0) as terminal:
    for sign in b" touch PWNED\\n":
        fcntl.ioctl(terminal, termios.TIOCSTI, bytes([sign]))
"""
OPENS = """
import fcntl, os, sys, termios
from raymond.system import terminals
code = terminals.run([sys.executable, "-c", sys.argv[1]], "/", os.environb)
waiting = fcntl.ioctl(0, termios.FIONREAD, bytes(4))
print("code", code, "waiting", int.from_bytes(waiting, "little"))
"""


def test_a_shell_has_a_terminal_of_its_own(room: Room) -> None:
    """What an agent has left there cannot type into the terminal of the person."""
    typist = Typist(room, program=[sys.executable, "-c", OPENS, f"{TYPES}\nprint('typed'); sys.exit(7)"])
    said = typist.sees("waiting \\d+")
    if "typed" not in said:
        pytest.skip("this kernel lets nobody type for others")
    assert said.endswith("code 7 waiting 0")
    typist.end()


@pytest.mark.slow
def test_what_has_no_workspace_is_not_applied_or_opened(room: Room) -> None:
    room.command(WRITES)
    for command in ("apply", "shell"):
        done = room.raymond(command, "r")
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: r has no workspace")
