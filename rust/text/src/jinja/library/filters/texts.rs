// SPDX-License-Identifier: Apache-2.0
//! Filters that give text.

use std::rc::Rc;

use crate::jinja::error::{fail, reserve, spend, spend_text, Result};
use crate::jinja::interpreter::state::Renderer;
use crate::jinja::values::arguments::{index, text, Arguments};
use crate::jinja::values::operators::slice;
use crate::jinja::values::order::{compare, sort_by};
use crate::jinja::values::percent;
use crate::jinja::values::strings::{center, is_word, join_texts, replace, split_lines, strip_tags};
use crate::jinja::values::text::{capitalize, escape, is_space, repr, strip};
use crate::jinja::values::value::{Dict, Text, Value};

pub const NAMES: &[&str] = &[
    "capitalize",
    "center",
    "e",
    "escape",
    "forceescape",
    "format",
    "indent",
    "join",
    "lower",
    "pprint",
    "replace",
    "safe",
    "string",
    "striptags",
    "title",
    "trim",
    "truncate",
    "upper",
    "urlencode",
    "wordcount",
    "wordwrap",
    "xmlattr",
];

/// Markup stays what it is, all else becomes str().
fn soft_text(renderer: &Renderer, value: &Value) -> Result<Text> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        _ => Ok(Text { text: renderer.text_of(value)?.into(), markup: false }),
    }
}

fn markup_of(renderer: &Renderer, value: &Value, force: bool) -> Result<Value> {
    let soft = soft_text(renderer, value)?;
    spend_text(soft.text.len())?;
    reserve(soft.text.len() * 5)?;
    Ok(if soft.markup && !force { Value::Str(soft) } else { Value::markup(escape(&soft.text)) })
}

/// Jinja2's own title: words begin after white space, hyphens and opening brackets.
fn jinja_title(whole: &str) -> String {
    let mut out = String::with_capacity(whole.len());
    let is_break = |letter: char| is_space(letter) || "-({[<".contains(letter);
    let mut rest = whole;
    while !rest.is_empty() {
        let in_break = rest.chars().next().is_some_and(is_break);
        let size = rest.find(|letter| is_break(letter) != in_break).unwrap_or(rest.len());
        let mut letters = rest[..size].chars();
        if let Some(first) = letters.next() {
            out.extend(first.to_uppercase());
            out.push_str(&letters.as_str().to_lowercase());
        }
        rest = &rest[size..];
    }
    out
}

fn join(renderer: &mut Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [separator, attribute] = arguments.bind("join", ["d", "attribute"], 0)?;
    let separator = match separator {
        Some(separator) => renderer.text_of(&separator)?,
        None => String::new(),
    };
    let mut parts: Vec<Rc<str>> = Vec::new();
    for item in value.items()? {
        let item = match attribute.as_ref().filter(|attribute| !matches!(attribute, Value::None)) {
            Some(attribute) => renderer.attribute_path(&item, attribute, None)?,
            None => item,
        };
        parts.push(match &item {
            Value::Str(text) => text.text.clone(),
            _ => renderer.text_of(&item)?.into(),
        });
    }
    Ok(join_texts(&separator, &parts)?.into())
}

fn replace_filter(renderer: &Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [old, new, count] = arguments.bind("replace", ["old", "new", "count"], 2)?;
    let old = renderer.text_of(&old.unwrap_or(Value::None))?;
    let new = renderer.text_of(&new.unwrap_or(Value::None))?;
    let count = match count {
        None | Some(Value::None) => -1,
        Some(count) => index(&count, "replace")?,
    };
    Ok(replace(&renderer.text_of(value)?, &old, &new, count)?.into())
}

