import billing


def show(net):
    return billing.Invoice(net).total()
