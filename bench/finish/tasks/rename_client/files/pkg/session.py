from client import HttpClient


class Session:
    def __init__(self, base):
        self.client = HttpClient(base)

    def home(self):
        return self.client.url("home")
