"""Numbers of the admin's first page, as people write them."""

from django import template

from conversations.comparison.page import percent
from conversations.dashboard import money, number

register = template.Library()
register.filter("whole", number)
register.filter("amount", money)
register.filter("percent", percent)
