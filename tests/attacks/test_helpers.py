"""What Raymond starts for itself takes nothing from the directory that agents write in, and leaks nothing to them."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from raymond.control import arguments
from raymond.errors import UsageError
from raymond.faces import notification, notify
from raymond.system import processes
from trust.places import Place

DONE = {"START.sh": "echo '<result>done</result>'"}
PLANTED = ("raymond.py", "msgspec.py", "json.py", "signal.py", "subprocess.py", "urllib.py", "yaml.py", "click.py")
"""Modules that Raymond or one of its helpers imports, some of them late."""


def plant(room: Place) -> Path:
    """Modules in the agent's directory that leave a trace when they are imported."""
    trace = room.path.parent / "imported"
    for name in PLANTED:
        (room.path / name).write_text(f"open({str(trace)!r}, 'a').write({name!r} + ' ')\n")
    return trace


def home(room: Place) -> Path:
    return Path(room.environment["HOME"])


def console(room: Place, *args: str, **given: Any) -> "subprocess.CompletedProcess[str]":
    """Run the command as it is installed: a script that knows no directory."""
    code = "import sys; sys.argv[0] = 'raymond'; from raymond.__main__ import main; main()"
    argv = [sys.executable, "-P", "-c", code, *args]
    return subprocess.run(
        argv, cwd=room.path, env=room.environment, text=True, check=False, capture_output=True, timeout=60, **given
    )


@pytest.mark.slow
def test_a_notification_imports_nothing_from_the_directory_of_the_agent(room: Place) -> None:
    trace = plant(room)
    done = console(room, "run", room.flow(DONE), "--notify", "cat > told; pwd > where")
    assert (done.returncode, trace.exists()) == (0, False), done.stderr
    assert json.loads((home(room) / "told").read_text())["result"] == "done"
    assert (home(room) / "where").read_text() == f"{home(room)}\n"


@pytest.mark.slow
def test_the_program_of_the_tests_imports_nothing_from_the_directory_of_the_agent(room: Place) -> None:
    trace = plant(room)
    files = {"START.md": "", "replies.yaml": "START: {text: <result>ok</result>, writes: {made.txt: hello}}"}
    done = console(room, "run", room.flow(files), "--backend", "scripted-program")
    assert (done.returncode, trace.exists()) == (0, False), done.stderr
    assert (room.path / "made.txt").read_text() == "hello"


@pytest.mark.slow
def test_the_module_imports_nothing_from_the_directory_that_one_is_in(room: Place) -> None:
    """Only the package itself is looked for there by `python -m`, before any of its lines has run."""
    trace = plant(room)
    (room.path / "raymond.py").unlink()
    done = room.raymond("run", room.flow({**DONE, "workflow.yaml": "name: x"}), "--notify", "true")
    assert (done.returncode, trace.exists()) == (0, False), done.stderr


def test_a_checkout_that_is_not_installed_works_too(room: Place) -> None:
    """The helpers are found by their path: no PYTHONPATH and no directory leads to them."""
    argv = [sys.executable, "-I", "-S", notification.__file__, "cat > told", str(room.path)]
    subprocess.run(argv, input=b"{}", cwd=room.path, check=True)
    assert (room.path / "told").read_text() == "{}"


