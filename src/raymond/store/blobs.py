"""Long texts, kept outside the journal in files named for their hash."""

import os
from typing import Any

from raymond.store.project import Project
from raymond.system import files

LONG = 16 << 10
_MARK = "\0blob:"


def put_aside(project: Project, value: Any, run: str = "") -> Any:
    """`value` with every long text moved to a file of its own."""
    match value:
        case str():
            return _keep(project, value, run) if len(value) > LONG or value.startswith("\0") else value
        case dict():
            return {key: put_aside(project, item, run) for key, item in value.items()}
        case list() | tuple():
            return [put_aside(project, item, run) for item in value]
        case _:
            return value


def _keep(project: Project, text: str, run: str) -> str:
    import hashlib

    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    path = os.path.join(project.folder("blobs"), digest)
    if not os.path.exists(path):
        files.replace(path, data, durable=True, run=run)
    return _MARK + digest


def put_back(project: Project, value: Any) -> Any:
    """`value` with every long text read back."""
    match value:
        case str() if value.startswith(_MARK):
            blob = project.path("blobs", value.removeprefix(_MARK))
            return files.read(blob).decode("utf-8", "surrogatepass")
        case dict():
            return {key: put_back(project, item) for key, item in value.items()}
        case list():
            return [put_back(project, item) for item in value]
        case _:
            return value
