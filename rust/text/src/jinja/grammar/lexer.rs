// SPDX-License-Identifier: Apache-2.0
//! Jinja2's lexer with trim_blocks and lstrip_blocks on, as transformers sets them.

use crate::jinja::error::{Error, Result};
use crate::jinja::values::text::is_space;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Data(String),
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name(String),
    Str(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub struct Placed {
    pub token: Token,
    pub line: usize,
}

const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";",
];

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    line: usize,
    tokens: Vec<Placed>,
    /// The last tag ended with a line break, or nothing was read yet.
    line_starting: bool,
}

fn is_name_start(letter: char) -> bool {
    letter == '_' || letter.is_alphabetic()
}

fn is_name_part(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn trimmed_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `{%`, `{{` or `{#`, and the sign that may follow.
struct Opening {
    at: usize,
    kind: u8,
    sign: Option<u8>,
}

fn find_opening(source: &str, from: usize) -> Option<Opening> {
    let bytes = source.as_bytes();
    let mut at = from;
    while let Some(found) = source[at..].find('{') {
        at += found;
        if let Some(kind @ (b'%' | b'{' | b'#')) = bytes.get(at + 1).copied() {
            let sign = bytes.get(at + 2).copied().filter(|sign| matches!(sign, b'-' | b'+'));
            return Some(Opening { at, kind, sign });
        }
        at += 1;
    }
    None
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn push(&mut self, token: Token, line: usize) {
        self.tokens.push(Placed { token, line });
    }

    fn skip(&mut self, bytes: usize) {
        let skipped = &self.source[self.at..self.at + bytes];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.line_starting = skipped.ends_with('\n');
        self.at += bytes;
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        let size = rest.len() - rest.trim_start_matches(is_space).len();
        if size > 0 {
            self.skip(size);
        }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::at(message, self.line))
    }

    /// The text before a tag, with the white space taken that the tag's sign or lstrip_blocks takes.
    fn data(&mut self, end: usize, sign: Option<u8>, strips_line: bool) {
        let text = &self.source[self.at..end];
        let kept = if sign == Some(b'-') {
            trimmed_end(text)
        } else if sign != Some(b'+') && strips_line {
            let line_begin = text.rfind('\n').map_or(0, |at| at + 1);
            let blank = text[line_begin..].chars().all(is_space);
            if (line_begin > 0 || self.line_starting) && blank {
                &text[..line_begin]
            } else {
                text
            }
        } else {
            text
        };
        if !kept.is_empty() {
            let line = self.line;
            self.push(Token::Data(kept.into()), line);
        }
        self.skip(end - self.at);
    }

    /// After the end of a block tag or comment: `-` takes all white space, trim_blocks one line break.
    fn after_block(&mut self, sign: Option<u8>) {
        match sign {
            Some(b'-') => self.skip_spaces(),
            Some(b'+') => {}
            _ if self.rest().starts_with('\n') => self.skip(1),
            _ => {}
        }
    }

    fn comment(&mut self) -> Result<()> {
        let Some(size) = self.rest().find("#}") else {
            return self.fail("Missing end of comment tag");
        };
        let sign = self.rest().as_bytes()[..size].last().copied().filter(|sign| matches!(sign, b'-' | b'+'));
        self.skip(size + 2);
        self.after_block(sign);
        Ok(())
    }

    /// The offset after `raw` and its tag's end, if the tag at `self.at` (behind `{%` and sign) is one.
    fn raw_tag(&self, word: &str) -> Option<(usize, Option<u8>)> {
        let inner = self.rest().trim_start_matches(is_space).strip_prefix(word)?.trim_start_matches(is_space);
        let (sign, after) = match inner.as_bytes().first() {
            Some(sign @ (b'-' | b'+')) if word == "endraw" || *sign == b'-' => (Some(*sign), &inner[1..]),
            _ => (None, inner),
        };
        let after = after.strip_prefix("%}")?;
        Some((self.source.len() - after.len(), sign))
    }

    fn raw(&mut self, end_of_tag: usize, sign: Option<u8>) -> Result<()> {
        self.skip(end_of_tag - self.at);
        if sign == Some(b'-') {
            self.skip_spaces();
        }
        let mut from = self.at;
        loop {
            let Some(opening) = find_opening(self.source, from) else {
                return self.fail("Missing end of raw directive");
            };
            from = opening.at + 2;
            if opening.kind != b'%' {
                from = opening.at + 1;
                continue;
            }
            let begin = (self.at, self.line, self.line_starting);
            self.at = from + usize::from(opening.sign.is_some());
            let end = self.raw_tag("endraw");
            (self.at, self.line, self.line_starting) = begin;
            if let Some((end, end_sign)) = end {
                self.data(opening.at, opening.sign, true);
                self.skip(end - self.at);
                self.after_block(end_sign);
                return Ok(());
            }
        }
    }

    fn string(&mut self, quote: char) -> Result<Token> {
        let rest = self.rest();
        let mut letters = rest.char_indices().skip(1);
        let mut value = String::new();
        while let Some((at, letter)) = letters.next() {
            if letter == quote {
                self.skip(at + 1);
                return Ok(Token::Str(value));
            }
            if letter != '\\' {
                value.push(letter);
                continue;
            }
            let Some((_, escaped)) = letters.next() else { break };
            let mut digits = |count: usize, radix: u32| -> Result<char> {
                let text: String = letters.by_ref().take(count).map(|(_, digit)| digit).collect();
                let code = u32::from_str_radix(&text, radix).ok().filter(|_| text.len() == count);
                code.and_then(char::from_u32)
                    .ok_or_else(|| Error::at("a string has an escape that is no letter", self.line))
            };
            match escaped {
                '\n' => {}
                '\\' | '\'' | '"' => value.push(escaped),
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                'a' => value.push('\u{7}'),
                'b' => value.push('\u{8}'),
                'f' => value.push('\u{c}'),
                'v' => value.push('\u{b}'),
                'x' => value.push(digits(2, 16)?),
                'u' => value.push(digits(4, 16)?),
                'U' => value.push(digits(8, 16)?),
                'N' => return self.fail("\\N{...} escapes are not supported"),
                '0'..='7' => {
                    let mut code = escaped.to_digit(8).unwrap_or(0);
                    let mut ahead = letters.clone();
                    for _ in 0..2 {
                        let Some(digit) = ahead.next().and_then(|(_, digit)| digit.to_digit(8)) else {
                            break;
                        };
                        code = code * 8 + digit;
                        letters.next();
                    }
                    value.extend(char::from_u32(code));
                }
                other => {
                    value.push('\\');
                    value.push(other);
                }
            }
        }
        self.fail("a string is not closed")
    }

    fn number(&mut self) -> Result<Token> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        // Digits with single underscores between them.
        let digits = |from: usize, radix: u32| -> usize {
            let mut at = from;
            loop {
                match bytes.get(at) {
                    Some(byte) if (*byte as char).is_digit(radix) => at += 1,
                    Some(b'_')
                        if at > from
                            && bytes.get(at + 1).is_some_and(|next| (*next as char).is_digit(radix)) =>
                    {
                        at += 1
                    }
                    _ => return at,
                }
            }
        };
        let radix = match bytes.get(..2) {
            Some(b"0x" | b"0X") => 16,
            Some(b"0o" | b"0O") => 8,
            Some(b"0b" | b"0B") => 2,
            _ => 10,
        };
        if radix != 10 {
            let from = 2 + usize::from(bytes.get(2) == Some(&b'_'));
            let end = digits(from, radix);
            if end > from {
                let text = rest[from..end].replace('_', "");
                let Ok(value) = i128::from_str_radix(&text, radix) else {
                    return self.fail("a number has more than 38 digits");
                };
                self.skip(end);
                return Ok(Token::Int(value));
            }
        }
        let whole = digits(0, 10);
        let after_dot = match bytes.get(whole) {
            Some(b'.') => Some(digits(whole + 1, 10)).filter(|end| *end > whole + 1),
            _ => None,
        };
        let mantissa = after_dot.unwrap_or(whole);
        let exponent = match bytes.get(mantissa) {
            Some(b'e' | b'E') => {
                let sign = usize::from(matches!(bytes.get(mantissa + 1), Some(b'+' | b'-')));
                let from = mantissa + 1 + sign;
                Some(digits(from, 10)).filter(|end| *end > from)
            }
            _ => None,
        };
        let end = exponent.unwrap_or(mantissa);
        let text = rest[..end].replace('_', "");
        // A number after a dot is an index, as in `x.0.1`.
        let after_point = self.source[..self.at].ends_with('.');
        if end > whole && !after_point {
            self.skip(end);
            return text.parse().map(Token::Float).or_else(|_| self.fail("a number cannot be read"));
        }
        let text = rest[..whole].replace('_', "");
        if text.len() > 1 && text.starts_with('0') && text.bytes().any(|digit| digit != b'0') {
            return self.fail("a whole number begins with 0");
        }
        self.skip(whole);
        text.parse().map(Token::Int).or_else(|_| self.fail("a number has more than 38 digits"))
    }

    /// The tokens of one tag, up to its end.
    fn tag(&mut self, is_block: bool) -> Result<()> {
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            self.skip_spaces();
            let rest = self.rest();
            let line = self.line;
            if open.is_empty() {
                let close = if is_block { "%}" } else { "}}" };
                let sign = rest
                    .as_bytes()
                    .first()
                    .copied()
                    .filter(|sign| *sign == b'-' || is_block && *sign == b'+');
                let unsigned = &rest[usize::from(sign.is_some())..];
                if unsigned.starts_with(close) {
                    self.push(if is_block { Token::BlockEnd } else { Token::VariableEnd }, line);
                    self.skip(rest.len() - unsigned.len() + 2);
                    if is_block {
                        self.after_block(sign);
                    } else if sign.is_some() {
                        self.skip_spaces();
                    }
                    return Ok(());
                }
            }
            let Some(letter) = rest.chars().next() else {
                let what = if is_block { "block" } else { "print statement" };
                return self.fail(format!("unexpected end of template, the end of a {what} is missing"));
            };
            let token = if letter.is_ascii_digit() {
                self.number()?
            } else if is_name_start(letter) {
                let size = rest.find(|letter| !is_name_part(letter)).unwrap_or(rest.len());
                self.skip(size);
                Token::Name(rest[..size].into())
            } else if letter == '"' || letter == '\'' {
                self.string(letter)?
            } else {
                self.operator(&mut open)?
            };
            self.push(token, line);
        }
    }

    fn operator(&mut self, open: &mut Vec<&'static str>) -> Result<Token> {
        let rest = self.rest();
        let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)).copied() else {
            return self.fail(format!("unexpected char '{}'", rest.chars().next().unwrap_or(' ')));
        };
        match operator {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" => match open.pop() {
                None => return self.fail(format!("unexpected '{operator}'")),
                Some(expected) if expected != operator => {
                    return self.fail(format!("unexpected '{operator}', expected '{expected}'"))
                }
                _ => {}
            },
            _ => {}
        }
        self.skip(operator.len());
        Ok(Token::Operator(operator))
    }

    fn run(&mut self) -> Result<()> {
        while let Some(opening) = find_opening(self.source, self.at) {
            let behind = opening.at + 2 + usize::from(opening.sign.is_some());
            self.data(opening.at, opening.sign, opening.kind != b'{');
            match opening.kind {
                b'#' => {
                    // The sign is looked for again at the end: `{#-#}` is a comment.
                    self.skip(2);
                    self.skip(usize::from(opening.sign.is_some()));
                    self.comment()?;
                }
                b'%' => {
                    self.skip(behind - self.at);
                    if let Some((end, sign)) = self.raw_tag("raw") {
                        self.raw(end, sign)?;
                        continue;
                    }
                    let line = self.line;
                    self.push(Token::BlockBegin, line);
                    self.tag(true)?;
                }
                _ => {
                    self.skip(behind - self.at);
                    let line = self.line;
                    self.push(Token::VariableBegin, line);
                    self.tag(false)?;
                }
            }
        }
        if !self.rest().is_empty() {
            let (rest, line) = (self.rest().to_string(), self.line);
            self.push(Token::Data(rest), line);
        }
        Ok(())
    }
}

/// `source` as Jinja2 sees it: one kind of line break, and none at the end.
pub fn normalise(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

pub fn tokens(source: &str) -> Result<Vec<Placed>> {
    let mut lexer = Lexer { source, at: 0, line: 1, tokens: Vec::new(), line_starting: true };
    lexer.run()?;
    let line = lexer.line;
    lexer.push(Token::End, line);
    Ok(lexer.tokens)
}
