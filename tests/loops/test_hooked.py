"""Hooks that run what an agent may edit: they change no document of the loop."""

import json
import signal
from pathlib import Path

import pytest

from looping import Night

SPEC = "docs/implementation/1-core/1.4-answers.md"
TEXT = """### 1.4.1. Write the answer

**Status:** 🔵 Planned
**Verification:** `sh check.sh`

### 1.4.2. Explain it

**Status:** 🔵 Planned
**Verification:** `cat why.txt`
"""
LINT = f"""
sed -i 's/cat why.txt/true/' {SPEC}
printf '\\n### 1.4.9. More\\n\\n**Status:** 🔵 Planned\\n**Verification:** `true`\\n' >> {SPEC}
sed -i 's/false/true/' docs/prd-status.json
echo forged >> docs/progress.md
for log in docs/session_logs/*; do echo forged >> $log; done
"""
STATUS = json.dumps({"stories": [{"id": "US-1", "passes": False}]}, indent=2) + "\n"


def hooked(path: Path, lint: str, name: str, **more: str) -> Night:
    """A night whose hook runs a file that the agent replaces by `lint`."""
    files = {SPEC: TEXT, "docs/prd-status.json": STATUS, "lint.sh": ":\n", **more}
    night = Night(path, **{path.replace("/", "__"): text for path, text in files.items()})
    (path / "lint.sh").write_text(lint, "utf-8")
    hook = night.path / ".git/hooks" / name
    hook.write_text('#!/bin/sh\nsh lint.sh "$@"\n', "utf-8")
    hook.chmod(0o755)
    night.agent("cp ../lint.sh .; echo 42 > answer.txt; echo ITERATION_COMPLETE")
    return night


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commit-msg", pytest.param("post-commit", marks=pytest.mark.slow)])
def test_a_hook_changes_no_document_of_the_loop(tmp_path: Path, name: str) -> None:
    night = hooked(tmp_path, LINT, name)
    done = night.loop("--task", "1.4.1", loop="task-loop")
    assert done.code == 0, done.out
    assert f'"{SPEC}" was changed by the hook {name}, or while it ran, and was put back' in done.out
    commit = night.git("log", "-1", "--format=%H", "--grep=1.4.1")
    for text in (night.git("show", f"{commit}:{SPEC}"), night.text(SPEC)):
        assert "`cat why.txt`" in text
        assert "1.4.9" not in text
        assert text.count("✅ Complete") == 1
    assert night.git("show", f"{commit}:docs/prd-status.json") == STATUS.strip()
    assert night.text("docs/prd-status.json") == STATUS
    assert night.git("grep", "-c", "", commit, "--", "lint.sh"), "what the agent did is committed"
    everywhere = [night.git("show", f"{commit}:docs/progress.md"), night.text("docs/progress.md")]
    everywhere += [night.text(f"docs/session_logs/{one}") for one in night.logs]
    assert not any("forged" in text for text in everywhere)
    assert "1.4.9" in night.git("show", f"refs/raymond/n/1.documents:{SPEC}")
    assert night.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_hook_that_removes_itself_changes_no_document_either(tmp_path: Path) -> None:
    night = hooked(tmp_path, f"{LINT}rm .git/hooks/post-commit\n", "post-commit")
    done = night.loop("--task", "1.4.1", loop="task-loop")
    assert done.code == 0, done.out
    assert f'"{SPEC}" was changed by the hook post-commit, or while it ran, and was put back' in done.out
    assert not (night.path / ".git/hooks/post-commit").exists()
    assert "`cat why.txt`" in night.text(SPEC)
    assert night.text("docs/prd-status.json") == STATUS
    assert night.git("status", "--porcelain") == ""


REWRITES = f"""
sed -i 's/cat why.txt/true/' {SPEC}
file() {{ git rev-parse "$1" | sed 's#^..#.git/objects/&/#'; }}
[ -e ../lost ] || mv "$(file HEAD:{SPEC})" ../lost
cp "$(file HEAD:lint.sh)" "$(file HEAD:{SPEC})"
git update-ref HEAD $(git commit-tree -p HEAD -m "on top" HEAD^{{tree}})
"""


KILLS = f"""
sed -i 's/cat why.txt/true/' {SPEC}
git update-ref HEAD $(git commit-tree -p HEAD -m "on top" HEAD^{{tree}})
above() {{ cut -d " " -f 4 "/proc/$1/stat"; }}
step=$(above $(above $PPID))
kill -9 $(sed -n 's/.*"pid": \\([0-9]*\\).*/\\1/p' docs/.task-loop-state.json) $step
"""


@pytest.mark.slow
def test_a_hook_that_kills_the_loop_and_commits_on_top_changes_no_document_either(tmp_path: Path) -> None:
    night = hooked(tmp_path, KILLS, "post-commit")
    assert night.loop("--task", "1.4.1", loop="task-loop").code == -signal.SIGKILL
    night.room.nothing_runs()
    assert "`true`" in night.text(SPEC)
    done = night.loop("--yes", verb="resume", loop="task-loop")
    assert done.code == 0, done.out + done.err
    assert f'"{SPEC}" was changed by the hook post-commit, or while it ran, and was put back' in done.out
    assert "`cat why.txt`" in night.text(SPEC)
    assert night.subjects == ["start", "feat: write the answer (1.4.1)", "on top", "chore(loop): records"]
