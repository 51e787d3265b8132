"""Rule 1: a step can write its tree, its layers, its /tmp, its home and its own folder; everything else is read-only."""

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from workspace.person import Person, daily, walked

ALLOWED = ("tree", "home", "tmp", "shm", "installed", "cache")
TRY = """
import json, os, stat, sys

def writable(path):
    # A folder: make a file in it. A file: open it for writing, which changes nothing.
    try:
        if os.path.isdir(path):
            name = os.path.join(path, ".probe-of-a-step")
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(name)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
        return True
    except OSError:
        return False

def plain(text):
    return text.encode().decode("unicode_escape")
"""
EVERY_MOUNT = f"""{TRY}
with open("/proc/self/mountinfo") as file:
    places = {{plain(line.split(" ")[4]) for line in file}}
print(json.dumps(sorted(place for place in places if writable(place))))
"""
EVERYWHERE = f"""{TRY}
found, pending = [], ["/"]
while pending:
    folder = pending.pop()
    if folder in {{"/proc"}} | set(sys.argv[1:]):
        continue
    if writable(folder):
        found.append(folder)
        continue
    try:
        with os.scandir(folder) as entries:
            pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        pass
print(json.dumps(sorted(found)))
"""
IN_PROC = f"""{TRY}
found = []
for above, names, files in os.walk("/proc"):
    names[:] = [name for name in names if not (above == "/proc" and name.isdigit())]
    found += [path for name in files if not os.path.islink(path := os.path.join(above, name)) and writable(path)]
for above, names, files in os.walk("/sys"):
    found += [path for name in files if writable(path := os.path.join(above, name))]
print(json.dumps(sorted(found)))
"""
OF_A_DEVICE = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
OF_A_NAMESPACE = r"/proc/(sys/kernel/ns_last_pid|pressure/\w+)"
"""What an ordinary user may write below /proc: of the step's own namespace, and a request to be told of load."""


def furnished(person: Person) -> set[str]:
    """Installed packages and a cache; every place that a step may write."""
    person.begin().furnish()
    person.write("node_modules/x/index.js", "1\n")
    person.write(person.home / ".cache/pip/x", "1\n")
    own = (person.project, person.home, person.project / "node_modules", person.home / ".cache")
    return {*map(str, own), "/tmp", "/dev/shm"}


@daily
def test_of_all_mounts_only_the_step_s_own_can_be_written(person: Person) -> None:
    allowed = furnished(person)
    before = person.possessions()
    found = set(person.python_inside(EVERY_MOUNT))
    assert found - OF_A_DEVICE == allowed
    assert person.possessions() == before


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_all_folders_of_the_machine_only_the_step_s_own_can_be_written(person: Person) -> None:
    allowed = furnished(person)
    before = person.possessions()
    assert set(person.python_inside(EVERYWHERE, timeout=500)) == {
        str(one) for one in allowed if not one.startswith((f"{person.project}/", f"{person.home}/"))
    }
    assert person.possessions() == before


@daily
def test_nothing_of_the_whole_machine_can_be_opened_for_writing_below_proc_and_sys(person: Person) -> None:
    person.begin()
    found = person.python_inside(IN_PROC)
    if person.user == 0:
        assert found == []
    else:
        assert [path for path in found if not re.fullmatch(OF_A_NAMESPACE, path)] == []


def test_a_step_has_no_capability_that_could_undo_its_place(person: Person) -> None:
    person.begin()
    kept = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7)) if person.user == 0 else 0
    for process in ("self", "1"):
        said = person.inside(f"cat /proc/{process}/status").splitlines()
        status = dict(line.split(":\t", 1) for line in said if ":\t" in line)
        for name in ("CapEff", "CapPrm", "CapBnd"):
            assert int(status[name], 16) == kept, name
        assert (int(status["CapInh"], 16), int(status["CapAmb"], 16)) == (0, 0)
        assert status["NoNewPrivs"] == "1"


UNCOVER = {
    "umount of its tree": "umount {project}; umount -l {project}",
    "umount of its home": "umount -l {home}",
    "umount of everything": "umount -a -l; umount -l /",
    "remount": "mount -o remount,rw /; mount -o remount,rw,bind {other}",
    "bind": "mkdir -p /tmp/x; mount --bind {other} /tmp/x; touch /tmp/x/made",
    "move": "mkdir -p /tmp/x; mount --move {project} /tmp/x",
    "overlay": "mkdir -p /tmp/u /tmp/w; mount -t overlay -o lowerdir={other},upperdir=/tmp/u,workdir=/tmp/w o {other}",
    "tmpfs": "mount -t tmpfs t {other}; touch {other}/made",
    "nested namespaces": "unshare -Urm sh -c 'umount -l {project}; umount -l {home}; mount -o remount,rw /; mount -o remount,rw,bind {other}; touch {other}/made; cat {project}/marker {home}/.ssh/id'",
    "nested, twice": "unshare -Urm unshare -Urm sh -c 'umount -l {project}; umount -l /; cat {project}/marker {home}/.ssh/id'",
    "root of the first process": "cat /proc/1/root{home}/.ssh/id; echo x > /proc/1/root{other}/made",
    "namespaces of others": "for one in /proc/[0-9]*/ns/mnt; do nsenter --mount=$one cat {home}/.ssh/id; done",
    "chroot": "chroot /proc/1/root cat {home}/.ssh/id",
    "pivot": "mkdir -p /tmp/r; pivot_root /tmp/r /tmp/r; cat {home}/.ssh/id",
    "a device": "mknod /tmp/disk b 254 0; mknod /tmp/disk b 8 0; head -c 1 /tmp/disk && echo secret",
    "a handle": "python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(304, -100, 0, 0))'",
}


