"""Start a loop: the commit that it begins with, where its agents work, and what must hold before."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from time import time

from msgspec import Struct
from msgspec.structs import replace

from raymond.backends import guard, registry
from raymond.backends.contract import NO_ACCOUNT
from raymond.control import gate, runs
from raymond.control import start as starts
from raymond.control.handle import RunHandle
from raymond.control.start import Choices
from raymond.digests import sha256
from raymond.errors import BackendError, UsageError
from raymond.language.policy import Policy
from raymond.language.ways import Way
from raymond.language.workflow import State
from raymond.loops import checks, documents, finding, reasons, state
from raymond.loops.branch import BASE, OWN, TIP, VOUCHED, Branch, borrowed
from raymond.loops.documents import STATES, Documents, Folder, Stored, stored
from raymond.loops.finding import Earlier
from raymond.loops.formats import records, state_file
from raymond.loops.loop_run import LoopRun
from raymond.loops.next_item import STOP
from raymond.loops.settings import BRACES, RALPH, SESSION, STORIES, TASKS, VARIABLE, Settings
from raymond.loops.step import branch_of
from raymond.machine.agent import SCRIPTED
from raymond.machine.evaluators import SMALL
from raymond.store import loader
from raymond.store import project as projects
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system import git
from raymond.system.files import contents, make_private, private
from raymond.system.files import replace as write_file
from raymond.workspace import ability, carried, publish, tree
from raymond.workspace import tree as trees
from raymond.workspace.repository import Repository

PLAN = "docs(loop): the plan"
TAKEN = "chore(loop): uncommitted changes taken along"
_MERGED = "chore(loop): merge what was committed since"

WORKFLOW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "session")
"""The workflow of the loops over items."""
PLAIN = os.path.join(os.path.dirname(WORKFLOW), "ralph")
"""The workflow of the plain loop."""

DENIED = (
    *("Bash(git push --force:*)", "Bash(git push -f:*)", "Bash(git push --mirror:*)", "Bash(git push --delete:*)"),
    *("Bash(git push * --force*)", "Bash(git push * -f)", "Bash(git push * --mirror*)", "Bash(git push * +*)"),
    *("Bash(git reset --hard:*)", "Bash(git clean -f:*)", "Bash(git clean -fd:*)", "Bash(git clean -fdx:*)"),
    *(f"Edit(**/{name})" for name in STATES.values()),
)
"""What agents of a loop may not do, where their program can be told so."""
_OF_ITEMS = ("FAILED.py", "WORK.md", "PAUSE.py", "CHECK.py", "MANUAL.py")
_NEEDED = {
    RALPH: ("BEFORE.py",),
    SESSION: _OF_ITEMS,
    TASKS: _OF_ITEMS,
    STORIES: (*_OF_ITEMS, "PLAN.md", "PLANNED.py"),
}
"""The states that a workflow has to have: the loop itself sends agents there."""
_NO_ACCOUNT = "without an account: --replies FILE, e.g. with `WORK: ITERATION_COMPLETE`"

_PLACED = (
    "WORK.md",
    "REJECTED.md",
    "PLAN.md",
    "CLOSING.md",
    "CHECK.py",
    "RECHECK.py",
    "CHECK_RETURNED.py",
    "BEFORE.py",
)
"""The states in which agents work, and those that have nothing but a gate."""

_held: dict[str, int] = {}
"""The locks that this process holds: path -> descriptor."""
_SHOWN = 5


# Where it begins


class StartPoint(Struct, frozen=True):
    """What a loop begins with; only objects of it exist until it is published."""

    checkout: str
    """The commit of the checkout as it stands, or as much of it as counts."""
    start: str
    """The commit that the first item begins with."""
    vouched: str
    """The trees with what decides checks: as it counts, and as a person left it."""
    own: str
    taken: list[str] = []
    """Files that are not committed and were taken along."""
    left_out: list[str] = []
    """Files that look as if they had a secret in them."""
    builds_on: str = ""
    """The loop whose branch it continues."""

    def publish(self, branch: Branch) -> None:
        """Write the references of a loop that begins."""
        repository, top, head = branch.repository, branch.top, git.head(branch.top)
        known = repository.tree_of(self.start)
        text = "raymond: what decides checks\n"
        commits = [
            self.start if one == known else repository.commit(one, [self.start], text, time())
            for one in (self.vouched, self.own)
        ]
        publish.send(repository, top, [self.checkout, self.start, *commits], [head])
        named = {BASE: self.checkout, VOUCHED: commits[0], OWN: commits[1], TIP: self.start}
        for what, commit in named.items():
            publish.ask(top, "update-ref", "--no-deref", branch.reference(what), commit)


def find_start(
    repository: Repository,
    top: str,
    kept: list[str],
    *,
    carry: list[str],
    takes_all: bool,
    since: str = "",
    earlier: Earlier | None = None,
) -> StartPoint:
    """Work out where a loop begins; `kept` are its documents, which are always taken as they stand in the checkout.

    `takes_all`: other files that are not committed are taken along too. `since` is the commit that was asked for.
    """
    head = git.head(top)
    if since and since != head:
        start = repository.tree_of(since)
        return StartPoint(since, since, start, start)
    tree.take_index(repository, top, head)
    found = carried.survey(repository, top, carry)
    old = repository.tree_of(head)
    new = tree.snapshot(repository, top, found)
    changes = repository.changes(old, new)
    left_out = sorted(reasons.secret_files(repository, changes))
    new = repository.changed(new, {path: changes[os.fsencode(path)][0] for path in left_out})
    documents = repository.changes(old, new, kept)
    plan = repository.changed(old, {os.fsdecode(path): entry for path, (_, entry) in documents.items()})
    if not takes_all:
        new = plan
    start = head
    for one, message in ((plan, PLAN), (new, TAKEN)):
        if one != repository.tree_of(start):
            start = repository.commit(one, [start], f"{message}\n", time())
    taken = sorted(os.fsdecode(path) for path in repository.changes(old, new) if path not in documents)
    point = StartPoint(start, start, new, new, taken, left_out)
    return _on_top(repository, top, point, earlier, takes_all=takes_all) if earlier and not since else point


def _on_top(repository: Repository, top: str, point: StartPoint, earlier: Earlier, *, takes_all: bool) -> StartPoint:
    """The same on top of an earlier loop, unless the checkout has all of that."""
    head = git.head(top)
    mine = repository.tree_of(point.start)
    theirs = repository.tree_of(earlier.tip)
    # What that loop took along is the same change on both sides, and no conflict. Where it is not looked at now, its
    # absence is no change.
    is_there = not takes_all or publish.contains(top, head, earlier.base)
    parents = [head] if is_there else [head, earlier.base]
    person = repository.commit(mine, parents, "the checkout\n", 0)
    merged, conflicts = repository.merged(earlier.tip, person)
    if conflicts:
        merged = _united(repository, earlier, person, merged, conflicts)
    if merged == mine:
        return point
    start = earlier.tip
    if merged != theirs:
        above = [earlier.tip] if publish.contains(top, earlier.tip, head) else [earlier.tip, head]
        start = repository.commit(merged, above, f"{_MERGED if len(above) > 1 else PLAN}\n", time())
    vouched, own = (_inherited(repository, merged, theirs, one) for one in (earlier.vouched, earlier.own))
    return StartPoint(point.checkout, start, vouched, own, point.taken, point.left_out, earlier.id)


def _united(repository: Repository, earlier: Earlier, person: str, merged: str, conflicts: list[str]) -> str:
    """A merge in which both sides have only added entries to records."""
    if others := [path for path in conflicts if path not in earlier.records]:
        what = f"{earlier.id} is not merged, and conflicts with your checkout in {others[0]}"
        hint = (
            f"commit or stash your changes, git merge {earlier.name} and resolve it, or start without it: --from HEAD"
        )
        raise UsageError(what, hint=hint)
    sides: list[Mapping[bytes, bytes]] = [repository.entries(one) for one in (earlier.tip, person)]
    lines = {}
    for path in conflicts:
        entries = [one[os.fsencode(path)] for one in sides if os.fsencode(path) in one]  # a person may remove it
        texts = [repository.ask("cat-file", "blob", one.split()[1].decode()).decode() for one in entries]
        lines[path] = repository.put(entries[0].split()[0], records.united(*texts[:1], *texts[-1:]).encode())
    return repository.changed(merged, lines)


def _inherited(repository: Repository, merged: str, tip: str, vouched: str) -> str:
    """What decides checks as it counted for the earlier loop, but where the person changed it since."""
    differing = repository.changes(tip, vouched)
    since = repository.changes(tip, merged)
    lines = {os.fsdecode(path): new for path, (_, new) in differing.items() if path not in since}
    return repository.changed(merged, lines)


def way_of(project: Project, top: str, asked: str, loaded: Loaded, options: Choices) -> tuple[Way, str]:
    """How far apart agents can work on this machine, and why not further; refused if that was asked for."""
    why = ""
    for way in ("isolated", "copy"):
        if asked and asked != way:
            continue
        try:
            _check_way(project, top, way, loaded, options)
            return ("isolated" if way == "isolated" else "copy"), why
        except (UsageError, BackendError) as error:
            if asked:
                raise
            why = why or str(error)
    return "here", why


def _check_way(project: Project, top: str, way: str, loaded: Loaded, options: Choices) -> None:
    if f"{project.home.path}/".startswith(f"{project.tree}/"):
        raise UsageError(f"the runs of this project are kept in it: {project.home.path}")
    trees.check(top, list(loaded.workflow.settings.carry), copies=way == "copy")
    if way != "isolated":
        return
    if problem := ability.probe(project.home.path).problem:
        raise UsageError(f"steps cannot be isolated on this machine: {problem}")
    for name in dict.fromkeys(starts.backends_of(loaded, options)):
        login = guard.login(None if name in SCRIPTED else registry.backend(name, options.tables))
        if login.problem:
            raise BackendError(login.problem, backend=name, hint=login.hint)


class Draft(Struct, frozen=True):
    """What a loop would begin with; nothing of it is in the person's repository yet."""

    point: StartPoint
    branch: Branch
    documents: Stored

    def publish(self) -> None:
        """Write its references; refused where the branch cannot follow them."""
        if self.branch.commit_of(TIP):
            self.branch.withdraw()  # a start was killed before there was a run
        self.point.publish(self.branch)
        branch = self.branch
        there = git.reference(branch.top, f"refs/heads/{branch.name}") if branch.name else ""
        if not there or publish.contains(branch.top, branch.tip, there):
            branch.follow()  # it moves no branch with commits of a person's
        is_looked_at = not branch.is_here and f"ref: refs/heads/{branch.name}" in git.checked_out(branch.top)
        name, tip = branch.name, branch.tip
        if name and (is_looked_at or git.reference(branch.top, f"refs/heads/{name}") != tip):
            self.branch.withdraw()
            what = f"the branch {name} has other commits, or has the name of a folder of branches"
            raise UsageError(what, hint="name another one: --branch NAME; or --branch current")


