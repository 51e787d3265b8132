"""Commands that people paste: a value of others is one word in them, whatever it contains."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import raymond
from raymond import pasted

SOURCE = Path(raymond.__file__).parent
_COMMAND = re.compile(r"(?:\braymond [^`;]*|--[a-z][a-z-]* '?)$")
"""What stands before a value that is part of a command."""
_OURS = re.compile(
    r"(\w+(\.\w+|\[0\])*\.)?(id|workflow_id)|document\['(workflow_id|agent)'\]|(begun|event|asked)\.agent|self\._asked"
    r"|pasted\.\w+\(.*\)|limit_flag\((loop\.)?run\)|_allow_flags\(.*\)|_dollars_for_flag\(.*\)|_goto_flag\(.*\)|_list\(waiting\)|max\(.*\)|durations\.written\(.*\)"
    r"|(\w+\.)*loop|verb|\w+\.docs_flag|len\(rows\) \+ left|__version__|rules\.max_budget|given\.max_budget|done \+ given|f?'.*'( if .*)?|.* if self\._run else 'ID'"
)
"""Ids of runs and agents, which have letters, digits, _ and - only; numbers; names of loops and verbs; what is quoted."""
_WORDS = {
    "cli/by_click.py": ("close[0]", "named"),  # commands of ours
    "cli/cost.py": ("many",),
    "cli/delivery.py": ("agent",),  # quoted by the caller
    "cli/demo.py": ("folder",),  # quoted before
    "cli/init.py": ("path",),  # quoted before
    "cli/driving.py": ("some",),  # ids
    "cli/loop_commands.py": ("typed[0]",),  # a flag of ours
    "cli/loop_verbs.py": ("name",),  # of a loop
    "cli/review.py": ("self.name", "more", "self._of_several"),  # quoted before, or a number
    "cli/ralph.py": ("near[0]",),  # a command of ours
    "cli/moves.py": ("many",),
    "cli/resume.py": ("run.start.loop",),
    "cli/texts.py": ("key",),  # checked before
    "cli/trust.py": ("other",),
    "control/clean.py": ("force",),
    "control/gate.py": ("found",),  # the name of a state, in quotes
    "control/left_requests.py": ("request.kind", "request.on_ask"),  # in a sentence
    "control/naming.py": ("given", "latest", "ended"),  # ids
    "control/questions.py": ("_there(asked.project, id)", "_there(found.project, found.id)"),  # quoted there
    "control/request.py": ("flag", "given"),
    "control/workspaces.py": ("own",),  # a word of ours
    "faces/notify.py": ("run.start.loop",),
    "faces/summary.py": ("agent",),
    "faces/overview.py": ("or_else", "name"),  # quoted before
    "faces/rows.py": ("word", "_many(len(run.agents), 'agent')", "money(run)"),  # a title
    "loops/finding.py": ("where",),  # quoted before
    "loops/formats/records.py": ("name",),  # in a comment of a document
    "loops/checks.py": ("name",),  # of a hook
    "loops/judging.py": ("trees",),  # a commit and a reference of ours
    "loops/preflight.py": ("docs", "names"),  # told, not to be pasted; words of ours; ids of tasks
    "loops/prd_import.py": ("'|'.join(KINDS)", "one"),  # kinds of files
    "loops/source.py": ("pattern",),
    "loops/report.py": (
        *("one.number", "flags"),
        *("said", "_answering(loop, asking)"),  # words of ours
        *("only", "TASKS", "STORIES", "', '.join(entry.tasks)"),  # quoted before; names of ours; ids of tasks
    ),
    "loops/task_source.py": ("reason",),  # told, not to be pasted
    "store/journal.py": ("run",),
    "store/loader.py": ("name",),  # of a plain state, or quoted
    "system/files.py": ("run",),
    "verifier/dependencies.py": ("python",),  # quoted before
}
"""Other values that are ours, by file."""


def values(path: Path) -> Iterator[tuple[int, str]]:
    """The values that f-strings put into commands: line and expression."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        text = ""
        for number, part in enumerate(node.values):
            if isinstance(part, ast.Constant):
                text += str(part.value)
                continue
            after = "".join(str(one.value) for one in node.values[number + 1 :] if isinstance(one, ast.Constant))
            # `--cd DIR: there is no such directory` tells what was given.
            is_told = re.fullmatch(r"--[a-z-]+ ", text) and after.startswith((":", "=:"))
            if isinstance(part, ast.FormattedValue) and _COMMAND.search(text) and not is_told:
                yield part.lineno, ast.unparse(part.value)
            text += "X"


@pytest.mark.slow
def test_every_value_in_a_command_of_ours_is_an_id_a_number_or_quoted() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {value}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, value in values(path)
        if not _OURS.fullmatch(value) and value not in _WORDS.get(str(path.relative_to(SOURCE)), ())
    ]
    assert not found, "use pasted.word, pasted.flag or pasted.name"


def test_the_search_for_commands_finds_what_is_not_quoted(tmp_path: Path) -> None:
    """Otherwise nobody would notice that it finds nothing."""
    (tmp_path / "a.py").write_text("f'{its} --goto {entry}'; f'do: raymond run {path} now'; f\"--cd {place}: gone\"")
    assert [value for _, value in values(tmp_path / "a.py")] == ["entry", "path"]


@pytest.mark.parametrize("value", ["LOOP; touch PWNED; #.sh", "a'b", "$(x)", "`x`", "", "a b", "~", "!x", "-x"])
def test_a_value_is_one_word_for_a_shell(value: str) -> None:
    assert shlex.split(pasted.word(value, "STATE")) == [value]


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\x1b[2J", "a\u202eb", "a\u00a0b", "a\x00b"])
def test_what_cannot_be_pasted_as_it_is_seen_has_a_word_in_its_place(value: str) -> None:
    assert pasted.word(value, "STATE") == "STATE"
    assert pasted.flag("--goto", value, "STATE") == "--goto STATE"
    assert pasted.name(value).isprintable()


def test_a_plain_name_stays_as_it_is_in_a_sentence() -> None:
    assert pasted.name("sub/ÜBER-1.md") == "sub/ÜBER-1.md"
    assert pasted.name("raymond trust --yes.sh") == "'raymond trust --yes.sh'"
