"""Hidden tests of failing_dates: one function per step, run after the agent has stopped."""


def step_1(ws):
    dates = ws.module("dates.py")
    assert [dates.is_leap(year) for year in (1900, 2000, 2023, 2024, 2100)] == [False, True, False, True, False]


def step_2(ws):
    dates = ws.module("dates.py")
    assert sum(dates.days_in_month(2023, month) for month in range(1, 13)) == 365
    assert dates.days_in_month(2024, 2) == 29


def step_3(ws):
    dates = ws.module("dates.py")
    assert dates.day_of_year(2023, 12, 31) == 365
    assert dates.day_of_year(2024, 12, 31) == 366


def step_4(ws):
    notes = ws.text("NOTES.md")
    assert len([line for line in notes.splitlines() if line.strip()]) >= 3
    assert "leap" in notes
