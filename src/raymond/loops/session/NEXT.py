"""Which item is next: what became of the last one, the queue as it is now, and the limits decide."""

# /// raymond
# retries: 2
# ///

from raymond.loops import turnover
from raymond.loops.step import Step, document, end, tag

step = Step()
ledger = turnover.collected(step)
looked = turnover.look(step, ledger)

if turnover.over(step, ledger) or (not turnover.asks(step, ledger) and turnover.ended(step, ledger, looked)):
    turnover.ended(step, ledger, looked)
    if asked := turnover.closing(step, ledger):
        end(*asked)
    end(tag("result", document(ledger.write())))

question = turnover.asks(step, ledger)
if question:
    turnover.write_state(step, ledger, "paused", looked)
    end(tag("fork", "PAUSE.py", {"question": question}), turnover.wait(ledger))

end(*turnover.begin(step, ledger, looked))
