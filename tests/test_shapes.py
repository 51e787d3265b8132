"""Which tokens are known by their shape, each beside something near it that is not one."""

import base64
import json
from collections.abc import Callable
from itertools import product

import pytest

from raymond.redaction import Secrets
from raymond.redaction.shapes import SHAPES

RANDOM = "q7Zr2LmX9vTb4KpW1sNd8Hc3Yf6Gj5Qa0RtUeVwBxCyDzEiFoAkJlMnPgShIuO1234567890abcdEFGH"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{RANDOM[:43]}"
GITLAB = ("glpat", "glrt", "gldt", "glptt", "gloas", "glsoat", "glft", "glimt", "glagent", "glwt", "glffct", "glrtr")
TOKENS = {
    **{prefix: f"{prefix}-{RANDOM[:20]}" for prefix in GITLAB},
    "glcbt": f"glcbt-64_{RANDOM[:20]}",
    "glpat that says where it is routed": f"glpat-{RANDOM[:40]}.01.0w1abcdef",
    "glptt in hexadecimal digits": f"glptt-{HEX[:40]}",
    **{f"xox{kind}": f"xox{kind}-123456789012-1234567890123-{RANDOM[:24]}" for kind in "abcprs"},
    "xapp": f"xapp-1-A012ABCDEFG-1234567890123-{HEX}",
    "xoxe": f"xoxe-1-{RANDOM}",
    "xoxe.xoxp": f"xoxe.xoxp-1-{RANDOM}{RANDOM}",
    "xoxe.xoxb": f"xoxe.xoxb-1-{RANDOM}{RANDOM}",
    "xoxd": f"xoxd-Ab%2Fc{RANDOM[:40]}%2Bx%3D%3D",
    **{f"{key}_{kind}": f"{key}_{kind}_{RANDOM[:24]}" for key in ("sk", "rk") for kind in ("live", "test")},
    "whsec": f"whsec_{RANDOM[:32]}",
    "GOCSPX": f"GOCSPX-{RANDOM[:14]}_{RANDOM[14:27]}",
    "ya29": f"ya29.a0{RANDOM}-{RANDOM}",
    "ya29 of a service account": f"ya29.c.b0{RANDOM}",
    "a stateless ghs": f"ghs_{RANDOM[:36]}",
    "sk-svcacct": f"sk-svcacct-{RANDOM}",
    "sk-admin": f"sk-admin-{RANDOM}",
    "sk-ant-oat": f"sk-ant-oat01-{RANDOM}",
    "sk-ant-admin": f"sk-ant-admin01-{RANDOM}",
    "pypi of the test index": f"pypi-AgENdGVzdC5weXBpLm9yZ{RANDOM}",
}
PARTS = [
    ("Slack services", "https://hooks.slack.com/services/", f"T0123456789/B0123456789/{RANDOM[:24]}", ""),
    ("Slack workflows", "https://hooks.slack.com/workflows/", f"T012345678/A012345678/123456789012345678/{RANDOM}", ""),
    ("Slack triggers", "https://hooks.slack.com/triggers/", f"T012345678/1234567890123/{HEX[:32]}", ""),
    ("Slack triggers of an organisation", "hooks.slack.com/triggers/", f"E012345678/1234567890123/{HEX[:32]}", "?x=1"),
    ("GitHub installation", "ghs_123456_", JWT, ""),
    ("BEARER", "Authorization: BEARER ", RANDOM[:30], ""),
    ("bEaReR", "bEaReR ", RANDOM[:30], "\n"),
    ("Basic", "Authorization: Basic ", base64.b64encode(b"me:hunter2").decode(), ""),
    ("basic", "authorization: basic ", base64.b64encode(b":t0ken").decode(), ""),
    ("BASIC", "-H 'BASIC ", base64.b64encode("jürgen:pässword x".encode()).decode(), "'"),
    ("Azure secret", "aB38", f"Q~{RANDOM[:34]}", ""),
    ("Azure storage", "AccountName=me;AccountKey=", base64.b64encode(RANDOM[:64].encode()).decode(), ";Endpoint"),
    ("Azure bus", "SharedAccessKey=", base64.b64encode(RANDOM[:32].encode()).decode(), '"'),
]
NEAR = [
    *(f"{prefix}-is-the-beginning-of-a-token-and-of-nothing-else" for prefix in (*GITLAB, "glcbt", "xapp", "GOCSPX")),
    *(f"{prefix}-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" for prefix in (*GITLAB, "glcbt", "xapp", "GOCSPX")),
    *(f"xox{kind}-not-a-token-but-the-words-in-its-place" for kind in "abcdeprs"),
    "xoxe.xoxp-is-what-the-tokens-of-an-app-begin-with xoxd-%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F%2F",
    "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx sk_test_your_key_goes_here_please rk_test_xxxxxxxxxxxxxxxxxxxxxxxx",
    "risk_live_abc whsec_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx whsec_your_secret_goes_in_this_place",
    "ya29.md ya29.is.what.access.tokens.of.google.begin.with.every.time",
    "https://hooks.slack.com/services/T00000000/B00000000 https://hooks.slack.com/triggers/docs/how-to",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "https://hooks.slack.com/workflows/your-workspace/your-app/your-id",
    "Basic authentication, basic training-is-required, BASIC programming and Basic Y29sb25sZXNz",
    "Basic bWU6, basic bm9ib2R5Og==, basic dGVzdDE=, basic usage: 12345678901234567890",
    "BEARER OF BAD NEWS, BEARER authentication-is-required-here, bearer $TOKEN",
    "AccountKey=your-account-key-goes-here; SharedAccessKey=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "8Q~ is in the middle of 1Q~aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_token_is_replaced_as_a_whole(token: str) -> None:
    assert Secrets().clean(f"use {token}, please") == "use [secret], please"
    assert Secrets().clean(json.dumps([f"\n{token}\n"])) == json.dumps(["\n[secret]\n"])


@pytest.mark.parametrize(("before", "secret", "after"), [part[1:] for part in PARTS], ids=[part[0] for part in PARTS])
def test_only_the_secret_part_is_replaced(before: str, secret: str, after: str) -> None:
    assert Secrets().clean(f"{before}{secret}{after}") == f"{before}[secret]{after}"
    escaped = json.dumps([before + secret + after]).replace("/", "\\/").replace("=", "\\u003d")
    assert secret[-12:] not in Secrets().clean(escaped)


@pytest.mark.parametrize("text", NEAR)
def test_what_is_only_near_a_token_stays(text: str) -> None:
    assert Secrets().clean(text) == text


def test_every_beginning_has_a_token_here_or_in_the_tests_of_redaction() -> None:
    from test_redaction import TOKENS as OTHERS

    known = [*TOKENS.values(), *(token for tokens in OTHERS.values() for token in tokens)]
    known += [before + secret for _, before, secret, _ in PARTS]
    known += ["https://me:hunter2@host", "-----BEGIN "]
    missing = [
        begin
        for shape in SHAPES
        for begin in shape.begins
        if not any(begin.lower() in token.lower() for token in known)
    ]
    assert missing == []


# --- passwords in addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:$3cret9x@host/x", "https://me:[secret]@host/x"),
        ("https://me:$ecr3t!pass@host", "https://me:[secret]@host"),
        ("https://me:$2b$10$abcdef@host", "https://me:[secret]@host"),
        ("postgres://me:pa/ss9w0rd@db:5432/x", "postgres://me:[secret]@db:5432/x"),
        ("postgres://me:/pa9ss/w0rd@db", "postgres://me:[secret]@db"),
        ("postgres://me:$x/9:q@z7@db/x", "postgres://me:[secret]@db/x"),
        ("postgres://me:a:b9:c@d7@db/x", "postgres://me:[secret]@db/x"),
        ("amqp://me:x9@y8/z7@mq", "amqp://me:[secret]@mq"),
        ("mysql://me:hunter2x@db/x?mail=a@b.org", "mysql://me:[secret]@db/x?mail=a@b.org"),
        (r"https:\/\/me:pa\/ss9w0rd@host\/x", r"https:\/\/me:[secret]@host\/x"),
    ],
)
def test_the_password_of_an_address_is_replaced(text: str, expected: str) -> None:
    assert Secrets().clean(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://me:$PASSWORD@host https://me:${TOKEN}@host https://$USER:$DB_PASS1@host",
        "https://me:$password@host https://me:$dbPassword@host https://me:%PASSWORD%@host https://me:$(pass)@host",
        "http://localhost:8080/@vite/client http://localhost:3000/a9b8c7/@me http://[::1]:80/x9@y",
        "http://localhost:8080?mail=a9b8c7@me http://localhost:$PORT/x9y8z7/@me http://localhost:{port}/a9b8c7@me",
        "https://example.com/a:b9c8d7e6@x https://cdn.example/npm/pkg@1.2.3/x.js ssh://git@host:22/me/x9y8@v1",
        "docker://alpine:3.18.0-rc1x9@sha256:0123456789abcdef",
        "https://a:b/c9d8e7f6g5 https://example.com",
    ],
)
def test_an_address_without_a_password_stays(text: str) -> None:
    assert Secrets().clean(text) == text


