"""Whether this machine can isolate a step: found out by doing all of it, because half of it may be allowed."""

import marshal
import os
import shutil
import subprocess
import sys
import tempfile

from msgspec import Struct

from raymond.system.files import make_private
from raymond.workspace import enter
from raymond.workspace.slot import Slot

_PATIENCE = 30.0
_SAID = "inside"
_TRY = 'test -e lower && echo new > lower && echo new > tree && ! touch /proc/sys/kernel/x 2>&- && echo "$0"'
"""What a step does there: read and write through a layer, write its tree, and fail to write elsewhere."""
_HERE = "or work here: --workspace here"

_SWITCHES = {
    "user/max_user_namespaces": 0,
    "kernel/unprivileged_userns_clone": 0,
    "kernel/apparmor_restrict_unprivileged_userns": 1,
}
"""Settings of the kernel that forbid it, and the value with which they do."""
_ALLOWS = {"user/max_user_namespaces": 10000, "kernel/unprivileged_userns_clone": 1}


class Ability(Struct, frozen=True):
    """What was found."""

    problem: str = ""
    """Why a step cannot be isolated; empty when it can."""
    hint: str = ""
    """What would allow it."""


def probe(folder: str) -> Ability:
    """Isolate a command whose tree is in `folder`, where trees are kept, or elsewhere while that is not there."""
    if sys.platform != "linux":
        return Ability("only Linux has the namespaces that it needs", "use --workspace copy or --workspace here")
    try:
        place = tempfile.mkdtemp(prefix="probe-", dir=folder if os.path.isdir(folder) else None)
    except OSError as error:
        return Ability(
            f"{folder} cannot be written: {(error.strerror or '').lower()}", "set RAYMOND_HOME to another folder"
        )
    try:
        return _probe(Slot(f"{place}/1"), f"{place}/project")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _probe(slot: Slot, project: str) -> Ability:
    slot.prepare()
    for path in (slot.tree, f"{project}/layered", f"{slot.tree}/layered"):
        make_private(path)
    with open(f"{project}/layered/lower", "w", encoding="ascii") as file:
        file.write("person's\n")
    plan = {
        "lock": slot.lock,
        "inside": f"{slot.inside}/probe",
        "report": f"{slot.path}/report",
        "net": "off",
        "cwd": f"{project}/layered",
        "mounts": [
            {"kind": "empty", "at": "/tmp", "write": True, "options": "mode=1777"},
            {"kind": "bind", "source": slot.tree, "at": project, "write": True, "optional": False, "is_file": False},
        ],
        "overlays": [
            {
                "lower": [project],
                "upper": f"{slot.layer}/upper",
                "work": f"{slot.layer}/work",
                "folders": {"layered": f"{project}/layered"},
            }
        ],
    }
    path = f"{slot.path}/plan"
    with open(path, "wb") as file:
        marshal.dump(plan, file)
    argv = [sys.executable, "-I", "-S", os.path.abspath(enter.__file__), path, "/bin/sh", "-c", _TRY, _SAID]
    try:
        done = subprocess.run(argv, cwd="/", capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _advised(str(error))
    if done.returncode == 0 and done.stdout.decode("utf-8", "replace").strip() == _SAID:
        with open(f"{project}/layered/lower", encoding="ascii") as file:
            return Ability() if file.read() == "person's\n" else Ability("what it writes is not kept apart", _HERE)
    try:
        with open(f"{slot.path}/report", encoding="utf-8", errors="replace") as file:
            said = file.read().strip().partition(" ")[2]
    except OSError:
        said = ""
    return _advised(said or done.stderr.decode("utf-8", "replace").strip()[-200:] or f"exit code {done.returncode}")


def _advised(problem: str) -> Ability:
    """What would allow it, as far as this machine shows why it does not."""
    for name, value in _SWITCHES.items():
        if _number(name) == value and (os.geteuid() != 0 or value == 0):
            setting = name.replace("/", ".")
            return Ability(f"{setting} is {value}", f"sudo sysctl {setting}={_ALLOWS.get(name, 0)}; {_HERE}")
    if "overlay" in problem:
        hint = "set RAYMOND_HOME to a folder on a local disk: not every file system can be a layer"
    elif os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        hint = "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    else:
        hint = "allow user namespaces for this user"
    return Ability(problem, f"{hint}; {_HERE}")


def _number(name: str) -> int:
    try:
        with open(f"/proc/sys/{name}", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return -1
