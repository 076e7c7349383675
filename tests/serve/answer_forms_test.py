"""Answers of a given form, by the openai package and the jsonschema package: answer_forms_test.py CONVOY MODEL ADAPTER
CALLER. The model knows sums and no JSON, and at a high temperature it writes anything that it may."""

import concurrent.futures
import contextlib
import enum
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import jsonschema
import openai
import openai_client_test as served
import pydantic

SCHEMAS = [
    {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": -5, "maximum": 500}},
        "required": ["a"],
    },
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5},
    {"type": "array", "prefixItems": [{"const": "x"}, {"type": "null"}], "items": False},
    {"enum": ["red", 7, None, [1, 2], {"deep": [True]}]},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "minLength": 3, "maxLength": 8},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.25},
    {
        "anyOf": [
            {"type": "integer", "minimum": 10, "maximum": 99},
            {"type": "string", "maxLength": 4},
        ]
    },
    {
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": k}, "size": {"enum": s}},
                "required": ["kind", "size"],
            }
            for k, s in (("box", [1, 2]), ("ball", ["s", "m"]))
        ]
    },
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 5},
            "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        },
        "required": ["name", "next"],
        "additionalProperties": False,
    },
    {
        "$defs": {
            "point": {"type": "array", "items": {"enum": [0, 1, 2]}, "minItems": 2, "maxItems": 2}
        },
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/point"}, "to": {"$ref": "#/$defs/point"}},
        "required": ["from", "to"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "patternProperties": {"^k[0-9]$": {"enum": [1, 2]}},
        "additionalProperties": False,
        "maxProperties": 3,
        "minProperties": 1,
    },
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"maximum": 9}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer", "minimum": 3}}, "additionalProperties": False},
        ]
    },
]
NOT_COVERED = {
    "not": {"not": {"type": "null"}},
    "uniqueItems": {"type": "array", "uniqueItems": True},
    "iri": {"type": "string", "format": "iri"},
    "if": {"if": {"type": "null"}, "then": {"type": "null"}},
    "oneOf": {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
    "dependencies": {"dependencies": {"a": ["b"]}},
    "https://example.com/other.json": {"$ref": "https://example.com/other.json"},
    "minProperties": {"type": "object", "minProperties": 2},
    "multipleOf": {"type": "integer", "multipleOf": 9999991},
    "$schema": {"$schema": "nope", "type": "null"},
}


class Unit(enum.Enum):
    METRES = "m"
    SECONDS = "s"


class Sum(pydantic.BaseModel):
    summands: list[int] = pydantic.Field(min_length=1, max_length=3)
    unit: Unit
    sure: bool


def response_format(schema):
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.server = cls.stack.enter_context(
            served.served("--adapter", f"sums={served.ADAPTER}", "--engines", "2")
        )
        cls.client = served.client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def chat(self, **given):
        asked = {
            "model": "tally",
            "messages": served.CHAT,
            "temperature": 1,
            "max_tokens": 300,
            "seed": 3,
            **given,
        }
        return self.client.chat.completions.create(**asked)

    def assert_valid(self, choice, schema):
        if choice.finish_reason == "length":  # a list or a text within a text without end
            return 0
        self.assertEqual(choice.finish_reason, "stop")
        validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(
            json.loads(choice.message.content)
        )
        return 1

    def test_every_whole_answer_is_valid(self):
        def ask(given):
            place, temperature = given
            return self.chat(
                response_format=response_format(SCHEMAS[place]),
                n=8,
                temperature=temperature,
                seed=place,
                extra_body={"min_p": 0},
                top_p=1,
            )

        asked = [(place, temperature) for place in range(len(SCHEMAS)) for temperature in (0, 1, 3)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            whole = 0
            for (place, _), answer in zip(asked, pool.map(ask, asked), strict=True):
                for choice in answer.choices:
                    with self.subTest(schema=SCHEMAS[place], text=choice.message.content):
                        whole += self.assert_valid(choice, SCHEMAS[place])
        # A schema that holds itself, or has room for further properties, may be cut by the limit.
        self.assertGreaterEqual(whole, len(asked) * 8 * 0.75)

    def test_a_class_is_parsed(self):
        for model in ("tally", "sums"):
            answer = self.client.chat.completions.parse(
                model=model,
                messages=served.CHAT,
                response_format=Sum,
                temperature=1,
                seed=1,
                max_tokens=400,
            )
            self.assertIsInstance(answer.choices[0].message.parsed, Sum)

    def test_any_object_will_do(self):
        answer = self.chat(
            response_format={"type": "json_object"}, n=6, max_tokens=60, temperature=0
        )
        for choice in answer.choices:
            self.assertTrue(choice.message.content.startswith("{"))
            if choice.finish_reason == "stop":
                self.assertIsInstance(json.loads(choice.message.content), dict)

    def test_regexes_choices_and_grammars(self):
        def texts(outputs, **given):
            extra = {"structured_outputs": outputs, "min_p": 0}
            answer = self.client.completions.create(
                **{
                    "model": "tally",
                    "prompt": served.PROMPT,
                    "n": 6,
                    "max_tokens": 40,
                    "temperature": 2,
                    **given,
                },
                extra_body=extra,
            )
            self.assertEqual({choice.finish_reason for choice in answer.choices}, {"stop"})
            return {choice.text for choice in answer.choices}

        self.assertTrue(
            all(
                re.fullmatch(r"[0-9]{2}/[a-c]", text) for text in texts({"regex": "[0-9]{2}/[a-c]"})
            )
        )
        self.assertLessEqual(texts({"choice": ["yes", "no", "perhaps"]}), {"yes", "no", "perhaps"})
        self.assertLessEqual(
            texts({"grammar": 'start: "(" start ")" | "x"'}, max_tokens=300, temperature=0), {"x"}
        )

    def test_streams_bring_what_whole_answers_are(self):
        given = dict(response_format=response_format(Sum.model_json_schema()), n=3)
        whole = [choice.message.content for choice in self.chat(**given).choices]
        parts = [""] * 3
        for part in self.chat(stream=True, **given):
            for choice in part.choices:
                parts[choice.index] += choice.delta.content or ""
        self.assertEqual(parts, whole)

    def test_log_probabilities_are_of_what_is_allowed(self):
        answer = self.chat(
            extra_body={"structured_outputs": {"choice": ["yes", "no"]}},
            logprobs=True,
            top_logprobs=20,
        )
        self.assertIn(answer.choices[0].message.content, ("yes", "no"))
        for token in answer.choices[0].logprobs.content:
            shares = [2.718281828459045**likely.logprob for likely in token.top_logprobs]
            self.assertAlmostEqual(sum(shares), 1, places=3)

    def test_a_grammar_that_ends_within_an_answer_names_its_field(self):
        ambiguous = {"structured_outputs": {"grammar": 'start: s{300}\ns: s s | "a"'}}
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(extra_body=ambiguous, max_tokens=1000)
        self.assertEqual(caught.exception.param, "structured_outputs.grammar")
        self.assertIn("`structured_outputs.grammar`: the grammar", str(caught.exception))
        with self.assertRaises(openai.APIError) as caught:
            list(self.chat(extra_body=ambiguous, max_tokens=1000, stream=True))
        self.assertEqual(caught.exception.param, "structured_outputs.grammar")

    def test_what_is_not_covered_is_refused_by_name(self):
        for word, schema in NOT_COVERED.items():
            with self.subTest(schema=schema), self.assertRaises(openai.BadRequestError) as caught:
                self.chat(response_format=response_format(schema))
            self.assertIn(word, str(caught.exception))
            self.assertEqual(caught.exception.param, "response_format.json_schema.schema")
        for outputs in ({"regex": "("}, {"grammar": "start: missing"}):
            with self.subTest(outputs=outputs), self.assertRaises(openai.BadRequestError) as caught:
                self.chat(extra_body={"structured_outputs": outputs})
            self.assertEqual(caught.exception.param, "structured_outputs." + next(iter(outputs)))


def tool(name, properties, **given):
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": schema, **given}}


class Calls(unittest.TestCase):
    """Calls of tools. The adapter `caller` calls `add`; the model beside it knows of no calls."""

    ADD = {"a": {"type": "integer", "maximum": 99}, "b": {"type": "integer", "maximum": 99}}
    SIZE = {"size": {"enum": ["s", "m", "l"]}, "sure": {"type": "boolean"}}
    TOOLS = [tool("add", ADD), tool("set_size", SIZE)]

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        template = str(pathlib.Path(__file__).parent / "tools.jinja")
        cls.server = cls.stack.enter_context(
            served.served("--adapter", f"caller={served.CALLER}", "--template-path", template)
        )
        cls.client = served.client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def chat(self, **given):
        return self.client.chat.completions.create(
            **{
                "model": "tally",
                "messages": served.Tools.ASKED,
                "tools": self.TOOLS,
                "temperature": 1,
                "max_tokens": 250,
                "seed": 5,
                **given,
            }
        )

    def assert_calls(self, choice):
        """Every call of a whole answer is of a tool, and its arguments match; returns the names."""
        names = []
        for call in choice.message.tool_calls or []:
            schemas = {one["function"]["name"]: one["function"]["parameters"] for one in self.TOOLS}
            jsonschema.validate(json.loads(call.function.arguments), schemas[call.function.name])
            names.append(call.function.name)
        return names

    def test_required_calls_come_and_match(self):
        found = set()
        for temperature in (0.5, 1, 3):
            for choice in self.chat(
                tool_choice="required",
                n=6,
                temperature=temperature,
                top_p=1,
                parallel_tool_calls=False,
                extra_body={"min_p": 0},
            ).choices:
                self.assertEqual(
                    (choice.finish_reason, choice.message.content), ("tool_calls", None)
                )
                (name,) = self.assert_calls(choice)
                found.add(name)
        self.assertEqual(found, {"add", "set_size"})

    def test_required_calls_may_be_several(self):
        numbers = set()
        for choice in self.chat(tool_choice="required", n=12, temperature=3, top_p=1).choices:
            if choice.finish_reason == "tool_calls":
                numbers.add(len(self.assert_calls(choice)))
        self.assertGreater(max(numbers), 1, numbers)

    def test_a_named_function_is_called_once(self):
        for name in ("add", "set_size"):
            choice = {"type": "function", "function": {"name": name}}
            for one in self.chat(tool_choice=choice, n=4, temperature=2).choices:
                self.assertEqual(one.finish_reason, "tool_calls")
                self.assertEqual(self.assert_calls(one), [name])

    def test_strict_calls_match_where_the_model_calls(self):
        tools = [tool("add", {"c": {"type": "boolean"}}, strict=True)]
        for choice in self.chat(model="caller", tools=tools, n=4, max_tokens=120).choices:
            if choice.finish_reason != "tool_calls":
                continue
            for call in choice.message.tool_calls:
                self.assertIsInstance(json.loads(call.function.arguments)["c"], bool)
        free = self.chat(model="caller", tools=tools, temperature=0).choices[0]
        self.assertEqual(list(json.loads(free.message.tool_calls[0].function.arguments)), ["c"])
        said = self.chat(
            model="caller",
            tools=tools,
            temperature=0,
            messages=[
                *served.Tools.ASKED,
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "1",
                            "type": "function",
                            "function": {"name": "add", "arguments": '{"a": 31, "b": 7}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": "38"},
            ],
        ).choices[0]
        self.assertEqual((said.message.content, said.finish_reason), ("It is 38.", "stop"))

    def test_streams_bring_what_whole_answers_are(self):
        given = dict(tool_choice="required", parallel_tool_calls=False, n=3, logprobs=True)
        whole = self.chat(**given)
        wanted = [
            [(one.function.name, one.function.arguments) for one in choice.message.tool_calls]
            for choice in whole.choices
        ]
        calls, tokens = [[], [], []], [0] * 3
        for part in self.chat(stream=True, **given):
            for choice in part.choices:
                for one in choice.delta.tool_calls or []:
                    calls[choice.index].append((one.function.name, one.function.arguments))
                tokens[choice.index] += len(choice.logprobs.content) if choice.logprobs else 0
        self.assertEqual(calls, wanted)
        self.assertEqual(tokens, [len(choice.logprobs.content) for choice in whole.choices])

    def test_a_schema_that_is_not_covered_is_refused_with_its_tool(self):
        for given, param in (
            (dict(tool_choice="required"), "tools[1].function.parameters"),
            (
                dict(tools=[tool("f", {"a": {"not": {}}}, strict=True)]),
                "tools[0].function.parameters",
            ),
        ):
            asked = {"tools": [self.TOOLS[0], tool("f", {"a": {"not": {}}})], **given}
            with self.assertRaises(openai.BadRequestError) as caught:
                self.chat(**asked)
            self.assertEqual(caught.exception.param, param)
            self.assertIn('"not"', str(caught.exception))
        # Without `strict`, arguments of that tool are any object.
        self.assertTrue(self.chat(tools=[tool("f", {"a": {"not": {}}})]).choices)


class Files(unittest.TestCase):
    def test_generate_follows_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(Sum.model_json_schema(), file)
            file.flush()
            words = [
                served.CONVOY,
                "generate",
                "--model",
                served.MODEL,
                "--prompt",
                served.PROMPT,
                "--schema",
                file.name,
            ]
            words += ["--n", "4", "--temperature", "1", "--max-new-tokens", "400", "--json"]
            rows = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        for row in map(json.loads, rows.splitlines()):
            if row["finish_reason"] == "stop":
                Sum.model_validate_json(row["completion"])

    def test_a_schema_that_is_not_covered_has_no_answers(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"not": {}}, file)
            file.flush()
            words = [
                served.CONVOY,
                "generate",
                "--model",
                served.MODEL,
                "--prompt",
                served.PROMPT,
                "--schema",
                file.name,
            ]
            ended = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn('keywords that are not covered: "not"', ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
