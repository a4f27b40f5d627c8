"""`python -m research reproduce`: the printed settings, and a table run from end to end."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from research.cli import main
from research.reproduce.comparison_tables import load_section, scales_markdown
from research.reproduce.first_query import read_times
from research.reproduce.paper_tables import TABLES
from research.reproduce.reproduction import ReproductionRequest, reproduce
from research.reproduce.scaling import (
    CHANGEABLE,
    changed,
    differences,
    expected_hours,
    experiment_of,
    scaled,
)
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.pools import ArrayPool
from sabal.sparse.atoms import posterior_atoms
from sabal.strategies import make_strategy

PAGE = Path(__file__).parents[2] / "docs" / "reproduce.md"

# A second copy of what the paper prints, in its own order of columns.
BAYESIAN = ("bayesian-coreset", "sabal-greedy", "sabal-iht", "bald", "batchbald", "random")
GENERAL = ("badge", "sabal-greedy", "sabal-iht", "kcenter", "entropy", "random")
PRINTED = {
    (
        "table1",
        "fashion-mnist",
    ): "89.53 0.25 89.83 0.26 89.97 0.23 89.72 0.23 88.85 0.22 88.39 0.32",
    ("table1", "cifar10"): "77.73 0.70 78.28 0.53 77.55 0.83 77.61 0.59 76.12 0.35 76.36 0.59",
    ("table1", "cifar100"): "42.40 0.29 42.53 0.34 42.30 0.29 41.99 0.60 42.63 0.40 42.10 0.24",
    ("table2", "mnist"): "91.24 0.48 90.89 0.38 91.07 0.45 89.57 1.02 90.68 0.81 86.48 1.11",
    ("table2", "svhn"): "86.92 0.71 87.23 0.47 86.84 0.57 87.04 0.80 86.28 1.05 85.52 0.51",
    ("table2", "cifar10"): "68.20 0.56 68.01 0.66 67.80 0.69 67.98 0.63 67.94 0.64 67.05 0.59",
    ("table3", "svhn"): "732.18 26.29 201.65 3.54 211.04 10.65 309.99 0.81 16.46 0.29 0.81 0.02",
    (
        "table3",
        "cifar10",
    ): "1207.19 121.09 333.67 3.53 174.28 3.27 258.29 1.75 11.76 0.03 1.42 0.02",
}
# initial, batch, rounds, seeds, epochs, batch size, optimiser, lr, samples (None: no posterior),
# alpha and beta of greedy and of IHT
SETTINGS = {
    ("table1", "fashion-mnist"): (1000, 1000, 9, 5, 200, 256, "adam", 1e-3, 100, 2, 0.5, 1, 1e-3),
    ("table1", "cifar10"): (3000, 5000, 4, 5, 200, 256, "adam", 1e-3, 2000, 2, 1, 1, 1e-6),
    ("table1", "cifar100"): (10000, 5000, 4, 5, 200, 256, "adam", 1e-3, 2000, 1, 0.5, 1, 1e-6),
    ("table2", "mnist"): (40, 40, 15, 3, 150, 32, "sgd", 0.01, None, 1e-8, 0.1, 1e-8, 1e-4),
    ("table2", "svhn"): (1000, 1000, 5, 5, 150, 128, "sgd", 0.01, None, 0.1, 0.1, 1e-8, 1e-4),
    ("table2", "cifar10"): (3000, 3000, 5, 5, 100, 128, "sgd", 1e-3, None, 0.01, 0.1, 1e-8, 1e-6),
    ("table3", "svhn"): (1000, 1000, 1, 5, 150, 128, "sgd", 0.01, None, 0.1, 0.1, 1e-8, 1e-4),
    ("table3", "cifar10"): (3000, 3000, 1, 5, 100, 128, "sgd", 1e-3, None, 0.01, 0.1, 1e-8, 1e-6),
}
MODELS = {"mnist": "lenet5", "svhn": "vgg16", "cifar10": "vgg16"}

ALL = [(table.name, preset) for table in TABLES.values() for preset in table.presets]
EVERY_PRESET = pytest.mark.parametrize(
    ("table", "preset"), ALL, ids=lambda each: getattr(each, "dataset", each)
)


def preset_of(table, dataset):
    return next(p for p in TABLES[table].presets if p.dataset == dataset)


def test_the_tables_have_the_data_sets_of_the_paper():
    found = [(table, preset.dataset) for table, preset in ALL if table != "ablation"]
    assert found == list(PRINTED) == list(SETTINGS)
    assert [p.dataset for p in TABLES["ablation"].presets] == ["fashion-mnist", "cifar10"]


@pytest.mark.parametrize(("table", "dataset"), PRINTED)
def test_the_figures_are_those_printed(table, dataset):
    names = BAYESIAN if table == "table1" else GENERAL
    numbers = [float(word) for word in PRINTED[table, dataset].split()]
    expected = dict(zip(names, zip(numbers[::2], numbers[1::2], strict=True), strict=True))
    preset = preset_of(table, dataset)
    assert {name: (f.mean, f.std) for name, f in preset.paper.items()} == expected
    as_printed = {"greedy-as-printed", "iht-as-printed"} if table == "table2" else set()
    assert set(preset.strategies) == {*names, *as_printed}
    for label in as_printed:
        name, options = preset.options[label]["strategy"], preset.options[label]
        units = ("alpha", "beta", "scale")
        assert all(options[k] == preset.options[name][k] for k in units)


@pytest.mark.parametrize(("table", "dataset"), SETTINGS)
def test_the_settings_are_those_printed(table, dataset):
    preset = preset_of(table, dataset)
    recipe, options = preset.recipe, preset.options
    found = (
        preset.initial,
        preset.batch,
        preset.rounds,
        preset.seeds,
        *(recipe[name] for name in ("epochs", "batch_size", "optimizer", "lr")),
        recipe.get("samples"),
        *(options[s][o] for s in ("sabal-greedy", "sabal-iht") for o in ("alpha", "beta")),
    )
    assert found == SETTINGS[table, dataset]
    assert {options[s]["scale"] for s in ("sabal-greedy", "sabal-iht")} == {"literal"}
    assert recipe["weight_decay"] == 5e-4
    assert recipe["network_options"] == {"width": 1.0}
    bayesian = table == "table1"
    assert preset.model == ("resnet18-variational" if bayesian else MODELS[dataset])
    assert recipe["augment"] == ("crop-flip" if bayesian else None)
    assert recipe.get("momentum") == (None if bayesian else 0.9)
    assert preset.validation == (0 if bayesian else 1000)


@EVERY_PRESET
@pytest.mark.parametrize("scale", ["paper", "laptop"])
def test_every_preset_is_an_experiment_whose_strategies_can_be_made(table, preset, scale):
    experiment = experiment_of(scaled(preset, scale), None)
    for label in experiment.strategies:
        name, _ = experiment.strategy_of(label)
        assert make_strategy(*experiment.strategy_of(label)).name == name
    assert experiment.network_recipe() is not None


@EVERY_PRESET
def test_scale_laptop_says_every_change_and_ends_overnight(table, preset):
    small = scaled(preset, "laptop")
    said = {change.field: change.here for change in differences(preset, small)}
    assert said == preset.laptop
    # What was said, and nothing else, leads from the one to the other.
    assert changed(preset, said) == small
    assert all(getattr(changed(preset, {}), name) == getattr(preset, name) for name in CHANGEABLE)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_whole_table_at_scale_laptop_takes_a_night(table):
    hours = [expected_hours(scaled(p, "laptop"), timed=table.timed) for p in table.presets]
    # Up to ten hours, of which some are left for the choosing itself.
    assert 1 < sum(hours) < 9


def test_expected_hours_of_an_example_worked_by_hand():
    preset = changed(preset_of("table2", "mnist"), {"rounds": 1, "seeds": 1, "pool": 600})
    preset = changed(preset, {"strategies": ("random", "badge"), "recipe.epochs": 10})
    # Two runs: (40 + 80) * 10 images trained, 600 + 2 * 10,000 predicted at a third of the cost.
    assert expected_hours(preset) == pytest.approx(2 * (1200 + 20600 / 3) / 10800 / 3600)
    # One training that both share, and two passes over the pool beside one over the test set.
    assert expected_hours(preset, timed=True) == pytest.approx((400 + 11200 / 3) / 10800 / 3600)
    assert expected_hours(changed(preset, {"model": "logistic"})) is None


def test_differences_are_found_wherever_they_are():
    preset = preset_of("table2", "mnist")
    other = changed(
        preset,
        {"strategies": ("random",), "options.badge.bias": False, "recipe.schedule": "cosine"},
    )
    assert {c.field: (c.paper, c.here) for c in differences(preset, other)} == {
        "strategies": (list(preset.strategies), ["random"]),
        "options.badge.bias": (None, False),
        "recipe.schedule": (None, "cosine"),
    }
    assert "badge" not in preset.options
    with pytest.raises(UnknownNameError, match="a field of a preset"):
        changed(preset, {"paper.random": 1.0})


def test_the_page_says_what_the_code_does():
    assert scales_markdown() in PAGE.read_text()


@pytest.mark.parametrize("solver", ["sabal-greedy", "sabal-iht"])
@pytest.mark.parametrize("preset", TABLES["ablation"].presets, ids=lambda p: p.dataset)
def test_variance_only_is_the_top_of_the_variance_by_either_solver(preset, solver):
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(5000, 1, 10)) + rng.normal(size=(5000, 12, 10))
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    units = ("alpha", "beta", "scale")
    options = {k: v for k, v in preset.options["variance-only"].items() if k in units}
    strategy = make_strategy(solver, options)
    chosen = strategy.select(ArrayPool(log_probs=log_probs), 70, rng).indices
    deviation = posterior_atoms(log_probs, None).deviation_N
    assert sorted(chosen) == sorted(np.argsort(-deviation)[:70])


# -- from end to end, made tiny --------------------------------------------------------------

TINY = {
    "recipe.network_options.width": 0.1,
    "recipe.epochs": 1,
    "initial": 24,
    "batch": 10,
    "rounds": 2,
    "pool": None,
}
NAMES = {"mnist": (28, 28), "fashion-mnist": (28, 28), "svhn": (32, 32, 3)}
CASES = {
    "table1": ("fashion-mnist", {"recipe.samples": 6}),
    "table2": ("mnist", {"validation": 30}),
    "ablation": ("fashion-mnist", {"recipe.samples": 6}),
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, shape in NAMES.items():
        labels = rng.integers(0, 10, 260)
        noise = rng.integers(0, 60, (260, *shape))
        images = (noise + 19 * labels.reshape(-1, *[1] * len(shape))).astype(np.uint8)
        np.savez(
            folder / f"{name}.npz",
            x_train=images[:200],
            y_train=labels[:200],
            x_test=images[200:],
            y_test=labels[200:],
        )
    return folder


def tiny(table, data_dir, out, **more):
    dataset, changes = CASES[table]
    return ReproductionRequest(
        table=table,
        dataset=dataset,
        seeds=1,
        data_dir=data_dir,
        out=out,
        changes={**TINY, **changes},
        **more,
    )


@pytest.fixture(scope="module", params=list(CASES))
def finished(request, data_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param)
    said = []
    sections = reproduce(tiny(request.param, data_dir, out), say=said.append)
    return request.param, out, sections, said


def test_ours_are_beside_the_papers(finished):
    table, out, (section,), _ = finished
    preset = preset_of(table, section.dataset)
    assert [row.strategy for row in section.rows] == list(preset.strategies)
    assert [row.paper for row in section.rows] == [preset.paper.get(s) for s in preset.strategies]
    results = pq.read_table(out / table / section.dataset / "results.parquet").to_pylist()
    for row in section.rows:
        curve = [r["accuracy"] for r in results if r["strategy"] == row.strategy]
        # Equal steps: the area is the mean of the points with half the ends.
        area = 100 * (curve[0] / 2 + curve[1] + curve[2] / 2) / 2
        assert row.ours.mean == pytest.approx(area)
        assert row.final_accuracy == pytest.approx(curve[2])
        assert row.seeds == 1


def test_the_files_say_ours_the_papers_and_every_change(finished):
    table, out, (section,), said = finished
    preset = preset_of(table, section.dataset)
    page = (out / f"{table}.md").read_text()
    for row in section.rows:
        (line,) = [each for each in page.splitlines() if each.startswith(f"| {row.strategy} |")]
        # One seed has no standard deviation.
        assert line.split(" | ")[1].strip("*") == f"{row.ours.mean:.2f}"
        if row.paper is not None:
            assert f"{row.paper.mean:.2f} ± {row.paper.std:.2f}" in line
            assert f"{row.ours.mean - row.paper.mean:+.2f}" in line
    best = sorted(preset.paper.values(), key=lambda figure: figure.mean)[-2:]
    bold = {f"**{figure.mean:.2f} ± {figure.std:.2f}**" for figure in best}
    assert {cell for cell in re.findall(r"\*\*.+?\*\*", page) if "±" in cell} == bold
    width = "recipe.network_options.width: 1.0 -> 0.1"
    assert f"- {width}" in page
    assert f"- {width}" in said
    for note in preset.notes:
        assert note in page
    assert "this copy has 200 training items" in page
    assert section.command in page
    assert (out / section.picture).read_bytes().startswith(b"\x89PNG")
    assert f"]({section.picture})" in page
    document = json.loads((out / f"{table}.json").read_text())
    (record,) = document["sections"]
    assert {change["field"] for change in record["changes"]} >= {*TINY, "seeds"} - {"pool"}
    assert record["rows"][0]["ours"]["mean"] == section.rows[0].ours.mean


def test_without_resume_nothing_is_touched_and_with_it_nothing_repeated(finished, data_dir):
    table, out, sections, _ = finished
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    with pytest.raises(FileError, match="pass --resume"):
        reproduce(tiny(table, data_dir, out))
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()} == before
    (again,) = reproduce(tiny(table, data_dir, out, resume=True))
    runs = [p for p in before if "runs" in p.parts]
    assert runs
    assert {p: p.stat().st_mtime_ns for p in runs} == {p: before[p] for p in runs}
    assert again.rows == sections[0].rows
    assert again.work_seconds == sections[0].work_seconds


def test_a_folder_of_another_scale_is_not_gone_on_with(finished, data_dir):
    table, out, _, _ = finished
    other = tiny(table, data_dir, out, resume=True)
    with pytest.raises(FileError, match="another recipe"):
        reproduce(replace(other, changes={**other.changes, "recipe.epochs": 2}))
    assert json.loads((out / f"{table}.json").read_text())["sections"]


def test_table3_times_every_strategy_on_one_network(data_dir, tmp_path):
    request = ReproductionRequest(
        table="table3",
        dataset="svhn",
        seeds=2,
        data_dir=data_dir,
        out=tmp_path,
        changes={**TINY, "rounds": 1, "validation": 30},
    )
    (section,) = reproduce(request)
    preset = preset_of("table3", "svhn")
    assert [row.strategy for row in section.rows] == list(preset.strategies)
    folder = tmp_path / "table3" / "svhn"
    assert len(list(folder.glob("initial/*/rounds/0000/model.safetensors"))) == 2
    times = {p: json.loads(p.read_text()) for p in folder.glob("times/*/*.json")}
    assert len(times) == 2 * len(preset.strategies)
    assert {(t["items"], t["budget"]) for t in times.values()} == {(200 - 30 - 24, 10)}
    for row in section.rows:
        measured = [t for p, t in sorted(times.items()) if p.parent.name == row.strategy]
        for figure, key in ((row.ours, "seconds"), (row.selection, "selection_seconds")):
            one, other = (each[key] for each in measured)
            assert figure.mean == pytest.approx((one + other) / 2)
            assert figure.std == pytest.approx(abs(one - other) / 2**0.5)
    page = (tmp_path / "table3.md").read_text()
    assert "732.18 ± 26.29" in page
    assert "Tesla V100" in page
    # Only what is missing is measured again.
    missing = folder / "times" / "badge" / "seed-001.json"
    missing.unlink()
    said = []
    (again,) = reproduce(replace(request, resume=True), say=said.append)
    assert [line for line in said if line.startswith("seed")] == [
        f"seed 1, badge: {json.loads(missing.read_text())['seconds']:.3f} s"
    ]
    kept = [row for row in section.rows if row.strategy != "badge"]
    assert [row for row in again.rows if row.strategy != "badge"] == kept


def test_a_table_gathers_its_data_sets_one_by_one(data_dir, tmp_path):
    small = {**TINY, "strategies": ("random",), "validation": 30, "rounds": 1}
    for dataset in ("svhn", "mnist"):
        request = ReproductionRequest(
            table="table2", dataset=dataset, data_dir=data_dir, out=tmp_path, changes=small
        )
        sections = reproduce(replace(request, seeds=1))
    assert [section.dataset for section in sections] == ["mnist", "svhn"]
    page = (tmp_path / "table2.md").read_text()
    assert page.index("## MNIST") < page.index("## SVHN")


def test_a_pool_larger_than_the_copy_at_hand_is_all_of_it(data_dir, tmp_path):
    small = {**TINY, "strategies": ("random",), "validation": 30, "pool": 171, "rounds": 1}
    request = ReproductionRequest(
        table="table2", dataset="mnist", seeds=1, data_dir=data_dir, out=tmp_path, changes=small
    )
    (section,) = reproduce(request)
    assert "pool" not in {change.field for change in section.changes}
    config = json.loads((tmp_path / "table2" / "mnist" / "config.json").read_text())
    assert config["pool"] is None


def test_the_command_is_one_that_can_be_typed():
    request = ReproductionRequest(
        table="table2", dataset="mnist", seeds=2, jobs=2, data_dir=Path("my data"), resume=True
    )
    assert request.command() == (
        "python -m research reproduce table2 --scale paper --dataset mnist --seeds 2 "
        "--data-dir 'my data' --jobs 2 --out reproduced --resume"
    )


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["research", "reproduce", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


def test_the_command_line_prints_the_table(data_dir, tmp_path, monkeypatch, capsys):
    preset = changed(
        preset_of("table2", "mnist"), {**TINY, "validation": 30, "strategies": ("random", "badge")}
    )
    table = replace(TABLES["table2"], presets=(preset,))
    monkeypatch.setitem(TABLES, "table2", table)
    out = tmp_path / "out"
    arguments = ("table2", "--scale", "laptop", "--seeds", 1, "--data-dir", data_dir, "--out", out)
    assert run_main(monkeypatch, *arguments) == 0
    printed = capsys.readouterr().out
    assert "91.24 ± 0.48" in printed
    assert "seeds: 3 -> 1" in printed
    assert str(out / "table2.md") in printed
    assert run_main(monkeypatch, *arguments) == 2
    assert "pass --resume" in capsys.readouterr().err
    assert run_main(monkeypatch, *arguments, "--resume") == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table4",), "table1, table2, table3, ablation"),
        (("table2", "--scale", "cluster"), "paper, laptop"),
        (("table2", "--dataset", "cifar100"), "mnist, svhn, cifar10"),
        (("table2", "--seeds", 0), "seeds"),
        (("table2", "--jobs", 0), "jobs"),
        (("table3", "--jobs", 2), "leave --jobs out"),
        (("table2", "--data-dir", "absent", "--dataset", "mnist"), "data folder"),
        ((), "Missing argument"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_main(monkeypatch, *arguments) == 2
    line = capsys.readouterr().err
    assert len(line.strip().splitlines()) == 1
    assert words in line
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_told(data_dir, tmp_path):
    (tmp_path / "table2").write_text("not a folder")
    with pytest.raises(FileError, match="to make the folder"):
        reproduce(tiny("table2", data_dir, tmp_path))
    (tmp_path / "out" / "table2").mkdir(parents=True)
    (tmp_path / "out" / "table2" / "mnist").write_text("not a folder")
    with pytest.raises(FileError, match="a folder at"):
        reproduce(tiny("table2", data_dir, tmp_path / "out"))


def test_files_that_were_damaged_are_told(data_dir, tmp_path):
    for name in ("section.json", "times/badge/seed-000.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"rows": 3}')
    with pytest.raises(FileError, match=r"section\.json"):
        load_section(tmp_path / "section.json")
    with pytest.raises(FileError, match=r"seed-000\.json"):
        read_times(tmp_path / "times" / "badge" / "seed-000.json")


def test_only_a_network_has_a_forward_pass_to_time(data_dir, tmp_path):
    changes = {"model": "logistic", "recipe": {}, "validation": 0}
    request = ReproductionRequest(
        table="table3", dataset="svhn", data_dir=data_dir, out=tmp_path, changes=changes
    )
    with pytest.raises(InputError, match="a network"):
        reproduce(request)
