"""Write a bill of materials (CycloneDX 1.6, JSON): Raymond and all it needs at run time, as installed with this Python.

The hashes are those of the pins: one for every file of the release, the one that was installed among them.
"""

import json
import os
import re
import sys
import time
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "raymond-orchestrator"
PINS = Path(__file__).resolve().parent.parent / "requirements.txt"


def main(target: str) -> int:
    try:
        graph = needs(PROJECT)
    except PackageNotFoundError as missing:
        print(f"error: {missing.name} is not installed\nhint: make clean, then make sbom", file=sys.stderr)
        return 1
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(json.dumps(bill(graph), indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0


def needs(project: str) -> dict[str, set[str]]:
    """Every distribution that the project needs on this machine -> what it needs itself."""
    graph: dict[str, set[str]] = {}
    seen: set[str] = set()
    todo = [Requirement(project)]
    while todo:
        asked = todo.pop()
        if str(asked) not in seen:
            seen.add(str(asked))
            wanted = requirements(asked)
            graph.setdefault(canonicalize_name(asked.name), set()).update(canonicalize_name(one.name) for one in wanted)
            todo += wanted
    return graph


def requirements(asked: Requirement) -> list[Requirement]:
    wanted = [Requirement(line) for line in distribution(asked.name).requires or []]
    extras = {"", *asked.extras}
    return [
        one for one in wanted if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def bill(graph: dict[str, set[str]]) -> dict[str, Any]:
    pins = pinned(PINS.read_text("utf-8"))
    installed = {name: distribution(name) for name in sorted(graph)}
    content = {
        "metadata": {
            "timestamp": timestamp(),
            "component": {**component(installed[PROJECT], pins), "type": "application"},
        },
        "components": [component(dist, pins) for name, dist in installed.items() if name != PROJECT],
        "dependencies": [
            {"ref": purl(dist), "dependsOn": [purl(installed[needed]) for needed in sorted(graph[name])]}
            for name, dist in installed.items()
        ],
    }
    # The same content has the same number, so with SOURCE_DATE_EPOCH the file can be made again, byte for byte.
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(content))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": serial.urn, "version": 1, **content}


def timestamp() -> str:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


def component(dist: Distribution, pins: dict[str, list[str]]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl(dist),
        "name": canonicalize_name(dist.name),
        "version": dist.version,
        "purl": purl(dist),
    }
    if found := licences(dist):
        described["licenses"] = found
    if hashes := [{"alg": "SHA-256", "content": content} for content in pins.get(purl(dist), [])]:
        # The package's own name stands for the address: where it is fetched from is the reader's choice.
        described["externalReferences"] = [{"type": "distribution", "url": purl(dist), "hashes": hashes}]
    return described


def purl(dist: Distribution) -> str:
    return f"pkg:pypi/{canonicalize_name(dist.name)}@{dist.version}"


def licences(dist: Distribution) -> list[dict[str, Any]]:
    """As the distribution states it: an SPDX expression, or else a name in one line, or else its classifiers."""
    if expressions := dist.metadata.get_all("License-Expression", []):
        return [{"expression": expressions[0]}]
    names = [name for name in dist.metadata.get_all("License", []) if "\n" not in name]
    classifiers = [line for line in dist.metadata.get_all("Classifier", []) if line.startswith("License :: ")]
    return [{"license": {"name": name}} for name in names or [line.rpartition(" :: ")[2] for line in classifiers]]


def pinned(pins: str) -> dict[str, list[str]]:
    """The purl of every pin -> the hashes of its files."""
    lines = re.findall(r"^([\w.-]+)==(\S+)(.*)$", pins.replace("\\\n", " "), re.MULTILINE)
    return {
        f"pkg:pypi/{canonicalize_name(name)}@{version}": re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
        for name, version, rest in lines
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
