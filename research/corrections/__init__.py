"""What each correction of the paper's algorithms does to a batch, one after the other."""
