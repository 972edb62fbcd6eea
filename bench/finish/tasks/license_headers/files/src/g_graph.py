# SPDX-License-Identifier: MIT
GRAPH = 7
