"""Hidden tests of todo_parser: one function per step, run after the agent has stopped."""


def step_1(ws):
    parse = ws.module("parse.py")
    assert parse.priority("(A) x") == "A"
    assert parse.priority("Buy milk") is None


def step_2(ws):
    parse = ws.module("parse.py")
    assert parse.date("(A) 2026-05-01 Call") == "2026-05-01"
    assert parse.date("Call") is None


def step_3(ws):
    assert ws.module("parse.py").projects("Write +work +q2 @desk") == ["work", "q2"]


def step_4(ws):
    assert ws.module("parse.py").contexts("Write +work @desk @home") == ["desk", "home"]


def step_5(ws):
    assert ws.module("parse.py").text("x (B) 2026-04-20 Write report +work +q2 @desk") == "Write report"


def step_6(ws):
    parse = ws.module("parse.py")
    assert parse.done("x Call")
    assert not parse.done("xylophone")


def step_7(ws):
    found = ws.module("parse.py").parse("(A) 2026-05-01 Call Ben +work @phone")
    assert found == {
        "priority": "A",
        "date": "2026-05-01",
        "projects": ["work"],
        "contexts": ["phone"],
        "text": "Call Ben",
        "done": False,
    }


def step_8(ws):
    found = ws.json("tasks.json")
    assert [task["text"] for task in found] == ["Call Ben", "Buy milk", "Write report"]
    assert found[2]["done"] is True
