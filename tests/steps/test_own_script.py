"""Scripts that ship with Raymond run in a copy of the driver, and find there what a Python of their own would have."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from raymond.language.policy import Policy
from raymond.loops.starting import PLAIN, WORKFLOW
from raymond.steps import own_script
from raymond.steps.job import ScriptJob
from raymond.system import processes
from running import until

pytestmark = pytest.mark.skipif(not processes.HAS_PROC, reason="without /proc, every script is a process of its own")

BOTH = """
import io, json, os, signal, sys
from raymond.steps import own_script
from raymond.steps.job import ScriptJob
from raymond.language.policy import Policy
from raymond.system import processes

script, way = sys.argv[1:3]
origin = script + ".origin"
own_script._SHIPPED = os.path.dirname(script) + os.sep
job = ScriptJob(agent="main", state="A.py", step=1, attempt=1, cwd="/", task_folder="", home="/", roots=(),
    policy=Policy(), silence=9.0, script=script, python="", values={}, key="k", origin=origin)
os.umask(0o027)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
lock = os.open(script, os.O_RDONLY)
sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False))
print("of the driver", end="")
sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False))
print("of the driver", end="", file=sys.stderr)
held = open(os.path.dirname(script) + "/held", "w")
held.write("once")
env = {b"PATH": os.environb[b"PATH"], b"HERE": b"\\xff"}
(out, stdout), (err, stderr) = os.pipe(), os.pipe()
if way == "copy":
    run = own_script.ready(job)
    assert run
    pid = processes.fork(run, env, os.path.dirname(script), stdout=stdout, stderr=stderr)
else:
    argv = [sys.executable, "-B", script]
    pid = processes.spawn(argv, env, os.path.dirname(script), stdout=stdout, stderr=stderr)
os.close(stdout)
os.close(stderr)
said = [open(one, errors="surrogateescape").read() for one in (out, err)]
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
held.close()
held = open(os.path.dirname(script) + "/held").read()
os.write(1, json.dumps([*said, code, held]).encode())
os._exit(0)
"""
LOOKS = """
import json, os, signal, sys
found = {
    "argv": sys.argv, "orig_argv": sys.orig_argv, "name": __name__, "file": __file__, "cwd": os.getcwd(),
    "bytecode": sys.dont_write_bytecode, "umask": os.umask(0), "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
    "env": {k.decode(): repr(v) for k, v in os.environb.items() if k != b"LC_CTYPE"},
    "open": sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
    "stdin": [os.readlink("/proc/self/fd/0"), sys.stdin.read()],
    "pipes": [os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (1, 2)],
    "streams": [sys.stdout.fileno(), sys.stderr.fileno(), sys.stderr.line_buffering, sys.stdout.line_buffering],
    "ignored": [n for n in (1, 2, 13, 15, 17) if signal.getsignal(n) == signal.SIG_IGN],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
}
print(json.dumps(found))
print("to the side \\udcff", file=sys.stderr)
"""


def told(tmp_path: Path, text: str, way: str, origin: str | None = None) -> Any:
    """What a script prints to both of its pipes, its exit code, and what is in a file that the driver writes."""
    script = tmp_path / "A.py"
    script.write_text(text)
    (tmp_path / "A.py.origin").write_text(text if origin is None else origin)
    command = [sys.executable, "-c", BOTH, str(script), way]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_it_finds_what_a_process_of_its_own_finds(tmp_path: Path) -> None:
    said, printed, code, held = told(tmp_path, LOOKS, "copy")
    assert [json.loads(said), printed, code, held] == [
        json.loads((alone := told(tmp_path, LOOKS, "process"))[0]), *alone[1:]
    ]  # fmt: skip
    assert held == "once", "what the driver has not written yet is the driver's to write"


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nprint('said')\nsys.exit(3)",
        "print('said')\n\ndef fails():\n    raise ValueError('not today')\n\nfails()",
        "import os, sys\nsys.excepthook = lambda kind, error, where: (print('hooked'), sys.stdout.flush(), os._exit(0))\n1/0",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
        "import atexit, sys\nfrom raymond.loops.step import leave\nprint('said')\natexit.register(leave)\nsys.exit(0)",
    ],
    ids=["exit code", "traceback", "hook", "killed", "stopped", "left"],
)
def test_it_ends_as_a_process_of_its_own_does(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text, "copy") == told(tmp_path, text, "process")


def test_it_can_begin_again_as_a_python_of_its_own(tmp_path: Path) -> None:
    text = (
        "import os, sys\n"
        "if 'AGAIN' in os.environ:\n    print(os.environ['AGAIN'], open('/proc/self/cmdline').read())\n    sys.exit(0)\n"
        "os.environ['AGAIN'] = str(os.getsid(0) == os.getpid())\n"
        "os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])"
    )
    said = told(tmp_path, text, "copy")[0]
    assert said == "True " + "\0".join([sys.executable, "-B", str(tmp_path / "A.py"), ""]) + "\n"


DRIVER = """
import os, sys
from raymond.steps import own_script
from raymond.steps.job import ScriptJob
from raymond.language.policy import Policy

