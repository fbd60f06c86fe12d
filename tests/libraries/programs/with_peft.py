"""A Llama learns through LoRA; the adapter is saved, loaded and merged."""

import os
import tempfile

from numpy_numbers import fill, integers, tell, train
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=50,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
)
tokens = integers(50, 3, 12)
model = get_peft_model(
    fill(LlamaForCausalLM(config)), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])
)
for name, _ in model.named_parameters():
    if "lora_A" in name:
        fill(model.get_submodule(name.rpartition(".")[0]), seed=1)
trainable, total = model.get_nb_trainable_parameters()
losses = train(model, lambda: model(input_ids=tokens, labels=tokens).loss, lr=0.5)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    files = sorted(name for name in os.listdir(folder) if name.startswith("adapter"))
    loaded = PeftModel.from_pretrained(fill(LlamaForCausalLM(config)), folder)
    logits = loaded(input_ids=tokens).logits
merged = loaded.merge_and_unload()(input_ids=tokens).logits
with model.disable_adapter():
    plain = model(input_ids=tokens).logits
tell(trainable=trainable, total=total, losses=losses, files=files, logits=logits, merged=merged, plain=plain)
