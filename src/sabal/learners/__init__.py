"""Learners: what is trained between the rounds of a loop, a simulation or a labelling project."""
