"""Internal mode: ask for the item, with the prompt for an agent. The gate only seals, where agents work `here`."""

# /// raymond
# retries: 2
# gate: "{{sealed}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# ///

from raymond.loops import internal
from raymond.loops.step import Step, end, tag

step = Step()
internal.note(step)
end(tag("ask", internal.prompt(step), {"next": "HANDED.py"}))
