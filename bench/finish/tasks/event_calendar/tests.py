"""Hidden tests of event_calendar: one function per step, run after the agent has stopped."""


def step_1(ws):
    rooms = ws.json("calendar/rooms.json")
    assert rooms["Blue"] == ["Interview Lee", "Workshop"]
    assert rooms["Green"] == ["Design review", "Budget", "Interview Kim", "Demo"]
    assert len(rooms["Red"]) == 5


def step_2(ws):
    assert [float(row["hours"]) for row in ws.csv("calendar/hours.csv")] == [3, 3.5, 3.5, 1.5, 2]


def step_3(ws):
    assert ws.text("calendar/conflicts.txt").split("\n")[0].strip() == "Design review / Budget"


def step_4(ws):
    assert "Tue 15:00-16:00 Budget @Green" in ws.text("calendar/events.txt")


def step_5(ws):
    assert ws.text("calendar/free.txt").split() == ["Tue", "Thu", "Fri"]


def step_6(ws):
    assert ws.text("calendar/events.txt").splitlines()[-1] == "Fri 16:00-17:00 Retro @Blue"


def step_7(ws):
    text = ws.text("calendar/README.md")
    assert text.startswith("#")
    assert all(name in text for name in ("rooms.json", "hours.csv", "conflicts.txt", "free.txt"))
