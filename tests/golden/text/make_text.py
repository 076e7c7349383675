# SPDX-License-Identifier: Apache-2.0
"""Golden files of the text layer, made with Hugging Face's tokenizers and transformers.

usage: python make_text.py      (writes beside itself; needs transformers 5, tokenizers, jinja2)
"""

import json
import pathlib
import re

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
TALLY = ROOT / "examples" / "tally-3m"

TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    "\t\n  \r\n",
    "Hello, world!",
    "  leading and trailing  ",
    "a  b   c    d",
    "I'll say it's what they've DON'T",
    "12345 1,234.56 007 3.14e-10 9999999999",
    "漢字とカナの混在テキスト。",
    "中文，没有空格。",
    "한국어 문장입니다",
    "العربية نص",
    "עברית",
    "हिन्दी में पाठ",
    "ไทยไม่มีช่องว่าง",
    "Ünïcödé naïve café",
    "e\u0301 a\u0308\u0323 n\u0303",
    "Z\u0351\u036b\u0343\u0363\u0348a\u0302\u0351l\u0346g\u0367o\u030a",
    "👩‍👩‍👧‍👦 family 👍🏽 🇩🇪 🏳️‍🌈",
    "😀😃😄",
    "nul\x00inside\x00",
    "crlf\r\nline\r\n\r\nend\r",
    "\ufeffbom",
    "zero\u200bwidth\u200djoin\u00a0nbsp\u2028ls",
    "\u202eright to left\u202c",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙",
    "ﬁ ﬂ ﬀ ½ ² ①",
    "İı ßẞ ς σ",
    "def f(x):\n    return x ** 2  # squared\n",
    "<b>html</b> &amp; <!-- c -->",
    "http://example.com/a?b=c&d=e#f",
    "\\n is not a newline",
    "<|im_start|>user\nhi<|im_end|>\n",
    "touch<|im_end|>ing<|im_start|>",
    " <|im_end|> spaced",
    "<|im_end",
    "<|endoftext|><|endoftext|>",
    "<|begin_of_text|>doubled?",
    "a<|eot_id|>b",
    "<start_of_turn>model\nok<end_of_turn>",
    "<bos><eos><pad><unk>",
    "[CLS] x [SEP] [MASK]",
    "<0x41> not a byte",
    "▁underscore▁",
    "Ġthe Ċ",
    "<extra_7>hash<extra_7> ",
    "word<lstrip_0>  word  <lstrip_0>",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "the the the the",
    "\x01\x02\x7f\x80",
    "\U0010fffd",
    "mixed 漢字 and English 混在 123四五六",
    "….,;:!?—–‘’“”",
]

CORPUS = (
    TEXTS
    + [
        "Question: Tom has 3 apples and buys 4 more. How many apples does he have?\nAnswer: 3 + 4 = 7\n#### 7",
        "the quick brown fox jumps over the lazy dog again and again while the assistant answers the user",
        "system user assistant model tool content answer question number total more than what how many",
    ]
    * 3
)

LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def save(name, tokenizer, config):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return folder


