"""Record the batches of every strategy: `python tests/golden/record.py` (needs Ray)."""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import ray
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))

import cases

import sabal

FILE = Path(__file__).with_name("batches.json")
OLD = {"sabal-kernel": "sabal"}


def main():
    warnings.simplefilter("ignore")
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    found = {}
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for pool, arrays in cases.pools().items():
            path = Path(folder) / f"{pool}.npz"
            np.savez(path, **arrays)
            for key, strategy, options in cases.requests():
                if pool in cases.SLOW_ON.get(strategy, ()):
                    continue
                for seed in cases.SEEDS:
                    case = f"{pool}/{seed}/{key}"
                    found |= record(case, pool, arrays, path, strategy, options, seed)
    FILE.write_text(json.dumps(found, indent=0) + "\n")
    print(len(found), "batches,", sum(1 for k in found if k.endswith("ray")), "on ray")


def record(case, pool, arrays, path, strategy, options, seed):
    name = strategy if strategy in sabal.strategies.strategies() else OLD[strategy]
    budget = cases.BUDGETS[pool]
    found = {}
    loss = cases.losses().get(pool, "softmax")
    try:
        batch = sabal.select(
            budget, **arrays, loss=loss, strategy=name, random_state=seed, **options
        )
    except sabal.SabalError as error:
        return {case + "/memory": str(type(error).__name__)}
    found[case + "/memory"] = entry(batch)
    if loss == "softmax":
        try:
            batch = sabal.select_pool(
                path, budget, strategy=name, memory="900KB", random_state=seed, **options
            )
            found[case + "/disk"] = entry(batch)
        except sabal.SabalError as error:
            found[case + "/disk"] = str(type(error).__name__)
        if pool != "small":
            found |= on_ray(case, path, budget, name, seed, options, arrays)
    return found


def on_ray(case, path, budget, name, seed, options, arrays):
    from sabal.pools.ray import select_on_ray

    try:
        batch = select_on_ray(path, budget, strategy=name, workers=2, random_state=seed, **options)
    except sabal.SabalError as error:
        return {case + "/ray": str(type(error).__name__)}
    return {case + "/ray": entry(batch)}


def entry(batch):
    weights = np.round(batch.weights, 9).tolist()
    return [batch.indices.tolist(), [] if set(weights) == {1.0} else weights]


if __name__ == "__main__":
    main()
