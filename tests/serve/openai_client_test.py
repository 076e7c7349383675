"""Uses `convoy serve` with the openai package: openai_client_test.py CONVOY MODEL ADAPTER CALLER. CALLER is an adapter that
calls tools, with the template tools.jinja."""

import contextlib
import json
import math
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import httpx
import openai
from prometheus_client.parser import text_string_to_metric_families

CONVOY, MODEL, ADAPTER, CALLER = (sys.argv.pop(1) for _ in range(4))
PROMPT = "Question: 12 + 7 = ?\nAnswer:"
CHAT = [{"role": "user", "content": "Sam has 3 apples and buys 5. How many?"}]
LONG = dict(prompt=PROMPT, max_tokens=400, temperature=1, extra_body={"min_p": 0}, seed=1)


@contextlib.contextmanager
def served(*flags):
    command = [
        CONVOY,
        "serve",
        "--model",
        MODEL,
        "--served-name",
        "tally",
        "--port",
        "0",
        "--dtype",
        "fp32",
        *flags,
    ]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in server.stderr:
        lines.append(line)
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            break
    else:
        raise AssertionError("".join(lines))
    threading.Thread(target=server.stderr.read, daemon=True).start()
    server.url = found.group(1)
    server.start_lines = lines
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def client_of(server, key="none"):
    return openai.OpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=1200)


def samples_of(server):
    """The metrics by name, or by (name, reason) for metrics that have a reason."""
    answer = httpx.get(server.url.removesuffix("/v1") + "/metrics").raise_for_status()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4"), answer.headers
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            if sample.name.startswith("convoy:"):  # a metric of the whole server, without labels
                found[sample.name] = sample.value
                continue
            assert (sample.labels["model_name"], sample.labels["engine"]) == ("tally", "0"), sample
            reason = sample.labels.get("finished_reason")
            if "le" not in sample.labels:
                found[(sample.name, reason) if reason else sample.name] = sample.value
    return found


def generated(*flags):
    words = [
        CONVOY,
        "generate",
        "--model",
        MODEL,
        "--greedy",
        "--dtype",
        "fp32",
        "--json",
        "-q",
        *flags,
    ]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


class OwnSampling(unittest.TestCase):
    def test_flags_count_where_a_request_says_nothing(self):
        with served("--temperature", "0", "--max-new-tokens", "7") as server:
            self.assertIn(
                "sampling: greedy, max_new_tokens 7 as given\n",
                [line.removeprefix("convoy: ") for line in server.start_lines],
            )
            client = client_of(server)
            row = generated("--prompt", PROMPT, "--chat", "off", "--max-new-tokens", "7")
            for _ in range(3):
                answer = client.completions.create(model="tally", prompt=PROMPT)
                self.assertEqual(
                    (answer.choices[0].text, answer.usage.completion_tokens), (row["completion"], 7)
                )
            longer = client.completions.create(model="tally", prompt=PROMPT, max_tokens=9)
            self.assertEqual(longer.usage.completion_tokens, 9)

    def test_defaults_are_those_of_generate(self):
        words = [CONVOY, "generate", "--model", MODEL, "--prompt", PROMPT, "--chat", "off"]
        line = re.search(
            "sampling: .*\n",
            subprocess.run(words, check=True, capture_output=True, text=True).stderr,
        )[0]
        with served() as server:
            self.assertIn(line, "".join(server.start_lines))


class OneServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.server = cls.stack.enter_context(served("--adapter", f"sums={ADAPTER}"))
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def complete(self, **given):
        return self.client.completions.create(
            **{"model": "tally", "prompt": PROMPT, "temperature": 0, "max_tokens": 40, **given}
        )

    def chat(self, **given):
        return self.client.chat.completions.create(
            **{
                "model": "tally",
                "messages": CHAT,
                "temperature": 0,
                "max_completion_tokens": 40,
                **given,
            }
        )

    def test_models_are_listed(self):
        self.assertEqual({model.id for model in self.client.models.list()}, {"tally", "sums"})
        self.assertEqual(
            [self.client.models.retrieve(name).id for name in ("tally", "sums")], ["tally", "sums"]
        )
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("other")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_greedy_texts_are_those_of_generate(self):
        answer = self.complete()
        row = generated("--prompt", PROMPT, "--chat", "off", "--max-new-tokens", "40")
        self.assertEqual(answer.choices[0].text, row["completion"])
        self.assertEqual(answer.usage.prompt_tokens, row["prompt_tokens"])
        self.assertEqual(answer.usage.completion_tokens, len(row["token_ids"]))
        self.assertEqual(answer.choices[0].finish_reason, row["finish_reason"])
        row = generated("--prompt", CHAT[0]["content"], "--chat", "on", "--max-new-tokens", "40")
        self.assertEqual(self.chat().choices[0].message.content, row["completion"])

    def test_an_adapter_is_a_model(self):
        row = generated(
            "--prompt", PROMPT, "--chat", "off", "--max-new-tokens", "40", "--adapter", ADAPTER
        )
        self.assertEqual(self.complete(model="sums").choices[0].text, row["completion"])
        self.assertNotEqual(row["completion"], self.complete().choices[0].text)

    def test_streams_say_what_whole_answers_say(self):
        for n in (1, 3):
            whole = self.chat(n=n, seed=5, temperature=1)
            texts, ends = [""] * n, [None] * n
            usage = None
            for part in self.chat(
                n=n, seed=5, temperature=1, stream=True, stream_options={"include_usage": True}
            ):
                self.assertIn("usage", part.model_fields_set)  # null except in the last part
                usage = part.usage or usage
                for choice in part.choices:
                    texts[choice.index] += choice.delta.content or ""
                    ends[choice.index] = choice.finish_reason or ends[choice.index]
            self.assertEqual(texts, [choice.message.content for choice in whole.choices])
            self.assertEqual(ends, [choice.finish_reason for choice in whole.choices])
            self.assertEqual(usage, whole.usage)
        streamed = "".join(part.choices[0].text for part in self.complete(stream=True))
        self.assertEqual(streamed, self.complete().choices[0].text)

    def test_seeds_repeat_and_differ(self):
        texts = [
            self.complete(temperature=1, seed=seed).choices[0].text for seed in (1, 1, 2, 3, 4)
        ]
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(len(set(texts)), 1)

    def test_stop_strings_and_limits(self):
        self.assertEqual(
            self.complete(stop=["=<", "never"]).choices[0].text,
            self.complete().choices[0].text.split("=<")[0],
        )
        cut = self.complete(max_tokens=3)
        self.assertEqual((cut.choices[0].finish_reason, cut.usage.completion_tokens), ("length", 3))

    def test_several_prompts_and_ids(self):
        answers = self.complete(prompt=[PROMPT, "Question: 1 + 1 = ?\nAnswer:"], n=2)
        self.assertEqual([choice.index for choice in answers.choices], [0, 1, 2, 3])
        self.assertEqual(answers.choices[0].text, self.complete().choices[0].text)
        self.assertEqual(
            answers.choices[2].text,
            self.complete(prompt="Question: 1 + 1 = ?\nAnswer:").choices[0].text,
        )
        self.assertEqual(self.complete(prompt=[5, 6, 7]).usage.prompt_tokens, 3)

    def test_log_probabilities(self):
        row = generated("--prompt", PROMPT, "--chat", "off", "--max-new-tokens", "5", "--logprobs")
        answer = self.complete(max_tokens=5, logprobs=0).choices[0]
        for given, wanted in zip(answer.logprobs.token_logprobs, row["logprobs"], strict=True):
            self.assertAlmostEqual(given, wanted, places=5)
        self.assertEqual("".join(answer.logprobs.tokens), answer.text)
        content = self.chat(logprobs=True, max_completion_tokens=3).choices[0].logprobs.content
        self.assertTrue(all(token.logprob <= 0 for token in content))

    def test_log_probabilities_are_those_of_transformers(self):
        golden = json.loads(
            (pathlib.Path(__file__).parent.parent / "golden/serve/logprobs.json").read_text()
        )
        places = golden["places"]
        found = (
            self.complete(prompt=golden["prompt"], max_tokens=len(places), logprobs=5)
            .choices[0]
            .logprobs
        )
        self.assertEqual(found.tokens, [place["token"] for place in places])
        for place, logprob, top in zip(
            places, found.token_logprobs, found.top_logprobs, strict=True
        ):
            self.assertAlmostEqual(logprob, place["logprob"], delta=1e-4)
            self.assertEqual(sorted(top), sorted(token for token, _ in place["top"]))
            for token, wanted in place["top"]:
                self.assertAlmostEqual(top[token], wanted, delta=1e-4)

    def test_the_likeliest_tokens_of_each_place(self):
        content = (
            self.chat(logprobs=True, top_logprobs=4, max_completion_tokens=6)
            .choices[0]
            .logprobs.content
        )
        for token in content:
            top = token.top_logprobs
            self.assertEqual(
                [one.logprob for one in top], sorted((one.logprob for one in top), reverse=True)
            )
            self.assertEqual(
                (len(top), top[0].token, top[0].logprob), (4, token.token, token.logprob)
            )
            self.assertEqual(bytes(token.bytes).decode(), token.token)
        # The 20 likeliest tokens have less than the whole probability, but most of it.
        shares = [
            math.exp(one.logprob)
            for one in self.chat(logprobs=True, top_logprobs=20, max_completion_tokens=1)
            .choices[0]
            .logprobs.content[0]
            .top_logprobs
        ]
        self.assertTrue(0.5 < sum(shares) <= 1, shares)
        drawn = self.complete(max_tokens=20, logprobs=2, temperature=2, seed=3).choices[0].logprobs
        for token, logprob, top in zip(
            drawn.tokens, drawn.token_logprobs, drawn.top_logprobs, strict=True
        ):
            self.assertEqual(top[token], logprob)
            self.assertTrue(2 <= len(top) + 1 <= 4, top)

    def test_streams_bring_the_log_probabilities_of_whole_answers(self):
        given = dict(
            max_completion_tokens=30, logprobs=True, top_logprobs=3, seed=2, temperature=1, n=2
        )
        whole = [choice.logprobs.content for choice in self.chat(**given).choices]
        parts = [[], []]
        for part in self.chat(**given, stream=True):
            for choice in part.choices:
                parts[choice.index] += choice.logprobs.content if choice.logprobs else []
        self.assertEqual(parts, whole)
        given = dict(max_tokens=30, logprobs=2, seed=2, temperature=1)
        whole = self.complete(**given).choices[0].logprobs
        parts = [
            part.choices[0].logprobs
            for part in self.complete(**given, stream=True)
            if part.choices[0].logprobs
        ]
        for field in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            self.assertEqual(
                sum((getattr(part, field) for part in parts), []), getattr(whole, field)
            )

    def test_log_probabilities_end_with_the_text(self):
        given = dict(max_tokens=40, logprobs=2, stop=["=<", "never"])
        whole = self.complete(**given).choices[0]
        self.assertEqual("".join(whole.logprobs.tokens), whole.text)
        parts = [
            part.choices[0].logprobs
            for part in self.complete(**given, stream=True)
            if part.choices[0].logprobs
        ]
        self.assertEqual(sum((part.tokens for part in parts), []), whole.logprobs.tokens)
        self.assertEqual(
            sum((part.token_logprobs for part in parts), []), whole.logprobs.token_logprobs
        )

    def test_echoes_prompts_with_their_log_probabilities(self):
        golden = json.loads(
            (pathlib.Path(__file__).parent.parent / "golden/serve/logprobs.json").read_text()
        )
        prompt = golden["prompt"] + "".join(place["token"] for place in golden["places"])
        ids = self.post("/tokenize", prompt=prompt).json()["tokens"]
        plain = self.complete(prompt=prompt, max_tokens=3, logprobs=5).choices[0]
        for given in (prompt, ids):
            answer = self.complete(prompt=given, max_tokens=3, logprobs=5, echo=True)
            self.assertEqual(answer.usage.prompt_tokens, len(ids))
            self.assertEqual(answer.usage.prompt_tokens_details.cached_tokens, 0)
            choice, found = answer.choices[0], answer.choices[0].logprobs
            self.assertEqual(choice.text, prompt + plain.text)
            self.assertEqual("".join(found.tokens), choice.text)
            self.assertIsNone(found.token_logprobs[0])
            self.assertIsNone(found.top_logprobs[0])
            for token, offset in zip(found.tokens, found.text_offset, strict=True):
                self.assertTrue(choice.text[offset:].startswith(token))
            places = golden["places"]
            for at, place in enumerate(places, len(ids) - len(places)):
                self.assertAlmostEqual(found.token_logprobs[at], place["logprob"], delta=1e-4)
                for token, wanted in place["top"]:
                    self.assertAlmostEqual(found.top_logprobs[at][token], wanted, delta=1e-4)
            self.assertEqual(found.token_logprobs[len(ids) :], plain.logprobs.token_logprobs)
            self.assertEqual(found.top_logprobs[len(ids) :], plain.logprobs.top_logprobs)
        bare = self.complete(prompt=prompt, max_tokens=0, logprobs=5, echo=True)
        self.assertEqual((bare.choices[0].text, bare.usage.completion_tokens), (prompt, 0))
        self.assertEqual(bare.choices[0].logprobs.token_logprobs, found.token_logprobs[: len(ids)])
        silent = self.complete(prompt=prompt, max_tokens=3, echo=True).choices[0]
        self.assertEqual((silent.text, silent.logprobs), (choice.text, None))

    def test_an_echo_has_the_log_probability_of_the_end_token(self):
        answer = self.complete(max_tokens=200, logprobs=1, echo=True)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(
            len(answer.choices[0].logprobs.tokens),
            answer.usage.prompt_tokens + answer.usage.completion_tokens,
        )

    def test_log_probabilities_of_prompts_in_vllm_s_form(self):
        ids = self.post("/tokenize", messages=CHAT).json()["tokens"]
        answer = self.chat(max_completion_tokens=2, extra_body={"prompt_logprobs": 2})
        scores = answer.model_extra["prompt_logprobs"]
        self.assertEqual((len(scores), scores[0]), (len(ids), None))
        for id, score in list(zip(ids, scores, strict=True))[1:]:
            self.assertIn(str(id), score)
            self.assertEqual(
                sorted(one["rank"] for one in score.values() if one["rank"]), [1, 2], score
            )
        given = dict(max_tokens=0, n=2, extra_body={"prompt_logprobs": 0})
        answer = self.complete(prompt=[PROMPT, "1"], **given)
        texts = [choice.model_extra["prompt_logprobs"] for choice in answer.choices]
        self.assertEqual((texts[0], texts[2], texts[3]), (texts[1], [None], [None]))
        self.assertEqual({len(score) for score in texts[0][1:]}, {1})
        self.assertEqual([choice.text for choice in answer.choices], [""] * 4)

    def test_usage_names_what_the_prefix_cache_gave(self):
        prompt = "Question: 31 + 7 = ?\nAnswer: 38\n" * 8
        first, second = (self.complete(prompt=prompt, n=2, max_tokens=2).usage for _ in range(2))
        self.assertEqual(first.prompt_tokens_details.cached_tokens, 0)
        cached = second.prompt_tokens_details.cached_tokens
        self.assertTrue(second.prompt_tokens - 33 <= cached < second.prompt_tokens, second)

    def test_penalties_and_biases(self):
        plain = self.complete().choices[0].text
        banned = self.post("/tokenize", prompt=plain).json()["tokens"][0]
        without = self.complete(logit_bias={banned: -100}, logprobs=0).choices[0]
        self.assertNotIn(
            self.post("/detokenize", tokens=[banned]).json()["prompt"], without.logprobs.tokens
        )
        forced = (
            self.complete(logit_bias={banned: 100}, max_tokens=6, logprobs=0)
            .choices[0]
            .logprobs.tokens
        )
        self.assertEqual(len(set(forced)), 1, forced)
        varied = self.complete(
            logit_bias={banned: 20},
            frequency_penalty=2,
            presence_penalty=2,
            max_tokens=40,
            logprobs=0,
        )
        self.assertGreater(len(set(varied.choices[0].logprobs.tokens)), 1)

    def post(self, path, **body):
        return httpx.post(self.server.url.removesuffix("/v1") + path, json=body, timeout=1200)

    def test_texts_become_tokens_and_come_back(self):
        answer = self.post("/tokenize", model="tally", prompt=PROMPT).raise_for_status().json()
        self.assertEqual(answer["count"], self.complete(max_tokens=1).usage.prompt_tokens)
        self.assertEqual((len(answer["tokens"]), answer["max_model_len"]), (answer["count"], 1024))
        self.assertEqual(
            self.post("/detokenize", model="tally", tokens=answer["tokens"]).json(),
            {"prompt": PROMPT},
        )
        info = httpx.get(self.server.url.removesuffix("/v1") + "/tokenizer_info").json()
        self.assertEqual((info["bos_token"], info["eos_token"]), (None, "<|im_end|>"))
        self.assertIn("<|im_start|>", info["chat_template"])
        chat = (
            self.post("/tokenize", messages=CHAT, return_token_strs=True).raise_for_status().json()
        )
        self.assertEqual(chat["count"], self.chat(max_completion_tokens=1).usage.prompt_tokens)
        self.assertEqual(chat["token_strs"][0], "<|im_start|>")
        bare = self.post("/tokenize", messages=CHAT, add_generation_prompt=False).json()
        self.assertEqual(chat["tokens"][: bare["count"]], bare["tokens"])
        self.assertLess(bare["count"], chat["count"])
        self.assertEqual(self.post("/tokenize", prompt="").raise_for_status().json()["tokens"], [])
        for path, status, body in [
            ("/tokenize", 404, {"model": "other", "prompt": "a"}),
            ("/tokenize", 400, {}),
            ("/tokenize", 400, {"prompt": "a", "colour": 1}),
            ("/tokenize", 400, {"prompt": "a", "messages": CHAT}),
            ("/detokenize", 400, {"tokens": [100000]}),
            ("/detokenize", 400, {"tokens": "a"}),
        ]:
            self.assertEqual(self.post(path, **body).status_code, status, body)

    def test_metrics_count_what_is_served(self):
        before = samples_of(self.server)
        usage = self.complete(n=2, max_tokens=7, stop="never").usage
        after = samples_of(self.server)
        grown = {name: after[name] - before[name] for name in after}
        for name, value in {
            "vllm:prompt_tokens_total": 2 * usage.prompt_tokens,
            "vllm:generation_tokens_total": usage.completion_tokens,
            "vllm:time_to_first_token_seconds_count": 2,
            "vllm:inter_token_latency_seconds_count": usage.completion_tokens - 2,
            "vllm:time_per_output_token_seconds_count": usage.completion_tokens - 2,
            "vllm:e2e_request_latency_seconds_count": 2,
            "vllm:request_generation_tokens_sum": usage.completion_tokens,
            "vllm:prefix_cache_queries_total": 2 * usage.prompt_tokens,
        }.items():
            self.assertEqual(grown[name], value, name)
        self.assertEqual(
            grown["vllm:request_success_total", "length"]
            + grown["vllm:request_success_total", "stop"],
            2,
        )
        self.assertLessEqual(
            after["vllm:prefix_cache_hits_total"], after["vllm:prefix_cache_queries_total"]
        )
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
            self.assertGreaterEqual(after[f"vllm:{name}"], 0)

    def test_what_is_not_served_is_refused_by_name(self):
        def refused(name, **given):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.chat(**given)
            self.assertEqual(caught.exception.param, name, caught.exception)

        refused("tools", tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
        refused("top_logprobs", logprobs=True, top_logprobs=21)
        refused("response_format.type", response_format={"type": "xml"})
        refused("presence_penalty", presence_penalty=2.5)
        refused("logit_bias", logit_bias={"100000": 1})
        refused("colour", extra_body={"colour": "red"})
        refused("temperature", temperature=-1)
        refused("messages", messages=[])
        refused(
            "messages[0].content",
            messages=[
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
            ],
        )
        refused("messages", messages=[*CHAT, {"role": "assistant", "content": "8"}])

    def test_wrong_names_and_paths(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat(model="other")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="tally", input="a")

    def test_a_prompt_that_is_too_long_is_refused(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt="12 + 7 = " * 2000)
        self.assertEqual(
            (caught.exception.code, caught.exception.param), ("context_length_exceeded", "prompt")
        )

    def test_many_clients_get_what_one_gets(self):
        alone = self.complete().choices[0].text
        texts = [None] * 24

        def ask(place):
            texts[place] = self.complete().choices[0].text

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(texts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(texts), {alone})


class Tools(unittest.TestCase):
    TOOLS = [
        {"type": "function", "function": {"name": "add", "parameters": {"a": "int", "b": "int"}}}
    ]
    ASKED = [{"role": "user", "content": "Add 31 and 7."}]

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        template = str(pathlib.Path(__file__).parent / "tools.jinja")
        cls.server = cls.stack.enter_context(
            served("--adapter", f"caller={CALLER}", "--template-path", template)
        )
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def chat(self, **given):
        return self.client.chat.completions.create(
            **{
                "model": "caller",
                "messages": self.ASKED,
                "tools": self.TOOLS,
                "temperature": 0,
                "max_completion_tokens": 80,
                **given,
            }
        )

    def test_a_call_is_read_from_the_text(self):
        choice = self.chat(tool_choice="auto").choices[0]
        self.assertEqual(
            (choice.finish_reason, choice.message.content), ("tool_calls", None), choice
        )
        (call,) = choice.message.tool_calls
        self.assertEqual((call.type, call.function.name), ("function", "add"))
        self.assertEqual(json.loads(call.function.arguments), {"a": 31, "b": 7})

    def test_its_result_is_answered(self):
        call = self.chat().choices[0].message
        self.assertIsNone(call.content)
        result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "38"}
        answer = self.chat(
            messages=[*self.ASKED, call.model_dump(exclude_unset=True), result]
        ).choices[0]
        self.assertEqual((answer.message.content, answer.finish_reason), ("It is 38.", "stop"))
        self.assertIsNone(answer.message.tool_calls)

    def test_streams_bring_whole_calls(self):
        calls, texts, end = [], "", None
        for part in self.chat(stream=True, logprobs=True):
            choice = part.choices[0]
            calls += choice.delta.tool_calls or []
            texts += choice.delta.content or ""
            end = choice.finish_reason or end
        (call,) = calls
        self.assertEqual((texts, end, call.index, call.function.name), ("", "tool_calls", 0, "add"))
        self.assertEqual(json.loads(call.function.arguments), {"a": 31, "b": 7})

    def test_a_cut_call_is_text(self):
        choice = self.chat(max_completion_tokens=8).choices[0]
        self.assertEqual(choice.finish_reason, "length")
        self.assertTrue(choice.message.content.startswith("<tool"), choice)

    def test_none_takes_the_tools_away(self):
        without = self.chat(tool_choice="none")
        self.assertIsNone(without.choices[0].message.tool_calls)
        self.assertLess(without.usage.prompt_tokens, self.chat().usage.prompt_tokens)

    def test_other_choices_are_refused(self):
        for choice in ("any", {"type": "function", "function": {"name": "subtract"}}):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.chat(tool_choice=choice)
            self.assertEqual(caught.exception.param, "tool_choice")


