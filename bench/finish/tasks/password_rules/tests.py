"""Hidden tests of password_rules: one function per step, run after the agent has stopped."""


def step_1(ws):
    rules = ws.module("rules.py")
    assert rules.too_short("abc")
    assert rules.too_short("a" * 12) is None


def step_2(ws):
    rules = ws.module("rules.py")
    assert rules.no_digit("abc")
    assert rules.no_digit("abc1") is None


def step_3(ws):
    rules = ws.module("rules.py")
    assert rules.no_upper("abc")
    assert rules.no_upper("aBc") is None


def step_4(ws):
    rules = ws.module("rules.py")
    assert rules.common("letmein12345")
    assert rules.common("Correct-Horse-9") is None


def step_5(ws):
    rules = ws.module("rules.py")
    assert rules.problems("Correct-Horse-9") == []
    assert len(rules.problems("password1234")) == 2
