"""Whether there is another iteration: what became of the last one, what it said, and the limits decide."""

# /// raymond
# retries: 2
# ///

from raymond.loops import iterations, turnover
from raymond.loops.step import Step, document, end, tag

step = Step()
ledger = iterations.collected(step)

if step.settings.goal and ledger.unjudged and not ledger.ended:
    end(tag("fork", "GOAL.py", {"reply": ledger.unjudged, "goal": step.settings.goal}), iterations.wait(ledger))
if iterations.over(step, ledger):
    if asked := turnover.closing(step, ledger):
        end(*asked)
    end(tag("result", document(ledger.write())))
if question := iterations.asks(step, ledger):
    iterations.write_state(step, ledger, "paused")
    end(tag("fork", "PAUSE.py", {"question": question}), iterations.wait(ledger))
end(*iterations.begin(step, ledger))
