"""A trained BERT with tied weights is saved, whole and in shards, loaded again, and trained further."""

import os
import tempfile

import torch
from numpy_numbers import DEVICE, fill, integers, tell, train
from transformers import AutoConfig, AutoModelForMaskedLM, BertConfig, BertForMaskedLM

config = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
tokens = integers(50, 3, 12)
model = fill(BertForMaskedLM(config))
losses = train(model, lambda: model(input_ids=tokens, labels=tokens).loss)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    files = sorted(os.listdir(folder))
    loaded = AutoModelForMaskedLM.from_pretrained(folder).to(DEVICE)
    same = all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), loaded.state_dict().values()))
    tied = loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight
    further = train(loaded, lambda: loaded(input_ids=tokens, labels=tokens).loss)
    half = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16)
    width = AutoConfig.from_pretrained(folder).hidden_size
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder, max_shard_size="20KB")
    shards = len([name for name in os.listdir(folder) if name.endswith(".safetensors")])
    again = BertForMaskedLM.from_pretrained(folder).to(DEVICE)
    logits = again(input_ids=tokens).logits
tell(
    losses=losses,
    files=files,
    same=same,
    tied=tied,
    further=further,
    half=str(half.dtype),
    width=width,
    shards=shards,
    logits=logits,
)
