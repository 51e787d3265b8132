"""What tokens look like: the table of shapes."""

from collections.abc import Callable

from msgspec import Struct

from raymond.redaction.patterns import Hint
from raymond.redaction.values import is_login, is_password

LIMIT = 8192
"""Characters that a shape may have: enough for a private key of 8192 bits or a large JWT."""


class Shape(Struct, frozen=True):
    """A kind of token that can be recognised by its form."""

    what: str
    hint: Hint
    """What every text with such a token contains. It begins with fixed characters: `re` then skips a megabyte in one
    millisecond, where an alternation of all shapes takes sixty."""
    begins: tuple[str, ...]
    body: str
    """Requires more random characters than prose or code ever has; a group marks the part that is replaced."""
    run: str = r"[A-Za-z0-9_\-.~+/=%]"
    """Every character of `body`, and maybe others: any that is not among them ends it."""
    stable: bool = True
    """Whether it has no characters that are escaped, so that it can be searched in the text itself."""
    escaped: Hint | None = None
    """The hint for a text in which the fixed characters are escaped."""
    any_case: str = ""
    """If `begins`, in small letters, may be written in capitals: what follows it, escaped or not."""
    check: Callable[[str], bool] | None = None
    """What the replaced part must be beyond its form."""
    first: str = ""
    """What every body begins with, where that cannot be told from the body."""

    @property
    def least(self) -> str:
        """What every body begins with: a search for it never reads a long run to its end."""
        return self.first or "}".join(self.body.rsplit(",}+", 1))


def _random(characters: str, least: int, *, digits: bool = False) -> str:
    """At least `least` characters of mixed kinds: `xxxx` and `your-key-goes-here` are not keys."""
    kinds = ("a-z", "A-Z0-9", "0-9") if digits else ("a-z", "A-Z0-9")
    return "".join(_has(characters, kind) for kind in kinds) + rf"[{characters}]{{{least},}}+"


def _has(characters: str, needed: str, times: int = 1) -> str:
    rest = characters
    for kind in ("a-z", "A-Z", "0-9"):
        rest = rest.replace(kind, "") if kind in needed else rest
    # Without a bound, a long run of characters would be searched again from every position in it; without the `+`,
    # forwards and backwards. The fewer there are of a kind, the further off the first one may be.
    near = {"0-9": 64, "A-Z": 40}.get(needed, 24)
    return rf"(?=(?:[{rest}]{{0,{near}}}+[{needed}]){{{times}}})"


_BASE62 = "A-Za-z0-9"
BASE64 = "A-Za-z0-9+/="
_BASE64URL = r"A-Za-z0-9_\-"
_BEARER = rf"{BASE64}._~\-"
PRIVATE_KEY = "a private key"
JWT = "a JWT"
JWT_MIDDLE = rf"\.eyJ[{_BASE64URL}]{{8,{LIMIT}}}+(?=\.[{_BASE64URL}]{{16}})"
"""The second part of a JWT: it is found by it, because a long run may have very many beginnings."""
JWT_RUN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

# Shapes share hints, because every hint is one more search of every text.
_SLASH = r"\\*+(?:/|u002[fF])"
_EQUALS = r"(?:=|\\++u003[dD])"
_LOGIN = rf'[^\s"/:@]*+:[^\s"@:]*+(?::(?!{_SLASH}{_SLASH})[^\s"@:]*+)*+@'
_SPACE = Hint(" ")
_DASH = Hint("-", r"[A-Za-z0-9_\-%]{20}")
_UNDERSCORE = Hint("_", "[A-Za-z0-9]{20}")
_LETTER = Hint("A", rf"(?:[KS]IA[A-Z0-9]{{16}}|Iza|cc(?:ount|ess)Key{_EQUALS})")

_GITLAB = ("pat", "rt", "rtr", "dt", "ptt", "cbt", "oas", "soat", "ft", "ffct", "imt", "agent", "wt")
_SLACK = ("xoxa-", "xoxb-", "xoxc-", "xoxp-", "xoxr-", "xoxs-", "xapp-")

_CREDENTIALS = r"\s\"'<>\\\[\]{},"
"""What ends the name and password in an address."""
# The last `@` before the first slash ends the password. Without one, the password has a slash in it, and ends at the
# last `@` before the next address.
_PASSWORD = (
    rf"[^{_CREDENTIALS}/]{{6,}}"
    rf"|(?:[^{_CREDENTIALS}:@/]++|:(?!//)|@)*+/(?:[^{_CREDENTIALS}:@]++|:(?!//)|@)*"
)

# A private key is written in lines of 40 characters and more; only the last ones are shorter. What stands around them
# in a line (quotation marks, a line number, the time in a log) has shorter words, and never five dashes or a mark.
HEADER = "-----BEGIN "
_FULL = rf"[{BASE64}]{{40,}}+"
_MARGIN = (
    rf"(?:[{BASE64}]{{0,39}}+(?:[^{BASE64}\n\-\[]{{1,80}}+|-{{1,4}}+(?!-)|\[(?!secret))){{0,16}}+"
    rf"(?:[{BASE64}]{{1,39}}+(?=\n))?+"
)
_EMPTY = r"\n[^A-Za-z0-9\n\-]{0,20}+(?=\n)"
_HEADED = rf"[A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_MARGIN}(?:\n{_MARGIN}){{0,8}}+"
_KEY = _has(BASE64, "a-z") + _has(BASE64, "A-Z") + _FULL

