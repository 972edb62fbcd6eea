"""Hidden tests of queue_class: one function per step, run after the agent has stopped."""


def step_1(ws):
    queue = ws.module("bounded.py").Bounded(3)
    queue.put("a")
    queue.put("b")
    assert queue.get() == "a"


def step_2(ws):
    module = ws.module("bounded.py")
    queue = module.Bounded(1)
    queue.put(1)
    try:
        queue.put(2)
    except module.Full:
        return
    raise AssertionError("Full was not raised")


def step_3(ws):
    queue = ws.module("bounded.py").Bounded(2)
    queue.put(1)
    assert queue.free == 1


def step_4(ws):
    queue = ws.module("bounded.py").Bounded(2)
    assert queue.peek() is None
    queue.put(5)
    assert queue.peek() == 5
    assert queue.get() == 5
