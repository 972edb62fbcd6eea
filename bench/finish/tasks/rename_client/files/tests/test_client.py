from client import HttpClient


def test_url():
    assert HttpClient("http://x").url("a") == "http://x/a"