fn indent(value: &Value, arguments: Arguments) -> Result<Value> {
    let [width, first, blank] = arguments.bind("indent", ["width", "first", "blank"], 0)?;
    let holds = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let (first, blank) = (holds(first), holds(blank));
    value.refuse_undefined()?;
    let Value::Str(whole) = value else {
        return fail(format!("indent: wanted str, got {}", value.type_name()));
    };
    let indention = match width.unwrap_or(Value::Int(4)) {
        Value::Str(text) => text.text.to_string(),
        width => {
            let width = index(&width, "indent")?.max(0) as usize;
            reserve(width)?;
            " ".repeat(width)
        }
    };
    if whole.markup && indention.trim() != "" {
        return fail("indent of escaped text by letters is not supported");
    }
    let lines = split_lines(&format!("{}\n", whole.text), false)?;
    let size = (lines.len() + 1).saturating_mul(indention.len() + 1).saturating_add(whole.text.len());
    reserve(size)?;
    spend_text(size)?;
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        let indented = if number == 0 { first } else { blank || !line.is_empty() };
        if indented {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(Value::Str(Text { text: out.into(), markup: whole.markup }))
}

fn truncate(value: &Value, arguments: Arguments) -> Result<Value> {
    let [length, kill_words, end, leeway] =
        arguments.bind("truncate", ["length", "killwords", "end", "leeway"], 0)?;
    let end = end.unwrap_or_else(|| "...".into());
    let end = text(&end, "truncate")?;
    let length = index(&length.unwrap_or(Value::Int(255)), "truncate")?;
    let leeway = match leeway {
        None | Some(Value::None) => 5,
        Some(leeway) => index(&leeway, "truncate")?,
    };
    let end_size = end.chars().count() as i128;
    if length < end_size || leeway < 0 {
        return fail(format!("truncate: expected length >= {end_size} and leeway >= 0"));
    }
    let Some(size) = value.length() else {
        return fail(format!("object of type '{}' has no len()", value.type_name()));
    };
    if size as i128 <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let Value::Str(whole) = value else {
        return fail(format!("truncate: wanted str, got {}", value.type_name()));
    };
    if whole.markup {
        return fail("truncate of escaped text is not supported");
    }
    let Value::Str(kept) = slice(value, &Value::None, &Value::Int(length - end_size), &Value::None)? else {
        return fail("truncate: wanted str");
    };
    let kept = if kill_words.is_some_and(|value| value.is_true()) {
        &*kept.text
    } else {
        kept.text.rsplit_once(' ').map_or(&*kept.text, |(before, _)| before)
    };
    Ok(format!("{kept}{end}").into())
}

/// Runs of white space and of other letters, the last one first.
fn chunks_of(letters: &[char]) -> Vec<&[char]> {
    let is_blank = |letter: char| "\t\n\u{b}\u{c}\r ".contains(letter);
    let mut chunks: Vec<&[char]> =
        letters.chunk_by(|left, right| is_blank(*left) == is_blank(*right)).collect();
    chunks.reverse();
    chunks
}

/// textwrap.wrap of one line without hyphens.
fn wrap_line(line: &str, width: usize, break_long_words: bool) -> Result<Vec<String>> {
    let letters: Vec<char> = line.chars().collect();
    let mut chunks = chunks_of(&letters);
    let blank = |chunk: &&[char]| chunk.iter().all(|letter| is_space(*letter));
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        spend(1)?;
        let mut current: Vec<&[char]> = Vec::new();
        let mut size = 0;
        if !lines.is_empty() && chunks.last().is_some_and(blank) {
            chunks.pop();
        }
        while let Some(chunk) = chunks.pop_if(|chunk| size + chunk.len() <= width) {
            size += chunk.len();
            current.push(chunk);
        }
        if let Some(chunk) = chunks.pop_if(|chunk| chunk.len() > width) {
            if break_long_words {
                let (fits, rest) = chunk.split_at(width - size);
                current.push(fits);
                chunks.push(rest);
            } else if current.is_empty() {
                current.push(chunk);
            } else {
                chunks.push(chunk);
            }
        }
        current.pop_if(|chunk| blank(&&**chunk));
        if !current.is_empty() {
            lines.push(current.concat().into_iter().collect());
        }
    }
    Ok(lines)
}

