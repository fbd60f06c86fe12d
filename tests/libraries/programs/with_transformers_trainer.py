"""The Trainer trains a GPT-2 with schedule, accumulation and clipping, evaluates it, and resumes from a checkpoint."""

import os
import tempfile

import numpy as np
import torch
from numpy_numbers import DEVICE, fill, tell
from torch.utils.data import Dataset, SequentialSampler
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

os.environ["ACCELERATE_TORCH_DEVICE"] = DEVICE
tokens = np.random.default_rng(0).integers(50, size=(16, 8))


class Sequences(Dataset):
    def __len__(self):
        return len(tokens)

    def __getitem__(self, index):
        return {"input_ids": torch.from_numpy(tokens[index]), "labels": torch.from_numpy(tokens[index])}


class InOrder(Trainer):
    def _get_train_sampler(self, *_):
        return SequentialSampler(self.train_dataset)


def model():
    return fill(
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=50,
                n_positions=8,
                n_embd=16,
                n_layer=1,
                n_head=2,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                bos_token_id=0,
                eos_token_id=0,
            )
        ),
        device="cpu",
    )


with tempfile.TemporaryDirectory() as folder:
    arguments = dict(
        output_dir=folder,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=6,
        learning_rate=1e-2,
        adam_epsilon=1e-3,
        warmup_steps=1,
        lr_scheduler_type="cosine",
        max_grad_norm=0.5,
        logging_steps=1,
        save_steps=3,
        report_to=[],
        use_cpu=DEVICE == "cpu",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = InOrder(
        model=model(), args=TrainingArguments(**arguments), train_dataset=Sequences(), eval_dataset=Sequences()
    )
    trainer.train()
    steps = [
        (log["loss"], log["grad_norm"], log["learning_rate"]) for log in trainer.state.log_history if "loss" in log
    ]
    evaluated = trainer.evaluate()["eval_loss"]
    predicted = trainer.predict(Sequences()).predictions
    resumed = InOrder(model=model(), args=TrainingArguments(**arguments), train_dataset=Sequences())
    resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
    tell(
        steps=steps,
        evaluated=evaluated,
        predicted=predicted.astype(np.float32),
        after_resuming=trainer.evaluate()["eval_loss"],
        wte=resumed.model.transformer.wte.weight,
    )
