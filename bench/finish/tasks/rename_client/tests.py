"""Hidden tests of rename_client: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.module("pkg/client.py").ApiClient("http://x").url("b") == "http://x/b"


def step_2(ws):
    assert ws.module("pkg/session.py").Session("http://x").home() == "http://x/home"
    assert "HttpClient" not in ws.text("pkg/session.py")


def step_3(ws):
    assert ws.text("tests/test_client.py").count("ApiClient") == 2


def step_4(ws):
    assert ws.text("docs/usage.md").count("ApiClient") == 3


def step_5(ws):
    text = ws.text("CHANGELOG.md")
    assert text.index("Unreleased") < text.index("ApiClient") < text.index("## 1.0")


def step_6(ws):
    client = ws.module("pkg/client.py")
    assert client.HttpClient is client.ApiClient
