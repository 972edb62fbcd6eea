"""Hidden tests of css_colours: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.text("site/style.css").count("var(--brand)") == 4


def step_2(ws):
    assert ws.text("site/style.css").count("var(--alert)") == 2


def step_3(ws):
    text = ws.text("site/style.css")
    assert text.startswith(":root")
    assert "--brand: #336699" in text
    assert "--alert: #cc0000" in text
