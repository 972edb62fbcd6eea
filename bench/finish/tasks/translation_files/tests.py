"""Hidden tests of translation_files: one function per step, run after the agent has stopped."""


def step_1(ws):
    found = ws.json("i18n/de.json")
    assert found["settings"] == "Einstellungen"
    assert found["logout"] == "Abmelden"


def step_2(ws):
    found = ws.json("i18n/fr.json")
    assert found["settings"] == "Paramètres"
    assert found["logout"] == "Déconnexion"


def step_3(ws):
    assert "welcome" not in ws.json("i18n/de.json")
    assert "goodbye" not in ws.json("i18n/fr.json")


def step_4(ws):
    for language in ("en", "de", "fr"):
        keys = list(ws.json(f"i18n/{language}.json"))
        assert keys == sorted(keys)


def step_5(ws):
    assert ws.text("i18n/coverage.txt").splitlines() == ["de 5/5", "fr 5/5"]
