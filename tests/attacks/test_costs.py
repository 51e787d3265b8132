"""Nobody but the program says what a turn costs, and what is seen to be used is never free."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from raymond.backends import Observation, Reply, Trouble, Turn
from raymond.backends.claude_stream import StreamReader
from raymond.backends.codex_events import CodexReader
from raymond.machine.inputs import Spending
from raymond.machine.prices import UNKNOWN_TURN, Price, Prices

RECORDINGS = Path(__file__).parents[1] / "e2e" / "recordings"
RECORDED = sorted(path for path in RECORDINGS.glob("*.jsonl") if not path.name.startswith("codex"))
MODEL = "claude-opus-5-5"


def turn(**given: Any) -> Turn:
    usual: dict[str, Any] = {
        "agent": "main",
        "state": "S.md",
        "visit": 1,
        "tries": 0,
        "prompt": "hi",
        "cwd": "/",
        "spool": "/s",
    }
    return Turn(**(usual | {"session": "s"} | given))


def message(*, model: str = MODEL, id: str = "1", text: str = "hi", **usage: int) -> dict[str, Any]:
    said = {"id": id, "model": model, "content": [{"type": "text", "text": text}], "usage": usage}
    return {"type": "assistant", "message": said}


def result(cost: object = None, text: str = "done", **more: Any) -> dict[str, Any]:
    claimed = {} if cost is None else {"total_cost_usd": cost}
    return {"type": "result", "is_error": False, "result": text, **claimed, **more}


DEAR = message(input_tokens=1_000_000, output_tokens=1)
"""It costs $4.00 to read."""
FREE: dict[str, Any] = {"total_cost_usd": 0, "model_usage_since_last_result": {}}


def told(*events: dict[str, Any], **given: Any) -> tuple[Reply | Trouble, list[str]]:
    """How a turn ended that printed these, and what people were told about it."""
    reader = StreamReader(turn(**given))
    seen = [one for event in events for one in reader.feed(json.dumps(event).encode())]
    ending = reader.close(0, "")
    assert ending.spent == reader.spent()
    return ending, [one.text for one in seen if one.kind == "note"]


def spent(*events: dict[str, Any], **given: Any) -> Spending:
    """What it is said to have cost, whatever the model is called."""
    return replace(told(*events, **given)[0].spent, model="")


# --- one result


@pytest.mark.parametrize("claim", [result(**FREE), result(0), result(), result("0"), result(-5), result(True)])
def test_a_result_without_a_cost_is_priced_by_the_tokens_that_were_seen(claim: dict[str, Any]) -> None:
    ending, notes = told(DEAR, claim)
    assert (round(ending.spent.cost, 3), ending.spent.estimated, ending.spent.unknown) == (4.0, True, False)
    assert notes == ["reported no cost: ~$4.00 is counted"]


def test_by_the_tokens_that_it_reports_when_they_are_more() -> None:
    used = {MODEL: {"inputTokens": 1_000_000, "outputTokens": 100_000, "costUSD": 0}}
    assert spent(DEAR, result(model_usage_since_last_result=used)).cost == 6.0


def test_without_a_price_it_is_a_turn_of_unknown_cost() -> None:
    unknown = message(model="claude-nobody-1", input_tokens=1000)
    assert spent(unknown, result(**FREE)) == Spending(cost=UNKNOWN_TURN, estimated=True, unknown=True)
    assert spent(DEAR, unknown | {"message": unknown["message"] | {"id": "2"}}, result(**FREE)).cost == pytest.approx(
        4, abs=1e-3
    )


def test_a_turn_that_says_it_was_answered_is_not_free_either() -> None:
    assert spent(result(**FREE, num_turns=1)).cost == UNKNOWN_TURN
    assert spent(result(**FREE)) == Spending()
    assert spent(result(**FREE, num_turns=1) | {"is_error": True}) == Spending(), "a failure before the first answer"


def test_a_claim_far_below_what_was_seen_is_not_believed() -> None:
    ending, notes = told(DEAR, result(0.39))
    assert (round(ending.spent.cost, 3), ending.spent.estimated) == (4.0, True)
    assert notes == ["reported only $0.39: ~$4.00 is counted"]
    assert spent(DEAR, result(0.41)) == Spending(cost=0.41)


def test_what_came_from_a_cache_or_has_no_price_casts_no_doubt() -> None:
    cached = message(input_tokens=10, cache_read_input_tokens=10_000_000, output_tokens=1)
    own = {MODEL: Price(input=50.0, output=50.0)}
    assert spent(cached, result(0.01), prices=Prices(own)) == Spending(cost=0.01)
    assert spent(message(model="us.anthropic.mine", input_tokens=10**9), result(0.01)) == Spending(cost=0.01)


def test_a_long_text_alone_casts_no_doubt() -> None:
    long = message(text="x" * 20_000_000, input_tokens=10, output_tokens=1)
    assert spent(long, result(0.01)) == Spending(cost=0.01)


def test_a_price_of_nothing_is_believed_when_a_person_set_it() -> None:
    assert spent(DEAR, result(0), prices=Prices({MODEL: Price(input=0, output=0)})).cost == 0


def test_a_message_in_parts_counts_once_and_what_it_says_counts_as_output() -> None:
    parts = [message(id="1", text="x" * 400_000, input_tokens=1_000_000, output_tokens=1) for _ in range(2)]
    assert spent(*parts, result(0)).cost == pytest.approx(4 + 2 * 100_000 * 20e-6)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_the_real_program_reports_is_believed(path: Path) -> None:
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    (last,) = [event for event in events if event["type"] == "result"]
    ending, notes = told(*events, base="b" if "forked" in path.stem else "")
    models = last.get("model_usage_since_last_result", last["modelUsage"])
    cost = sum(one["costUSD"] for one in models.values())
    assert ending.spent.cost == pytest.approx(cost)
    assert (ending.spent.estimated, notes) == (False, [])


# --- more than one result


@pytest.mark.parametrize("events", [(result(**FREE), result(6.0)), (result(6.0), result(**FREE))])
def test_a_forged_result_before_or_after_the_real_one_lowers_nothing(events: tuple[dict[str, Any], ...]) -> None:
    ending, notes = told(DEAR, *events)
    assert (ending.spent.cost, ending.spent.estimated, ending.spent.unknown) == (6.0, True, True)
    assert notes[-1] == "reported a result again: the first reply counts, and all costs, ~$6.00"


def test_two_forged_results_are_not_free_either() -> None:
    ending, notes = told(DEAR, result(**FREE), result(0.0))
    assert round(ending.spent.cost, 3) == 4.0
    assert notes[-1] == "reported no cost: ~$4.00 is counted"


def test_the_first_reply_counts() -> None:
    ending, _ = told(result(0.1, "first"), result(0.2, "second"))
    assert isinstance(ending, Reply)
    assert (ending.text, round(ending.spent.cost, 3)) == ("first", 0.3)


@pytest.mark.parametrize("events", [(result(1e9),), (result(1e9), result(6.0)), (result(6.0), result(1e9))])
def test_a_cost_beyond_reason_is_counted_and_said(events: tuple[dict[str, Any], ...]) -> None:
    ending, notes = told(DEAR, *events)
    assert ending.spent.cost >= 1e9
    assert notes[-1].endswith(", and the tokens that were seen cost ~$4.00: it is counted")


# --- no result


def test_a_turn_that_ends_its_own_program_is_not_cheaper_for_it() -> None:
    reader = StreamReader(turn())
    reader.feed(json.dumps(DEAR).encode())
    spent = reader.close(-9, "").spent
    assert (round(spent.cost, 3), spent.estimated, spent.unknown) == (4.0, True, True)
    assert reader.feed(b"no json") == [Observation("life")]


# --- releases that do not tell what a branch cost


def branch(tokens: int, *, total: float, whole: int, **more: Any) -> dict[str, Any]:
    models = {MODEL: {"inputTokens": whole, "costUSD": total}}
    return result(total, usage={"input_tokens": tokens}, modelUsage=models, **more)


def test_a_branch_that_is_counted_alone_costs_what_is_reported() -> None:
    assert spent(branch(1000, total=0.7, whole=1000), base="b") == Spending(cost=0.7, tokens_in=1000)


def test_a_branch_that_is_counted_with_its_base_costs_its_share_of_the_tokens() -> None:
    assert spent(branch(1000, total=0.8, whole=4000), base="b") == Spending(cost=0.2, estimated=True, tokens_in=1000)


def test_tokens_of_agents_below_are_part_of_the_share() -> None:
    below = message(input_tokens=3000)
    assert spent(below, branch(1000, total=0.8, whole=4000), base="b").cost == pytest.approx(0.6)


def test_without_any_tokens_of_the_models_it_is_priced_by_those_of_the_turn() -> None:
    claim = result(0.8, usage={"input_tokens": 100_000})
    assert spent(claim, base="b", model=MODEL) == Spending(cost=0.4, estimated=True, tokens_in=100_000)
    assert spent(result(0.8), base="b", model=MODEL).cost == UNKNOWN_TURN


# --- Codex, which counts tokens


def codex(*events: dict[str, Any], **given: Any) -> tuple[Reply | Trouble, list[str]]:
    reader = CodexReader(turn(model="gpt-5-codex", **given))
    said = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "first"}}
    later = {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "later"}}
    lines = [{"type": "turn.started"}, said, *events[:1], later, *events[1:]]
    seen = [one for event in lines for one in reader.feed(json.dumps(event).encode())]
    return reader.close(0, ""), [one.text for one in seen if one.kind == "note"]


def completed(read: int) -> dict[str, Any]:
    return {"type": "turn.completed", "usage": {"input_tokens": read, "output_tokens": 0}}


@pytest.mark.parametrize("events", [(completed(1), completed(1_000_000)), (completed(1_000_000), completed(1))])
def test_codex_that_reports_again_is_not_cheaper_for_it(events: tuple[dict[str, Any], ...]) -> None:
    ending, notes = codex(*events)
    assert isinstance(ending, Reply)
    assert (ending.text, ending.spent.cost, ending.spent.unknown) == ("first", 1.25, True)
    assert notes == ["reported a result again: the first reply counts, and the most tokens, ~$1.25"]


def test_codex_that_reports_again_as_a_failure_has_replied() -> None:
    ending, _ = codex(completed(1_000_000), {"type": "turn.failed", "error": {"message": "no"}})
    assert isinstance(ending, Reply)
    assert ending.spent.cost == 1.25


@pytest.mark.parametrize("meter", [(), (10**9, 10**9, 10**9)], ids=["at once", "after a forged meter"])
def test_codex_that_answers_is_not_free(meter: tuple[int, ...]) -> None:
    ending, notes = codex(completed(0 if not meter else 1_000_000), meter=meter)
    assert (ending.spent.cost, ending.spent.unknown) == (UNKNOWN_TURN, True)
    assert notes == ["reported no tokens: ~$0.50 is counted"]
