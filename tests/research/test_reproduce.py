"""`python -m research reproduce`: the printed settings, and a table run from end to end."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from research.cli import main
from research.reproduce import result_files
from research.reproduce.comparison_tables import scales_markdown, shared_rows
from research.reproduce.first_query import time_first_query
from research.reproduce.paper_summary import relation
from research.reproduce.paper_tables import TABLES
from research.reproduce.preset import READING_ROWS, SABAL_ROWS, title_of
from research.reproduce.preset_data import data_of, resized
from research.reproduce.reproduction import (
    ReproductionRequest,
    open_runs,
    planned,
    report,
    reproduce,
)
from research.reproduce.result_files import (
    TableRunRecord,
    digest_of,
    experiment_of,
    options_of,
    read_results,
    runs_file,
)
from research.reproduce.scaling import (
    CHANGEABLE,
    changed,
    differences,
    expected_hours,
    scaled,
)
from research.reproduce.table_runs import TableRun, first_round, run_steps
from research.reproduce.table_sections import area_of
from research.reproduce.variance_shares import ROWS, measure_shares, write_shares
from research.study.csv_lines import append_line
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.loop import Journal
from sabal.pools import ArrayPool
from sabal.simulate.runner import run_points
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
    found = [(table, p.dataset) for table, p in ALL if table not in ("ablation", "cut")]
    assert found == list(PRINTED) == list(SETTINGS)
    assert [p.dataset for p in TABLES["ablation"].presets] == ["fashion-mnist", "cifar10"]


def printed_figures(table, dataset):
    names = BAYESIAN if table == "table1" else GENERAL
    numbers = [float(word) for word in PRINTED[table, dataset].split()]
    return dict(zip(names, zip(numbers[::2], numbers[1::2], strict=True), strict=True))


@pytest.mark.parametrize(("table", "dataset"), PRINTED)
def test_the_figures_are_those_printed(table, dataset):
    """The paper's figure of a solver stands beside both readings of it."""
    expected = printed_figures(table, dataset)
    for solver in ("greedy", "iht"):
        figure = expected.pop(f"sabal-{solver}")
        expected |= {f"{solver}-as-printed": figure, f"{solver}-corrected": figure}
    preset = preset_of(table, dataset)
    assert {name: (f.mean, f.std) for name, f in preset.paper.items()} == expected
    assert set(preset.strategies) == {*expected, "margin", *SABAL_ROWS}


@pytest.mark.parametrize("dataset", ["fashion-mnist", "cifar10"])
def test_the_ablation_has_the_settings_and_figures_of_table_1(dataset):
    ablation, table1 = preset_of("ablation", dataset), preset_of("table1", dataset)
    same = ("model", "recipe", "initial", "batch", "rounds", "seeds", "image", "laptop")
    assert all(getattr(ablation, name) == getattr(table1, name) for name in same)
    assert ablation.paper == {row: table1.paper[row] for row in ("random", *READING_ROWS)}
    assert all(ablation.options[row] == table1.options[row] for row in READING_ROWS)
    for row, options in ablation.options.items():
        both = ablation.options.get(row.removesuffix("-bias-only"))
        if row.endswith("bias-only"):
            both = both or ablation.options[row.replace("printed-bias-only", "as-printed")]
            assert options == {**both, "alpha": 0.0}
    assert {"random", "margin", "sabal", *ablation.options} == set(ablation.strategies)
    assert ablation.options["greedy-free"]["scale"] == "free"


