"""A small BERT with a tokenizer made here learns which sentences are alike, and finds the nearest."""

import tempfile

import torch
from numpy_numbers import DEVICE, fill, tell, train
from sentence_transformers import InputExample, SentenceTransformer, losses, models, util
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"the a cat dog sits runs on under mat tree sea is blue deep".split()]
tokenizer = Tokenizer(WordLevel({word: k for k, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", [("[CLS]", 2), ("[SEP]", 3)])
config = BertConfig(
    vocab_size=len(words),
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
with tempfile.TemporaryDirectory() as folder:
    fill(BertModel(config)).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=16,
    ).save_pretrained(folder)
    transformer = models.Transformer(folder)
pooling = models.Pooling(transformer.get_word_embedding_dimension(), pooling_mode="mean")
model = SentenceTransformer(modules=[transformer, pooling, models.Normalize()], device=DEVICE)
pairs = [
    ("the cat sits on the mat", "a dog sits under a tree", 0.8),
    ("the sea is deep", "the cat runs", 0.1),
    ("the sea is blue", "the sea is deep", 0.9),
]
first, second = (util.batch_to_device(model.tokenize([pair[k] for pair in pairs]), DEVICE) for k in (0, 1))
wanted = torch.tensor([pair[2] for pair in pairs], device=DEVICE)
criterion = losses.CosineSimilarityLoss(model)
found = train(model, lambda: criterion([first, second], wanted), lr=0.1)
ranking = losses.MultipleNegativesRankingLoss(model)
further = train(model, lambda: ranking([first, second], wanted), lr=0.05)
sentences = model.encode([pair[0] for pair in pairs], convert_to_tensor=True)
numbers = model.encode("the dog runs")
hits = util.semantic_search(sentences[:1], sentences, top_k=2)[0]
tell(
    losses=found,
    further=further,
    sentences=sentences,
    numbers=numbers,
    similar=util.cos_sim(sentences, sentences),
    hits=[hit["corpus_id"] for hit in hits],
    texts=InputExample(texts=["a"]).texts,
)
