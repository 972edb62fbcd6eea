"""Hidden tests of quarter_report: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.csv("out/by_region.csv") == [
        {"region": "north", "amount": "1657"},
        {"region": "south", "amount": "1378"},
        {"region": "west", "amount": "1147"},
    ]


def step_2(ws):
    assert [row["amount"] for row in ws.csv("out/by_month.csv")] == ["1165", "1743", "1274"]
    assert ws.csv("out/by_month.csv")[0]["month"] == "2026-01"


def step_3(ws):
    assert ws.text("out/top.txt").strip() == "desk"


def step_4(ws):
    lines = ws.text("out/report.md").splitlines()
    assert lines[0] == "# Quarter"
    assert "Total: 4182" in lines
