"""A study over many tasks, which finds and proves the defaults of the strategy `sabal`."""
