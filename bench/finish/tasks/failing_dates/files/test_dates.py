import dates

assert dates.is_leap(2024)
assert not dates.is_leap(1900)
assert dates.is_leap(2000)
assert dates.days_in_month(2023, 1) == 31
assert dates.days_in_month(2024, 2) == 29
assert dates.days_in_month(2024, 12) == 31
assert dates.day_of_year(2023, 1, 1) == 1
assert dates.day_of_year(2024, 3, 1) == 61
print("ok")
