"""What a command of a gate may do: the rules, and a line judged by them.

A gate runs again and again, at night, in a directory with somebody's work. So it looks, and changes nothing that cannot
be had again. The rules find mistakes and carelessness; whoever wants to get around them can.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language import shell_line
from raymond.language.shell_line import Command, Pipeline

Kind: TypeAlias = Literal["unsafe", "deletes", "unknown"]
_DEEPEST = 8
"""Commands in the texts of commands: `sh -c "sh -c ..."`."""
_LONGEST = 60


class Judgement(Struct, frozen=True):
    """What is wrong with a command of a line."""

    kind: Kind
    what: str
    """What it would do; of an unknown one, its program."""


class Rule(Struct, frozen=True, kw_only=True):
    """A command that is refused, or warned of; everything that is given must hold."""

    program: str
    """A regular expression for its name."""
    sub: str = ""
    """Its first argument that is not an option."""
    short: str = ""
    long: tuple[str, ...] = ()
    """One of these options, in any order, together with others, or cut short as far as GNU allows."""
    unless_short: str = ""
    unless_long: tuple[str, ...] = ()
    """None of these options."""
    operand: str = ""
    """A regular expression for one of its arguments."""
    path: bool = False
    """The argument is a path: it is matched without what does not count, such as `/.` and `/*` at its end."""
    last: bool = False
    """Only the last argument counts."""
    kind: Kind = "unsafe"
    what: str
    """`{operand}` stands for the argument."""


ANYTHING = r"""(?x)
    / | ~ [^/]* | \$HOME | /(?:home|Users)(?:/[^/]+)? | \.\. (?:/\.\.)*              # what people have
    | /(?:bin|boot|dev|etc|lib|lib64|opt|proc|root|sbin|srv|sys|usr|var|Library|System) # what a machine needs
