"""The tables. Rows are only added, but for leases, claims, predictions and ends of trainings."""

from __future__ import annotations

import sqlalchemy as sa

MAX_INTEGER = 2**31 - 1  # the largest integer that every database stores
metadata = sa.MetaData()

migrations = sa.Table(
    "migrations",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("applied_at", sa.Text, nullable=False),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("recorded_at", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

items = sa.Table(
    "items",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
)

rounds = sa.Table(
    "rounds",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("strategy", sa.Text, nullable=False),
    sa.Column("seed", sa.BigInteger),
    sa.Column("chosen_at", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("evidence", sa.JSON, nullable=False),
    # No foreign key: trainings refer to rounds, and two tables cannot refer to each other.
    sa.Column("training_id", sa.Integer),
)

batch_items = sa.Table(
    "batch_items",
    metadata,
    sa.Column("round", sa.Integer, sa.ForeignKey("rounds.number"), primary_key=True),
    sa.Column("rank", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), nullable=False, unique=True),
    sa.Column("weight", sa.Float, nullable=False),
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("why", sa.JSON, nullable=False),
    sa.CheckConstraint("role IN ('train', 'check')", name="batch_items_role"),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("submission", sa.Text, nullable=False, unique=True),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), nullable=False),
    # No foreign key: an imported answer keeps the number of its round in another project.
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("label", sa.Text),
    sa.Column("undoes", sa.Integer, sa.ForeignKey("answers.id"), unique=True),
    sa.Column("seconds", sa.Float),
    sa.Column("answered_at", sa.Text, nullable=False),
    sa.Index("answers_of_item", "item_id", "annotator", "action", "id"),
    sa.Index("answers_of_annotator", "annotator", "id"),
    sa.CheckConstraint("(action = 'label') = (label IS NOT NULL)", name="answers_label"),
    sa.CheckConstraint("(action = 'undo') = (undoes IS NOT NULL)", name="answers_undoes"),
    sa.CheckConstraint("action IN ('label', 'skip', 'undo')", name="answers_action"),
    sqlite_autoincrement=True,
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("annotator", sa.Text, primary_key=True),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("leased_at", sa.Text, nullable=False),
    sa.Column("expires_at", sa.Text, nullable=False),
)

trainings = sa.Table(
    "trainings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("round", sa.Integer, sa.ForeignKey("rounds.number"), nullable=False),
    sa.Column("labels", sa.Integer, nullable=False),
    sa.Column("last_answer", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("finished_at", sa.Text),
    sa.Column("seconds", sa.Float),
    sa.Column("model", sa.Text),
    sa.Column("error", sa.Text),
    sqlite_autoincrement=True,
)

metrics = sa.Table(
    "metrics",
    metadata,
    sa.Column("training_id", sa.Integer, sa.ForeignKey("trainings.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Float, nullable=False),
)

states = sa.Table(
    "states",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("progress", sa.Float, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("at", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    # The latest row of a name applies; one without a role says that the person was removed.
    sa.Column("role", sa.Text),
    sa.Column("token_hash", sa.Text),
    sa.Column("recorded_at", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

assessments = sa.Table(
    "assessments",
    metadata,
    sa.Column("training_id", sa.Integer, sa.ForeignKey("trainings.id"), primary_key=True),
    sa.Column("content", sa.JSON, nullable=False),
)

sources = sa.Table(
    "sources",
    metadata,
    # What was added after the data that the project began with.
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("first_item", sa.Integer, nullable=False),
    # The rows of the items in the source, in the order of the items.
    sa.Column("rows", sa.JSON, nullable=False),
    sa.Column("added_at", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

class_changes = sa.Table(
    "class_changes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    # The new name, or the class that it was merged into.
    sa.Column("target", sa.Text),
    sa.Column("person", sa.Text, nullable=False),
    # The change applies to answers up to this one.
    sa.Column("after_answer", sa.Integer, nullable=False),
    sa.Column("recorded_at", sa.Text, nullable=False),
    sa.CheckConstraint("action IN ('add', 'rename', 'merge')", name="class_changes_action"),
    sqlite_autoincrement=True,
)

guidelines = sa.Table(
    "guidelines",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    # Without a class, it is about the whole project; the latest row applies.
    sa.Column("class_name", sa.Text),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("recorded_at", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

decisions = sa.Table(
    "decisions",
    metadata,
    # An answer that decides the label of its item, whatever others have answered.
    sa.Column("answer_id", sa.Integer, sa.ForeignKey("answers.id"), primary_key=True),
)

item_details = sa.Table(
    "item_details",
    metadata,
    # The other columns of an item's source, by name; people may look at them.
    sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("content", sa.JSON, nullable=False),
)

predictions = sa.Table(
    "predictions",
    metadata,
    # What the latest model says of the items that are in a batch or have labels.
    sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("training_id", sa.Integer, sa.ForeignKey("trainings.id"), nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("probability", sa.Float, nullable=False),
    # The classes have the names of this time.
    sa.Column("predicted_at", sa.Text, nullable=False),
)

task_claims = sa.Table(
    "task_claims",
    metadata,
    # Items that a process is about to push, or has pushed, to a project of a labelling server.
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), primary_key=True),
    sa.Column("claimed_at", sa.Text, nullable=False),
)
