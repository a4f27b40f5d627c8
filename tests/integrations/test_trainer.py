"""What a model of the Hugging Face Trainer says of a pool.

With what it needs, transformers takes more room than the rest of what Sabal needs for development:
`pip install transformers accelerate` runs these tests.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

import sabal
from sabal.integrations import trainer_outputs

# Read once, when the package is imported: nothing here is to be downloaded.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

CLASSES = 3


def items(n, offset=0):
    """Token ids of different lengths, with a column that no model takes."""
    rng = np.random.default_rng(offset)
    rows = [rng.integers(1, 50, size=rng.integers(2, 9)).tolist() for _ in range(n)]
    return [{"input_ids": row, "label": len(row) % CLASSES, "text": str(row)} for row in rows]


def padded(features):
    """A collator that pads on the right with the token 0."""
    longest = max(len(each["input_ids"]) for each in features)
    ids = [each["input_ids"] + [0] * (longest - len(each["input_ids"])) for each in features]
    batch = {"input_ids": torch.tensor(ids), "attention_mask": (torch.tensor(ids) > 0).long()}
    if "label" in features[0]:
        batch["labels"] = torch.tensor([each["label"] for each in features])
    return batch


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        num_labels=CLASSES,
    )
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path_factory.mktemp("trainer")),
        max_steps=2,
        per_device_eval_batch_size=7,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
    )
    trainer = transformers.Trainer(
        model=transformers.BertForSequenceClassification(config),
        args=arguments,
        train_dataset=items(20, offset=1),
        data_collator=padded,
    )
    trainer.train()
    return trainer


def test_features_logits_and_what_is_labelled(trainer):
    pool = items(30)
    outputs = trainer_outputs(
        trainer, pool, last_layer="classifier", labeled=items(20, offset=1), batch_size=8
    )
    np.testing.assert_allclose(
        outputs.logits, trainer.predict(pool).predictions, atol=1e-5, rtol=1e-5
    )
    head = trainer.model.classifier
    said = outputs.features @ head.weight.detach().T + head.bias.detach()
    torch.testing.assert_close(said, outputs.logits)
    batch = sabal.select(
        5,
        features=outputs.features,
        logits=outputs.logits,
        labeled_features=outputs.labeled_features,
        random_state=0,
    )
    assert batch.evidence["labeled"] == 20
    assert sabal.select(5, outputs, random_state=0).indices.tolist() == batch.indices.tolist()
    assert len(set(batch.indices.tolist())) == 5


def test_the_size_of_batches_is_the_trainers_and_changes_nothing(trainer):
    pool = items(30)
    by_seven = trainer_outputs(trainer, pool, last_layer="classifier")
    by_one = trainer_outputs(trainer, pool, last_layer="classifier", batch_size=1)
    torch.testing.assert_close(by_seven.features, by_one.features, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"last_layer": "head"}, "pick one of .*classifier"),
        ({"last_layer": "bert.pooler.dense"}, "what `bert.pooler.dense` computes"),
        ({"dataset": []}, "at least one item"),
        ({"dataset": iter(())}, "known length"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_mistakes_are_sabal_errors(trainer, change, message):
    given = {"dataset": items(9), "last_layer": "classifier"} | change
    with pytest.raises(sabal.SabalError, match=message):
        _ = trainer_outputs(trainer, given.pop("dataset"), **given).features
