"""A slow and simple run to compare the real one with: plain dictionaries, everything scanned again at every moment.

Written from the pages (Transitions, Variables, Policy, the table of failures), not from the code. It keeps no queue, no
counter and no timer: who is owed, which wait is over and what is due is looked up among all agents each time. A workflow
is a dictionary `state -> policy`, an output a list of dictionaries, one for each tag.
"""

from typing import Any

Said = list[dict[str, Any]]
SECONDS = {"10s": 10.0, "5m": 300.0}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ENDINGS = (".md", ".sh", ".py", ".ps1", ".bat")
KEPT = ("session", "backend", "cwd", "visits", "model", "meter")
"""What a call puts aside and a result brings back."""
NEEDED = {"goto": ["target"], "reset": ["target"], "result": ["payload"], "fork": ["target", "next"]}
NEEDED |= {
    "wait": ["target"],
    "call": ["target", "return"],
    "function": ["target", "return"],
    "ask": ["payload", "next"],
}
NAMING = ["target", "next", "return", "timeout_next", "failed_next"]
DECIDING = ["next", "return", "timeout", "timeout_next", "failed_next", "failures", "approve"]


def cents(dollars: float) -> int:
    """Hundredths of a cent."""
    return round(dollars * 10_000)


class Reference:
    """One run."""

    def __init__(self, states: dict[str, dict[str, Any]], entry: str, limits: dict[str, Any]) -> None:
        self.states = states
        self.limits = dict(limits)
        self.now = 0.0
        self.moments = 0
        self.steps = 0
        self.iterations = 0
        self.cost = 0.0
        self.turns = 0
        self.unpriced = 0
        self.denied: list[str] = []
        self.tools: list[str] = []
        self.queues: list[str] = []
        self.agents: dict[str, dict[str, Any]] = {}
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.closed: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.stopped = ""
        self.stopped_at = ""
        self.ended = ""
        self.unhandled = 0
        self.born("main", entry, parent="", cwd="", text=limits["input"], variables={}, wake=0.0)

    # what can be looked up

    def pool(self, state: str) -> str:
        return self.states[state].get("backend", "claude") if state.endswith(".md") else "scripts"

    def queue(self, agent: dict[str, Any]) -> str:
        """Where a ready agent waits: for the scripts, for a backend, or for one closed model of it."""
        return agent["held"] or self.pool(agent["state"])

    def model(self, agent: dict[str, Any]) -> str:
        return str(self.states[agent["state"]].get("model") or agent["model"])

    def find(self, target: str) -> str | None:
        if target in self.states:
            return target
        found = [target + ending for ending in ENDINGS if target + ending in self.states]
        return found[0] if len(found) == 1 else None

    def shut(self, pool: str) -> bool:
        return pool in self.closed and self.closed[pool]["person"]

    def owed(self) -> dict[str, list[str]]:
        if self.stopped or self.ended:
            return {}
        owed: dict[str, list[str]] = {}
        chosen: list[str] = []
        for queue in self.queues:
            ready = [one for one in self.agents.values() if one["status"] == "ready" and self.queue(one) == queue]
            for one in sorted(ready, key=lambda one: one["moment"]):
                if self.has_room(queue, owed) and (queue == "scripts" or self.has_money(chosen)):
                    owed.setdefault(queue, []).append(one["name"])
                    chosen += [one["name"]] if queue != "scripts" else []
        return owed

    def has_room(self, queue: str, owed: dict[str, list[str]]) -> bool:
        """Whether one more may start: a model that is tried has one place, and it is one of its backend's."""
        at_work = [agent["pool"] for agent in self.agents.values() if agent["status"] == "running"]
        at_work += [other for other, names in owed.items() for _ in names]
        backend = queue.split("/")[0]
        if queue == "scripts":
            return bool(at_work.count(queue) < self.limits["scripts"])
        for name in {queue, backend}:
            most = self.limits["turns"]
            if name in self.closed:
                most = 1 if self.closed[name]["probing"] else 0
            if len([one for one in at_work if one == name or one.startswith(f"{name}/")]) >= most:
                return False
        return True

    # money, counted in hundredths of a cent

    def reserved(self) -> int:
        return sum(cents(agent["cap"]) for agent in self.agents.values() if agent["status"] == "running")

    def left(self) -> int:
        return cents(self.limits["budget"] - self.cost) - self.reserved()

    def has_money(self, chosen: list[str]) -> bool:
        """Whether a turn may start besides those chosen: each has five cents at least, the very last what there is."""
        if self.limits["max_turns"] and self.turns + len(chosen) >= self.limits["max_turns"]:
            return False
        if not self.limits["budget"] or self.left() >= (len(chosen) + 1) * 500:
            return True
        return not chosen and not self.reserved()

    def cap(self, agent: dict[str, Any]) -> float:
        """Dollars that the next turn of `agent` may cost: between all who could be in one, or as its visit says."""
        own = self.states[agent["state"]].get("budget", 0.0)
        of_visit = max(cents(own - agent["visit_cost"]), 100) if own else 0
        if not self.limits["budget"]:
            return of_visit / 10_000
        rest = max(self.left(), 100)
        if of_visit:
            return min(of_visit, rest) / 10_000
        words = [(one["status"], one["pool"]) for one in self.agents.values()]
        moving = [
            word for word, pool in words if word in ("ready", "sleeping") or (word, pool) == ("running", "scripts")
        ]
        in_turns = [pool for word, pool in words if word == "running" and pool != "scripts"]
        backends = {queue.split("/")[0] for queue in self.queues} - {"scripts"}
        free = self.limits["turns"] * len(backends) - len(in_turns)
        return float(max(rest / max(min(len(moving), free), 1), min(rest, 500)) / 10_000)

    def overspent(self, agent: dict[str, Any], cost: float) -> bool:
        own = self.states[agent["state"]].get("budget", 0.0)
        return bool(own) and agent["visit_cost"] + cost >= own

    def spend(self, agent: dict[str, Any], cost: float, unknown: bool, denied: tuple[str, ...]) -> None:
        self.cost += cost
        agent["visit_cost"] += cost
        self.unpriced += unknown
        self.denied += denied

    def due(self) -> float | None:
        times = [closed["until"] for closed in self.closed.values() if closed["until"]]
        times += [agent["wake"] for agent in self.agents.values() if agent["wake"]]
        return min(times) if times else None

    def living(self, names: list[str]) -> list[str]:
        return [name for name in names if name in self.agents and self.agents[name]["status"] != "failed"]

    def reached(self) -> str:
        """The limit that is used up; empty when none is."""
        most, budget, turns = self.limits["max_iterations"], self.limits["budget"], self.limits["max_turns"]
        if most and self.iterations >= most:
            return "iterations"
        if budget and self.cost >= budget:
            return "budget"
        if turns:
            return "turns" if self.turns >= turns else ""
        return "unpriced" if self.unpriced >= 200 else ""

    def status(self) -> str:
        if self.ended:
            return self.ended
        if self.stopped:
            return "paused" if self.stopped in ("paused", "signal") else "stopped"
        words = [agent["status"] for agent in self.agents.values()]
        waits_for_a_person = [
            agent for agent in self.agents.values() if agent["status"] == "ready" and self.shut(self.queue(agent))
        ]
        if words.count("ready") > len(waits_for_a_person) or "running" in words or "sleeping" in words:
            return "running"
        if "paused" in words or waits_for_a_person:
            return "paused"
        return "waiting" if "asking" in words or "waiting" in words else "running"

    def exit_code(self) -> int:
        if any(self.shut(pool) and closed["kind"] in ("auth", "billing") for pool, closed in self.closed.items()):
            return 5
        if self.stopped == "limit" and not self.ended:
            return 4
        if any(agent["status"] == "failed" for agent in self.agents.values()):
            return 1
        return {"completed": 0, "failed": 1}.get(self.ended, 3)

    # what happens to one agent

    def born(
        self, name: str, state: str, *, parent: str, cwd: str, text: str, variables: dict[str, str], wake: float
    ) -> None:
        self.agents[name] = {
            "name": name,
            "parent": parent,
            "cwd": cwd,
            "variables": variables,
            "forked": [],
            "forks": 0,
            "session": "",
            "backend": "",
            "model": "",
            "meter": (),
            "held": "",
            "frames": [],
            "visits": {},
            "pool": "",
        }
        self.enter(self.agents[name], state, text, wake=wake)

    def enter(self, agent: dict[str, Any], state: str, text: str, *, wake: float = 0.0, cause: str = "") -> None:
        visits = dict(agent["visits"])
        visits[state] = visits.get(state, 0) + 1
        agent.update(state=state, visits=visits, input=text, results=None, results_are_input=False)
        agent.update(cause=cause, failed_for="", given_up=False)
        agent.update(attempt=0, failures=0, reminders=0, freshened=False, reminded=False, rest={}, wake=wake)
        agent.update(visit_cost=0.0, held="", told="")
        self.become(agent, "sleeping" if wake else "ready")

    def become(self, agent: dict[str, Any], status: str) -> None:
        agent["status"] = status
        self.moments += 1
        agent["moment"] = self.moments
        if status == "ready" and self.queue(agent) not in self.queues:
            self.queues.append(self.queue(agent))

    def land(self, visits: dict[str, int], target: str) -> str | None:
        """Where a move to `target` leads when visits are counted; None when it cannot be made."""
        passed: list[str] = []
        while True:
            state = self.find(target)
            if state is None or state in passed:
                return None
            policy = self.states[state]
            if not policy.get("max_visits") or visits.get(state, 0) < policy["max_visits"]:
                return state
            if not policy.get("then"):
                return None
            passed.append(state)
            target = policy["then"]

    def visit_failed(self, agent: dict[str, Any], error: str) -> None:
        target = self.states[agent["state"]].get("on_error")
        state = self.land(agent["visits"], target) if target else None
        if state:
            self.enter(agent, state, "", cause=error)
        else:
            self.agent_failed(agent, error)

    def agent_failed(self, agent: dict[str, Any], error: str) -> None:
        agent.update(failed_for=error, wake=0.0)
        self.become(agent, "failed")

    def returned(self, agent: dict[str, Any], text: str) -> None:
        if not agent["frames"]:
            self.outcomes[agent["name"]] = {"status": "done", "state": agent["state"], "result": text}
            del self.agents[agent["name"]]
            return
        frame = agent["frames"][-1]
        state = self.land(frame["visits"], frame["state"])
        if state is None:
            self.visit_failed(agent, "visits")
            return
        agent["frames"] = agent["frames"][:-1]
        agent.update({key: frame[key] for key in KEPT})
        self.enter(agent, state, text)

    def ask_over(self, agent: dict[str, Any], target: str, answer: str) -> None:
        state = self.land(agent["visits"], target)
        if state is None:
            self.visit_failed(agent, "visits")
        else:
            self.enter(agent, state, answer)

    def wait_over(self, agent: dict[str, Any], target: str) -> None:
        rest = agent["rest"]
        failed = [name for name in agent["forked"] if name in self.agents and name not in self.living(agent["forked"])]
        target = rest["failed_next"] or target if failed else target
        state = self.land(agent["visits"], target)
        if state is None:
            self.visit_failed(agent, "visits")
            return
        self.unhandled += 0 if rest["failed_next"] or rest["failures"] else len(failed)
        given = rest["input"]
        results = []
        for name in list(agent["forked"]):
            if name in self.living(agent["forked"]):
                continue
            if name in self.agents:
                child = self.agents.pop(name)
                self.outcomes[name] = {"status": "failed", "state": child["state"], "result": ""}
            results.append({"agent": name, **self.outcomes[name]})
            agent["forked"] = [other for other in agent["forked"] if other != name]
        self.enter(agent, state, given or "")
        agent.update(results=results, results_are_input=given is None)

    def settle(self) -> None:
        """End every wait whose agents have ended; stop at a limit. Until nothing changes."""
        changed = True
        while changed:
            changed = False
            for agent in list(self.agents.values()):
                if agent["status"] == "waiting" and not self.living(agent["forked"]):
                    self.wait_over(agent, agent["rest"]["target"])
                    changed = True

    # what comes in

    def begin(self, name: str, session: str) -> dict[str, Any]:
        """The step of `name` starts; what must be said of it."""
        agent = self.agents[name]
        pool = self.pool(agent["state"])
        model = self.model(agent)
        if pool != "scripts" and f"{pool}/{model or 'default'}" in self.closed and not agent["held"]:
            agent["held"] = f"{pool}/{model or 'default'}"
            self.become(agent, "ready")
            return {"held": agent["held"]}
        cap = 0.0 if pool == "scripts" else self.cap(agent)
        self.turns += pool != "scripts"
        if not agent["reminded"]:
            self.steps += 1
            agent["step"] = self.steps
            agent["attempt"] += 1
            agent["turn"] = 0
        agent["turn"] += 1
        base = agent["session"] if agent["backend"] == pool else ""
        agent.update(pool=agent["held"] or pool, held="", turn_session=session, turn_model=model, cap=cap)
        self.become(agent, "running")
        return {
            "base": base,
            "attempt": agent["attempt"],
            "turn": agent["turn"],
            "step": agent["step"],
            "model": model if pool != "scripts" else "",
            "cap": cap,
        }

    def named(self, name: str, session: str) -> None:
        self.agents[name]["turn_session"] = session

    def output(
        self,
        name: str,
        said: Said,
        cost: float,
        directories: dict[str, Any],
        *,
        meter: tuple[int, ...] = (),
        unknown: bool = False,
        denied: tuple[str, ...] = (),
    ) -> None:
        agent = self.agents[name]
        script = agent["pool"] == "scripts"
        tags = self.meant(agent, said)
        overspent = self.overspent(agent, cost)
        self.spend(agent, cost, unknown, denied)
        if denied and self.states[agent["state"]].get("on_denied") == "pause":
            self.goes_on(agent, "blocked", meter)
            agent["failed_for"] = "denied"
            self.become(agent, "paused")
        elif tags is None or not self.possible(agent, tags, directories):
            if not script and agent["reminders"] < 3 and not overspent:
                self.goes_on(agent, "rejected", meter)
            else:
                self.opened(agent["pool"])
                self.iterations += 1
                agent["failures"] += 1
                self.visit_failed(agent, "script" if script else "cap" if overspent else "unreadable")
        else:
            self.iterations += 1
            self.opened(agent["pool"])
            if not script:
                self.keep_conversation(agent, meter)
            self.follow(agent, tags, directories)
        self.settle()
        self.stop_at_limit()

    def keep_conversation(self, agent: dict[str, Any], meter: tuple[int, ...]) -> None:
        agent.update(session=agent["turn_session"], backend=agent["pool"].split("/")[0], meter=meter)

    def goes_on(self, agent: dict[str, Any], told: str, meter: tuple[int, ...]) -> None:
        """Another turn of the same step in the same conversation, told why."""
        self.keep_conversation(agent, meter)
        agent.update(reminded=True, told=told, reminders=agent["reminders"] + (told == "rejected"))
        self.become(agent, "ready")
        self.opened(agent["pool"])

    def opened(self, answered: str) -> None:
        """A backend that answers is open, and so is the model that was tried; those who waited for it go back."""
        for pool in [answered.split("/")[0], answered]:
            closed = self.closed.get(pool)
            if not closed or not (closed["probing"] or (closed["kind"] == "overload" and not closed["person"])):
                continue
            del self.closed[pool]
            back = [one for one in self.agents.values() if one["status"] == "ready" and one["held"] == pool]
            for one in sorted(back, key=lambda one: one["moment"]):
                one["held"] = ""
                self.become(one, "ready")

    def stop_at_limit(self, limit: str = "") -> None:
        """The run stops at a limit: at this one, or at the one that is used up."""
        limit = limit or self.reached()
        if limit and not self.stopped:
            self.stopped, self.stopped_at = "limit", limit

    def meant(self, agent: dict[str, Any], said: Said) -> Said | None:
        """The transitions an output stands for, or None when it cannot be read or is not allowed."""
        policy = self.states[agent["state"]]
        allowed = policy.get("allowed", [])
        only = allowed[0] if len(allowed) == 1 else None
        complete = only is not None and all(only.get(key) for key in NEEDED[only["tag"]])
        if complete and (policy.get("force_implicit") or not said):
            return [dict(only or {})]
        forks = [tag for tag in said if tag["tag"] == "fork"]
        others = [tag for tag in said if tag["tag"] != "fork"]
        nexts = {tag.get("next", "") for tag in forks}
        if not forks:
            readable = len(others) == 1
        elif others:
            readable = len(others) == 1 and others[0]["tag"] in ("goto", "wait") and nexts == {""}
        else:
            readable = len(nexts) == 1 and nexts != {""}
        if not readable:
            return None
        on = next(iter(nexts), "") or (others[0].get("target", "") if others else "")
        for tag in said:
            plain = set(tag) == {"tag", "target"} and tag["tag"] == "goto" and bool(forks)
            onward = any(
                one["tag"] == "fork" and "next" in self.said_of(one, allowed) and self.matches(one, fork, on, allowed)
                for one in allowed
                for fork in forks
            )
            if allowed and not (plain and onward) and not any(self.matches(one, tag, on, allowed) for one in allowed):
                return None
        return [*forks, *others]

    def matches(self, allowed: dict[str, str], tag: dict[str, Any], on: str, among: Said) -> bool:
        if tag["tag"] != allowed["tag"]:
            return False
        known = {self.find(one[key]) for one in among for key in NAMING if key in one}
        said = self.said_of(allowed, among)
        for key in {*said, *allowed, *DECIDING}:
            actual = tag.get(key, "") or (on if key == "next" and tag["tag"] == "fork" and key in said else "")
            wanted = allowed.get(key, "")
            if key in NAMING:
                wanted, actual = self.find(wanted) or wanted, self.find(actual) or actual
            if key in said and key not in allowed:
                if key in NAMING and known and actual not in known:
                    return False
            elif wanted != actual:
                return False
        return True

    def said_of(self, allowed: dict[str, str], among: Said) -> list[str]:
        """What has to be said, by the policy or by the agent."""
        elsewhere = allowed["tag"] == "fork" and any(one["tag"] in ("goto", "wait") for one in among)
        return [key for key in NEEDED[allowed["tag"]] if key in allowed or key != "next" or not elsewhere]

    def possible(self, agent: dict[str, Any], tags: Said, directories: dict[str, Any]) -> bool:
        for tag in tags:
            names = [tag[key] for key in NAMING if tag.get(key)]
            if any(self.find(name) is None for name in names):
                return False
            if tag.get("cd") and not isinstance(directories[tag["cd"]], str):
                return False
        in_place = agent["pool"].split("/")[0] in self.limits["in_place"]
        if in_place and tags[-1]["tag"] == "call" and not self.states[agent["state"]].get("in_place"):
            return False
        forks = [tag for tag in tags if tag["tag"] == "fork"]
        others = [name for name, one in self.agents.items() if name != "main" and one["status"] != "failed"]
        return not forks or len(others) + len(forks) <= self.limits["agents"]

    def follow(self, agent: dict[str, Any], tags: Said, directories: dict[str, Any]) -> None:
        before = dict(agent)
        last = tags[-1]
        if last["tag"] == "fork":
            last = {"tag": "goto", "target": last["next"]}
        if last["tag"] in ("goto", "reset", "wait", "ask"):
            usual = last.get("target") or last["next"]
            leads = [usual, last.get("timeout_next") or usual, last.get("failed_next") or usual]
            if None in [self.land(agent["visits"], target) for target in leads]:
                self.visit_failed(agent, "visits")
                return
        for tag in tags:
            if tag["tag"] == "fork":
                self.fork(agent, tag, before, directories)
        text = self.rendered(before, last)
        match last["tag"]:
            case "goto" | "reset":
                state = self.land(agent["visits"], last["target"]) or ""
                if last["tag"] == "reset":
                    agent.update(session="", backend="", meter=())
                    agent["cwd"] = directories[last["cd"]] if last.get("cd") else agent["cwd"]
                self.enter(agent, state, text or "", wake=self.later(last.get("after")))
            case "call" | "function":
                frame = {key: agent[key] for key in KEPT}
                agent["frames"] = [*agent["frames"], {**frame, "state": self.find(last["return"])}]
                agent["visits"] = {}
                if last["tag"] == "function":
                    agent.update(session="", backend="", meter=(), model=last.get("model") or agent["model"])
                self.enter(agent, self.find(last["target"]) or "", text or "")
            case "wait":
                rest = {"target": last["target"], "input": text, "timeout_next": last.get("timeout_next", "")}
                rest |= {"failed_next": last.get("failed_next", ""), "failures": last.get("failures", "")}
                agent.update(rest=rest, wake=self.later(last.get("timeout")))
                self.become(agent, "waiting")
            case "ask":
                rest = {"target": last["next"], "timeout_next": last.get("timeout_next", "")}
                agent.update(rest=rest, wake=self.later(last.get("timeout")))
                self.become(agent, "asking")
            case "result":
                self.returned(agent, last["payload"])
            case _:
                raise AssertionError(last)

    def fork(self, agent: dict[str, Any], tag: dict[str, Any], before: dict[str, Any], directories: Any) -> None:
        agent["forks"] += 1
        state = self.find(tag["target"]) or ""
        letters = [letter for letter in state.split(".")[0].lower() if letter in LETTERS]
        name = f"{agent['name']}_{''.join(letters[:6]) or 'agent'}{agent['forks']}"
        agent["forked"] = [*agent["forked"], name]
        known = ("tag", "target", "next", "input", "after", "cd")
        self.born(
            name,
            state,
            parent=agent["name"],
            cwd=directories[tag["cd"]] if tag.get("cd") else agent["cwd"],
            text=self.rendered(before, tag) or "",
            variables={key: value for key, value in tag.items() if key not in known},
            wake=self.later(tag.get("after")),
        )

    def rendered(self, agent: dict[str, Any], tag: dict[str, Any]) -> str | None:
        text = tag.get("input")
        if text is None:
            return None
        visit = str(agent["visits"][agent["state"]])
        for name, value in (("visit", visit), ("agent_id", agent["name"]), ("input", agent["input"])):
            text = text.replace("{{" + name + "}}", value)
        return str(text)

    def later(self, time: str | None) -> float:
        return self.now + SECONDS[time] if time else 0.0

    def failure(
        self,
        name: str,
        kind: str,
        cost: float,
        retry_at: float,
        *,
        only_model: bool = False,
        meter: tuple[int, ...] = (),
        unknown: bool = False,
        denied: tuple[str, ...] = (),
    ) -> None:
        agent = self.agents[name]
        overspent = self.overspent(agent, cost)
        self.spend(agent, cost, unknown, denied)
        if kind == "cap" and cost and not overspent:
            self.goes_on(agent, "capped", meter)
            self.stop_at_limit()
            return
        self.iterations += kind not in ("limit", "overload")
        self.turns -= kind in ("limit", "overload")
        agent["reminded"] = False
        if kind in ("limit", "overload"):
            self.become(agent, "ready")
            self.rest(agent, kind, retry_at, only_model)
        elif kind in ("auth", "billing"):
            self.give_to_a_person(agent, kind, self.now)
        elif kind in ("context", "refusal") and agent["freshened"]:
            self.visit_failed(agent, kind)
        elif overspent:
            agent["failures"] += 1
            self.visit_failed(agent, kind)
        elif kind in ("context", "refusal"):
            agent.update(freshened=True, session="", meter=(), told="")
            self.become(agent, "ready")
        else:
            agent["failures"] += 1
            retries = self.states[agent["state"]].get("retries", 0 if agent["pool"] == "scripts" else 3)
            if kind == "silent" and agent["failures"] <= retries:
                self.become(agent, "ready")
            elif kind == "crash" and agent["failures"] <= retries:
                agent["wake"] = self.now + {1: 1.0, 2: 5.0}.get(agent["failures"], 15.0)
                self.become(agent, "sleeping")
            else:
                self.visit_failed(agent, kind)
        self.settle()
        self.stop_at_limit()

    def rest(self, agent: dict[str, Any], kind: str, retry_at: float, only_model: bool) -> None:
        """The backend of `agent`, or its model alone, is closed for a while, unless it is already."""
        pool = agent["pool"].split("/")[0]
        pool = f"{pool}/{agent['turn_model'] or 'default'}" if only_model else pool
        before = self.closed.get(pool)
        if before and (before["person"] or before["until"] > self.now):
            return
        same = before is not None and before["kind"] == kind
        tries = before["tries"] + 1 if before and same else 0
        since = before["since"] if before and same else self.now
        if kind == "limit" and not retry_at:
            wait = 15 * 60.0
        else:
            wait = [1.0, 5.0, 15.0, 60.0][tries] if tries < 4 else 5 * 60.0
        if kind == "overload" and self.now - since > self.limits["patience"]:
            self.give_to_a_person(agent, kind, since)
            return
        until = retry_at if retry_at > self.now else self.now + wait
        self.closed[pool] = self.closing(kind, tries, since, until=until, person=False)
        if kind == "limit" and until - since > self.limits["max_wait"]:
            self.stop_at_limit("wait")

    def give_to_a_person(self, agent: dict[str, Any], kind: str, since: float) -> None:
        """The backend is closed until a person resumes; its agents pause."""
        pool = agent["pool"].split("/")[0]
        self.closed[pool] = self.closing(kind, 0, since, until=0.0, person=True)
        for one in self.agents.values():
            if one is agent or (one["status"] == "ready" and self.pool(one["state"]) == pool):
                one["failed_for"] = kind
                self.become(one, "paused")

    def closing(self, kind: str, tries: int, since: float, *, until: float, person: bool) -> dict[str, Any]:
        return {"kind": kind, "tries": tries, "since": since, "until": until, "person": person, "probing": False}

    def interruption(self, name: str, cost: float) -> None:
        self.spend(self.agents[name], cost, unknown=False, denied=())
        self.agents[name]["reminded"] = False
        self.become(self.agents[name], "ready")
        self.stop_at_limit()

    def tick(self, now: float) -> None:
        self.now = now
        for closed in self.closed.values():
            if closed["until"] and closed["until"] <= now:
                closed.update(until=0.0, probing=True)
        while True:
            late = sorted((a["wake"], a["name"]) for a in self.agents.values() if a["wake"] and a["wake"] <= now)
            if not late:
                break
            self.wake(self.agents[late[0][1]])
            self.settle()
        failed = [agent for agent in self.agents.values() if agent["status"] == "failed"]
        if not self.ended and len(failed) == len(self.agents):
            self.ended = "failed" if failed or self.unhandled else "completed"

    def wake(self, agent: dict[str, Any]) -> None:
        rest = agent["rest"]
        agent["wake"] = 0.0
        match agent["status"]:
            case "sleeping":
                self.become(agent, "ready")
            case "asking":
                self.ask_over(agent, rest["timeout_next"] or rest["target"], "")
            case "waiting":
                self.wait_over(agent, rest["timeout_next"] or rest["target"])
            case _:
                pass

    def stop(self, kind: str) -> None:
        if self.ended:
            return
        if not self.stopped or (kind == "stop" and self.stopped in ("paused", "signal")):
            self.stopped = kind

    def resume(self, *, at_once: bool = False, fresh: bool = False) -> None:
        self.stopped = self.stopped_at = self.ended = ""
        self.closed = {pool: closed for pool, closed in self.closed.items() if not closed["person"]}
        for closed in self.closed.values():
            if at_once and closed["until"]:
                closed.update(until=0.0, probing=True)
        for agent in self.agents.values():
            if agent["status"] in ("failed", "paused") and not agent["given_up"]:
                self.retry(agent)
                if fresh:
                    agent.update(session="", backend="", meter=(), told="")
        self.stop_at_limit()
        limits = [closed["until"] - self.now for closed in self.closed.values() if closed["kind"] == "limit"]
        if not at_once and any(wait > self.limits["max_wait"] for wait in limits):
            self.stop_at_limit("wait")

    def retry(self, agent: dict[str, Any]) -> None:
        agent.update(failures=0, reminders=0, freshened=False, reminded=False, failed_for="", given_up=False)
        agent.update(visit_cost=0.0, held="")
        self.become(agent, "ready")

    def request(self, id: str, kind: str, given: dict[str, Any]) -> bool:
        """Whether a request is carried out."""
        if id in self.requests:
            return False
        self.requests.append(id)
        done = self.carried_out(kind, given)
        self.settle()
        return done

    def carried_out(self, kind: str, given: dict[str, Any]) -> bool:
        if kind == "stop":
            self.stop("stop")
            return not self.ended
        if kind == "limits":
            self.tools += given["allowed_tools"]
            known = ("budget", "max_iterations", "max_turns")
            self.limits.update({key: given[key] for key in known if given[key] is not None})
            if not self.ended:
                self.stop_at_limit()
            return True
        if kind == "answer":
            asking = [agent for agent in self.agents.values() if agent["status"] == "asking"]
            asking = [agent for agent in asking if given["agent"] in ("", agent["name"])]
            if len(asking) != 1 or not given["text"].strip():
                return False
            self.ask_over(asking[0], asking[0]["rest"]["target"], given["text"])
            return True
        agent = self.agents.get(given["agent"])
        if agent is None or agent["status"] == "running":
            return False
        if kind == "retry":
            if agent["status"] not in ("failed", "paused"):
                return False
            self.retry(agent)
        elif kind == "move":
            state = self.find(given["state"])
            if state is None:
                return False
            self.enter(agent, state, given["text"])
        elif kind == "result":
            self.returned(agent, given["text"])
        else:
            if agent["status"] == "failed":
                return False
            self.agent_failed(agent, "given up")
            agent["given_up"] = True
        return True