SHAPES = (
    Shape("an Anthropic key", _DASH, ("sk-ant-",), _has(_BASE64URL, "A-Z") + _random(_BASE64URL, 32)),
    Shape(
        "an OpenAI key",
        _DASH,
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"),
        _random(_BASE64URL, 32, digits=True),
    ),
    Shape("an OpenAI key", _DASH, ("sk-",), _has(_BASE62, "A-Z") + _random(_BASE62, 32, digits=True)),
    Shape("a GitHub token", _UNDERSCORE, ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _random(_BASE62, 30)),
    Shape("a GitHub token", _UNDERSCORE, ("github_pat_",), "[A-Za-z0-9]{20,}+_" + _random(_BASE62, 20)),
    Shape(
        "a GitLab token",
        _DASH,
        tuple(f"gl{kind}-" for kind in _GITLAB),
        _random(_BASE64URL, 20) + r"(?:\.[0-9a-z]{2,12}){0,2}",
    ),
    Shape("an AWS key", _LETTER, ("AKIA", "ASIA"), "[A-Z0-9]{16,}+"),
    Shape("a Google key", _LETTER, ("AIza",), _random(_BASE64URL, 35)),
    Shape("a Google secret", _DASH, ("GOCSPX-",), _random(_BASE64URL, 24)),
    Shape(
        "a Google token",
        Hint("29.", r"(?<=ya29\.)"),
        ("ya29.",),
        _random(rf"{_BASE64URL}.", 40, digits=True),
    ),
    Shape(
        "an Azure key",
        _LETTER,
        ("AccountKey=", "SharedAccessKey="),
        f"({_random(BASE64, 40, digits=True)})",
        stable=False,
    ),
    Shape(
        "an Azure secret",
        Hint("Q~"),
        ("Q~",),
        _random(rf"{_BASE64URL}~.", 31, digits=True),
    ),
    Shape(
        "a Slack token",
        _DASH,
        _SLACK,
        r"(?=(?:[A-Za-z\-]{0,20}+[0-9]){6})[A-Za-z0-9\-]{20,}+",
    ),
    Shape("a Slack token", _DASH, ("xoxe-", "xoxe.xoxb-", "xoxe.xoxp-"), "[0-9]-" + _random(_BASE62, 40)),
    Shape(
        "a Slack cookie",
        _DASH,
        ("xoxd-",),
        _has(f"{BASE64}%", "A-Z") + _random(f"{BASE64}%", 40, digits=True),
    ),
    Shape("a Stripe key", _UNDERSCORE, ("sk_live_", "sk_test_"), _random(_BASE62, 20)),
    Shape("a Stripe key", _UNDERSCORE, ("rk_live_", "rk_test_"), _random(_BASE62, 20)),
    Shape("a webhook secret", _UNDERSCORE, ("whsec_",), _random(BASE64, 24)),
    Shape("an npm token", _UNDERSCORE, ("npm_",), _random(_BASE62, 36)),
    Shape("a PyPI token", _DASH, ("pypi-AgE",), _random(_BASE64URL, 40)),
    Shape("a Hugging Face token", _UNDERSCORE, ("hf_",), _random(_BASE62, 30)),
    Shape(
        "a Slack webhook",
        Hint("hooks.slack"),
        tuple(f"hooks.slack.com/{kind}/" for kind in ("services", "workflows", "triggers")),
        r"([A-Z][A-Z0-9]{7,20}+/(?:[A-Z0-9]{8,20}+/){1,2}(?=[A-Za-z0-9]{0,19}[a-z0-9])[A-Za-z0-9]{20,}+)",
        stable=False,
    ),
    Shape(
        JWT,
        Hint(".eyJ"),
        ("eyJ",),
        rf"[{_BASE64URL}]{{8,{LIMIT}}}+\.eyJ[{_BASE64URL}]{{8,{LIMIT}}}+\.[{_BASE64URL}]{{16,}}+",
    ),
    Shape(
        "a bearer token",
        _SPACE,
        ("bearer ",),
        rf"({_has(_BEARER, '0-9', 2)}[{_BEARER}]{{20,}}+)",
        stable=False,
        any_case=rf"[{_BEARER}\\]{{20}}",
    ),
    Shape(
        "a name and password",
        _SPACE,
        ("basic ",),
        rf"([{BASE64}]{{8,}}+)(?!\[)",  # what a mark follows was longer, and looked at as a whole
        stable=False,
        any_case=rf"(?=[{BASE64}\\][a-z]{{0,20}}+[A-Z0-9+/=\\])[{BASE64}\\]{{8}}",
        check=is_login,
    ),
    Shape(
        "a password in an address",
        Hint("://", _LOGIN),
        ("://",),
        rf"[^{_CREDENTIALS}:@/]*:(?!//)({_PASSWORD})@(?!sha\d+:)(?=[A-Za-z0-9])",
        run=rf"[^{_CREDENTIALS}]",
        escaped=Hint(":\\", rf"{_SLASH}{_SLASH}{_LOGIN}"),
        stable=False,
        check=is_password,
    ),
    Shape(
        PRIVATE_KEY,
        Hint("PRIVATE KEY"),
        (HEADER,),
        rf"{_HEADED}({_KEY}(?:{_MARGIN}(?:(?:{_EMPTY})?+\n{_MARGIN})?+{_FULL})*+)"
        rf"({_MARGIN}(?:\n{_MARGIN}){{0,6}}+(?=\+?-{{5,9}}+END))?+",
        run=r"[A-Z0-9 \-]",
        stable=False,
        first=rf"{_HEADED}{_has(BASE64, 'a-z')}{_has(BASE64, 'A-Z')}[{BASE64}]{{40}}",
    ),
)
