"""A T5 of two layers learns to answer sequences by sequences."""

from numpy_numbers import fill, integers, norms_of_gradients, tell, train
from transformers import T5Config, T5ForConditionalGeneration

config = T5Config(
    vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0
)
model = fill(T5ForConditionalGeneration(config), scale=0.5)
question, answer = integers(50, 3, 10), integers(50, 3, 6, seed=1)
losses = train(model, lambda: model(input_ids=question, labels=answer).loss, lr=0.02)
gradients = norms_of_gradients(model)
tell(losses=losses, gradients=gradients, logits=model.eval()(input_ids=question, labels=answer).logits)
