"""Claude Code: what to start for a turn, in which folder its settings and sessions are, and what it may touch.

What a turn may do in Raymond's own places is JSON of its own, apart from the tools a workflow names: nothing written
there can end a rule early.
"""

import contextlib
import glob
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, json
from msgspec.structs import replace

from raymond import pasted
from raymond.backends import (
    Abilities,
    Command,
    Found,
    Login,
    Places,
    Reply,
    Setup,
    Trouble,
    Turn,
    agent_program,
    claude_bill,
)
from raymond.backends.agent_program import Payer, as_table, decode
from raymond.backends.claude_stream import StreamReader, ToolUse
from raymond.backends.contract import NO_ACCOUNT
from raymond.patterns import regex
from raymond.store import home as homes
from raymond.store import program_cache
from raymond.store.trust import top_of
from raymond.system import files, programs
from raymond.system.files import foreign, make_private, private
from raymond.workspace import home

_NAMES = (
    *("settings.json", "CLAUDE.md", "agents", "commands", "hooks"),
    *("output-styles", "plugins", "rules", "skills"),
)
"""What a run gets copies of."""
_OF_A_PROJECT = (
    *("hasTrustDialogAccepted", "hasClaudeMdExternalIncludesApproved", "allowedTools"),
    *("mcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers"),
)
_STATE = ".claude.json"
_LARGEST_STATE = 64 << 20

_LARGEST_RECORD = 64 << 20

