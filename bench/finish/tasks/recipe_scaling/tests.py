"""Hidden tests of recipe_scaling: one function per step, run after the agent has stopped."""


def step_1(ws):
    recipe = ws.json("recipes/bread-6.json")
    assert recipe["loaves"] == 6
    assert [entry["amount"] for entry in recipe["ingredients"]] == [3000, 2040, 60, 3]


def step_2(ws):
    found = [(entry["amount"], entry["unit"]) for entry in ws.json("recipes/bread-oz.json")["ingredients"]]
    assert found == [(35.3, "oz"), (24.0, "oz"), (0.7, "oz"), (1, "packet")]


def step_3(ws):
    assert ws.text("recipes/shopping.txt").splitlines() == [
        "3000 g flour",
        "60 g salt",
        "2040 g water",
        "3 packet yeast",
    ]