class OtherServers(unittest.TestCase):
    def test_an_ipv6_address_stands_in_brackets(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"this machine has no ::1: {error}")
        with served("--host", "::1") as server:
            self.assertRegex(server.url, r"^http://\[::1\]:\d+/v1$")
            self.assertEqual(len(list(client_of(server).models.list())), 1)

    def test_keys_are_required_where_they_are_given(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys")
            keys.write_text("first\nsecond\n")
            with served("--api-key-file", str(keys)) as server:
                self.assertEqual(len(list(client_of(server, "second").models.list())), 1)
                with self.assertRaises(openai.AuthenticationError):
                    client_of(server, "third").models.list()
                metrics = server.url.removesuffix("/v1") + "/metrics"
                self.assertEqual(
                    [
                        httpx.get(metrics, headers=headers).status_code
                        for headers in ({}, {"authorization": "Bearer first"})
                    ],
                    [401, 200],
                )

    def test_beyond_this_machine_a_key_is_required(self):
        done = subprocess.run(
            [CONVOY, "serve", "--model", MODEL, "--host", "0.0.0.0", "--port", "0"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--api-key-file", done.stderr)

    def test_a_full_queue_says_so(self):
        with served("--batch-size", "1", "--max-waiting", "99") as server:
            taken = threading.Thread(
                target=lambda: client_of(server).completions.create(model="tally", n=100, **LONG)
            )
            taken.start()
            time.sleep(0.5)
            with self.assertRaises(openai.RateLimitError) as caught:
                client_of(server).completions.create(model="tally", n=100, **LONG)
            self.assertEqual(caught.exception.response.headers["retry-after"], "1")
            taken.join()

    def test_a_client_that_leaves_frees_its_place(self):
        with served("--batch-size", "1", "--max-waiting", "0") as server:
            host, port = re.match(r"http://(.*):(\d+)/", server.url).groups()
            body = json.dumps(
                {
                    "model": "tally",
                    "stream": True,
                    "prompt": PROMPT,
                    "max_tokens": 100000,
                    "stop": "never",
                }
            )
            with socket.create_connection((host, int(port))) as left:
                left.sendall(
                    f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
                )
                left.recv(100)
            for _ in range(1000):  # until the server has noticed that the client left
                with contextlib.suppress(openai.RateLimitError):
                    client_of(server).completions.create(model="tally", prompt=PROMPT, max_tokens=1)
                    return
            self.fail("the place of a client that left stayed taken")

    def test_running_answers_end_before_the_server_does(self):
        with served() as server:
            stream = client_of(server).completions.create(model="tally", stream=True, **LONG)
            first = next(iter(stream))
            server.send_signal(signal.SIGTERM)
            rest = list(stream)
            self.assertIn(rest[-1].choices[0].finish_reason, ("stop", "length"))
            self.assertIsNotNone(first)
            self.assertEqual(server.wait(timeout=1200), 0)

    def test_the_time_of_the_end_is_limited(self):
        with served("--shutdown-time", "0") as server:
            stream = iter(
                client_of(server).completions.create(
                    model="tally", stream=True, **{**LONG, "max_tokens": 100000}
                )
            )
            next(stream)
            server.send_signal(signal.SIGTERM)
            with contextlib.suppress(openai.APIError):  # the last event of the stream is the error
                list(stream)
            self.assertEqual(server.wait(timeout=1200), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
