"""What somebody does in FiftyOne: load a batch, label it, write it; also CVAT's XML.

Runs in an environment with FiftyOne, and knows nothing of sabal but the files of an export.

    python with_fiftyone.py BATCH.json CVAT.xml IMAGES OUT.json
"""

from __future__ import annotations

import json
import sys

import fiftyone as fo


def main(batch: str, cvat: str, images: str, out: str) -> None:
    """Label by the name of the file; the last sample is skipped."""
    dataset = fo.Dataset.from_json(batch)
    order = dataset.sort_by("sabal_priority", reverse=True).values("sabal_id")
    for sample in dataset:
        if sample["sabal_id"] == order[-1]:
            sample.tags.append("sabal-skip")
        else:
            sample["ground_truth"] = fo.Classification(label=sample.filename.partition("-")[0])
        sample.save()
    dataset.write_json(out)
    tags = fo.Dataset.from_dir(
        dataset_type=fo.types.CVATImageDataset, data_path=images, labels_path=cvat
    )
    fields = [name for name in tags.get_field_schema() if name.startswith("classifications")]
    read = {
        sample.filename: [each.label for each in sample[fields[0]].classifications]
        for sample in tags
        if fields and sample[fields[0]] is not None
    }
    print(json.dumps({"order": order, "fields": sorted(dataset.get_field_schema()), "cvat": read}))


if __name__ == "__main__":
    main(*sys.argv[1:])
