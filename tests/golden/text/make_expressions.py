# SPDX-License-Identifier: Apache-2.0
"""Makes random Jinja templates, and the texts that Jinja2 3.1 renders from them in the environment of transformers.

usage: python make_expressions.py [SEED COUNT OUT]     (needs jinja2 3.1; writes expressions.json beside itself)

A row is [template, text], or [template, null] where Jinja2 raises.
"""

import datetime
import json
import pathlib
import random
import re
import signal
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent

CONTEXT = {
    "n": 7,
    "neg": -3,
    "zero": 0,
    "big": 12345678901234567890,
    "f": 2.5,
    "small": 1e-5,
    "huge": 1e16,
    "nf": -0.75,
    "t": True,
    "no": False,
    "nil": None,
    "s": "Hello, World",
    "low": "abc",
    "empty": "",
    "uni": "ÀÉ ß 漢字 'q' \"d\"",
    "lines": "one\n  two\n\nthree",
    "html": '<b>it\'s & "x"</b>',
    "num": "42",
    "pad": "  spaced\t\n",
    "xs": [3, 1, 2],
    "ss": ["b", "A", "c"],
    "mix": [1, "a", None, 2.5, True, [1, 2], {"k": "v"}],
    "none_list": [],
    "d": {"a": 1, "b": "two", "c": [1, 2, 3], "items_": None},
    "ed": {},
    "rows": [
        {"name": "x", "n": 3, "g": "A"},
        {"name": "Y", "n": 1, "g": "b"},
        {"name": "z", "n": 2, "g": "a"},
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi\nthere"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "f", "arguments": {"x": 1, "y": [1.5, "a"]}},
                }
            ],
        },
        {"role": "tool", "content": [{"type": "text", "text": "it's 5"}]},
    ],
    "deep": {"x": {"y": {"z": ["p", {"q": "r"}]}}},
}

INTS = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-7",
    "10",
    "255",
    "100000",
    "0x1F",
    "0b101",
    "1_000",
    "9007199254740993",
    "12345678901234567890",
    "n",
    "neg",
    "zero",
    "big",
    "xs[0]",
    "d.a",
    "s|length",
    "rows[1].n",
]
FLOATS = [
    "0.5",
    "2.5",
    "1.0",
    "-0.0",
    "1e16",
    "1e-5",
    "1.5e300",
    "3.14159",
    "1e15",
    "123456.789",
    "f",
    "nf",
    "small",
    "huge",
    "(huge * 1e300)",
    "(-huge * 1e300)",
    "2.675",
    "0.1",
    "-2.5",
    "1e22",
]
STRS = [
    "''",
    "'a'",
    "'abc'",
    "'Hello World'",
    '"it\'s"',
    "'say \"x\"'",
    "'a,b,,c'",
    "'  pad '",
    "'x\\ny'",
    "'tab\\t'",
    "'ünï'",
    "'%s'",
    "'42'",
    "'3.5'",
    "'-7'",
    "'ABC'",
    "'foo-bar (baz)'",
    "'\\\\'",
    "'é\\u0301'",
    "'<&>'",
    "'aaa'",
    "s",
    "low",
    "empty",
    "uni",
    "lines",
    "html",
    "num",
    "pad",
    "d.b",
    "messages[0].role",
    "messages[1]['content']",
    "'1_000'",
    "'0x1f'",
    "'1e3'",
    "'Straße'",
    "'ﬁne ǆ'",
    "'\\u200b\\xa0x'",
    "'😀 ok'",
]
LISTS = [
    "[]",
    "[1]",
    "[3, 1, 2]",
    "['b', 'A', 'c']",
    "[1, 2.5, 'x', none]",
    "[[1, 2], [3]]",
    "xs",
    "ss",
    "mix",
    "none_list",
    "[true, false]",
    "d.c",
    "['a', \"it's\"]",
    "[1, 1.0, true, 'a', 'A']",
    "'a b c'.split()",
    "[('a', 1), ('b', 2)]",
    "[{'a': 1}, {'a': 2}]",
]
TUPLES = ["()", "(1,)", "(1, 'a')", "(1, (2, 3))", "('x', none, 2.5)", "(3, 2, 1)"]
DICTS = [
    "{}",
    "{'a': 1}",
    "{'b': 2, 'a': 1}",
    "{1: 'x', 2.5: 'y', true: 'z'}",
    "{'k': [1, {'z': none}]}",
    "d",
    "ed",
    "deep",
    "{'B': 1, 'a': 2}",
    "dict(a=1, b='x')",
    "{(1, 2): 'tuple'}",
    "rows[0]",
    "{none: 0, 'x': \"it's\"}",
]
ROWS = ["rows", "[{'name': 'q', 'n': 5}]", "messages", "rows[:2]", "[{'n': 1}, {'m': 2}]"]
UNDEFINED = [
    "missing",
    "d.nope",
    "xs[99]",
    "d['nope']",
    "s.nope",
    "n.nope",
    "none.x",
    "rows[0].zzz",
    "''[5]",
    "[][0]",
]
SPECS = [
    "",
    "d",
    "5",
    "<5",
    ">5",
    "^7",
    "05",
    "+",
    "x",
    "#x",
    "b",
    "o",
    ",",
    ".2f",
    "8.3f",
    "e",
    ".1e",
    "g",
    ".3g",
    "%",
    ".1%",
    "*^9",
    "s",
    ".2",
    "_",
    "+.1f",
    "G",
    "c",
    "10s",
    "=6",
]


