"""One script per rival: each runs in an environment of its own and never imports Sabal.

A script has PACKAGE (the name its version is looked up under) and METHODS: name -> prepare(inputs).
`prepare` puts the inputs (a mapping of NumPy arrays, as they are) into the rival's own forms, which
is not timed, and returns run(budget, seed), which is. `run` returns the chosen rows, or the rows
and a remark. NotImplementedError says that the rival cannot do this job at this size, and why.

Every rival gets what its documentation asks for, precomputed where its interface allows it; where
it insists on a model, a stand-in that returns the precomputed arrays.
"""
