"""The effect of each correction of the paper's algorithms, added one after another."""
