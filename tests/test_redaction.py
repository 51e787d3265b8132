"""What is a secret, and that no part of one gets through."""

import base64
import json
import re
import string
import sys
from itertools import pairwise
from random import Random
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raymond import redaction
from raymond.redaction import Secrets, shapes

RANDOM = "q7Zr2LmX9vTb4KpW1sNd8Hc3Yf6Gj5Qa0RtUeVwBxCyDzEiFoAkJlMnPgShIuO1234567890abcdEFGH"
PASSWORD = 'pa"ss\\wörd/n😀\tQ7#'
"""Everything that JSON escapes."""
KEY_LINES = [RANDOM[shift : shift + 64].swapcase() for shift in (0, 5, 9)] + ["Ab3+/x=="]
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *KEY_LINES, "-----END RSA PRIVATE KEY-----"])
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{RANDOM[:43]}"
ENVIRONMENT = {
    "GITHUB_TOKEN": "tok-5f2b9Qx71Lz0",
    "LONGER_TOKEN": "tok-5f2b9Qx71Lz0-and-8Kd2more",
    "DB_PASSWORD": PASSWORD,
    "n_key": "n4Bx81Kq02Lw9",
    "u_key": "u00e9Bx81Kq02Lw9",
    "DEPLOY_KEY": KEY,
    "NAME_OF_KEY": "tail[secret GITHUB_TOKEN",
    "OTHER_KEY": "MY_KEY_2b9x8",
    "MY_KEY_2b9x8": "head-77x-Qz[",
    "LAST_KEY": "zz-41-Kd9-qX[sec",
    "MARK_KEY": "2b9x8]Abcdefg7",
    "END_SECRET": "Lz0-4Qx9-and-Wb",
}
SECRETS = Secrets.of(ENVIRONMENT)
TOKENS = {
    "an Anthropic key": [f"sk-ant-api03-{RANDOM}"],
    "an OpenAI key": [f"sk-{RANDOM[:48]}", f"sk-proj-{RANDOM[:20]}_{RANDOM[20:40]}-A", f"sk-or-v1-{'0a1b2c3d' * 8}"],
    "a GitHub token": [f"gh{kind}_{RANDOM[:36]}" for kind in "pousr"] + [f"github_pat_{RANDOM[:22]}_{RANDOM[:59]}"],
    "a GitLab token": [f"glpat-{RANDOM[:20]}"],
    "an AWS key": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "a Google key": [f"AIza{RANDOM[:35]}"],
    "a Slack token": [f"xox{kind}-123456789012-{RANDOM[:24]}" for kind in "abprs"],
    "a Stripe key": [f"sk_live_{RANDOM[:24]}", f"rk_live_{RANDOM[:24]}"],
    "an npm token": [f"npm_{RANDOM[:36]}"],
    "a PyPI token": [f"pypi-AgEIcHlwaS5vcmc{RANDOM}"],
    "a Hugging Face token": [f"hf_{RANDOM[:34]}"],
    "a JWT": [JWT],
}
WEBHOOK = f"hooks.slack.com/services/T0123456789/B0123456789/{RANDOM[:24]}"
EVERY_TOKEN = [(what, token) for what, tokens in TOKENS.items() for token in tokens]


def test_a_value_is_replaced_by_the_name_of_its_variable() -> None:
    assert SECRETS.clean("it is tok-5f2b9Qx71Lz0.") == "it is [secret GITHUB_TOKEN]."