@pytest.mark.parametrize(("table", "dataset"), SETTINGS)
def test_the_settings_are_those_printed(table, dataset):
    preset = preset_of(table, dataset)
    recipe, options = preset.recipe, preset.options
    solvers = ("greedy-as-printed", "iht-as-printed")
    found = (
        preset.initial,
        preset.batch,
        preset.rounds,
        preset.seeds,
        *(recipe[name] for name in ("epochs", "batch_size", "optimizer", "lr")),
        recipe.get("samples"),
        *(options[s][o] for s in solvers for o in ("alpha", "beta")),
    )
    assert found == SETTINGS[table, dataset]
    for solver in ("greedy", "iht"):
        units = ("strategy", "alpha", "beta", "scale")
        as_printed, corrected = options[f"{solver}-as-printed"], options[f"{solver}-corrected"]
        assert [as_printed[k] for k in units] == [corrected[k] for k in units]
        assert as_printed["scale"] == "literal"
    assert not set(SABAL_ROWS) & set(options)
    assert recipe["weight_decay"] == 5e-4
    assert recipe["network_options"] == {"width": 1.0}
    bayesian = table == "table1"
    assert preset.model == ("resnet18-variational" if bayesian else MODELS[dataset])
    assert recipe["augment"] == ("crop-flip" if bayesian else None)
    assert recipe.get("momentum") == (None if bayesian else 0.9)
    assert preset.validation == (0 if bayesian else 1000)
    # What Pinsler et al. 2019 do, whose settings the Bayesian experiments keep.
    assert recipe.get("decay_biases", True) is not bayesian
    assert recipe.get("drop_last", False) is bayesian
    assert preset.image == ((32, 3) if dataset == "fashion-mnist" else None)


def test_the_readings_are_the_printed_lines_and_their_corrections():
    preset = preset_of("table2", "mnist")
    found = {row: options_of(preset, row) for row in READING_ROWS}
    printed, corrected = found["greedy-as-printed"], found["greedy-corrected"]
    assert (printed["score"], printed["refresh"]) == ("first-order", 1)
    assert (corrected["score"], corrected["refresh"]) == ("optimal-step", "auto")
    assert found["iht-as-printed"]["prox"] == "appendix"
    assert found["iht-corrected"]["prox"] == "exact"
    titles = " ".join(title_of(row) for row in (*READING_ROWS, *SABAL_ROWS))
    for words in ("as printed (literal units", "corrected, printed alpha", "Sabal's defaults"):
        assert words in titles


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


def test_all_tables_at_scale_laptop_take_a_night():
    hours = [
        expected_hours(small, timed=table.timed, shared=shared_rows(table, small))
        for table in TABLES.values()
        for small in (scaled(preset, "laptop") for preset in table.presets)
    ]
    # Up to ten hours of two cores, of which some are left for the choosing itself.
    assert 1 < sum(hours) < 8


def test_expected_hours_of_an_example_worked_by_hand():
    preset = changed(preset_of("table2", "mnist"), {"rounds": 1, "seeds": 1, "pool": 600})
    preset = changed(preset, {"strategies": ("random", "badge"), "recipe.epochs": 10})
    # One first model, then two runs with 80 labels; after each the test set is predicted.
    trained, predicted = 10 * (40 + 2 * 80), 3 * 10_000 + 2 * 600
    seconds = trained / 13_500 + predicted / 29_800
    assert expected_hours(preset) == pytest.approx(seconds / 3600 / 2)
    # One training that both share, and two passes over the pool beside one over the test set.
    seconds = 400 / 13_500 + 11_200 / 29_800
    assert expected_hours(preset, timed=True) == pytest.approx(seconds / 3600)
    # A row of another table is not run, and its first model is there.
    seconds = 800 / 13_500 + 10_600 / 29_800
    assert expected_hours(preset, shared=["random"]) == pytest.approx(seconds / 3600 / 2)
    assert expected_hours(changed(preset, {"model": "logistic"})) is None


def test_differences_are_found_wherever_they_are():
    preset = preset_of("table2", "mnist")
    other = changed(
        preset,
        {"strategies": ("random",), "options.badge.bias": False, "recipe.schedule": "cosine"},
    )
    assert {c.field: (c.paper, c.here) for c in differences(preset, other)} == {
        "strategies": (preset.strategies, ("random",)),
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


# -- the data and the digests ----------------------------------------------------------------


def test_resized_images_are_those_of_pillow():
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (3, 28, 28)).astype(np.uint8)
    found = resized(grey, 32, 3)
    assert found.shape == (3, 32, 32, 3)
    assert found.dtype == np.uint8
    for one, other in zip(grey, found, strict=True):
        expected = np.asarray(image.fromarray(one).resize((32, 32), image.Resampling.BILINEAR))
        for channel in range(3):
            assert np.abs(other[..., channel].astype(int) - expected).max() <= 1
    colour = rng.integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    assert np.array_equal(resized(colour, 32, 3), colour)