class Generator:
    def __init__(self, rng):
        self.r = rng

    def of(self, *choices):
        return self.r.choice(choices)

    def any(self, depth):
        return self.of(
            self.soup,
            self.int,
            self.int,
            self.float,
            self.str,
            self.str,
            self.bool,
            self.list,
            self.tuple,
            self.dict,
            self.undefined,
            lambda _: "none",
        )(depth)

    def wrong(self, depth, right):
        """Mostly an expression of the right kind, sometimes one of any kind."""
        return self.any(depth) if self.r.random() < 0.04 else right(depth)

    def undefined(self, depth):
        return self.of(*UNDEFINED)

    def atom(self, expr):
        return (
            expr
            if re.fullmatch(r"[\w.]+|'[^']*'|\[.*\]|\(.*\)", expr) and not expr[0].isdigit()
            else f"({expr})"
        )

    def num(self, depth):
        return self.of(self.int, self.int, self.float, self.bool)(depth)

    def int(self, depth):
        if depth <= 0 or self.r.random() < 0.3:
            return self.of(*INTS)
        d = depth - 1
        a = lambda: self.wrong(d, self.int)
        return self.of(
            lambda: f"{a()} {self.of('+', '-', '*', '//', '%')} {a()}",
            lambda: f"({a()} {self.of('+', '-', '*', '//', '%')} {a()})",
            lambda: f"({a()}) ** {self.of('2', '3', '0', '1')}",
            lambda: f"{self.atom(self.any(d))}|{self.of('length', 'count')}",
            lambda: f"-{self.atom(a())}",
            lambda: f"+{self.atom(a())}",
            lambda: f"({self.any(d)})|int",
            lambda: (
                f"({self.str(d)})|int({self.of('-1', 'default=5', '0, 16', '7, base=0', '0, 2')})"
            ),
            lambda: f"({self.num(d)})|int",
            lambda: f"({a()})|abs",
            lambda: f"{self.atom(self.str(d))}.{self.of('find', 'count', 'rfind')}({self.str(d)})",
            lambda: f"{self.atom(self.str(d))}.find({self.str(d)}, {a()})",
            lambda: f"{self.atom(self.list(d))}.{self.of('count', 'index')}({self.any(d)})",
            lambda: f"({self.str(d)})|wordcount",
            lambda: (
                f"{self.of('[1, 2, 3]', 'xs', 'range(5)', '(1, 2)', 'rows|map(attribute=Qn)')}|{self.of('sum', 'min', 'max')}".replace(
                    "Qn", "'n'"
                )
            ),
            lambda: f"rows|sum(attribute='n'{self.of('', ', start=10')})",
            lambda: f"{self.atom(self.list(d))}|sum(start={a()})",
            lambda: f"({a()} if {self.bool(d)} else {a()})",
            lambda: (
                f"range({self.of('5', '1, 9, 3', '10, 0, -2', '0')})[{self.of('0', '-1', '1', '99')}]"
            ),
            lambda: f"({a()}).bit_length()",
        )()

    def float(self, depth):
        if depth <= 0 or self.r.random() < 0.3:
            return self.of(*FLOATS)
        d = depth - 1
        a = lambda: self.wrong(d, self.num)
        return self.of(
            lambda: f"{a()} / {a()}",
            lambda: f"({a()} {self.of('+', '-', '*', '//', '%', '/')} {a()})",
            lambda: (
                f"({self.float(d)})|round({self.of('', '1', '2', '-1', '0', '3, Qfloor', '1, Qceil', 'method=Qceil', 'precision=2', 'none')})".replace(
                    "Qfloor", "'floor'"
                ).replace("Qceil", "'ceil'")
            ),
            lambda: f"({a()})|round",
            lambda: f"({self.any(d)})|float{self.of('', '(1.5)', '(default=none)')}",
            lambda: f"({self.num(d)})|float",
            lambda: f"({self.float(d)})|abs",
            lambda: f"-{self.atom(self.float(d))}",
            lambda: f"{self.of('2', '0.5', 'n', '10')} ** {self.of('-1', '0.5', '-2', '2.0')}",
            lambda: f"({self.str(d)})|float",
        )()

    def bool(self, depth):
        if depth <= 0 or self.r.random() < 0.15:
            return self.of("true", "false", "t", "no", "True", "False")
        d = depth - 1
        x = lambda: self.any(d)
        return self.of(
            lambda: (
                f"{self.atom(self.num(d))} {self.of('<', '>', '<=', '>=', '==', '!=')} {self.atom(self.num(d))}"
            ),
            lambda: f"{self.atom(x())} {self.of('==', '!=')} {self.atom(x())}",
            lambda: (
                f"{self.atom(self.str(d))} {self.of('<', '>', '<=', '>=', '==')} {self.atom(self.str(d))}"
            ),
            lambda: (
                f"{self.atom(self.list(d))} {self.of('<', '==', '>')} {self.atom(self.list(d))}"
            ),
            lambda: (
                f"{self.of('1', 'n', 'neg')} < {self.of('2', 'f', '7')} {self.of('<', '<=', '!=')} {self.of('7', '3', 'n')}"
            ),
            lambda: f"{self.atom(self.str(d))} {self.of('in', 'not in')} {self.atom(self.str(d))}",
            lambda: (
                f"{self.atom(x())} {self.of('in', 'not in')} {self.atom(self.of(self.list, self.dict, self.tuple)(d))}"
            ),
            lambda: f"not {self.atom(x())}",
            lambda: f"({x()} {self.of('and', 'or')} {x()})",
            lambda: self.test(d),
            lambda: f"{self.atom(self.str(d))}.{self.of('startswith', 'endswith')}({self.str(d)})",
            lambda: f"{self.atom(self.str(d))}.startswith(({self.str(d)}, 'H'))",
            lambda: (
                f"{self.atom(self.str(d))}.{self.of('isdigit', 'isalpha', 'isalnum', 'isspace', 'isupper', 'islower', 'istitle', 'isnumeric', 'isidentifier', 'isascii', 'isprintable', 'isdecimal')}()"
            ),
        )()

    def test(self, depth):
        d = depth
        x = self.atom(self.any(d))
        name = self.of(
            "defined",
            "undefined",
            "none",
            "boolean",
            "true",
            "false",
            "integer",
            "float",
            "number",
            "string",
            "mapping",
            "sequence",
            "iterable",
            "callable",
            "lower",
            "upper",
            "escaped",
        )
        return self.of(
            lambda: f"{x} is {self.of('', 'not ')}{name}",
            lambda: f"{x} is {name}",
            lambda: (
                f"{self.atom(self.int(d))} is {self.of('odd', 'even', 'divisibleby 3', 'divisibleby(2)', 'not even')}"
            ),
            lambda: (
                f"{self.atom(self.num(d))} is {self.of('gt', 'lt', 'ge', 'le', 'eq', 'ne', 'equalto', 'greaterthan', 'lessthan')}({self.num(d)})"
            ),
            lambda: (
                f"{x} is {self.of('eq', 'ne', '==', 'sameas')} {self.of('none', 'true', '1')}".replace(
                    "is == ", "is eq "
                )
            ),
            lambda: f"{x} is in({self.of(self.list, self.tuple, self.dict)(d)})",
            lambda: f"{self.of(*STRS[1:6])} is {self.of('filter', 'test')}",
        )()

    def str(self, depth):
        if depth <= 0 or self.r.random() < 0.25:
            return self.of(*STRS)
        d = depth - 1
        a = lambda: self.wrong(d, self.str)
        s = lambda: self.atom(a())
        i = lambda: self.of("0", "1", "2", "-1", "-2", "5", "99", "", "none")
        return self.of(
            lambda: f"{s()} + {s()}",
            lambda: f"{self.atom(self.any(d))} ~ {self.atom(self.any(d))}",
            lambda: f"{s()} ~ {self.atom(self.any(d))} ~ {s()}",
            lambda: f"{s()} * {self.of('2', '0', '-1', '3', 'true')}",
            lambda: f"{s()}[{i()}:{i()}]",
            lambda: f"{s()}[{i()}:{i()}:{self.of('2', '-1', '-2', '1', '0')}]",
            lambda: f"{s()}[{self.of('0', '1', '-1', '99')}]",
            lambda: (
                f"({self.any(d)})|{self.of('string', 'upper', 'lower', 'title', 'capitalize', 'trim', 'e', 'escape', 'safe', 'forceescape', 'striptags', 'urlencode', 'pprint', 'tojson')}"
            ),
            lambda: (
                f"({a()})|{self.of('upper', 'lower', 'title', 'capitalize', 'trim', 'e', 'reverse', 'striptags', 'urlencode', 'first', 'last', 'string', 'tojson', 'safe|upper', 'wordwrap(5)')}"
            ),
            lambda: (
                f"({a()})|replace({self.str(0)}, {self.str(0)}{self.of('', ', 1', ', count=2')})"
            ),
            lambda: (
                f"({self.any(d)})|replace({self.of(chr(39) + chr(39) + chr(39) + chr(39), '1', chr(39) + 'a' + chr(39))}, {self.str(0)})"
                if False
                else f"({self.any(d)})|replace('a', {self.str(0)})"
            ),
            lambda: (
                f"({a()})|{self.of('center(11)', 'center', 'indent', 'indent(2, true)', 'indent(3, blank=true)', 'indent(width=1, first=true)', 'truncate(5)', 'truncate(6, true)', 'truncate(8, end=chr)', 'truncate(5, false, chr, 0)', 'wordwrap(7, false)', 'trim(chr)', 'default(chr)', 'd(chr, true)')}".replace(
                    "chr", "'~'"
                )
            ),
            lambda: f"({self.list(d)})|join{self.of('', '(chr)', '(d=chr)', '(1)')}".replace(
                "chr", "', '"
            ),
            lambda: (
                f"({self.of(*ROWS)})|join(', ', attribute={self.of(chr(39) + 'name' + chr(39), chr(39) + 'n' + chr(39), chr(39) + 'role' + chr(39))})"
            ),
            lambda: (
                f"({self.any(d)})|tojson{self.of('', '(indent=2)', '(sort_keys=true)', '(ensure_ascii=true)', '(true)', '(indent=4, sort_keys=true)', '(separators=(chr, chr))')}".replace(
                    "chr", "','"
                )
            ),
            lambda: (
                f"({self.any(d)})|{self.of('default', 'd')}({self.any(0)}{self.of('', ', true', ', boolean=true')})"
            ),
            lambda: (
                f"{s()}.{self.of('upper', 'lower', 'title', 'capitalize', 'swapcase', 'casefold', 'strip', 'lstrip', 'rstrip', 'expandtabs')}()"
            ),
            lambda: (
                f"{s()}.{self.of('strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix')}({self.str(0)})"
            ),
            lambda: f"{s()}.replace({self.str(0)}, {self.str(0)}{self.of('', ', 1', ', -1')})",
            lambda: (
                f"{s()}.{self.of('ljust', 'rjust', 'center')}({self.of('3', '8', '12')}{self.of('', ', chr')})".replace(
                    "chr", "'*'"
                )
            ),
            lambda: f"{s()}.zfill({self.of('3', '8')})",
            lambda: f"{self.str(0)}.join({self.of('ss', self.list(d), '(chr, chr)')})".replace(
                "chr", "'x'"
            ),
            lambda: (
                f"'{self.of('%s', '%r', '[%5s]', '%-6s|', '%.2s', '%s %%')}' % ({self.any(d)},)"
            ),
            lambda: (
                f"'{self.of('%d', '%05d', '%+d', '%x', '%o', '%i', '%X', '%#x', '% d')}' % ({self.wrong(d, self.num)},)"
            ),
            lambda: (
                f"'{self.of('%f', '%.2f', '%e', '%g', '%8.3f', '%+.1e', '%G', '%.0f')}' % ({self.wrong(d, self.num)},)"
            ),
            lambda: f"'%s and %s' % ({self.any(d)}, {self.any(0)})",
            lambda: f"'%(a)s %(b)r' % {{'a': {self.any(d)}, 'b': {self.any(0)}}}",
            lambda: f"{s()} % {self.atom(self.any(d))}",
            lambda: f"'%s-%s'|format({self.any(d)}, {self.any(0)})",
            lambda: f"'{{}} {{}}'.format({self.any(d)}, {self.any(0)})",
            lambda: f"'{{:{self.of(*SPECS)}}}'.format({self.of(self.num, self.num, self.str)(d)})",
            lambda: (
                f"'{{0{self.of('', '!r', '!s', '[0]', '.real', '[a]')}}}|{{x}}'.format({self.any(d)}, x={self.any(0)})"
            ),
            lambda: f"({s()} if {self.bool(d)} else {s()})",
            lambda: f"({s()} if {self.bool(d)})",
            lambda: (
                f"({self.of('0', '1', '999', '1000', '123456', '5000000', '1e9', '2500.5')})|filesizeformat{self.of('', '(true)')}"
            ),
            lambda: (
                f"{self.of('{chr: 1, chr2: none, chr3: html}', self.dict(0))}|xmlattr".replace(
                    "chr2", "'b'"
                )
                .replace("chr3", "'c'")
                .replace("chr", "'a'")
            ),
            lambda: f"{s()}|list|join('-')",
            lambda: f"({a()})|map('upper')|join",
            lambda: f"({self.list(d)})|{self.of('first', 'last', 'min', 'max')}",
        )()

    def list(self, depth):
        if depth <= 0 or self.r.random() < 0.25:
            return self.of(*LISTS)
        d = depth - 1
        l = lambda: self.atom(self.wrong(d, self.list))
        i = lambda: self.of("0", "1", "2", "-1", "5", "", "-3")
        return self.of(
            lambda: f"[{self.any(d)}, {self.any(d)}]",
            lambda: f"{l()} + {l()}",
            lambda: f"{l()} * {self.of('2', '0', '-1')}",
            lambda: f"{l()}[{i()}:{i()}]",
            lambda: f"{l()}[::{self.of('-1', '2', '-2', '1')}]",
            lambda: (
                f"{l()}|{self.of('list', 'sort', 'sort(reverse=true)', 'sort(case_sensitive=true)', 'unique|list', 'reverse|list', 'unique(true)|list')}"
            ),
            lambda: (
                f"{self.of('xs', 'ss', '[2, 10, 1]', '[chrB, chra, chrC]', 's', '(3, 1)', 'd', 'range(4)')}|{self.of('sort', 'sort(true)', 'sort(reverse=true, case_sensitive=true)', 'list', 'reverse|list', 'unique|list')}".replace(
                    "chrB", "'B'"
                )
                .replace("chra", "'a'")
                .replace("chrC", "'C'")
            ),
            lambda: (
                f"rows|sort(attribute='{self.of('name', 'n', 'g', 'g,n', 'zzz')}'{self.of('', ', reverse=true', ', case_sensitive=true')})|map(attribute='name')|list"
            ),
            lambda: (
                f"{l()}|map('{self.of('upper', 'string', 'abs', 'int', 'length', 'tojson', 'trim', 'float', 'title', 'list', 'first', 'default')}')|list"
            ),
            lambda: (
                f"{l()}|map('{self.of('default', 'replace', 'round', 'batch')}', {self.any(0)}, {self.any(0)})|list"
            ),
            lambda: (
                f"{self.of(*ROWS)}|map(attribute='{self.of('name', 'n', 'role', 'zzz', 'content')}'{self.of('', ', default=0', ', default=chr')})|list".replace(
                    "chr", "'?'"
                )
            ),
            lambda: (
                f"{l()}|{self.of('select', 'reject')}{self.of('', '(chrstring)', '(chrnumber)', '(chrdefined)', '(chrodd)', '(chrnone)', '(chrgt, 1)', '(chreq, 2)', '(chrin, [1, 2])')}|list".replace(
                    "(chr", "('"
                )
                .replace("string)", "string')")
                .replace("number)", "number')")
                .replace("defined)", "defined')")
                .replace("odd)", "odd')")
                .replace("none)", "none')")
                .replace("gt,", "gt',")
                .replace("eq,", "eq',")
                .replace("in,", "in',")
            ),
            lambda: (
                f"{self.of(*ROWS)}|{self.of('selectattr', 'rejectattr')}('{self.of('n', 'name', 'role', 'tool_calls')}'{self.of('', ', Qdefined', ', Qeq, 2', ', Qequalto, Qx', ', Qgt, 1', ', Q==, Quser', ', Qin, [1, 2]', ', Qstring')})|list".replace(
                    "Qdefined", "'defined'"
                )
                .replace("Qequalto", "'equalto'")
                .replace("Qeq", "'eq'")
                .replace("Qx", "'x'")
                .replace("Qgt", "'gt'")
                .replace("Q==", "'=='")
                .replace("Quser", "'user'")
                .replace("Qin", "'in'")
                .replace("Qstring", "'string'")
            ),
            lambda: (
                f"{l()}|{self.of('batch(2)', 'batch(2, 0)', 'slice(2)', 'slice(3, none)', 'batch(3, fill_with=1)', 'slice(2, 9)')}|list"
            ),
            lambda: (
                f"rows|groupby('{self.of('g', 'n', 'name')}'{self.of('', ', case_sensitive=true', ', default=1')})|{self.of('list', 'map(attribute=Qgrouper)|list', 'map(Qlast)|map(Qlength)|list', 'map(attribute=Qlist)|list')}".replace(
                    "Qgrouper", "'grouper'"
                )
                .replace("Qlast", "'last'")
                .replace("Qlength", "'length'")
                .replace("Qlist", "'list'")
            ),
            lambda: (
                f"{self.atom(self.dict(d))}|{self.of('dictsort', 'dictsort(true)', 'dictsort(by=Q)', 'dictsort(false, Q, true)', 'items|list', 'list', 'dictsort(reverse=true)')}".replace(
                    "Q", "'value'"
                )
            ),
            lambda: (
                f"{self.atom(self.dict(d))}.{self.of('items', 'keys', 'values')}(){self.of('', '|list')}"
            ),
            lambda: (
                f"{self.atom(self.str(d))}.{self.of('split', 'rsplit')}({self.of('', self.str(0), self.str(0) + ', 1', 'maxsplit=1', 'none, 1', 'sep=chr', 'chr, maxsplit=1')})".replace(
                    "chr", "','"
                )
            ),
            lambda: f"{self.atom(self.str(d))}.splitlines({self.of('', 'true', 'keepends=true')})",
            lambda: f"{self.atom(self.str(d))}|list",
            lambda: (
                f"range({self.of('5', '1, 4', '10, 0, -3', '0', '-2', 'n', '2, 9, 2')}){self.of('', '|list', '[1:]', '[::-1]', '[:2]|list')}"
            ),
            lambda: f"({l()} if {self.bool(d)} else {l()})",
        )()

    def tuple(self, depth):
        if depth <= 0 or self.r.random() < 0.4:
            return self.of(*TUPLES)
        d = depth - 1
        return self.of(
            lambda: f"({self.any(d)}, {self.any(d)})",
            lambda: f"({self.any(d)},)",
            lambda: f"{self.atom(self.tuple(d))} + {self.atom(self.tuple(d))}",
            lambda: f"{self.atom(self.tuple(d))}[{self.of('::-1', '1:', ':1', '-1:')}]",
            lambda: f"{self.atom(self.str(d))}.{self.of('partition', 'rpartition')}({self.str(0)})",
            lambda: f"{self.atom(self.tuple(d))} * 2",
        )()

    def dict(self, depth):
        if depth <= 0 or self.r.random() < 0.4:
            return self.of(*DICTS)
        d = depth - 1
        return self.of(
            lambda: f"{{{self.str(0)}: {self.any(d)}, {self.int(0)}: {self.any(d)}}}",
            lambda: f"{{'k': {self.any(d)}}}",
            lambda: f"dict({self.atom(self.dict(d))}{self.of('', ', extra=1')})",
            lambda: f"dict([('a', {self.any(d)}), ('b', 2)])",
            lambda: (
                f"{self.atom(self.dict(d))}.{self.of('get(Qa)', 'get(Qzz, 5)', 'copy()', 'get(Qzz)')}".replace(
                    "Qa", "'a'"
                ).replace("Qzz", "'zz'")
            ),
            lambda: f"{self.atom(self.dict(d))}{self.of('.a', '[Qa]', '.zz', '[1]')}".replace(
                "Qa", "'a'"
            ),
            lambda: (
                f"(deep{self.of('.x.y', '.x[Qy].z', '.x.y.z[1].q', '.nope', '[Qx].y.z[0]', '.x.y.z.1.q')})".replace(
                    "Qy", "'y'"
                ).replace("Qx", "'x'")
            ),
            lambda: (
                self.of(*ROWS)
                + f"|{self.of('first', 'last', 'min(attribute=Qn)', 'max(attribute=Qname)')}".replace(
                    "Qname", "'name'"
                ).replace("Qn", "'n'")
            ),
        )()

    def soup(self, depth):
        """Any filter, method or test on any value, with any arguments."""
        d = max(depth - 1, 0)
        filters = [
            "abs",
            "attr",
            "batch",
            "capitalize",
            "center",
            "count",
            "d",
            "default",
            "dictsort",
            "e",
            "escape",
            "filesizeformat",
            "first",
            "float",
            "forceescape",
            "format",
            "groupby",
            "indent",
            "int",
            "items",
            "join",
            "last",
            "length",
            "list",
            "lower",
            "map",
            "max",
            "min",
            "pprint",
            "reject",
            "rejectattr",
            "replace",
            "reverse",
            "round",
            "safe",
            "select",
            "selectattr",
            "slice",
            "sort",
            "string",
            "striptags",
            "sum",
            "title",
            "tojson",
            "trim",
            "truncate",
            "unique",
            "upper",
            "urlencode",
            "wordcount",
            "wordwrap",
            "xmlattr",
        ]
        tests = [
            "odd",
            "even",
            "divisibleby",
            "defined",
            "undefined",
            "filter",
            "test",
            "none",
            "boolean",
            "false",
            "true",
            "integer",
            "float",
            "lower",
            "upper",
            "string",
            "mapping",
            "number",
            "sequence",
            "iterable",
            "callable",
            "escaped",
            "in",
            "eq",
            "equalto",
            "ne",
            "gt",
            "greaterthan",
            "ge",
            "lt",
            "lessthan",
            "le",
        ]
        named = [
            "attribute",
            "case_sensitive",
            "reverse",
            "default",
            "by",
            "d",
            "start",
            "width",
            "first",
            "blank",
            "length",
            "killwords",
            "end",
            "leeway",
            "precision",
            "method",
            "base",
            "binary",
            "fill_with",
            "linecount",
            "slices",
            "old",
            "new",
            "count",
            "sep",
            "maxsplit",
            "keepends",
            "indent",
            "sort_keys",
            "boolean",
            "chars",
            "zzz",
        ]
        methods = [
            name
            for kind in (str, list, tuple, dict, int, float, range)
            for name in dir(kind)
            if name[0] != "_"
        ]
        words = [
            "'upper'",
            "'name'",
            "'n'",
            "'a'",
            "'x.y'",
            "'0'",
            "'string'",
            "'ceil'",
            "'value'",
            "'key'",
            "','",
            "' '",
        ]
        value = lambda: self.of(
            lambda: self.any(d), lambda: self.of(*words), lambda: self.of(*INTS[:8]), lambda: "true"
        )()
        count = self.of(0, 0, 0, 1, 1, 2)
        arguments = ", ".join(
            [value() for _ in range(count)]
            + ([f"{self.of(*named)}={value()}"] if self.r.random() < 0.2 else [])
        )
        target = self.atom(self.any(d))
        return self.of(
            lambda: f"{target}|{self.of(*filters)}" + (f"({arguments})" if arguments else ""),
            lambda: (
                f"{target}|{self.of(*filters)}"
                + (f"({arguments})" if arguments else "")
                + self.of("|list", "|string", "|length", "|first")
            ),
            lambda: f"{target}.{self.of(*methods)}({arguments})",
            lambda: (
                f"({target} is {self.of('', 'not ')}{self.of(*tests)}"
                + (f"({arguments})" if arguments else "")
                + ")"
            ),
            lambda: (
                f"{self.of(*LISTS, *ROWS, *DICTS, 's')}|map('{self.of(*filters)}'"
                + (f", {arguments}" if arguments else "")
                + ")|list"
            ),
            lambda: (
                f"{self.of(*LISTS, *ROWS)}|{self.of('select', 'reject')}('{self.of(*tests)}'"
                + (f", {arguments}" if arguments else "")
                + ")|list"
            ),
            lambda: (
                f"{target} {self.of('+', '-', '*', '/', '//', '%', '**', '~', '==', '<', '>=', 'in', 'and', 'or')} {self.atom(value())}"
            ),
            lambda: f"{target}[{value()}]",
            lambda: (
                f"{target}[{self.of('', '1', '-1', value())}:{self.of('', '2', '-1', value())}{self.of('', ':', ':-1', ':2')}]"
            ),
            lambda: (
                f"{target}.{self.of('a', 'name', 'x', 'real', 'imag', 'grouper', 'start', 'y.z', '0', '1', 'keys')}"
            ),
        )()

    # ---- templates of more than one expression ----

    def body(self, depth):
        return self.of(
            lambda: "{{ " + self.any(1) + " }}",
            lambda: "x",
            lambda: " y\n",
            lambda: "{{ i }}",
            lambda: "{{ loop.index }}/{{ loop.length }}" if self.in_loop else "z",
            lambda: (
                "{{ loop."
                + self.of(
                    "index",
                    "index0",
                    "first",
                    "last",
                    "revindex",
                    "revindex0",
                    "length",
                    "previtem",
                    "nextitem",
                    "depth",
                    "cycle('a', 'b')",
                    "changed(i)",
                    "depth0",
                )
                + " }}"
                if self.in_loop
                else "w"
            ),
            lambda: self.statement(depth - 1) if depth > 0 else "q",
        )()

    def tag(self, text):
        return (
            "{%"
            + self.of("", "", "", "-", "+")
            + " "
            + text
            + " "
            + self.of("", "", "", "-", "+")
            + "%}"
        )

    def space(self):
        return self.of("", "", "\n", "  ", "\n  ", " \n\n")

    def statement(self, depth):
        g, t, sp = self, self.tag, self.space

        def loop():
            before, g.in_loop = g.in_loop, True
            over = g.of(
                lambda: g.list(1),
                lambda: g.dict(1),
                lambda: g.str(1),
                lambda: "range(4)",
                lambda: g.undefined(0),
            )()
            text = (
                sp()
                + t(
                    f"for i in {over}"
                    + g.of(
                        "", "", " if i", " if i is string", " if not loop", " if i != 2"
                    ).replace(" if not loop", "")
                )
                + g.body(depth)
                + g.of("", "", t("if i == 2") + t(g.of("continue", "break")) + t("endif"))
                + g.body(depth)
            )
            g.in_loop = before
            return text + g.of("", "", t("else") + g.body(depth)) + t("endfor") + sp()

        return g.of(
            loop,
            loop,
            lambda: (
                sp()
                + t(
                    "for k, v in "
                    + g.of(
                        "d.items()",
                        "d|dictsort",
                        "[(1, 2), (3, 4)]",
                        "rows|groupby('g')",
                        "{'a': 1}|items",
                        "[1]",
                        "zip",
                    )
                )
                + "{{ k }}={{ v }};"
                + t("endfor")
                + sp()
            ),
            lambda: (
                t("if " + g.any(2))
                + g.body(depth)
                + g.of("", t("elif " + g.bool(1)) + g.body(depth))
                + g.of("", t("else") + g.body(depth))
                + t("endif")
            ),
            lambda: t("set a = " + g.any(2)) + sp() + "{{ a }}",
            lambda: (
                t("set a, b = " + g.of("1, 2", "(3, 'x')", "[1, 2]", "'ab'", "1", "d", g.any(1)))
                + "{{ a }}{{ b }}"
            ),
            lambda: (
                t("set a" + g.of("", " | upper", " | trim | length"))
                + g.body(depth)
                + t("endset")
                + "[{{ a }}]{{ a|length }}"
            ),
            lambda: (
                t("set ns = namespace(x=" + g.any(1) + ", y=0)")
                + t("for i in " + g.list(1))
                + t("set ns.x = " + g.of("i", "ns.x", "ns.y + 1", "loop.index"))
                + t("set ns.y = ns.y + 1")
                + t("endfor")
                + "{{ ns.x }}{{ ns.y }}{{ ns.zz }}"
            ),
            lambda: (
                t("set v = " + g.any(1))
                + t("for i in [1, 2]")
                + "{{ v }}"
                + t("set v = i")
                + "{{ v }}"
                + t("endfor")
                + "{{ v }}"
            ),
            lambda: (
                t("macro m(a, b=" + g.any(1) + g.of("", ", c=b", ", c=none") + ")")
                + "{{ a }}|{{ b }}|{{ c }}"
                + g.of("", "{{ varargs }}", "{{ kwargs }}", "{{ caller is defined }}", "{{ v }}")
                + t("endmacro")
                + t("set v = 5")
                + "{{ m("
                + g.of(
                    "1",
                    "",
                    "1, 2",
                    "b=3",
                    "1, b=" + g.any(0),
                    "1, 2, 3",
                    "1, 2, 3, 4",
                    "*[1, 2]",
                    "**{'a': 1}",
                    "1, zz=2",
                )
                + ") }}"
            ),
            lambda: (
                t("macro m(a)")
                + "<{{ caller(a) if a else caller() }}>"
                + t("endmacro")
                + t("call" + g.of("(x)", "", "(x=3)") + " m(" + g.of("1", "0", "'q'") + ")")
                + "{{ x }}"
                + g.body(depth)
                + t("endcall")
            ),
            lambda: (
                t(
                    "filter "
                    + g.of(
                        "upper",
                        "replace('x', 'y')",
                        "trim",
                        "length",
                        "indent(2)",
                        "title",
                        "e",
                        "trim|upper",
                        "default('z')",
                    )
                )
                + g.body(depth)
                + t("endfilter")
            ),
            lambda: (
                t("with a=" + g.any(1) + g.of("", ", b=a", ", b=2"))
                + "{{ a }}{{ b }}"
                + t("endwith")
                + "{{ a }}"
            ),
            lambda: (
                t("set ns = namespace(x=0)")
                + t("for m in messages")
                + t("generation")
                + "{{ m.content }}"
                + t("set ns.x = ns.x + 1")
                + t("set q = 1")
                + t("endgeneration")
                + "{{ q }}"
                + t("endfor")
                + "{{ ns.x }}"
            ),
            lambda: (
                t("set ns = namespace(x=0)")
                + t("macro m()")
                + t("set ns.x = 4")
                + t("endmacro")
                + "{{ m() }}{{ ns.x }}"
            ),
            lambda: (
                t("for i in [[1, [2]], [3]] recursive")
                + g.of("{{ loop.depth }}", "{{ i }}", "")
                + "{{ loop(i) if i is sequence and i is not string else i }}"
                + t("endfor")
            ),
            lambda: (
                t("set c = cycler('a', 'b', 'c')")
                + "{{ c.next() }}{{ c.next() }}{{ c.current }}"
                + g.of("", "{{ c.reset() }}{{ c.current }}")
            ),
            lambda: (
                t("set j = joiner(" + g.of("", "', '", "'; '") + ")")
                + t("for i in " + g.list(0))
                + "{{ j() }}{{ i }}"
                + t("endfor")
            ),
            lambda: (
                "a" + sp() + "{#" + g.of("", "-") + " note " + g.of("", "-") + "#}" + sp() + "b"
            ),
            lambda: "a " + t("raw").replace("+", "") + "{{ not }} {% this %}" + t("endraw") + " b",
            lambda: "a  {{" + g.of("-", "") + " " + g.any(1) + " " + g.of("-", "") + "}}  \n b\n",
            lambda: t("autoescape false") + "{{ html }}" + t("endautoescape"),
            lambda: t("block content") + "{{ n }}" + g.body(depth) + t("endblock"),
            lambda: (
                t("for m in messages")
                + "<|{{ m.role }}|>"
                + t("if m.tool_calls")
                + "{{ m.tool_calls"
                + g.of("", "|tojson", "[0].function.arguments|tojson", "[0]['function']", "|string")
                + " }}"
                + t("else")
                + "{{ m.content"
                + g.of(
                    "",
                    "|trim",
                    "|upper",
                    " ~ '!'",
                    "|string",
                    "|replace('i', 'j')",
                    "|default('')",
                    "[0]",
                    "|length",
                    "|first",
                )
                + " }}"
                + t("endif")
                + t("endfor")
            ),
            lambda: t("print " + g.any(1)),
            lambda: "{{ " + g.any(1) + ", " + g.any(1) + " }}",
            lambda: (
                t(
                    "if "
                    + g.of(
                        "missing",
                        "d.x.y",
                        "missing.x",
                        "none",
                        "''",
                        "[]",
                        "0.0",
                        "'0'",
                        "{}",
                        "()",
                        "range(0)",
                        "d.items()",
                        "xs|map('abs')",
                        "s is string",
                    )
                )
                + "yes"
                + t("else")
                + "no"
                + t("endif")
            ),
        )()

    def template(self):
        self.in_loop = False
        if self.r.random() < 0.68:
            return "{{ " + self.any(self.r.choice([1, 2, 2, 3])) + " }}"
        return self.statement(self.r.choice([0, 1, 1, 2]))


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_whole"), [], [], body).set_lineno(lineno)

    def _whole(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return made


class Late(Exception):
    pass


def late(*_):
    raise Late


def answer(jinja, template):
    """The rendered text; None for an error; Late if the text is too slow, too long or has addresses in it."""
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        text = jinja.from_string(template).render(**CONTEXT)
        return (
            Late
            if len(text) > 2000
            or re.search(r" at 0x|<built-in|<function|<class .function|<\w+ object|object at", text)
            else text
        )
    except Late:
        return Late
    except BaseException:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    import warnings

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    seed, count = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (20, 3000)
    out = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else HERE / "expressions.json"
    generator, jinja, rows, seen = Generator(random.Random(seed)), environment(), [], set()
    while len(rows) < count:
        template = generator.template()
        if template in seen or len(template) > 400:
            continue
        seen.add(template)
        text = answer(jinja, template)
        # Of the errors only one in six is kept, because they are easy to match.
        if text is Late or text is None and len(rows) % 6:
            continue
        try:
            json.dumps(text).encode()
            if text is not None:
                text.encode()
        except UnicodeError:
            continue
        rows.append([template, text])
    body = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    context = json.dumps(CONTEXT, ensure_ascii=False)
    out.write_text(f'{{"context": {context},\n"rows": [\n{body}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
