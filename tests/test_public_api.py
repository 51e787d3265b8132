"""What other programs may rely on: the public names, that they are documented, and what importing them costs."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import raymond

DOCS = Path(__file__).resolve().parent.parent / "docs"
STUB = Path(raymond.__file__).with_name("__init__.pyi")
PUBLIC = ("raymond", "raymond.backends", "raymond.testing")


def code(page: str) -> list[ast.Module]:
    """The Python of a page."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    return [ast.parse(block) for block in blocks]


def imported(page: str) -> set[str]:
    """The modules of Raymond that the Python of a page imports from."""
    nodes = [node for tree in code(page) for node in ast.walk(tree)]
    found = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name for name in found if name.partition(".")[0] == "raymond"}


def test_the_public_names_are_these() -> None:
    assert raymond.__all__ == [
        *("__version__", "load", "check", "start", "resume", "find", "runs", "events", "Options", "RunHandle"),
        *("Question", "Review", "Workflow", "Run", "Decision", "Event", "Diagnostic", "Error"),
    ]


def test_type_checkers_are_told_the_same_names() -> None:
    tree = ast.parse(STUB.read_text("utf-8"))
    assigned = next(node for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(assigned.value) == raymond.__all__
    names = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    homes = {
        alias.asname or alias.name: f"{node.module}:{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert len(names) == len(homes)
    places = {name: f"raymond.{place}" for name, place in vars(raymond)["_PLACES"].items()}
    assert homes == {**places, "events": "raymond:events"}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'raymond' has no attribute 'nonsense'"):
        raymond.nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_documented(module: str) -> None:
    pages = (DOCS / "python.md").read_text("utf-8") + (DOCS / "backends.md").read_text("utf-8")
    names = importlib.import_module(module).__all__
    assert [name for name in names if not re.search(rf"\b{name}\b", pages)] == []


@pytest.mark.parametrize("program", ["import raymond", "import raymond; raymond.__version__; dir(raymond)"])
def test_importing_the_package_imports_nothing_else(program: str) -> None:
    told = f"import sys; before = set(sys.modules); {program}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["raymond"]


def test_the_page_for_backends_needs_public_names_only() -> None:
    assert imported("backends.md") == {"raymond.backends", "raymond.testing"}


def test_the_page_for_python_needs_public_names_only() -> None:
    assert imported("python.md") == {"raymond", "raymond.events"}
    used = {
        node.attr
        for tree in code("python.md")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "raymond"
    }
    assert used <= set(raymond.__all__)


def test_every_event_is_public() -> None:
    assert {one.__name__ for one in get_args(raymond.Event)} == set(raymond.events.__all__)
