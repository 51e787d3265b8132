"""Hooks that run what an agent may edit: they change no document of the loop."""

import json
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commit-msg", pytest.param("post-commit", marks=pytest.mark.slow)])
def test_a_hook_changes_no_document_of_the_loop(tmp_path: Path, name: str) -> None:
    files = {SPEC: TEXT, "docs/prd-status.json": STATUS, "lint.sh": ":\n"}
    night = Night(tmp_path, **{path.replace("/", "__"): text for path, text in files.items()})
    (tmp_path / "lint.sh").write_text(LINT, "utf-8")
    hook = night.path / ".git/hooks" / name
    hook.write_text("#!/bin/sh\nsh lint.sh\n", "utf-8")
    hook.chmod(0o755)
    night.agent("cp ../lint.sh .; echo 42 > answer.txt; echo ITERATION_COMPLETE")
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
