"""Items that a loop has set aside: a person looks, and lets them count or sends them back."""

import json
import re
from pathlib import Path

import pytest

from looping import WAIT, Night
from typist import Typist

pytestmark = pytest.mark.slow
AGENT = "echo 42 > answer.txt; mkdir -p .github; echo x > .github/ci.yml; echo ITERATION_COMPLETE"


def aside(path: Path, since: str = "") -> Night:
    """A night with an item that was set aside; `since` is what another one did then."""
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [BLOCKED: later] Publish\n"
    if since:
        queue += "3. [NO-VERIFY] Second\n   - May: check.sh\n"
    night = Night(
        path, queue, f'if grep -q "^# Second" "$PROMPT"; then {since}; echo done; else {AGENT}; fi' if since else AGENT
    )
    assert night.loop().code == 1
    assert "[BLOCKED: waits for a person (raymond review n): added .github/ci.yml" in night.text(
        f"docs/session_logs/{night.logs[-1]}"
    )
    return night


def test_what_was_set_aside_is_shown_accepted_and_committed_on_todays_tip(tmp_path: Path) -> None:
    night = aside(tmp_path, "echo since then > other.txt")
    head = night.git("rev-parse", "HEAD")
    shown = night.room.raymond("review", "n").stdout
    assert "n, item 1: Write the answer: review" in shown
    assert "+42" in shown
    assert "accept: raymond accept n 1\nreject: raymond reject n 1 REASON\n" in shown
    refused = night.room.raymond("accept", "n", "1")
    assert (refused.returncode, "accepted on a terminal" in refused.stderr) == (2, True)
    assert refused.stderr.endswith("with no pipe: raymond accept n 1\n")
    person = Typist(night.room, "accept", "n", "1")
    person.sees("commit this")
    person.type("y\n")
    assert person.end() == 0
    assert "a twin of this directory" not in person.said
    assert night.subjects[-1] == "feat: write the answer"
    assert night.git("show", "raymond/n:answer.txt") == "42"
    assert night.git("show", "raymond/n:.github/ci.yml") == "x"
    assert night.git("show", "raymond/n:other.txt") == "since then"
    assert (night.git("rev-parse", "HEAD"), night.git("status", "--porcelain")) == (head, "")
    left = night.text(f"docs/session_logs/{night.logs[-1]}").partition("## Next Steps")[2]
    assert "Write the answer" not in left
    assert "Publish" in left
    assert night.room.raymond("review", "n").stderr == "nothing of n waits for a review\n"
    assert "  ✓ Write the answer (accepted, " in night.loop(verb="status").out
    made = night.git("rev-parse", night.tip)
    found = json.loads(night.loop("--json", verb="status").out)
    first, second = found["completed"]
    assert (found["exit_code"], found["failed"], second["verdict"]) == (0, [], "not verified")
    assert (first["verdict"], first["commit"]) == ("accepted", made)
    for view in (("status", "n", "--json"), ("wait", "n", "--json")):
        seen = json.loads(night.room.raymond(*view).stdout)
        assert (seen["status"], seen["exit_code"], seen["reason"]) == ("completed", 0, "2 done")
    [row] = json.loads(night.room.raymond("list", "--json").stdout)
    assert (row["status"], row["exit_code"], row["reason"], row["group"]) == ("completed", 0, "2 done", "done")
    summary = night.room.raymond("summary").stdout
    assert re.search(rf"^- Write the answer \(accepted: `sh check.sh`, .*, commit {made[:12]}", summary, re.MULTILINE)


