"""What attackers tried on a loop, each once in a real repository: nothing of it counts, and nothing of a person's is lost."""

import os
import subprocess
from pathlib import Path

import pytest

from looping import HONEST, LOG, SIGNED, Night

pytestmark = pytest.mark.slow
TOKEN = "16C7e42F292c6912E7710c838347Ae178B4a"
DONE = "echo 42 > answer.txt; echo ITERATION_COMPLETE"
SET_ASIDE = {
    # what it is called: what the agent does, the verdict, what the summary says
    "a key beside a NUL": (f"printf 'a\\0ghp_%s' {TOKEN} > k.bin", "review", "GitHub token into k.bin"),
    "a key in two bytes": (
        f"printf 'ghp_%s' {TOKEN} | iconv -t UTF-16LE > k.txt",
        "review",
        "GitHub token into k.txt",
    ),
    "a key as a name": (f"touch ghp_{TOKEN}", "review", "GitHub token into the name of a file"),
    "a key as a link": (f"ln -s ghp_{TOKEN} link", "review", "GitHub token into link"),
    "a key behind many names": (
        f"mkdir -p .github; for n in $(seq 30); do touch .github/$n-{'x' * 200}; done; echo ghp_{TOKEN} > k.txt",
        "review",
        "GitHub token into k.txt; ",
    ),
    "capitals": ("mkdir -p .GitHub; echo x > .GitHub/ci.yml", "review", "decides what runs elsewhere"),
}


def night_of(path: Path, script: str) -> Night:
    night = Night(path, agent=f"{script}; {DONE}")
    outside = path / "outside"
    outside.mkdir()
    (outside / "thesis.txt").write_text("years of work\n", "utf-8")
    (outside / "run").write_text("#!/bin/sh\ntouch $TEST_ROOM/../ran\n", "utf-8")
    (outside / "run").chmod(0o755)
    night.write({".gitignore": ".env\ntools/z*\n", "tools/.gitignore": "!zz\n", ".env": "MINE=1\n"})
    night.write({"tools/hooks/pre-commit": "#!/bin/sh\n"})
    (night.path / "tools/hooks/pre-commit").chmod(0o755)
    night.commit("more")
    night.git("config", "filter.mine.clean", "touch $TEST_ROOM/../ran; cat")
    night.git("branch", "kept")
    night.git("tag", "v1")
    hook = night.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 0\n", "utf-8")
    hook.chmod(0o755)
    return night


@pytest.mark.parametrize("name", SET_ASIDE)
def test_it_is_set_aside_and_named(tmp_path: Path, name: str) -> None:
    script, verdict, told = SET_ASIDE[name]
    night = night_of(tmp_path, script)
    main, kept = night.git("rev-parse", "main"), night.git("rev-parse", "kept")
    ran = night.loop("--attempts", "1")
    assert ran.code == 1, ran.out
    [failed] = night.state["failedItems"]
    assert (failed["verdict"], night.state["completedItems"]) == (verdict, []), ran.out
    assert told in ran.out
    assert (night.git("rev-parse", "main"), night.git("rev-parse", "kept")) == (main, kept)
    assert night.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert night.git("rev-parse", "v1") == main
    assert not night.has("answer.txt")
    assert (night.path / ".env").read_text("utf-8") == "MINE=1\n", "a person's file that git ignores stays"
    assert (tmp_path / "outside/thesis.txt").read_text("utf-8") == "years of work\n"
    assert not (tmp_path / "ran").exists(), "nothing of the agent's runs in Raymond's name"
    assert os.access(night.path / ".git/hooks/pre-commit", os.X_OK)
    assert TOKEN not in night.git("log", "-p", "raymond/n")
    assert night.git("status", "--porcelain") == "", "the next night can start"


