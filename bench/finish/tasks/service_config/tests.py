"""Hidden tests of service_config: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.json("config/service.json")["debug"] is False


def step_2(ws):
    assert ws.json("config/service.json")["port"] == 80


def step_3(ws):
    assert ws.json("config/service.json")["database"] == {"host": "db.internal", "name": "orders", "pool": 20}


def step_4(ws):
    assert ws.json("config/service.json")["timeouts"] == {"connect": 5, "read": 30}


def step_5(ws):
    config = ws.json("config/service.json")
    assert "experimental" not in config
    assert config["log"]["level"] == "info"
