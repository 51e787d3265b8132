"""The texts that flags and arguments give or name."""

from raymond.control import exposure
from raymond.errors import UsageError


def text(given: str, what: str) -> str:
    """The text itself, that of a file with @FILE, or stdin with -; `what` names it in errors."""
    if given == "-":
        import sys

        try:
            return exposure.check(sys.stdin.buffer.read().decode(), what)
        except UnicodeDecodeError as error:
            raise UsageError(f"stdin is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from None
    if given == "@":
        raise UsageError("@ does not name a file", hint="--input @FILE")
    return exposure.check(read(given[1:]) if given.startswith("@") else given, what)


def read(path: str) -> str:
    """The text in a file that a flag names."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        why = (error.strerror or "").lower()
        raise UsageError(f"`{path}` cannot be read: {why}", hint="paths are relative to this directory") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"`{path}` is not UTF-8 (byte {error.start})", hint="save it as UTF-8") from None


def variable(given: str) -> tuple[str, str]:
    """The name and the value of `--var K=V`."""
    key, equals, value = given.partition("=")
    if not equals or not key.isidentifier():
        raise UsageError(f"`{given}` is not a variable", hint="--var name=value")
    return key, exposure.check(value, f"--var {key}")


def overrides(given: tuple[str, ...] | list[str]) -> dict[str, dict[str, object]]:
    """`STATE.KEY=VALUE` -> {STATE: {KEY: VALUE}}; the value is YAML."""
    found: dict[str, dict[str, object]] = {}
    for one in given:
        left, equals, value = exposure.check(one, "--set").partition("=")
        state, dot, key = left.rpartition(".")
        if equals and not state:
            raise UsageError(f"`{one}` does not name a state", hint="--set REVIEW.md.max_visits=5")
        if not equals or not dot:
            raise UsageError(f"`{one}` sets nothing", hint="--set REVIEW.md.max_visits=5")
        from raymond.language import frontmatter

        document = frontmatter.load(f"{key}: {value}", file="--set")
        if document.diagnostics or key not in document.values:
            raise UsageError(f"`{value}` cannot be read as a value of {key}", hint="--set REVIEW.md.max_visits=5")
        found.setdefault(state, {})[key] = document.values[key]
    return found
