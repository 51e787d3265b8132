"""Long texts of a run, kept outside its journal in files named for their hash."""

import os
from typing import Any

from raymond.errors import JournalError
from raymond.machine.agent import LONG_TEXT, Outcome, Whole, long_text_bytes, long_text_name
from raymond.system import files

_MARK = "\0blob:"


class BadBlob(ValueError):
    """A long text that is missing, or not the one that was kept."""


def put_aside(folder: str, value: Any, run: str = "") -> Any:
    """`value` with every long text moved to a file of its own in `folder`."""
    match value:
        case str():
            return _keep(folder, value, run) if len(value) > LONG_TEXT or value.startswith("\0") else value
        case dict():
            return {key: put_aside(folder, item, run) for key, item in value.items()}
        case list() | tuple():
            return [put_aside(folder, item, run) for item in value]
        case _:
            return value


def _keep(folder: str, text: str, run: str) -> str:
    data = long_text_bytes(text)
    digest = long_text_name(data)
    path = f"{folder}/{digest}"
    if not _holds(path, data):
        files.guard(folder, lambda: files.make_private(folder, durable=True), run=run)
        files.replace(path, data, durable=True, run=run)
    return _MARK + digest


def _holds(path: str, data: bytes) -> bool:
    try:
        return os.path.getsize(path) == len(data) and files.contents(path) == data
    except OSError:
        return False


def put_back(folder: str, value: Any) -> Any:
    """`value` with every long text read back; BadBlob when one is not what was kept."""
    match value:
        case str() if value.startswith(_MARK):
            return read(folder, value.removeprefix(_MARK))
        case dict():
            return {key: put_back(folder, item) for key, item in value.items()}
        case list():
            return [put_back(folder, item) for item in value]
        case _:
            return value


def whole(folder: str) -> Whole:
    """Reads the long results of a run whose long texts are in `folder`."""

    def all_of(outcome: Outcome) -> str:
        if not outcome.long:
            return outcome.result
        try:
            return read(folder, outcome.long)
        except BadBlob as bad:
            path = f"{folder}/{outcome.long}"
            hint = "restore that file from a copy, then resume the run"
            raise JournalError(f"the result of {outcome.agent} {bad}", path=path, hint=hint) from None

    return all_of


def read(folder: str, name: str) -> str:
    """The long text of this name; BadBlob when it is not what was kept."""
    if len(name) != 64 or name.strip("0123456789abcdef"):
        raise BadBlob("names a long text that cannot be one of this run")
    try:
        data = files.contents(f"{folder}/{name}")
    except OSError as error:
        raise BadBlob(f"needs {folder}/{name}: {(error.strerror or str(error)).lower()}") from None
    if long_text_name(data) != name:
        raise BadBlob(f"needs {folder}/{name}, which was changed after it was kept")
    return data.decode("utf-8", "surrogatepass")