def test_a_digest_changes_with_the_settings_and_the_defaults_and_nothing_else(monkeypatch):
    preset = preset_of("table2", "svhn")
    digest = digest_of(preset, "sabal-greedy")
    others = [
        changed(preset, {"recipe.epochs": 3}),
        changed(preset, {"batch": 7}),
        changed(preset, {"test": 2_000}),
        changed(preset, {"options.sabal-greedy.alpha": 2.0}),
    ]
    assert len({digest, *(digest_of(other, "sabal-greedy") for other in others)}) == 5
    same = changed(preset, {"seeds": 9, "strategies": ("sabal-greedy",)})
    spelled_out = changed(preset, {"options.sabal-greedy": options_of(preset, "sabal-greedy")})
    assert digest_of(same, "sabal-greedy") == digest_of(spelled_out, "sabal-greedy") == digest
    assert digest_of(preset, "sabal-greedy", timed=True) != digest
    # A new option at the value that changes nothing.
    monkeypatch.setitem(result_files.ADDED_OPTIONS, "bias", True)
    shorter = digest_of(preset, "sabal-greedy")
    assert shorter != digest
    assert options_of(preset, "sabal-greedy")["bias"] is True
    without = {k: v for k, v in options_of(preset, "sabal-greedy").items() if k != "bias"}
    monkeypatch.setattr(result_files, "options_of", lambda preset, row: without)
    assert digest_of(preset, "sabal-greedy") == shorter


def test_the_ablation_shares_the_rows_of_table_1():
    table = TABLES["ablation"]
    for preset in table.presets:
        small = scaled(preset, "laptop")
        assert {"random", "margin", "sabal", *READING_ROWS} <= set(shared_rows(table, small))


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
    "ablation": (
        "fashion-mnist",
        {
            "recipe.samples": 6,
            "strategies": (
                "random",
                "sabal",
                "variance-only",
                "greedy-printed-bias-only",
                "iht-free",
            ),
        },
    ),
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
        out=out / "results",
        work=out / "work",
        changes={**TINY, **changes},
        **more,
    )


def tiny_run(request, row):
    return TableRun(
        table=request.table, scale="laptop", preset=own_preset(request), row=row, seed=0
    )


def own_preset(request):
    return request.preset(preset_of(request.table, request.dataset))


@pytest.fixture(scope="module", params=list(CASES))
def finished(request, data_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param)
    said = []
    asked = tiny(request.param, data_dir, out)
    sections, outcome = reproduce(asked, say=said.append)
    assert (outcome.failed, outcome.left) == ({}, 0)
    return asked, sections, said


def test_ours_are_beside_the_papers(finished):
    request, (section,), _ = finished
    preset = own_preset(request)
    assert [row.strategy for row in section.rows] == list(preset.strategies)
    assert [row.paper for row in section.rows] == [preset.paper.get(s) for s in preset.strategies]
    results = read_results(runs_file(request.out, request.table, section.dataset))
    chance = section.row("random").ours.mean
    for row in section.rows:
        record = results[digest_of(preset, row.strategy)][0]
        curve = [float(each) for each in record.curve.split()]
        assert record.labels == "24 34 44"
        # Equal steps: the area is the mean of the points with half the ends.
        area = (curve[0] / 2 + curve[1] + curve[2] / 2) / 2
        assert row.ours.mean == pytest.approx(area)
        assert row.final_accuracy == pytest.approx(curve[2] / 100)
        assert row.seeds == 1
        assert json.loads(row.options) == options_of(preset, row.strategy)
        if row.strategy != "random":
            assert row.minus_random.mean == pytest.approx(area - chance)


