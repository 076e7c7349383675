"""The openai package against `convoy serve`: openai_client_test.py CONVOY MODEL ADAPTER."""
import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import openai

CONVOY, MODEL, ADAPTER = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
PROMPT = "Question: 12 + 7 = ?\nAnswer:"
CHAT = [{"role": "user", "content": "Sam has 3 apples and buys 5. How many?"}]
LONG = dict(prompt=PROMPT, max_tokens=400, temperature=1, extra_body={"min_p": 0}, seed=1)


@contextlib.contextmanager
def served(*flags):
    command = [CONVOY, "serve", "--model", MODEL, "--served-name", "tally", "--port", "0", *flags]
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
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def client_of(server, key="none"):
    return openai.OpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=120)


def generated(*flags):
    words = [CONVOY, "generate", "--model", MODEL, "--greedy", "--json", "-q", *flags]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


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
        return self.client.completions.create(**{"model": "tally", "prompt": PROMPT, "temperature": 0, "max_tokens": 40, **given})

    def chat(self, **given):
        return self.client.chat.completions.create(
            **{"model": "tally", "messages": CHAT, "temperature": 0, "max_completion_tokens": 40, **given})

    def test_models_are_listed(self):
        self.assertEqual({model.id for model in self.client.models.list()}, {"tally", "sums"})

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
        row = generated("--prompt", PROMPT, "--chat", "off", "--max-new-tokens", "40", "--adapter", ADAPTER)
        self.assertEqual(self.complete(model="sums").choices[0].text, row["completion"])
        self.assertNotEqual(row["completion"], self.complete().choices[0].text)

    def test_streams_say_what_whole_answers_say(self):
        for n in (1, 3):
            whole = self.chat(n=n, seed=5, temperature=1)
            texts, ends = [""] * n, [None] * n
            usage = None
            for part in self.chat(n=n, seed=5, temperature=1, stream=True, stream_options={"include_usage": True}):
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
        texts = [self.complete(temperature=1, seed=seed).choices[0].text for seed in (1, 1, 2, 3, 4)]
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(len(set(texts)), 1)

    def test_stop_strings_and_limits(self):
        self.assertEqual(self.complete(stop=["=<", "never"]).choices[0].text, self.complete().choices[0].text.split("=<")[0])
        cut = self.complete(max_tokens=3)
        self.assertEqual((cut.choices[0].finish_reason, cut.usage.completion_tokens), ("length", 3))

    def test_several_prompts_and_ids(self):
        answers = self.complete(prompt=[PROMPT, "Question: 1 + 1 = ?\nAnswer:"], n=2)
        self.assertEqual([choice.index for choice in answers.choices], [0, 1, 2, 3])
        self.assertEqual(answers.choices[0].text, self.complete().choices[0].text)
        self.assertEqual(answers.choices[2].text, self.complete(prompt="Question: 1 + 1 = ?\nAnswer:").choices[0].text)
        self.assertEqual(self.complete(prompt=[5, 6, 7]).usage.prompt_tokens, 3)

    def test_log_probabilities(self):
        row = generated("--prompt", PROMPT, "--chat", "off", "--max-new-tokens", "5", "--logprobs")
        answer = self.complete(max_tokens=5, logprobs=0).choices[0]
        for given, wanted in zip(answer.logprobs.token_logprobs, row["logprobs"], strict=True):
            self.assertAlmostEqual(given, wanted, places=5)
        self.assertEqual("".join(answer.logprobs.tokens), answer.text)
        content = self.chat(logprobs=True, max_completion_tokens=3).choices[0].logprobs.content
        self.assertTrue(all(token.logprob <= 0 for token in content))

    def test_what_is_not_served_is_refused_by_name(self):
        def refused(name, **given):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.chat(**given)
            self.assertEqual(caught.exception.param, name, caught.exception)

        refused("tools", tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
        refused("top_logprobs", logprobs=True, top_logprobs=2)
        refused("response_format", response_format={"type": "json_object"})
        refused("presence_penalty", presence_penalty=0.5)
        refused("logit_bias", logit_bias={"5": 1})
        refused("colour", extra_body={"colour": "red"})
        refused("temperature", temperature=-1)
        refused("messages", messages=[])
        refused("messages", messages=[*CHAT, {"role": "assistant", "content": "8"}])

    def test_wrong_names_and_paths(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat(model="other")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="tally", input="a")

    def test_a_prompt_that_is_too_long_is_refused(self):
        with self.assertRaises(openai.BadRequestError):
            self.complete(prompt="12 + 7 = " * 2000)

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


class OtherServers(unittest.TestCase):
    def test_keys_are_required_where_they_are_given(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder, "keys")
            keys.write_text("first\nsecond\n")
            with served("--api-key-file", str(keys)) as server:
                self.assertEqual(len(list(client_of(server, "second").models.list())), 1)
                with self.assertRaises(openai.AuthenticationError):
                    client_of(server, "third").models.list()

    def test_beyond_this_machine_a_key_is_required(self):
        done = subprocess.run([CONVOY, "serve", "--model", MODEL, "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--api-key-file", done.stderr)

    def test_a_full_queue_says_so(self):
        with served("--batch-size", "1", "--max-waiting", "0") as server:
            with self.assertRaises(openai.RateLimitError) as caught:
                client_of(server).completions.create(model="tally", n=2, **LONG)
            self.assertEqual(caught.exception.response.headers["retry-after"], "1")

    def test_a_client_that_leaves_frees_its_place(self):
        with served("--batch-size", "1", "--max-waiting", "0") as server:
            host, port = re.match(r"http://(.*):(\d+)/", server.url).groups()
            body = json.dumps({"model": "tally", "stream": True, "prompt": PROMPT, "max_tokens": 100000, "stop": "never"})
            with socket.create_connection((host, int(port))) as left:
                left.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                left.recv(100)
            for _ in range(1000):  # until the server has noticed
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
            self.assertEqual(server.wait(timeout=60), 0)

    def test_the_time_of_the_end_is_limited(self):
        with served("--shutdown-time", "0") as server:
            stream = iter(client_of(server).completions.create(model="tally", stream=True, **{**LONG, "max_tokens": 100000}))
            next(stream)
            server.send_signal(signal.SIGTERM)
            with contextlib.suppress(openai.APIError):  # the error is the stream's last event
                list(stream)
            self.assertEqual(server.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
