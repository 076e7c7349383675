// SPDX-License-Identifier: Apache-2.0
//! Methods of str. Positions count letters, not bytes.

use std::rc::Rc;

use unicode_categories::UnicodeCategories;

use crate::jinja::error::{fail, reserve, spend, spend_text, Result};
use crate::jinja::values::arguments::{index, text, Arguments};
use crate::jinja::values::percent::format_method;
use crate::jinja::values::strings::{
    center, is_alpha, is_decimal, is_digit, is_lower, is_title, is_upper, join_texts, pad, replace, split,
    split_lines,
};
use crate::jinja::values::text::{
    capitalize, casefold, escape, is_printable, is_space, strip, swapcase, title,
};
use crate::jinja::values::value::{Text, Value};

/// The part of `whole` from letter `start` to letter `end`, and the letters before it.
fn window<'t>(whole: &'t str, start: Option<Value>, end: Option<Value>) -> Result<Option<(&'t str, usize)>> {
    let none = |value: &Option<Value>| matches!(value, None | Some(Value::None));
    if none(&start) && none(&end) {
        return Ok(Some((whole, 0)));
    }
    let size = whole.chars().count() as i128;
    let bound = |value: Option<Value>, default: i128| -> Result<i128> {
        match value {
            None | Some(Value::None) => Ok(default),
            Some(value) => {
                let at = index(&value, "a position")?;
                Ok(if at < 0 { at.saturating_add(size).max(0) } else { at })
            }
        }
    };
    let (start, end) = (bound(start, 0)?, bound(end, size)?.min(size));
    if start > end {
        return Ok(None);
    }
    let place = |letters: i128| whole.char_indices().nth(letters as usize).map_or(whole.len(), |(at, _)| at);
    Ok(Some((&whole[place(start)..place(end)], start as usize)))
}

fn find(receiver: &str, name: &str, arguments: Arguments) -> Result<Value> {
    let [wanted, start, end] = arguments.bind_positional(name, 1)?;
    let wanted = wanted.unwrap_or(Value::None);
    let wanted = text(&wanted, name)?;
    let from_right = name.starts_with('r');
    let position = window(receiver, start, end)?.and_then(|(part, before)| {
        let at = if from_right { part.rfind(wanted) } else { part.find(wanted) }?;
        Some(before + part[..at].chars().count())
    });
    match position {
        Some(position) => Ok(position.into()),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => fail("substring not found"),
    }
}

fn count(receiver: &str, arguments: Arguments) -> Result<Value> {
    let [wanted, start, end] = arguments.bind_positional("count()", 1)?;
    let wanted = wanted.unwrap_or(Value::None);
    let wanted = text(&wanted, "count()")?;
    Ok(window(receiver, start, end)?.map_or(0, |(part, _)| part.matches(wanted).count()).into())
}

fn begins_or_ends(receiver: &str, name: &str, arguments: Arguments) -> Result<Value> {
    let [wanted, start, end] = arguments.bind_positional(name, 1)?;
    let wanted = wanted.unwrap_or(Value::None);
    let candidates = match &wanted {
        Value::Tuple(items) => items.values.clone(),
        _ => vec![wanted],
    };
    let Some((part, _)) = window(receiver, start, end)? else {
        for candidate in &candidates {
            text(candidate, name)?;
        }
        return Ok(false.into());
    };
    for candidate in &candidates {
        let candidate = text(candidate, name)?;
        if if name == "startswith" { part.starts_with(candidate) } else { part.ends_with(candidate) } {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn justify(receiver: &str, name: &str, arguments: Arguments) -> Result<String> {
    let [width, fill] = arguments.bind_positional(name, 1)?;
    let width = index(&width.unwrap_or(Value::None), name)?;
    let fill = match &fill {
        None => ' ',
        Some(fill) => {
            let mut letters = text(fill, name)?.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) => letter,
                _ => return fail("The fill character must be exactly one character long"),
            }
        }
    };
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    if name == "center" {
        return center(receiver, width, fill);
    }
    pad(receiver.into(), width, fill, if name == "ljust" { '<' } else { '>' })
}

fn zfill(receiver: &str, arguments: Arguments) -> Result<String> {
    let [width] = arguments.bind_positional("zfill()", 1)?;
    let width = index(&width.unwrap_or(Value::None), "zfill()")?;
    let (sign, digits) = receiver.split_at(usize::from(receiver.starts_with(['-', '+'])));
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX).saturating_sub(sign.len());
    Ok(format!("{sign}{}", pad(digits.into(), width, '0', '>')?))
}