def test_the_files_say_ours_the_papers_and_every_change(finished):
    request, (section,), said = finished
    table, preset = request.table, own_preset(request)
    page = (request.out / f"{table}.md").read_text()
    for row in section.rows:
        lines = [each for each in page.splitlines() if each.startswith(f"| {row.title} |")]
        assert len(lines) == 1
        # One seed has no standard deviation.
        assert lines[0].split(" | ")[1].strip("*") == f"{row.ours.mean:.2f}"
        if row.paper is not None:
            assert f"{row.paper.mean:.2f} ± {row.paper.std:.2f}" in lines[0]
            gain = row.paper.mean - preset.paper["random"].mean
            assert (f"| {gain:+.2f} |" in lines[0]) is (row.strategy != "random")
    figures = [preset.paper[row] for row in preset.strategies if row in preset.paper]
    best = sorted({figure.mean for figure in figures})[-2:]
    bold = {f"**{f.mean:.2f} ± {f.std:.2f}**" for f in figures if f.mean in best}
    assert {cell for cell in re.findall(r"\*\*.+?\*\*", page) if "±" in cell} == bold
    width = "recipe.network_options.width: 1.0 -> 0.1"
    assert f"- {width}" in page
    assert f"- {width}" in said
    for note in preset.notes:
        assert note in page
    assert "this copy has 200 training and 60 test items" in page
    picture = re.search(r"!\[.*\]\((.*)\)", page)[1]
    assert (request.out / picture).read_bytes().startswith(b"\x89PNG")
    assert "Not finished" not in page
    document = json.loads((request.out / f"{table}.json").read_text())
    (record,) = document["sections"]
    assert {change["field"] for change in record["changes"]} >= {*TINY, "seeds"} - {"pool"}
    assert record["rows"][0]["ours"]["mean"] == section.rows[0].ours.mean


def test_nothing_is_repeated_and_the_page_comes_from_the_runs_alone(finished, tmp_path):
    request, sections, _ = finished
    runs = runs_file(request.out, request.table, request.dataset)
    before = runs.read_bytes()
    again, outcome = reproduce(request)
    assert outcome.finished == 0
    assert runs.read_bytes() == before
    assert again == sections
    # Elsewhere, without data and without work folder.
    copy = runs_file(tmp_path, request.table, request.dataset)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(before)
    elsewhere = replace(request, out=tmp_path, data_dir=Path("absent"))
    assert report(elsewhere) == sections
    page = f"{request.table}.md"
    assert (tmp_path / page).read_text() == (request.out / page).read_text()


def test_other_settings_are_other_runs(finished):
    request, _, _ = finished
    table = TABLES[request.table]
    other = replace(request, changes={**request.changes, "recipe.epochs": 2})
    presets = [preset_of(request.table, request.dataset)]
    runs = planned(table, presets, other)
    assert open_runs(runs, request.out) == runs
    more = replace(request, seeds=2)
    todo = open_runs(planned(table, presets, more), request.out)
    assert {run.seed for run in todo} == {1}
    (row, *_) = presets[0].strategies
    chosen = planned(table, presets, replace(request, rows=(row,)))
    assert [run.row for run in chosen] == [row]


def test_runs_are_planned_seed_by_seed():
    table = TABLES["table1"]
    runs = planned(table, table.presets, ReproductionRequest(table="table1"))
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    assert len({run.title for run in runs}) == len(runs)
    assert {run.preset.dataset for run in runs if run.seed == 0} == {
        p.dataset for p in table.presets
    }


def test_the_shared_first_model_gives_the_run_of_a_model_of_its_own(finished, data_dir, tmp_path):
    """The slow way: every strategy trains its own first model."""
    request, _, _ = finished
    preset, row = own_preset(request), "margin" if request.table != "ablation" else "sabal"
    dataset = data_of(preset, str(data_dir))
    points = list(run_points(experiment_of(preset), dataset, tmp_path, row, 0))
    (record,) = read_results(runs_file(request.out, request.table, request.dataset))[
        digest_of(preset, row)
    ].values()
    assert [f"{100 * p.accuracy:.2f}" for p in points] == record.curve.split()
    own = tmp_path / "runs" / row / "seed-000" / "rounds" / "0000"
    shared = first_round(preset, dataset, request.work, 0).folder / "rounds" / "0000"
    for name in ("model.safetensors", "answers-0000.json"):
        assert (own / name).read_bytes() == (shared / name).read_bytes()
    # What is finished leaves only the first models behind.
    assert not list(request.work.glob("*/*/runs/*/seed-*"))