@pytest.mark.parametrize(
    "name",
    [
        *(
            "MY_KEY",
            "token",
            "ApiSecrets",
            "PGPASSWORD",
            "KEYBOARD",
            "xTOKENx",
            "GH_PAT",
            "PAT",
            "MYSQL_PWD",
            "DB_PASS",
        ),
        *("SERVICE_CREDENTIALS", "AUTH_COOKIE", "SIGNING_PASSPHRASE", "SENTRY_DSN", "SLACK_WEBHOOK", "BASIC_AUTH"),
        *("AUTHORIZATION", "PASSWD"),
    ],
)
def test_a_variable_is_known_by_its_name_in_any_case_and_place(name: str) -> None:
    assert Secrets.of({name: "a1b2c3d4e5f6"}).clean("a1b2c3d4e5f6") == f"[secret {name}]"


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "KE_Y",
        "PWD",
        "OLDPWD",
        "PASSENGERS",
        "AUTHOR",
        "GIT_AUTHOR_NAME",
        "XAUTHORITY",
        "PATTERN",
        "REPAT",
        "RAYMOND_STEP_KEY",
        "",
    ],
)
def test_a_variable_with_another_name_is_no_secret(name: str) -> None:
    assert Secrets.of({name: "a1b2c3d4e5f6"}).clean("a1b2c3d4e5f6") == "a1b2c3d4e5f6"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("a1b2c3d4e5f6", id="twelve characters"),
        pytest.param("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", id="base64 with slashes"),
        pytest.param("/JalrXUtnFEMIK7MDENG/bPxRfiCYEXAMPLEKEY", id="base64 that begins with a slash"),
        pytest.param("/Jalr/UtnFEM/Kxy==", id="base64 that ends like base64"),
        pytest.param("a1b2c" * 3, id="five different characters"),
        pytest.param("550e8400-e29b-41d4-a716-446655440000", id="a UUID"),
        pytest.param("0x" + "4f3edf983ac636a65a842ce7c78d9aa7" * 2, id="a long hexadecimal number"),
        pytest.param("Password1234", id="a word with digits"),
        pytest.param("ABCD-1234-EFGH-5678", id="a licence key"),
        pytest.param("qxzjkvbwpymfhgtdrlscnuaei", id="more letters than a word has"),
        pytest.param("пароль-Длинный-7", id="letters that are not ASCII"),
        pytest.param("correct horse 7b-staple", id="a word with a digit among words"),
        pytest.param("abcDEFghiJKL", id="letters in no order"),
    ],
)
def test_a_secret_value(value: str) -> None:
    assert Secrets.of({"A_KEY": value}).clean(f"<{value}>") == "<[secret A_KEY]>"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nothing"),
        pytest.param("a1b2c3d4e5f", id="eleven characters"),
        pytest.param(" 'a1b2c3d4e5f' ", id="eleven characters in quotation marks"),
        pytest.param("*" * 20, id="stars"),
        pytest.param("a1b2" * 5, id="too few different characters"),
        pytest.param("/home/me/.ssh/id_ed25519", id="a path"),
        pytest.param("/nix/store/0c4fj1x2k3m5n6p7q8r9s0a1b2c3d4f5-ssl", id="a path with a hash"),
        pytest.param("~/keys/Id4Work", id="a path from home"),
        pytest.param("~me/keys/Id4Work", id="a path from somebody's home"),
        pytest.param("./keys/Id4Work1", id="a path from here"),
        pytest.param("../keys/Id4Work", id="a path from above"),
        pytest.param("C:\\keys\\Id4Work", id="a path on a drive"),
        pytest.param("certs/server01/id_ed25519.pub", id="a path of words"),
        pytest.param("123456789012", id="a number"),
        pytest.param("1.234567890e+12", id="a number with an exponent"),
        pytest.param("0xdeadbeef1234", id="a hexadecimal number"),
        pytest.param("+49 (30) 1234-5678", id="a number with separators"),
        pytest.param("2026-11-15T12:49:36Z", id="a time"),
        pytest.param("2026-11-15 12:49:36.5+01:00", id="a time with a zone"),
        pytest.param("[1, 2, 3, 4, 5, 6, 7]", id="a list of numbers"),
        pytest.param("development", id="a short word"),
        pytest.param("developments", id="a word"),
        pytest.param("qxzjkvbwpymfhgtdrlscnuae", id="as many letters as a word may have"),
        pytest.param("Developments", id="a capitalised word"),
        pytest.param("DEVELOPMENTS", id="a word in capitals"),
        pytest.param("change-me-please", id="words with dashes"),
        pytest.param("Change_me.please now", id="words with anything between"),
        pytest.param("us-east-1-something", id="words with a small number"),
        pytest.param("claude-opus-2026", id="words with a year"),
        pytest.param("someSettingName", id="words written together"),
        pytest.param("git@github.com:acme/site.git", id="an address of words"),
        pytest.param("https://example.com/a1b2c3d4e5f6", id="an address without a password"),
        pytest.param("https://x:8080/a1b2c3d4e5f6", id="an address with a port"),
        pytest.param("\\u00e9\\u00e8\\u00e7", id="next to nothing in many escapes"),
        pytest.param('{"type": "service_account"}', id="JSON of words"),
    ],
)
def test_no_secret_value(value: str) -> None:
    assert Secrets.of({"A_KEY": value}).clean(f"<{value}>") == f"<{value}>"


def test_the_password_of_an_address_is_a_value() -> None:
    known = Secrets.of({"DATABASE_KEY": "postgres://me:a1b2c3d4e5f6@db/x"})
    assert known.clean("a1b2c3d4e5f6 postgres://me:") == "[secret DATABASE_KEY] postgres://me:"


