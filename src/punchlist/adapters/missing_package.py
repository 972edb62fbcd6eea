"""What is said when a framework is not installed."""

from __future__ import annotations


def missing_package_error(package: str, extra: str) -> ImportError:
    return ImportError(f"{package} is not installed. Install Punchlist with it: pip install 'punchlist[{extra}]'")