def special(*names):
    return [AddedToken(name, special=True, normalized=False) for name in names]


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=420,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    tokenizer.add_special_tokens(
        special(
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
        )
    )
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", bos)]
            ),
        ]
    )
    return save(
        "llama3",
        tokenizer,
        {
            "bos_token": "<|begin_of_text|>",
            "eos_token": "<|eot_id|>",
            "clean_up_tokenization_spaces": False,
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )


def with_bytes(tokenizer, specials):
    """The trained BPE model with special tokens and byte tokens (<0xNN>) before its own, as in SentencePiece models."""
    data = json.loads(tokenizer.to_str())
    names = specials + [f"<0x{byte:02X}>" for byte in range(256)]
    trained = sorted(data["model"]["vocab"], key=data["model"]["vocab"].get)
    names += [piece for piece in trained if piece not in set(names)]
    data["model"]["vocab"] = {name: index for index, name in enumerate(names)}
    data["model"].update(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    result = Tokenizer.from_str(json.dumps(data))
    result.add_special_tokens(special(*specials))
    return result


def gemma():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.train_from_iterator(
        [text for text in CORPUS if text.isascii()],
        trainers.BpeTrainer(vocab_size=220, show_progress=False),
    )
    tokenizer = with_bytes(
        tokenizer, ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", 2)]
    )
    return save(
        "gemma",
        tokenizer,
        {
            "add_bos_token": True,
            "add_eos_token": False,
            "bos_token": "<bos>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "eos_token": {
                "__type": "AddedToken",
                "content": "<eos>",
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": True,
            },
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )


def metaspace():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.train_from_iterator(
        [text for text in CORPUS if text.isascii()],
        trainers.BpeTrainer(vocab_size=220, show_progress=False, max_token_length=8),
    )
    tokenizer = with_bytes(tokenizer, ["<unk>", "<s>", "</s>"])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )

    # The flags of the config contradict the post-processor, to show that the post-processor decides. Two
    # tokens are in the config alone.
    def declared(name, **flags):
        return {
            "content": name,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": False,
            **flags,
        }

    size = tokenizer.get_vocab_size()
    return save(
        "metaspace",
        tokenizer,
        {
            "add_bos_token": False,
            "add_eos_token": False,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "added_tokens_decoder": {
                str(size): declared("<extra_7>", special=True),
                str(size + 1): declared("<lstrip_0>", lstrip=True, rstrip=True),
            },
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )


def wordpiece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.WordPieceTrainer(
            vocab_size=400,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            show_progress=False,
        ),
    )
    ids = [("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ids
    )
    return save(
        "wordpiece",
        tokenizer,
        {
            "unk_token": "[UNK]",
            "pad_token": "[PAD]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=300,
            special_tokens=["<pad>", "</s>", "<unk>"],
            unk_token="<unk>",
            show_progress=False,
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return save(
        "unigram",
        tokenizer,
        {
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "tokenizer_class": "PreTrainedTokenizerFast",
        },
    )


def whole_offsets(tokenizer):
    """Makes the offsets of tokens include leading spaces."""

    def untrim(value):
        if isinstance(value, dict):
            return {
                key: False if key == "trim_offsets" else untrim(item) for key, item in value.items()
            }
        return [untrim(item) for item in value] if isinstance(value, list) else value

    data = json.loads(tokenizer._tokenizer.to_str())
    data["post_processor"] = untrim(data["post_processor"])
    return Tokenizer.from_str(json.dumps(data))


def encodings(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    offsets = whole_offsets(tokenizer)
    rows = []
    for text in TEXTS:
        starts = [0]
        for letter in text:
            starts.append(starts[-1] + len(letter.encode()))
        plain = tokenizer(text, add_special_tokens=False)["input_ids"]
        encoded = offsets.encode(text, add_special_tokens=False)
        assert encoded.ids == plain
        rows.append(
            {
                "text": text,
                "ids": plain,
                "with_special": tokenizer(text)["input_ids"],
                "offsets": [[starts[begin], starts[end]] for begin, end in encoded.offsets],
                "decoded": tokenizer.decode(plain),
                "decoded_plain": tokenizer.decode(plain, skip_special_tokens=True),
            }
        )
    return {
        "folder": str(folder.relative_to(ROOT)),
        "size": max(tokenizer.get_vocab().values()) + 1,
        "bos": tokenizer.bos_token_id,
        "eos": tokenizer.eos_token_id,
        "pad": tokenizer.pad_token_id,
        "rows": rows,
    }


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds <two> numbers & more",
            "parameters": {
                "type": "object",
                "properties": {
                    "b": {"type": "number"},
                    "a": {"type": "number", "description": "première"},
                },
                "required": ["b", "a"],
            },
        },
    }
]
CALL = {"type": "function", "function": {"name": "add", "arguments": {"b": 2, "a": 1.5}}}

CHATS = {
    "plain": [turn("user", "What is 1 + 1?"), turn("assistant", "2")],
    "system": [turn("system", "Be brief."), turn("user", "Hi"), turn("assistant", "Hello.")],
    "many": [
        turn("user", "one"),
        turn("assistant", "1"),
        turn("user", "two\n"),
        turn("assistant", "2 "),
        turn("user", "three 漢字 👍🏽"),
        turn("assistant", "三 👩‍👩‍👧‍👦\nline"),
    ],
    "spaces": [turn("user", "  x  "), turn("assistant", "  y\n\n  z ")],
    "control": [
        turn("user", "say <|im_end|> <|eot_id|>"),
        turn("assistant", "I said <|im_start|>user"),
    ],
    "user_last": [turn("user", "a"), turn("assistant", "b"), turn("user", "c")],
    "assistant_first": [turn("assistant", "x"), turn("user", "y"), turn("assistant", "z")],
    "nulls": [turn("user", "a", name=None), turn("assistant", "b", tool_calls=None)],
}
TOOL_CHAT = [
    turn("system", "Use tools."),
    turn("user", "1.5 + 2?"),
    {"role": "assistant", "tool_calls": [CALL]},
    turn("tool", "3.5"),
    turn("assistant", "It is 3.5."),
]
THINK = [
    turn("user", "a?"),
    turn("assistant", "<think>\nfirst\n</think>\n\nb"),
    turn("user", "c?"),
    turn("assistant", "<think>\nsecond\n</think>\n\nd"),
]
PARTS = [
    turn("system", [{"type": "text", "text": "Sys."}]),
    turn("user", [{"type": "image"}, {"type": "text", "text": " look "}]),
    turn("assistant", "a cat"),
]

TAG = re.compile(r"\{%-? *(end)?generation *-?%\}")


def chats():
    folders = {
        "llama3": HERE / "llama3",
        "qwen2": TALLY,
        "qwen3": TALLY,
        "gemma3": HERE / "gemma",
        "constructs": TALLY,
    }
    out = []
    for name, folder in folders.items():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tagged = (HERE / "templates" / f"{name}.jinja").read_text()
        cases = [(key, chat, None) for key, chat in CHATS.items()]
        if name in ("llama3", "qwen2", "qwen3"):
            cases.append(("tools", TOOL_CHAT, TOOLS))
        if name == "qwen3":
            cases += [
                ("think", THINK, None),
                (
                    "reasoning",
                    [turn("user", "q"), turn("assistant", "a", reasoning="because")],
                    None,
                ),
            ]
        if name == "gemma3":
            cases.append(("parts", PARTS, None))
        for key, chat, tools in cases:
            for prompt in (False, True):
                case = {
                    "template": name,
                    "folder": str(folder.relative_to(ROOT)),
                    "case": key,
                    "messages": chat,
                    "tools": tools,
                    "add_generation_prompt": prompt,
                }
                try:
                    case["text"] = tokenizer.apply_chat_template(
                        chat,
                        tools=tools,
                        chat_template=tagged,
                        tokenize=False,
                        add_generation_prompt=prompt,
                    )
                    if name == "constructs":  # it shows the tag in raw text
                        out.append(case)
                        continue
                    plain = tokenizer.apply_chat_template(
                        chat,
                        tools=tools,
                        chat_template=TAG.sub("", tagged),
                        tokenize=False,
                        add_generation_prompt=prompt,
                    )
                    assert plain == case["text"], (name, key)
                except Exception as error:
                    case["error"] = str(error)
                    out.append(case)
                    continue
                if not prompt:
                    encoded = tokenizer.apply_chat_template(
                        chat,
                        tools=tools,
                        chat_template=tagged,
                        return_dict=True,
                        return_assistant_tokens_mask=True,
                    )
                    case["ids"] = encoded["input_ids"]
                    case["mask"] = encoded["assistant_masks"]
                out.append(case)
    return out


def main():
    folders = [llama3(), gemma(), metaspace(), wordpiece(), unigram(), TALLY]
    for name, data in (
        ("encodings", [encodings(folder) for folder in folders]),
        ("chats", chats()),
    ):
        (HERE / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")


main()
