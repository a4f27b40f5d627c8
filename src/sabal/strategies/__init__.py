"""Strategies: one file per method, found by name through the registry."""

from sabal.strategies.base import Strategy, make_selection
from sabal.strategies.registry import make_strategy, option_names, plain_options, strategies

__all__ = [
    "Strategy",
    "make_selection",
    "make_strategy",
    "option_names",
    "plain_options",
    "strategies",
]
