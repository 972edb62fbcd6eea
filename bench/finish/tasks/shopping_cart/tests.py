"""Hidden tests of shopping_cart: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.module("cart.py").total({"a": (0.1, 3), "b": (1.005, 1)}) == 1.3


def step_2(ws):
    cart = ws.module("cart.py")
    assert cart.add(cart.add({}, "pen", 2.0, 3), "pen", 2.0, 4) == {"pen": (2.0, 7)}


def step_3(ws):
    cart = ws.module("cart.py")
    assert cart.discount(5, 7) == 0
    assert cart.discount(5, 2) == 3
