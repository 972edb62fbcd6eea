"""Hidden tests of unit_converter: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.module("units.py").convert("km_to_mi", 42) == 26.1


def step_2(ws):
    assert ws.module("units.py").convert("c_to_f", 37) == 98.6


def step_3(ws):
    assert ws.module("units.py").convert("kg_to_lb", 70) == 154.32


def step_4(ws):
    assert ws.module("units.py").convert("l_to_gal", 50) == 13.21


def step_5(ws):
    rows = ws.csv("table.csv")
    assert [row["name"] for row in rows] == ["c_to_f", "kg_to_lb", "km_to_mi", "l_to_gal"]
    assert [float(row["value"]) for row in rows] == [50, 22.05, 6.21, 2.64]
