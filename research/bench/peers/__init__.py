"""One script for each other library, which runs in its own environment and never imports Sabal.

A script has PACKAGE (the distribution whose version is reported) and METHODS: name ->
prepare(inputs). `prepare` converts the inputs (a mapping of NumPy arrays) to the library's own
types, which is not timed, and returns run(budget, seed), which is. `run` returns the selected rows,
or the rows and a remark. NotImplementedError says that the library cannot do this job at this size,
and why.

Every library gets what its documentation asks for, precomputed where its interface allows it. If it
requires a model, it gets one that returns the precomputed arrays.
"""
