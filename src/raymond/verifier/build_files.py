"""Build files of Maven, .NET, Gradle, Mix, CMake and Meson: what in them decides a check.

A dependency, a version or a source file may come and go. Of the files that are programs themselves, everything else
counts; of the lists of sources, only what is said about tests.
"""

import re
from collections.abc import Callable
from typing import Any

_FREE_OF_MAVEN = frozenset(
    {"modelVersion", "groupId", "artifactId", "version", "packaging", "parent", "modules", "name", "description", "url"}
    | {
        "dependencies",
        "dependencyManagement",
        "repositories",
        "distributionManagement",
        "licenses",
        "developers",
        "scm",
    }
)
_ITEMS = "ItemGroup"
_LESS = frozenset({"Remove", "Exclude"})
"""Attributes of .NET that leave files out."""
_GRADLE_BLOCK = re.compile(r"^[ \t]*dependencies[ \t]*\{", re.MULTILINE)
_GRADLE_LINE = re.compile(r"^[ \t]*(?:group|version|description)\b[ \t]*=?[ \t]*[\"'].*$", re.MULTILINE)
_MIX_DEPENDENCIES = re.compile(r"^(?P<in>[ \t]*)defp?[ \t]+deps\b[^\n]*\bdo[ \t]*\n.*?^(?P=in)end[ \t]*$", re.M | re.S)
_MIX_LINE = re.compile(r"^[ \t]*(?:@?version|description)\b:?[ \t]*\"[^\"\n]*\",?[ \t]*$", re.MULTILINE)
_CMAKE = re.compile(
    r"\b(?:add_test|enable_testing|gtest_\w+|catch_\w+|doctest_\w+|set_tests_properties|include\s*\(\s*CTest)\b[^)]*",
    re.IGNORECASE,
)
_MESON = re.compile(r"\b(?:test|benchmark|add_test_setup)\s*\([^)]*\)")


def _maven(text: str) -> Any:
    return [_flat(one) for one in _xml(text) if _tag(one) not in _FREE_OF_MAVEN]


def _dotnet(text: str) -> Any:
    found = []
    for one in _xml(text):
        if _tag(one) != _ITEMS:
            found.append(_flat(one))
        else:
            found += [_flat(item) for item in one if _LESS & item.attrib.keys()]
    return found


def _xml(text: str) -> Any:
    from xml.etree import ElementTree  # only where there is such a file

    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _flat(element: Any) -> Any:
    """An element without its comments and spaces."""
    return [_tag(element), dict(element.attrib), (element.text or "").strip(), [_flat(one) for one in element]]


def _gradle(text: str) -> Any:
    while block := _GRADLE_BLOCK.search(text):
        text = text[: block.start()] + text[_closing(text, block.end()) :]
    return _GRADLE_LINE.sub("", text).split()


def _closing(text: str, at: int) -> int:
    """Where the block ends that was opened just before `at`."""
    depth = 1
    for sign in re.finditer(r"[{}]", text[at:]):
        depth += 1 if sign[0] == "{" else -1
        if not depth:
            return at + sign.end()
    raise ValueError("a block is not closed")


def _mix(text: str) -> Any:
    return _MIX_LINE.sub("", _MIX_DEPENDENCIES.sub("", text)).split()


def _cmake(text: str) -> Any:
    return [one.split() for one in _CMAKE.findall(text)]


def _meson(text: str) -> Any:
    return [one.split() for one in _MESON.findall(text)]


READERS: dict[str, Callable[[str], Any]] = {
    "pom.xml": _maven,
    "build.gradle": _gradle,
    "build.gradle.kts": _gradle,
    "mix.exs": _mix,
    "CMakeLists.txt": _cmake,
    "meson.build": _meson,
    ".csproj": _dotnet,
    ".fsproj": _dotnet,
    ".vbproj": _dotnet,
}
"""The name of a file, or how it ends -> what decides a check in its text."""
