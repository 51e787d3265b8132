"""Packages in a check: the person's, or what Raymond installed itself because the work names other dependencies."""

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.machine.events import GateEnded
from raymond.verifier import dependencies
from running import Ran, Room
from verifier.projects import isolated

INSTALL = (
    'for name in $(cat requirements.txt); do mkdir -p "env/lib/$name"; done; echo installed $(cat requirements.txt)'
)
FILES = {
    ".gitignore": "env/\n",
    "requirements.txt": "one\n",
    "needs": "one\n",
    "install.sh": f"{INSTALL}\n",
    "flow/workflow.yaml": "setup: sh install.sh\n",
}
GATE = "for name in $(cat needs); do test -d env/lib/$name || exit 1; done"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Room]:
    with isolated(tmp_path, {**FILES, "env/pyvenv.cfg": "", "env/lib/one/x": ""}) as room:
        yield room


def work(room: Room, *scripts: str, way: str = "isolated", setup: str = "sh install.sh", id: str = "r") -> Ran:
    """Let agents do one thing after the other, each checked."""
    flow = {"workflow.yaml": f"setup: {json.dumps(setup)}\n" if setup else "name: x\n"}
    replies = []
    for number, script in enumerate(scripts):
        name, after = "START" if number == 0 else f"S{number}", f"S{number + 1}" if number + 1 < len(scripts) else ""
        flow[f"{name}.sh"] = f"{script}\necho '<goto>W{number}</goto>'\n"
        then = f"<goto>{after}</goto>" if after else "<result>x</result>"
        head = f"---\ngate: {json.dumps(GATE)}\ngate_tries: 0\ngate_reruns: 0\n---\n"
        flow[f"W{number}.md"] = f"{head}Done? {then}\n"
        replies.append(f"W{number}: {then}\n")
    return room.command({**flow, "replies.yaml": "".join(replies)}, "--workspace", way, id=id)


ADD = "echo two >> requirements.txt; echo two >> needs"


@pytest.mark.parametrize("way", mostly_slow(["isolated", "copy"]))
def test_a_new_dependency_is_installed_by_raymond(project: Room, way: str) -> None:
    ran = work(project, ADD, "echo more > code", way=way)
    assert [one.verdict for one in ran.all(GateEnded)] == ["passed", "passed"], ran.err
    assert ran.err.count("main $ sh install.sh to install what the work depends on") == 1
    assert not (project.path / "env/lib/two").exists()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["isolated", "copy"])
def test_nothing_is_installed_for_other_work(project: Room, way: str) -> None:
    ran = work(project, "echo more > code; echo one > needs", way=way)
    assert [one.verdict for one in ran.all(GateEnded)] == ["passed"]
    assert "install.sh" not in ran.err


@pytest.mark.slow
def test_nothing_that_an_agent_wrote_takes_part_in_an_installation(project: Room) -> None:
    ran = work(project, f"{ADD}; echo three >> needs; echo 'mkdir -p env/lib/two env/lib/three' > install.sh")
    assert [one.verdict for one in ran.all(GateEnded)] == ["failed"]


@pytest.mark.slow
def test_what_an_agent_installed_is_not_in_its_check(project: Room) -> None:
    ran = work(project, "echo two >> needs; mkdir -p env/lib/two")
    assert [one.verdict for one in ran.all(GateEnded)] == ["failed"]


@pytest.mark.slow
def test_without_a_command_a_new_dependency_is_named(project: Room) -> None:
    ran = work(project, ADD, setup="")
    assert [one.verdict for one in ran.all(GateEnded)] == ["failed"]
    assert "; requirements.txt names other dependencies, and nobody said how to install them" in ran.err


@pytest.mark.slow
def test_an_installation_that_fails_is_told(project: Room) -> None:
    ran = work(project, ADD, setup="echo no such package; exit 4")
    [gate] = ran.all(GateEnded)
    reason = "requirements.txt: `echo no such package; exit 4` ended with exit code 4"
    assert (gate.verdict, gate.reason, gate.output) == ("failed", reason, "no such package")


@pytest.mark.slow
def test_a_package_that_leads_into_the_work_is_not_used(project: Room) -> None:
    ran = work(project, f"mkdir fake; {ADD}", setup="ln -s ../../fake env/lib/two")
    [gate] = ran.all(GateEnded)
    assert gate.verdict == "failed"
    assert gate.reason.endswith("links env/lib/two to ../../fake, which the work could change")


@pytest.mark.slow
def test_a_package_that_goes_is_gone_in_the_check(project: Room) -> None:
    ran = work(project, "echo > requirements.txt", setup="rm -r env/lib/one", id="gone")
    assert [one.verdict for one in ran.all(GateEnded)] == ["failed"]
    assert (project.path / "env/lib/one").exists()


