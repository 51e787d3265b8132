"""An environment as a user has it: a source tree and what it requires, nothing that only its development needs.

What lies beside a library changes what it imports: `typing_extensions` alone makes every command 10 ms slower.
"""

import re
import sysconfig
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

PROJECT = "raymond-orchestrator"
_COMMAND = "from raymond.__main__ import main\nmain()\n"
_MARK = "source.pth"


def make(place: Path, source: Path) -> Path:
    """Make an environment in which `raymond` runs a source tree; its Python."""
    venv.create(place, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    (packages / _MARK).write_text(f"{source / 'src'}\n")
    for name in {PROJECT, *_required(PROJECT)}:
        found = distribution(name)
        for part in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not part.endswith(".pth"):  # that of the project leads to the tree it was installed from
                (packages / part).symlink_to(str(found.locate_file(part)))
    python = place / "bin" / "python"
    command = place / "bin" / "raymond"
    command.write_text(f"#!{python}\n{_COMMAND}")
    command.chmod(0o755)
    return python


def is_bare() -> bool:
    """Whether this process runs in such an environment."""
    return Path(sysconfig.get_path("purelib"), _MARK).exists()


def _required(name: str) -> Iterator[str]:
    """The distributions that one requires here, with theirs; those of extras are left out."""
    for line in distribution(name).requires or ():
        requirement, _, condition = line.partition(";")
        if "extra" in condition:
            continue
        found = re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
        if _is_here(found):
            yield found
            yield from _required(found)


def _is_here(name: str) -> bool:
    return any(Distribution.discover(name=name))
