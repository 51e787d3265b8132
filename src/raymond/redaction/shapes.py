"""What tokens look like: the table of shapes."""

from msgspec import Struct

LIMIT = 8192
"""Characters that a shape may have: enough for a private key of 8192 bits or a large JWT."""


class Shape(Struct, frozen=True):
    """A kind of token that can be recognised by its form."""

    what: str
    hint: str
    """A pattern that every text with such a token contains. It begins with one fixed character: `re` then skips a
    megabyte in one millisecond, where an alternation of all shapes takes sixty."""
    begins: tuple[str, ...]
    body: str
    """Requires more random characters than prose or code ever has; a group marks the part that is replaced."""
    run: str = r"[A-Za-z0-9_\-]"
    """Every character of `body`, so that any other one ends the search."""
    stable: bool = True
    """Whether it has no characters that are escaped, so that it can be searched in the text itself."""

    @property
    def least(self) -> str:
        """What every token of this shape begins with: a search for it never reads a long run to its end."""
        return "}".join(self.body.rsplit(",}+", 1))


def _random(characters: str, least: int) -> str:
    """At least `least` characters of mixed kinds: `xxxx` and `your-key-goes-here` are not keys."""
    return _has(characters, "a-z") + _has(characters, "A-Z0-9") + rf"[{characters}]{{{least},}}+"


def _has(characters: str, needed: str) -> str:
    rest = characters
    for kind in ("a-z", "A-Z", "0-9"):
        rest = rest.replace(kind, "") if kind in needed else rest
    # Without a bound, a long run of characters would be searched again from every position in it; without the `+`,
    # forwards and backwards.
    return rf"(?=[{rest}]{{0,100}}+[{needed}])"


_BASE62 = "A-Za-z0-9"
BASE64 = "A-Za-z0-9+/="
_BASE64URL = r"A-Za-z0-9_\-"
PASSWORD = "a password in an address"
PRIVATE_KEY = "a private key"
JWT = "a JWT"
JWT_MIDDLE = rf"\.eyJ[{_BASE64URL}]{{8,{LIMIT}}}+(?=\.[{_BASE64URL}]{{16}})"
"""The second part of a JWT: it is found by it, because a long run may have very many beginnings."""
JWT_RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
OUTSIDE = r"\s\"'<>\\/\[\]{},"
_DASH = r"-[A-Za-z0-9_\-]{20}"
_UNDERSCORE = "_[A-Za-z0-9]{20}"
_LETTER = "A(?:[KS]IA[A-Z0-9]{16}|Iza)"
HEADER = "-----BEGIN "
SHAPES = (
    Shape("an Anthropic key", _DASH, ("sk-ant-",), _has(_BASE64URL, "A-Z") + _random(_BASE64URL, 32)),
    Shape(
        "an OpenAI key",
        _DASH,
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"),
        _has(_BASE64URL, "0-9") + _random(_BASE64URL, 32),
    ),
    Shape("an OpenAI key", _DASH, ("sk-",), _has(_BASE62, "0-9") + _has(_BASE62, "A-Z") + _random(_BASE62, 32)),
    Shape("a GitHub token", _UNDERSCORE, ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _random(_BASE62, 30)),
    Shape("a GitHub token", _UNDERSCORE, ("github_pat_",), "[A-Za-z0-9]{20,}+_" + _random(_BASE62, 20)),
    Shape("a GitLab token", _DASH, ("glpat-",), _has(_BASE64URL, "0-9") + _random(_BASE64URL, 20)),
    Shape("an AWS key", _LETTER, ("AKIA", "ASIA"), "[A-Z0-9]{16,}+"),
    Shape("a Google key", _LETTER, ("AIza",), _random(_BASE64URL, 35)),
    Shape(
        "a Slack token",
        _DASH,
        ("xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-"),
        _has(r"A-Za-z0-9\-", "0-9") + r"(?=[A-Za-z0-9\-]{0,60}[0-9]{6})[A-Za-z0-9\-]{20,}+",
    ),
    Shape("a Stripe key", _UNDERSCORE, ("sk_live_", "rk_live_"), _random(_BASE62, 20)),
    Shape("an npm token", _UNDERSCORE, ("npm_",), _random(_BASE62, 36)),
    Shape("a PyPI token", _DASH, ("pypi-AgE",), _random(_BASE64URL, 40)),
    Shape("a Hugging Face token", _UNDERSCORE, ("hf_",), _random(_BASE62, 30)),
    Shape(
        "a Slack webhook",
        r"hooks\.slack\.com",
        ("hooks.slack.com/services/",),
        r"([A-Z0-9]{8,20}+/[A-Z0-9]{8,20}+/[A-Za-z0-9]{20,}+)",
        "[A-Za-z0-9/]",
        stable=False,
    ),
    Shape(
        JWT,
        rf"\.eyJ[{_BASE64URL}]{{8}}",
        ("eyJ",),
        rf"[{_BASE64URL}]{{8,{LIMIT}}}+\.eyJ[{_BASE64URL}]{{8,{LIMIT}}}+\.[{_BASE64URL}]{{16,}}+",
        r"[A-Za-z0-9_\-.]",
    ),
    Shape(
        "a bearer token",
        rf"earer [{BASE64}._~\-\\]{{20}}",
        ("Bearer ", "bearer "),
        rf"((?=(?:[{BASE64.replace('0-9', '')}._~\-]{{0,100}}+[0-9]){{2}})[{BASE64}._~\-]{{20,}}+)",
        rf"[{BASE64}._~\-]",
        stable=False,
    ),
    Shape(
        PASSWORD,
        r':(?:\\*+/|\\++u002[fF]){2}[^\s"/@]*+@',
        ("://",),
        rf"[^{OUTSIDE}:@]*:([^{OUTSIDE}$][^{OUTSIDE}]{{5,}})@",
        rf"[^{OUTSIDE}]",
        stable=False,
    ),
    Shape(
        PRIVATE_KEY,
        "PRIVATE KEY-----",
        (HEADER,),
        rf"[A-Z0-9 ]{{0,40}}PRIVATE KEY-----\s*+([{BASE64}]{{40,}}+(?:\s++[{BASE64}]{{40,}}+)*+"
        rf"(?:\s++[{BASE64}]++(?=\s*+-----END))?)",
        r"[A-Z0-9 \-]",
        stable=False,
    ),
)
