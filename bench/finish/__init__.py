"""Does a list help? Thirty tasks, six arms, a model with seeded faults, and hidden tests (V6).

    make bench ARGS="finish --quick"

`task.py` loads a task, `arms.py` builds the arms, `model.py` is the scripted model, `run.py` runs one task in one arm,
`report.py` sums up, `command.py` is the command. The method is in docs/does-it-help.md.
"""
