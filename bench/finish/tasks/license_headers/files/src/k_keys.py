# SPDX-License-Identifier: MIT
KEYS = 11
