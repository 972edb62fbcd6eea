"""The HTTP API under `/api/v1`: each module has the endpoints of one theme, with the models of their requests and
responses; `openapi.py` describes them all."""
