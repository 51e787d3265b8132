import json
import os

for one in json.loads(os.environ["RAYMOND_RESULTS"]):
    print(f"<print>{one['agent']} {one['status']} {one['result']}{one['error']}</print>")
print("<result>reported</result>")