def test_quotation_marks_and_blanks_around_a_value_are_no_part_of_it() -> None:
    for value in (" 'a1b2c3d4e5f6'\n", '"a1b2c3d4e5f6"', "a1b2c3d4e5f6\\"):
        assert Secrets.of({"A_KEY": value}).clean('"a1b2c3d4e5f6"') == '"[secret A_KEY]"'


def test_the_strings_of_a_json_value_are_values_and_its_syntax_is_not() -> None:
    value = json.dumps({"type": "service_account", "id": "0a1b2c3d4e5f", "private_key": KEY}, indent=1)
    known = Secrets.of({"GOOGLE_KEY": value})
    mark = "[secret GOOGLE_KEY]"
    assert json.loads(known.clean(value)) == {
        "type": "service_account",
        "id": mark,
        "private_key": KEY.replace(KEY_LINES[0], mark)
        .replace(KEY_LINES[1], mark)
        .replace(KEY_LINES[2], mark)
        .replace(KEY_LINES[3], "[secret]"),
    }
    assert known.clean(KEY_LINES[1]) == "[secret GOOGLE_KEY]"


def test_every_line_of_a_value_is_a_value() -> None:
    assert SECRETS.clean(KEY) == "[secret DEPLOY_KEY]"
    assert [SECRETS.clean(line) for line in KEY.split("\n")] == [
        "-----BEGIN RSA PRIVATE KEY-----",
        *["[secret DEPLOY_KEY]"] * 3,
        "Ab3+/x==",
        "-----END RSA PRIVATE KEY-----",
    ]


def test_every_line_of_a_value_that_is_written_with_escapes_is_a_value() -> None:
    known = Secrets.of({"A_KEY": "first1\\nA1b2C3d4E5f6\\r\\nlast1"})
    assert known.clean("A1b2C3d4E5f6") == "[secret A_KEY]"


def test_a_value_is_found_however_deep_json_escapes_it() -> None:
    text = f"<{PASSWORD}>"
    for _ in range(4):
        assert SECRETS.clean(text).strip('\\"') == "<[secret DB_PASSWORD]>"
        text = json.dumps(text)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param('pa\\"ss\\\\w\\u00f6rd/n\\ud83d\\ude00\\tQ7#', id="small hexadecimal digits"),
        pytest.param('pa\\"ss\\\\w\\u00F6rd/n\\uD83D\\uDE00\\tQ7#', id="capital hexadecimal digits"),
        pytest.param('pa\\"ss\\\\wörd\\/n😀\\tQ7#', id="an escaped slash"),
        pytest.param('pa\\"ss\\\\wörd\\/n😀\\u0009Q7#', id="a control character as a number"),
    ],
)
def test_a_value_is_found_however_its_letters_are_escaped(written: str) -> None:
    assert json.loads(f'"{written}"') == PASSWORD
    assert SECRETS.clean(written) == "[secret DB_PASSWORD]"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_value_is_found_where_a_backslash_in_it_meets_an_escape(ascii_only: bool) -> None:
    value = "x😀Q7-9ab\\\n\\éz8y"
    line = json.dumps([value], ensure_ascii=ascii_only)
    assert Secrets.of({"A_KEY": value}).clean(line) == '["[secret A_KEY]"]'


@pytest.mark.parametrize("value", [ENVIRONMENT["n_key"], ENVIRONMENT["u_key"], ENVIRONMENT["GITHUB_TOKEN"]])
def test_a_value_is_found_after_a_backslash_and_takes_it_along_only_where_it_may_be_an_escape(value: str) -> None:
    cleaned = json.loads(SECRETS.clean(json.dumps({"a": f"C:\\{value}"})))["a"]
    assert cleaned.startswith("C:")
    assert cleaned.endswith("]")


def test_a_letter_that_needs_no_escape_is_not_looked_for_as_one() -> None:
    """What makes the quick look safe: it sees the same letters as the reading."""
    text = "\\u0074ok-5f2b9Qx71Lz0"
    assert SECRETS.clean(text) == text


def test_the_longest_value_wins() -> None:
    assert SECRETS.clean("tok-5f2b9Qx71Lz0-and-8Kd2more") == "[secret LONGER_TOKEN]"
    assert SECRETS.clean("tok-5f2b9Qx71Lz0-and-8Kd2mor") == "[secret GITHUB_TOKEN]-and-8Kd2mor"


def test_nothing_of_two_values_that_overlap_is_left() -> None:
    known = Secrets.of({"A_KEY": "a1b2c3d4e5f6", "B_KEY": "e5f6g7h8i9j0k1", "C_KEY": "j0k1l2m3n4o5p6"})
    assert known.clean("<a1b2c3d4e5f6g7h8i9j0k1>") == "<[secret B_KEY]>"
    assert known.clean("<a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6>") == "<[secret B_KEY]>"
    assert known.clean("a1b2c3d4e5f6e5f6g7h8i9j0k1") == "[secret A_KEY][secret B_KEY]"


