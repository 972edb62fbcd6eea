"""Hidden tests of sql_schema: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert {"id", "title", "isbn"} <= ws.sql_columns("schema.sql", "books")


def step_2(ws):
    assert {"id", "name", "joined"} <= ws.sql_columns("schema.sql", "members")


def step_3(ws):
    assert {"book_id", "member_id", "due", "returned"} <= ws.sql_columns("schema.sql", "loans")
    assert ws.text("schema.sql").upper().count("REFERENCES") == 2


def step_4(ws):
    assert any(
        "loans" in row[0] and "due" in row[0]
        for row in ws.sql("schema.sql", "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    )


def step_5(ws):
    script = ws.text("schema.sql") + ws.text("seed.sql")
    assert ws.sql_text(script, "SELECT count(*) FROM books") == [(2,)]
    assert ws.sql_text(script, "SELECT count(*) FROM members") == [(2,)]
    assert ws.sql_text(script, "SELECT count(*) FROM loans WHERE returned IS NULL") == [(1,)]


def step_6(ws):
    script = ws.text("schema.sql") + ws.text("seed.sql")
    query = ws.text("queries/overdue.sql")
    assert len(ws.sql_text(script, query, {"today": "2030-01-01"})) == 1
    assert ws.sql_text(script, query, {"today": "2020-01-01"}) == []
