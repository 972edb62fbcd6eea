"""Hidden tests of release_checklist: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert 'version = "2.4.0"' in ws.text("pyproject.toml")


def step_2(ws):
    assert ws.module("src/atlas/__init__.py").__version__ == "2.4.0"


def step_3(ws):
    text = ws.text("CHANGELOG.md")
    assert (
        text.index("## Unreleased")
        < text.index("## 2.4.0 (2026-04-02)")
        < text.index("ferries")
        < text.index("## 2.3.1")
    )


def step_4(ws):
    assert "atlas==2.4.0" in ws.text("docs/install.md")


def step_5(ws):
    route = ws.module("src/atlas/route.py")
    assert not hasattr(route, "old_route")
    assert route.route(1, 2) == [1, 2]


def step_6(ws):
    text = ws.text("tests/test_route.py")
    assert "old_route" not in text
    assert "def test_route" in text


def step_7(ws):
    assert 'requires-python = ">=3.11"' in ws.text("pyproject.toml")


def step_8(ws):
    assert "Python :: 3.11" in ws.text("pyproject.toml")
    assert "3.10" not in ws.text("pyproject.toml")


def step_9(ws):
    assert ws.text("AUTHORS").splitlines() == ["Ada Berg", "Ken Ito", "Maya Lind", "Nina Holm"]


def step_10(ws):
    assert ws.text("release.txt").split() == [
        "AUTHORS",
        "CHANGELOG.md",
        "docs/install.md",
        "pyproject.toml",
        "src/atlas/__init__.py",
        "src/atlas/route.py",
        "tests/test_route.py",
    ]
