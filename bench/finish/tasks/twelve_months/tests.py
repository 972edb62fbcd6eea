"""Hidden tests of twelve_months: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.text("months/01.txt").strip() == "52"


def step_2(ws):
    assert ws.text("months/02.txt").strip() == "47"


def step_3(ws):
    assert ws.text("months/03.txt").strip() == "44"


def step_4(ws):
    assert ws.text("months/04.txt").strip() == "44"


def step_5(ws):
    assert ws.text("months/05.txt").strip() == "52"


def step_6(ws):
    assert ws.text("months/06.txt").strip() == "60"


def step_7(ws):
    assert ws.text("months/07.txt").strip() == "62"


def step_8(ws):
    assert ws.text("months/08.txt").strip() == "60"


def step_9(ws):
    assert ws.text("months/09.txt").strip() == "54"


def step_10(ws):
    assert ws.text("months/10.txt").strip() == "57"


def step_11(ws):
    assert ws.text("months/11.txt").strip() == "64"


def step_12(ws):
    assert ws.text("months/12.txt").strip() == "62"
