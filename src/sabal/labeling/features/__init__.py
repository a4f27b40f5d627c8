"""The features of all items: computed once, in chunks, by a frozen backbone."""