@contextlib.contextmanager
def draft(
    project: Project, checkout: Folder, id: str, settings: Settings, *, takes_all: bool, since: str
) -> Iterator[Draft]:
    """Work out what a loop begins with, in a repository of its own."""
    top = checkout.top
    tip = f"refs/raymond/{id}/tip"
    if publish.held(top, tip) and (
        project.run(id).exists or publish.ask(top, "log", f"--grep=^Raymond-Run: {id}$", "-1", tip)
    ):
        way = f"raymond clean {id} removes it" if project.run(id).exists else f"git update-ref -d {tip} removes that"
        raise UsageError(f"{tip} has the work of an earlier run", hint=f"take another --id; {way}")
    asked = ("check-ref-format", "--branch", settings.branch)
    if (
        settings.branch
        and publish.ask(top, *asked, fails=[1, 128]).decode("utf-8", "replace").strip() != settings.branch
    ):
        raise UsageError(f"`{settings.branch}` cannot be the name of a branch", hint="--branch NAME")
    if settings.way != "here" and f"ref: refs/heads/{settings.branch}" in git.checked_out(top):
        hint = "--branch current brings the work into it at the end; or name another one: --branch NAME"
        raise UsageError(f"the branch {settings.branch} is checked out", hint=hint)
    if since:
        found = git.reference(top, since)
        if not found:
            raise UsageError(f"--from {since}: there is no such commit", hint="git log --oneline --all shows them")
        since = found
    before = finding.unmerged(project, checkout, settings.loop, settings.prompt)
    with borrowed(project.root, top) as repository:
        rules = f"{repository.path}/info/exclude"  # the person's get these lines once the loop has begun
        write_file(rules, contents(rules) + "".join(f"{one}\n" for one in checkout.excluded()).encode())
        earlier = finding.earlier(before) if before and not since and before.run.is_over else None
        point = find_start(
            repository,
            top,
            checkout.kept,
            carry=list(settings.carry),
            takes_all=takes_all,
            since=since,
            earlier=earlier,
        )
        branch = branch_of(project, id, settings, repository)
        yield Draft(point, branch, stored(checkout, repository, point.start))