fn expand_tabs(receiver: &str, size: i128) -> Result<String> {
    let mut out = String::new();
    let mut column = 0usize;
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    for letter in receiver.chars() {
        match letter {
            '\t' if size == 0 => {}
            '\t' => {
                let missing = size - column % size;
                reserve(out.len().saturating_add(missing))?;
                spend_text(missing)?;
                out.extend(std::iter::repeat_n(' ', missing));
                column += missing;
            }
            '\n' | '\r' => {
                out.push(letter);
                column = 0;
            }
            _ => {
                out.push(letter);
                column += 1;
            }
        }
    }
    Ok(out)
}

/// Numbers that only Unicode's tables tell apart.
fn refuse_rare_numbers(receiver: &str, name: &str) -> Result<()> {
    let is_rare = |letter: char| match name {
        "isdigit" => letter.is_number_other() && letter as u32 > 0x2100,
        "isnumeric" => matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..),
        _ => false,
    };
    if receiver.chars().any(is_rare) {
        return fail(format!("{name}() of rare numerals is not supported"));
    }
    Ok(())
}

fn is_of(text: &str, holds: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(holds)
}

fn question(receiver: &str, name: &str, arguments: Arguments) -> Result<Value> {
    arguments.bind_positional::<0>(name, 0)?;
    refuse_rare_numbers(receiver, name)?;
    Ok(Value::Bool(match name {
        "isalnum" => is_of(receiver, |letter| is_alpha(letter) || letter.is_numeric()),
        "isalpha" => is_of(receiver, is_alpha),
        "isascii" => receiver.is_ascii(),
        "isdecimal" => is_of(receiver, is_decimal),
        "isdigit" => is_of(receiver, is_digit),
        "isnumeric" => is_of(receiver, char::is_numeric),
        "isidentifier" => {
            let mut letters = receiver.chars();
            letters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
                && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
        }
        "islower" => is_lower(receiver),
        "isupper" => is_upper(receiver),
        "istitle" => is_title(receiver),
        "isspace" => is_of(receiver, is_space),
        _ => receiver.chars().all(is_printable),
    }))
}

fn stripped(receiver: &str, name: &str, arguments: Arguments) -> Result<String> {
    let [characters] = arguments.bind_positional(name, 0)?;
    let characters = match &characters {
        None | Some(Value::None) => None,
        Some(value) => Some(text(value, name)?),
    };
    let (left, right) = (name != "rstrip", name != "lstrip");
    Ok(strip(receiver, characters, left, right).into())
}

fn one_text(name: &str, arguments: Arguments) -> Result<Rc<str>> {
    let [argument] = arguments.bind_positional(name, 1)?;
    Ok(text(&argument.unwrap_or(Value::None), name)?.into())
}

fn partition(receiver: &str, separator: &str, from_right: bool) -> Result<[String; 3]> {
    if separator.is_empty() {
        return fail("empty separator");
    }
    let at = if from_right { receiver.rfind(separator) } else { receiver.find(separator) };
    Ok(match at {
        Some(at) => [receiver[..at].into(), separator.into(), receiver[at + separator.len()..].into()],
        None if from_right => [String::new(), String::new(), receiver.into()],
        None => [receiver.into(), String::new(), String::new()],
    })
}

fn split_parts(receiver: &str, name: &str, arguments: Arguments) -> Result<Vec<String>> {
    let [separator, limit] = arguments.bind(name, ["sep", "maxsplit"], 0)?;
    let limit = limit.map_or(Ok(-1), |limit| index(&limit, name))?;
    let separator = match &separator {
        None | Some(Value::None) => None,
        Some(value) => Some(text(value, name)?),
    };
    split(receiver, separator, limit, name == "rsplit")
}