def test_a_run_goes_on_after_its_last_round(data_dir, tmp_path):
    run = tiny_run(tiny("table2", data_dir, tmp_path), "margin")
    rounds = run_steps(run, tmp_path, str(data_dir), None)
    first, second = next(rounds), next(rounds)
    rounds.close()
    (marker,) = tmp_path.glob("mnist/*/runs/margin/seed-000/rounds/0001/done.json")
    marker.write_text(marker.read_text().replace(str(second.accuracy), "0.125"))
    *_, last = run_steps(run, tmp_path, str(data_dir), None)
    assert last.record.curve.split()[:2] == [f"{100 * first.accuracy:.2f}", "12.50"]


def test_the_ablation_takes_over_the_runs_of_table_1(tmp_path):
    row = "greedy-corrected"
    ablation, table1 = (
        ReproductionRequest(table=table, dataset="cifar10", out=tmp_path, rows=(row,), seeds=2)
        for table in ("ablation", "table1")
    )
    record = record_of(1, strategy=row, digest=digest_of(own_preset(table1), row))
    append_line(record, runs_file(tmp_path, "table1", "cifar10"))
    runs = planned(TABLES["ablation"], [preset_of("ablation", "cifar10")], ablation)
    assert [run.seed for run in open_runs(runs, tmp_path)] == [0]
    own = read_results(runs_file(tmp_path, "ablation", "cifar10"))
    assert own == {record.digest: {1: record}}


def test_after_the_last_minute_no_run_is_started(data_dir, tmp_path):
    run = tiny_run(tiny("table2", data_dir, tmp_path), "margin")
    assert list(run_steps(run, tmp_path, str(data_dir), time.time())) == []
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_fails_is_told(data_dir, tmp_path):
    request = tiny("table2", data_dir, tmp_path)
    changes = {"strategies": ("bald",), "options": {}}
    run = tiny_run(replace(request, changes={**request.changes, **changes}), "bald")
    *_, last = run_steps(run, tmp_path, str(data_dir), None)
    assert last.record is None
    assert "log_probs" in last.error


def test_rows_that_are_missing_are_named(tmp_path):
    preset = scaled(preset_of("table2", "svhn"), "laptop")
    for row, seeds in (("random", 3), ("badge", 2)):
        for seed in range(seeds):
            record = record_of(seed, strategy=row, digest=digest_of(preset, row))
            append_line(record, runs_file(tmp_path, "table2", "svhn"))
    (section,) = report(ReproductionRequest(table="table2", out=tmp_path))
    assert [row.strategy for row in section.rows] == ["random", "badge"]
    assert section.missing == [row for row in preset.strategies if row != "random"]
    page = (tmp_path / "table2.md").read_text()
    assert "Not finished, with fewer seeds or none: entropy, kcenter, badge" in page


def record_of(seed, **more):
    fields = {
        "strategy": "random",
        "scale": "laptop",
        "digest": "d",
        "seed": seed,
        "labels": "10 20",
        "curve": "50.00 60.00",
        "seconds": 1.0,
        "selection_seconds": 0.0,
        "train_seconds": 2.0,
        "items": 5,
        "train_items": 6,
        "test_items": 7,
        "data": "one",
        "machine": "a",
        "options": "{}",
    }
    return TableRunRecord(**{**fields, **more})


def test_runs_on_another_copy_of_the_data_do_not_count(tmp_path):
    records = [record_of(0), record_of(1), record_of(1, curve="1.00 2.00")]
    records += [record_of(2, data="other"), record_of(3, data="whole", scale="paper")]
    for record in records:
        append_line(record, tmp_path / "runs.csv")
    found = read_results(tmp_path / "runs.csv")
    assert {seed: r.curve for seed, r in found["d"].items()} == dict.fromkeys(
        (0, 1, 3), "50.00 60.00"
    )
    assert read_results(tmp_path / "absent.csv") == {}
    assert asdict(found["d"][0]) == asdict(records[0])


