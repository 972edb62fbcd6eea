"""Hidden tests of bank_statements: one function per step, run after the agent has stopped."""


def step_1(ws):
    rows = ws.csv("bank/all.csv")
    assert len(rows) == 10
    assert [row["date"] for row in rows] == sorted(row["date"] for row in rows)


def step_2(ws):
    assert ws.text("bank/income.txt").strip() == "4245"


def step_3(ws):
    assert ws.text("bank/expenses.txt").strip() == "2194"


def step_4(ws):
    assert ws.text("bank/balance.txt").strip() == "2551"


def step_5(ws):
    assert ws.json("bank/categories.json") == {"rent": 1600, "food": 134, "travel": 460}


def step_6(ws):
    assert ws.text("bank/largest.txt").strip() in ("rent January", "rent February")


def step_7(ws):
    text = ws.text("bank/report.md")
    assert all(line in text for line in ("Income: 4245", "Expenses: 2194", "Balance: 2551"))


def step_8(ws):
    assert ws.exists("bank/2026-01.csv.done")
    assert ws.exists("bank/2026-02.csv.done")
    assert not ws.exists("bank/2026-01.csv")


def step_9(ws):
    assert ws.text("bank/next.txt").strip() == "2026-03"