# --- private keys

LINES = [RANDOM[shift : shift + 64].swapcase() for shift in (0, 5, 9)]
PEM = ["-----BEGIN RSA PRIVATE KEY-----", *LINES, "Ab3+/x==", "-----END RSA PRIVATE KEY-----"]
SHUT = [PEM[0], "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF", "", *PEM[1:]]
PGP = [
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "Version: GnuPG v2",
    "Comment: a key for tests",
    "",
    *LINES,
    "Ab3+/x==",
    "=aB3d",
    "-----END PGP PRIVATE KEY BLOCK-----",
]
WRITTEN: dict[str, Callable[[str, int], str]] = {
    "as it is": lambda line, at: line,
    "quoted": lambda line, at: f"> {line}",
    "added": lambda line, at: f"+{line}",
    "removed": lambda line, at: f"-{line}",
    "indented": lambda line, at: f"        {line}",
    "by tabs": lambda line, at: f"\t\t{line}",
    "numbered": lambda line, at: f"{at:6}\t{line}",
    "numbered with an arrow": lambda line, at: f"{at:6}→{line}",
    "found by grep": lambda line, at: f"keys/id_rsa.pem:{at}:{line}",
    "in a log": lambda line, at: f"2026-11-15T12:49:{at}.123456Z stdout F {line}",
    "in a comment": lambda line, at: f"# {line}",
    "as strings": lambda line, at: f'  "{line}\\n" +',
    "as a list": lambda line, at: f"  '{line}',",
    "with carriage returns": lambda line, at: f"{line}\r",
}


