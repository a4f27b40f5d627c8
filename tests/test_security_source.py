"""What the source must not do: unpickle, evaluate, call a shell, or put values into SQL."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "yaml",
    "joblib",
}
MESSAGES = {"actor.py", "ray_workers.py", "scoring.py"}
"""In pools/ray, where Ray itself carries pickled objects between the processes of a run: these
three unpickle what another process of that run has just sent, and never a file."""
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}


def source_files():
    files = sorted([*SOURCE.rglob("*.py"), *(ROOT / "research").rglob("*.py")])
    assert len(files) > 200
    return files


def trees():
    for path in source_files():
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_nothing_is_unpickled_evaluated_or_handed_to_a_shell():
    unpickling = set()
    for path, tree in trees():
        for node in ast.walk(tree):
            where = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                modules = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules = {(node.module or "").partition(".")[0]}
            else:
                modules = set()
            if modules & FORBIDDEN_MODULES:
                unpickling.add(path)
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in FORBIDDEN_CALLS, where
                for keyword in node.keywords:
                    if keyword.arg in ("shell", "allow_pickle"):
                        assert ast.unparse(keyword.value) == "False", where
                    assert keyword.arg != "trust_remote_code", where
                if called == "torch.load":
                    assert "weights_only=True" in ast.unparse(node), where
                if called.endswith((".load", ".save")) and called.startswith(("np.", "numpy.")):
                    assert {"allow_pickle"} & {keyword.arg for keyword in node.keywords}, where
    assert unpickling == {SOURCE / "sabal" / "pools" / "ray" / name for name in MESSAGES}


def test_values_reach_the_database_as_parameters_only():
    asked = 0
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            if name not in ("text", "exec_driver_sql", "execute", "executemany", "executescript"):
                continue
            if name == "text" and not ast.unparse(node.func).startswith(("sa.", "sqlalchemy.")):
                continue
            asked += 1
            statement = node.args[0]
            for part in ast.walk(statement):
                where = f"{path.name}:{node.lineno}"
                if isinstance(part, ast.JoinedStr):
                    # Numbers of our own, written in capitals, are no values of anybody's.
                    values = [v.value for v in part.values if isinstance(v, ast.FormattedValue)]
                    assert all(isinstance(v, ast.Name) and v.id.isupper() for v in values), where
                assert not (
                    isinstance(part, ast.Call)
                    and isinstance(part.func, ast.Attribute)
                    and part.func.attr == "format"
                ), where
                assert not (
                    isinstance(part, ast.BinOp)
                    and any(isinstance(side, ast.Constant) and isinstance(side.value, str)
                            for side in (part.left, part.right))
                ), where  # fmt: skip
    assert asked > 30
