# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files for quantised weights with bitsandbytes, transformers and PEFT, on the CPU.

tensors.safetensors: for each case `NAME.input`, its quantised form by bitsandbytes under the keys of its state dict
(`NAME.weight`, `NAME.weight.absmax`, ...), and `NAME.values`: code x absmax in fp32. The values do not come from the CPU
kernel of bitsandbytes, which takes the absmax of the wrong block for rows whose width is a multiple of 16 but not of 64.
base/: a small Llama whose widths are multiples of 64. nf4/, nf4-double/, fp4/, int8/: the quantised models that
transformers saves from base/. golden.json: the logits of each of them (fp32), and a training curve of QLoRA by PEFT.
start/: the adapter with which that training begins.
Run: python make_quantization.py
"""

import json
import pathlib
import shutil
import sys

import bitsandbytes.functional as F
import torch
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from bitsandbytes.backends.utils import _get_4bit_code
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "train"))
sys.path.insert(0, str(HERE.parent / "models"))
from make_models import COMMON, randomise  # noqa: E402
from make_train import LEARNING_RATE, read_rows, save_adapter, train  # noqa: E402

CONFIG = dict(
    COMMON,
    model_type="llama",
    architectures=["LlamaForCausalLM"],
    hidden_size=64,
    intermediate_size=192,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=32,
    vocab_size=333,
    max_position_embeddings=256,
    rms_norm_eps=1e-5,
    hidden_act="silu",
    tie_word_embeddings=False,
    attention_bias=False,
    mlp_bias=False,
    pad_token_id=0,
    torch_dtype="bfloat16",
    rope_parameters=dict(rope_type="default", rope_theta=10000.0),
)
QUANTIZED = {
    "nf4": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4"),
    "nf4-double": dict(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True
    ),
    "fp4": dict(load_in_4bit=True, bnb_4bit_quant_type="fp4"),
    "int8": dict(load_in_8bit=True),
}
IDS = [[1, 5, 9, 300, 12, 77, 31, 8, 200, 17, 2], [1, 44, 43, 42, 41]]


def values_4bit(packed, state):
    absmax = state.absmax
    if state.nested:
        absmax = F.dequantize_blockwise(state.absmax, state.state2) + state.offset
    code = _get_4bit_code(state.quant_type, packed.device)
    shape = (1, *state.shape) if len(state.shape) == 1 else state.shape
    values = _dequantize_4bit_compute(
        packed.reshape(-1), absmax, code, state.blocksize, shape, torch.float32
    )
    return values.reshape(state.shape)


def midpoints(code):
    """A block of 64: first 1, then the midpoints between neighbouring codes and the floats next to each midpoint."""
    order = code.sort().values
    middles = (order[:-1] + order[1:]) / 2
    around = torch.cat(
        [
            middles,
            torch.nextafter(middles, torch.tensor(2.0)),
            torch.nextafter(middles, torch.tensor(-2.0)),
        ]
    )
    return torch.cat([torch.ones(1), around, torch.zeros(64 - 1 - len(around))])


def cases():
    torch.manual_seed(7)
    yield "square", torch.randn(64, 128)
    yield "blocks-cross-rows", torch.randn(37, 48) * 0.02
    yield "odd-width", torch.randn(9, 35)
    yield "one-element", torch.tensor([[-0.25]])
    yield "short", torch.randn(3, 7)
    yield "vector", torch.randn(129)
    zeros = torch.randn(4, 64)
    zeros[1:3] = 0
    yield "zero-blocks", zeros
    yield "zeros-at-the-end", torch.cat([torch.randn(64), torch.zeros(20)])
    yield "midpoints-nf4", midpoints(_get_4bit_code("nf4", torch.device("cpu")))
    yield "midpoints-fp4", midpoints(_get_4bit_code("fp4", torch.device("cpu")))
    yield "tiny", torch.randn(8, 64) * 1e-30
    yield "many-blocks", torch.randn(72, 256) * torch.rand(72, 1)  # several blocks of absmax
    yield "cubes", torch.randn(3, 5, 32)


def make_tensors():
    tensors = {}
    for name, value in cases():
        for dtype, kind in (
            (torch.float32, "fp32"),
            (torch.bfloat16, "bf16"),
            (torch.float16, "fp16"),
        ):
            if kind != "fp32" and name not in ("square", "blocks-cross-rows", "odd-width"):
                continue
            for quant_type in ("nf4", "fp4"):
                for nested in (False, True):
                    packed, state = F.quantize_4bit(
                        value.to(dtype), quant_type=quant_type, compress_statistics=nested
                    )
                    key = f"{name}/{kind}/{quant_type}{'-double' if nested else ''}"
                    tensors[f"{key}.input"] = value.to(dtype).clone()
                    tensors[f"{key}.weight"] = packed
                    for part, tensor in state.as_dict(packed=True).items():
                        tensors[f"{key}.weight.{part}"] = tensor.contiguous()
                    tensors[f"{key}.values"] = values_4bit(packed, state)
            if value.dim() == 2:
                codes, scale, _ = F.int8_vectorwise_quant(value.to(dtype).to(torch.float16))
                key = f"{name}/{kind}/int8"
                tensors[f"{key}.input"] = value.to(dtype).clone()
                tensors[f"{key}.weight"] = codes
                tensors[f"{key}.SCB"] = scale
                tensors[f"{key}.values"] = F.int8_vectorwise_dequant(codes, scale)
    tensors["signed_map"] = F.create_dynamic_map(signed=True)
    tensors["unsigned_map"] = F.create_dynamic_map(signed=False)
    save_file(tensors, HERE / "tensors.safetensors", metadata={"format": "pt"})


def make_base():
    folder = HERE / "base"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    randomise(model, 3)
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def load(folder, **options):
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", **options
    )


def quantized(**options):
    if options.get("load_in_4bit"):
        options["bnb_4bit_compute_dtype"] = torch.float32
    return load(HERE / "base", device_map="cpu", quantization_config=BitsAndBytesConfig(**options))


def last_logits(model):
    """The logits of the last tokens, in training mode: in evaluation mode int8 also rounds activations, and 4-bit layers repack the weight."""
    model.train()
    with torch.no_grad():
        rows = [model(input_ids=torch.tensor([row])).logits[0, -1].tolist() for row in IDS]
    return [[round(value, 6) for value in row] for row in rows]


def make_models():
    golden = {"ids": IDS, "logits": {}}
    for name, options in QUANTIZED.items():
        folder = HERE / name
        shutil.rmtree(folder, ignore_errors=True)
        model = quantized(**options)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        golden["logits"][name] = last_logits(model)
    return golden


def make_curve(golden):
    tokenizer = AutoTokenizer.from_pretrained(HERE.parent / "train" / "tokenizer")
    completions = read_rows(tokenizer, "completions")
    model = prepare_model_for_kbit_training(
        quantized(**QUANTIZED["nf4-double"]), use_gradient_checkpointing=False
    )
    torch.manual_seed(11)
    start = get_peft_model(
        model,
        LoraConfig(
            r=4, lora_alpha=8, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
    shutil.rmtree(HERE / "start", ignore_errors=True)
    save_adapter(start, HERE / "start")
    golden["curve"] = train(start, completions, LEARNING_RATE["lora"])


if __name__ == "__main__":
    make_tensors()
    make_base()
    result = make_models()
    make_curve(result)
    (HERE / "golden.json").write_text(json.dumps(result) + "\n")
