"""Writes docs/cli.md from the commands themselves: `.venv/bin/python tests/cli_reference.py`."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from raymond import cli
from raymond.cli.by_click import group
from raymond.control import config
from raymond.control.settings import KEYS, SITE_KEYS, Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
MAKE = ".venv/bin/python tests/cli_reference.py"

HEAD = f"""\
# Command line

Made from the commands by `{MAKE}`; change the commands, not this page.

`raymond PATH` is `raymond run PATH`. `raymond -C DIR COMMAND` does everything as if started in DIR, as in git.

An id may be shortened to any unique beginning. It is looked up in this project first, then in all of them; `cancel` and
`clean` need the full id of a run of another project. Without an id, `status`, `logs` and `cost` mean the latest run of this
project, and other commands the only one that they can act on; when there are several, a terminal asks which. `attach`,
`stop` and `wait` exit with 2 when none is running.
`--all` always means all projects, and `--here` this one. [runs.md](runs.md) says what a project is and where runs are kept.

Standard output carries results only; everything meant for a person goes to standard error. [json.md](json.md) describes what
`--json` prints. [runs.md](runs.md#words) explains words such as step, turn, visit, driver and policy.

A TIME is a number and `ms`, `s`, `m`, `h` or `d`: `90s`, `10m`, `8h`. `--since` also accepts a time of day (`14:30`) or a date
(`2026-01-15`). `TEXT|@FILE|-` is a text, the content of a file, or standard input.
"""

SETTINGS = """\
## Settings

Put settings that you do not want to repeat into a file. The first place in this list that sets a key counts:

1. the [site rules](#site-rules) in `{policy_file}`
2. a flag
3. the environment: `RAYMOND_` and the key in capitals, such as `RAYMOND_BUDGET=5`; lists with commas; no tables
4. your own file: `~/.config/raymond/config.toml`, or `raymond/config.toml` in `XDG_CONFIG_HOME`
5. for `budget`, `max_iterations`, `max_parallel` and `backend`: the workflow's own `workflow.yaml`
6. the default

A project can make settings stricter, but never looser. A value in its `.raymond/config.toml` replaces 4 to 6 if it allows no
more than your own file or, where that does not set the key, the default. A lower limit is stricter, and so are a longer `keep`
and `durability = "strict"`. Raymond ignores a value that allows more, and `raymond run` and `raymond config show` say so. A
flag or an environment variable always overrides the project.

If the policy of a state sets `model`, `effort`, `timeout` or `backend`, that overrides everything except the site rules. Every
`.toml` file may only have keys that are on this page; any other key is an error. `raymond config show --origin` shows which
values apply here and where they were set.

No amount in dollars and no count may exceed 1,000,000,000, and no duration may exceed 366 days, wherever it is set.
"""

PERSONAL = """\
Only a person may set a key marked *: by file, environment or flag. Raymond refuses it in the file of a project, because
whoever checks out somebody else's project would run, allow or pay for what it says. Raymond tries a `retryable` pattern on the
first 500 characters of an error. It refuses a pattern that repeats a group with a repetition or a choice in it, like `(a+)+`.
"""

SITE_RULES = """\
## Site rules

An administrator can use `{policy_file}` to set rules for everyone on the machine. No flag, variable or setting can
make Raymond read another file instead. Raymond refuses a backend or a model that is not in the list, and a `--budget` that is
too high. If the budget comes from anywhere else, Raymond lowers it. The rules also apply to what states name, and to a model
that an agent names in a tag. A run that is resumed has to follow the rules as they are then.
"""

ENVIRONMENT = (
    (
        "RAYMOND_BUDGET, ...",
        "any key of the settings above but `backends` and `prices`: `RAYMOND_` and its name in capitals",
    ),
    ("RAYMOND_HOME", "where [runs are kept](runs.md), instead of `~/.local/state/raymond`; an absolute path"),
    ("RAYMOND_PORTABLE", "set: do without pidfd, /proc and epoll, as on systems that have none"),
    ("RAYMOND_STEP", "set by Raymond for every process it starts, so that it can find the process again"),
    ("NO_COLOR", "set: no colours on the terminal"),
    ("VISUAL", "the editor of `continuous-session edit`"),
    ("EDITOR", "the same, if `VISUAL` is not set"),
    ("TERM", "`dumb`, or not set: lines instead of the live view"),
    ("XDG_CONFIG_HOME", "where your settings are, instead of `~/.config`"),
    ("SUDO_UID", "set by sudo: root also trusts what this user owns, as git does"),
    ("XDG_STATE_HOME", "`raymond` in it is where runs are kept, when RAYMOND_HOME is not set"),
)


LONG = 12
"""Commands with more flags than this show those that an earlier one has by their names."""


def page() -> str:
    """The whole page."""
    parts = [HEAD, *_overview(), *_commands(), _settings(), _site_rules(), _environment(), _codes()]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _overview() -> Iterator[str]:
    for heading, commands in {**cli.GROUPS, "Not in `--help`": cli.HIDDEN}.items():
        yield f"**{heading}**\n\n" + _table(
            ("command", ""), [(f"[`{name}`](#raymond-{name})", says) for name, says in commands.items()]
        )


def _commands() -> Iterator[str]:
    shown: dict[tuple[str, str], str] = {}
    for path, command in every_command():
        rows = _rows(command)
        known: dict[str, list[str]] = {}
        for row in rows if len(rows) > LONG else ():
            if row in shown:
                known.setdefault(shown[row], []).append(row[0].split("`")[-2].split()[0])
        told = {row for row in rows if row not in shown or len(rows) <= LONG}
        also = [
            f"Also, as of [`{other}`](#{other.replace(' ', '-')}): {', '.join(f'`{name}`' for name in names)}.\n"
            for other, names in known.items()
        ]
        for row in rows if len(rows) > LONG else ():
            shown.setdefault(row, path)
        table = _table(("flag", ""), [row for row in rows if row in told]) if told else ""
        yield _command(path, command, "\n".join(part for part in (table, *also) if part))


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands and their commands, by what is typed."""
    context = click.Context(group, info_name="raymond")
    for name in cli.COMMANDS:
        command = group.get_command(context, name)
        assert command
        yield from _with_children(f"raymond {name}", command)


def _with_children(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in command.commands:
            yield from _with_children(f"{path} {name}", command.commands[name])


def _command(path: str, command: click.Command, flags: str) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    help_ = " ".join((command.help or "").split())
    children = ", ".join(f"`{path} {name}`" for name in command.commands) if isinstance(command, click.Group) else ""
    text = f"## {path}\n\n```\n{path} {usage}\n```\n\n{help_}\n"
    return text + (f"\nCommands: {children}.\n" if children else "") + (f"\n{flags}" if flags else "")


def _rows(command: click.Command) -> list[tuple[str, str]]:
    found = [one for one in command.params if isinstance(one, click.Option) and one.opts != ["--help-all"]]
    return [(_written(param), _help(param) + _more(param)) for param in found]


def _written(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len))
    if option.is_flag:
        return names
    value = option.metavar or option.make_metavar(click.Context(click.Command(None))).strip("[]")
    return f"{names[:-1]} {value}`"


def _help(option: click.Option) -> str:
    """In `--help` some flags are a list under the one before them; in a table each is on its own."""
    text = option.help or ""
    return f"With `--agent`: {text[2:].rstrip(',.')}." if text.startswith("- ") else text


def _more(option: click.Option) -> str:
    return " May be given several times." if option.multiple else ""


def _settings() -> str:
    rows = []
    for name, key in KEYS.items():
        star = "" if key.reach else " *"
        rows.append(
            (
                f"`{name}`{star}",
                f"{key.about}{f' `{key.flags[-1]}`' if key.group else ''}",
                _default(key),
                f"`{name} = {key.example}`",
            )
        )
    table = _table(("key", "", "default", "example"), rows)
    return f"{SETTINGS.format(policy_file=config.SITE_FILE)}\n{table}\n{PERSONAL}"


def _default(key: Row) -> str:
    if key.unset:
        return key.unset
    if not key.default and not isinstance(key.default, bool):
        return "none"
    return f"`{key.kind.write(key.default)}`"


def _site_rules() -> str:
    rows = [(f"`{name}`", key.about, _default(key), f"`{name} = {key.example}`") for name, key in SITE_KEYS.items()]
    return f"{SITE_RULES.format(policy_file=config.SITE_FILE)}\n{_table(('key', '', 'default', 'example'), rows)}"


def _environment() -> str:
    rows = [
        (" ".join(f"`{name}`" if name != "..." else name for name in names.replace(",", "").split()), says)
        for names, says in ENVIRONMENT
    ]
    after = "[language.md](language.md#environment) lists the variables that scripts get."
    return f"## Environment\n\n{_table(('variable', ''), rows)}\n{after}\n"


def _codes() -> str:
    """Word for word what the language says: there is one truth about them."""
    language = (ROOT / "docs" / "language.md").read_text("utf-8")
    found = re.search(r"^## Exit codes\n(.*?)(?=^## |\Z)", language, re.DOTALL | re.MULTILINE)
    assert found
    return f"## Exit codes\n{found[1]}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written", file=sys.stderr)