def test_nothing_of_a_value_that_overlaps_itself_is_left() -> None:
    assert Secrets.of({"A_KEY": "a1b2c3X9a1b2c3"}).clean("<a1b2c3X9a1b2c3X9a1b2c3>") == "<[secret A_KEY]>"


def test_the_first_variable_with_a_value_names_it() -> None:
    assert Secrets.of({"A_KEY": "a1b2c3d4e5f6", "B_KEY": "a1b2c3d4e5f6"}).clean("a1b2c3d4e5f6") == "[secret A_KEY]"


def test_a_strange_name_breaks_nothing() -> None:
    assert Secrets.of({'A"]\\ KEY': "a1b2c3d4e5f6"}).clean("a1b2c3d4e5f6") == "[secret A____KEY]"


def test_a_mark_is_not_looked_into() -> None:
    assert SECRETS.clean("[secret MY_KEY_2b9x8] MY_KEY_2b9x8") == "[secret MY_KEY_2b9x8] [secret OTHER_KEY]"
    assert SECRETS.clean("zz-41-Kd9-qX[secret] zz-41-Kd9-qX[sec") == "zz-41-Kd9-qX[secret] [secret LAST_KEY]"


@pytest.mark.parametrize(("what", "token"), EVERY_TOKEN)
def test_a_token_is_known_by_its_shape(what: str, token: str) -> None:
    bare = Secrets()
    assert bare.clean(f"use {token}, please") == "use [secret], please"
    assert bare.clean(json.dumps({"a": f"\n{token}\n"})) == json.dumps({"a": "\n[secret]\n"})
    assert bare.find(f"x={token}") == f"something that looks like {what}"


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn, sk-ant-colony and task-0123456789abcdef0123456789abcdef0123",
        "sk-ant-your-key-goes-here-and-nowhere-else-please",
        "sk-proj-the-name-of-a-project-that-is-rather-long",
        "npm_config_registry npm_package_dependencies_typescript_eslint_parser",
        "hf_hub_download(repo) hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx GHP_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
        "github_pat_is_a_prefix_of_tokens_and_so_is_this_one_here",
        "glpat-is-the-beginning-of-a-token xoxb-is-the-beginning-of-another",
        "AKIA and ASIAN AKIAIOSFODNN7EXAMPL",
        "eyJhbGciOiJIUzI1NiJ9 eyJ.eyJ.eyJ",
        "pypi-AgE is what they begin with",
        "bearer of bad news, Bearer authentication-is-required-here, Bearer $TOKEN",
        "https://example.com:8080/@me postgres://user:password@db postgres://me:$DB_PASS1@db http://u:***@h",
        "http://a:12345678@b",
        "-----BEGIN PRIVATE KEY----- is how a key begins, and nothing more is said.",
        KEY.replace("PRIVATE", "PUBLIC"),
        "-" * 60 + "_" * 60,
    ],
)
def test_prose_and_code_are_left_alone(text: str) -> None:
    assert Secrets().clean(text) == text
    assert Secrets().find(text) == ""
    assert list(redaction.lines(text)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer 3f2a9c81d7e64b05a1c2", "Authorization: Bearer [secret]"),
        ("authorization: bearer ab/cd+ef.gh~ij-kl_mn12==", "authorization: bearer [secret]"),
        ("https://me:hunter2hunter@host/x", "https://me:[secret]@host/x"),
        ("redis://:hunter2@host", "redis://:[secret]@host"),
        ("https://me:p@ss:w0rd@host/a@b", "https://me:[secret]@host/a@b"),
        ("https:\\u002f\\u002Fme:hunter2@host", "https:\\u002f\\u002Fme:[secret]@host"),
        ('{"a":"https:\\/\\/me:hunter2\\u0026x@host"}', '{"a":"https:\\/\\/me:[secret]@host"}'),
        (f"https://ghp_{RANDOM[:36]}:x-oauth-basic1@host", "https://[secret]:[secret]@host"),
        (f"https://ghp_{RANDOM[:36]}@host", "https://[secret]@host"),
        (f"risk-and-\x1b[32mhf_{RANDOM[:34]}\x1b[0m", "risk-and-\x1b[32m[secret]\x1b[0m"),
    ],
)
def test_only_the_secret_part_is_replaced(text: str, expected: str) -> None:
    assert Secrets().clean(text) == expected


