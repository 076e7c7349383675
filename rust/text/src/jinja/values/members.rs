// SPDX-License-Identifier: Apache-2.0
//! Attributes and items of values, as Jinja2's sandbox gives them out, and the names of Python's methods.

use crate::jinja::error::{fail, spend_text, Result};
use crate::jinja::values::number::Number;
use crate::jinja::values::text::repr;
use crate::jinja::values::value::Value;
use crate::jinja::values::value::View;

const STR: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];

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

/// Whether Python's object has the method; methods of no use to templates are refused when they are
/// called.
pub fn has(value: &Value, name: &str) -> bool {
    let names = match value {
        Value::Str(text) if text.markup && MARKUP.contains(&name) => return true,
        Value::Str(_) => STR,
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

fn at<T>(items: &[T], index: i128) -> Option<&T> {
    let index = if index < 0 { index + items.len() as i128 } else { index };
    usize::try_from(index).ok().and_then(|index| items.get(index))
}

fn letter_at(text: &str, index: i128) -> Option<char> {
    let letter = |skipped: i128| usize::try_from(skipped).ok();
    if index < 0 {
        text.chars().rev().nth(letter(-1 - index)?)
    } else {
        text.chars().nth(letter(index)?)
    }
}

/// `value[index]`; None where Python raises TypeError or LookupError.
pub fn subscript(value: &Value, index: &Value) -> Result<Option<Value>> {
    value.refuse_undefined()?;
    Ok(match value {
        Value::Dict(dict) => match index.key() {
            Ok(key) => dict.get(&key).cloned(),
            Err(_) => None,
        },
        Value::List(items) | Value::Tuple(items) => {
            index.as_index().and_then(|index| at(&items.values, index).cloned())
        }
        Value::Str(text) => {
            spend_text(text.text.len())?;
            let letter = index.as_index().and_then(|index| letter_at(&text.text, index));
            letter.map(|letter| Value::letter(letter, text.markup))
        }
        Value::Range(range) => index.as_index().and_then(|index| {
            let index = if index < 0 { index.checked_add(range.size)? } else { index };
            (0..range.size).contains(&index).then(|| Value::Int(range.get(index)))
        }),
        _ => None,
    })
}

/// What an attribute of a value is, objects of the renderer aside.
pub fn attribute(value: &Value, name: &str) -> Option<Value> {
    if let Value::Tuple(items) = value {
        if let Some(index) = items.names.iter().position(|field| *field == name) {
            return Some(items.values[index].clone());
        }
    }
    if let (Value::Range(range), "start" | "stop" | "step") = (value, name) {
        return Some(Value::Int(match name {
            "start" => range.start,
            "stop" => range.stop,
            _ => range.step,
        }));
    }
    if let Some(field) = number_field(value, name) {
        return Some(field);
    }
    has(value, name).then(|| Value::method(value.clone(), name))
}

fn is_unsafe(value: &Value, name: &str) -> bool {
    let mutators: &[&str] = match value {
        Value::Dict(_) => &["clear", "pop", "popitem", "setdefault", "update"],
        Value::List(_) => &["append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"],
        _ => &[],
    };
    name.starts_with('_') || mutators.contains(&name)
}

fn unsafe_attribute(value: &Value, name: &str) -> Value {
    Value::undefined(format!("access to attribute '{name}' of '{}' object is unsafe", value.type_name()))
}

fn missing(value: &Value, name: &Value) -> Result<Value> {
    let kind = match value {
        Value::None => "None".into(),
        _ => format!("{} object", value.type_name()),
    };
    Ok(Value::undefined(match name.as_str() {
        Some(name) => format!("'{kind}' has no attribute '{name}'"),
        None => format!("{kind} has no element {}", repr(name)?),
    }))
}

/// `value.name`: the attribute, else the item.
pub fn get_attribute(value: &Value, name: &str) -> Result<Value> {
    value.refuse_undefined()?;
    // Every Python object has a few of these; they are never safe.
    if name.starts_with("__") {
        return fail(format!("`{name}`: names that begin with two underscores are not allowed"));
    }
    if is_unsafe(value, name) && !name.starts_with('_') {
        return Ok(unsafe_attribute(value, name));
    }
    if let Some(found) = attribute(value, name) {
        return Ok(found);
    }
    if let Value::Dict(dict) = value {
        if let Some(found) = dict.get_text(name) {
            return Ok(found.clone());
        }
    }
    missing(value, &Value::from(name))
}

/// `value[index]`: the item, else the attribute.
pub fn get_item(value: &Value, index: &Value) -> Result<Value> {
    if let Some(found) = subscript(value, index)? {
        return Ok(found);
    }
    if let Some(name) = index.as_str() {
        if name.starts_with("__") {
            return fail(format!("`{name}`: names that begin with two underscores are not allowed"));
        }
        if is_unsafe(value, name) && !name.starts_with('_') {
            return Ok(unsafe_attribute(value, name));
        }
        if let Some(found) = attribute(value, name) {
            return Ok(found);
        }
    }
    missing(value, index)
}
