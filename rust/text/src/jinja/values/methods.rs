// SPDX-License-Identifier: Apache-2.0
//! Methods of Python's built-in types.

use crate::jinja::error::{fail, spend, Result};
use crate::jinja::values::arguments::{index, Arguments};
use crate::jinja::values::members::{has, number_field};
use crate::jinja::values::order::equal;
use crate::jinja::values::string_methods;
use crate::jinja::values::strings::strip_tags;
use crate::jinja::values::value::{Dict, Value, View};

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
        (Value::Str(text), "striptags") if text.markup => strip_tags(&text.text).map(Value::from),
        (Value::Str(text), _) if has(receiver, name) => string_methods::call(text, name, arguments),
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
