"""Hidden tests of log_analysis: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.text("answers/requests.txt").strip() == "11"


def step_2(ws):
    assert ws.text("answers/errors.txt").strip() == "2"


def step_3(ws):
    assert ws.text("answers/slowest.txt").strip() == "/order"


def step_4(ws):
    assert ws.text("answers/paths.txt").split() == ["/cart", "/help", "/home", "/order", "/search"]


def step_5(ws):
    assert float(ws.text("answers/median.txt")) == 31


def step_6(ws):
    assert ws.text("answers/busiest.txt").strip() == "09"


def step_7(ws):
    assert ws.text("answers/README.md").strip()


def step_8(ws):
    assert ws.exists("logs/done/access.log")
    assert not ws.exists("logs/access.log")
