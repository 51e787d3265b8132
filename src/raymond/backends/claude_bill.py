"""What a turn of Claude Code costs, and who pays for it: never nothing for what it is seen to use."""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from raymond.backends import Turn
from raymond.backends.agent_program import Payer, as_table, chosen_payer, decode, digest, fingerprint, host, number
from raymond.machine.inputs import Spending
from raymond.machine.prices import UNKNOWN_TURN, Prices, Tokens, show
from raymond.system.files import foreign

LOW = 10
"""A claim below the price of the tokens by more than this factor is not believed."""
HIGH = 100
"""A claim above the price of the tokens by more than this factor is counted, and people are told."""
_LETTERS = 4
"""Characters of a token, roughly."""
_WEIGHTS = (1.0, 0.1, 1.25, 5.0)
"""What tokens cost relative to each other, whatever the model: read, read from a cache, written to it, output."""

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


class Used(Struct):
    """Tokens of one model."""

    model: str = ""
    fresh: int = 0
    cached: int = 0
    kept: int = 0
    """Read, and written to a cache."""
    output: int = 0
    written: int = 0
    """Output by the length of its text: a message is sent before its output is counted."""

    @classmethod
    def of(cls, model: str, table: object) -> "Used":
        """As a message or result counts them, or as a result counts them for each model."""
        usage = table if isinstance(table, dict) else {}

        def count(*names: str) -> int:
            return int(sum(number(usage.get(name)) for name in names))

        return cls(
            model=model.partition("[")[0],
            fresh=count("input_tokens", "inputTokens"),
            cached=count("cache_read_input_tokens", "cacheReadInputTokens"),
            kept=count("cache_creation_input_tokens", "cacheCreationInputTokens"),
            output=count("output_tokens", "outputTokens"),
        )

    @property
    def weight(self) -> float:
        """Its cost in units of a token that was read."""
        counts = (self.fresh, self.cached, self.kept, self.output)
        return sum(count * weight for count, weight in zip(counts, _WEIGHTS, strict=True))

    def price(self, prices: Prices) -> float | None:
        """Dollars by the table."""
        read, output = self.fresh + self.cached + self.kept, max(self.output, self.written)
        return prices.cost(self.model, Tokens(input=read, cached=self.cached, output=output))

    def floor(self, prices: Prices) -> float:
        """Dollars that it costs at least: a price that a person set may not tell what cached tokens cost."""
        return prices.cost(self.model, Tokens(input=self.fresh + self.kept, output=self.output)) or 0.0


class Claim(Struct, frozen=True):
    """What a result says about its turn."""

    cost: float | None
    estimated: bool
    used: list[Used]
    spoke: bool
    """Whether it says that the model was asked, and answered."""