def test_a_value_in_the_shape_of_a_token_has_its_name() -> None:
    token = f"ghp_{RANDOM[:36]}"
    known = Secrets.of({"GITHUB_TOKEN": token})
    assert known.clean(f"{token} {token}x") == "[secret GITHUB_TOKEN] [secret GITHUB_TOKEN]"


def test_the_lines_of_a_private_key_are_replaced_one_by_one() -> None:
    cleaned = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *["[secret]"] * 4, "-----END RSA PRIVATE KEY-----"])
    assert Secrets().clean(KEY) == cleaned
    assert Secrets().clean(json.dumps({"a": json.dumps(KEY)})) == json.dumps({"a": json.dumps(cleaned)})


def test_what_a_mark_follows_is_not_taken_for_a_login() -> None:
    text = f"Basic {base64.b64encode(b':t0ken').decode()}{ENVIRONMENT['u_key']}"
    cleaned = SECRETS.clean(text)
    assert cleaned.endswith("[secret u_key]")
    assert SECRETS.clean(cleaned) == cleaned


def test_a_mark_ends_a_private_key() -> None:
    text = f"{KEY.partition(KEY_LINES[1])[0]}and so on\n{KEY_LINES[1]}\n"
    cleaned = Secrets().clean(text)
    assert cleaned == text.replace(KEY_LINES[0], "[secret]")
    assert Secrets().clean(cleaned) == cleaned


def test_of_a_private_key_that_is_cut_off_only_full_lines_are_sure() -> None:
    text = KEY.partition("-----END")[0] + "and so on"
    assert Secrets().clean(text).endswith("[secret]\nAb3+/x==\nand so on")


def test_a_token_ends_at_the_limit() -> None:
    token = "sk-ant-sk-ant-" + RANDOM * 200
    assert Secrets().clean(token) == "[secret]" + token[shapes.LIMIT :]


def test_bytes_that_are_no_text_survive() -> None:
    assert SECRETS.clean_bytes(b"\xff tok-5f2b9Qx71Lz0 \xed\xa0\x80") == b"\xff [secret GITHUB_TOKEN] \xed\xa0\x80"
    data = bytes(range(256))
    assert SECRETS.clean_bytes(data) is data


def test_what_stands_in_a_text_is_said_in_words() -> None:
    assert SECRETS.find("--token tok-5f2b9Qx71Lz0") == "the value of GITHUB_TOKEN"
    assert SECRETS.find(f"a hf_{RANDOM[:34]} tok-5f2b9Qx71Lz0") == "something that looks like a Hugging Face token"
    assert SECRETS.find("nothing") == ""
    assert SECRETS.find("[secret GITHUB_TOKEN]") == ""


def test_lint_hears_where_a_token_stands() -> None:
    token = f"hf_{RANDOM[:34]}"
    text = f"one\n  {token} and {JWT}\n{KEY}\n"
    what = "something that looks like"
    assert list(redaction.lines(text)) == [
        (2, 3, len(token), f"{what} a Hugging Face token"),
        (2, 3 + len(token) + 5, len(JWT), f"{what} a JWT"),
        (4, 1, 64, f"{what} a private key"),
    ]
    assert list(redaction.lines("tok-5f2b9Qx71Lz0")) == []


def fed(known: Secrets, *chunks: str) -> list[str]:
    """What comes out for each chunk, and at the end."""
    stream = known.stream()
    return [stream.feed(chunk) for chunk in chunks] + [stream.close()]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (["hello word.", "s, and."], ["hello word.", "s, and.", ""]),
        (["a tok-5f2", "b9Qx71Lz0 #"], ["a ", "[secret GITHUB_TOKEN] #", ""]),
        (["a tok-5f2", "b9 #"], ["a ", "tok-5f2b9 #", ""]),
        (["tok-5f2b9Qx71Lz0", "-and", "."], ["", "", "[secret GITHUB_TOKEN]-and.", ""]),
        (["tok-5f2b9Qx71Lz0"], ["", "[secret GITHUB_TOKEN]"]),
        (["#\\", "n4Bx81Kq02Lw9."], ["#", "[secret n_key].", ""]),
        (["#\\u00", "e9#"], ["#", "\\u00e9#", ""]),
        (["#\\u0041", "#"], ["#\\u0041", "#", ""]),
        (["a \\\\\\", "#"], ["a ", "\\\\\\#", ""]),
        (['pa\\"ss\\\\w\\u00', "f6rd/n\\ud83d", "\\ude00\\tQ7", "#"], ["", "", "", "[secret DB_PASSWORD]", ""]),
        (["[secret MY_KEY_2b9x8]Abc", "defg7."], ["", "[secret MY_KEY_2b9x8]Abcdefg7.", ""]),
        (["see [", "x]"], ["see ", "[x]", ""]),
        (["risk g", "h", "p", "_", "x #"], ["risk ", "", "", "", "ghp_x #", ""]),
        (["a Bear", "er ", RANDOM, " #"], ["a ", "", "", "Bearer [secret] #", ""]),
    ],
)
def test_a_stream_keeps_back_only_what_may_become_a_secret(chunks: list[str], expected: list[str]) -> None:
    assert fed(SECRETS, *chunks) == expected


