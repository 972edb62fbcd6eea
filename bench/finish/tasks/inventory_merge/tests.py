"""Hidden tests of inventory_merge: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert [(row["sku"], row["count"]) for row in ws.csv("merged.csv")] == [
        ("A1", "80"),
        ("A2", "40"),
        ("B1", "9"),
        ("C1", "28"),
        ("D1", "8"),
    ]


def step_2(ws):
    assert ws.text("missing.txt").split() == ["A2", "D1"]


def step_3(ws):
    assert ws.text("low.txt").split() == ["B1", "D1"]


def step_4(ws):
    assert ws.json("summary.json") == {"skus": 5, "pieces": 165}


def step_5(ws):
    assert ws.text("stock/README.txt").strip() == "merged"
    assert len(ws.csv("stock/madrid.csv")) == 4
