"""The models that come with mpx, as data: nothing in them is executed (docs/recognition.md)."""

from pathlib import Path

BACKGROUND = Path(__file__).with_name("background")  # who shares a path: trees
KNN_DTW = Path(__file__).with_name("knn_dtw")  # the same: nearest neighbours in dynamic time warping