fn join(receiver: &Text, arguments: Arguments) -> Result<String> {
    let [parts] = arguments.bind_positional("join()", 1)?;
    let mut texts = Vec::new();
    for (at, part) in parts.unwrap_or(Value::None).items()?.iter().enumerate() {
        spend(1)?;
        match part {
            Value::Str(part) if receiver.markup && !part.markup => texts.push(escape(&part.text).into()),
            Value::Str(part) => texts.push(part.text.clone()),
            _ => {
                return fail(format!("sequence item {at}: expected str instance, {} found", part.type_name()))
            }
        }
    }
    join_texts(&receiver.text, &texts)
}

fn replace_method(receiver: &Text, arguments: Arguments) -> Result<String> {
    let [old, new, count] = arguments.bind_positional("replace()", 2)?;
    let (old, new) = (old.unwrap_or(Value::None), new.unwrap_or(Value::None));
    let count = count.map_or(Ok(-1), |count| index(&count, "replace()"))?;
    let plain = text(&new, "replace()")?;
    let escaped = receiver.markup && !matches!(&new, Value::Str(new) if new.markup);
    let new = if escaped { escape(plain) } else { plain.into() };
    replace(&receiver.text, text(&old, "replace()")?, &new, count)
}

pub fn call(receiver: &Text, name: &str, arguments: Arguments) -> Result<Value> {
    let whole: &str = &receiver.text;
    spend_text(whole.len() * 2)?;
    reserve(whole.len() * 2)?;
    let same_kind = |text: String| Value::Str(Text { text: text.into(), markup: receiver.markup });
    let list = |parts: Vec<String>| Value::list(parts.into_iter().map(same_kind).collect());
    Ok(match name {
        "strip" | "lstrip" | "rstrip" => same_kind(stripped(whole, name, arguments)?),
        "upper" | "lower" | "title" | "capitalize" | "swapcase" | "casefold" => {
            arguments.bind_positional::<0>(name, 0)?;
            same_kind(match name {
                "upper" => whole.to_uppercase(),
                "lower" => whole.to_lowercase(),
                "title" => title(whole),
                "capitalize" => capitalize(whole),
                "swapcase" => swapcase(whole),
                _ => casefold(whole),
            })
        }
        "find" | "rfind" | "index" | "rindex" => find(whole, name, arguments)?,
        "count" => count(whole, arguments)?,
        "startswith" | "endswith" => begins_or_ends(whole, name, arguments)?,
        "center" | "ljust" | "rjust" => same_kind(justify(whole, name, arguments)?),
        "zfill" => same_kind(zfill(whole, arguments)?),
        "expandtabs" => {
            let [size] = arguments.bind(name, ["tabsize"], 0)?;
            same_kind(expand_tabs(whole, size.map_or(Ok(8), |size| index(&size, name))?)?)
        }
        "split" | "rsplit" => list(split_parts(whole, name, arguments)?)?,
        "splitlines" => {
            let [keep] = arguments.bind(name, ["keepends"], 0)?;
            let keep = match keep {
                None => false,
                Some(keep) => index(&keep, name)? != 0,
            };
            list(split_lines(whole, keep)?)?
        }
        "partition" | "rpartition" => {
            let parts = partition(whole, &one_text(name, arguments)?, name == "rpartition")?;
            Value::tuple(parts.into_iter().map(same_kind).collect())?
        }
        "removeprefix" => {
            let prefix = one_text(name, arguments)?;
            same_kind(whole.strip_prefix(&*prefix).unwrap_or(whole).into())
        }
        "removesuffix" => {
            let suffix = one_text(name, arguments)?;
            same_kind(whole.strip_suffix(&*suffix).unwrap_or(whole).into())
        }
        "replace" => same_kind(replace_method(receiver, arguments)?),
        "join" => same_kind(join(receiver, arguments)?),
        "format" => format_method(receiver, &arguments)?,
        "format_map" => {
            let [values] = arguments.bind_positional("format_map()", 1)?;
            let Some(Value::Dict(values)) = values else {
                return fail("format_map() needs a dict");
            };
            let mut named = Arguments::default();
            for (key, value) in values.pairs() {
                if let Some(key) = key.as_str() {
                    named.named.push((key.into(), value.clone()));
                }
            }
            format_method(receiver, &named)?
        }
        _ if name.starts_with("is") => question(whole, name, arguments)?,
        _ => return fail(format!("the method `{name}` of str is not supported")),
    })
}
