"""The pages are true: cli.md is what the commands say, and every link leads somewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import cli_reference
import deciding_table
from raymond import cli
from raymond.cli import by_click
from raymond.control.settings import KEYS, SITE_KEYS
from running import Room, until
from terminals import in_tmux

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def test_the_table_of_what_decides_a_check_is_that_of_the_verifier() -> None:
    assert deciding_table.table() in deciding_table.PAGE.read_text("utf-8"), f"stale: run {deciding_table.MAKE}"


# --- cli.md ----------------------------------------------------------------------------------------------------------


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    assert cli_reference.page() == cli_reference.PAGE.read_text("utf-8"), f"stale: run {cli_reference.MAKE}"


def test_the_page_of_commands_has_every_command_flag_and_key() -> None:
    page, context = cli_reference.page(), click.Context(by_click.group)
    assert [name for name in cli.COMMANDS if f"\n## raymond {name}\n" not in page] == []
    for name in cli.COMMANDS:
        command = by_click.group.get_command(context, name)
        assert command
        assert [
            flag
            for param in command.params
            for flag in param.opts
            if flag[0] == "-" and flag != "--help-all" and f"`{flag}" not in page
        ] == []
    assert [key for key in {**KEYS, **SITE_KEYS} if f"\n| `{key}`" not in page] == []


def test_what_is_said_of_the_environment_is_all_there_is() -> None:
    """Every variable that the program looks at, but those of shells and homes, is on the page."""
    package = ROOT / "src" / "raymond"
    scripts = {package / "loops" / name for name in ("step.py", "forward.py")}
    """A step of a loop is a script, and gets what scripts get."""
    source = "".join(path.read_text("utf-8") for path in package.rglob("*.py") if path not in scripts)
    asked = set(re.findall(r"environb?(?:\.get\(|\[)b?\"([A-Z_]+)\"", source)) - {"HOME", "PATH", "SHELL"}
    assert asked
    assert sorted(name for name in asked if f"`{name}`" not in cli_reference.page()) == []


# --- scripts ---------------------------------------------------------------------------------------------------------


SCRIPTS = {
    f"{path.relative_to(ROOT)} {number}": body
    for path in (*PAGES, *(ROOT / "examples").glob("*/*.sh"), *(ROOT / "src" / "raymond" / "demo").glob("*.sh"))
    for number, body in enumerate(
        re.findall(r"^```bash\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        if path.suffix == ".md"
        else [path.read_text("utf-8")]
    )
}
"""Every script that a user is shown, by where it is."""
SILENT = re.compile(r"> *\S+ 2>&1|^until ", re.MULTILINE)
"""What may take long and prints nothing meanwhile."""


def test_a_script_that_is_silent_while_it_works_says_for_how_long_it_may_be() -> None:
    """Copied without a `timeout`, it would be ended after ten minutes."""
    silent = {where: body for where, body in SCRIPTS.items() if SILENT.search(body)}
    assert len(silent) >= 4
    assert [where for where, body in silent.items() if "\n# timeout: " not in f"\n{body}"] == []


@pytest.mark.slow
def test_a_run_that_a_step_may_not_start_fails_the_step_of_the_page(room: Room) -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    [script] = re.findall(r"^```bash\n(id=.*?)^```$", page, re.MULTILINE | re.DOTALL)
    review = room.path / "review"
    review.mkdir()
    (review / "START.sh").write_text("echo '<result>fine</result>'")
    python = f'raymond() {{ "{sys.executable}" -m raymond "$@"; }}\n'
    refused = room.command({"START.sh": python + script})
    assert (refused.code, refused.out) == (1, "")
    started = room.command({"START.sh": python + script}, "--allow-start", id="allowed")
    assert (started.code, started.out.startswith("the review continues as review-")) == (0, True)
    until(lambda: "running" not in room.raymond("list", "--json").stdout, "the review to end")


# --- README and links ------------------------------------------------------------------------------------------------


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [path.name for path in (ROOT / "docs").iterdir() if f"(docs/{path.name})" not in readme] == []


def headings(page: Path) -> Iterator[str]:
    for line in re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.MULTILINE):
        yield re.sub(r"[^a-z0-9_ -]", "", line.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), target
        assert not anchor or anchor in set(headings(found)), target


def test_the_picture_of_the_live_view_is_small_and_loads_nothing() -> None:
    picture = (ROOT / "docs" / "live.svg").read_text("utf-8")
    assert len(picture) < 20_000
    assert re.findall(r"https?://[^\"]+", picture) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(script|image|style|foreignObject)|href", picture)


def drawn(picture: str) -> list[str]:
    """The lines of a picture, without what differs from one time to the next."""
    lines = re.findall(r"^<text [^>]*>(.*)</text>$", picture, re.MULTILINE)
    return [re.sub(r"\d+|[\u2800-\u28ff]", "", re.sub(r"<[^>]*>", " ", line)).strip() for line in lines]


@pytest.mark.slow
@in_tmux
def test_the_picture_of_the_live_view_is_what_a_run_shows_now(tmp_path: Path) -> None:
    """If not: `.venv/bin/python tools/picture.py docs/live.svg`."""
    subprocess.run([sys.executable, ROOT / "tools" / "picture.py", tmp_path / "live.svg"], check=True)
    now, kept = ((folder / "live.svg").read_text("utf-8") for folder in (tmp_path, ROOT / "docs"))
    assert len(drawn(now)) > 8
    assert drawn(now) == drawn(kept)