def wheel(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "x = 1\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


@pytest.mark.slow
def test_pip_installs_what_the_work_names(tmp_path: Path) -> None:
    files = {"requirements.txt": "--no-index\n-f wheels\none_package\n", ".gitignore": ".venv/\n"}
    with isolated(tmp_path, files) as room:
        _pip_installs_what_the_work_names(room)


def _pip_installs_what_the_work_names(room: Room) -> None:
    for name in ("one_package", "two_package"):
        wheel(room.path / "wheels", name)
    subprocess.run(["python3", "-m", "venv", ".venv"], cwd=room.path, check=True)
    pip = [".venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"]
    subprocess.run(pip, cwd=room.path, check=True)
    check = ".venv/bin/python -c 'import one_package, two_package'"
    flow = {
        "START.sh": "echo two_package >> requirements.txt\necho '<goto>WORK</goto>'\n",
        "WORK.md": f"---\ngate: {json.dumps(check)}\ngate_tries: 0\ngate_reruns: 0\n---\nDone? <result>x</result>\n",
        "replies.yaml": "WORK: <result>ok</result>\n",
    }
    ran = room.command(flow, "--workspace", "isolated")
    assert [one.verdict for one in ran.all(GateEnded)] == ["passed"], ran.err
    assert ran.run.start.setup == ".venv/bin/python -m pip install -r requirements.txt"


OWN = {"name": "x", "scripts": {"test": "jest"}, "dependencies": {"a": "1"}}
OTHER = {"name": "x", "scripts": {"test": "true", "postinstall": "evil"}, "dependencies": {"a": "1", "b": "2"}}


def test_only_what_names_dependencies_is_taken_over() -> None:
    taken = json.loads(dependencies.taken_over("package.json", json.dumps(OWN).encode(), json.dumps(OTHER).encode()))
    assert taken == {**OWN, "dependencies": {"a": "1", "b": "2"}}
    own = b'[project]\nname = "x"\ndependencies = ["a"]\n[project.scripts]\nx = "x:main"\n[tool.setuptools]\npackages = ["x"]\n'
    other = b'[project]\nname = "y"\ndependencies = ["a", "b>=2; python_version > \'3\'"]\n[project.entry-points.pytest11]\nx = "evil"\n'
    import tomllib

    taken = tomllib.loads(dependencies.taken_over("a/pyproject.toml", own, other).decode())
    wanted = tomllib.loads(own.decode())
    wanted["project"]["dependencies"] = ["a", "b>=2; python_version > '3'"]
    assert taken == wanted


def test_what_names_none_is_no_difference() -> None:
    assert dependencies.names_any("sub/package.json")
    assert dependencies.names_any("requirements-dev.txt")
    assert not dependencies.names_any("src/package.py")
    other = {**OWN, "scripts": {}, "version": "2"}
    assert dependencies.named("package.json", json.dumps(OWN).encode()) == dependencies.named(
        "package.json", json.dumps(other).encode()
    )


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"node_modules/.package-lock.json": "{}"}, "npm install --no-audit --no-fund"),
        ({"node_modules/.package-lock.json": "{}", "package-lock.json": "{}"}, "npm ci --no-audit --no-fund"),
        ({"node_modules/.modules.yaml": ""}, "pnpm install --frozen-lockfile"),
        ({"node_modules/x/index.js": ""}, ""),
        ({"web ui/node_modules/.package-lock.json": "{}"}, "(cd 'web ui' && npm install --no-audit --no-fund)"),
        ({".venv/pyvenv.cfg": ""}, ""),
        ({".venv/pyvenv.cfg": "", "requirements.txt": ""}, ""),
        (
            {".venv/pyvenv.cfg": "", "requirements.txt": "", ".venv/lib/python3.11/site-packages/a-1.dist-info/INSTALLER": "uv\n"},
            "uv pip install --python .venv/bin/python -r requirements.txt",
        ),
    ],
)  # fmt: skip
def test_the_command_is_that_of_what_made_the_packages(tmp_path: Path, files: dict[str, str], command: str) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    installed = {path.partition("node_modules")[0] + "node_modules" for path in files if "node_modules" in path}
    installed |= {path.removesuffix("/pyvenv.cfg") for path in files if path.endswith("pyvenv.cfg")}
    assert dependencies.setup(str(tmp_path), installed) == command


def test_a_project_that_is_installed_from_its_own_folder_is_again(tmp_path: Path) -> None:
    info = tmp_path / ".venv/lib/python3.11/site-packages/app-1.dist-info"
    info.mkdir(parents=True)
    (info / "INSTALLER").write_text("pip\n")
    (info / "direct_url.json").write_text(json.dumps({"url": f"file://{tmp_path}", "dir_info": {"editable": True}}))
    (info / "METADATA").write_text(
        'Name: app\nRequires-Dist: a\nRequires-Dist: Py.Test>=8; extra == "test"\nRequires-Dist: z; extra == "docs"\n\nText'
    )
    (info.parent / "py_test-8.dist-info").mkdir()
    assert dependencies.setup(str(tmp_path), [".venv"]) == ".venv/bin/python -m pip install -e '.[test]'"
