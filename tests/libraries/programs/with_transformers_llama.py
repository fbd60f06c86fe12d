"""A Llama of two layers with grouped heads learns a sequence."""

from numpy_numbers import fill, integers, norms_of_gradients, tell, train
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
model = fill(LlamaForCausalLM(config))
tokens = integers(50, 3, 12)
losses = train(model, lambda: model(input_ids=tokens, labels=tokens).loss)
gradients = norms_of_gradients(model)
tell(losses=losses, gradients=gradients, logits=model.eval()(input_ids=tokens).logits)
