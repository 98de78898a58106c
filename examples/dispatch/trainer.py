"""A trainer, as small as one can be: it reads TRAINING_*, tells how far it is, and ends."""

import json
import os
import time

images = os.environ["TRAINING_IMAGES_CONTAINER"]
base_model = os.environ["TRAINING_BASE_MODEL_BLOB_ID"]


def tell(name, **data):
    """Append a line to the file that whoever started this reads."""
    with open(os.environ["TRAINING_PROGRESS_FILE"], "a", encoding="utf-8") as progress:
        progress.write(json.dumps({"name": name, "at": time.time(), "data": data}) + "\n")


print(f"training with {images}, from {base_model or 'nothing'}")
time.sleep(0.5)
tell("imagesDownloaded", images=images)
for iteration in (1, 2, 3):
    time.sleep(0.5)
    tell(f"modelIteration{iteration}Done", loss=round(1 / (iteration + 1), 3))
