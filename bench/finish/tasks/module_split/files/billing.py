"""Invoices."""

RATE = 0.19


def vat(net):
    return round(net * RATE, 2)


def money(amount):
    return f"{amount:,.2f} EUR"


class Invoice:
    def __init__(self, net):
        self.net = net

    def total(self):
        return money(self.net + vat(self.net))
