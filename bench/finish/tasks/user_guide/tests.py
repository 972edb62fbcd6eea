"""Hidden tests of user_guide: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert "pip install mint" in ws.text("docs/install.md")


def step_2(ws):
    assert "mint new" in ws.text("docs/quickstart.md")


def step_3(ws):
    text = ws.text("docs/commands.md")
    for name, what in ws.module("tool.py").COMMANDS.items():
        assert any(line.startswith("- ") and name in line and what in line for line in text.splitlines())


def step_4(ws):
    assert "MINT_HOME" in ws.text("docs/config.md")
    assert "~/.mint" in ws.text("docs/config.md")


def step_5(ws):
    assert sum(line.startswith("## ") for line in ws.text("docs/faq.md").splitlines()) >= 2


def step_6(ws):
    text = ws.text("docs/index.md")
    assert all(f"{name}.md" in text for name in ("install", "quickstart", "commands", "config", "faq"))


def step_7(ws):
    assert "docs/index.md" in ws.text("README.md")
