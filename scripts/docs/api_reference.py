"""The API reference as Markdown: signatures and docstrings of the public names."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

MODULES = {
    "sabal": "Choosing. The core: NumPy, SciPy and the array library of your inputs.",
    "sabal.models": "PyTorch networks, and posteriors whose samples a whole pool shares.",
    "sabal.integrations": "Beside other packages.",
    "sabal.pools.ray": "Pools on a Ray cluster.",
    "sabal.loop": "Choose, ask, train, repeat.",
}
WIDTH = 88
"""A signature that is longer has a line for every parameter."""


def page() -> str:
    """Return the whole page."""
    parts = ["# Python reference", "Made from the code of this version."]
    for module, summary in MODULES.items():
        parts += [f"## {module}", summary]
        parts += [_entry(module, name, thing) for name, thing in public_names(module).items()]
    return "\n\n".join(parts) + "\n"


def public_names(module: str) -> dict[str, Any]:
    """Return the public names of `module`: its `__all__`, else those without an underscore."""
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None)
    if listed is not None:
        return {name: getattr(found, name) for name in listed}
    return {
        name: thing
        for name, thing in vars(found).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module
    }


def undescribed(module: str) -> list[str]:
    """Public names, and methods of public classes, that say nothing of themselves."""
    bare = []
    for name, thing in public_names(module).items():
        if not own_doc(thing):
            bare.append(f"{module}.{name}")
        bare += [f"{module}.{name}.{method}" for method, it in _methods(thing) if not own_doc(it)]
    return bare


def own_doc(thing: Any) -> str:
    """Return the docstring written for `thing`, not the one that a dataclass generates."""
    doc = inspect.cleandoc(thing.__doc__ or "")
    made_up = inspect.isclass(thing) and doc.startswith(f"{thing.__name__}(")
    return "" if made_up else doc


def parameters(thing: Any) -> list[str]:
    """Return the names of the parameters of a function, or of a class's constructor."""
    try:
        return [name for name in inspect.signature(thing).parameters if name != "self"]
    except ValueError:
        return []


def _entry(module: str, name: str, thing: Any) -> str:
    full = f"{module}.{name}"
    parts = [f"### {name} {{ #{full} }}"]
    if not _is_only_a_type(thing):
        parts.append(f"```python\n{_signature(full, thing)}\n```")
    parts.append(_markdown(own_doc(thing), [*parameters(thing), *_attributes(thing)]))
    for method, it in _methods(thing):
        if isinstance(it, property):
            head = f"**`.{method}`**"
        else:
            head = f"```python\n{_signature(f'{name}.{method}', it)}\n```"
        parts += [head, _markdown(own_doc(it), parameters(it) if callable(it) else [])]
    return "\n\n".join(part for part in parts if part)


def _is_only_a_type(thing: Any) -> bool:
    """Whether it is a class that callers catch or implement, and do not make."""
    return inspect.isclass(thing) and (
        issubclass(thing, Exception) or getattr(thing, "_is_protocol", False)
    )


def _attributes(thing: Any) -> list[str]:
    return list(inspect.get_annotations(thing)) if inspect.isclass(thing) else []


def _methods(thing: Any) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties that a class defines itself."""
    if inspect.isclass(thing):
        for name, it in vars(thing).items():
            plain = it.__func__ if isinstance(it, classmethod | staticmethod) else it
            if not name.startswith("_") and (
                inspect.isfunction(plain) or isinstance(plain, property)
            ):
                yield name, plain


def _signature(name: str, thing: Any) -> str:
    signature = inspect.signature(thing)
    parts, seen_star = [], False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not seen_star:
            parts.append("*")
        seen_star |= parameter.kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        )
        parts.append(_parameter(parameter))
    returns = signature.return_annotation
    shown = inspect.isclass(thing) or returns is inspect.Signature.empty
    arrow = "" if shown else f" -> {_annotation(returns)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= WIDTH or not parts:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        default = parameter.default
        # What a dataclass makes anew for every object has no repr worth reading.
        text += " = ..." if "<" in repr(default) else f" = {default!r}"
    return text


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _markdown(doc: str, names: list[str]) -> str:
    """Convert a docstring to Markdown: `name:` lines become a list, indented ones code."""
    blocks: list[list[str]] = []
    for paragraph in re.split(r"\n\s*\n", doc):
        lines = paragraph.splitlines()
        if all(line.startswith("    ") for line in lines):
            blocks.append(lines)
            continue
        text: list[str] = []
        items: list[str] = []
        for line in lines:
            field = re.match(r"([\w, ]+): (.*)", line)
            if field and all(each.strip() in names for each in field[1].split(",")):
                shown = ", ".join(f"`{each.strip()}`" for each in field[1].split(","))
                items.append(f"- {shown}: {_escaped(field[2])}")
            elif items:
                items[-1] += f" {_escaped(line.strip())}"
            else:
                text.append(_escaped(line))
        blocks += [block for block in (text, items) if block]
    return "\n\n".join("\n".join(block) for block in blocks)


def _escaped(text: str) -> str:
    """Text whose stars and angles mean themselves; what is between backticks is code anyway."""
    pieces = text.split("`")
    for k in range(0, len(pieces), 2):
        pieces[k] = re.sub(r"([*_<|\[])", r"\\\1", pieces[k])
    return "`".join(pieces)
