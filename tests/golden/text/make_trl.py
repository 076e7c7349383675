# SPDX-License-Identifier: Apache-2.0
"""Renders every template of TRL that marks the learnt parts, with transformers. Writes the texts, and the parts between
`{% generation %}` and `{% endgeneration %}`. The conversations have thoughts in a content, thoughts beside it as
`reasoning_content`, and thoughts of earlier turns.

usage: python make_trl.py      (writes trl.json beside itself; needs trl 1.16, transformers 5, jinja2)

The templates are TRL's (trl/chat_templates, Apache-2.0).
"""

import datetime
import json
import pathlib

import trl
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
TEMPLATES = pathlib.Path(trl.__file__).parent / "chat_templates"


class Noon(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 5, 1, 12, 0, 0)


chat_template_utils.datetime = Noon
TOKENS = {
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
}  # special tokens of examples/tally-3m


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
                "properties": {"b": {"type": "number"}, "a": {"type": "number"}},
                "required": ["b", "a"],
            },
        },
    }
]
CALL = {
    "type": "function",
    "id": "call00001",
    "function": {"name": "add", "arguments": {"b": 2, "a": 1.5}},
}
CASES = {
    "system": [turn("system", "Be brief."), turn("user", " Hi "), turn("assistant", "Hello.\n")],
    "many": [
        turn("user", "one"),
        turn("assistant", "1"),
        turn("user", "three 漢字 👍🏽"),
        turn("assistant", "三\nline"),
    ],
    "user last": [turn("user", "a"), turn("assistant", "b"), turn("user", "c")],
    "thinking in the content": [
        turn("user", "a?"),
        turn("assistant", "<think>\nfirst\n</think>\n\nb"),
        turn("user", "c?"),
        turn("assistant", "<think>\nsecond\n</think>\n\nd"),
    ],
    "thinking beside the content": [
        turn("user", "a?"),
        turn("assistant", "b", reasoning_content="first"),
        turn("user", "c?"),
        turn("assistant", "d", reasoning_content="second"),
    ],
    "thinking before a call": [
        turn("system", "Use tools."),
        turn("user", "1.5 + 2?"),
        turn("assistant", "", reasoning_content="I add.", tool_calls=[CALL]),
        turn("tool", "3.5", tool_call_id="call00001", name="add"),
        turn("assistant", "It is 3.5.", reasoning_content="Done."),
    ],
}


def render(template, messages, more, prompt):
    try:
        texts, spans = chat_template_utils.render_jinja_template(
            [messages],
            chat_template=template,
            return_assistant_tokens_mask=True,
            add_generation_prompt=prompt,
            **TOKENS,
            **more,
        )
    except Exception:  # the template refuses the conversation
        return {"error": True}
    learnt = [texts[0][begin:end] for begin, end in spans[0]]
    return {"text": texts[0], "learnt": learnt}


templates, rows = {}, []
SEEING = (
    "idefics3",
    "llava_next",
    "smolvlm",
)  # their contents are lists of parts; see make_contents.py
for path in sorted(TEMPLATES.glob("*_training.jinja")):
    name = path.stem.removesuffix("_training")
    if name in SEEING:
        continue
    templates[name] = path.read_text()
    for case, messages in CASES.items():
        kinds = [({}, False), ({}, True)]
        if "thinking" in case:
            kinds += [({"enable_thinking": False}, False), ({"enable_thinking": False}, True)]
        for variables, prompt in kinds:
            more = dict(variables, tools=TOOLS if "call" in case else None)
            rows.append(
                {
                    "template": name,
                    "case": case,
                    "variables": more,
                    "add_generation_prompt": prompt,
                    **render(templates[name], messages, more, prompt),
                }
            )
(HERE / "trl.json").write_text(
    json.dumps({"templates": templates, "chats": CASES, "rows": rows}, ensure_ascii=False, indent=0)
    + "\n"
)
