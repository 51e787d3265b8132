"""Tell Codex whether it may use the settings of a project.

Left to itself it writes into the user's settings that every project is trusted in which it may edit, and uses what it
finds there. What it is told for one turn it neither asks about nor writes down.

Its output says in words why a turn failed; the record of the conversation, which is complete by then, names the error.
So the record decides, and the words only where it is silent.

Its own sandbox for turns that may edit, `workspace-write`, lets commands change all that lies in the working directory
or in /tmp, files of Raymond's included. So it gets a permission profile instead: the same sandbox with these files
read-only. A profile replaces what the user's settings say of that sandbox, so that is carried over.
"""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import json
from msgspec.structs import replace

from raymond.backends import Abilities, Command, Found, Login, Places, Reply, Setup, Turn, agent_program, codex_record
from raymond.backends.agent_program import Payer, as_table, decode, digest, fingerprint, host
from raymond.backends.codex_events import LOG_IN, CodexReader
from raymond.backends.codex_record import Record, home, priced, read
from raymond.backends.contract import NO_ACCOUNT
from raymond.patterns import regex
from raymond.store import program_cache
from raymond.store.trust import top_of
from raymond.system import programs
from raymond.workspace import home as workspace_home

_INSTRUCTIONS = "AGENTS.md"
_MOST_INSTRUCTIONS = 32 << 10
"""Bytes; the program itself reads no more."""
_NO_TEXT = regex(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What TOML does not take in a text as it is."""

_NO_PATH = regex(r"[*?\[\x00-\x1f\x7f]")
"""What the program takes for a pattern, or cannot take at all."""

OUTER = (
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
    "CODEX_CI",
    "CODEX_MANAGED_BY_NPM",
    "CODEX_MANAGED_PACKAGE_ROOT",
    "CODEX_PERMISSION_PROFILE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
)
"""What an outer Codex sets for its children; everything else is the user's."""
OLDEST = (0, 166)
"""The oldest version Raymond is tested with."""
_INSTALL = "install Codex, then start it once to log in"
_LOGIN = "auth.json"
_LENT = "the agent's program can read and change the login in {}; CODEX_API_KEY avoids that"
_ADDRESS = "OPENAI_BASE_URL"
_FIXED = ("exec", "--json", "--skip-git-repo-check")


# Passed as settings: the program exits when `--disable` names something it does not know.
_OFF = (
    "analytics.enabled",
    "features.apps",
    "features.plugins",
    "features.remote_plugin",
    # Without a network it would wait forever, and look alive.
    "features.unbounded_connection_retries",
)
"""Features that would contact anybody but the model."""
_NO_TOOLS = (
    "features.shell_tool=false",
    "features.multi_agent=false",
    "features.view_image=false",
    "features.goals=false",
    'web_search="disabled"',
)
"""What takes the tools from the model; the one that is left asks the user, who is not there."""
_NAMES = ("config.toml", "AGENTS.md", "AGENTS.override.md", "agents", "hooks.json", "prompts", "rules", "skills")
"""What a run gets copies of."""
_SKIP = "--dangerously-bypass-approvals-and-sandbox"
_EDITING = ("", "acceptEdits", "auto")
"""The permission modes that let commands write; all others only let them read."""


def trust_flags(cwd: str, own: Mapping[str, Any], *, is_trusted: bool, instructs: bool = True) -> list[str]:
    """The flags for a turn in `cwd`; `own` are the user's settings, `instructs` hands on the project's instructions."""
    if is_trusted:
        return ["-c", _projects("trusted", top_of(cwd))]
    told = ["-c", _projects("untrusted", os.path.realpath(cwd), top_of(cwd))]
    said = (
        _NO_TEXT.sub("", agent_program.read_instructions(cwd, _INSTRUCTIONS, _MOST_INSTRUCTIONS)) if instructs else ""
    )
    if said:
        # These are left out with the settings. The user's own would be replaced, so they come first.
        before = own.get("developer_instructions")
        said = f"{before}\n\n{said}" if isinstance(before, str) and before else said
        told += ["-c", f"developer_instructions={json.encode(said).decode()}"]
    return told


def _projects(level: str, *folders: str) -> str:
    """A table, since the program splits the name of a setting at every dot, also at one in a path."""
    named = (f'{json.encode(folder).decode()}={{trust_level="{level}"}}' for folder in dict.fromkeys(folders))
    return f"projects={{{','.join(named)}}}"


# The sandbox in which Codex runs the commands of a turn that may edit


def sandbox_flags(turn: Turn, places: Places, own: Mapping[str, Any]) -> list[str]:
    """The sandbox for `turn`; `own` is what the user's settings say of it."""
    kept = list(dict.fromkeys(_kept((*places.hidden, *places.readable, *places.fixed))))
    folders = [turn.task_folder] if turn.task_folder and not _inside(turn.task_folder, turn.cwd) else []
    if not kept:
        return ["--sandbox", "workspace-write", *_added(folders)]
    folders += [root for root in _roots(own) if not any(_inside(root, place) for place in kept)]
    return ["-c", 'default_permissions="raymond"', "-c", f"permissions.raymond={_profile(kept, own)}", *_added(folders)]


def _kept(paths: Iterable[str]) -> Iterator[str]:
    """The places that a profile can name: without one that is missing no command would start."""
    for path in map(os.path.realpath, paths):
        if os.path.exists(path) and not _NO_PATH.search(path):
            yield path


def _roots(own: Mapping[str, Any]) -> list[str]:
    roots = own.get("writable_roots")
    return [os.path.expanduser(root) for root in roots if isinstance(root, str)] if isinstance(roots, list) else []


def _profile(kept: Iterable[str], own: Mapping[str, Any]) -> str:
    closed = [*kept]
    closed += [":slash_tmp"] if own.get("exclude_slash_tmp") is True else []
    closed += [":tmpdir"] if own.get("exclude_tmpdir_env_var") is True else []
    files = ",".join(f'{json.encode(path).decode()}="read"' for path in closed)
    network = str(own.get("network_access") is True).lower()
    return f'{{extends=":workspace",filesystem={{{files}}},network={{enabled={network}}}}}'


def _added(folders: Iterable[str]) -> list[str]:
    """Unlike the setting for writable folders, the flag adds to those of the user."""
    return [part for folder in folders for part in ("--add-dir", folder)]


def _inside(path: str, folder: str) -> bool:
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder


# Codex: what to start for a turn, what its output means, and what it recorded of a conversation


class Codex:
    """Runs `codex exec`, one process for each turn, each in its own conversation."""

    name = "codex"
    paid = True
    can = Abilities(branches=True, continues=True, recalls=True, permission_modes=True)

    def __init__(self, setup: Setup) -> None:
        self._options = agent_program.read_options("codex", setup.options)
        self._program = self._options.program
        self._places = setup.places
        self._trust = setup.trust
        self._folder = setup.folder

    def look(self) -> Found:
        """Look for the program, its version and who is logged in."""
        path, problem = programs.locate(self._program)
        if problem:
            return Found(program=path, problem=problem, hint=_INSTALL, instead=NO_ACCOUNT)
        version, problem = program_cache.checked_version(path, "Codex", OLDEST, OUTER)
        payer = _payer(os.environ)
        hint = "" if payer.name else LOG_IN
        if problem:
            hint = programs.way_out(path, version, "codex update")
        found = Found(program=path, problem=problem, version=version, hint=hint)
        return replace(found, payer=payer.name, key=payer.key, host=payer.host, account=payer.account)

    def command(self, turn: Turn) -> Command:
        """A branch of the conversation before; the program chooses its id."""
        argv = [self._program, *_FIXED, *self._options.args]
        for name in _OFF:
            argv += ["-c", f"{name}=false"]
        is_trusted = self._trust.covers(turn.cwd) and not turn.no_tools
        # Who answers without tools needs no instructions for the work, which an agent could have written.
        argv += trust_flags(turn.cwd, _settings(home()), is_trusted=is_trusted, instructs=not turn.no_tools)
        # A branch inherits none of the three from its conversation: pass all of them every time.
        argv += ["-m", turn.model] if turn.model else []
        argv += ["-c", f"model_reasoning_effort={turn.effort}"] if turn.effort else []
        argv += self._rights(turn)
        for setting in _NO_TOOLS if turn.no_tools else ():
            argv += ["-c", setting]
        # All of these go before `fork`, which itself accepts fewer.
        argv += ["fork", turn.base] if turn.base else []
        command = Command([*argv, "-"], without=OUTER)
        return self._housed(turn, command) if self._folder_of(turn) else command

    def _folder_of(self, turn: Turn) -> str:
        """The folder of the run, for a turn that uses it."""
        return self._folder if turn.isolated else ""

    def _housed(self, turn: Turn, command: Command) -> Command:
        """The same in a workspace: the folder of the run is where the person's own would be."""
        own = os.path.abspath(home())
        workspace_home.furnish(self._folder, own, _NAMES)
        codex_record.fetch(turn.base, self._folder)
        payer, folders = _payer(os.environ), {own: self._folder}
        if payer.login:
            # Two copies would end with one dead; the program writes this file in place.
            folders[os.path.join(own, _LOGIN)] = os.path.realpath(payer.login)
        return replace(
            command,
            environment={"CODEX_HOME": own},
            needs=payer.needs,
            folders=folders,
            only_reads=_has_no_sandbox(turn) and self._reads(turn),
        )

    def _rights(self, turn: Turn) -> list[str]:
        if turn.skip_permissions or turn.permission_mode == "bypassPermissions" or _has_no_sandbox(turn):
            return [_SKIP]
        if self._reads(turn):
            return ["--sandbox", "read-only"]
        places = Places() if turn.isolated else self._places
        return sandbox_flags(turn, places, as_table(_settings(home()).get("sandbox_workspace_write")))

    def _reads(self, turn: Turn) -> bool:
        """Whether it may only read."""
        skips = turn.skip_permissions or turn.permission_mode == "bypassPermissions"
        return not skips and turn.permission_mode not in _EDITING

    def login(self) -> Login:
        """Where no key pays, the login is lent: the one file, which the program writes in place."""
        path = _payer(os.environ).login
        return Login(note=_LENT.format(path)) if path else Login()

    def export(self, turn: Turn, session: str) -> None:
        """Copy the record to the place where `codex resume` looks for it."""
        if self._folder_of(turn):
            codex_record.copy(session, self._folder, os.path.realpath(home()))

    def reader(self, turn: Turn) -> "CodexReader":
        """Its events."""
        return CodexReader(turn, self._folder_of(turn))

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the record of the conversation, if it answers the same prompt, and what it cost."""
        record = Record(turn.session, self._folder_of(turn))
        if not record.replied or not turn.is_asked_in(record.prompts):
            return None
        return Reply(text=record.text, session=turn.session, spent=priced(turn, record) or turn.unpriced())


def _has_no_sandbox(turn: Turn) -> bool:
    """Whether its own sandbox cannot start: it needs namespaces, and root has none in a workspace."""
    return turn.isolated and os.geteuid() == 0


def _payer(environment: Mapping[str, str]) -> Payer:
    folder = home(environment)
    provider = _provider(folder)
    address = str(provider.get("base_url") or environment.get(_ADDRESS, ""))
    path, own_key = os.path.join(folder, _LOGIN), str(provider.get("env_key") or "")
    name, key, account = _login(environment, own_key, path)
    return Payer(
        name=name,
        key=key,
        host=host(address),
        account=digest([address, *account]),
        needs=(*filter(None, (own_key, *_headers(provider))), "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
        login=path if name and not key and _takes_logins(provider) else "",
    )


def _takes_logins(provider: Mapping[str, Any]) -> bool:
    """Whether a login can pay a provider: one of the user's own says so."""
    return not provider or provider.get("requires_openai_auth") is True


def _headers(provider: Mapping[str, Any]) -> list[str]:
    """The variables that a provider's requests carry as headers."""
    return [str(name) for name in as_table(provider.get("env_http_headers")).values()]


def _login(environment: Mapping[str, str], own_key: str, path: str) -> tuple[str, str, list[str]]:
    """Who pays, a fingerprint of the key, and what tells the account."""
    for name in (own_key, "CODEX_API_KEY"):
        if name and environment.get(name):
            return f"the key in {name}", fingerprint(environment, [name]), []
    if environment.get("CODEX_ACCESS_TOKEN"):
        return "the subscription of CODEX_ACCESS_TOKEN", fingerprint(environment, ["CODEX_ACCESS_TOKEN"]), []
    login = decode(read(path))
    if tokens := login.get("tokens"):
        return f"the subscription logged in at {path}", "", [str(as_table(tokens).get("account_id") or "")]
    key = str(login.get("OPENAI_API_KEY") or "")
    return (f"the key in {path}", "", [key]) if key else ("", "", [])


def _provider(folder: str) -> dict[str, Any]:
    """The model provider that the user's settings name: its address, and the variable that holds its key."""
    settings = _settings(folder)
    providers = as_table(settings.get("model_providers"))
    return as_table(providers.get(str(settings.get("model_provider"))))


def _settings(folder: str) -> dict[str, Any]:
    """The user's settings; none when they cannot be read."""
    try:
        return tomllib.loads(read(os.path.join(folder, "config.toml")).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
