"""The tables of the paper, run and printed beside the printed ones."""
