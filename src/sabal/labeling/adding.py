"""Adds data to a project, also while the app runs; the worker computes features for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sabal.errors import FileError
from sabal.labeling.project import Project
from sabal.labeling.sources import ItemSource, feature_width, has_features, read_source
from sabal.labeling.store.records import AddReport


def add_data(
    project: Project,
    data: str | Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
) -> AddReport:
    """Add the items of `data` that the project does not have yet.

    An item is there already if its id and its text or path are. All are checked before the first
    is added; if this is interrupted, the rest is added when it is repeated. The columns are by
    default those of the settings.
    """
    path, settings = Path(data).absolute(), project.settings
    source = read_source(
        path,
        text_column=text_column or settings.text_column,
        id_column=id_column or settings.id_column,
    )
    if source.kind != settings.kind:
        raise FileError(
            f"{settings.kind}s, as in the rest of the project",
            f"{source.kind}s in {path}",
            "make another project for them",
        )
    _check_features(project, path)
    if source.kind == "image":
        source = _from_folder_of_project(project, path, source)
    return project.store.add_source(str(path), source.items)


def _check_features(project: Project, path: Path) -> None:
    """Refuse a table without features, or with others, where the project has its own features."""
    if not has_features(project.data):
        return
    width = feature_width(project.data)
    found = feature_width(path) if has_features(path) else 0
    if found != width:
        raise FileError(
            f"a .parquet file with {width} features a row, as {project.data} has",
            f"{found} in {path}",
            "compute the features of the new items in the same way",
        )


def _from_folder_of_project(project: Project, path: Path, source: ItemSource) -> ItemSource:
    """Return images as the project names them: by the path below its folder, else by the whole."""
    root = project.data_root
    folder = (path if path.is_dir() else path.parent).resolve()
    inside = folder.relative_to(root) if folder.is_relative_to(root) else None
    items = []
    for item in source.items:
        if inside is None:
            items.append(replace(item, content=str(folder / item.content)))
            continue
        content = (inside / item.content).as_posix()
        key = content if path.is_dir() else item.key
        items.append(replace(item, key=key, content=content))
    return replace(source, items=items)
