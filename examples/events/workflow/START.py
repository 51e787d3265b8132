# Puts what came with the event into a file: an agent reads it there, and no shell ever sees it.
import json
import os
from pathlib import Path

text = Path(os.environ["RAYMOND_INPUT_FILE"]).read_text("utf-8")
try:
    issue = json.loads(text)["issue"]
    text = f"# {issue['title']}\n\n{issue.get('body') or ''}\n"
except (ValueError, KeyError, TypeError):
    pass  # something else happened: the agent gets it as it came

Path(os.environ["RAYMOND_TASK_FOLDER"], "event.md").write_text(text, "utf-8")
print("<goto>TRIAGE</goto>")