# --- a command by its path


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\ncat > told\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("./tell.sh", "HERE/tell.sh"),
        ("./tell.sh --now | cat", "HERE/tell.sh --now | cat"),
        ("a/b.sh; true", "HERE/a/b.sh; true"),
        ("../up.sh", "UP/up.sh"),
        ("notify-send raymond", "notify-send raymond"),
        ("/bin/true x", "/bin/true x"),
        ("~/bin/tell", "~/bin/tell"),
        ("cd /tmp && ./tell.sh", "cd /tmp && ./tell.sh"),
        ("http://example.org/hook", "http://example.org/hook"),
    ],
)
def test_a_relative_program_is_settled_where_it_was_said(
    said: str, means: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here/tell.sh", "here/a/b.sh", "up.sh"):
        script(tmp_path / name)
    monkeypatch.chdir(tmp_path / "here")
    assert arguments.notify_target(said) == means.replace("HERE", f"{tmp_path}/here").replace("UP", str(tmp_path))


@pytest.mark.slow
def test_a_program_that_is_not_there_is_refused_before_the_run_starts(room: Place) -> None:
    ran = room.command(DONE, "--notify", "./tell.sh")
    assert (ran.code, ran.err) == (
        2,
        f"error: --notify ./tell.sh: {room.path}/tell.sh does not exist\nhint: name a program that can be started\n",
    )
    (room.path / "tell.sh").write_text("")
    with pytest.raises(UsageError, match="is not executable"):
        arguments.notify_target(os.path.relpath(room.path / "tell.sh"))


@pytest.mark.slow
def test_an_agent_that_works_elsewhere_does_not_bring_its_own_program(room: Place) -> None:
    script(room.path / "tell.sh")
    files = {
        "START.sh": "mkdir sub; printf '#!/bin/sh\\ntouch ../forged' > sub/tell.sh; chmod +x sub/tell.sh;"
        " echo '<reset cd=\"sub\">END</reset>'",
        "END.sh": "echo '<result>done</result>'",
    }
    ran = room.command(files, "--notify", "./tell.sh")
    assert (ran.code, (room.path / "forged").exists()) == (0, False)
    assert json.loads((home(room) / "told").read_text())["event"] == "ended"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "--notify is empty"),
        (" \t", "--notify is empty"),
        ("A=1 ./tell.sh", "--notify A=1 ./tell.sh: ./tell.sh is relative"),
        ("cat >> ../log", "--notify cat >> ../log: ../log is relative"),
    ],
)
def test_a_command_that_means_another_place_is_refused(said: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)):
        arguments.notify_target(said)


def test_a_command_runs_where_no_agent_of_the_run_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert notify._away_from(str(home / "project")) == str(home)
    assert notify._away_from(str(home)) == notify._away_from(str(tmp_path)) == notify._away_from("/") == "/"
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert notify._away_from(str(home)) == "/"


# --- redirects


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Redirects whatever is posted; its address, and what was asked of it."""
    asked: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(f"POST {self.path}")
            self.send_response(int(self.path[1:]))
            self.send_header("Location", "/secret")
            self.end_headers()

        def do_GET(self) -> None:
            asked.append(f"GET {self.path}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Redirecting) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}", asked
        made.shutdown()
        thread.join()


@pytest.mark.parametrize("code", [302, 301, 303, 307, 308])
def test_a_redirect_is_not_followed_and_said(server: tuple[str, list[str]], code: int) -> None:
    address, asked = server
    argv = [sys.executable, "-I", "-S", notification.__file__, f"{address}/{code}", "/"]
    done = subprocess.run(argv, input="{}", text=True, check=False, capture_output=True)
    assert (done.returncode, asked) == (1, [f"POST /{code}"])
    said = f"not delivered: it redirects to {address}/secret ({code}), and redirects are not followed"
    assert done.stdout == f"!--notify {address}/{code}: {said}"


# --- descriptors


@pytest.mark.slow
def test_what_the_caller_left_open_reaches_neither_steps_nor_notifications(room: Place, tmp_path: Path) -> None:
    secret = os.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    high = os.dup2(secret, 251)
    look = "for fd in /proc/self/fd/*; do readlink $fd; done"
    files = {"START.sh": f"({look}) > seen; echo '<result>done</result>'"}
    try:
        argv = ("run", room.flow(files), "--notify", f"({look}) > {room.path}/told; cat > /dev/null")
        assert room.raymond(*argv, pass_fds=(secret, high)).returncode == 0
    finally:
        os.close(secret)
        os.close(high)
    for name in ("seen", "told"):
        seen = (room.path / name).read_text()
        assert f"{room.path}/{name}" in seen
        assert str(tmp_path / "secret") not in seen


def test_a_program_is_not_looked_for_in_the_directory_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin" / "my-agent")
    script(tmp_path / "my-agent")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:bin::{tmp_path}/bin")
    processes.program.cache_clear()
    assert processes.program("my-agent") == f"{tmp_path}/bin/my-agent"
    processes.program.cache_clear()
