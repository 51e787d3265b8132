"""What bash said about a script is told at every start, and asked for once."""

from pathlib import Path

import pytest

from raymond.store import program_cache
from raymond.store.home import VARIABLE
from raymond.system import processes

SCRIPTS = {"good.sh": "echo x\n", "bad.sh": "while true; do\n"}


def test_a_verdict_is_told_again_without_asking_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(0o700)
    monkeypatch.setenv(VARIABLE, str(home))
    said = program_cache.complaints(SCRIPTS)
    assert [*said] == ["bad.sh"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("PATH", str(tmp_path))
        processes.program.cache_clear()
        assert program_cache.complaints(SCRIPTS) == said, "there is no bash to ask"
        assert program_cache.complaints({"bad.sh": "while false; do\n"}) == {}
    processes.program.cache_clear()
    assert [*program_cache.complaints({"bad.sh": "while false; do\n"})] == ["bad.sh"], "silence is no verdict"
    (home / program_cache.VERDICTS_FILE).write_text("torn")
    assert program_cache.complaints(SCRIPTS) == said