def test_table3_times_every_strategy_on_one_network(data_dir, tmp_path):
    request = ReproductionRequest(
        table="table3",
        dataset="svhn",
        seeds=2,
        data_dir=data_dir,
        out=tmp_path / "results",
        work=tmp_path / "work",
        changes={**TINY, "rounds": 1, "validation": 30, "strategies": ("random", "badge")},
    )
    (section,), _ = reproduce(request)
    preset = own_preset(request)
    assert [row.strategy for row in section.rows] == list(preset.strategies)
    models = list((tmp_path / "work").glob("svhn/first/*/*/rounds/0000/model.safetensors"))
    assert len(models) == 2
    results = read_results(runs_file(request.out, "table3", "svhn"))
    for row in section.rows:
        measured = results[digest_of(preset, row.strategy, timed=True)]
        assert {record.items for record in measured.values()} == {200 - 30 - 24}
        for figure, key in ((row.ours, "seconds"), (row.selection, "selection_seconds")):
            one, other = (getattr(measured[seed], key) for seed in (0, 1))
            assert figure.mean == pytest.approx((one + other) / 2)
            assert figure.std == pytest.approx(abs(one - other) / 2**0.5)
    page = (request.out / "table3.md").read_text()
    assert "732.18 ± 26.29" in page
    assert "Tesla V100" in page


def test_a_table_gathers_its_data_sets_and_scales(tmp_path):
    for dataset, scale in (("svhn", "laptop"), ("svhn", "paper"), ("mnist", "laptop")):
        preset = scaled(preset_of("table2", dataset), scale)
        record = record_of(0, scale=scale, digest=digest_of(preset, "random"))
        append_line(record, runs_file(tmp_path, "table2", dataset))
    sections = report(ReproductionRequest(table="table2", out=tmp_path))
    # MNIST is run at the scale of the paper.
    found = [(section.dataset, section.scale) for section in sections]
    assert found == [("mnist", "paper"), ("svhn", "paper"), ("svhn", "laptop")]
    page = (tmp_path / "table2.md").read_text()
    assert page.index("## MNIST") < page.index("## SVHN")


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
    folders = ("--out", tmp_path / "out", "--work", tmp_path / "work")
    arguments = ("table2", "--seeds", 1, *folders)
    assert run_main(monkeypatch, *arguments, "--data-dir", data_dir) == 0
    printed, said = capsys.readouterr()
    assert "91.24 ± 0.48" in printed
    assert "seeds: 3 -> 1" in said
    assert str(tmp_path / "out" / "table2.md") in printed
    page = (tmp_path / "out" / "table2.md").read_bytes()
    (tmp_path / "out" / "table2.md").unlink()
    assert run_main(monkeypatch, *arguments, "--report") == 0
    assert "91.24 ± 0.48" in capsys.readouterr().out
    assert (tmp_path / "out" / "table2.md").read_bytes() == page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("table4",), "table1, table2, table3, ablation"),
        (("table2", "--scale", "cluster"), "paper, laptop"),
        (("table2", "--dataset", "cifar100"), "mnist, svhn, cifar10"),
        (("table2", "--rows", "random,bald"), "rows"),
        (("table2", "--seeds", 0), "seeds"),
        (("table2", "--minutes", 0), "minutes"),
        (("table2", "--jobs", 0), "jobs"),
        (("table3", "--jobs", 2), "leave --jobs out"),
        (("table2", "--data-dir", "absent", "--dataset", "mnist"), "data folder"),
        (("table2", "--report"), "finished runs"),
        ((), "Missing argument"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_main(monkeypatch, *arguments) == 2
    line = capsys.readouterr().err
    assert words in line.strip().splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "table2").write_text("not a folder")
    with pytest.raises(FileError, match="to make the folder"):
        append_line(record_of(0), runs_file(tmp_path, "table2", "mnist"))


def areas(section, row):
    return [area_of(record) for record in section.records if record.strategy == row]


