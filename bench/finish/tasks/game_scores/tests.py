"""Hidden tests of game_scores: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert [(row["team"], row["points"], row["goals"], row["conceded"]) for row in ws.csv("table.csv")] == [
        ("Kestrels", "7", "5", "1"),
        ("Ravens", "4", "5", "4"),
        ("Owls", "4", "3", "4"),
        ("Herons", "1", "4", "8"),
    ]


def step_2(ws):
    assert ws.text("champion.txt").strip() == "Kestrels"


def step_3(ws):
    assert ws.text("goals.txt").strip() == "17"


def step_4(ws):
    assert ws.text("unbeaten.txt").split() == ["Kestrels"]


def step_5(ws):
    assert [(row["team"], row["home_points"]) for row in ws.csv("matrix.csv")] == [
        ("Herons", "1"),
        ("Kestrels", "3"),
        ("Owls", "3"),
        ("Ravens", "4"),
    ]


def step_6(ws):
    assert ws.text("games.csv").splitlines()[-1] == "Kestrels,Owls,2,2"


def step_7(ws):
    assert ws.text("draws.txt").strip() == "3"


def step_8(ws):
    assert "updated" in ws.text("log.txt")