fn word_wrap(value: &Value, arguments: Arguments) -> Result<Value> {
    let [width, long_words, wrap_string, hyphens] =
        arguments.bind("wordwrap", ["width", "break_long_words", "wrapstring", "break_on_hyphens"], 0)?;
    value.refuse_undefined()?;
    let whole = text(value, "wordwrap")?;
    let width = index(&width.unwrap_or(Value::Int(79)), "wordwrap")?;
    let holds = |value: Option<Value>| value.is_none_or(|value| value.is_true());
    let (long_words, hyphens) = (holds(long_words), holds(hyphens));
    let joined = match wrap_string {
        None | Some(Value::None) => "\n".to_string(),
        Some(given) => text(&given, "wordwrap")?.to_string(),
    };
    if hyphens && whole.contains('-') {
        return fail("wordwrap of text with hyphens is not supported");
    }
    let mut lines: Vec<Rc<str>> = Vec::new();
    for line in split_lines(whole, false)? {
        if width <= 0 {
            return fail(format!("invalid width {width} (must be > 0)"));
        }
        let parts = wrap_line(&line, usize::try_from(width).unwrap_or(usize::MAX / 2), long_words)?;
        let parts: Vec<Rc<str>> = parts.into_iter().map(Rc::from).collect();
        lines.push(join_texts(&joined, &parts)?.into());
    }
    Ok(join_texts(&joined, &lines)?.into())
}

