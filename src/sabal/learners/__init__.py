"""Learners: what is trained between the rounds of a loop."""
