"""The rounds of a loop in MLflow's local store, as the guide shows."""

from __future__ import annotations

import mlflow
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import sabal


@pytest.mark.filterwarnings("ignore")
def test_every_round_is_logged(tmp_path, monkeypatch):
    # MLflow asks for a database instead of files, but still has them.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_experiment("digits")
    X, y = load_digits(return_X_y=True)

    def log_round(loop, current):
        mlflow.log_metrics({"labels": current.labels, **current.metrics}, step=current.number)

    with mlflow.start_run() as run:
        mlflow.log_params({"strategy": "sabal", "model": "GaussianNB"})
        loop = sabal.Loop(
            GaussianNB(var_smoothing=1e-2), X[:300], test=(X[300:], y[300:]), callbacks=[log_round]
        )
        for _ in range(3):
            batch = loop.ask(20)
            loop.tell(batch.ids, y[batch.indices])
            loop.fit()

    client = mlflow.MlflowClient()
    for name in ("labels", "accuracy", "log_loss"):
        history = client.get_metric_history(run.info.run_id, name)
        found = {each.step: each.value for each in history}
        # The log loss is infinite, and left out, while some class of the test data has no label.
        assert found == {row["round"]: row[name] for row in loop.curve() if name in row}
    assert len(found) >= 2