def test_a_stream_waits_for_the_end_of_a_private_key_and_of_no_other_one() -> None:
    public = KEY.replace("PRIVATE", "PUBLIC")
    assert fed(Secrets(), public[:80], public[80:]) == [public[:80], public[80:-5], "-----"]
    assert fed(Secrets(), "a " + KEY[:80], KEY[80:])[0] == "a "


def test_a_stream_waits_for_the_last_letter_of_the_longest_value() -> None:
    known = Secrets.of({"A_KEY": RANDOM})
    assert fed(known, RANDOM[:-1], RANDOM[-1]) == ["", "[secret A_KEY]", ""]


def test_a_stream_keeps_back_no_more_than_the_limit() -> None:
    stream = Secrets().stream()
    let_through = sum(len(stream.feed("sk-ant-" + "x" * 93)) for _ in range(200))
    assert let_through >= 200 * 100 - shapes.LIMIT


PIECES = [
    *ENVIRONMENT.values(),
    *(json.dumps(value)[1:-1] for value in ENVIRONMENT.values()),
    *(json.dumps(json.dumps(value))[3:-3] for value in ENVIRONMENT.values()),
    *(token for _, token in EVERY_TOKEN),
    KEY,
    KEY.replace("\n", "\\n"),
    *(
        "https://me:hunter2x@host",
        f"Bearer {RANDOM[:30]}",
        "[secret]",
        "[secret GITHUB_TOKEN]",
        "[secret MY_KEY_2b9x8]",
    ),
    "\n".join(["-----BEGIN PGP PRIVATE KEY BLOCK-----", "Version: 1", "", *KEY_LINES, "=aB3d", "-----END PGP"]),
    KEY.replace("\n", "\n> "),
    KEY.replace("\n", "\n+"),
    base64.encodebytes(b"some more " * 5 + b"tok-5f2b9Qx71Lz0 and so on " * 3).decode(),
    *("https://me:$pa/ss9@w0rd@host/x", "bAsIc bWU6aHVudGVyMng=", "ya29.", "xoxe.xoxp-1-", "Q~", "glrt-"),
    *(
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "-----END",
        "://",
        "sk-",
        "eyJ",
        "Bearer ",
        "\\",
        "\\\\",
        "\\u00",
        "\\n",
        '\\"',
        '"',
        " ",
        "\n",
    ),
]
SLICES = st.builds(
    lambda piece, start, size: piece[start : start + size],
    st.sampled_from(PIECES),
    st.integers(0, 20),
    st.integers(0, 40),
)
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), SLICES, st.text(max_size=3)), max_size=8).map("".join)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 600), max_size=12))
@example(text=KEY * 2, cuts=list(range(0, 600, 7)))
@example(text="sk-ant-" + RANDOM * 150, cuts=[8190, 8191, 8192, 8193, 8200])
@pytest.mark.slow
def test_a_stream_in_any_chunks_says_what_the_whole_text_says(text: str, cuts: list[int]) -> None:
    for known in (SECRETS, Secrets()):
        edges = [0, *sorted(cuts), len(text)]
        assert "".join(fed(known, *(text[a:b] for a, b in pairwise(edges)))) == known.clean(text)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(text=TEXTS)
@example(text=KEY)
def test_a_stream_of_single_letters_says_what_the_whole_text_says(text: str) -> None:
    for known in (SECRETS, Secrets()):
        assert "".join(fed(known, *text)) == known.clean(text)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_what_was_cleaned_stays_as_it_is(text: str) -> None:
    for known in (SECRETS, Secrets()):
        cleaned = known.clean(text)
        assert known.clean(cleaned) == cleaned
        assert known.find(cleaned) == ""
        assert (known.find(text) == "") == (cleaned == text)


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(TEXTS, max_size=4), plain=st.booleans(), nested=st.booleans(), slash=st.booleans())
@pytest.mark.slow
def test_a_line_of_json_stays_one(texts: list[str], plain: bool, nested: bool, slash: bool) -> None:
    line = json.dumps({"a": texts, "b": dict.fromkeys(texts, 1)}, ensure_ascii=plain)
    line = json.dumps({"inner": line}) if nested else line
    line = line.replace("/", "\\/") if slash else line
    cleaned = json.loads(SECRETS.clean(line))
    if nested:
        json.loads(cleaned["inner"])


