// SPDX-License-Identifier: Apache-2.0
//! Methods of Python's built-in types.

use super::arguments::{index, Arguments};
use super::error::{fail, spend, Result};
use super::number::Number;
use super::string_methods;
use super::text::{lines, strip};
use super::value::{equal, Dict, Value, View};

const LIST: &[&str] = &["count", "index", "copy"];
const TUPLE: &[&str] = &["count", "index"];
const DICT: &[&str] = &["get", "items", "keys", "values", "copy", "fromkeys"];
const VIEW: &[&str] = &["isdisjoint", "mapping"];
const INT: &[&str] = &[
    "bit_length",
    "bit_count",
    "as_integer_ratio",
    "conjugate",
    "to_bytes",
    "from_bytes",
    "real",
    "imag",
    "numerator",
    "denominator",
];
const FLOAT: &[&str] = &["is_integer", "as_integer_ratio", "conjugate", "hex", "fromhex", "real", "imag"];
const MARKUP: &[&str] = &["unescape", "striptags", "escape"];
const ITERATOR: &[&str] = &["send", "throw", "close"];

/// Whether Python's object has the method; those of no use to templates are refused when they are called.
pub fn has(value: &Value, name: &str) -> bool {
    let names = match value {
        Value::Str(text) if text.markup && MARKUP.contains(&name) => return true,
        Value::Str(_) => string_methods::NAMES,
        Value::List(_) => LIST,
        Value::Tuple(_) | Value::Range(_) => TUPLE,
        Value::Dict(_) => DICT,
        Value::View(view, _) => match view {
            View::Values => &VIEW[1..],
            _ => VIEW,
        },
        Value::Bool(_) | Value::Int(_) => INT,
        Value::Float(_) => FLOAT,
        Value::Iterator(_) => ITERATOR,
        _ => return false,
    };
    names.contains(&name)
}

/// Numbers have fields among their methods.
pub fn number_field(value: &Value, name: &str) -> Option<Value> {
    let number = Number::of(value)?;
    let plain = Value::from(number);
    Some(match (name, number) {
        ("real", _) => plain,
        ("imag", Number::Int(_)) => Value::Int(0),
        ("imag", Number::Float(_)) => Value::Float(0.0),
        ("numerator", Number::Int(_)) => plain,
        ("denominator", Number::Int(_)) => Value::Int(1),
        _ => return None,
    })
}

fn find_item(items: &[Value], arguments: Arguments) -> Result<Value> {
    let [wanted, start, stop] = arguments.bind_positional("index()", 1)?;
    let wanted = wanted.unwrap_or(Value::None);
    let size = items.len() as i128;
    let bound = |value: Option<Value>, default: i128| -> Result<usize> {
        let at = value.map_or(Ok(default), |value| index(&value, "index()"))?;
        let at = if at < 0 { at.saturating_add(size).max(0) } else { at };
        Ok(at.min(size) as usize)
    };
    let (start, stop) = (bound(start, 0)?, bound(stop, size)?);
    for (at, item) in items.iter().enumerate().take(stop).skip(start) {
        if equal(item, &wanted)? {
            return Ok(at.into());
        }
    }
    fail("index(): the value is not in the list")
}

fn count_item(items: &[Value], arguments: Arguments) -> Result<Value> {
    let [wanted] = arguments.bind_positional("count()", 1)?;
    let wanted = wanted.unwrap_or(Value::None);
    let mut count = 0usize;
    for item in items {
        count += usize::from(equal(item, &wanted)?);
    }
    Ok(count.into())
}

fn from_keys(arguments: Arguments) -> Result<Value> {
    let [keys, value] = arguments.bind_positional("fromkeys()", 1)?;
    let mut dict = Dict::default();
    for key in keys.unwrap_or(Value::None).items()? {
        dict.insert(key, value.clone().unwrap_or(Value::None))?;
    }
    Ok(Value::dict(dict))
}

