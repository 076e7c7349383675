"""A GGUF file for llama.cpp of a Qwen2 model folder of Hugging Face, in bf16, with its tokenizer and chat template.

usage: llama_cpp_file.py MODEL_FOLDER FILE.gguf (packages gguf, torch, safetensors)
"""

import json
import pathlib
import sys

import gguf
import numpy as np
from safetensors.torch import load_file

folder = pathlib.Path(sys.argv[1])
config = json.loads((folder / "config.json").read_text())
tokenizer = json.loads((folder / "tokenizer.json").read_text())
template = folder / "chat_template.jinja"

w = gguf.GGUFWriter(sys.argv[2], "qwen2")
w.add_block_count(config["num_hidden_layers"])
w.add_context_length(config["max_position_embeddings"])
w.add_embedding_length(config["hidden_size"])
w.add_feed_forward_length(config["intermediate_size"])
w.add_head_count(config["num_attention_heads"])
w.add_head_count_kv(config["num_key_value_heads"])
w.add_layer_norm_rms_eps(config["rms_norm_eps"])
w.add_rope_freq_base((config.get("rope_parameters") or config)["rope_theta"])
w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)

words = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
special = {token["content"] for token in tokenizer["added_tokens"]}
w.add_vocab_size(config["vocab_size"])
w.add_tokenizer_model("gpt2")
w.add_tokenizer_pre("qwen2")
w.add_token_list(words)
w.add_token_types(
    [gguf.TokenType.CONTROL if word in special else gguf.TokenType.NORMAL for word in words]
)
w.add_token_merges(
    [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
)
w.add_add_bos_token(False)
if template.exists():
    w.add_chat_template(template.read_text())

names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config["num_hidden_layers"])
for file in sorted(folder.glob("*.safetensors")):
    for name, tensor in load_file(file).items():
        values = tensor.float().numpy()
        target = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if values.ndim == 1:
            w.add_tensor(target, values)
        else:
            w.add_tensor(
                target,
                gguf.quants.quantize(np.ascontiguousarray(values), gguf.GGMLQuantizationType.BF16),
                raw_dtype=gguf.GGMLQuantizationType.BF16,
            )
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
