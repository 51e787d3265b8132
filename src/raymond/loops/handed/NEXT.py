"""Which item is next: as in the loop that has agents of its own, but an item begins only when somebody asks for it."""

# /// raymond
# retries: 2
# ///

from raymond.loops import handing, turnover
from raymond.loops.step import Step, document, end, tag

step = Step()
ledger = turnover.collected(step)
looked = turnover.look(step, ledger)
handing.limit(step, ledger)

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

end(*turnover.begin(step, ledger, looked))
