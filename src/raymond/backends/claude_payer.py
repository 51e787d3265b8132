"""Who pays for a turn of Claude Code: the first of what it looks at, in its own order."""

import os
from collections.abc import Mapping
from typing import Any

from raymond.backends.json_lines import as_table, decode
from raymond.backends.payer import Payer, chosen, digest, fingerprint, host
from raymond.system.files import foreign

_MOST = 1 << 24
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": (
        *("ANTHROPIC_BEDROCK_BASE_URL", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"),
        *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_BEARER_TOKEN_BEDROCK"),
    ),
    "CLAUDE_CODE_USE_VERTEX": (
        *("ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_VERTEX_PROJECT_ID", "CLOUD_ML_REGION"),
        *("GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS"),
    ),
    "CLAUDE_CODE_USE_FOUNDRY": (
        *("ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_API_KEY"),
    ),
}
"""What chooses a cloud, and what chooses the account there; the first is its address."""
_OF_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_",),
    "CLAUDE_CODE_USE_FOUNDRY": ("ANTHROPIC_FOUNDRY_", "AZURE_"),
}
"""How the variables begin that pay there."""
_KEYS = {
    "ANTHROPIC_AUTH_TOKEN": "the token in ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_API_KEY": "the key in ANTHROPIC_API_KEY",
}
_ADDRESS = "ANTHROPIC_BASE_URL"
TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"
STORAGE = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
"""Names the folder of the login, if that is not the folder of everything else."""
CREDENTIALS = ".credentials.json"


def of(environment: Mapping[str, str], folder: str, settings: Mapping[str, Any]) -> Payer:
    """Who pays: `folder` is where the program keeps its login, `settings` are the user's, which may set variables."""
    own = {name: value for name, value in as_table(settings.get("env")).items() if isinstance(value, str)}
    environment = {**environment, **own}
    for name, choices in _CLOUDS.items():
        if environment.get(name):
            account = [*chosen(environment, choices), *_long_lived(environment)]
            at = host(environment.get(choices[0], ""))
            told, needs = f"the cloud account of {name}", _OF_CLOUDS[name]
            return Payer(name=told, host=at, account=digest(account), needs=needs)
    at, address = host(environment.get(_ADDRESS, "")), chosen(environment, [_ADDRESS])
    for name, told in _KEYS.items():
        if environment.get(name):
            key = fingerprint(environment, [name])
            return Payer(name=told, key=key, host=at, account=digest(address), needs=tuple(_KEYS))
    if helper := settings.get("apiKeyHelper"):
        return Payer(name="the key that apiKeyHelper prints", host=at, account=digest([*address, str(helper)]))
    if environment.get(TOKEN):
        key, told = fingerprint(environment, [TOKEN]), f"the subscription of {TOKEN}"
        return Payer(name=told, key=key, host=at, account=digest(address), needs=(TOKEN,))
    credentials = os.path.join(_storage(environment, folder), CREDENTIALS)
    if not os.path.exists(credentials):
        return Payer(host=at, account=digest(address))
    told, who = f"the subscription logged in at {credentials}", digest([*address, *_login(environment, folder)])
    return Payer(name=told, host=at, account=who, login=credentials)


def _storage(environment: Mapping[str, str], folder: str) -> str:
    """Where the login is; set and empty, the variable means the default folder, whatever else is set."""
    if STORAGE not in environment:
        return folder
    return environment[STORAGE] or os.path.join(environment.get("HOME", ""), ".claude")


def _long_lived(environment: Mapping[str, str]) -> list[str]:
    """A key of AWS; one with a session is another one every hour."""
    return [] if environment.get("AWS_SESSION_TOKEN") else chosen(environment, ["AWS_ACCESS_KEY_ID"])


def _login(environment: Mapping[str, str], folder: str) -> list[str]:
    """The account that is logged in. The credentials do not tell it: they change with every refresh."""
    place = folder if environment.get("CLAUDE_CONFIG_DIR") else environment.get("HOME", "")
    try:
        account = as_table(decode(foreign(os.path.join(place, ".claude.json"), _MOST)).get("oauthAccount"))
    except OSError:
        return []
    return [str(account[name]) for name in ("accountUuid", "organizationUuid") if account.get(name)]
