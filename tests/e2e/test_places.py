"""What the real programs let agents do in Raymond's own places; judged by the disk, and by what the model was told."""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from e2e.model import MISSING, Answer, Model, Request, Text, Tool, claude_environment, program, results
from e2e.responses import MISSING as NO_CODEX
from e2e.responses import Question, Responses, codex_environment
from raymond.backends import Places, Setup, Turn
from raymond.backends.claude import Claude
from raymond.backends.codex import Codex

pytestmark = pytest.mark.e2e
needs_claude = pytest.mark.skipif(program("claude") is None, reason=MISSING)
needs_codex = pytest.mark.skipif(program("codex") is None, reason=NO_CODEX)

SECRET = "what another run said"
JOURNAL = "p-1/runs/r/journal.jsonl"


class Ground:
    """A project with a subfolder and a worktree, and a RAYMOND_HOME beside or inside it."""

    def __init__(self, folder: Path, *, inside: bool = False) -> None:
        self.home, self.project, self.worktree = folder / "home", folder / "project", folder / "worktree"
        self.sub = self.project / "sub"
        self.state = self.project / "state" if inside else folder / "state"
        self.hidden, self.sources = self.state / "projects", self.state / "sources"
        self.work = self.state / "work" / "d1"
        self.task = self.project / ".raymond" / "tasks" / "r" / "main"
        self.config, self.exports = self.project / ".raymond" / "config.toml", self.project / ".raymond" / "workflows"
        self._lay_out()

    def _lay_out(self) -> None:
        texts = {
            self.hidden / JOURNAL: SECRET,
            self.sources / "d1.zip": "zip",
            self.work / "CHECK.sh": "echo checked",
            self.config: "budget = 1",
            self.exports / "r.json": "{}",
            self.task / "note": "mine",
            self.sub / "code": "x",
        }
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        person = ["-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init"], ["add", "sub"], ["commit", "-m", "begin"], ["worktree", "add", str(self.worktree)]):
            subprocess.run(["git", *person, *command], cwd=self.project, check=True, capture_output=True)

    @property
    def places(self) -> Places:
        return Places(
            hidden=[str(self.hidden), str(self.sources)],
            readable=[str(self.work)],
            fixed=[str(self.config), str(self.exports), str(self.state)],
        )

    def turn(self, cwd: Path, **given: Any) -> Turn:
        usual: dict[str, Any] = {"agent": "main", "state": "START.md", "visit": 1, "tries": 0, "prompt": "go"}
        usual |= {"session": str(uuid.uuid4()), "cwd": str(cwd), "spool": str(self.home), "task_folder": str(self.task)}
        return Turn(**(usual | given))


def files(folder: Path) -> dict[Path, bytes | None]:
    """Everything in a folder; a folder has no content."""
    return {path: path.read_bytes() if path.is_file() else None for path in (folder, *folder.rglob("*"))}


