# SPDX-License-Identifier: Apache-2.0
"""Renders conversations with transformers whose contents are texts or lists of parts, in each form of the contents.

usage: python make_contents.py      (writes contents.json beside itself; needs transformers 5, jinja2)

The templates idefics3, llava_next, phi3, gptoss, gemma (Gemma 1 and 2), gemma4, lfm2, qwen2_5, glm4moe and deepseekv3 are TRL's (trl/chat_templates, Apache-2.0).
"""

import copy
import datetime
import json
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = pathlib.Path(__file__).parent
TEMPLATES = [
    "idefics3",
    "llava_next",
    "phi3",
    "gptoss",
    "gemma4",
    "lfm2",
    "qwen2_5",
    "glm4moe",
    "deepseekv3",
    "gemma",
]
NOON = datetime.datetime(2024, 5, 1, 12, 0, 0)
TOKENS = {
    "bos_token": None,
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
}  # special tokens of examples/tally-3m


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


def call(arguments):
    return [
        {
            "type": "function",
            "id": "call00001",
            "function": {"name": "look", "arguments": arguments},
        }
    ]


SYSTEM, FIRST, ONE, SECOND, TWO = (
    "Sone system",
    "Uone question",
    "Aone answer",
    "Utwo question",
    "Atwo answer",
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks",
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string", "description": "what"}},
                "required": ["q"],
            },
        },
    }
]


def tool_chat(arguments, content=""):
    return [
        turn("user", FIRST),
        turn("assistant", content, tool_calls=call(arguments)),
        turn("tool", "Rone result", tool_call_id="call00001", name="look"),
        turn("assistant", ONE),
        turn("user", SECOND),
        turn("assistant", TWO),
    ]


CASES = {
    "texts": [
        turn("user", FIRST),
        turn("assistant", ONE),
        turn("user", SECOND),
        turn("assistant", TWO),
    ],
    "texts with a system turn": [
        turn("system", SYSTEM),
        turn("user", FIRST),
        turn("assistant", ONE),
    ],
    "parts": [
        turn("user", parts(FIRST)),
        turn("assistant", parts(ONE)),
        turn("user", parts(SECOND)),
        turn("assistant", parts(TWO)),
    ],
    "parts with a system turn": [
        turn("system", parts(SYSTEM)),
        turn("user", parts(FIRST)),
        turn("assistant", parts(ONE)),
    ],
    "parts of the user": [
        turn("system", SYSTEM),
        turn("user", parts(FIRST)),
        turn("assistant", ONE),
    ],
    "two parts of the user": [
        turn("user", parts(FIRST, "and more")),
        turn("assistant", parts(ONE)),
    ],
    "two parts of the assistant": [
        turn("user", parts(FIRST)),
        turn("assistant", parts(ONE, "and more")),
    ],
    "tools": tool_chat({"q": "Xone"}),
    "arguments as text": tool_chat('{"q": "Xone"}'),
    "tools beside null": tool_chat({"q": "Xone"}, None),
    "arguments as text beside null": tool_chat('{"q": "Xone"}', None),
}


def joined(messages):
    return [
        {**message, "content": "\n".join(part["text"] for part in message["content"])}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


def wrapped(messages):
    return [
        {**message, "content": parts(message["content"])}
        if isinstance(message["content"], str)
        else message
        for message in messages
    ]


def decoded(messages):
    messages = copy.deepcopy(messages)
    for message in messages:
        for made in message.get("tool_calls", []):
            if isinstance(made["function"]["arguments"], str):
                made["function"]["arguments"] = json.loads(made["function"]["arguments"])
    return messages


def encoded(messages):
    messages = copy.deepcopy(messages)
    for message in messages:
        for made in message.get("tool_calls", []):
            if not isinstance(made["function"]["arguments"], str):
                made["function"]["arguments"] = json.dumps(
                    made["function"]["arguments"], ensure_ascii=False
                )
    return messages


def without_nulls(messages):
    """The messages as transformers' apply_chat_template passes them to a template."""
    return [
        {key: value for key, value in message.items() if value is not None} for message in messages
    ]


# The forms that change least come first.
FORMS = [
    ("given", lambda messages: messages),
    ("decoded", decoded),
    ("encoded", encoded),
    ("joined", joined),
    ("wrapped", wrapped),
]


def texts_of(messages):
    for message in messages:
        content = message.get("content") or ""
        yield from [content] if isinstance(content, str) else [part["text"] for part in content]
        for made in message.get("tool_calls", []):
            arguments = made["function"]["arguments"]
            yield arguments if isinstance(arguments, str) else "Xone"


def is_whole(text, messages):
    return all(part in text for part in texts_of(messages)) and not any(
        data in text for data in ("'text'", '"text"', '"{\\"q\\"', "'q'", "None", '": null')
    )


def render(template, messages, tools):
    try:
        return _compile_jinja_template(template).render(
            messages=messages,
            tools=tools,
            documents=None,
            add_generation_prompt=False,
            strftime_now=NOON.strftime,
            **{name: token for name, token in TOKENS.items() if token},
        )
    except Exception:  # a template may raise anything for a form that it does not support
        return None


def writes_objects_otherwise(template, messages, tools):
    """True when the arguments of the messages are texts, and the template would write objects, but not as JSON."""
    text = render(template, decoded(messages), tools) if decoded(messages) != messages else None
    return text is not None and "Xone" in text and '"q": "Xone"' not in text and "'q'" not in text


def expected(template, messages, tools):
    for name, form in FORMS:
        formed = form(copy.deepcopy(messages))
        if writes_objects_otherwise(template, formed, tools):
            continue
        for some in (formed, without_nulls(formed)):
            text = render(template, some, tools)
            if text is not None and is_whole(text, some):
                return name, text
    return "none", None


rows = []
for name in TEMPLATES:
    template = (HERE / "templates" / f"{name}.jinja").read_text()
    for case, messages in CASES.items():
        tools = TOOLS if any("tool_calls" in message for message in messages) else None
        form, text = expected(template, messages, tools)
        rows.append(
            {
                "template": name,
                "case": case,
                "form": form,
                "messages": messages,
                "tools": tools,
                "text": text,
            }
        )
(HERE / "contents.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
