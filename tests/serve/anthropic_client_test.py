"""Uses `convoy serve` with the anthropic package: anthropic_client_test.py CONVOY MODEL ADAPTER CALLER. CALLER is an adapter
that calls tools, with the template tools.jinja."""

import json
import pathlib
import tempfile
import unittest

import anthropic
import openai
from openai_client_test import CALLER, CHAT, client_of, served

TEMPLATE = str(pathlib.Path(__file__).parent / "tools.jinja")
TOOL = {"name": "add", "input_schema": {"a": "int", "b": "int"}}
ASKED = [{"role": "user", "content": "Add 31 and 7."}]


def anthropic_client(server, **given):
    return anthropic.Anthropic(
        base_url=server.url.removesuffix("/v1"), max_retries=0, **{"api_key": "none", **given}
    )


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(
            served("--adapter", f"caller={CALLER}", "--template-path", TEMPLATE)
        )
        cls.client = anthropic_client(cls.server)
        cls.openai = client_of(cls.server)

    def message(self, **given):
        return self.client.messages.create(
            **{
                "model": "tally",
                "messages": CHAT,
                "max_tokens": 24,
                "extra_body": {"temperature": 0},
                **given,
            }
        )

    def called(self, **given):
        return self.message(model="caller", messages=ASKED, tools=[TOOL], max_tokens=80, **given)

    def chat(self, **given):
        return self.openai.chat.completions.create(
            **{"model": "tally", "messages": CHAT, "max_tokens": 24, "temperature": 0, **given}
        )

    def test_a_message_is_the_answer_of_the_chat(self):
        chat = self.chat()
        message = self.message()
        self.assertEqual(
            (message.type, message.role, message.model), ("message", "assistant", "tally")
        )
        self.assertEqual([block.type for block in message.content], ["text"])
        self.assertEqual(message.content[0].text, chat.choices[0].message.content)
        usage = message.usage
        self.assertEqual(
            usage.input_tokens + usage.cache_read_input_tokens, chat.usage.prompt_tokens
        )
        self.assertEqual(usage.output_tokens, chat.usage.completion_tokens)
        self.assertTrue(message.id.startswith("msg_"))

    def test_a_system_text_is_the_first_turn(self):
        system = [{"role": "system", "content": "Answer in one word."}]
        message = self.message(system="Answer in one word.")
        self.assertEqual(
            message.content[0].text, self.chat(messages=system + CHAT).choices[0].message.content
        )

    def test_says_why_a_text_ends(self):
        text = self.message(max_tokens=200).content[0].text
        cut = self.message(max_tokens=3)
        self.assertEqual((cut.stop_reason, cut.stop_sequence), ("max_tokens", None))
        at = len(text) // 2
        ended = self.message(max_tokens=200, stop_sequences=[text[at : at + 3]])
        self.assertEqual(
            (ended.stop_reason, ended.stop_sequence), ("stop_sequence", text[at : at + 3])
        )
        self.assertEqual(ended.content[0].text, text[: text.index(text[at : at + 3])])
        streamed = self.streamed(max_tokens=200, stop_sequences=[text[at : at + 3]])
        self.assertEqual(streamed.stop_sequence, text[at : at + 3])

    def streamed(self, **given):
        with self.client.messages.stream(
            **{
                "model": "tally",
                "messages": CHAT,
                "max_tokens": 24,
                "extra_body": {"temperature": 0},
                **given,
            }
        ) as stream:
            texts = list(stream.text_stream)
            message = stream.get_final_message()
        self.assertEqual(
            "".join(texts), "".join(b.text for b in message.content if b.type == "text")
        )
        return message

    def test_a_stream_says_what_the_whole_message_says(self):
        for given in (
            {},
            dict(model="caller", messages=ASKED, tools=[TOOL], max_tokens=80),
            dict(max_tokens=3),
        ):
            whole, streamed = self.message(**given), self.streamed(**given)
            usages = []
            for message in (whole, streamed):
                usage = message.usage
                usages.append(
                    (usage.input_tokens + usage.cache_read_input_tokens, usage.output_tokens)
                )
            self.assertEqual(usages[0], usages[1])
            self.assertEqual(
                [block.model_dump(exclude={"id"}) for block in whole.content],
                [block.model_dump(exclude={"id"}) for block in streamed.content],
            )
            self.assertEqual(whole.stop_reason, streamed.stop_reason)

    def test_a_tool_is_called_and_its_result_answered(self):
        message = self.called()
        self.assertEqual(message.stop_reason, "tool_use")
        (call,) = message.content
        self.assertEqual((call.type, call.name, call.input), ("tool_use", "add", {"a": 31, "b": 7}))
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "38"}
        answer = self.message(
            model="caller",
            tools=[TOOL],
            messages=[
                *ASKED,
                {"role": "assistant", "content": message.content},
                {"role": "user", "content": [result]},
            ],
        )
        self.assertEqual((answer.content[0].text, answer.stop_reason), ("It is 38.", "end_turn"))

    def test_none_takes_the_tools_away(self):
        without = self.called(tool_choice={"type": "none"})
        self.assertNotEqual(without.stop_reason, "tool_use")

    def test_tokens_are_counted(self):
        count = self.client.messages.count_tokens(model="caller", messages=ASKED, tools=[TOOL])
        usage = self.called().usage
        self.assertEqual(count.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_an_answer_has_the_form_that_was_asked_for(self):
        schema = {"enum": ["red", "green", {"blue": 1}]}
        message = self.message(
            output_config={"format": {"type": "json_schema", "schema": schema}}, max_tokens=40
        )
        self.assertIn(json.loads(message.content[0].text), schema["enum"])

    def test_what_is_wrong_is_said_in_its_form(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.message(model="other")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        for name, given in {
            "image": dict(
                messages=[{"role": "user", "content": [{"type": "image", "source": {}}]}]
            ),
            "budget_tokens": dict(thinking={"type": "enabled", "budget_tokens": 1024}),
            "web_search": dict(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        }.items():
            with self.assertRaises(anthropic.BadRequestError) as caught:
                self.message(**given)
            self.assertIn(name, caught.exception.body["error"]["message"])
        with self.assertRaises(openai.NotFoundError) as caught:
            self.openai.embeddings.create(model="tally", input="a")
        self.assertIn("has no embeddings", caught.exception.message)


class Keys(unittest.TestCase):
    def test_both_headers_carry_a_key(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys")
            keys.write_text("first\n")
            with served("--api-key-file", str(keys)) as server:
                asked = dict(model="tally", messages=CHAT, max_tokens=2)
                for right in (dict(api_key="first"), dict(api_key=None, auth_token="first")):
                    anthropic_client(server, **right).messages.create(**asked)
                with self.assertRaises(anthropic.AuthenticationError):
                    anthropic_client(server, api_key="other").messages.create(**asked)


if __name__ == "__main__":
    unittest.main()