def test_what_waits_in_two_loops_is_listed_with_what_it_can_be_judged_by(tmp_path: Path) -> None:
    loosens = "echo true > check.sh; printf 'The check\\nwas wrong.\\n'"
    night = Night(tmp_path, agent=loosens)
    assert night.loop("--attempts", "1").code == 1
    shown = night.room.raymond("review").stdout
    assert "\nthe agent says:\n  | The check\n  | was wrong.\ndifference:\n" in shown
    assert (
        "$ sh check.sh with the sealed files\n  | grep: answer.txt: "
        in shown.partition("\nwhat the check printed:\n")[2]
    )
    [item] = json.loads(night.room.raymond("review", "n", "--json").stdout)
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8").partition("\n## Item\n")[2]
    assert [*item] == re.findall(r"^\| `(\w+)` \|", page.partition("\n## ")[0], re.MULTILINE)
    assert (item["item"], item["words"]) == (1, "The check\nwas wrong.")
    log = f"docs/session_logs/{night.logs[-1]}"
    left = night.text(log).replace("## Next Steps\n", "## Next Steps\n\n- [VERIFY: true] Publish\n")
    night.write({"docs/session_logs/20991231_0900_session.md": left})
    night.agent(AGENT)
    assert "(raymond review n): green only" in night.loop("--id", "m").out
    several = night.room.raymond("review")
    assert (several.returncode, several.stdout) == (2, "")
    assert re.findall(r"^  raymond review (\w) .* 1 to review$", several.stderr, re.MULTILINE) == ["m", "n"]
    listed = night.room.raymond("list").stdout
    assert re.findall(r"^(needs you|done)|^  ([mn]) +failed .* 1 to review$", listed, re.MULTILINE) == [
        ("needs you", ""),
        ("", "m"),
        ("", "n"),
    ]
    assert night.room.raymond("inbox").stdout == "1 to review: raymond review m\n1 to review: raymond review n\n"
    night.git("update-ref", "-d", "refs/raymond/m/1.1")
    assert night.room.raymond("review", "m").stderr == "nothing of m waits for a review\n"
    assert night.room.raymond("reject", "n", "1").returncode == 0
    assert night.room.raymond("inbox").stderr == "no agent is waiting for an answer\n"


def test_what_does_not_fit_any_more_becomes_a_branch(tmp_path: Path) -> None:
    night = aside(tmp_path, "echo 43 > answer.txt")
    person = Typist(night.room, "accept")
    person.sees("commit this")
    person.type("y\n")
    person.sees("it is on the branch raymond/n-1")
    assert person.end() == 1
    assert night.git("show", "raymond/n-1:answer.txt") == "42"
    assert night.text("answer.txt") == "43\n"


def test_what_is_red_with_todays_tip_is_not_committed(tmp_path: Path) -> None:
    night = aside(tmp_path, "echo grep -q 43 answer.txt > check.sh")
    person = Typist(night.room, "accept", "n", "1")
    person.sees("commit this")
    person.type("y\n")
    person.sees("its check is not green here")
    assert person.end() == 1
    assert not night.has("answer.txt")


def test_what_is_rejected_is_in_the_queue_again(tmp_path: Path) -> None:
    night = aside(tmp_path)
    assert "  [BLOCKED: waits for a person (raymond review n): added .github/ci.yml" in night.loop(verb="status").out
    done = night.room.raymond("reject", "n", "1", "no CI, please")
    assert done.returncode == 0, done.stderr
    status = night.loop(verb="status").out
    assert "  ✗ Write the answer (rejected, " in status
    assert "n: failed (0 of 1 done, 1 rejected)\n" in status
    assert "\nnext:   raymond continuous-session start" in status
    listed = night.room.raymond("list").stdout
    assert re.search(r"^done\n  n +failed .* 1 rejected$", listed, re.MULTILINE)
    assert "[BLOCKED: waits" not in status
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert "1. [VERIFY: sh check.sh] Write the answer\n   It was rejected: no CI, please\n" in log
    night.agent('grep -q "no CI, please" "$PROMPT" && echo 42 > answer.txt; echo ITERATION_COMPLETE')
    assert night.loop("--id", "m").code == 0


def test_what_was_rejected_cannot_be_accepted(tmp_path: Path) -> None:
    night = aside(tmp_path)
    assert night.room.raymond("reject", "n", "1", "no CI, please").returncode == 0
    tip = night.git("rev-parse", night.tip)
    for item, told in (("1", "nothing of n waits for a review"), (None, "nothing of n waits for a review")):
        refused = night.room.raymond("accept", "n", *([item] if item else []))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == f"error: {told}\nhint: raymond status n shows what its agents are doing\n"
    assert night.git("rev-parse", night.tip) == tip
    assert not night.has("answer.txt")


def test_what_was_rejected_elsewhere_while_it_was_looked_at_is_not_committed(tmp_path: Path) -> None:
    night = aside(tmp_path)
    person = Typist(night.room, "review", "n")
    person.sees("Enter later > ")
    assert night.room.raymond("reject", "n", "1", "no CI, please").returncode == 0
    tip = night.git("rev-parse", night.tip)
    person.type("y\n")
    person.sees("Enter later > ")
    person.type("y\n")
    person.sees("error: Write the answer was rejected before")
    assert person.end() == 2
    assert night.git("rev-parse", night.tip) == tip


