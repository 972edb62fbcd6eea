"""Hidden tests of survey_results: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert [row["score"] for row in ws.jsonl("survey/valid.jsonl")] == [8, 6, 9, 7, 5, 8]


def step_2(ws):
    assert ws.json("survey/teams.json") == {"data": 6.5, "ops": 8.5, "web": 6.5}


def step_3(ws):
    found = ws.text("survey/comments.txt").splitlines()
    assert [line for line in found if line not in ("typo?", "no")] == ["good", "more tea", "slow builds"]


def step_4(ws):
    assert ws.text("survey/under30.txt").strip() == "3"


def step_5(ws):
    text = ws.text("survey/summary.md")
    assert "Answers: 6" in text
    assert "Best: ops" in text


def step_6(ws):
    assert not ws.exists("survey/draft.md")
