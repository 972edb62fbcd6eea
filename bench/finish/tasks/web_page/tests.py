"""Hidden tests of web_page: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert '<html lang="en">' in ws.text("page/index.html")


def step_2(ws):
    text = ws.text("page/index.html")
    assert 'name="description"' in text
    assert 'content="Trees of the park"' in text


def step_3(ws):
    text = ws.text("page/index.html").lower()
    assert 'alt="oak"' in text
    assert 'alt="ash"' in text


def step_4(ws):
    text = ws.text("page/index.html")
    assert "<strong>two</strong>" in text
    assert "<b>" not in text


def step_5(ws):
    text = ws.text("page/index.html")
    assert text.index('<nav aria-label="Trees">') < text.index("<ul>") < text.index("</ul>") < text.index("</nav>")


def step_6(ws):
    assert "display: none" in ws.text("page/print.css")
    text = ws.text("page/index.html")
    assert 'href="print.css"' in text
    assert 'media="print"' in text