@pytest.mark.parametrize("how", UNCOVER)
def test_nothing_that_is_hidden_can_be_uncovered(person: Person, how: str) -> None:
    person.begin().furnish()
    other = person.folder / "other"
    person.write(person.home / ".ssh/id", "secret\n", 0o600)
    before = person.possessions()
    person.make_tree()
    person.write("marker", "secret\n")
    script = UNCOVER[how].format(project=person.project, home=person.home, other=other)
    said = person.inside(f"{{ {script}; }} 2>&1; true")
    assert "secret" not in said.splitlines()
    (person.project / "marker").unlink()
    assert person.possessions() == before


CONTROL = "mount -t cgroup2 c /mnt && echo mounted; mkdir /mnt/of-a-step && echo made"


def test_control_groups_cannot_be_mounted(person: Person) -> None:
    person.begin()
    tries = [f"unshare {flags} sh -c '{CONTROL}'" for flags in ("-UrmC", "-Urm", "-UmC", "-mC")]
    said = person.inside(f"{{ {'; '.join(tries)}; {CONTROL}; }} 2>&1; true")
    assert {"mounted", "made"}.isdisjoint(said.splitlines()), said


def test_devices_can_be_used_and_not_changed(person: Person) -> None:
    person.begin()
    before = {name: os.stat(f"/dev/{name}") for name in ("null", "full", "urandom")}
    said = person.inside(
        """
        echo x > /dev/null && head -c 3 /dev/urandom | wc -c
        chmod 600 /dev/full /dev/null; touch -d 2001-02-03 /dev/full; chown 1 /dev/full; true
        """
    )
    assert said == "3\n"
    for name, known in before.items():
        now = os.stat(f"/dev/{name}")
        assert (now.st_mode, now.st_uid, now.st_mtime) == (known.st_mode, known.st_uid, known.st_mtime)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_elsewhere_is_none(person: Person) -> None:
    person.begin()
    device = person.folder / "device"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(device, 0o666)
    assert person.inside(f"echo x > '{device}' || echo refused") == "refused\n"
    (person.project / "device").unlink(missing_ok=True)


def test_a_step_that_runs_in_tmp_writes_nothing_there_that_stays(person: Person, tmp_path: Path) -> None:
    person.begin()
    person.inside("echo x > /tmp/of-a-step; echo x > /dev/shm/of-a-step; echo x > $HOME/of-a-step")
    assert not any(os.path.exists(f"{folder}/of-a-step") for folder in ("/tmp", "/dev/shm", person.home))
    assert person.inside("ls -A /tmp /dev/shm $HOME | grep of-a-step || echo gone") == "gone\n"


@daily
def test_writes_to_installed_packages_and_caches_stay_in_layers_of_the_workspace(person: Person) -> None:
    furnished(person)
    person.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    before = person.possessions()
    person.inside(
        """
        set -e
        echo agent > node_modules/x/index.js; rm -r node_modules/x; mkdir node_modules/y; echo agent > node_modules/y/z
        echo agent > .venv/pyvenv.cfg; mkdir .venv/lib; mv .venv/lib .venv/other
        echo agent > ~/.cache/pip/x; mkdir ~/.cache/new
        """
    )
    assert person.possessions() == before
    assert (
        person.inside("cat node_modules/y/z .venv/pyvenv.cfg ~/.cache/pip/x; ls node_modules") == "agent\n" * 3 + "y\n"
    )


def test_the_person_s_files_are_compared_byte_by_byte(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1", "utf-8")
    before: dict[str, Any] = dict(walked(tmp_path))
    os.utime(tmp_path / "a", ns=(0, 0))
    assert dict(walked(tmp_path)) != before


def test_a_cache_that_is_a_link_is_not_written_through(person: Person) -> None:
    person.begin()
    person.write(person.folder / "disk/cache/pip/x", "person\n")
    person.write(person.folder / "disk/registry/y", "person\n")
    person.sh(f"ln -s '{person.folder}/disk/cache' ~/.cache; mkdir ~/.cargo; ln -s '{person.folder}/disk/registry' ~/.cargo/registry")  # fmt: skip
    before = person.possessions()
    said = person.inside("cat ~/.cache/pip/x ~/.cargo/registry/y; echo a > ~/.cache/pip/x && echo a > ~/.cargo/registry/y; cat ~/.cache/pip/x")  # fmt: skip
    assert said == "person\nperson\na\n"
    assert person.possessions() == before