class Bill:
    """Adds up one turn: the results of the program, and the messages that were seen on the way."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._claims: list[Claim] = []
        self._seen: dict[str, Used] = {}
        """By message: one with several parts is sent once for each of them."""

    def see(self, message: dict[str, Any], written: int) -> None:
        """A message of the model, whose part that is sent now has `written` characters."""
        used = Used.of(str(message.get("model") or ""), message.get("usage"))
        if not used.weight:
            return  # the program's own words, e.g. for an error
        self._seen.setdefault(str(message.get("id")), used).written += written // _LETTERS

    def add(self, event: dict[str, Any]) -> list[str]:
        """A result; returns what people should know about its cost."""
        self._claims.append(self._claim(event))
        cost, claimed, seen = self.spent().cost, self._claimed(), self._seen_cost()
        notes = []
        if len(self._claims) > 1:
            notes.append(f"reported a result again: the first reply counts, and all costs, ~{show(cost)}")
        if cost > claimed:
            what = f"only {show(claimed)}" if claimed else "no cost"
            notes.append(f"reported {what}: ~{show(cost)} is counted")
        elif claimed > HIGH * max(seen, UNKNOWN_TURN):
            notes.append(f"reported {show(claimed)}, and the tokens that were seen cost ~{show(seen)}: it is counted")
        return notes

    def spent(self) -> Spending:
        """What the turn costs, after at least one result."""
        claims, cost = self._claims, self._claimed()
        unknown = len(claims) > 1
        estimated = unknown or any(claim.estimated for claim in claims)
        if self._is_too_low(cost):
            by_tokens = self._by_tokens()
            unknown, estimated = unknown or by_tokens is None, True
            cost = max(cost, self._unknown() if by_tokens is None else by_tokens)
        used = [one for claim in claims for one in claim.used]
        return Spending(
            cost=cost,
            estimated=estimated,
            unknown=unknown,
            tokens_in=sum(one.fresh + one.cached + one.kept for one in used),
            tokens_out=sum(one.output for one in used),
            model=self._reported(used),
        )

    def so_far(self) -> Spending:
        """What a turn without a result counts: the tokens that were seen are not all that were paid for."""
        return Spending(cost=self._unknown(), estimated=True, unknown=True)

    def _reported(self, claimed: list[Used]) -> str:
        """The model that did most of the turn, as far as the program tells."""
        done: dict[str, float] = {}
        for one in (*claimed, *self._seen.values()):
            done[one.model] = done.get(one.model, 0.0) + one.weight
        done.pop("", None)
        return max(done, key=lambda name: done[name]) if done else ""

    def _unknown(self) -> float:
        return max(self._turn.prices.unknown_turn, self._seen_cost())

    def _claimed(self) -> float:
        return sum(claim.cost or 0.0 for claim in self._claims)

    def _seen_cost(self) -> float:
        """What the messages cost, those of models that the table knows."""
        return sum(one.price(self._turn.prices) or 0.0 for one in self._seen.values())

    def _is_too_low(self, claimed: float) -> bool:
        if any(claim.cost is None for claim in self._claims):
            return True
        if not claimed:
            return bool(self._seen) or any(claim.spoke for claim in self._claims)
        return claimed * LOW < sum(one.floor(self._turn.prices) for one in self._seen.values())

    def _by_tokens(self) -> float | None:
        """The price of the tokens that were claimed or seen, the higher one; None when the table does not tell."""
        claimed = [one for claim in self._claims for one in claim.used if one.weight]
        both = (self._price(claimed), self._price(list(self._seen.values())))
        return max((price for price in both if price is not None), default=None)

    def _price(self, used: list[Used]) -> float | None:
        prices = [one.price(self._turn.prices) for one in used]
        known = [price for price in prices if price is not None]
        return sum(known) if known and len(known) == len(prices) else None

    def _claim(self, event: dict[str, Any]) -> Claim:
        this, all_models = event.get("model_usage_since_last_result"), event.get("modelUsage")
        spoke = not event.get("is_error") and number(event.get("num_turns")) > 0
        if isinstance(this, dict):
            return Claim(_dollars(this), False, _models(this), spoke)
        total = event.get("total_cost_usd")
        cost = number(total) if isinstance(total, int | float) else None
        used = [Used.of(self._model(), event.get("usage"))]
        if not self._turn.base:
            whole = [] if used[0].weight or not isinstance(all_models, dict) else _models(all_models)
            return Claim(cost, False, whole or used, spoke)
        share = self._share(used[0], all_models)
        if cost is None or share is None:
            return Claim(None, True, used, spoke)
        return Claim(cost * share, share < 1, used, spoke)

    def _share(self, used: Used, all_models: object) -> float | None:
        """This turn's part of what is reported for all models.

        Some releases count a branch alone, others the conversation that it came from too. The tokens of the turn tell
        which; those of the agents below it are only seen in their messages.
        """
        if not isinstance(all_models, dict):
            return None
        whole = sum(one.weight for one in _models(all_models))
        mine = max(used.weight, sum(one.weight for one in self._seen.values()))
        if not whole or not mine:
            return None
        return 1.0 if mine > 0.999 * whole else mine / whole

    def _model(self) -> str:
        seen = next(reversed(self._seen.values())).model if self._seen else ""
        return seen or self._turn.model


def _dollars(models: dict[str, Any]) -> float:
    return sum(number(one.get("costUSD")) for one in models.values() if isinstance(one, dict))


def _models(models: dict[str, Any]) -> list[Used]:
    return [Used.of(name, one) for name, one in models.items()]


# Who pays


def payer_of(environment: Mapping[str, str], folder: str, settings: Mapping[str, Any]) -> Payer:
    """Who pays: `folder` is where the program keeps its login, `settings` are the user's, which may set variables."""
    own = {name: value for name, value in as_table(settings.get("env")).items() if isinstance(value, str)}
    environment = {**environment, **own}
    for name, choices in _CLOUDS.items():
        if environment.get(name):
            account = [*chosen_payer(environment, choices), *_long_lived(environment)]
            at = host(environment.get(choices[0], ""))
            told, needs = f"the cloud account of {name}", _OF_CLOUDS[name]
            return Payer(name=told, host=at, account=digest(account), needs=needs)
    at, address = host(environment.get(_ADDRESS, "")), chosen_payer(environment, [_ADDRESS])
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
    return [] if environment.get("AWS_SESSION_TOKEN") else chosen_payer(environment, ["AWS_ACCESS_KEY_ID"])


def _login(environment: Mapping[str, str], folder: str) -> list[str]:
    """The account that is logged in. The credentials do not tell it: they change with every refresh."""
    place = folder if environment.get("CLAUDE_CONFIG_DIR") else environment.get("HOME", "")
    try:
        account = as_table(decode(foreign(os.path.join(place, ".claude.json"), _MOST)).get("oauthAccount"))
    except OSError:
        return []
    return [str(account[name]) for name in ("accountUuid", "organizationUuid") if account.get(name)]
