"""`mpx train`."""

from pathlib import Path

import click

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
def train_command(dataset: Path, model: Path, seed: int) -> None:
    """Train the model that recognises what shares a path, from a DATASET of `mpx lab dataset`.

    The model is a folder of data: arrays, and a card that says what it was made of and how good it is. The
    same dataset and seed give the same model.
    """
    try:
        from mpx_train.train import train
    except ImportError as error:
        raise UsageError(
            f"training needs more than mpx itself ({error}); "
            "install it with: pip install '.[train]' in a clone of mpx"
        ) from None
    for line in train(dataset, model, seed):
        click.echo(line)
