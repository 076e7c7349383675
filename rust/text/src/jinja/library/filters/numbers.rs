// SPDX-License-Identifier: Apache-2.0
//! Filters that give numbers.

use crate::jinja::error::{fail, Error, Result};
use crate::jinja::interpreter::state::Renderer;
use crate::jinja::values::arguments::{index, Arguments};
use crate::jinja::values::number::{arithmetic, parse_float, parse_int, round, truncate, Binary, Number};
use crate::jinja::values::operators::binary;
use crate::jinja::values::value::Value;

pub const NAMES: &[&str] = &["abs", "round", "int", "float", "sum", "filesizeformat"];

fn absolute(value: &Value) -> Result<Value> {
    match Number::of(value) {
        Some(Number::Int(value)) => match value.checked_abs() {
            Some(value) => Ok(Value::Int(value)),
            None => fail("whole numbers have at most 38 digits here"),
        },
        Some(Number::Float(value)) => Ok(Value::Float(value.abs())),
        None => fail(format!("bad operand type for abs(): '{}'", value.type_name())),
    }
}

fn to_float(value: &Value) -> Result<Option<f64>> {
    value.refuse_undefined()?;
    Ok(match value {
        Value::Str(text) => {
            if text.text.chars().any(|letter| !letter.is_ascii() && letter.is_numeric()) {
                return fail("digits of other scripts are not supported");
            }
            parse_float(&text.text)
        }
        _ => Number::of(value).map(Number::float),
    })
}

fn to_int(value: &Value, arguments: Arguments) -> Result<Value> {
    let [default, base] = arguments.bind("int", ["default", "base"], 0)?;
    let default = default.unwrap_or(Value::Int(0));
    value.refuse_undefined()?;
    let parsed = match value {
        Value::Str(text) => {
            let base = base.map_or(Ok(10), |base| index(&base, "int"))?;
            match u32::try_from(base) {
                Ok(base @ (0 | 2..=36)) => parse_int(&text.text, base),
                _ => None,
            }
        }
        Value::Float(value) if value.is_infinite() => {
            return Err(Error::new("cannot convert float infinity to integer"))
        }
        Value::Float(value) => truncate(*value),
        _ => value.as_index().map(Ok),
    };
    if let Some(parsed) = parsed {
        return Ok(Value::Int(parsed?));
    }
    // Python then tries int(float(value)).
    match to_float(value)?.and_then(truncate) {
        Some(parsed) => Ok(Value::Int(parsed?)),
        None => Ok(default),
    }
}

fn rounded(value: &Value, arguments: Arguments) -> Result<Value> {
    let [precision, method] = arguments.bind("round", ["precision", "method"], 0)?;
    let method = method.unwrap_or_else(|| "common".into());
    let method = method.as_str().unwrap_or_default();
    if !matches!(method, "common" | "ceil" | "floor") {
        return fail("method must be common, ceil or floor");
    }
    let Some(number) = Number::of(value) else {
        value.refuse_undefined()?;
        return fail(format!("type {} doesn't define __round__ method", value.type_name()));
    };
    let precision = precision.unwrap_or(Value::Int(0));
    if method == "common" {
        if let (Value::None, Number::Float(float)) = (&precision, number) {
            let Number::Float(whole) = round(number, 0)? else { return Ok(value.clone()) };
            return match truncate(if float.is_finite() { whole } else { float }) {
                Some(whole) => Ok(Value::Int(whole?)),
                None => fail("cannot convert float infinity or nan to integer"),
            };
        }
        let digits = if matches!(precision, Value::None) { 0 } else { index(&precision, "round")? };
        return Ok(round(number, digits)?.into());
    }
    let Some(precision) = Number::of(&precision) else { return fail("round: the precision is no number") };
    let scale = arithmetic(Binary::Power, Number::Int(10), precision)?;
    let scaled = arithmetic(Binary::Multiply, number, scale)?;
    let whole = match scaled {
        Number::Int(_) => scaled,
        Number::Float(scaled) => {
            match truncate(if method == "ceil" { scaled.ceil() } else { scaled.floor() }) {
                Some(whole) => Number::Int(whole?),
                None => return fail("cannot convert float infinity or nan to integer"),
            }
        }
    };
    Ok(arithmetic(Binary::Divide, whole, scale)?.into())
}

fn sum(renderer: &mut Renderer, value: &Value, arguments: Arguments) -> Result<Value> {
    let [attribute, start] = arguments.bind("sum", ["attribute", "start"], 0)?;
    let mut total = start.unwrap_or(Value::Int(0));
    if matches!(total, Value::Str(_)) {
        return fail("sum() can't sum strings [use ''.join(seq) instead]");
    }
    for item in value.items()? {
        let item = match attribute.as_ref().filter(|attribute| !matches!(attribute, Value::None)) {
            Some(attribute) => renderer.attribute_path(&item, attribute, None)?,
            None => item,
        };
        total = binary(Binary::Add, &total, &item)?;
    }
    Ok(total)
}

fn file_size(value: &Value, arguments: Arguments) -> Result<Value> {
    let [binary] = arguments.bind("filesizeformat", ["binary"], 0)?;
    let binary = binary.is_some_and(|binary| binary.is_true());
    let Some(bytes) = to_float(value)? else {
        return fail("filesizeformat: the value is no number");
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok("1 Byte".into());
    }
    if bytes < base {
        return match truncate(bytes) {
            Some(bytes) => Ok(format!("{} Bytes", bytes?).into()),
            None => fail("filesizeformat: the value is not finite"),
        };
    }
    if !bytes.is_finite() {
        return fail("filesizeformat: the value is not finite");
    }
    let letters = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let mut unit = base;
    let mut letter = "";
    for next in letters {
        unit *= base;
        letter = next;
        if bytes < unit {
            break;
        }
    }
    let letter = if binary { letter.to_uppercase() + "i" } else { letter.into() };
    Ok(format!("{:.1} {letter}B", base * bytes / unit).into())
}

pub fn call(renderer: &mut Renderer, name: &str, value: Value, arguments: Arguments) -> Result<Value> {
    match name {
        "abs" => {
            arguments.bind_positional::<0>("abs", 0)?;
            absolute(&value)
        }
        "round" => rounded(&value, arguments),
        "int" => to_int(&value, arguments),
        "float" => {
            let [default] = arguments.bind("float", ["default"], 0)?;
            Ok(to_float(&value)?.map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float))
        }
        "sum" => sum(renderer, &value, arguments),
        _ => file_size(&value, arguments),
    }
}
