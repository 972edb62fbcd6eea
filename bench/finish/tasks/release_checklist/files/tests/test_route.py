from atlas.route import old_route, route


def test_route():
    assert route(1, 2) == [1, 2]


def test_old_route():
    assert old_route(2, 1) == [1, 2]
