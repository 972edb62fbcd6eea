"""Hidden tests of module_split: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.module("billing/tax.py").vat(100) == 19.0


def step_2(ws):
    assert ws.module("billing/format.py").money(1234.5) == "1,234.50 EUR"


def step_3(ws):
    text = ws.text("billing/invoice.py")
    assert "class Invoice" in text
    assert "from billing.tax import vat" in text


def step_4(ws):
    assert ws.exists("billing/__init__.py")
    program = "from billing import Invoice, money, vat; print(Invoice(100).total(), vat(10))"
    assert ws.run("python3", "-c", program).strip() == "119.00 EUR 1.9"


def step_5(ws):
    assert not ws.exists("billing.py")


def step_6(ws):
    text = ws.text("app.py")
    assert "from billing import Invoice" in text
    assert "billing.Invoice" not in text
