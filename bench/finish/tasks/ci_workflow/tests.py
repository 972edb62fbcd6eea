"""Hidden tests of ci_workflow: one function per step, run after the agent has stopped."""


def step_1(ws):
    jobs = ws.yaml(".ci/pipeline.yaml")["jobs"]
    assert jobs["test"]["image"] == jobs["build"]["image"] == "python:3.12"


def step_2(ws):
    assert [step["name"] for step in ws.yaml(".ci/pipeline.yaml")["jobs"]["test"]["steps"]] == [
        "install",
        "lint",
        "test",
    ]


def step_3(ws):
    docs = ws.yaml(".ci/pipeline.yaml")["jobs"]["docs"]
    assert docs["needs"] in ("test", ["test"])
    assert docs["steps"][0]["run"] == "make docs"


def step_4(ws):
    assert ws.yaml(".ci/pipeline.yaml")["jobs"]["test"]["timeout"] == 20
