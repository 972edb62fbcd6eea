"""Hidden tests of type_hints: one function per step, run after the agent has stopped."""


def step_1(ws):
    geometry = ws.module("geometry.py")
    assert all(
        len(getattr(geometry, name).__annotations__) == count
        for name, count in (("distance", 5), ("midpoint", 5), ("angle", 3))
    )
    assert geometry.distance(0, 0, 3, 4) == 5


def step_2(ws):
    shapes = ws.module("shapes.py")
    assert set(shapes.rectangle.__annotations__) == {"width", "height", "return"}
    assert "return" in shapes.circle.__annotations__


def step_3(ws):
    assert ws.text("types.txt").strip() == "5"
