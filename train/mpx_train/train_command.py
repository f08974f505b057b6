"""`mpx train`."""

from pathlib import Path

import click

from mpx.choices import KNN_DTW, TRAINABLE, TREES
from mpx.errors import UsageError


@click.command("train")
@click.argument("dataset", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "model",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder to write the model to.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    help="Seed of all random choices.",
)
@click.option(
    "--classifier",
    type=click.Choice(TRAINABLE),
    default=TREES,
    show_default=True,
    help="Trees over features, or what OPS compares: nearest neighbours in dynamic time warping, a network "
    "(mlp), support vectors (svm), Gaussian naive Bayes.",
)
@click.option(
    "--neighbours",
    type=click.IntRange(1, 100),
    help="How many of the nearest vote, with --classifier knn-dtw (1).",
)
def train_command(dataset: Path, model: Path, seed: int, classifier: str, neighbours: int | None) -> None:
    """Train the model that recognises what shares a path, from a DATASET of `mpx lab dataset`.

    The model is a folder of data: arrays, and a card that says what it was made of and how good it is. The
    same dataset and seed give the same model.
    """
    if neighbours is not None and classifier != KNN_DTW:
        raise UsageError(f"--neighbours is for --classifier {KNN_DTW} only; give that too, or leave it out")
    try:
        if classifier == KNN_DTW:
            from mpx_train.templates import train_templates

            lines = train_templates(dataset, model, seed, neighbours or 1)
        elif classifier != TREES:
            from mpx_train.estimators import train_estimators

            lines = train_estimators(dataset, model, classifier, seed)
        else:
            from mpx_train.train import train

            lines = train(dataset, model, seed)
    except ImportError as error:
        raise UsageError(
            f"training needs more than mpx itself ({error}); "
            "install it with: pip install '.[train]' in a clone of mpx"
        ) from None
    for line in lines:
        click.echo(line)