@pytest.mark.parametrize("written", WRITTEN)
def test_nothing_of_a_private_key_is_left(written: str) -> None:
    for key, end in product((PEM, SHUT, PGP), ("\n", "\\n", "\\\\n")):
        lines = [WRITTEN[written](line, 10 + at) for at, line in enumerate(key)]
        text = end.join(["before", *lines, "after"])
        cleaned = Secrets().clean(text)
        assert not [line for line in (*LINES, "Ab3+/x", "=aB3d") if line[:12] in cleaned]
        assert cleaned.startswith(f"before{end}")
        assert cleaned.endswith(f"{end}after")
        assert cleaned.count(end) == text.count(end), "the text keeps its lines"
        assert key[0] in cleaned
        assert key[-1] in cleaned


def test_a_private_key_in_one_line_is_replaced() -> None:
    for separator in (" ", "", "  "):
        cleaned = Secrets().clean(f"KEY='{separator.join(PEM)}' # a key")
        assert not [line for line in PEM[1:-1] if line[:12] in cleaned]
        assert cleaned.endswith("-----END RSA PRIVATE KEY-----' # a key")


CERTIFICATE = "\n".join(["-----BEGIN CERTIFICATE-----", *LINES, "-----END CERTIFICATE-----"])


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(PEM).replace("PRIVATE", "PUBLIC"),
        "\n".join(PGP).replace("PRIVATE", "PUBLIC"),
        "-----BEGIN PGP MESSAGE-----\n\n" + "\n".join(LINES),
        CERTIFICATE,
        "Look for -----BEGIN PRIVATE KEY----- in\n/usr/lib/python3/site/packages/somewhere/below/this/folder\n",
        f"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n{LINES[0]}\n",
        f"-----BEGIN PRIVATE KEY----- begins a key.\n{'Words and more words. ' * 5}\n{LINES[0]}",
    ],
)
def test_what_is_not_a_private_key_stays(text: str) -> None:
    assert Secrets().clean(text) == text


def test_a_certificate_after_a_private_key_stays() -> None:
    cleaned = Secrets().clean("\n".join([*PEM, CERTIFICATE]))
    assert cleaned.endswith(f"-----END RSA PRIVATE KEY-----\n{CERTIFICATE}")