def made_up_runs(tmp_path):
    """Write runs of Table 2 with known areas: 50 + 10 for random, and more or less for others."""
    offsets = {
        "random": (0.0, 0.0, 0.0),
        "entropy": (1.0, 1.1, 0.9),
        "badge": (2.0, 2.1, 1.9),
        "greedy-as-printed": (3.0, 3.2, 2.8),
        "iht-as-printed": (-3.0, -3.2, -2.8),
        "greedy-corrected": (-9.0, 8.0, 1.3),
        "sabal": (4.0, 4.1, 4.2),
    }
    for dataset in ("mnist", "svhn"):
        preset = scaled(preset_of("table2", dataset), "laptop")
        for row, changes in offsets.items():
            for seed, change in enumerate(changes):
                curve = f"{50 + seed + change:.2f} {70 + seed + change:.2f}"
                digest = digest_of(preset, row)
                record = record_of(seed, strategy=row, digest=digest, curve=curve)
                append_line(record, runs_file(tmp_path, "table2", dataset))


def test_the_summary_says_what_was_reproduced(tmp_path):
    made_up_runs(tmp_path)
    sections = report(ReproductionRequest(table="table2", out=tmp_path))
    assert areas(sections[0], "random") == pytest.approx([60, 61, 62])
    page = (tmp_path / "paper.md").read_text()
    said = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(said) == 10
    for words in (
        "0 are complete, 2 partly run and 8 not yet; 1 at the paper's scale (MNIST)",
        "random 61.00 (86.48)",
        "The order random < entropy < badge holds.",
        "greedy 64.00 as printed and 61.10 corrected (paper 90.89)",
        "greedy is ahead of random on 2, level on 0 and behind on 0 of 2 data sets (mean +3.00; "
        "+1.00 to the best baseline)",
        "IHT is ahead of random on 0, level on 0 and behind on 2 of 2 data sets",
        "greedy is ahead of random on 0, level on 2 and behind on 0 of 2 data sets (mean +0.10",
        "IHT is not run yet",
        "| [table2](table2.md) | SVHN | laptop | 3 | sabal, Sabal's defaults (coverage) |",
        "| table1 | cifar100 | not run yet |",
        "What the printed alpha weighs is not measured yet",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("differences", "expected"),
    [([1.0, 1.1], "ahead"), ([-1.0, -1.1], "behind"), ([5.0, -4.0], "level"), ([3.0], "level")],
)
def test_a_relation_needs_more_than_one_seed_and_two_standard_errors(differences, expected):
    assert relation(differences) == expected


def test_the_shares_of_the_variance(data_dir, tmp_path):
    """Against the definitions, written out; alpha = 0 changes nothing where alpha has no say."""
    small = changed(preset_of("table1", "fashion-mnist"), {**TINY, "recipe.samples": 6})
    small = replace(small, laptop={})
    inert = changed(small, {f"options.{row}.alpha": 1e-30 for row in READING_ROWS})
    for preset, out in ((small, tmp_path / "one"), (inert, tmp_path / "other")):
        shares = measure_shares(out, tmp_path, str(data_dir), presets=[("table1", preset)])
        assert [share.row for share in shares] == list(ROWS)
    for share in shares:
        assert share.items == 200 - 24
        if share.row in READING_ROWS:
            # The rule of the appendix takes the largest sigma_j at any alpha above 0.
            assert share.unchanged == 10 or share.row == "iht-as-printed"
            assert share.random_share < 1e-20
        else:
            assert 0.01 < share.random_share < 1
    # The variance of a random batch goes with alpha.
    own = measure_shares(tmp_path / "one", tmp_path, None, presets=[])
    by_row = {share.row: share for share in own}
    greedy, iht = by_row["greedy-as-printed"], by_row["iht-as-printed"]
    assert greedy.random_variance == pytest.approx(2 * iht.random_variance)
    assert greedy.random_bias == pytest.approx(iht.random_bias)
    half = replace(greedy, items=2 * greedy.items, random_variance=greedy.random_variance / 4)
    assert half.random_share == pytest.approx(greedy.share_at(2 * greedy.items, greedy.budget))
    page = write_shares(own, tmp_path).read_text()
    assert f"{greedy.unchanged} of 10" in page


def test_only_a_network_has_a_forward_pass_to_time(data_dir, tmp_path):
    changes = {"model": "logistic", "recipe": {}, "validation": 0}
    preset = changed(preset_of("table3", "svhn"), changes)
    with pytest.raises(InputError, match="a network"):
        time_first_query(
            experiment_of(preset), data_of(preset, str(data_dir)), Journal(tmp_path), "random", 0
        )