fn quoted(whole: &str, in_query: bool) -> Result<String> {
    spend_text(whole.len() * 3)?;
    reserve(whole.len() * 3)?;
    let mut out = String::new();
    for byte in whole.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'.' | b'-' | b'~' => out.push(byte as char),
            b'/' if !in_query => out.push('/'),
            b' ' if in_query => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

fn url_encode(renderer: &Renderer, value: &Value) -> Result<Value> {
    let pairs = match value {
        Value::Dict(dict) => {
            dict.pairs().iter().map(|(key, value)| vec![key.clone(), value.clone()]).collect()
        }
        Value::Str(text) => return Ok(quoted(&text.text, false)?.into()),
        _ if !value.is_iterable() => return Ok(quoted(&renderer.text_of(value)?, false)?.into()),
        _ => value.items()?.iter().map(Value::items).collect::<Result<Vec<_>>>()?,
    };
    let mut parts: Vec<Rc<str>> = Vec::new();
    for pair in pairs {
        let [key, value] = pair.as_slice() else {
            return fail("urlencode: wanted pairs of a key and a value");
        };
        let (key, value) = (renderer.text_of(key)?, renderer.text_of(value)?);
        parts.push(format!("{}={}", quoted(&key, true)?, quoted(&value, true)?).into());
    }
    Ok(join_texts("&", &parts)?.into())
}

fn xml_attributes(renderer: &Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [spaced] = arguments.bind("xmlattr", ["autospace"], 0)?;
    value.refuse_undefined()?;
    let Value::Dict(dict) = value else {
        return fail(format!("'{}' object has no attribute 'items'", value.type_name()));
    };
    let mut parts: Vec<Rc<str>> = Vec::new();
    for (key, value) in dict.pairs() {
        if matches!(value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let name = text(key, "xmlattr")?;
        if name.contains(|letter: char| " \t\n\r\u{b}\u{c}/>=".contains(letter)) {
            return fail(format!("Invalid character in attribute name: {}", repr(key)?));
        }
        let sides = [markup_of(renderer, key, false)?, markup_of(renderer, value, false)?];
        parts.push(
            format!(
                "{}=\"{}\"",
                sides[0].as_str().unwrap_or_default(),
                sides[1].as_str().unwrap_or_default()
            )
            .into(),
        );
    }
    let joined = join_texts(" ", &parts)?;
    let spaced = spaced.is_none_or(|spaced| spaced.is_true()) && !joined.is_empty();
    Ok(if spaced { format!(" {joined}") } else { joined }.into())
}

/// The value with the keys of its dicts in order, as pprint shows it.
fn with_sorted_keys(value: &Value) -> Result<Value> {
    spend(1)?;
    Ok(match value {
        Value::List(items) => Value::list(items.values.iter().map(with_sorted_keys).collect::<Result<_>>()?)?,
        Value::Tuple(items) => {
            Value::tuple(items.values.iter().map(with_sorted_keys).collect::<Result<_>>()?)?
        }
        Value::Dict(dict) => {
            let mut pairs = dict.pairs().to_vec();
            sort_by(&mut pairs, |left, right| compare(&left.0, &right.0), false)?;
            let mut sorted = Dict::default();
            for (key, value) in pairs {
                sorted.insert(key, with_sorted_keys(&value)?)?;
            }
            Value::dict(sorted)
        }
        _ => value.clone(),
    })
}

fn pretty(value: &Value) -> Result<Value> {
    let text = repr(&with_sorted_keys(value)?)?;
    if text.chars().count() > 80 {
        return fail("pprint of more than one line is not supported");
    }
    Ok(text.into())
}

fn word_count(whole: &str) -> usize {
    whole.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).count()
}

pub fn call(renderer: &mut Renderer, name: &str, value: Value, arguments: Arguments) -> Result<Value> {
    match name {
        "join" => return join(renderer, &value, arguments),
        "replace" => return replace_filter(renderer, &value, arguments),
        "indent" => return indent(&value, arguments),
        "truncate" => return truncate(&value, arguments),
        "wordwrap" => return word_wrap(&value, arguments),
        "xmlattr" => return xml_attributes(renderer, &value, arguments),
        "format" => {
            let values = match (arguments.positional.is_empty(), arguments.named.is_empty()) {
                (false, false) => {
                    return fail("can't handle positional and keyword arguments at the same time")
                }
                (true, false) => Value::dict(arguments.into_dict()?),
                _ => Value::tuple(arguments.positional)?,
            };
            return percent::format(&soft_text(renderer, &value)?, &values);
        }
        _ => {}
    }
    let soft = soft_text(renderer, &value)?;
    spend_text(soft.text.len() * 2)?;
    reserve(soft.text.len() * 3)?;
    let same_kind = |text: String| Value::Str(Text { text: text.into(), markup: soft.markup });
    if name == "trim" {
        let [characters] = arguments.bind("trim", ["chars"], 0)?;
        let characters = characters.filter(|characters| !matches!(characters, Value::None));
        let characters = characters.as_ref().map(|characters| text(characters, "trim")).transpose()?;
        return Ok(same_kind(strip(&soft.text, characters, true, true).into()));
    }
    if name == "center" {
        let [width] = arguments.bind("center", ["width"], 0)?;
        let width = index(&width.unwrap_or(Value::Int(80)), "center")?.max(0);
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        return Ok(same_kind(center(&soft.text, width, ' ')?));
    }
    arguments.bind_positional::<0>(name, 0)?;
    Ok(match name {
        "upper" => same_kind(soft.text.to_uppercase()),
        "lower" => same_kind(soft.text.to_lowercase()),
        "capitalize" => same_kind(capitalize(&soft.text)),
        "title" => jinja_title(&soft.text).into(),
        "string" => Value::Str(soft),
        "safe" => Value::markup(soft.text),
        "e" | "escape" => markup_of(renderer, &value, false)?,
        "forceescape" => markup_of(renderer, &value, true)?,
        "wordcount" => word_count(&soft.text).into(),
        "striptags" => strip_tags(&soft.text)?.into(),
        "urlencode" => url_encode(renderer, &value)?,
        _ => pretty(&value)?,
    })
}
