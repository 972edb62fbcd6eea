"""Hidden tests of env_cleanup: one function per step, run after the agent has stopped."""


def step_1(ws):
    lines = ws.text("deploy/.env").splitlines()
    assert "DATABASE_URL=postgres://db/main" in lines
    assert not any(line.startswith("DB_URL") for line in lines)


def step_2(ws):
    assert [line for line in ws.text("deploy/.env").splitlines() if line.startswith("LOG_LEVEL")] == [
        "LOG_LEVEL=warning"
    ]


def step_3(ws):
    assert 'GREETING="Hello there"' in ws.text("deploy/.env").splitlines()


def step_4(ws):
    lines = ws.text("deploy/.env").splitlines()
    assert lines == sorted(lines)
    assert len(lines) >= 4


def step_5(ws):
    assert ws.text("deploy/.env.example").splitlines() == [
        "CACHE=",
        "DATABASE_URL=",
        "GREETING=",
        "LOG_LEVEL=",
        "PORT=",
    ]