def check_here(checkout: Folder, settings: Settings) -> None:
    """Refuse to work in a checkout that cannot be brought to a commit, or to bring it to its own branch."""
    entries = os.fsdecode(publish.ask(checkout.top, "ls-files", "-s", "-z")).split("\0")
    module = next((one.partition("\t")[2] for one in entries if one.startswith("160000 ")), "")
    if module:
        hint = "raymond ralph PROMPT.md --commit never works there, and commits nothing"
        raise UsageError(f"{module} is a submodule: a loop that makes commits does not work with those", hint=hint)
    if publish.settings(checkout.top).get("core.sparsecheckout") == "true":
        raise UsageError("a loop does not work in a sparse checkout", hint="git sparse-checkout disable")
    if settings.applies and settings.branch:
        hint = "leave it out: the loop has a branch of its own there, and its summary says how to merge it"
        raise UsageError("--branch current is not for --workspace here", hint=hint)


def check_clean(checkout: Folder, point: StartPoint, why: str) -> None:
    """Refuse to work in a checkout with changes that are not committed: the agent's would be mixed with them."""
    if point.taken:
        hint = f"commit or stash them; agents would work here, because {why}" if why else "commit or stash them"
        raise UsageError(f"the checkout has changes that are not committed: {point.taken[0]}", hint=hint)


