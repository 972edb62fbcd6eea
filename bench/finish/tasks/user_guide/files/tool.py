"""mint: makes small web pages."""

import argparse
import os

HOME = os.environ.get("MINT_HOME", "~/.mint")
COMMANDS = {
    "new": "create a page",
    "serve": "serve pages on localhost",
    "check": "find broken links",
    "publish": "copy pages to a server",
}


def parser():
    result = argparse.ArgumentParser("mint")
    commands = result.add_subparsers()
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    return result
