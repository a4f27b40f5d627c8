"""The worker: the engine in a process of its own, beside people who label."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from labeling_digits import SAME, digits_project, label_all
from sabal.labeling import engine as engines
from sabal.labeling import worker_process as workers
from sabal.labeling.project import Project
from sabal.labeling.worker_lock import WorkerLock
from sabal.labeling.worker_process import start_worker
from waiting import until


def test_the_worker_trains_and_chooses_while_people_label(tmp_path):
    project = digits_project(tmp_path, **SAME, budget=17)
    worker = start_worker(project)
    try:
        until(lambda: project.store.status().remaining == 12)
        label_all(project.store)
        until(lambda: project.store.status().round == 1)
        label_all(project.store)
        until(lambda: project.store.status().training == "idle")
        assert worker.alive
        assert len(project.store.trainings()) == 2
    finally:
        worker.stop()
    assert not worker.alive
    project.close()


def test_the_worker_ends_with_its_parent(tmp_path):
    digits_project(tmp_path).close()
    code = textwrap.dedent(f"""
        import os
        from sabal.labeling.project import Project
        from sabal.labeling.worker_process import start_worker
        worker = start_worker(Project.open({str(tmp_path / "p")!r}))
        print(worker._process.pid, flush=True)
        os._exit(1)
    """)
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    pid = int(answer.stdout)
    until(lambda: not _running(pid), 30)


def _running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_goes_on_after_a_failure(tmp_path, monkeypatch, capsys):
    digits_project(tmp_path).close()
    monkeypatch.setattr(workers, "AFTER_FAILURE_SECONDS", 0.01)
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.01)
    calls = []

    class Flaky(engines.Engine):
        def step(self):
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("once")
            if len(calls) > 5:
                stop.set()
            return super().step()

    stop = workers.threading.Event()
    monkeypatch.setattr(workers, "Engine", Flaky)
    workers.work(tmp_path / "p", stop)
    assert "RuntimeError: once" in capsys.readouterr().err
    with Project.open(tmp_path / "p") as project:
        assert project.store.status().remaining > 0


def test_one_worker_works_and_another_takes_over(tmp_path):
    project = digits_project(tmp_path, **SAME, budget=22)
    lock = WorkerLock(project)
    first, second = start_worker(project), start_worker(project)
    try:
        until(lambda: project.store.status().remaining == 12)
        assert not lock.acquire(), "a worker has it"
        label_all(project.store)
        until(lambda: project.store.status().round == 1)
        first._process.kill()
        first._process.wait()
        label_all(project.store)
        until(lambda: project.store.status().round == 2)
        label_all(project.store)
        until(lambda: project.store.status().training == "idle")
        assert second.alive
        rounds = [each.round for each in project.store.trainings() if each.finished_at]
        assert rounds == sorted(set(rounds)), "nothing was trained twice"
    finally:
        first.stop()
        second.stop()
    assert lock.acquire()
    other = WorkerLock(project)
    assert lock.acquire()
    assert not other.acquire()
    lock.release()
    assert other.acquire()
    other.release()
    project.close()