def check_alone(project: Project, checkout: Documents, settings: Settings, own: str = "") -> None:
    """Refuse a second loop of a kind with these documents while the first lives, and a second one in the checkout.

    The locks are held for as long as this process lives, or one that goes on in the background for it.
    """
    for there in finding.open_loops(project):
        if there.id == own or not is_rival(there, checkout, settings):
            continue
        if runs.is_driven(project.run(there.id)):
            shows, stops = finding.command(there, "status"), finding.command(there, "stop")
            hint = f"{shows} shows it, {stops} ends it after the item it is at"
            raise UsageError(f"a {there.loop} is running here: {there.id}", hint=hint)
        if there.ledger.open and settings.way == there.settings.way == "here":
            hint = f"{finding.command(there, 'resume')} continues it, raymond cancel {there.id} ends it"
            raise UsageError(f"{there.id} was cut off in the middle of an item: {there.ledger.open.title}", hint=hint)
    kind = f"{settings.loop} {os.path.realpath(checkout.folder)}"
    names = [] if settings.loop == RALPH else [kind]
    names += ["here"] if settings.way == "here" else []
    make_private(project.root)
    for name in names:
        path = os.path.join(project.root, f"loop-{sha256(os.fsencode(name)).hexdigest()[:12]}.lock")
        if path in _held:
            continue
        fd = private(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise UsageError("another loop starts or runs on this checkout", hint="raymond list shows it") from None
        _held[path] = fd


def is_rival(there: LoopRun, checkout: Documents, settings: Settings) -> bool:
    """Whether another loop and this one would disturb each other."""
    if settings.way == there.settings.way == "here":
        return True
    is_same = (there.loop, there.settings.prompt) == (settings.loop, settings.prompt)
    return is_same and finding.is_of(there, checkout)


def let_go() -> None:
    """Leave the documents to others, but for a process that was started meanwhile: it holds the locks with us."""
    while _held:
        os.close(_held.popitem()[1])


def new_id(name: str, asked: str, *, dry: bool) -> str:
    """The id of a new run; what stands for it where nothing is started."""
    return asked or ("ID" if dry else f"{name}-{os.urandom(4).hex()}")


def load(
    workflow: str,
    choices: Choices,
    checks: Sequence[str],
    loop: str,
    way: Way,
    *,
    internal: bool = False,
    dry: bool = False,
) -> Loaded:
    """The workflow of a loop, with what its agents may and may not do; refused when no run could begin with it.

    Raymond starts no agents of its own in an `internal` one. In a `dry` run their program need not be there.
    """
    if choices.allow_gate_commands:
        allowed = [gate.tool_pattern(one, "the loop") for one in dict.fromkeys(checks)]
        choices.allow_tools = [*(choices.allow_tools or []), *allowed]
        choices.allow_gate_commands = False
    if choices.backend in ("", "claude") and not choices.replies:
        for state in ("WORK.md", "REJECTED.md"):
            denied = {"disallowed_tools": list(DENIED), **choices.overrides.get(state, {})}
            choices.overrides = {**choices.overrides, state: denied}
    choices.workspace, choices.loop = "", loop
    choices.max_iterations = None  # a setting for runs counts steps, and a loop items
    for name in _PLACED if way != "here" else ():
        if os.path.exists(os.path.join(workflow, name)):
            given = choices.overrides.get(name, {})
            choices.overrides = {**choices.overrides, name: {"workspace": way, **given}}
    loaded = (
        loader.without_prompts(workflow, choices.overrides) if internal else starts.load(workflow, choices.overrides)
    )
    if workflow == WORKFLOW:  # it ships for several
        loaded.workflow.name = loop
    needed = () if internal else _NEEDED[loop]
    missing = next((one for one in needed if one not in loaded.workflow.states), "")
    if missing:
        hint = f"raymond {loop} eject DIR makes one"
        raise UsageError(f"{workflow} is not a workflow of {loop}: it has no {missing}", hint=hint)
    try:
        starts.prepare(loaded, choices, look=not dry)
    except BackendError as error:
        error.hint = error.hint.replace(NO_ACCOUNT, _NO_ACCOUNT)
        raise
    return loaded


def check_of(settings: Settings) -> State | None:
    """The check of the plain loop as a gate that can be tried; None without one."""
    if not settings.gate:
        return None
    policy = Policy(gate=checks.read_checks(checks.gate_of(settings.gates)), gate_timeout=settings.gate_timeout)
    return State(name="check", kind="script", body="", line=1, policy=policy)


def check_judge(settings: Settings, choices: Choices) -> None:
    """Refuse a goal without a judge: the default model of a program is rarely small."""
    backend, is_played = choices.backend or "claude", choices.replies and not choices.backend_was_typed
    if settings.goal and not is_played and not choices.small_model and backend not in (*SMALL, *SCRIPTED):
        hint = 'name one in ~/.config/raymond/config.toml: small_model = "NAME"'
        raise UsageError(f"--goal needs a judge model: set `small_model` for {backend}", hint=hint)


def settled(settings: Settings, point: StartPoint) -> Settings:
    """The settings with what is known of the checkout."""
    line = git.branch_line(projects.at(os.getcwd()).tree) if settings.way == "here" else ""
    return replace(settings, took=len(point.taken), began_on=line.removeprefix("ref: refs/heads/"))


def introduction(settings: Settings, point: StartPoint | None) -> Iterator[str]:
    """What a loop that begins says of where its agents work, and of what it begins with."""
    why = f" ({settings.why})" if settings.why else ""
    ways = {"isolated": "in an isolated workspace", "copy": "in a private copy", "here": "in this checkout"}
    if point is None:
        yield f"agents work {ways[settings.way]}{why}"
        counts = "only the check tells what counts" if settings.gate else "every iteration counts, whatever it did"
        yield f"nothing is committed, so Raymond does not see what an iteration changes: {counts}"
        return
    where = f"; {settings.branch} gets what counts" if settings.branch else "; what counts comes into the checkout"
    yield f"agents work {ways[settings.way]}{why}{where}"
    if point.builds_on:
        yield f"it continues what {point.builds_on} did, which is not merged; --from HEAD begins without that"
    if point.taken:
        yield f"your changes that are not committed are taken along: {few(point.taken)}"
    if point.left_out:
        yield f"left out, because it looks like a secret: {few(point.left_out)}"


def begin(loaded: Loaded, choices: Choices, settings: Settings, draft: Draft | None) -> RunHandle:
    """Write the first decision of the loop's run, and the references of its branch before it."""
    choices.variables = {**choices.variables, VARIABLE: settings.write(), BRACES: "{{"}
    if draft is None:
        return starts.begin_here(loaded, choices)
    draft.publish()
    try:
        return starts.begin_here(loaded, choices)
    except BaseException:
        draft.branch.withdraw()
        raise


def stop(loop: LoopRun) -> None:
    """Let the loop end after the item it is at."""
    write_file(loop.file(STOP), b"")
    if loop.loop == RALPH and not os.path.isdir(loop.checkout.folder):
        return
    path = loop.checkout.state(loop.loop)
    try:
        before = state_file.read(documents.beginning(path) or "{}")
    except state_file.Broken:
        before = {}
    known = {"status": "stopping", "lastUpdated": state.instant(time())}
    documents.write(path, state_file.write(known, before))


def go_on(loop: LoopRun) -> None:
    """Forget that it was asked to stop."""
    if os.path.exists(loop.file(STOP)):
        os.unlink(loop.file(STOP))


def check_new(id: str) -> None:
    """Refuse an id with which no run can begin."""
    if not id.replace("-", "").replace("_", "").isalnum() or len(id) > 100:
        raise UsageError(f"`{id}` is not a valid id", hint="use up to 100 letters, digits, _ and -")


def few(paths: list[str]) -> str:
    """Some of them, and how many more there are."""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"
