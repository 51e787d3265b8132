"""What a command may find around it: directories that are gone, names that are no text, clocks that are wrong."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from attacks.world import World

SITUATIONS: dict[str, Callable[[Path], World]] = {}
_WORDS = "asks done killed failed main yes x END new true scripted 1 0s day . FLOW FILE REPLIES OUT LOG bash"
"""What a person says in the commands, and what something else can be said for."""


def situation(make: Callable[[Path], World]) -> Callable[[Path], World]:
    """A function that makes a world, and what is wrong with it; its name is that of the situation."""
    SITUATIONS[make.__name__.replace("_", " ")] = make
    return make


def furnished(folder: Path, *, project: str = "project", home: str = "home") -> World:
    return World(folder, project=project, home=home).furnish()


@situation
def all_is_well(folder: Path) -> World:
    return furnished(folder)


@situation
def the_current_directory_was_deleted(folder: Path) -> World:
    world = furnished(folder)

    def leave() -> None:
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir(f"{world.cwd}/gone")

    world.before = leave
    return world


@situation
def the_project_was_deleted(folder: Path) -> World:
    world = furnished(folder)
    shutil.rmtree(world.project)
    world.cwd = str(folder)
    return world


@situation
def the_project_is_a_file(folder: Path) -> World:
    world = the_project_was_deleted(folder)
    Path(world.project).write_text("x")
    return world


@situation
def the_project_was_moved(folder: Path) -> World:
    world = furnished(folder)
    world.cwd = f"{folder}/elsewhere"
    os.rename(world.project, world.cwd)
    return world


@situation
def the_project_is_not_utf8(folder: Path) -> World:
    world = furnished(folder, project="p\udcff")
    os.mkdir(folder / "good")
    shutil.copytree(world.flow, f"{world.project}/flow")
    os.symlink(world.project, folder / "good" / "link")
    Path(world.project, "tell").touch(0o700)
    world.more = [
        ["run", "flow", "--cd", f"{folder}/good"],
        ["run", "FLOW", "--cd", f"{folder}/good", "--root", ".", "--log-file", "log"],
        ["run", "FLOW", "--cd", f"{folder}/good", "--replies", "flow/replies.yaml", "--input", "@flow/START.sh"],
        ["run", "FLOW", "--cd", f"{folder}/good", "--notify", "./tell"],
        ["run", "FLOW", "--cd", f"{folder}/good/link"],
        ["-C", f"{folder}/good/link", "run", "FLOW"],
        ["-C", f"{folder}/good", "run", "FLOW", "--root", "link", "--debug"],
        ["-C", f"{folder}/good", "run", "link/flow", "--debug"],
        ["-C", f"{folder}/good", "trust", "link"],
    ]
    return world


@situation
def the_project_became_not_utf8(folder: Path) -> World:
    world = furnished(folder)
    world.cwd = f"{folder}/p\udcff"
    os.rename(world.project, world.cwd)
    world.more = [["resume", "asks", "--cd", f"{folder}/flow"], ["resume", "killed", "--root", "."]]
    return world


@situation
def the_project_has_a_line_end_and_an_escape(folder: Path) -> World:
    return furnished(folder, project="p\n\x1b[31m\u2603")


@situation
def the_project_is_deeper_than_a_path_is_long(folder: Path) -> World:
    world = furnished(folder)

    def dive() -> None:
        os.chdir(folder)
        for _ in range(30):
            os.makedirs("d" * 200, exist_ok=True)
            os.chdir("d" * 200)

    world.before = dive
    return world


@situation
def the_home_was_deleted(folder: Path) -> World:
    world = furnished(folder)
    shutil.rmtree(world.home)
    return world


@situation
def the_home_is_a_file(folder: Path) -> World:
    world = World(folder)
    Path(world.home).write_text("x")
    return world


def _home_at(folder: Path, home: str) -> World:
    world = World(folder)
    world.home = home
    return world


@situation
def the_home_lies_in_a_file(folder: Path) -> World:
    return _home_at(folder, f"{folder}/file/home")


@situation
def the_home_cannot_be_written(folder: Path) -> World:
    return _home_at(folder, "/proc/home")


@situation
def the_home_is_relative(folder: Path) -> World:
    return _home_at(folder, "home")


@situation
def the_home_has_a_long_name(folder: Path) -> World:
    return _home_at(folder, f"{folder}/{'h' * 4000}")


@situation
def the_home_has_a_path_that_is_too_long(folder: Path) -> World:
    return _home_at(folder, f"{folder}{'/home' * 1000}")


@situation
def the_home_is_not_utf8(folder: Path) -> World:
    return furnished(folder, home="h\udcff")


@situation
def the_home_of_the_person_is_not_utf8(folder: Path) -> World:
    world = World(folder)
    os.mkdir(folder / "u\udcff")
    world.environment = {"RAYMOND_HOME": "", "HOME": f"{folder}/u\udcff"}
    return world.furnish()


@situation
def the_home_has_a_line_end_and_an_escape(folder: Path) -> World:
    return furnished(folder, home="h\n\x1b[31m")


def _saying(folder: Path, word: str) -> World:
    world = furnished(folder)
    world.replaced = dict.fromkeys([*_WORDS.split(), "a=b", "TURN.md.retries=1"], word)
    return world


@situation
def words_are_not_utf8(folder: Path) -> World:
    return _saying(folder, "a\udcffb")


@situation
def values_are_not_utf8(folder: Path) -> World:
    world = _saying(folder, "\udcff")
    world.replaced |= {"a=b": "a=\udcff", "TURN.md.retries=1": "TURN.md.retries=\udcff"}
    return world


@situation
def words_have_line_ends_and_escapes(folder: Path) -> World:
    return _saying(folder, "a\n\x1b[31m\u2028\x85b")


@situation
def words_are_empty(folder: Path) -> World:
    return _saying(folder, "")


@situation
def words_are_long(folder: Path) -> World:
    return _saying(folder, "a" * 4000)


@situation
def words_are_paths_that_are_too_long(folder: Path) -> World:
    return _saying(folder, "a/" * 4000)


@situation
def words_are_devices(folder: Path) -> World:
    return _saying(folder, "/dev/null")


@situation
def words_are_dashes(folder: Path) -> World:
    return _saying(folder, "--")


@situation
def words_are_signs(folder: Path) -> World:
    return _saying(folder, "=@{{input}}.:")


@situation
def the_workflow_has_names_that_are_not_utf8(folder: Path) -> World:
    world = furnished(folder)
    for name in ("S\udcff.md", "s\udcff.sh"):
        Path(world.flow, name).write_text("echo '<result>x</result>'")
    return world


@situation
def the_workflow_has_a_text_that_is_not_utf8(folder: Path) -> World:
    world = furnished(folder)
    Path(world.flow, "END.sh").write_bytes(b"echo '<result>\xff</result>'")
    return world


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp\x9b31m\x7f"


@situation
def every_text_and_name_would_control_the_terminal(folder: Path) -> World:
    world = World(folder, project=f"p{HOSTILE}")
    world.flow = f"{folder}/flow{HOSTILE}"
    os.rename(folder / "flow", world.flow)
    for name, said in {
        "START.sh": f"printf '<print>{HOSTILE}</print>'; printf '{HOSTILE}\n' >&2; echo '<fork>TURN.md</fork><wait>ASK.sh</wait>'",
        "ASK.sh": f"echo '<ask next=\"END\">{HOSTILE}\nsure?</ask>'",
        "END.sh": f"echo '<result>{HOSTILE}</result>'",
        "replies.yaml": f"TURN.md: {{text: {ascii(f'{HOSTILE} <result>{HOSTILE}</result>')[1:-1]!r}, cost: 0.25}}\n",
    }.items():
        Path(world.flow, name).write_text(said, "utf-8")
    (folder / "fails" / "START.sh").write_text(f"printf '{HOSTILE}\n' >&2; echo '<goto>{HOSTILE}</goto>'", "utf-8")
    os.makedirs(f"{world.project}/.claude")
    Path(world.project, ".claude", "settings.json").write_text(f'{{"hooks": {{"{ascii(HOSTILE)[1:-1]}": []}}}}')
    world.furnish()
    os.makedirs(f"{world.project}/.raymond/workflows/x{HOSTILE}")
    os.makedirs(folder / "odd")
    (folder / "odd" / f"{HOSTILE}.md").write_text("A state, or not.")
    world.more = [
        ["run", f"{folder}/odd"],
        ["run", f"{folder}/no{HOSTILE}"],
        ["run", "FLOW", "--id", HOSTILE],
        ["-C", f"{folder}/{HOSTILE}", "list"],
        ["run", "FLOW", "--dry-run", "--var", f"a={HOSTILE}", "--input", HOSTILE],
        ["status", HOSTILE],
        [f"--{HOSTILE}"],
        ["list", f"--{HOSTILE}"],
        ["run", "FLOW", "--budget", HOSTILE],
        ["run", "FLOW", "--notify", f"echo '{HOSTILE}'; exit 3", "--id", "notified"],
        ["run", "FLOW", "--log-file", f"{folder}/none/{HOSTILE}"],
        ["run", "FLOW", "--set", f"{HOSTILE}=1"],
        ["completion", HOSTILE],
    ]
    return world


@situation
def the_environment_is_not_utf8(folder: Path) -> World:
    world = furnished(folder)
    names = "HOME XDG_STATE_HOME XDG_CONFIG_HOME TERM LANG PATH SHELL TMPDIR USER NO_COLOR SUDO_UID EDITOR COLUMNS"
    world.environment = dict.fromkeys(names.split(), "/a\udcff") | {"A\udcff": "\udcff"}
    return world


@situation
def the_environment_is_empty(folder: Path) -> World:
    world = furnished(folder)

    def empty() -> None:
        for name in {*os.environ} - {"RAYMOND_HOME", "TEST_ROOM"}:
            del os.environ[name]

    world.before = empty
    return world


@situation
def settings_in_the_environment_are_not_utf8(folder: Path) -> World:
    world = furnished(folder)
    world.environment = {"RAYMOND_MODEL": "\udcff", "RAYMOND_BACKEND": "\udcff", "RAYMOND_KEEP": "\udcff"}
    return world


@situation
def settings_are_garbage(folder: Path) -> World:
    world = furnished(folder)
    world.environment = {"XDG_CONFIG_HOME": f"{folder}/config"}
    os.makedirs(folder / "config/raymond")
    (folder / "config/raymond/config.toml").write_bytes(b"\xff\0\n")
    return world


@situation
def settings_are_a_folder(folder: Path) -> World:
    world = furnished(folder)
    os.makedirs(f"{world.project}/.raymond/config.toml", exist_ok=True)
    return world


@situation
def settings_are_a_pipe(folder: Path) -> World:
    world = furnished(folder)
    os.makedirs(f"{world.project}/.raymond", exist_ok=True)
    os.mkfifo(f"{world.project}/.raymond/config.toml")
    return world


@situation
def the_terminal_knows_ascii_only(folder: Path) -> World:
    world = furnished(folder, project="p\u2603")
    world.encoding = "ascii"
    world.environment = {"LANG": "C", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    return world


def _at(folder: Path, when: float) -> World:
    world = furnished(folder)
    real = time.time

    def now() -> float:
        return when + real() % 1000

    def set_clock() -> None:
        time.time = now
        for module in [one for name, one in sys.modules.items() if name.startswith("raymond")]:
            if vars(module).get("time") is real:
                vars(module)["time"] = now

    world.before = set_clock
    return world


@situation
def the_clock_says_1970(folder: Path) -> World:
    return _at(folder, 0)


@situation
def the_clock_says_2200(folder: Path) -> World:
    return _at(folder, 7258118400)


@situation
def the_clock_says_a_million(folder: Path) -> World:
    return _at(folder, 3e13)
