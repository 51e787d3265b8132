"""What may lie where Raymond keeps something: nothing, rubbish, a pipe that nobody writes to, and the like."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

from attacks.world import Said, World, clear, commands

FILES = (
    "journal.jsonl driver.json state.json snapshot inbox socket spool transcripts blobs sessions log processes pids cgroups "
    "moves.json source.zip transcripts/main.jsonl inbox/x.json"
).split()
HOME = ["projects/*/project.json", "projects/*/runs", "projects/*", "projects", "sources", "work", "trusted.json"]
OF_ONE_THAT_ASKS = """
status ID --json; logs ID --step 1; logs ID --debug-dir OUT; wait ID; attach ID; doctor --repair ID; answer ID yes;
resume ID; stop ID --now; cancel ID; clean ID
"""
OF_ONE_WHOSE_DRIVER_WAS_KILLED = "stop ID; resume ID; cancel ID; clean ID"
OF_ALL = "list; list --json; list --all; status; cost --all; doctor; resume --all --dry-run; clean --dry-run"
WITH_A_SPOILED_HOME = f"""
{OF_ALL}; resume --all; status asks; logs done; answer asks yes; stop asks; resume killed; resume asks --cd .;
clean --keep 0s; clean done; run FLOW --id new; run FLOW -d; trust --yes; trust --list
"""


def nothing(path: Path) -> None:
    """It is not there."""


def empty(path: Path) -> None:
    path.touch()


def garbage(path: Path) -> None:
    path.write_bytes(b'\xff\xfe\0{"a":\n\n[[[' * 50)


def json_of_another_kind(path: Path) -> None:
    path.write_text('[{"path": 1, "pid": "x", "status": [], "journal_bytes": -1}, null]\n')


def deep_json(path: Path) -> None:
    path.write_text("[" * 100_000)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


def a_hole(path: Path) -> None:
    """More than any machine has memory for, and nothing on the disk."""
    path.touch()
    os.truncate(path, 8 << 40)


PUT = {
    put.__name__.replace("_", " "): put
    for put in (nothing, empty, garbage, json_of_another_kind, deep_json, a_folder, a_pipe, a_device, a_socket, a_hole)
}


def spoil(path: Path, put: Callable[[Path], None]) -> None:
    """Put something else in the place of a file or folder."""
    path.parent.mkdir(exist_ok=True)
    clear(path)
    os.chdir(path.parent)
    put(path)


def runs(folder: Path, kind: str) -> list[Said]:
    """Every command on runs that each have something else in the place of one file, a ninth of them for each kind.

    `MATRIX=whole make test-slow` has all of them.
    """
    world = World(folder)
    names = FILES if os.environ.get("MATRIX") == "whole" else FILES[[*PUT].index(kind) % 9 :: 9]
    for number, name in enumerate(names):
        world.asking(f"asks-{number}")
        world.killed(f"killed-{number}")
        for id in (f"asks-{number}", f"killed-{number}"):
            spoil(world.run_folder(id) / name, PUT[kind])
    said = world.all(commands(OF_ALL), put_back=False)
    for begin, table in (("asks", OF_ONE_THAT_ASKS), ("killed", OF_ONE_WHOSE_DRIVER_WAS_KILLED)):
        for number in range(len(names)):
            said += world.all(commands(table.replace("ID", f"{begin}-{number}")), put_back=False)
    return said


def homes(folder: Path, kind: str) -> list[Said]:
    """Every command in homes that each have something else in the place of one file, a third of them for each kind."""
    said: list[Said] = []
    names = HOME if os.environ.get("MATRIX") == "whole" else HOME[[*PUT].index(kind) % 3 :: 3]
    for number, name in enumerate(names):
        (folder / str(number)).mkdir()
        world = World(folder / str(number)).furnish()
        found = [*Path(world.home).glob(name)] or [Path(world.home, name)]
        spoil(found[0], PUT[kind])
        said += world.all(commands(WITH_A_SPOILED_HOME), put_back=True)
    return said
