# SPDX-License-Identifier: MIT
AUTH = 1