_GUARDED_FOLDERS = frozenset(
    {".git", ".vscode", ".idea", ".claude", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn"}
)
_GUARDED_FILES = frozenset(
    (
        *(".gitconfig", ".gitmodules", ".ripgreprc", ".mcp.json", ".claude.json", ".envrc"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile"),
        *(".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout"),
        *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs"),
        *("bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion", ".bazeliskrc"),
        *(".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml"),
        *("gradle-wrapper.properties", "maven-wrapper.properties", ".devcontainer.json", "pyrightconfig.json"),
    )
)

# A rule holds a pattern as in .gitignore. `?` is not among these: the program does not understand it escaped, and as it
# is it matches any character, itself included.
_OF_PATTERNS = regex(r"[\\*\[\]!#]| (?= *\Z)")
_OF_RULES = regex(r"[\\()]")

OUTER = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""What an outer Claude Code sets for its children; everything else is the user's."""
OLDEST = (2, 1)
"""The oldest version Raymond is tested with."""
_INSTALL = "install Claude Code, then start it once to log in"
_LOG_IN = "start `claude` once and log in, or set ANTHROPIC_API_KEY"
_ASKS = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")
"""Tools that wait for a person, who is not there."""
_ACTS_LATER = (
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger"),
    *("Monitor", "ListAgents", "ListPeers", "SendMessage", "PushNotification"),
)
"""Tools with which a session acts by itself after its turn, elsewhere, or on other sessions: a turn has an end."""
_INSTRUCTIONS = "CLAUDE.md"
_MOST_INSTRUCTIONS = 100_000
_MOST_SETTINGS = 1 << 24
_IN_SPOOL = "instructions"
"""The file in the spool that has the project's instructions."""
_EDITS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
_LONGEST_NAME = 200
"""Letters in the name of a project's folder; a longer one is shortened in a way that is not documented."""
_LONGEST_SESSION = 1 << 28
"""Bytes of a conversation; the agent can write there, and what it writes is read into memory."""
_NO_MODE = "option '--permission-mode <mode>' argument"
"""How the program begins to say, before anything else, that it does not know a mode."""
_LENT = "the agent's program can read the login in {}; `claude setup-token` avoids that"
_FIXED = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")


# Its folder


def own_folder(environment: Mapping[str, str] = os.environ) -> str:
    """The person's own."""
    return environment.get("CLAUDE_CONFIG_DIR") or os.path.join(environment.get("HOME", ""), ".claude")


def furnish(folder: str, cwd: str) -> None:
    """Make the folder of a run that works in `cwd`, once."""
    home.furnish(folder, own_folder(), _NAMES, {_STATE: json.encode(_state(cwd))})


def _state(cwd: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Of what the program remembers, the servers and what the person said of this project."""
    path = os.path.join(environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", ""), _STATE)
    try:
        known = decode(foreign(path, _LARGEST_STATE))
    except OSError:
        known = {}
    top = top_of(cwd)
    projects = {
        path: {name: about[name] for name in _OF_A_PROJECT if name in about}
        for path, about in as_table(known.get("projects")).items()
        if isinstance(about, dict) and (_is_below(cwd, path) or _is_below(path, top))
    }
    return {"hasCompletedOnboarding": True, "mcpServers": as_table(known.get("mcpServers")), "projects": projects}


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def login() -> str:
    """The folder of a login that Raymond has for itself, which all runs share.

    The program renews a login in place and locks it by a folder beside this one. Both can be shared only as a whole,
    so nothing else is in here.
    """
    return os.path.join(homes.find().path, "logins", "claude")


# What the person trusts


class _Folder(Struct, frozen=True, rename={"accepted": "hasTrustDialogAccepted"}):
    accepted: bool = False


class _Record(Struct, frozen=True):
    projects: dict[str, _Folder] = {}


def trusted_folders(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Every folder for which the program asked, and the person agreed; none when its record cannot be read."""
    folder = environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", "")
    try:
        path = os.path.realpath(os.path.join(folder, ".claude.json"))
        record = msgspec.json.decode(files.contents(path, _LARGEST_RECORD), type=_Record)
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(path for path, one in record.projects.items() if one.accepted)


# What it guards itself


def guards(path: str) -> bool:
    """Whether the program refuses to edit `path` even where edits are allowed."""
    folder, name = os.path.split(path)
    return name in _GUARDED_FILES or not _GUARDED_FOLDERS.isdisjoint((*folder.split("/"), name))


# What it may do in Raymond's places


def settings_of_turn(places: Places, task_folder: str) -> str:
    """The settings for a turn; empty when there is nothing to say."""
    said = {
        "deny": [
            *_rules("Read", places.hidden),
            *_rules("Edit", (*places.hidden, *places.readable, *places.fixed)),
        ],
        # `--add-dir` would also load the skills, commands and agents it finds in these folders.
        "allow": _rules("Read", places.readable),
        "additionalDirectories": [task_folder] if task_folder else [],
    }
    permissions = {name: value for name, value in said.items() if value}
    return json.encode({"permissions": permissions}).decode() if permissions else ""


def _rules(tool: str, paths: Iterable[str]) -> list[str]:
    """A rule on a folder covers it and all below it; behind a link it can only be read when both names are allowed."""
    both = dict.fromkeys(one for path in paths for one in (path, os.path.realpath(path)))
    return [f"{tool}(/{_escaped(path)})" for path in both]


def _escaped(path: str) -> str:
    return _OF_RULES.sub(r"\\\g<0>", _OF_PATTERNS.sub(r"\\\g<0>", path))


# A turn


class Claude:
    """Runs `claude -p`, one process for each turn, each in its own session."""

    name = "claude"
    paid = True
    can = Abilities(
        branches=True,
        continues=True,
        takes_session_ids=True,
        caps_cost=True,
        recalls=True,
        permission_modes=True,
        tool_rules=True,
    )

    def __init__(self, setup: Setup) -> None:
        self._options = agent_program.read_options("claude", setup.options)
        self._program = self._options.program
        self._places = setup.places
        self._trust = setup.trust
        self._folder = setup.folder

    def look(self) -> Found:
        """Look for the program, its version and who is logged in."""
        path, problem = programs.locate(self._program)
        if problem:
            return Found(program=path, problem=problem, hint=_INSTALL, instead=NO_ACCOUNT)
        version, problem = program_cache.checked_version(path, "Claude Code", OLDEST, OUTER)
        settings = _own_settings(own_folder())
        payer = self._payer(settings)
        hint = "" if payer.name else _LOG_IN
        if problem:
            hint = programs.way_out(path, version, "claude update")
        return Found(
            program=path,
            problem=problem,
            version=version,
            payer=payer.name,
            key=payer.key,
            host=payer.host,
            account=payer.account,
            keeps_days=_keeps(settings),
            acts=_acts(self._used(settings)),
            hint=hint,
        )

    def _used(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The user's settings, if they count."""
        named = self._options.setting_sources
        return settings if named is None or "user" in named else {}

    def _payer(self, settings: dict[str, Any]) -> Payer:
        return claude_bill.payer_of(os.environ, own_folder(), self._used(settings))

    def login(self) -> Login:
        """A key or a token pays where there is one; a login is lent only from the folder that Raymond has for it."""
        payer = self._payer(_own_settings(own_folder()))
        if payer.name and not payer.login:
            return Login()
        folder = login()
        if os.path.exists(os.path.join(folder, claude_bill.CREDENTIALS)):
            return Login(note=_LENT.format(folder))
        if not payer.login:
            return Login()
        problem = (
            f"the login in {payer.login} cannot be lent to a workspace: to renew it is to write beside your settings"
        )
        again = f"(umask 077; {claude_bill.STORAGE}={pasted.word(folder, 'DIR')} claude auth login)"
        hint = f"run `claude setup-token` and set {claude_bill.TOKEN}; or log in once more for workspaces: {again}"
        return Login(problem=problem, hint=hint)

    def command(self, turn: Turn) -> Command:
        """A branch of the conversation before, under an id we choose."""
        sources, files = self._sources(turn)
        argv = [self._program, *_FIXED, *self._options.args, *sources, "--session-id", turn.session]
        if turn.base:
            argv += ["--resume", turn.base, "--fork-session"]
        # A session keeps neither reliably: pass both every time.
        argv += ["--model", turn.model] if turn.model else []
        argv += ["--effort", turn.effort] if turn.effort else []
        argv += ["--max-budget-usd", f"{turn.cap:.4f}"] if turn.cap else []
        command = Command([*argv, *self._rights(turn)], _environment(turn), OUTER, files)
        return self._housed(turn, command) if self._folder_of(turn) else command

    def _folder_of(self, turn: Turn) -> str:
        """The folder of the run, for a turn that uses it."""
        return self._folder if turn.isolated else ""

    def _housed(self, turn: Turn, command: Command) -> Command:
        """The same in a workspace: the folder of the run is where the person's own would be."""
        own = os.path.abspath(own_folder())
        furnish(self._folder, turn.cwd)
        if turn.base and not _session(turn.base, self._folder):
            self._fetch(turn.base)
        environment, folders = {**command.environment, "CLAUDE_CONFIG_DIR": own}, {own: self._folder}
        if self.login().note:
            environment[claude_bill.STORAGE] = login()
            shared = os.path.dirname(login())
            folders[shared] = shared
        needs = self._payer(_own_settings(own)).needs
        return replace(command, environment=environment, needs=needs, folders=folders)

    def _fetch(self, session: str) -> None:
        """Bring a conversation along that a turn outside of the workspace has left in the person's folder."""
        for path in glob.glob(os.path.join(glob.escape(sessions()), "*", f"{session}.jsonl")):
            folder, name = os.path.split(path)
            names = (os.path.basename(folder), name)
            home.bring(os.path.realpath(sessions()), _sessions(self._folder), names, _LONGEST_SESSION)

    def export(self, turn: Turn, session: str) -> None:
        """Copy the conversation to the place where `claude --resume` looks for it."""
        names = (_folder_name(turn.cwd), f"{session}.jsonl")
        if self._folder_of(turn) and len(names[0]) <= _LONGEST_NAME:
            home.bring(_sessions(self._folder), os.path.realpath(sessions()), names, _LONGEST_SESSION)

    def _sources(self, turn: Turn) -> tuple[list[str], dict[str, bytes]]:
        """Which settings it uses. Those of a project nobody trusts are left out, and its instructions handed on."""
        named = self._options.setting_sources
        if self._trust.covers(turn.cwd) and not turn.no_tools:
            return [] if named is None else ["--setting-sources", ",".join(named)], {}
        own = "user" if named is None or "user" in named else ""
        flags = ["--setting-sources", own, "--strict-mcp-config"]
        # Who answers without tools needs no instructions for the work.
        said = "" if turn.no_tools else agent_program.read_instructions(turn.cwd, _INSTRUCTIONS, _MOST_INSTRUCTIONS)
        if not said:
            return flags, {}
        flags += ["--append-system-prompt-file", os.path.join(turn.spool, _IN_SPOOL)]
        return flags, {_IN_SPOOL: said.encode()}

    def _rights(self, turn: Turn) -> list[str]:
        rights = _each("--disallowedTools", (",".join((*_ASKS, *_ACTS_LATER)), *turn.disallowed_tools))
        rights += _each("--allowedTools", turn.allowed_tools)
        rights += ["--tools", ""] if turn.no_tools else []
        settings = settings_of_turn(self._closed(turn), turn.task_folder)
        rights += ["--settings", settings] if settings else []
        if turn.skip_permissions:
            return ["--dangerously-skip-permissions", *rights]
        return ["--permission-mode", turn.permission_mode or "acceptEdits", *rights]

    def reader(self, turn: Turn) -> "ClaudeReader":
        """Its stream-json."""
        return ClaudeReader(turn, self._closed(turn), self._folder_of(turn))

    def _closed(self, turn: Turn) -> Places:
        """Raymond's own places that the program has to be kept from: an isolated one cannot reach them."""
        if turn.isolated:
            return Places(readable=self._places.readable)
        return self._places.around(turn.cwd) if self._folder else self._places

    def recall(self, turn: Turn) -> Reply | None:
        """The whole reply at the end of its session file, if it answers the same prompt; its cost is not there."""
        folder = self._folder_of(turn)
        session = _session(turn.session, folder)
        said = _last_message(session)
        # A branch begins as a copy: the last message may still be that of the conversation it came from.
        before = _session(turn.base, folder) if turn.base else b""
        if not said or (turn.base and not before) or str(said.get("id")).encode() in before:
            return None
        if not turn.is_asked_in(_prompts(session)):
            return None
        return Reply(text=_text(said), session=turn.session, spent=turn.unpriced())

    def carry(self, session: str, cwd: str) -> bool:
        """Copy the conversation to the folder of `cwd`, the only one it is looked for in."""
        data, name = _session(session), _folder_name(cwd)
        if not data or len(name) > _LONGEST_NAME:
            return False
        folder = os.path.join(sessions(), name)
        try:
            make_private(folder)
            with open(os.path.join(folder, f"{session}.jsonl"), "xb", opener=private) as file:
                file.write(data)
        except FileExistsError:
            return True
        except OSError:
            return False
        return True


class ClaudeReader(StreamReader):
    """Also reads the program's own files, knows which places no flag can open, and says how to log in."""

    def __init__(self, turn: Turn, places: Places, folder: str = "") -> None:
        super().__init__(turn)
        self._folder = folder
        self._closed = (*places.hidden, *places.readable, *places.fixed)

    def _patterns(self, tool: ToolUse) -> tuple[str, ...]:
        closed = any(_touches(tool, place) for place in self._closed) or (tool.name in _EDITS and guards(tool.subject))
        return () if closed else super()._patterns(tool)

    def _end(self, event: dict[str, Any]) -> Reply | Trouble:
        ending = super()._end(event)
        if isinstance(ending, Trouble) and ending.kind == "auth":
            return replace(ending, error=f"{ending.error} ({_LOG_IN})")
        # A turn that never began cost nothing.
        return self._gone(ending) if not event.get("num_turns") else ending

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """Without a result: tell a missing conversation from a crash."""
        ending = super().close(exit_code, errors)
        if self.ending or self._spoke:
            return ending
        mode = self._turn.permission_mode
        if _NO_MODE in errors and mode:
            error = f"this Claude Code has no permission mode `{mode}`; update it: claude update"
            return Trouble(kind="setup", error=error)
        return self._gone(ending)

    def _gone(self, ending: Reply | Trouble) -> Reply | Trouble:
        base = self._turn.base
        if not base or not isinstance(ending, Trouble) or ending.kind != "crash" or _session(base, self._folder):
            return ending
        return Trouble(kind="session", error=f"the conversation {base} is gone from {_sessions(self._folder)}")


def _each(flag: str, rules: Iterable[str]) -> list[str]:
    """A flag for each rule: a bracket that is not closed in one would take the next ones with it."""
    return [part for rule in rules for part in (flag, rule)]


def _touches(tool: ToolUse, place: str) -> bool:
    return f"{place}/" in f"{tool.subject}/" or (tool.name == "Bash" and place in tool.subject)


def _own_settings(folder: str) -> dict[str, Any]:
    """The user's settings; none when they cannot be read."""
    try:
        return decode(foreign(os.path.join(folder, "settings.json"), _MOST_SETTINGS))
    except OSError:
        return {}


def _keeps(settings: Mapping[str, Any]) -> int:
    days = settings.get("cleanupPeriodDays", 30)
    return days if isinstance(days, int) else 30


def _acts(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What in the user's settings acts in every turn."""
    hooks, plugins = settings.get("hooks"), settings.get("enabledPlugins")
    named = [f"hooks ({', '.join(hooks)})"] if isinstance(hooks, dict) and hooks else []
    on = [name for name, is_on in plugins.items() if is_on] if isinstance(plugins, dict) else []
    return (*named, *([f"plug-ins ({', '.join(on)})"] if on else []))


def sessions(environment: Mapping[str, str] = os.environ) -> str:
    """Where Claude Code keeps conversations, a folder for each project."""
    return os.path.join(own_folder(environment), "projects")


def _sessions(folder: str) -> str:
    """The same in the folder of a run, if there is one."""
    return os.path.join(folder, "projects") if folder else sessions()


def _folder_name(cwd: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(cwd))


def _environment(turn: Turn) -> dict[str, str]:
    # A background task would keep the program alive after its result.
    own = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
    if "CLAUDE_CODE_MAX_RETRIES" not in os.environ:
        own["CLAUDE_CODE_MAX_RETRIES"] = "2"
    if (turn.skip_permissions or turn.permission_mode == "bypassPermissions") and os.geteuid() == 0:
        own["IS_SANDBOX"] = "1"
    return own


def _session(id: str, folder: str = "") -> bytes:
    """A conversation as the program stored it in the folder of a run, or in the person's; empty when it is missing."""
    for path in glob.glob(os.path.join(glob.escape(_sessions(folder)), "*", f"{id}.jsonl")):
        if folder:
            return home.content(folder, os.path.relpath(path, folder).split("/"), _LONGEST_SESSION)
        with contextlib.suppress(OSError):
            return foreign(path, _LONGEST_SESSION)
    return b""


def _last_message(session: bytes) -> dict[str, Any] | None:
    """The last message, when it is the model's and ended its turn."""
    for raw in reversed(session.splitlines()):
        event = decode(raw)
        if event.get("type") not in ("assistant", "user"):
            continue
        message = event.get("message")
        ended = event["type"] == "assistant" and isinstance(message, dict) and message.get("stop_reason") == "end_turn"
        return message if ended else None
    return None


def _prompts(session: bytes) -> list[str]:
    """What was asked in a conversation, and what its tools gave back as text."""
    events = (decode(raw) for raw in session.splitlines() if b'"user"' in raw)
    return [_text(as_table(event.get("message"))) for event in events if event.get("type") == "user"]


def _text(message: dict[str, Any]) -> str:
    blocks = message.get("content")
    if isinstance(blocks, str):
        return blocks
    texts = [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return "".join(text for text in texts if isinstance(text, str))
