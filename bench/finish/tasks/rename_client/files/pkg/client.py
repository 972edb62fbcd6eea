"""The client of our API."""


class HttpClient:
    def __init__(self, base):
        self.base = base

    def url(self, path):
        return f"{self.base}/{path}"
