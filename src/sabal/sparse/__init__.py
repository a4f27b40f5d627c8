"""The method of the paper: atoms, the sparse approximation problem, and its solvers."""