script = sys.argv[1]
own_script._SHIPPED = os.path.dirname(script) + os.sep
step = object.__new__(own_script.OwnScriptStep)
step.job = ScriptJob(agent="main", state="A.py", step=1, attempt=1, cwd="/", task_folder="", home="/", roots=(),
    policy=Policy(), silence=9.0, script=script, python="", values={}, key="k", origin=script + ".origin")
print(step._launch([], {b"PATH": os.environb[b"PATH"]}, os.path.dirname(script), 1, 2), flush=True)
os.read(0, 1)
"""


def test_one_that_is_stopped_and_hears_no_signal_ends_with_the_driver_all_the_same(tmp_path: Path) -> None:
    """Nothing in /proc tells a later driver whose it is."""
    script = tmp_path / "A.py"
    text = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGSTOP)\n"
    for path in (script, tmp_path / "A.py.origin"):
        path.write_text(text)
    argv = [sys.executable, "-c", DRIVER, str(script)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout
        copy = Path("/proc", driver.stdout.readline().strip())
        until(lambda: "State:\tT" in (copy / "status").read_text(), "the copy stops")
        driver.kill()
    until(lambda: not copy.exists() or "State:\tZ" in (copy / "status").read_text(), "the copy ends")


# Which scripts are run so


def job(script: Path, origin: str, **more: Any) -> ScriptJob:
    """A job that runs a script of the loop over items."""
    every = {"agent": "main", "state": script.name, "step": 1, "attempt": 1, "cwd": "/", "task_folder": "", "home": "/"}
    given = {**every, "roots": (), "policy": Policy(), "silence": 9.0, "script": str(script), "python": "", "key": "k"}
    return ScriptJob(**{**given, "values": {}, "origin": origin, **more})


@pytest.mark.parametrize("folder", [WORKFLOW, PLAIN])
def test_every_script_of_a_loop_is_run_so(tmp_path: Path, folder: str) -> None:
    names = [name for name in os.listdir(folder) if name.endswith(".py")]
    assert names
    for name in names:
        script = tmp_path / name
        script.write_bytes(Path(folder, name).read_bytes())
        assert own_script.ready(job(script, f"{folder}/{name}"))


def test_none_of_others_is(tmp_path: Path) -> None:
    ours, script = f"{WORKFLOW}/NEXT.py", tmp_path / "NEXT.py"
    text = Path(ours).read_text()
    script.write_text(text)
    assert own_script.ready(job(script, ours))
    assert not own_script.ready(job(script, str(script))), "it does not come from Raymond"
    assert not own_script.ready(job(script, "")), "it is of no loop"
    assert not own_script.ready(job(script, ours, python="python3")), "another Python is to run it"
    assert not own_script.ready(job(script, ours, way="isolated")), "it runs in a workspace"
    assert not own_script.ready(job(script, f"{WORKFLOW}/GONE.py")), "Raymond has none of this name any more"
    script.write_text(text + "\n")
    assert not own_script.ready(job(script, ours)), "it is not the same to the byte"