pub fn call(receiver: &Value, name: &str, arguments: Arguments) -> Result<Value> {
    spend(1)?;
    match (receiver, name) {
        (Value::Str(text), "striptags") if text.markup => {
            super::filters::strip_tags(&text.text).map(Value::from)
        }
        (Value::Str(text), _) if string_methods::NAMES.contains(&name) => {
            string_methods::call(text, name, arguments)
        }
        (Value::List(items) | Value::Tuple(items), "index") => find_item(&items.values, arguments),
        (Value::List(items) | Value::Tuple(items), "count") => count_item(&items.values, arguments),
        (Value::Range(_), "index") => find_item(&receiver.items()?, arguments),
        (Value::Range(_), "count") => count_item(&receiver.items()?, arguments),
        (Value::List(_) | Value::Dict(_), "copy") => {
            arguments.bind_positional::<0>("copy()", 0)?;
            Ok(receiver.clone())
        }
        (Value::Dict(dict), "get") => {
            let [key, default] = arguments.bind_positional("get()", 1)?;
            let key = key.unwrap_or(Value::None).key()?;
            Ok(dict.get(&key).cloned().or(default).unwrap_or(Value::None))
        }
        (Value::Dict(dict), "keys" | "values" | "items") => {
            arguments.bind_positional::<0>(name, 0)?;
            let view = match name {
                "keys" => View::Keys,
                "values" => View::Values,
                _ => View::Pairs,
            };
            Ok(Value::View(view, dict.clone()))
        }
        (Value::Dict(_), "fromkeys") => from_keys(arguments),
        (Value::Float(value), "is_integer") => {
            arguments.bind_positional::<0>("is_integer()", 0)?;
            Ok((value.is_finite() && value.fract() == 0.0).into())
        }
        (Value::Int(_) | Value::Bool(_), "bit_length") => {
            arguments.bind_positional::<0>("bit_length()", 0)?;
            let size = receiver.as_index().unwrap_or(0).unsigned_abs();
            Ok(Value::Int(i128::from(u128::BITS - size.leading_zeros())))
        }
        (Value::Int(_) | Value::Bool(_) | Value::Float(_), "conjugate") => {
            arguments.bind_positional::<0>("conjugate()", 0)?;
            Ok(number_field(receiver, "real").unwrap_or(Value::None))
        }
        _ => fail(format!("the method `{name}` of {} is not supported", receiver.type_name())),
    }
}

/// str.split and str.rsplit.
pub fn split(text: &str, separator: Option<&str>, limit: i128, from_right: bool) -> Result<Vec<String>> {
    if separator == Some("") {
        return fail("empty separator");
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_space = super::text::is_space;
    let mut parts: Vec<String> = Vec::new();
    let mut rest = match (separator, from_right) {
        (Some(_), _) => text,
        (None, false) => text.trim_start_matches(is_space),
        (None, true) => text.trim_end_matches(is_space),
    };
    while parts.len() < limit {
        let found = match (separator, from_right) {
            (Some(separator), false) => rest.find(separator).map(|at| (at, at + separator.len())),
            (Some(separator), true) => rest.rfind(separator).map(|at| (at, at + separator.len())),
            (None, false) => {
                rest.find(is_space).map(|at| (at, rest.len() - rest[at..].trim_start_matches(is_space).len()))
            }
            (None, true) => rest.rfind(is_space).map(|at| {
                let after = at + rest[at..].chars().next().map_or(0, char::len_utf8);
                (rest[..after].trim_end_matches(is_space).len(), after)
            }),
        };
        let Some((begin, end)) = found else { break };
        spend(1)?;
        let (part, remaining) =
            if from_right { (&rest[end..], &rest[..begin]) } else { (&rest[..begin], &rest[end..]) };
        if separator.is_none() && part.is_empty() {
            break;
        }
        parts.push(part.into());
        rest = remaining;
    }
    if separator.is_some() {
        parts.push(rest.into());
    } else {
        // With a limit the last part keeps the white space at its far end.
        let last = if from_right { strip(rest, None, false, true) } else { strip(rest, None, true, false) };
        if !last.is_empty() {
            parts.push(last.into());
        }
    }
    if from_right {
        parts.reverse();
    }
    Ok(parts)
}

pub fn split_lines(text: &str, keep_ends: bool) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    for line in lines(text, keep_ends) {
        spend(1)?;
        parts.push(line.to_string());
    }
    Ok(parts)
}
