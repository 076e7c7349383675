# SPDX-License-Identifier: Apache-2.0
"""Renders conversations with variables of the user, with transformers' apply_chat_template.

usage: python make_template_kwargs.py      (writes template_kwargs.json beside itself; needs transformers 5, jinja2)
"""

import json
import pathlib

from transformers import AutoTokenizer

HERE = pathlib.Path(__file__).parent
TALLY = HERE.parents[2] / "examples" / "tally-3m"

# A template that writes variables of every type.
ECHO = (
    "{{ bos_token }}|{{ documents is none }}|{{ tools is none }}|"
    "{% for document in documents or [] %}[{{ document.title }}: {{ document['text'] }}]{% endfor %}"
    "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}"
    "{{ language | default('none') }}|{{ depth | default(0) + 1 }}|{{ ratio | default(0.5) }}|"
    "{{ 'on' if flag is defined and flag else 'off' }}|{{ nothing is defined }}|"
    "{{ options | tojson if options is defined else '' }}|"
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
CHAT = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}]
LONGER = CHAT + [{"role": "user", "content": "2 + 2?"}]
TOOLS = [
    {
        "type": "function",
        "function": {"name": "add", "description": "Adds", "parameters": {"type": "object"}},
    }
]
DOCUMENTS = [{"title": "A", "text": "first"}, {"title": "B", "text": "zweites Stück"}]

CASES = [
    ("qwen3", "thinking off", LONGER, {"enable_thinking": False}),
    ("qwen3", "thinking on", LONGER, {"enable_thinking": True}),
    ("qwen3", "thinking none", LONGER, {"enable_thinking": None}),
    ("qwen3", "thinking zero", LONGER, {"enable_thinking": 0}),
    ("qwen3", "tools", LONGER, {"tools": TOOLS, "enable_thinking": False}),
    ("echo", "nothing", CHAT, {}),
    ("echo", "documents", CHAT, {"documents": DOCUMENTS}),
    ("echo", "no documents", CHAT, {"documents": []}),
    ("echo", "tools and documents", CHAT, {"documents": DOCUMENTS, "tools": TOOLS}),
    (
        "echo",
        "every type",
        CHAT,
        {
            "language": "Français <&>",
            "depth": 41,
            "ratio": 0.25,
            "flag": True,
            "nothing": None,
            "options": {"nested": {"list": [1, "é", None, {"b": 1, "a": 2}]}},
        },
    ),
    ("echo", "over a named token", CHAT, {"bos_token": "<mine>"}),
]


def main():
    tokenizer = AutoTokenizer.from_pretrained(TALLY)
    sources = {"echo": ECHO, "qwen3": (HERE / "templates" / "qwen3.jinja").read_text()}
    rows = []
    for template, name, messages, kwargs in CASES:
        for prompt in (False, True):
            text = tokenizer.apply_chat_template(
                messages,
                chat_template=sources[template],
                tokenize=False,
                add_generation_prompt=prompt,
                **kwargs,
            )
            rows.append(
                {
                    "template": template,
                    "case": name,
                    "messages": messages,
                    "kwargs": kwargs,
                    "add_generation_prompt": prompt,
                    "text": text,
                }
            )
    data = {"folder": "examples/tally-3m", "echo": ECHO, "rows": rows}
    (HERE / "template_kwargs.json").write_text(
        json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    )


main()