VALUES = st.text(string.ascii_letters + string.digits + '"\\/\n\t+=é😀-_ {}[]:,', min_size=12, max_size=40)


@settings(max_examples=200, deadline=None)
@given(
    value=VALUES, before=st.text(max_size=5), after=st.text(max_size=5), depth=st.integers(0, 3), plain=st.booleans()
)
def test_a_value_is_nowhere_in_a_cleaned_line_of_json(
    value: str, before: str, after: str, depth: int, plain: bool
) -> None:
    known = Secrets.of({"A_KEY": value})
    if known.find(value) != "the value of A_KEY":
        return
    line = json.dumps([before + " " + value + " " + after], ensure_ascii=plain)
    for _ in range(depth):
        line = json.dumps([line])
    cleaned = known.clean(line)
    assert "[secret A_KEY]" in cleaned
    for _ in range(depth + 1):
        (cleaned,) = json.loads(cleaned)
    assert value not in cleaned


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=60), text=TEXTS)
def test_bytes_around_a_secret_are_untouched(data: bytes, text: str) -> None:
    mixed = data + b" " + text.encode("utf-8", "surrogatepass")
    assert Secrets().clean_bytes(data) == data
    assert SECRETS.clean_bytes(SECRETS.clean_bytes(mixed)) == SECRETS.clean_bytes(mixed)


def test_a_slack_webhook_is_known_by_its_shape() -> None:
    assert Secrets().clean(f"POST https://{WEBHOOK} 200") == "POST https://hooks.slack.com/services/[secret] 200"
    escaped = json.dumps({"url": f"https://{WEBHOOK}"}).replace("/", "\\/")
    assert RANDOM[:24] not in Secrets().clean(escaped)


# --- other forms of a value, and parts of addresses


VALUE = "q7/Zr2+Lm X9?vTb4"


@pytest.mark.parametrize("around", [("", ""), ("u:", ""), ("us:", "!"), ("use:", "!!")])
def test_a_value_is_found_in_base64_wherever_it_begins(around: tuple[str, str]) -> None:
    text = base64.b64encode(f"{around[0]}{VALUE}{around[1]}".encode()).decode()
    for form in (text, text.replace("+", "-").replace("/", "_")):
        cleaned = Secrets.of({"MY_TOKEN": VALUE}).clean(f"Basic {form}")
        assert "[secret MY_TOKEN]" in cleaned
        assert len(cleaned.replace("[secret MY_TOKEN]", "")) < len("Basic ") + 12, "only what depends on its neighbours"


@pytest.mark.parametrize("safe", ["", "/", "!'()*", "/!'()*;,?:@&=+$#"], ids=["all", "Python", "a part", "JavaScript"])
@pytest.mark.parametrize("small", [False, True])
def test_a_value_is_found_as_it_stands_in_an_address(safe: str, small: bool) -> None:
    form = quote(VALUE, safe=safe)
    form = re.sub("%..", lambda escape: escape[0].lower(), form) if small else form
    assert Secrets.of({"MY_TOKEN": VALUE}).clean(f"GET /?t={form}&x=1") == "GET /?t=[secret MY_TOKEN]&x=1"


def test_a_value_is_found_in_a_form_that_was_sent() -> None:
    assert Secrets.of({"MY_TOKEN": VALUE}).clean(quote_plus(VALUE)) == "[secret MY_TOKEN]"


def wrapped(text: str, width: int, end: str, before: int) -> str:
    """`text` in base64, in lines, after some other bytes."""
    whole = base64.b64encode(b"x" * before + text.encode() + b"y" * 80).decode()
    return end.join(whole[at : at + width] for at in range(0, len(whole), width))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n    ", "\\n", "\\r\\n", "\\\\n"])
@pytest.mark.parametrize("width", [64, 76])
def test_a_value_is_found_in_base64_in_lines_wherever_a_line_ends(width: int, end: str) -> None:
    known = Secrets.of({"MY_TOKEN": VALUE})
    for before in range(34, 70):
        text = wrapped(VALUE, width, end, before)
        cleaned = known.clean(f"<{text}>")
        assert cleaned.count(end) == text.count(end), "the text keeps its lines"
        left = re.sub(r"\[secret MY_TOKEN\]|\s|\\+[rn]", "", cleaned)
        assert len(left) < len(text.replace(end, "")) - 16, before
        for size in (1, 7, 50):
            chunks = [f"<{text}>"[at : at + size] for at in range(0, len(text) + 2, size)]
            assert "".join(fed(known, *chunks)) == cleaned


