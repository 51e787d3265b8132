"""What a loop cannot work with: a clear message, a way on, and nothing lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from looping import HONEST, LOG, Night
from running import Room


def refused(night: Night, *args: str) -> str:
    """What a start says that makes no run, and leaves everything as it was."""
    before = night.git("status", "--porcelain"), night.git("rev-parse", "--abbrev-ref", "HEAD")
    ran = night.loop(*args)
    assert ran.code == 2, ran.err
    assert (night.git("status", "--porcelain"), night.git("rev-parse", "--abbrev-ref", "HEAD")) == before
    assert not night.room.folder("n").exists()
    return ran.err


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
@pytest.mark.parametrize("prepare", [("checkout", "-q", "--detach"), ("update-ref", "MERGE_HEAD", "HEAD")])
def test_a_repository_in_the_middle_of_something_stays_so(tmp_path: Path, prepare: tuple[str, ...]) -> None:
    night = Night(tmp_path)
    night.git(*prepare)
    before = night.git("status")
    assert night.loop().code == 0
    assert night.git("status") == before


@pytest.mark.slow
def test_a_sparse_checkout_is_refused(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("config", "core.sparseCheckout", "true")
    assert "a workspace cannot be made of a sparse checkout" in refused(night)


@pytest.mark.slow
def test_uncommitted_changes_are_taken_along_or_left_and_stay_as_they_are(tmp_path: Path) -> None:
    night = Night(tmp_path)
    start = night.git("rev-parse", "main")
    secret = f"TOKEN={'ghp_' + 'a1B2c3D4' * 4 + 'e5F6'}\n"
    night.write({"README.md": "# Changed\n", "new.txt": "new\n", ".env": secret})
    before = night.git("status", "--porcelain")
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert "your changes that are not committed are taken along: README.md, new.txt\n" in ran.err
    assert "left out, because it looks like a secret: .env\n" in ran.err
    taken = "chore(loop): uncommitted changes taken along"
    assert night.subjects == ["start", taken, "feat: write the answer", "chore(loop): records"]
    assert (night.text("README.md"), night.text("new.txt"), night.has(".env")) == ("# Changed\n", "new\n", False)
    assert night.loop("--on-dirty", "ignore", "--from", "HEAD", "--id", "m").code == 0
    assert (night.text("README.md"), night.has("new.txt")) == ("# Room\n", False)
    assert (night.git("rev-parse", "HEAD"), night.git("status", "--porcelain")) == (start, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queue", "told"),
    [
        ("", "nothing to do: docs/session_logs/20250117_0900_session.md has nothing that can be worked on"),
        ("None.\n", "has nothing that can be worked on"),
        ("- [BLOCKED: x] A\n- *proposed* B\n", "A: x\n  B: proposed by an agent"),
        ("- [VERIFY: git push --force] A\n", "A: its check overwrites history: a force push"),
    ],
)
def test_a_queue_with_nothing_to_do(tmp_path: Path, queue: str, told: str) -> None:
    night = Night(tmp_path, queue)
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert told in ran.out
    assert not night.room.folder("n").exists()


@pytest.mark.slow
def test_a_log_without_the_section(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({LOG: "# Session: x\n\n## Summary\n\nNothing.\n"})
    ran = night.loop()
    assert (ran.code, ran.out) == (0, f"nothing to do: {LOG} has no `## Next Steps`\n")
    assert "raymond continuous-session edit opens the queue" in ran.err


@pytest.mark.slow
def test_odd_tags_are_warned_of_and_do_not_stop_the_night(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh Unclosed\n2. [VERIFY: [VERIFY: x]] Nested\n3. [VERFY: x] Write a note\n"
    night = Night(tmp_path, queue, agent="date > $RANDOM.txt; echo ITERATION_COMPLETE")
    ran = night.loop()
    assert ran.err.count("warning: 20250117_0900_session.md:") >= 3, ran.err
    assert ran.code in (0, 1)
    assert night.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_check_whose_program_is_not_here(tmp_path: Path) -> None:
    night = Night(tmp_path, "- [VERIFY: no-such-program --all] A\n")
    said = refused(night)
    assert 'the check of "A" needs `no-such-program`, which is not here' in said


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
@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("", 2, "docs is a file, not a folder"),
        ("../elsewhere", 2, "--docs docs is not in this repository"),
        ("inside", 1, "/docs is a link to "),
    ],
)
def test_a_file_or_a_link_in_place_of_the_folder_of_documents(
    tmp_path: Path, target: str, code: int, told: str
) -> None:
    night = Night(tmp_path)
    docs = night.path / "docs"
    docs.rename(night.path / (target or "inside"))
    if target:
        docs.symlink_to(target)
    else:
        docs.write_text("notes\n", "utf-8")
    night.commit("no folder")
    ran = night.loop()
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert "hint: " in ran.err
    assert not night.room.folder("n").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_something_else_in_place_of_the_newest_log(tmp_path: Path, kind: str) -> None:
    night = Night(tmp_path)
    newest = night.path / "docs/session_logs/20260101_0900_session.md"
    if kind == "pipe":
        os.mkfifo(newest)
    elif kind == "link":
        newest.symlink_to("20250117_0900_session.md")
    else:
        newest.mkdir()
    said = refused(night)
    assert "docs/session_logs/20260101_0900_session.md is not a regular file" in said
    assert "hint: put a file in its place, or remove it" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["progress.md", "session_logs/20260101_0900_session.md"])
def test_a_document_that_is_too_large(tmp_path: Path, name: str) -> None:
    night = Night(tmp_path)
    with open(night.path / "docs" / name, "wb") as file:
        file.truncate((16 << 20) + 1)
    night.commit("large")
    said = refused(night)
    assert f"docs/{name} is larger than 16 MiB: a loop reads all of it" in said
    assert "hint: move what is old in it to another file, and commit that" in said


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
def test_logs_with_impossible_dates_are_no_queue_and_do_no_harm(tmp_path: Path) -> None:
    night = Night(tmp_path)
    odd = [f"docs/session_logs/{date}_session.md" for date in ("20259999_9999", "20260231_1200", "99991231_2359")]
    text = "## Next Steps\n\n- [VERIFY: false] Not this one\n"
    night.write(dict.fromkeys(odd, text))
    night.commit("odd logs")
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert f"n: 1 item in {LOG}" in ran.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer"]
    assert [night.text(one) for one in odd] == [text] * 3


@pytest.mark.slow
def test_nothing_was_changed_and_nothing_checks_it(tmp_path: Path) -> None:
    night = Night(tmp_path, "- [NO-VERIFY] Think\n", agent="echo ITERATION_COMPLETE")
    ran = night.loop("--attempts", "1")
    assert ran.code == 1
    assert "nothing was changed" in ran.out


@pytest.mark.slow
def test_ten_thousand_items(tmp_path: Path) -> None:
    queue = "".join(f"{number}. [VERIFY: sh check.sh] Item {number}\n" for number in range(1, 10_001))
    night = Night(tmp_path, queue)
    ran = night.loop("--max-sessions", "1")
    assert ran.code == 0, ran.err
    assert len(night.state["queueSnapshot"]) == 9_999
    assert night.text(f"docs/session_logs/{night.logs[-1]}").count("[VERIFY: sh check.sh]") >= 9_999
