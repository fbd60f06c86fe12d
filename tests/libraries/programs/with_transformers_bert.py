"""A BERT of two layers learns masked words, with padding; a classifier of sentences."""

import torch
from numpy_numbers import DEVICE, fill, integers, norms_of_gradients, tell, train
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

config = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    num_labels=3,
)
tokens, mask = integers(50, 3, 12), torch.ones(3, 12, dtype=torch.int64, device=DEVICE)
mask[1, 8:] = 0
labels = tokens.masked_fill(integers(2, 3, 12, seed=1) == 0, -100)
model = fill(BertForMaskedLM(config))
losses = train(model, lambda: model(input_ids=tokens, attention_mask=mask, labels=labels).loss)
gradients = norms_of_gradients(model)
classifier = fill(BertForSequenceClassification(config))
kinds = integers(3, 3)
further = train(classifier, lambda: classifier(input_ids=tokens, attention_mask=mask, labels=kinds).loss)
found = classifier.eval()(input_ids=tokens, attention_mask=mask)
tell(losses=losses, gradients=gradients, further=further, logits=found.logits)
