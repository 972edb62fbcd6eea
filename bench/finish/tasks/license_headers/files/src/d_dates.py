# SPDX-License-Identifier: MIT
DATES = 4
