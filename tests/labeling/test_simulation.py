"""A simulated person at the HTTP interface ends where the simulation with hidden labels ends."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fastapi.testclient import TestClient
from sklearn.datasets import load_digits

from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.web import create_app
from sabal.learners.estimator_learner import EstimatorLearner, logistic
from sabal.learners.linear import LinearLearner
from sabal.loop import Journal, Plan, SimulatedOracle, run_rounds

X, Y = load_digits(return_X_y=True)
POOL, LABELS = 1_000, 500
CLASSES = [str(k) for k in range(10)]


def answer_everything(client: TestClient) -> int:
    """Label what is open, as a person would: ask for a few items, answer them, ask again."""
    answered = 0
    while items := client.get("/api/next?annotator=ann&count=7").json()["items"]:
        for item in items:
            label = CLASSES[Y[int(item["id"][1:])]]
            body = {"submission": str(uuid.uuid4()), "annotator": "ann", "item": item["id"]}
            client.post("/api/labels", json={**body, "label": label}).raise_for_status()
            answered += 1
    return answered


def test_five_hundred_digits_over_http_are_the_simulation(tmp_path):
    names = [f"d{k}" for k in range(POOL)]
    pool = tmp_path / "pool.parquet"
    pq.write_table(pa.table({"id": names, "features": X[:POOL].tolist()}), pool)
    settings = {"strategy": "sabal", "first": "typiclust", "initial": 50, "batch": 50, "seed": 7}
    project = Project.create(
        tmp_path / "p", data=pool, classes=CLASSES, budget=LABELS, choose_at=1.0, check_share=0.0,
        **settings,
    )  # fmt: skip
    engine = Engine(project)
    with TestClient(create_app(project, worker=False), base_url="http://localhost") as client:
        answered = 0
        while answered < LABELS:
            while engine.step():
                pass
            answered += answer_everything(client)
        while engine.step():
            pass
        assert client.get("/api/status").json()["labeled"] == LABELS

    learner = EstimatorLearner(logistic, X[:POOL], 10)
    plan = Plan(rounds=9, **settings)
    oracle = SimulatedOracle(Y[:POOL])
    test, journal = (X[POOL:], Y[POOL:]), Journal(tmp_path / "simulation")
    simulated = list(run_rounds(learner, oracle, plan, journal, test=test))

    for told in simulated:
        batch = [int(each.item[1:]) for each in project.store.batch(told.number)]
        assert batch == told.batch.indices.tolist()
    stored = LinearLearner(X[:POOL], CLASSES)
    nothing = np.empty(0, np.int64)
    stored.load(project.folder / project.store.trainings()[-1].model, nothing, nothing, None)
    accuracy = np.mean(stored.predict(X[POOL:]) == Y[POOL:])
    assert accuracy == simulated[-1].metrics["accuracy"]
    assert accuracy > 0.9
    project.close()
