"""What each agent does, as `status` shows it."""

from builders import Play
from raymond.faces import overview
from raymond.faces.overview import run_lines
from raymond.machine.events import Program

FILES = {"START.md": "", "WORK.md": "", "END.md": ""}


def working() -> Play:
    """Three agents for two places, begun 5 seconds after they were forked; the first one asks 2 seconds later."""
    play = Play(FILES, max_turns_at_once=2)
    play.say("<fork f='a.py'>WORK</fork><fork f='b.py'>WORK</fork><fork f='c.py'>WORK</fork><wait>END</wait>")
    play.now += 5
    play.begin("main_work1")
    play.begin("main_work2")
    play.now += 2
    play.say('<ask next="END">Shall I?</ask>', "main_work1")
    play.begin("main_work3")
    play.now += 3
    return play


def lines(play: Play, *, driven: bool = True, width: int = 0) -> list[str]:
    agents = overview.most_urgent(play.run, 50)
    return overview.agent_lines(play.run, agents, driven=driven, now=play.now, width=width)


def test_agents_are_in_columns_parents_first_with_since_when_and_what_for() -> None:
    assert lines(working()) == [
        "  main               START.md  waiting  10s  for 3 agents",
        "  main_work1 (a.py)  WORK.md   asking    3s",
        "  main_work2 (b.py)  WORK.md   running   5s",
        "  main_work3 (c.py)  WORK.md   running   3s",
    ]


def test_an_agent_that_could_start_says_what_it_waits_for() -> None:
    play = Play(FILES, max_turns_at_once=1)
    play.say("<fork>WORK</fork><fork>WORK</fork><wait>END</wait>")
    play.begin("main_work1")
    assert lines(play)[-1].split("  ")[-1] == "for a place (1 of 1 running)"


def test_nothing_is_counted_while_nobody_drives_the_run_but_a_question() -> None:
    assert lines(working(), driven=False) == [
        "  main               START.md  waiting          for 3 agents",
        "  main_work1 (a.py)  WORK.md   asking       3s",
        "  main_work2 (b.py)  WORK.md   interrupted",
        "  main_work3 (c.py)  WORK.md   interrupted",
    ]


def test_what_matters_is_shown_where_there_is_room_for_few() -> None:
    assert [agent.id for agent in overview.most_urgent(working().run, 2)] == ["main_work1", "main_work2"]


def test_no_line_is_wider_than_the_terminal() -> None:
    assert {len(line) <= 40 for line in lines(working(), width=40)} == {True}


def test_status_says_that_scripted_replies_answered_also_if_they_cost_nothing() -> None:
    play = Play(FILES, programs=[Program(name="scripted", payer="flow/replies.yaml")])
    play.say("<result>fine</result>")
    assert "  answered by scripted replies (flow/replies.yaml)" in run_lines(play.run, "completed", 0, "/nowhere")