def test_an_escape_is_no_part_of_the_line_of_base64_after_it() -> None:
    known = Secrets.of({"MY_TOKEN": VALUE})
    lines = wrapped(VALUE, 76, "\\n", 50).split("\\n")
    text = f"\\n{lines[0][-31:]}\\n{lines[1]}"
    assert known.clean(text) == text, "a line of 31 characters is not full"
    assert "".join(fed(known, *text)) == text


def test_lines_of_base64_without_a_value_stay() -> None:
    text = wrapped("another text altogether", 76, "\n", 50)
    known = Secrets.of({"MY_TOKEN": VALUE})
    assert known.clean(text) == text
    assert "".join(fed(known, *text.splitlines(keepends=True))) == text
    assert not known.passes(text[:77]), "the next line may complete a value"
    assert known.passes("some words in a line\n")


@pytest.mark.parametrize(
    ("name", "value", "leak"),
    [
        (
            "SENTRY_DSN",
            "https://0123456789abcdef0123456789abcdef@o1.ingest.example/2",
            "0123456789abcdef0123456789abcdef",
        ),
        ("HOOK_WEBHOOK_URL", f"https://hooks.example/in/{RANDOM[:24]}?wait=1", RANDOM[:24]),
        ("APP_WEBHOOK", f"https://hooks.example/in?sig={RANDOM[:40]}", RANDOM[:40]),
    ],
)
def test_the_key_in_an_address_is_secret_and_the_host_is_not(name: str, value: str, leak: str) -> None:
    assert Secrets.of({name: value}).clean(f"a {leak} b ingest.example hooks.example") == (
        f"a [secret {name}] b ingest.example hooks.example"
    )


def test_an_address_without_a_key_stays_as_it_is() -> None:
    text = "https://tracker.example.org/projects/raymond/issues/new-feature-request-2026"
    assert Secrets.of({"ISSUE_WEBHOOK": text, "PWD": "/home/somebody/project-7Zr2LmX9vTb4"}).clean(text) == text


# --- hostile texts: nothing makes it look at every beginning one by one


HOSTILE = {begin: begin for shape in shapes.SHAPES for begin in shape.begins} | {
    "a password's beginning": "https://a:",
    "a JWT without a middle": "eyJeyJ.",
    "a JWT's end": "eyJaaaa.eyJaaaaaaaa.",
    "tokens in tokens": "sk-ant-ghp_xoxb-AKIA",
    "a Slack token without enough digits": "xoxb-11a",
    "private keys without a line": "-----BEGIN RSA PRIVATE KEY-----\n",
    "private keys with short lines": "-----BEGIN PRIVATE KEY-----\nabc\n",
    "a password of one letter": "https://a:b@",
    "a path in place of a password": "://a:/b@",
    "two slashes": "://:@:@/",
    "escapes": "\\n",
    "backslashes": "\\",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_beginnings_without_a_token_are_passed_over_as_a_whole(piece: str) -> None:
    """Counted, not timed: what Python is asked to do must not grow with the number of beginnings."""
    calls = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    text = piece * 10_000
    SECRETS.clean(f"{piece * 100} {TOKENS['an AWS key'][0]}")  # compiles what is compiled at first use
    sys.setprofile(count)
    try:
        cleaned = SECRETS.clean(f"{text} {TOKENS['an AWS key'][0]}")
    finally:
        sys.setprofile(None)
    assert cleaned.endswith(" [secret]")
    assert calls < 7000


def test_a_jwt_is_found_at_the_end_of_a_long_run_of_beginnings() -> None:
    head, middle, tail = JWT.split(".")
    text = f"{'eyJ' * 5000}{head}.{middle}.{tail} end"
    cleaned = Secrets().clean(text)
    assert "[secret]" in cleaned
    assert middle not in cleaned
    assert len(cleaned) > 15_000 - shapes.LIMIT


def test_a_chain_of_tokens_without_end_is_not_held_back_for_ever() -> None:
    """Each one overlaps with the next: a stream that waits for the last of them holds everything, and searches it again."""
    random = Random(1)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    text = "".join(f"ya29.{''.join(random.choices(letters, k=45))}1aAQ~" for _ in range(4000))
    stream, passed, held = Secrets().stream(), "", 0
    for at in range(0, len(text), 1 << 15):
        passed += stream.feed(text[at : at + (1 << 15)])
        held = max(held, len(stream._kept))
    passed += stream.close()
    assert held < 5 * shapes.LIMIT
    assert set(passed.split("[secret]")) == {""}
