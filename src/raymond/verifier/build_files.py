"""Build files of Maven, .NET, Gradle, Mix, CMake and Meson: what in them decides a check.

A dependency, a version or a source file may come and go; everything else counts. Every pattern here looks at a text
once: an agent can write what it likes.
"""

import re
from collections.abc import Callable
from typing import Any

from raymond.patterns import regex

_FREE_OF_MAVEN = frozenset(
    {"modelVersion", "groupId", "artifactId", "version", "name", "description", "url", "inceptionYear", "organization"}
    | {"dependencies", "dependencyManagement", "repositories", "licenses", "developers", "contributors", "scm"}
)
_ITEMS = "ItemGroup"
_FREE_ITEMS = frozenset({"PackageReference", "ProjectReference", "Compile", "Content", "None", "EmbeddedResource"})
_FREE_ATTRIBUTES = frozenset({"Include", "Version", "PrivateAssets", "IncludeAssets"})
_GRADLE = regex(
    r"^[ \t]*(?:(?:\w+(?:Implementation|Api|Only|Processor)|implementation|api|kapt|ksp|classpath)[ \t]*[( ][^;{}\n]*"
    r"|(?:group|version|description)\b[ \t]*=?[ \t]*[\"'][^\"'\n]*[\"'])[ \t]*$",
    re.MULTILINE,
)
"""A line that is a dependency, or a name."""
_MIX = regex(r"^[ \t]*(?:\[?\{:\w+,[^\n]*\}[\],]{0,2}|@?version:? \"[^\"\n]*\",?)[ \t]*$", re.MULTILINE)
_CMAKE = regex(
    r"\b(?:add_executable|add_library|target_sources|target_link_libraries|target_include_directories|find_package"
    r"|cmake_minimum_required|project)[ \t]*\(([^()]*)\)",
    re.IGNORECASE,
)
_MESON = regex(r"\b(?:executable|library|static_library|shared_library|dependency|files|project)[ \t]*\(([^()]*)\)")
_COMMENT = regex(r"#[^\n]*")
_TESTS = regex(r"test|spec|check|verify", re.IGNORECASE)
"""In the names of sources that are built to check others."""


def _maven(text: str) -> Any:
    return [_flat(one) for one in _xml(text) if _tag(one) not in _FREE_OF_MAVEN]


def _dotnet(text: str) -> Any:
    found = []
    for one in _xml(text):
        if _tag(one) != _ITEMS or one.attrib:
            found.append(_flat(one))
        else:
            found += [_flat(item) for item in one if not _is_free(item)]
    return found


def _is_free(item: Any) -> bool:
    return _tag(item) in _FREE_ITEMS and item.attrib.keys() <= _FREE_ATTRIBUTES


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
    return _GRADLE.sub("", text).split()


def _mix(text: str) -> Any:
    return _MIX.sub("", text).split()


def _cmake(text: str) -> Any:
    return _CMAKE.sub(_without_sources, _COMMENT.sub("", text)).split()


def _meson(text: str) -> Any:
    return _MESON.sub(_without_sources, _COMMENT.sub("", text)).split()


def _without_sources(call: "re.Match[str]") -> str:
    """The words of a call that are about tests."""
    return " ".join(word for word in call[1].split() if _TESTS.search(word))


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