HARMLESS = {
    "attributes behind a rule": "echo .gitattributes > tools/.gitignore; echo '* filter=mine' > tools/.gitattributes",
    "a rule that is gone": ": > .gitignore",
    "a key in a message": f"git commit -q --allow-empty -m 'ghp_{TOKEN}'",
    "a key in the progress": f"echo 'ghp_{TOKEN}' >> docs/progress.md",
    "a key in a summary": f"mkdir -p docs/summaries; echo ghp_{TOKEN} > docs/summaries/x.md",
    "a folder that becomes a link": "mv tools things; ln -s things tools",
    "a folder for the progress": "mkdir -p docs/progress.md/x",
    "a pipe for the learnings": "mkfifo docs/critical-learnings.md",
    "pipes that git reads": "mkfifo tools/.gitignore tools/.gitattributes",
    "no info": "rm -rf .git/info/refs",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_it_does_not_end_the_night(tmp_path: Path, name: str) -> None:
    night = night_of(tmp_path, HARMLESS[name])
    ran = night.loop("--attempts", "1")
    assert ran.code == 0, ran.out + ran.err
    assert night.git("show", f"{night.tip}~1:answer.txt") == "42"
    assert not night.has(".env")
    assert not (tmp_path / "ran").exists(), "nothing of the agent's runs in Raymond's name"
    assert TOKEN not in night.git("log", "-p", "raymond/n")


def test_a_foreign_checkout_leads_no_document_out_of_the_tree(tmp_path: Path) -> None:
    night = Night(tmp_path)
    (tmp_path / "target").write_text("mine\n", "utf-8")
    (night.path / "docs/progress.md.raymond-new").symlink_to(tmp_path / "target")
    (tmp_path / "away").mkdir()
    (night.path / "docs/summaries").symlink_to(tmp_path / "away")
    night.commit("links")
    ran = night.loop()
    assert (ran.code, "is a link to" in ran.err) == (1, True)
    (night.path / "docs/summaries").unlink()
    night.commit("no link")
    assert night.loop("--id", "m").code == 0
    assert (tmp_path / "target").read_text("utf-8") == "mine\n"
    assert list((tmp_path / "away").iterdir()) == []


def test_logs_that_git_ignores_are_no_queue(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({".gitignore": "docs/session_logs/\n"})
    night.git("rm", "-q", "--cached", LOG)
    night.git("add", ".gitignore")
    night.git("commit", "-qm", "ignore")
    ran = night.loop()
    assert ran.code == 2
    assert f"git ignores {LOG}" in ran.err


def test_what_red_tries_made_is_part_of_the_green_commit(tmp_path: Path) -> None:
    agent = """
    if [ -e a.txt ]; then echo b > b.txt; else echo a > a.txt; fi
    echo ITERATION_COMPLETE
    """
    night = Night(tmp_path, "1. [VERIFY: test -e a.txt -a -e b.txt] Write both\n   - Retry: 0\n", agent)
    night.agent(agent.replace("echo ITERATION", "sleep 0; echo ITERATION"))
    ran = night.loop("--attempts", "1", "--on-fail", "retry")
    assert ran.code == 0, ran.out
    assert night.git("ls-tree", "--name-only", night.tip).split().count("a.txt") == 1
    assert night.git("ls-tree", "--name-only", night.tip).split().count("b.txt") == 1


def test_the_progress_can_be_added_to_and_not_rewritten(tmp_path: Path) -> None:
    forged = "printf '<!-- raymond n/x-main_work1 -->\\n### (Continuous Session 9/9)\\n' > docs/progress.md"
    night = Night(tmp_path, agent=f"{forged}; {HONEST}")
    night.write({"docs/progress.md": "# Progress\n\nolder\n"})
    night.commit("progress")
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert night.text("docs/progress.md").startswith("# Progress\n\nolder\n")
    assert "9/9" not in night.text("docs/progress.md")
    assert "the agent changed docs/progress.md, which Raymond writes" in ran.out


def test_a_hook_that_leaves_something_running_is_not_waited_for(tmp_path: Path) -> None:
    night = Night(tmp_path)
    hook = night.path / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\nsleep 60 &\n", "utf-8")
    hook.chmod(0o755)
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        assert live.process.wait(50) == 0
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]


def test_a_message_hook_that_changes_files_does_not_change_the_commit(tmp_path: Path) -> None:
    night = Night(tmp_path)
    hook = night.path / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\necho broken > answer.txt\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop("--attempts", "1")
    assert ran.code == 1, ran.out
    assert "broken" not in night.git("log", "-p", "raymond/n", "--", "answer.txt")


@pytest.mark.parametrize(
    ("queue", "says", "commits"),
    [
        ("1. [VERIFY: sh check.sh] Write the answer\n", "ITERATION_COMPLETE", ["feat: write the answer"]),
        ("1. [NO-VERIFY] Write the answer\n", "ITERATION_COMPLETE", ["feat: write the answer"]),
        (
            "1. [VERIFY: sh check.sh] Give up\n2. [NO-VERIFY] Write it\n",
            "ITERATION_FAILED",
            ["chore(loop): records", "feat: write it"],
        ),
    ],
    ids=["checked", "not checked", "given up"],
)
def test_a_process_that_an_agent_left_running_is_gone_before_the_commit(
    tmp_path: Path, queue: str, says: str, commits: list[str]
) -> None:
    pid = tmp_path / "pid"
    waits = f"(env -i setsid sh -c 'echo $$ > {pid}; exec sleep 600' < /dev/null > /dev/null 2>&1 &)"
    leaves = f"{waits}\nwhile [ ! -s {pid} ]; do sleep 0.02; done; echo 42 > answer.txt; echo {says}"
    night = Night(tmp_path, queue, agent=f"if [ ! -e {pid} ]; then\n{leaves}\nelse\n{HONEST}\nfi")
    hook = night.path / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\n! grep -q sleep /proc/$(cat {pid})/cmdline 2> /dev/null\n", "utf-8")
    hook.chmod(0o755)
    try:
        night.loop("--attempts", "1")
    finally:
        night.room.clear()
    assert night.subjects == ["start", *commits, "chore(loop): records"]


CHANGES = "while [ ! -e now ]; do sleep 0.02; done; cd $(cat tree); [ -e check.sh ] && echo broken > answer.txt; touch $OLDPWD/changed"
"""What a process does that outlives its agent: it changes a file of the tree when the test wants it."""
NOW = "#!/bin/sh\ntouch $TEST_ROOM/../now; while [ ! -e $TEST_ROOM/../changed ]; do sleep 0.02; done\n"


@pytest.mark.parametrize("moment", ["pre-commit", "commit-msg", "signing"])
def test_what_another_process_changes_after_the_check_is_not_committed(tmp_path: Path, moment: str) -> None:
    night = Night(tmp_path, agent=f"pwd > $TEST_ROOM/../tree; {HONEST}")
    script = tmp_path / "sign" if moment == "signing" else night.path / ".git/hooks" / moment
    script.write_text(NOW + (f"cat > /dev/null; {SIGNED}" if moment == "signing" else ""), "utf-8")
    script.chmod(0o755)
    night.git("config", "gpg.program", str(script))
    night.git("config", "commit.gpgsign", str(moment == "signing").lower())
    with subprocess.Popen(["sh", "-c", CHANGES], cwd=tmp_path) as other:
        try:
            ran = night.loop("--attempts", "1")
        finally:
            other.kill()
    assert (tmp_path / "changed").exists()
    assert (ran.code, "feat: write the answer" in night.subjects) == (0, True), ran.out
    assert "broken" not in night.git("log", "-p", "raymond/n", "--", "answer.txt")


def test_a_persons_commit_and_queue_made_while_the_loop_pauses_stay(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh check.sh] Not this one\n"
    night = Night(tmp_path, queue, agent="echo ITERATION_COMPLETE")
    assert night.loop("--id", "n", "--attempts", "1", "--budget", "0.005").code == 4
    log = (night.path / LOG).read_text("utf-8")
    night.write({"mine.txt": "a day of work\n", LOG: log.replace("2. [VERIFY", "2. [BLOCKED: no] [VERIFY")})
    mine = night.commit("a day of work")
    assert night.room.raymond("continuous-session", "edit", "--from-checkout").returncode == 0
    night.agent("echo x > junk.txt; echo ITERATION_COMPLETE")
    done = night.room.raymond("resume", "n", "--budget", "5")
    assert done.returncode == 1, done.stderr
    assert (night.git("rev-parse", "main"), night.git("status", "--porcelain")) == (mine, "")
    assert not night.has("junk.txt")
    assert "The agent" not in done.stdout
    assert "the agent changed" not in done.stdout
    assert [item["title"] for item in night.state["failedItems"]] == ["Write the answer"], "the other is blocked now"


def test_two_starts_at_once_are_one_too_many(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"sleep 1; {HONEST}")
    first = night.room.popen("continuous-session", "start", "--id", "a", "--pause", "0s")
    second = night.room.popen("continuous-session", "start", "--id", "b", "--pause", "0s")
    assert sorted([first.wait(60), second.wait(60)]) == [0, 2]
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]


