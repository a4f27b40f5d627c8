"""Strategies: one small file per family, found by name through the registry."""

from sabal.strategies.base import Strategy
from sabal.strategies.registry import make_strategy, option_names, plain_options, strategies

__all__ = ["Strategy", "make_strategy", "option_names", "plain_options", "strategies"]
