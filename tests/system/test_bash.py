"""What bash says about scripts, without running them."""

from pathlib import Path

from raymond.system import bash


def test_every_script_is_read_by_itself_and_none_is_run(tmp_path: Path) -> None:
    scripts = {
        "good.sh": f"echo x > {tmp_path}/ran\n",
        "if.sh": "if true; then\n  echo x\n",
        "here.sh": "echo a\ncat <<EOF\nfi\n",
        "quote.sh": "echo 'x\n",
        "late.sh": "exit 0\nfi\n",
    }
    said = {name: list(bash.places(text)) for name, text in bash.verdicts(scripts).items()}
    assert said.pop("good.sh") == []
    assert {name: [line for line, _ in found] for name, found in said.items()} == {
        "if.sh": [3],
        "here.sh": [2],
        "quote.sh": [1],
        "late.sh": [2],
    }
    assert said["late.sh"] == [(2, "syntax error near unexpected token `fi'")]
    assert not list(tmp_path.iterdir())


def test_a_script_for_another_shell_is_left_alone() -> None:
    assert [bash.is_for_bash(text) for text in ("#!/bin/zsh\n", "#!/usr/bin/env bash\n", "#!/bin/sh -e\n", "echo")] == [
        False,
        True,
        True,
        True,
    ]
