"""Programs in the shapes of well-known collections of examples, unedited, print the same under both libraries.

They say ``import torch`` and draw weights, noise and orders as programs do. PyTorch is lent gradwire's random numbers
(``lent_numbers``), so every printed number is compared. A program that reads a file reads, under each library, the one
that the other library wrote.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import torch

from tests.live_server import live_server

from .running import COLLECTION, assert_same_text, files_of, under_gradwire, under_torch


@dataclass(frozen=True)
class Program:
    """A program and how it is called.

    Attributes:
        steps: its commands. The first runs in a folder for each library; the next in the other library's folder.
        files: what the first command writes.
        moving: a pattern for what it prints differently each time.
        rel: how far numbers may differ.
    """

    steps: tuple[str, ...]
    files: tuple[str, ...] = ()
    moving: str = ""
    rel: float = 1e-3
    environment: dict[str, str] = field(default_factory=dict)


PROGRAMS = {
    "image_classifier": Program(("image_classifier.py --save-model",), ("mnist_cnn.pt",)),
    "image_trainer": Program(
        ("image_trainer.py --dummy --seed 1",
         "image_trainer.py --dummy --seed 1 --epochs 3 --resume checkpoint.pth.tar",
         "image_trainer.py --dummy --evaluate --resume model_best.pth.tar"),
        ("checkpoint.pth.tar", "model_best.pth.tar"), r"(Time|Data) +[\d.]+ \( *[\d.]+\)",
    ),
    "row_rnn": Program(("row_rnn.py --save-model",), ("mnist_rnn.pt",)),
    "vae": Program(
        ("vae.py",), tuple(f"results/{what}_{epoch}.pt" for what in ("reconstruction", "sample") for epoch in (1, 2))
    ),
    "gan": Program(
        ("gan.py --manualSeed 3 --outf out",
         "gan.py --manualSeed 4 --outf out --netG out/netG_epoch_0.pth --netD out/netD_epoch_0.pth --dry-run"),
        ("out/fake_samples_epoch_000.pt", "out/netD_epoch_0.pth", "out/netG_epoch_0.pth"),
    ),
    "siamese": Program(("siamese.py --save-model",), ("siamese_network.pt",)),
    "forward_forward": Program(("forward_forward.py --save_model",), ("mnist_ff.pt", "mnist_ff_layers.pt")),
    "word_language_model": Program(
        ("word_language_model/main.py --dropout 0 --tied", "word_language_model/generate.py"),
        ("model.pt",), r"(ms/batch|time:) +[\d.]+",
    ),
    "word_language_model with a transformer": Program(
        ("word_language_model/main.py --model Transformer --lr 2", "word_language_model/generate.py"),
        ("model.pt",), r"(ms/batch|time:) +[\d.]+",
    ),
    "gpt": Program(
        ("gpt/train.py --backend=gloo", "gpt/train.py --backend=gloo --init_from=resume --max_iters=10",
         "gpt/sample.py"),
        ("out/ckpt.pt",), r"time [\d.]+ms",
    ),
    "super_resolution": Program(
        ("super_resolution/main.py --upscale_factor 2",
         "super_resolution/super_resolve.py --input_image 3 --model model_epoch_2.pth --output_filename out.npy"),
        ("model_epoch_1.pth", "model_epoch_2.pth"),
    ),
    "reinforce": Program(("reinforce.py",)),
    "actor_critic": Program(("actor_critic.py",)),
    "time_sequence": Program(("time_sequence/generate_sine_wave.py", "time_sequence/train.py"), ("traindata.pt",)),
    "fast_style": Program(
        ("fast_style/neural_style.py train --save-model-dir . --checkpoint-model-dir checkpoints",
         "fast_style/neural_style.py eval --content-image 3 --output-image out.npy --model epoch_2.model"),
        ("checkpoints/ckpt_epoch_0_batch_id_4.pth", "checkpoints/ckpt_epoch_1_batch_id_4.pth", "epoch_2.model"),
    ),
    "regression": Program(("regression.py",)),
    "graph_networks": Program(
        ("graph_networks.py", "graph_networks.py --model gat --epochs 20"), moving=r"\([\d.]+s\)"
    ),
    "vision_transformer": Program(("vision_transformer.py",), ("best-weights.pt",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def server():
    with live_server() as running:
        yield running


def write_corpus(folder: Path) -> None:
    """Texts for the word language model: parts of the language reference that comes with Python."""
    (folder / "data").mkdir(parents=True)
    for name, topic in (("train", "assignment"), ("valid", "break"), ("test", "continue")):
        (folder / "data" / f"{name}.txt").write_text(topics[topic])


def one_rank() -> dict[str, str]:
    """The environment of a job that has one rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)
    }  # fmt: skip


def test_each_program_is_run():
    """Whatever lies in the collection is named by a command here, but for data and models that programs import."""
    named = {step.split()[0] for program in PROGRAMS.values() for step in program.steps}
    named |= {"gpt/prepare.py", "hogwild/main.py", "hogwild/threads.py"}
    found = {str(path.relative_to(COLLECTION)) for path in COLLECTION.rglob("*.py")}
    runnable = {name for name in found if re.search("__main__|argparse", (COLLECTION / name).read_text())}
    assert runnable <= named <= found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_under_gradwire_what_it_prints_under_torch(name, server, capsys, tmp_path):
    program = PROGRAMS[name]
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
        if name.startswith("word"):
            write_corpus(folder)
    environment = one_rank() if name == "gpt" else {}
    if name == "gpt":
        for folder in folders:
            under_torch(["gpt/prepare.py"], folder, capsys, {})
    before = files_of(folders[0])
    for step in program.steps:
        ours = under_gradwire(step.split(), folders[0], server, environment)
        theirs = under_torch(step.split(), folders[1], capsys, environment)
        if theirs or ours:
            assert_same_text(ours, theirs, program.moving, program.rel)
        if step == program.steps[0]:
            expected = sorted([*before, *program.files])
            assert [files_of(folder) for folder in folders] == [expected, expected]
            folders.reverse()


def test_threads_train_one_model_without_locks(server, capsys, tmp_path):
    """Whose step comes first is different each time, so that the numbers are not compared, but what is learned."""
    command = ["hogwild/threads.py", "--save_model"]
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
    ours = under_gradwire(command, folders[0], server, {})
    theirs = under_torch(command, folders[1], capsys, {})
    for told in (ours, theirs):
        before, after = (float(loss) for loss in re.findall(r"Global loss: ([\d.]+)", told))
        assert after < before * 0.95, told
        assert len(set(re.findall(r"^(\S+)\tTrain Epoch: 2 ", told, re.MULTILINE))) == 2
    shapes = [{k: v.shape for k, v in torch.load(f / "MNIST_hogwild.pt").items()} for f in folders]
    assert shapes[0] == shapes[1]


def test_processes_train_one_model_without_locks(server, tmp_path):
    """Each started process joins the session of the first one, and trains the parameters that lie there."""
    told = under_gradwire(["hogwild/main.py", "--save_model"], tmp_path, server, {})
    before, after = (float(loss) for loss in re.findall(r"Global loss: ([\d.]+)", told))
    assert after < before * 0.95, told
    assert len(set(re.findall(r"^(\S+)\tTrain Epoch: 2 ", told, re.MULTILINE))) == 2
    assert (tmp_path / "MNIST_hogwild.pt").exists()
