// SPDX-License-Identifier: Apache-2.0
//! `text % values`, and str.format.

use crate::jinja::error::{fail, reserve, spend, spend_text, Result};
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::members::{get_attribute, get_item};
use crate::jinja::values::number::{truncate, Number};
use crate::jinja::values::spec::{float_digits, format_value, int_digits};
use crate::jinja::values::strings::pad;
use crate::jinja::values::text::{escape, repr, str_of};
use crate::jinja::values::value::{Text, Value};

#[derive(Default)]
struct Directive {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

struct Source<'v> {
    values: &'v Value,
    next: usize,
    used: bool,
}

impl Source<'_> {
    fn take(&mut self) -> Result<Value> {
        let value = match self.values {
            Value::Tuple(items) => items.values.get(self.next).cloned(),
            other => (self.next == 0).then(|| other.clone()),
        };
        self.next += 1;
        self.used = true;
        value.map_or_else(|| fail("not enough arguments for format string"), Ok)
    }

    fn by_name(&mut self, name: &str) -> Result<Value> {
        self.used = true;
        match self.values {
            Value::Dict(dict) => match dict.get_text(name) {
                Some(value) => Ok(value.clone()),
                None => fail(format!("%: the key '{name}' is missing")),
            },
            _ => fail("format requires a mapping"),
        }
    }

    fn all_used(&self) -> bool {
        match self.values {
            Value::Tuple(items) => self.next >= items.values.len(),
            // Python lets what can be indexed by a name be left over.
            Value::Dict(_) | Value::List(_) | Value::Range(_) | Value::Undefined(_) => true,
            _ => self.used,
        }
    }
}

fn place(directive: &Directive, sign: &str, prefix: &str, digits: String) -> Result<String> {
    let head = format!("{sign}{prefix}");
    if directive.left {
        return pad(head + &digits, directive.width, ' ', '<');
    }
    if directive.zero {
        let width = directive.width.saturating_sub(head.chars().count());
        return Ok(head + &pad(digits, width, '0', '>')?);
    }
    pad(head + &digits, directive.width, ' ', '>')
}

fn sign_of(directive: &Directive, negative: bool) -> &'static str {
    match (negative, directive.plus, directive.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(directive: &Directive, kind: char, value: &Value) -> Result<String> {
    let number = match (value, Number::of(value)) {
        (Value::Float(value), _) if matches!(kind, 'd' | 'i' | 'u') => match truncate(*value) {
            Some(value) => value?,
            None => return fail("cannot convert float infinity or nan to integer"),
        },
        (_, Some(Number::Int(value))) => value,
        _ => return fail(format!("%{kind} format: a number is required, not {}", value.type_name())),
    };
    let mut digits = int_digits(number.unsigned_abs(), kind);
    if let Some(precision) = directive.precision {
        digits = pad(digits, precision, '0', '>')?;
    }
    let prefix = match kind {
        'o' if directive.alternate => "0o",
        'x' if directive.alternate => "0x",
        'X' if directive.alternate => "0X",
        _ => "",
    };
    place(directive, sign_of(directive, number < 0), prefix, digits)
}

fn floating(directive: &Directive, kind: char, value: &Value) -> Result<String> {
    value.refuse_undefined()?;
    let Some(number) = Number::of(value) else {
        return fail(format!("must be real number, not {}", value.type_name()));
    };
    let number = number.float();
    let digits = float_digits(number, kind, directive.precision.unwrap_or(6), directive.alternate)?;
    let negative = number.is_sign_negative() && !number.is_nan();
    place(directive, sign_of(directive, negative), "", digits)
}

fn directive(kind: char, directive: &Directive, value: &Value, markup: bool) -> Result<String> {
    match kind {
        's' | 'r' | 'a' => {
            let mut text = match kind {
                's' => str_of(value)?,
                _ => repr(value)?,
            };
            if kind == 'a' && !text.is_ascii() {
                return fail("%a of letters beyond ASCII is not supported");
            }
            if markup && !matches!(value, Value::Str(text) if text.markup) {
                text = escape(&text);
            }
            if let Some(precision) = directive.precision {
                text = text.chars().take(precision).collect();
            }
            pad(text, directive.width, ' ', if directive.left { '<' } else { '>' })
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => integer(directive, kind, value),
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => floating(directive, kind, value),
        'c' => {
            let text = match value {
                Value::Str(text) if text.text.chars().count() == 1 => text.text.to_string(),
                _ => {
                    match value.as_index().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32)
                    {
                        Some(letter) => letter.to_string(),
                        None => return fail("%c requires int or char"),
                    }
                }
            };
            pad(text, directive.width, ' ', if directive.left { '<' } else { '>' })
        }
        _ => fail(format!("unsupported format character '{kind}'")),
    }
}

pub fn format(pattern: &Text, values: &Value) -> Result<Value> {
    spend_text(pattern.text.len())?;
    let mut source = Source { values, next: 0, used: false };
    let mut out = String::new();
    let mut letters = pattern.text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        spend(1)?;
        let mut found = Directive::default();
        let mut named = None;
        if letters.next_if_eq(&'(').is_some() {
            let mut name = String::new();
            let mut depth = 1;
            for letter in letters.by_ref() {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                if depth == 0 {
                    break;
                }
                name.push(letter);
            }
            if depth != 0 {
                return fail("incomplete format key");
            }
            named = Some(source.by_name(&name)?);
        }
        while let Some(flag) = letters.next_if(|letter| "-+ #0".contains(*letter)) {
            match flag {
                '-' => found.left = true,
                '+' => found.plus = true,
                ' ' => found.space = true,
                '#' => found.alternate = true,
                _ => found.zero = true,
            }
        }
        let mut number = |letters: &mut std::iter::Peekable<std::str::Chars>| -> Result<Option<i128>> {
            if letters.next_if_eq(&'*').is_some() {
                return match source.take()? {
                    Value::Int(value) => Ok(Some(value)),
                    _ => fail("* needs int"),
                };
            }
            let mut value = None;
            while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                letters.next();
                value = Some(value.unwrap_or(0i128).saturating_mul(10).saturating_add(i128::from(digit)));
            }
            Ok(value)
        };
        let width = number(&mut letters)?.unwrap_or(0);
        found.left |= width < 0;
        found.width = width.unsigned_abs().min(1 << 30) as usize;
        if letters.next_if_eq(&'.').is_some() {
            found.precision = Some(number(&mut letters)?.unwrap_or(0).clamp(0, 1 << 30) as usize);
        }
        while letters.next_if(|letter| "hlL".contains(*letter)).is_some() {}
        let Some(kind) = letters.next() else { return fail("incomplete format") };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = match named {
            Some(value) => value,
            None => source.take()?,
        };
        let part = directive(kind, &found, &value, pattern.markup)?;
        reserve(part.len())?;
        spend_text(part.len())?;
        out.push_str(&part);
    }
    if !source.all_used() {
        return fail("not all arguments converted during string formatting");
    }
    Ok(Value::Str(Text { text: out.into(), markup: pattern.markup }))
}

