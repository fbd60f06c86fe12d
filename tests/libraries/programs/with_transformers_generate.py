"""A trained GPT-2 and a Llama continue sequences: greedily, with beams, with processors of scores, with and without
cache."""

from numpy_numbers import fill, integers, tell, train
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

gpt = fill(
    GPT2LMHeadModel(
        GPT2Config(
            vocab_size=30,
            n_positions=32,
            n_embd=32,
            n_layer=2,
            n_head=2,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=29,
            pad_token_id=0,
        )
    )
)
llama = fill(
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=30,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
            bos_token_id=0,
            eos_token_id=29,
            pad_token_id=0,
        )
    )
)
tokens = integers(28, 2, 10) + 1
results = {}
for name, model in {"gpt": gpt, "llama": llama}.items():
    results[f"{name}_losses"] = train(model, lambda model=model: model(input_ids=tokens, labels=tokens).loss, lr=0.1)
    model.eval()
    begin = tokens[:, :4]
    greedy = model.generate(begin, max_new_tokens=6, do_sample=False, return_dict_in_generate=True, output_scores=True)
    results[f"{name}_greedy"] = greedy.sequences
    results[f"{name}_scores"] = list(greedy.scores)
    results[f"{name}_uncached"] = model.generate(begin, max_new_tokens=6, do_sample=False, use_cache=False)
    results[f"{name}_beams"] = model.generate(begin, max_new_tokens=6, do_sample=False, num_beams=3)
    results[f"{name}_new"] = model.generate(
        begin, max_new_tokens=6, do_sample=False, repetition_penalty=1.5, no_repeat_ngram_size=2
    )
tell(**results)
