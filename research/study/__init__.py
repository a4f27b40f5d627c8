"""A study over many tasks, which selects and tests the defaults of the strategy `sabal`."""
