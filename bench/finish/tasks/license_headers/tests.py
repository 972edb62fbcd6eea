"""Hidden tests of license_headers: one function per step, run after the agent has stopped."""


def step_1(ws):
    assert ws.text("src/b_base.py") == "# SPDX-License-Identifier: MIT\nBASE = 2\n"


def step_2(ws):
    assert ws.text("src/c_cache.py") == "# SPDX-License-Identifier: MIT\nCACHE = 3\n"


def step_3(ws):
    assert ws.text("src/e_events.py") == "# SPDX-License-Identifier: MIT\nEVENTS = 5\n"


def step_4(ws):
    assert ws.text("src/f_files.py") == "# SPDX-License-Identifier: MIT\n# A file store.\nFILES = 6\n"


def step_5(ws):
    assert ws.text("src/h_hooks.py") == "# SPDX-License-Identifier: MIT\nHOOKS = 8\n"


def step_6(ws):
    assert ws.text("src/i_index.py") == "# SPDX-License-Identifier: MIT\nINDEX = 9\n"


def step_7(ws):
    assert ws.text("src/j_jobs.py") == "# SPDX-License-Identifier: MIT\nJOBS = 10\n"
