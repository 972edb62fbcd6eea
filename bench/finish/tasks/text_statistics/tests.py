"""Hidden tests of text_statistics: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.module("textstat.py").words("Dark, and DEEP.") == ["dark", "and", "deep"]


def step_2(ws):
    assert ws.module("textstat.py").count("a b a") == {"a": 2, "b": 1}


def step_3(ws):
    assert ws.module("textstat.py").longest(ws.text("poem.txt")) == "promises"


def step_4(ws):
    module = ws.module("textstat.py")
    assert module.average("a bb ccc") == 2.0
    assert module.average("...") == 0


def step_5(ws):
    text = ws.text("test_textstat.py")
    assert text.count("assert") >= 4
    ws.run("python3", "test_textstat.py")
