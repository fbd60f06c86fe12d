"""A GPT-2 of two layers learns a sequence."""

from numpy_numbers import fill, integers, norms_of_gradients, tell, train
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=50,
    n_positions=16,
    n_embd=32,
    n_layer=2,
    n_head=2,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
)
model = fill(GPT2LMHeadModel(config))
tokens = integers(50, 3, 12)
losses = train(model, lambda: model(input_ids=tokens, labels=tokens).loss)
gradients = norms_of_gradients(model)
found = model.eval()(input_ids=tokens, output_hidden_states=True)
tell(losses=losses, gradients=gradients, logits=found.logits, hidden=list(found.hidden_states))
