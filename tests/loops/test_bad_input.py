"""What a loop cannot work with: a clear message, a way on, and nothing lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from looping import HONEST, LOG, Night
from running import Room


def test_not_a_repository(tmp_path: Path) -> None:
    done = Room(tmp_path).raymond("continuous-session", "start")
    assert (done.returncode, done.stdout) == (2, "")
    assert "this is not a git repository: a loop commits what it has checked" in done.stderr
    assert "git init" in done.stderr


@pytest.mark.slow
def test_no_docs_no_log_no_identity_no_commit(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.raymond("--version")

    def git(*args: str) -> None:
        subprocess.run(["git", *args], cwd=room.path, env=room.environment, check=True, capture_output=True)

    git("init", "-q", ".")
    said = [room.raymond("continuous-session", "start").stderr]
    (room.path / "docs/session_logs").mkdir(parents=True)
    said.append(room.raymond("continuous-session", "start").stderr)
    (room.path / LOG).write_text("## Next Steps\n- x\n", "utf-8")
    git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x")
    said.append(room.raymond("continuous-session", "start", environment={"GIT_CONFIG_NOSYSTEM": "1"}).stderr)
    assert "there is no folder docs here" in said[0]
    assert "mkdir -p docs/session_logs" in said[0]
    assert "this repository has no commit yet" in said[1]
    assert "git does not know who commits" in said[2]


@pytest.mark.slow
def test_a_hook_that_rejects_is_a_red_check(tmp_path: Path) -> None:
    agent = f"""
    if grep -q 'hook of this project' "$PROMPT"; then echo fine > style.txt; echo ITERATION_COMPLETE
    else {HONEST}; fi
    """
    night = Night(tmp_path, agent=agent)
    hook = night.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n[ -e style.txt ] || { echo 'no style here'; exit 1; }\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop()
    assert ran.code == 0, ran.out
    assert night.git("show", "--stat", "--format=", f"{night.tip}~1").count("style.txt") == 1
    assert any("no style here" in str(one.get("sent", "")) for one in ran.transcript("main_work1"))


@pytest.mark.slow
def test_a_hook_that_changes_files_lets_the_check_run_again(tmp_path: Path) -> None:
    night = Night(tmp_path)
    hook = night.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ngrep -q tidy answer.txt || echo tidy >> answer.txt\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop()
    assert ran.code == 0, ran.out
    assert night.git("show", f"{night.tip}~1:answer.txt") == "42\ntidy"
    assert ran.err.count("Running verification") == 2


@pytest.mark.slow
def test_a_commit_that_cannot_be_signed_waits_for_a_person_and_hangs_nowhere(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({"../sign": "#!/bin/sh\necho 'no pinentry' >&2; exit 2\n"})
    (tmp_path / "sign").chmod(0o755)
    night.git("config", "commit.gpgsign", "true")
    night.git("config", "gpg.program", str(tmp_path / "sign"))
    ran = night.loop()
    assert ran.code == 3, ran.out
    assert "paused: Git or the machine fails: `git commit-tree` failed: error: gpg failed to sign" in ran.out
    assert not night.has("answer.txt")
    assert night.state["status"] == "paused"
    night.git("config", "commit.gpgsign", "false")
    done = night.room.raymond("answer", "n", "continue")
    assert done.returncode == 0, done.stderr
    night.room.raymond("wait", "n")
    assert night.subjects[1] == "feat: write the answer"


@pytest.mark.slow
def test_crlf_logs_stay_as_they_are(tmp_path: Path) -> None:
    night = Night(tmp_path)
    (night.path / LOG).write_bytes(
        b"## Next Steps\r\n\r\n1. [VERIFY: sh check.sh] Write the answer\r\n2. [BLOCKED: x] B\r\n"
    )
    (night.path / "docs/progress.md").write_bytes(b"# Progress\r\n\r\nmine\r\n")
    night.commit("crlf")
    assert night.loop().code == 0
    assert (night.path / LOG).read_bytes().count(b"\r\n") == 4
    shown = ["git", "cat-file", "blob", f"{night.tip}:docs/progress.md"]
    progress = subprocess.run(shown, cwd=night.path, check=True, capture_output=True).stdout
    assert progress.startswith(b"# Progress\r\n\r\nmine\r\n")
    assert progress.count(b"\n") == progress.count(b"\r\n")


@pytest.mark.slow
def test_a_read_only_folder_of_documents(tmp_path: Path) -> None:
    from running import as_anyone

    night = Night(tmp_path)
    without = as_anyone()
    (night.path / "docs").chmod(0o555)
    try:
        done = subprocess.run(
            [*without, sys.executable, "-m", "raymond", "continuous-session", "start"],
            cwd=night.path,
            env=night.room.environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        (night.path / "docs").chmod(0o755)
    assert done.returncode == 2
    assert "the folder docs cannot be written" in done.stderr


@pytest.mark.slow
def test_a_document_that_grows_during_the_loop_is_never_cut_off(tmp_path: Path) -> None:
    second = "if grep -q '^# Second' $PROMPT; then truncate -s 70M docs/progress.md; touch two; fi"
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] First\n2. [VERIFY: test -e two] Second\n", f"{second}; {HONEST}")
    history = "line of history\n" * ((1 << 20) - 2)  # with the first entry it has more than 16 MiB
    night.write({"docs/progress.md": history + "THE LAST LINE\n"})
    night.commit("history")
    ran = night.loop()
    assert ran.code == 0, ran.err
    progress = night.text("docs/progress.md")
    assert progress.startswith(history + "THE LAST LINE\n")
    assert (progress.count("(Continuous Session "), "\0" in progress) == (2, False)


@pytest.mark.slow
def test_ten_thousand_items(tmp_path: Path) -> None:
    queue = "".join(f"{number}. [VERIFY: sh check.sh] Item {number}\n" for number in range(1, 10_001))
    night = Night(tmp_path, queue)
    ran = night.loop("--max-sessions", "1")
    assert ran.code == 0, ran.err
    assert len(night.state["queueSnapshot"]) == 9_999
    assert night.text(f"docs/session_logs/{night.logs[-1]}").count("[VERIFY: sh check.sh]") >= 9_999


@pytest.mark.slow
def test_a_file_that_git_knows_is_never_left_out_of_what_is_not_committed(tmp_path: Path) -> None:
    night = Night(tmp_path, **{".raymond__notes": "\n"})
    night.write({".raymond/notes": "changed\n"})
    assert "are taken along: .raymond/notes\n" in night.loop().err
