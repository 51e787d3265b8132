"""`.ci/run`: a test that fails once and passes by itself is named, and does not refuse the change."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
SUITES = ("test", "check", "test-slow", "e2e", "demo", "torture", "crashpoints")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real `.ci/run`, whose suites all run the tests of one file."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(TOP / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "pytest.ini").write_text("[pytest]\ncache_dir = .cache/pytest\n")
    (tmp_path / "Makefile").write_text(
        f"test:\n\t@PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q test_it.py\n{' '.join(SUITES[1:])}:\n\t@true\n"
    )
    for name in ("strace", "tmux", "zsh", "fish", "jq", "curl"):  # nothing is installed for this
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def run(project: Path) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env["PATH"] = f"{project / 'bin'}:{env['PATH']}"
    return subprocess.run(["bash", ".ci/run"], cwd=project, env=env, capture_output=True, text=True, check=False)


def test_a_test_that_passes_the_second_time_is_named_in_the_last_line(project: Path) -> None:
    (project / "test_it.py").write_text(
        "import pathlib\n"
        "def test_good(): pass\n"
        "def test_once():\n"
        "    seen = pathlib.Path('seen').exists()\n"
        "    pathlib.Path('seen').touch()\n"
        "    assert seen\n"
    )
    done = run(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "flaky: test_it.py::test_once"
    assert "1 passed, 1 deselected" in done.stdout


def test_a_test_that_fails_twice_refuses_the_change(project: Path) -> None:
    (project / "test_it.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    done = run(project)
    assert done.returncode == 1
    assert "flaky" not in done.stdout


def test_a_suite_that_fails_without_a_failed_test_refuses_the_change(project: Path) -> None:
    (project / "test_it.py").write_text("def test_good(): pass\n")
    (project / "Makefile").write_text(f"{' '.join(SUITES)}:\n\t@false\n")
    assert run(project).returncode == 1


@pytest.mark.slow
def test_green_suites_name_nothing(project: Path) -> None:
    (project / "test_it.py").write_text("def test_good(): pass\n")
    done = run(project)
    assert done.returncode == 0
    assert "flaky" not in done.stdout