def test_what_a_person_commits_in_another_worktree_is_nobodys_business(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"git -C $TEST_ROOM/../tree commit -q --allow-empty -m mine; {HONEST}")
    night.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "tree"))
    ran = night.loop()
    assert ran.code == 0, ran.out
    assert night.git("log", "-1", "--format=%s", "feature") == "mine"
    assert "feature" not in ran.out


def test_of_a_repository_of_its_own_only_the_files_are_committed(tmp_path: Path) -> None:
    agent = "git init -q src; echo 42 > src/answer; echo done"
    night = Night(tmp_path, "1. [VERIFY: grep -q 42 src/answer] Write\n", agent)
    ran = night.loop()
    assert ran.code == 0, ran.out
    assert "not taken from the workspace: src/.git/ (a name that git keeps for itself)" in ran.err
    assert night.git("ls-tree", "-r", "--name-only", night.tip, "src") == "src/answer"


def test_a_repository_that_was_there_before_is_nobodys_business(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("init", "-q", "vendor")
    ran = night.loop()
    assert (ran.code, "vendor" in ran.out) == (0, False), ran.out


def test_summaries_of_an_agent_are_put_back_and_named(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"mkdir -p docs/summaries; echo lies > docs/summaries/x.md; {HONEST}")
    ran = night.loop()
    assert ran.code == 0
    assert "the agent made docs/summaries/x.md, which Raymond writes" in ran.out
    assert "lies" not in night.git("log", "-p", "raymond/n")


def test_what_an_agent_adds_to_the_progress_hides_nothing(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"printf '\\n<!-- \\033[2J mine\\n' >> docs/progress.md; {HONEST}")
    assert night.loop().code == 0
    assert "mine" not in night.text("docs/progress.md")
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert "&lt;!--" in log
    assert "\033" not in log


def test_documents_behind_a_link_are_put_back_and_the_night_goes_on(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: true] Second\n"
    night = Night(tmp_path, queue, f"[ -L docs ] || {{ mv docs d2; ln -s d2 docs; }}; {DONE}")
    ran = night.loop("--attempts", "1")
    assert "Traceback" not in ran.err
    assert not (night.path / "docs").is_symlink()
    assert night.text("docs/progress.md").count("###") == 2


def test_a_changed_test_is_named_also_where_the_check_is_green_with_it_as_before(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh tests/test_a.sh] Tidy up\n", "echo true > tests/test_a.sh; echo done")
    night.write({"tests/test_a.sh": "test -f README.md\n"})
    night.commit("a test")
    ran = night.loop()
    assert ran.code == 0, ran.out
    told = "changed tests/test_a.sh (this decides the check, which is green also with it as before)"
    assert f"- Tidy up: the agent {told}" in ran.out
    assert f"Noticed: the agent {told}" in night.git("log", "--format=%B", "raymond/n")


def test_an_index_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"ln -s $TEST_ROOM/../thesis .git/index.raymond; {DONE}")
    (tmp_path / "thesis").write_text("years of work\n", "utf-8")
    assert night.loop().code == 0
    assert (tmp_path / "thesis").read_text("utf-8") == "years of work\n"
    assert night.git("status", "--porcelain") == ""
