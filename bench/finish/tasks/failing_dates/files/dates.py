DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 30]


def is_leap(year):
    return year % 4 == 0


def days_in_month(year, month):
    return DAYS[month]


def day_of_year(year, month, day):
    return sum(days_in_month(year, m) for m in range(1, month + 1)) + day
