"""Everything is done: each check runs once more, by what the person vouches for."""

# /// raymond
# retries: 2
# ///

from raymond.loops import next_item
from raymond.loops.step import Step, document, end, tag

end(tag("result", document(next_item.close(Step()).write())))
