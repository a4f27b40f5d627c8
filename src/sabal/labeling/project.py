"""A project: a folder with settings, a database, features and models.

sabal.toml   the settings; this file makes the folder a project
sabal.db     the store, unless database_url names another database
features/    the features of all items, in chunks
models/      the model of every training
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sabal.core.files import make_folder, os_errors_about
from sabal.errors import FileError
from sabal.labeling.creation import DATABASE, SETTINGS, check_free, new_store
from sabal.labeling.features.backbone_names import check_backbone
from sabal.labeling.settings import Settings, read_settings, write_classes, write_settings
from sabal.labeling.sources import FILE_ENDINGS, read_source
from sabal.labeling.store import Store
from sabal.labeling.store.database import Clock, utc_now
from sabal.labeling.store.records import PoolItem


class Project:
    """An open project; use it as a context manager, or close it when done."""

    def __init__(self, folder: Path, settings: Settings, store: Store) -> None:
        self.folder, self.settings, self.store = folder, settings, store

    @classmethod
    def create(
        cls,
        folder: str | Path,
        *,
        data: str | Path,
        classes: Any,
        text_column: str | None = None,
        id_column: str | None = None,
        name: str | None = None,
        **settings: Any,
    ) -> Project:
        """Create a project and open it.

        `data` is a folder of images, or a .csv, .jsonl or .parquet file. `settings` are others by
        their names in sabal.toml.
        """
        place, source_path = Path(folder).absolute(), Path(data).absolute()
        check_free(place)
        source = read_source(source_path, text_column=text_column, id_column=id_column)
        values = {
            "name": name or place.name,
            "classes": classes,
            "kind": source.kind,
            "data": str(source_path),
            "text_column": text_column,
            "id_column": id_column,
            **settings,
        }
        chosen = Settings.from_dict(values)
        check_backbone(chosen.kind, chosen.backbone)
        make_folder(place)
        written = False
        try:
            with os_errors_about(place), new_store(place, chosen, source.items) as store:
                written = True
                # Last: with this file the folder is a project.
                write_settings(place / SETTINGS, chosen)
        except BaseException:
            if written:
                (place / SETTINGS).unlink(missing_ok=True)
            raise
        return cls(place, chosen, store)

    @classmethod
    def open(cls, folder: str | Path, *, clock: Clock = utc_now, to_read: bool = False) -> Project:
        """Open a project; with `to_read` nothing is written, and permission to read is enough."""
        place = Path(folder).absolute()
        if not (place / SETTINGS).is_file():
            raise FileError(
                f"a project at {place}", f"no {SETTINGS} in it", "make one with `sabal init`"
            )
        settings = read_settings(place / SETTINGS)
        if settings.database_url is None and not (place / DATABASE).is_file():
            raise FileError(
                f"the database of the project at {place}",
                f"no {DATABASE} in it",
                "restore it from a copy, or make a new project",
            )
        database = settings.database_url or place / DATABASE
        store = Store.open(database, settings, clock=clock, to_read=to_read)
        return cls(place, settings, store)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes now, also after they were changed."""
        return self.store.classes

    def change_classes(
        self, action: str, name: str, target: str | None = None, *, person: str = ""
    ) -> None:
        """Add a class, rename it to `target`, or merge it into `target`, here and in sabal.toml."""
        # Refused before anything is written; and a file that is wrong already is not overwritten.
        read_settings(self.folder / SETTINGS)
        write = partial(write_classes, self.folder / SETTINGS)
        if action == "add":
            self.store.add_class(name, person=person, write=write)
        elif action == "rename":
            self.store.rename_class(name, target or "", person=person, write=write)
        else:
            self.store.merge_class(name, target or "", person=person, write=write)

    @property
    def items(self) -> list[PoolItem]:
        """The whole pool, by row."""
        return self.store.items()

    @property
    def data(self) -> Path:
        """The folder of images, or the file of texts."""
        return Path(self.settings.data)

    @property
    def data_root(self) -> Path:
        """The folder that the paths of images are relative to."""
        return _root(self.data)

    def data_file(self, name: str) -> Path:
        """Return the path of a file below a folder of the data; refuse one outside of them.

        The name is relative to the folder of the project's data, or, of an image that was added
        from elsewhere, absolute.
        """
        root = self.data_root
        try:
            path = (root / name).resolve()
            inside = path.is_relative_to(root) or self._was_added(path, name)
            inside = inside and path.is_file()
        except (OSError, ValueError, RuntimeError):
            inside = False
        if not inside:
            raise FileError(
                "a file in the folder of the data", repr(name), "put it there, without links"
            )
        return path

    def missing_images(self) -> list[str]:
        """Return the ids of images that are not where they were; refuse it if that is all."""
        images = [item for item in self.items if item.kind == "image"]
        missing = [item.key for item in images if not self._is_there(item.content)]
        if images and len(missing) == len(images):
            raise FileError(
                f"the images of the project in {self.data_root}",
                "none of them there",
                "put the folder back, or set `data` in sabal.toml to where it is now",
            )
        return missing

    def _is_there(self, name: str) -> bool:
        try:
            return (self.data_root / name).is_file()
        except (OSError, ValueError):
            return False

    def _was_added(self, path: Path, name: str) -> bool:
        if not Path(name).is_absolute():
            return False
        roots = {_root(Path(source)) for source in self.store.added_paths()}
        return any(path.is_relative_to(root) for root in roots)

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _root(data: Path) -> Path:
    # Its ending tells a file from a folder also when it is not there any more.
    is_file = data.suffix.lower() in FILE_ENDINGS and not data.is_dir()
    return (data.parent if is_file else data).resolve()