def test_what_is_decided_after_the_end_counts_although_it_was_asked_before(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [NO-VERIFY] Second\n"
    night = Night(
        tmp_path, queue, f'if grep -q "^# Second" "$PROMPT"; then {WAIT}echo 2 > 2.txt; echo done; else {AGENT}; fi'
    )
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees('Selected item: "Second"')
        person = Typist(night.room, "accept", "n", "1")
        person.sees("commit this")
        (tmp_path / "go").touch()
        live.process.wait()
        person.type("y\n")
        assert person.end() == 0
    [row] = json.loads(night.room.raymond("list", "--json").stdout)
    assert (row["status"], row["exit_code"], row["reason"], row["group"]) == ("completed", 0, "2 done", "done")
    assert night.room.raymond("wait", "n").returncode == 0


def test_a_decision_that_was_killed_before_lists_knew_it_is_told_by_the_next_look(tmp_path: Path) -> None:
    night = aside(tmp_path)
    folder = Path(night.room.project.run("n").path) / "loop"
    waits = (folder / "set-aside").read_text()
    person = Typist(night.room, "accept", "n", "1")
    person.sees("commit this")
    person.type("y\n")
    assert person.end() == 0
    (folder / "revised").unlink()
    (folder / "set-aside").write_text(waits)
    assert night.room.raymond("review", "n").stderr == "nothing of n waits for a review\n"
    [row] = json.loads(night.room.raymond("list", "--json").stdout)
    assert (row["status"], row["exit_code"], row["reviews"]) == ("completed", 0, 0)


def test_of_an_iteration_only_one_decision_counts_and_the_reason_is_told(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=AGENT, **{"PROMPT.md": "Write the answer."})
    assert night.loop("PROMPT.md", "--gate", "sh check.sh", "--max-iterations", "1", loop="ralph").code == 4
    person = Typist(night.room, "accept", "n", "1")
    person.sees("commit this")
    done = night.room.raymond("reject", "n", "1", "no CI, please")
    assert done.stderr.startswith("Iteration 1: Write the answer. does not count; what its agent did is kept in refs/")
    person.type("y\n")
    person.sees("error: Iteration 1: Write the answer. was rejected before")
    assert person.end() == 2
    shown = night.room.raymond("status", "n").stdout
    assert re.search(r"\(rejected, .*\)\n      no CI, please\n", shown)
    assert "go on with the rest" not in night.room.raymond("summary", "n").stdout


def test_what_is_accepted_was_journaled_wherever_its_reference_points_now(tmp_path: Path) -> None:
    night = aside(tmp_path)
    night.git("checkout", "-q", "-b", "evil")
    night.write({"answer.txt": "42, and worse\n", "evil.txt": "evil\n"})
    night.git("update-ref", "refs/raymond/n/1.1", night.commit("evil"))
    night.git("checkout", "-q", "main")
    person = Typist(night.room, "accept", "n", "1")
    assert "evil" not in person.sees("commit this")
    person.type("y\n")
    assert person.end() == 0
    assert night.git("show", "raymond/n:answer.txt") == "42"
    assert not night.has("evil.txt")


def test_an_agent_accepts_edits_and_teaches_nothing(tmp_path: Path) -> None:
    night = aside(tmp_path)
    for args in (("accept", "n", "1"), ("continuous-session", "edit"), ("continuous-session", "learn", "x")):
        done = night.room.raymond(*args, environment={"CLAUDECODE": "1"})
        assert done.returncode == 2
        assert "has started" in done.stderr


def test_items_are_decided_where_they_are_shown(tmp_path: Path) -> None:
    night = aside(tmp_path, AGENT.replace("ci.yml", "other.yml"))
    person = Typist(night.room, "review", "n", columns=200)
    asks = r"commit this\? y, n, d shows the difference, Enter later > "
    first = person.sees(asks)
    assert "n, item 1: Write the answer: review" in first
    assert "+42" not in first
    person.type("d\n")
    assert "+42" in person.sees(asks)
    person.type("y\n")
    person.sees("committed as ")
    assert "n, item 2: Second: review" in person.sees(asks)
    person.type("n\n")
    person.sees("The next session is told; Ctrl-C rejects nothing: ")
    person.type("no CI, please\n")
    person.sees("Second is in the queue again")
    assert person.end() == 0
    assert night.git("show", "raymond/n:answer.txt") == "42"
    assert "It was rejected: no CI, please" in night.text(f"docs/session_logs/{night.logs[-1]}")
