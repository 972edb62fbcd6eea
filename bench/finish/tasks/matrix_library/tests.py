"""Hidden tests of matrix_library: one function per step, run after the agent has stopped."""

import pytest


def step_1(ws):
    assert ws.module("matrix.py").identity(2) == [[1, 0], [0, 1]]


def step_2(ws):
    assert ws.module("matrix.py").transpose([[1, 2], [3, 4]]) == [[1, 3], [2, 4]]


def step_3(ws):
    module = ws.module("matrix.py")
    assert module.multiply([[1, 2], [3, 4]], [[0, 1], [1, 0]]) == [[2, 1], [4, 3]]
    with pytest.raises(ValueError, match="shapes"):
        module.multiply([[1, 2]], [[1, 2]])


def step_4(ws):
    module = ws.module("matrix.py")
    assert module.determinant([[1, 2], [3, 4]]) == -2
    assert module.determinant([[2, 0, 1], [1, 3, 2], [1, 1, 4]]) == 18


def step_5(ws):
    assert ws.module("matrix.py").trace([[1, 9], [9, 5]]) == 6


def step_6(ws):
    module = ws.module("matrix.py")
    assert module.power([[2]], 10) == [[1024]]
    assert module.power([[5, 1], [2, 3]], 0) == [[1, 0], [0, 1]]


def step_7(ws):
    text = ws.module("matrix.py").__doc__
    assert all(name in text for name in ("identity", "transpose", "multiply", "determinant", "trace", "power"))


def step_8(ws):
    assert ws.text("results.txt").strip() == "18"