"""
"""A directory that nobody can do without."""
DEVICE = r"/dev/(?!(?:null|stdout|stderr|stdin|tty|zero|full|random|urandom)$|fd/|shm/|pts/|tcp/|udp/).+"

RULES: tuple[Rule, ...] = (
    Rule(
        program="rm",
        short="rR",
        long=("--recursive",),
        operand=ANYTHING,
        path=True,
        what="deletes everything in `{operand}`",
    ),
    Rule(program="find", long=("-delete",), operand=ANYTHING, path=True, what="deletes what it finds in `{operand}`"),
    Rule(program="git", sub="push", short="f", long=("--force",), what="overwrites history: a force push"),
    Rule(program="git", sub="push", long=("--mirror",), what="overwrites history: a force push"),
    Rule(program="git", sub="push", operand=r"\+.+", what="overwrites history: a force push of `{operand}`"),
    Rule(program="git", sub="reset", long=("--hard",), what="discards changes: `git reset --hard`"),
    Rule(
        program="git",
        sub="clean",
        short="f",
        long=("--force",),
        unless_short="n",
        unless_long=("--dry-run",),
        what="deletes files that are not committed: `git clean -f`",
    ),
    Rule(program="dd", operand=f"of={DEVICE}", what="writes to a device: `{operand}`"),
    Rule(program="cp|mv|install", operand=DEVICE, last=True, what="writes to the device `{operand}`"),
    Rule(program="tee|shred|wipefs", operand=DEVICE, what="writes to the device `{operand}`"),
    Rule(program=r"mkfs(?:\..+)?|mkswap", what="formats a device"),
    Rule(program="rm", short="rR", long=("--recursive",), kind="deletes", what="deletes directories with `rm -r`"),
)
"""The first one that holds is told."""

DOWNLOADS = frozenset("curl wget fetch aria2c http https lwp-download lwp-request".split())
SHELLS = frozenset("sh bash dash zsh ksh mksh ash fish csh tcsh su".split())
INTERPRETERS = frozenset("python perl ruby node nodejs deno bun php lua Rscript osascript pwsh".split())
_VALUES = {"git": ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "-e", "--exclude", "-o")}
"""Options of a program that are followed by a value."""

WRAPPERS: dict[str, tuple[str, int]] = {
    "sudo": ("-u -g -p -C -D -h -r -t -T -U --user --group --prompt --chdir --host", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "stdbuf": ("-i -o -e", 0),
    "timeout": ("-k -s --kill-after --signal", 1),
    "time": ("-f -o", 0),
    "exec": ("-a", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "busybox": ("", 0),
    "xargs": ("-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --replace", 0),
    "parallel": ("-j -a --jobs", 0),
    "chroot": ("", 1),
    "flock": ("-w -E --timeout", 1),
    "watch": ("-n --interval", 0),
    "xvfb-run": ("-n -s -e -f", 0),
    "chronic": ("", 0),
    "caffeinate": ("-t -w", 0),
    "unbuffer": ("", 0),
    "dbus-run-session": ("", 0),
    "direnv": ("", 2),
}
"""Programs that run another: their options with a value, and how many arguments come before the command."""

TEST_RUNNERS = frozenset(
    """pytest py.test tox nox unittest nose2 behave robot coverage jest vitest mocha ava jasmine karma cypress
    playwright tap tape c8 nyc phpunit pest rspec minitest cucumber ctest bats shellcheck shfmt prove busted kaocha
    xcodebuild swift gotestsum golangci-lint staticcheck ruff mypy pyright pylint flake8 black isort bandit lint-imports
    pre-commit eslint prettier tsc biome stylelint markdownlint vale yamllint hadolint actionlint rubocop sorbet
    phpstan psalm clang-tidy clang-format cppcheck checkstyle ktlint detekt credo dialyzer promtool terraform tofu
    tflint conftest opa helm kubeconform semgrep gitleaks trivy raymond""".split()
)
BUILD_TOOLS = frozenset(
    """make gmake cmake ninja meson bazel bazelisk buck buck2 pants just task rake gradle gradlew mvn mvnw ant sbt lein
    clojure cargo rustc go gofmt gcc g++ cc c++ clang clang++ zig dotnet msbuild npm npx pnpm pnpx yarn bun bunx
    corepack turbo nx lerna gulp grunt vite webpack rollup esbuild composer bundle bundler gem mix rebar3 stack cabal
    dune opam nimble crystal shards poetry pdm hatch uv uvx pipenv pip pipx invoke doit scons
    waf docker podman docker-compose nix nix-build nix-shell flutter dart elm spago R Rscript julia latexmk tectonic
    mkdocs sphinx-build hugo jekyll git hg jj mise asdf""".split()
)
BUILT_INS = frozenset(
    """: . [ [[ alias cd command declare echo eval exec exit export false getopts hash let local popd printf pushd pwd
    read readonly return set shift shopt source test times trap true type typeset ulimit umask unset wait break
    continue""".split()
)
READERS = frozenset(
    """awk gawk mawk sed grep egrep fgrep rg cat tac head tail wc sort uniq cut tr diff cmp comm join paste column
    find fd ls stat file du df basename dirname realpath readlink date env id uname hostname whoami nproc sleep seq yes
    tee touch mkdir mktemp cp mv ln rm rmdir chmod sha256sum sha1sum md5sum b2sum cksum base64 xxd od hexdump strings dd
    objdump jq yq xmllint tidy tar gzip gunzip zcat unzip zip xz which expr bc ps pgrep lsof nc ss timeout nice nohup
    xargs parallel""".split()
)
_PASSES_ON = frozenset("tee cat tail head less more".split())
"""Programs that succeed whatever they are given."""
ALLOWED = TEST_RUNNERS | BUILD_TOOLS | BUILT_INS | READERS | SHELLS | INTERPRETERS | frozenset(WRAPPERS)
"""Programs that a gate is known to use."""


def judge(line: str) -> list[Judgement]:
    """What is wrong with a line that a shell would run, each thing once; empty when nothing is."""
    return list(dict.fromkeys(_lines(shell_line.read(line), 0)))


def commands(pipelines: Sequence[Pipeline], depth: int = 0) -> Iterator[list[str]]:
    """Every command that is run, as it is written and as it is run: without `env`, without the folder of its program.

    Those that a shell is given as text are read as well.
    """
    for command in (one for pipeline in pipelines for one in pipeline):
        yield from commands(command.inner, depth)
        if not command.words:
            continue
        words = _unwrapped(command.words)
        yield command.words
        yield words
        yield [_name(words[0]), *words[1:]]
        if depth < _DEEPEST:
            for text in _texts(words, command.fed):
                yield from commands(shell_line.read(text), depth + 1)
            yield from commands([[Command(found, [], [], [])] for found in _found(words)], depth + 1)


def masks(line: str) -> str:
    """What hides that a command of a line has failed: the end of a pipe, or `|| true`; empty for none."""
    if found := re.search(r"\|\|\s*(true|:|exit 0)\s*;?\s*\Z", line):
        return f"|| {found[1]}"
    last = next(reversed(shell_line.read(line)), [])
    words = _unwrapped(last[-1].words) if len(last) > 1 else []
    name = _name(words[0]) if words else ""
    return f"| {name}" if name in _PASSES_ON and "pipefail" not in line else ""


def _lines(pipelines: Sequence[Pipeline], depth: int) -> Iterator[Judgement]:
    downloads = False
    for pipeline in pipelines:
        fed = False
        for command in pipeline:
            yield from _command(command, depth, is_fed=fed)
            loads = _downloads([[command]])
            downloads = downloads or loads
            fed = fed or loads or (command.closes and downloads)


def _command(command: Command, depth: int, *, is_fed: bool) -> Iterator[Judgement]:
    """`is_fed`: what it reads was downloaded."""
    yield from _lines(command.inner, depth)
    for path in command.writes:
        if re.fullmatch(DEVICE, path):
            yield Judgement("unsafe", f"writes to the device `{_short(path)}`")
    words = _unwrapped(command.words)
    if not words:
        return
    name = _name(words[0])
    loads = _downloads(command.inner)
    if (is_fed and _obeys_input(name, words[1:])) or (loads and _obeys(name, words[1:])):
        yield Judgement("unsafe", "runs what it downloads")
    if depth < _DEEPEST:
        for text in _texts(words, command.fed):
            yield from _lines(shell_line.read(text), depth + 1)
    for found in _found(words):
        yield from _lines([[Command(found, [], [], [])]], depth)
    yield from _judged(name, words)


def _judged(name: str, words: Sequence[str]) -> Iterator[Judgement]:
    for rule in RULES:
        if re.fullmatch(rule.program, name) and (what := _holds(rule, words[1:], _VALUES.get(name, ()))):
            yield Judgement(rule.kind, what)
            return
    if not _is_known(words[0]):
        yield Judgement("unknown", _short(words[0]))


def _is_known(program: str) -> bool:
    """Whether it is a program that gates use, or a file of the project."""
    if "/" in program and not program.startswith(("/", "~", "$")):
        return True
    return _name(program) in ALLOWED or _unversioned(_name(program)) in ALLOWED


def _holds(rule: Rule, arguments: Sequence[str], valued: Sequence[str]) -> str:
    """What the arguments of a program would do according to a rule; empty when it does not hold."""
    options, operands = _sorted(arguments, valued)
    if rule.sub:
        if operands[:1] != [rule.sub]:
            return ""
        operands = operands[1:]
    if (rule.short or rule.long) and not any(_is_option(one, rule.short, rule.long) for one in options):
        return ""
    if any(_is_option(one, rule.unless_short, rule.unless_long) for one in options):
        return ""
    if not rule.operand:
        return rule.what
    counted = operands[-1:] if rule.last else operands
    operand = next((one for one in counted if re.fullmatch(rule.operand, _normal(one) if rule.path else one)), "")
    return rule.what.format(operand=_short(operand)) if operand else ""


def _sorted(arguments: Sequence[str], valued: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options among arguments, and the others."""
    options, operands = list[str](), list[str]()
    rest = iter(arguments)
    for one in rest:
        if one == "--":
            operands += rest
        elif one.startswith("-") and one != "-":
            options.append(one)
            if one in valued:
                next(rest, "")
        else:
            operands.append(one)
    return options, operands


def _is_option(one: str, short: str, long: Sequence[str]) -> bool:
    """Whether it is one of these; a long one may be cut short, and `--force-with-lease` forces too."""
    if one in long:
        return True
    if one.startswith("--"):
        name = one.partition("=")[0]
        return any((len(name) > 2 and full.startswith(name)) or name.startswith(f"{full}-") for full in long)
    return any(letter in one[1:] for letter in short)


def _unwrapped(words: list[str]) -> list[str]:
    """The command that is really run: without `sudo`, `env X=1`, `timeout 5m`."""
    while words and (wrapper := WRAPPERS.get(_name(words[0]))):
        valued, before = wrapper
        rest = _after_options(words[1:], valued.split())
        if len(rest) <= before:
            return words
        words = rest[before:]
        while words and re.match(r"[A-Za-z_]\w*=", words[0]):
            words = words[1:]
    return words


def _after_options(words: list[str], valued: Sequence[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at].startswith("-") or re.match(r"[A-Za-z_]\w*=", words[at])):
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in valued else 1
    return words[at:]


def _texts(words: Sequence[str], fed: Sequence[str]) -> Iterator[str]:
    """The lines that a command gives to a shell: `sh -c LINE`, `eval LINE`, `trap LINE EXIT`, a here-document."""
    name, arguments = _name(words[0]), words[1:]
    if " " in words[0]:  # env -S LINE
        yield words[0]
    elif name == "eval":
        yield " ".join(arguments)
    elif name == "trap":
        yield from arguments[:1]
    elif name in SHELLS:
        yield from fed
        at = next((at for at, one in enumerate(arguments) if re.fullmatch(r"-[a-zA-Z]*c|--command", one)), len(words))
        yield from [text for text in arguments[at + 1 :] if not text.startswith("-")][:1]


def _found(words: Sequence[str]) -> Iterator[list[str]]:
    """What `find -exec` runs, with the places it looks in for what it finds."""
    if _name(words[0]) != "find":
        return
    places = words[1 : next((at for at, one in enumerate(words) if at and one.startswith("-")), len(words))]
    for at, one in enumerate(words):
        if one in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = list(words[at + 1 :])
            end = next((index for index, word in enumerate(rest) if word in (";", "+")), len(rest))
            yield [part for word in rest[:end] for part in (places if word == "{}" else [word])]


def _downloads(pipelines: Sequence[Pipeline]) -> bool:
    return any(
        (command.words and _name((_unwrapped(command.words) or [""])[0]) in DOWNLOADS) or _downloads(command.inner)
        for pipeline in pipelines
        for command in pipeline
    )


def _obeys_input(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program runs what it reads."""
    if name in SHELLS:
        operands = [one for one in arguments if not one.startswith("-") and one not in ("/dev/stdin", "/dev/fd/0")]
        return any(re.fullmatch(r"-[a-z]*s", one) for one in arguments) or not operands
    first = arguments[0] if arguments else "-"
    return _is_interpreter(name) and (first == "-" or re.fullmatch(r"-[^cemrp]", first) is not None)


def _obeys(name: str, arguments: Sequence[str]) -> bool:
    """Whether a program runs what is substituted in its arguments: `sh -c "$(...)"`, `. <(...)`."""
    if name in ("eval", "source", "."):
        return True
    is_program = name in SHELLS or _is_interpreter(name)
    return is_program and any(one in ("<(...)", "$(...)") for one in arguments)


def _is_interpreter(name: str) -> bool:
    return _unversioned(name) in INTERPRETERS


def _normal(path: str) -> str:
    """A path without what does not count: double slashes, `.`, `x/..`, and patterns for all that is in it."""
    path = re.sub(r"\$\{HOME\b[^}]*\}", "$HOME", path)
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("..", "~", "$HOME"):
            parts.pop()
        elif part not in ("", ".") and not (part == ".." and path.startswith("/")):
            parts.append(part)
    while parts and parts[-1] != ".." and re.fullmatch(r"[*.?!^\[\]]+", parts[-1]):
        parts.pop()
    return f"{'/' if path.startswith('/') else ''}{'/'.join(parts)}"


def _unversioned(name: str) -> str:
    """`python3.12` -> `python`."""
    return re.sub(r"[\d.]+$", "", name)


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
