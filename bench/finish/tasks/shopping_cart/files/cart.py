"""A shopping cart: a dict from item name to (price, quantity)."""


def add(cart, name, price, quantity=1):
    cart[name] = (price, quantity)
    return cart


def total(cart):
    result = 0
    for price, quantity in cart.values():
        result += price * quantity
    return result


def discount(price, amount):
    return price - amount
