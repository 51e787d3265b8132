"""Which item is next: as in the loop that has agents of its own, but an item begins only when somebody asks for it."""

# /// raymond
# retries: 2
# ///

from raymond.loops import handing, parking, turnover
from raymond.loops.step import Step, document, end, tag

step = Step()
between = parking.look(step)  # before what a person left for the queue is written there
ledger = turnover.collected(step)
parking.settle(step, ledger, between)
looked = turnover.look(step, ledger)
handing.limit(step, ledger)

question = parking.question(ledger, turnover.asks(step, ledger))
if question:
    turnover.write_state(step, ledger, "paused", looked)
    end(tag("fork", "PAUSE.py", {"question": question}), turnover.wait(ledger))

if turnover.over(step, ledger) or (not turnover.asks(step, ledger) and turnover.ended(step, ledger, looked)):
    turnover.ended(step, ledger, looked)
    end(tag("result", document(ledger.write())))

question = turnover.asks(step, ledger)
if question:
    turnover.write_state(step, ledger, "paused", looked)
    end(tag("fork", "PAUSE.py", {"question": question}), turnover.wait(ledger))

if not handing.is_asked_for(step):
    turnover.write_state(step, ledger, "running", looked)
    end(tag("fork", "PARK.py"), turnover.wait(ledger))

changed, ledger.between = ledger.between, []
tags = turnover.begin(step, ledger, looked, changed)
parking.check_still(step, ledger)
end(*tags)
