"""A program that acts like Claude Code: prompt on stdin, stream-json on stdout, sessions on disk.

`python -m raymond.testing.fake_claude --reply FILE --sessions DIR --session-id ID [--resume ID --fork-session] <prompt`
It imports little, so that many of them start fast.
"""

import json
import os
import stat
import sys
import time
from typing import Any

_NEEDED = ("--reply", "--sessions", "--session-id")
_USAGE = """python -m raymond.testing.fake_claude --reply FILE --sessions DIR --session-id ID < PROMPT
--reply FILE              JSON, e.g. {"text": "<result>done</result>", "cost": 0.01}
--sessions DIR            where to keep conversations
--resume ID               continue from this conversation, and leave it as it was
--max-budget-usd AMOUNT   the most a reply with {"capped": true} may cost"""


def main(argv: list[str]) -> int:
    """Give the reply that FILE says, in the ways a real program has."""
    if "--help" in argv:
        sys.stdout.write(f"{_USAGE}\n")
        return 0
    given = _flags(argv)
    missing = [flag for flag in _NEEDED if flag not in given]
    if missing:
        sys.stderr.write(f"error: {missing[0]} is missing\nhint: {_USAGE.splitlines()[0]}\n")
        return 2
    prompt = sys.stdin.read()
    with open(given["--reply"], encoding="utf-8") as file:
        reply = json.load(file)
    session, base = given["--session-id"], given.get("--resume", "")
    _say({"type": "system", "subtype": "init", "session_id": session, "cwd": os.getcwd()})
    denials = []
    for number, tool in enumerate(reply.get("denied", [])):
        name, _, inner = tool.rstrip(")").partition("(")
        denials.append({"tool_name": name, "tool_use_id": f"d{number}", "tool_input": {"command": inner.rstrip(":*")}})
    for tool in reply.get("tools", []):
        content = [{"type": "tool_use", "id": "t", "name": tool.get("name"), "input": tool.get("input")}]
        _say({"type": "assistant", "message": {"content": content}})
        _say({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t"}]}})
    for path, text in reply.get("writes", {}).items():
        _write(path, text, given.get("--task-folder", ""))
    if reply.get("silent"):
        time.sleep(86400)
    time.sleep(reply.get("delay", 0))
    cap = float(given.get("--max-budget-usd", 0)) if reply.get("capped") else 0.0
    return _end(reply, session, base, prompt, given["--sessions"], cap, denials)


def _write(path: str, text: str, task_folder: str) -> None:
    from raymond.system.folders import write_for

    if os.path.exists(path) and stat.S_ISFIFO(os.lstat(path).st_mode):
        # A program of its own may wait for a reader, and a test may let it wait.
        with open(path, "w", encoding="utf-8") as pipe:
            pipe.write(text)
    else:
        write_for(os.getcwd(), task_folder, path, text)


def _end(
    reply: dict[str, Any], session: str, base: str, prompt: str, sessions: str, cap: float, denials: list[Any]
) -> int:
    usage = {"input_tokens": reply.get("tokens_in", 0), "output_tokens": reply.get("tokens_out", 0)}
    capped = 0 < cap < reply.get("cost", 0.0)
    cost = cap if capped else reply.get("cost", 0.0)
    result = {"type": "result", "session_id": session, "total_cost_usd": cost, "usage": usage}
    result["permission_denials"] = denials
    used = {"costUSD": cost, "inputTokens": usage["input_tokens"], "outputTokens": usage["output_tokens"]}
    result["model_usage_since_last_result"] = {"scripted": used}
    kind = reply.get("fail", "")
    if kind == "crash":
        sys.stderr.write(reply.get("error") or "scripted failure: crash")
        return 1
    if kind:
        after = reply.get("retry_after", 0.0)
        error = reply.get("error") or f"scripted failure: {kind}"
        retry_at = time.time() + after if after else 0.0
        if reply.get("only_model"):
            about = {"status": "rejected", "resetsAt": retry_at, "rateLimitType": "seven_day_opus"}
            _say({"type": "rate_limit_event", "rate_limit_info": about})
        _say({**result, "is_error": True, "api_error": kind, "result": error, "retry_at": retry_at})
        return 1
    text = "" if capped else reply.get("text", "")
    turn = {"base": base, "prompt": prompt, "reply": text, "cost": cost}
    turn |= {"tokens_in": usage["input_tokens"], "tokens_out": usage["output_tokens"]}
    os.makedirs(sessions, 0o700, exist_ok=True)
    aside = os.path.join(sessions, f".{session}")
    with open(aside, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        json.dump(turn, file)
    os.replace(aside, os.path.join(sessions, f"{session}.json"))
    if capped:
        _say({**result, "is_error": True, "subtype": "error_max_budget_usd", "errors": ["scripted failure: the cap"]})
        return 1
    _say({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
    _say({**result, "is_error": False, "result": text})
    return 0


def _flags(argv: list[str]) -> dict[str, str]:
    names = "--reply --sessions --session-id --resume --output-format --max-budget-usd --task-folder"
    with_value = {*names.split()}
    return {flag: argv[at + 1] for at, flag in enumerate(argv) if flag in with_value}


def _say(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Started by its path with -I: what Python looks through then need not include a checkout of Raymond.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path += [os.path.dirname(package)]
    sys.exit(main(sys.argv[1:]))
