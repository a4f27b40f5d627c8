"""The tables of the paper, run again and compared with the printed ones."""