class Hand:
    """A model that uses one tool after the other, and looks after each whether a folder is still as it was."""

    def __init__(self, tools: Sequence[Tool], watched: Path | None = None) -> None:
        self.changed: list[int] = []
        """The tools that changed it, by number."""
        self.told: list[str] = []
        """What came of each tool."""
        self.first: Request | None = None
        self._tools, self._watched = tools, watched
        self._before = files(watched) if watched else {}

    def __call__(self, request: Request) -> Answer:
        self.first = self.first or request
        self.told = request.results if isinstance(request, Question) else results(request)
        if self.told and self._watched and files(self._watched) != self._before:
            self.changed.append(len(self.told) - 1)
            self._put_back(self._watched)
        return self._tools[request.call] if request.call < len(self._tools) else Text("done")

    def _put_back(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        for path, content in self._before.items():
            if content is None:
                path.mkdir(parents=True)
            else:
                path.write_bytes(content)


def claude(ground: Ground, hand: Hand, *, cwd: Path | None = None, places: Places | None = None, **given: Any) -> None:
    """Let the real Claude Code take a turn in which the model uses its tools."""
    setup = Setup(name="claude", options={"program": program("claude")}, places=places or ground.places)
    turn = ground.turn(cwd or ground.project, **given)
    with Model(hand) as server:
        environment = claude_environment(ground.home, server)
        argv = Claude(setup).command(turn).argv
        ended = subprocess.run(argv, cwd=turn.cwd, env=environment, input="go", capture_output=True, text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert server.others == []


def bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


def read(path: Path) -> Tool:
    return Tool("Read", {"file_path": str(path)})


def write(path: Path) -> Tool:
    return Tool("Write", {"file_path": str(path), "content": "written"})


# --- hidden folders

WAYS = {
    "mv": "mv {place} {project}/x1",
    "mv -t": "mv -t {project}/sub {place}",
    "mv with a pattern": "mv {parent}/proj* {project}/sub/",
    "rm -rf": "rm -rf {place}",
    "cp -r": "cp -r {project}/sub {place}/",
    "mkdir": "mkdir {place}/evil",
    ">>": "echo x >> {place}/p-1/runs/r/journal.jsonl",
    "tee": "echo x | tee {place}/evil",
    "git clean": "git clean -fdx",
    "rsync": "rsync -a {project}/sub/ {place}/",
    "find -delete": "find {place} -mindepth 1 -delete",
    "mv of the parent": "mv {parent} {project}/x2",
    "rm of the parent": "rm -rf {parent}",
    # Last, since the next command would begin there.
    "cd and >": "cd {place} && echo x > evil",
}
"""Ways to change a folder with commands."""
UNASKED = {"mv", "rm -rf", "mkdir", ">>", "mv of the parent", "rm of the parent", "cd and >"}
"""Those that Claude Code allows in its working directory where edits are accepted; for the others it asks anyway."""
UNSEEN = {"mv with a pattern", "git clean"}
"""Those whose target it does not see: whoever allows all of Bash allows these."""


def ways(ground: Ground, **given: Any) -> set[str]:
    """The ways that an agent got through with."""
    about = {"place": ground.hidden, "parent": ground.state, "project": ground.project}
    commands = [way.format_map({name: shlex.quote(str(path)) for name, path in about.items()}) for way in WAYS.values()]
    hand = Hand([bash(command) for command in commands], ground.hidden)
    claude(ground, hand, **given)
    assert len(hand.told) == len(WAYS)
    return {list(WAYS)[number] for number in hand.changed}


@needs_claude
def test_without_rules_edits_that_are_accepted_change_any_folder_in_the_working_directory(tmp_path: Path) -> None:
    assert ways(Ground(tmp_path, inside=True), places=Places()) == UNASKED


@needs_claude
def test_outside_of_its_working_directory_an_agent_changes_nothing_anyway(tmp_path: Path) -> None:
    assert ways(Ground(tmp_path), places=Places()) == set()


@needs_claude
def test_no_command_changes_a_hidden_folder_but_one_that_moves_the_folder_above_it(tmp_path: Path) -> None:
    ground = Ground(tmp_path, inside=True)
    assert ways(ground, places=Places(hidden=[str(ground.hidden)])) == {"mv of the parent", "rm of the parent"}


@needs_claude
def test_where_the_folder_above_it_is_fixed_no_command_changes_a_hidden_folder(tmp_path: Path) -> None:
    assert ways(Ground(tmp_path, inside=True)) == set()


@needs_claude
@pytest.mark.parametrize("given", [{"allowed_tools": ("Bash",)}, {"skip_permissions": True}], ids=["bash", "skipped"])
def test_who_allows_all_commands_allows_those_whose_target_cannot_be_seen(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    assert ways(Ground(tmp_path, inside=True), **given) == UNSEEN


@needs_claude
def test_a_hidden_journal_cannot_be_read_by_tools_or_commands(tmp_path: Path) -> None:
    ground = Ground(tmp_path, inside=True)
    journal = ground.hidden / JOURNAL
    (ground.project / "link").symlink_to(journal)
    commands = ("cat {}", "head {}", "tail {}", "sed -n p {}", "sort {}", "cat < {}", "cp {} out; cat out", "mv {} out")
    tools = [bash(command.format(shlex.quote(str(journal)))) for command in commands]
    tools += [bash(f"grep -r said {ground.hidden}"), bash(f"cd {journal.parent} && cat {journal.name}")]
    tools += [read(journal), read(ground.project / "link"), bash("cat link")]
    hand = Hand(tools, ground.hidden)
    claude(ground, hand)
    assert len(hand.told) == len(tools)
    assert [told for told in hand.told if SECRET in told] == []
    assert hand.changed == []
    assert not (ground.project / "out").exists()


@needs_claude
def test_a_search_of_the_whole_project_passes_a_hidden_folder_over(tmp_path: Path) -> None:
    """These tools are there when there is no Bash."""
    ground = Ground(tmp_path, inside=True)
    (ground.project / "other.jsonl").write_text("what was said here", "utf-8")
    folders = (ground.project, ground.hidden)
    tools = [Tool("Grep", {"pattern": "said", "path": str(one), "output_mode": "content"}) for one in folders]
    tools += [Tool("Glob", {"pattern": "**/*.jsonl", "path": str(one)}) for one in folders]
    hand = Hand(tools)
    claude(ground, hand, disallowed_tools=("Bash",))
    found, refused, listed, refused_too = hand.told
    assert found == "other.jsonl:1:what was said here"
    assert listed == "other.jsonl"
    assert refused == refused_too == f"Permission to read {ground.hidden} has been denied."


# --- what may be read, what may not be changed, and what may


@needs_claude
@pytest.mark.parametrize("where", ["project", "sub", "worktree"])
def test_wherever_an_agent_works_it_reads_its_workflow_and_writes_in_its_task_folder_and_in_no_place_of_raymonds(
    tmp_path: Path, where: str
) -> None:
    ground = Ground(tmp_path)
    script, note = ground.work / "CHECK.sh", ground.task / "note"
    refused = [write(script), write(ground.work / "new"), bash(f"echo x > {script}"), bash(f"rm -rf {ground.work}")]
    refused += [write(ground.config), bash(f"echo x >> {ground.config}"), write(ground.exports / "r.json")]
    refused += [bash(f"rm -rf {ground.exports}"), write(ground.hidden / "new"), write(ground.state / "new")]
    allowed = [read(script), bash(f"cat {script}"), read(note), write(note), write(ground.task / "deep" / "new")]
    allowed += [bash(f"mkdir {ground.task}/made && touch {ground.task}/touched")]
    before = [files(ground.state), files(ground.exports), ground.config.read_text("utf-8")]
    hand = Hand([*allowed, read(ground.config), *refused])
    claude(ground, hand, cwd=getattr(ground, where))
    assert len(hand.told) == len(allowed) + 1 + len(refused)
    assert [files(ground.state), files(ground.exports), ground.config.read_text("utf-8")] == before
    assert "echo checked" in hand.told[0]
    assert hand.told[1] == "echo checked"
    assert note.read_text("utf-8") == "written"
    assert {"deep", "made", "note", "touched"} == set(os.listdir(ground.task))


@needs_claude
def test_a_mode_that_accepts_no_edits_accepts_none_in_the_task_folder(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    claude(ground, Hand([write(ground.task / "new")]), permission_mode="default", cwd=ground.sub)
    assert os.listdir(ground.task) == ["note"]


@needs_claude
def test_an_agent_leaves_itself_no_skills_commands_or_agents_in_its_task_folder(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    for folder in (ground.task, ground.work):
        for name in ("skills/evil/SKILL.md", "commands/evil.md", "agents/evil.md"):
            path = folder / ".claude" / name
            path.parent.mkdir(parents=True)
            path.write_text("---\nname: evil\ndescription: planted here\n---\nplanted here", "utf-8")
    hand = Hand([])
    claude(ground, hand, cwd=ground.sub)
    assert hand.first
    assert "planted here" not in json.dumps(hand.first.body)


# --- rules that text cannot break

ODD = (
    *("a[1]", "!bang", "pa(ren)s", "op(en", "com,ma", "st*ar", "wh?t", "#hash", "back\\slash", "sp ace"),
    *("qu'ote", 'quo"te', "ünï日本", "new\nline"),
)


@needs_claude
def test_no_path_is_too_odd_for_a_rule(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    folders = {
        "hidden": ground.project / "hidden",
        "fixed": ground.project / "fixed",
        "readable": tmp_path / "readable",
    }
    odd = {kind: [folder / name for name in ODD] for kind, folder in folders.items()}
    for folder in (folder for some in odd.values() for folder in some):
        folder.mkdir(parents=True)
        (folder / "text").write_text(SECRET, "utf-8")
    before = {folder: files(folder) for folder in folders.values()}
    writes = [write(folder / "new") for kind in ("hidden", "fixed") for folder in odd[kind]]
    reads = [read(folder / "text") for kind in ("readable", "hidden") for folder in odd[kind]]
    hand = Hand([*reads, *writes])
    claude(ground, hand, places=Places(**{kind: [str(folder) for folder in some] for kind, some in odd.items()}))
    assert len(hand.told) == len(reads) + len(writes)
    assert {folder: files(folder) for folder in folders.values()} == before
    known = [SECRET in told for told in hand.told[: len(reads)]]
    assert known == [True] * len(ODD) + [False] * len(ODD)


@needs_claude
def test_tools_that_a_workflow_names_break_no_rule_and_become_no_flag(tmp_path: Path) -> None:
    ground = Ground(tmp_path, inside=True)
    outside = tmp_path / "outside"
    tools = [write(ground.hidden / "new"), bash(f"touch {outside}")]
    names = ("Bash(", "Skill", "x) Edit(", "--dangerously-skip-permissions", "Agent")
    hand = Hand(tools, ground.hidden)
    claude(ground, hand, disallowed_tools=names, allowed_tools=("Edit", "Bash(", "--dangerously-skip-permissions"))
    assert hand.changed == []
    assert not outside.exists()
    assert hand.first
    offered = {tool["name"] for tool in hand.first.body["tools"]}
    assert "Bash" in offered
    assert not offered & {"Agent", "AskUserQuestion", "Skill"}


@needs_claude
def test_the_persons_own_settings_count_as_before(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    own = {"permissions": {"allow": ["Bash(python3:*)"], "deny": [f"Edit(/{ground.project}/theirs)"]}}
    (ground.home / "claude").mkdir(parents=True)
    (ground.home / "claude" / "settings.json").write_text(json.dumps(own), "utf-8")
    code = "open('made', 'w')"
    claude(ground, Hand([bash(f'python3 -c "{code}"'), write(ground.project / "theirs"), write(ground.config)]))
    assert (ground.project / "made").exists()
    assert not (ground.project / "theirs").exists()
    assert ground.config.read_text("utf-8") == "budget = 1"


# --- Codex


PATCH = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n"


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that commands in the sandbox cannot write in, unlike those of tests."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def codex(ground: Ground, commands: Sequence[str], monkeypatch: pytest.MonkeyPatch, cwd: Path, own: str = "") -> Hand:
    """Let the real Codex take a turn: commands, then a patch of an export; `own` stands in the user's settings."""
    setup = Setup(name="codex", options={"program": program("codex")}, places=ground.places)
    uses = [Tool("exec_command", {"cmd": command}) for command in commands]
    hand = Hand([*uses, Tool("apply_patch", {"input": PATCH.format(ground.exports / "evil")})], ground.state)
    with Responses(hand) as server:
        environment = codex_environment(ground.home, server, model="gpt-5.5")
        settings = Path(environment["CODEX_HOME"]) / "config.toml"
        settings.write_text(own + settings.read_text("utf-8"), "utf-8")
        monkeypatch.setenv("CODEX_HOME", environment["CODEX_HOME"])
        argv = Codex(setup).command(ground.turn(cwd)).argv
        ended = subprocess.run(argv, cwd=cwd, env=environment, input="go", capture_output=True, text=True)
        assert (ended.returncode, len(hand.told)) == (0, len(uses) + 1), ended.stdout + ended.stderr
        assert server.others == []
    return hand


@needs_codex
def test_codex_changes_no_place_of_raymonds_even_where_its_sandbox_would_let_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it lies in the working directory, and in /tmp besides."""
    ground = Ground(tmp_path, inside=True)
    before = [files(ground.exports), ground.config.read_bytes()]
    commands = [
        f"mv {ground.hidden} moved; mv {ground.state} moved; mv {ground.exports} moved; mv {ground.config} moved",
        f"echo x >> {ground.hidden / JOURNAL}; echo x > {ground.work}/CHECK.sh; echo x > {ground.config}",
        f"python3 -c \"import shutil; shutil.rmtree('{ground.state}')\"; mkdir {ground.hidden}/evil; git clean -fdx",
        f"mkdir -p {ground.task}; touch {ground.task}/made made; cat {ground.work}/CHECK.sh",
    ]
    hand = codex(ground, commands, monkeypatch, ground.project)
    assert hand.changed == []
    assert [files(ground.exports), ground.config.read_bytes()] == before
    assert "echo checked" in hand.told[-2]
    assert {"made"} == set(os.listdir(ground.task))
    assert set(os.listdir(ground.project)) == {".git", ".raymond", "made", "state", "sub"}


@needs_codex
@pytest.mark.parametrize("where", ["sub", "worktree"])
def test_wherever_an_agent_of_codex_works_it_can_write_in_its_task_folder(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    ground = Ground(elsewhere)
    cwd: Path = getattr(ground, where)
    commands = [f"touch {ground.task}/made made", f"touch {ground.project}/made", f"cat {ground.work}/CHECK.sh"]
    hand = codex(ground, [*commands, f"touch {ground.hidden}/evil"], monkeypatch, cwd)
    assert (set(os.listdir(ground.task)), hand.changed) == ({"made", "note"}, [])
    assert (cwd / "made").exists()
    assert not (ground.project / "made").exists()
    assert "echo checked" in hand.told[2]


@needs_codex
def test_what_the_user_says_of_the_sandbox_counts_as_before_but_opens_none_of_raymonds_places(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground, theirs, other = Ground(elsewhere), elsewhere / "theirs", elsewhere / "other"
    theirs.mkdir()
    other.mkdir()
    roots = json.dumps([str(theirs), str(ground.state)])
    own = f"""\
sandbox_mode = "danger-full-access"
sandbox_workspace_write = {{network_access = true, exclude_slash_tmp = true, writable_roots = {roots}}}
"""
    connect = "import socket; print('socket', socket.socket().fileno() > 0)"
    outside = f"/tmp/{uuid.uuid4()}"
    commands = [f"touch {theirs}/made {other}/made {outside} $TMPDIR/made", f'python3 -c "{connect}"']
    hand = codex(
        ground, [*commands, f"touch {ground.hidden}/evil {ground.state}/evil"], monkeypatch, ground.project, own
    )
    assert os.listdir(theirs) == ["made"]
    assert os.listdir(other) == []
    assert not os.path.exists(outside)
    assert (ground.home / "tmp" / "made").exists()
    assert "socket True" in hand.told[1]
    assert hand.changed == []