/// The value that a replacement field names: `0.role[1]`.
fn field(name: &str, arguments: &Arguments, automatic: &mut Option<usize>) -> Result<Value> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut rest) = name.split_at(end);
    let mut value = if first.is_empty() || first.bytes().all(|byte| byte.is_ascii_digit()) {
        let index = if first.is_empty() {
            let Some(next) = automatic.as_mut() else {
                return fail("cannot switch from manual field specification to automatic field numbering");
            };
            *next += 1;
            *next - 1
        } else {
            if automatic.is_some_and(|next| next > 0) {
                return fail("cannot switch from automatic field numbering to manual field specification");
            }
            *automatic = None;
            first.parse().unwrap_or(usize::MAX)
        };
        match arguments.positional.get(index) {
            Some(value) => value.clone(),
            None => return fail("Replacement index out of range for positional args tuple"),
        }
    } else {
        match arguments.named.iter().find(|(name, _)| &**name == first) {
            Some((_, value)) => value.clone(),
            None => return fail(format!("format: the argument '{first}' is missing")),
        }
    };
    while !rest.is_empty() {
        spend(1)?;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return fail("Empty attribute in format string");
            }
            value = get_attribute(&value, &after[..end])?;
            rest = &after[end..];
        } else if let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            if index.is_empty() {
                return fail("Empty attribute in format string");
            }
            let index = match index.parse::<u64>() {
                Ok(number) if index.bytes().all(|byte| byte.is_ascii_digit()) => Value::Int(number.into()),
                _ => Value::from(index),
            };
            value = get_item(&value, &index)?;
            rest = after;
        } else {
            return fail("Missing ']' in format string");
        }
    }
    Ok(value)
}

fn replacement(text: &str, arguments: &Arguments, automatic: &mut Option<usize>) -> Result<String> {
    let mut depth = 0;
    let colon = text.char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == '[') - i32::from(*letter == ']');
        *letter == ':' && depth == 0
    });
    let (head, spec) = match colon {
        Some((at, _)) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let (name, conversion) = match head.split_once('!') {
        Some((name, conversion)) => (name, Some(conversion)),
        None => (head, None),
    };
    let value = field(name, arguments, automatic)?;
    let value = match conversion {
        None => value,
        Some("s") => Value::from(str_of(&value)?),
        Some("r") => Value::from(repr(&value)?),
        Some("a") => {
            let text = repr(&value)?;
            if !text.is_ascii() {
                return fail("!a of letters beyond ASCII is not supported");
            }
            Value::from(text)
        }
        Some(_) => return fail("Unknown conversion specifier"),
    };
    if !spec.contains(['{', '}']) {
        return format_value(&value, spec);
    }
    // A specification may hold fields itself, one level deep.
    let inner = format_fields(spec, arguments, automatic, 0)?;
    format_value(&value, &inner)
}

fn format_fields(
    pattern: &str,
    arguments: &Arguments,
    automatic: &mut Option<usize>,
    levels: usize,
) -> Result<String> {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        spend(1)?;
        out.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if rest.starts_with(brace) {
            out.push_str(brace);
            rest = &rest[1..];
            continue;
        }
        if brace == "}" {
            return fail("Single '}' encountered in format string");
        }
        let mut depth = 1;
        let end = rest.char_indices().find(|(_, letter)| {
            depth += i32::from(*letter == '{') - i32::from(*letter == '}');
            depth == 0
        });
        let Some((end, _)) = end else { return fail("expected '}' before end of string") };
        let inner = &rest[..end];
        if levels == 0 && inner.contains('{') {
            return fail("Max string recursion exceeded");
        }
        let part = replacement(inner, arguments, automatic)?;
        reserve(part.len())?;
        spend_text(part.len())?;
        out.push_str(&part);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// str.format.
pub fn format_method(pattern: &Text, arguments: &Arguments) -> Result<Value> {
    if pattern.markup {
        return fail("format of escaped text is not supported");
    }
    spend_text(pattern.text.len())?;
    Ok(format_fields(&pattern.text, arguments, &mut Some(0), 1)?.into())
}
