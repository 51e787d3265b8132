"""Codex: what to start for a turn, what its output means, and what it recorded of a conversation.

Its output says in words why a turn failed; the record of the conversation, which is complete by then, names the error.
So the record decides, and the words only where it is silent.
"""

import os
import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from raymond.backends import Abilities, Command, Found, Reply, Setup, Turn, codex_sandbox, codex_trust, program_options
from raymond.backends.codex_events import LOG_IN, CodexReader
from raymond.backends.codex_record import Record, home, priced, read
from raymond.backends.contract import NO_ACCOUNT
from raymond.backends.json_lines import as_table, decode
from raymond.backends.payer import Payer, digest, fingerprint, host
from raymond.store import versions
from raymond.system import programs

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
_SKIP = "--dangerously-bypass-approvals-and-sandbox"
_EDITING = ("", "acceptEdits", "auto")
"""The permission modes that let commands write; all others only let them read."""


class Codex:
    """Runs `codex exec`, one process for each turn, each in its own conversation."""

    name = "codex"
    paid = True
    can = Abilities(branches=True, continues=True, recalls=True, permission_modes=True)

    def __init__(self, setup: Setup) -> None:
        self._options = program_options.read("codex", setup.options)
        self._program = self._options.program
        self._places = setup.places
        self._trust = setup.trust

    def look(self) -> Found:
        """Look for the program, its version and who is logged in."""
        path, problem = programs.locate(self._program)
        if problem:
            return Found(program=path, problem=problem, hint=_INSTALL, instead=NO_ACCOUNT)
        version, problem = versions.checked(path, "Codex", OLDEST, OUTER)
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
        argv += codex_trust.flags(turn.cwd, _settings(home()), is_trusted=is_trusted, instructs=not turn.no_tools)
        # A branch inherits none of the three from its conversation: pass all of them every time.
        argv += ["-m", turn.model] if turn.model else []
        argv += ["-c", f"model_reasoning_effort={turn.effort}"] if turn.effort else []
        argv += self._rights(turn)
        for setting in _NO_TOOLS if turn.no_tools else ():
            argv += ["-c", setting]
        # All of these go before `fork`, which itself accepts fewer.
        argv += ["fork", turn.base] if turn.base else []
        return Command([*argv, "-"], without=OUTER)

    def _rights(self, turn: Turn) -> list[str]:
        if turn.skip_permissions or turn.permission_mode == "bypassPermissions":
            return [_SKIP]
        if turn.permission_mode not in _EDITING:
            return ["--sandbox", "read-only"]
        return codex_sandbox.flags(turn, self._places, as_table(_settings(home()).get("sandbox_workspace_write")))

    def reader(self, turn: Turn) -> "CodexReader":
        """Its events."""
        return CodexReader(turn)

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the record of the conversation, if it answers the same prompt, and what it cost."""
        record = Record(turn.session)
        if not record.replied or not turn.is_asked_in(record.prompts):
            return None
        return Reply(text=record.text, session=turn.session, spent=priced(turn, record) or turn.unpriced())


def _payer(environment: Mapping[str, str]) -> Payer:
    folder = home(environment)
    provider = _provider(folder)
    address = str(provider.get("base_url") or environment.get(_ADDRESS, ""))
    path = os.path.join(folder, "auth.json")
    name, key, account = _login(environment, str(provider.get("env_key") or ""), path)
    return Payer(name=name, key=key, host=host(address), account=digest([address, *account]))


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
