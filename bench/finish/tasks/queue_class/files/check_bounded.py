from bounded import Bounded, Full

queue = Bounded(2)
assert queue.peek() is None
queue.put(1)
assert queue.free == 1
queue.put(2)
try:
    queue.put(3)
except Full:
    pass
else:
    raise SystemExit("Full was not raised")
assert queue.peek() == 1
assert queue.get() == 1
assert queue.get() == 2
print("ok")
